"""compgen makes new training examples by recombining existing ones.

The main commands are functions here:

    import compgen

    scan = compgen.load_dataset("scan/jump")
    compgen.train_generator(scan.split("train"), "recombine_small", "recomb2.pt")
    compgen.export_bundle("recomb2.pt", "exported/mine")
    samples = compgen.Generator.load("exported/mine").sample(400, seed=1, filters="novel,unique,rare")
    compgen.train_predictor(scan.split("train"), "seq2seq_small", "predictor.pt", augmented=samples)
    print(compgen.Predictor.load("predictor.pt").evaluate(scan.split("test")))

Names are imported when they are first used, so `import compgen` is fast and needs no torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the same names as in `_HOMES`, for editors and type checkers
    from compgen import errors as errors
    from compgen import lm as lm
    from compgen.api import confirm as confirm
    from compgen.api import evaluate as evaluate
    from compgen.api import export_bundle as export_bundle
    from compgen.api import predict as predict
    from compgen.api import train_generator as train_generator
    from compgen.api import train_predictor as train_predictor
    from compgen.api import train_pretrained as train_pretrained
    from compgen.api_data import augment as augment
    from compgen.api_data import check as check
    from compgen.api_data import load_dataset as load_dataset
    from compgen.api_data import mask as mask
    from compgen.api_data import measure_divergence as measure_divergence
    from compgen.api_data import measure_overlap as measure_overlap
    from compgen.api_data import measure_quality as measure_quality
    from compgen.api_data import select as select
    from compgen.api_data import signs as signs
    from compgen.api_data import split as split
    from compgen.api_data import unmask as unmask
    from compgen.api_data import write_dataset as write_dataset
    from compgen.augmenters.concat import Concat as Concat
    from compgen.augmenters.resample import Resample as Resample
    from compgen.comparison.run import compare as compare
    from compgen.csl.augmenter import Csl as Csl
    from compgen.data.examples import Dataset as Dataset
    from compgen.errors import UserError as UserError
    from compgen.geca.augmenter import Geca as Geca
    from compgen.lexsym.augmenter import Lexsym as Lexsym
    from compgen.morphology.stemcorrupt import StemCorrupt as StemCorrupt
    from compgen.recombine.augmenter import Recombine as Recombine
    from compgen.substitution.augmenter import Substitute as Substitute
    from compgen.trained.committee import Committee as Committee
    from compgen.trained.generator import Generator as Generator
    from compgen.trained.predictor import Predictor as Predictor
    from compgen.trained.verification import verify_bundle as verify_bundle

__version__ = "0.1.0"

_HOMES = {
    "Dataset": "compgen.data.examples",
    "load_dataset": "compgen.api_data",
    "write_dataset": "compgen.api_data",
    "measure_divergence": "compgen.api_data",
    "measure_overlap": "compgen.api_data",
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
    "confirm": "compgen.api",
    "evaluate": "compgen.api",
    "mask": "compgen.api_data",
    "predict": "compgen.api",
    "select": "compgen.api_data",
    "signs": "compgen.api_data",
    "split": "compgen.api_data",
    "train_generator": "compgen.api",
    "train_predictor": "compgen.api",
    "train_pretrained": "compgen.api",
    "unmask": "compgen.api_data",
    "export_bundle": "compgen.api",
    "verify_bundle": "compgen.trained.verification",
    "UserError": "compgen.errors",
}

_MODULES = ("errors", "lm")  # that `compgen.NAME` gives, too

__all__ = [*sorted(_HOMES), "__version__"]


if not TYPE_CHECKING:  # with this function, a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return import_module(f"compgen.{name}")
        if name not in _HOMES:
            raise AttributeError(f"module 'compgen' has no attribute {name!r}")
        return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
