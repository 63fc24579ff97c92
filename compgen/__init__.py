"""compgen makes the training examples that people lack.

The same verbs as on the command line, in a few lines each:

    import compgen

    scan = compgen.load_dataset("scan/jump")
    compgen.train_generator(scan.split("train"), "recombine_small", "recomb2.pt")
    compgen.export_bundle("recomb2.pt", "exported/mine")
    samples = compgen.Generator.load("exported/mine").sample(400, seed=1, filters="novel,unique,rare")
    compgen.train_predictor(scan.split("train"), "seq2seq_small", "predictor.pt", augmented=samples)
    print(compgen.Predictor.load("predictor.pt").evaluate(scan.split("test")))

Names are imported when first used, so that `import compgen` costs nothing and needs no torch.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_HOMES = {
    "Dataset": "compgen.data.examples",
    "load_dataset": "compgen.api_data",
    "write_dataset": "compgen.api_data",
    "measure_quality": "compgen.api_data",
    "Generator": "compgen.trained.generator",
    "Predictor": "compgen.trained.predictor",
    "Committee": "compgen.trained.committee",
    "Concat": "compgen.augmenters.concat",
    "Csl": "compgen.csl.augmenter",
    "Geca": "compgen.geca.augmenter",
    "Lexsym": "compgen.lexsym.augmenter",
    "Recombine": "compgen.recombine.augmenter",
    "Resample": "compgen.augmenters.resample",
    "StemCorrupt": "compgen.morphology.stemcorrupt",
    "Substitute": "compgen.substitution.augmenter",
    "augment": "compgen.api_data",
    "check": "compgen.api_data",
    "compare": "compgen.comparison.run",
    "evaluate": "compgen.api",
    "mask": "compgen.api_data",
    "predict": "compgen.api",
    "select": "compgen.api_data",
    "split": "compgen.api_data",
    "train_generator": "compgen.api",
    "train_predictor": "compgen.api",
    "train_pretrained": "compgen.api",
    "unmask": "compgen.api_data",
    "export_bundle": "compgen.api",
    "verify_bundle": "compgen.trained.verification",
    "UserError": "compgen.errors",
}

__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'compgen' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
