"""Opens what was trained: a bundle in ONNX Runtime or TorchScript, a checkpoint in PyTorch."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from compgen.csl.backend import GrammarBackend
from compgen.data.vocabulary import Vocabulary
from compgen.errors import BundleError, DataError, UserError
from compgen.files import sha256
from compgen.runtime.backend import Backend, Decoder
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import Recurrent

if TYPE_CHECKING:  # polars alone takes a tenth of a second
    from compgen.csl.trained import TrainedGrammar
    from compgen.runtime.bundle import Bundle

RUNTIMES = ("onnx", "torchscript", "torch")
_MAKERS = {  # how to come to what was expected
    "generator": "`compgen train recombine` and `compgen train csl` make generators",
    "predictor": "`compgen train seq2seq` makes one, and `compgen evaluate --direct` lets a generator answer by itself",
}


@dataclass(frozen=True)
class Opened:
    """What is read with a model; a predictor has no pool and no way of sampling.

    `identity` is a hash that two models share only if all their files are the same; `bundle` is where ONNX Runtime has
    it from, and None for other runtimes.
    """

    vocabulary: Vocabulary
    max_length: int
    pool: PrototypePool | None
    sampling: dict[str, Any]
    identity: str
    bundle: Path | None = None
    recurrent: bool = True  # a recurrent network, else a Transformer or a grammar


def open_generator(
    path: Path, runtime: str | None, provider: str, threads: int, *, trust_code: bool = False
) -> tuple[Backend | GrammarBackend, Opened]:
    """A generator's backend and what goes with it, from a checkpoint or a bundle.

    `trust_code` is the user's word that a bundle's TorchScript may run, see `TorchScriptBackend`.

    Raises:
        UserError: it cannot be used; the message says why.
    """
    opened, meta = _open(path, "generator", runtime, provider, threads, trust_code)
    return cast(Backend | GrammarBackend, opened), meta


def cores() -> int:
    """How many threads to use if nobody says: OMP_NUM_THREADS, as in numeric libraries, or the cores we may use."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else len(os.sched_getaffinity(0))


def is_pretrained(path: Path) -> bool:
    """Whether something is the folder of a pretrained model: one in which transformers keeps its configuration."""
    return (path / "config.json").is_file()


def open_predictor(
    path: Path, runtime: str | None, provider: str, threads: int, *, trust_code: bool = False
) -> tuple[Decoder, Opened]:
    """A predictor's decoder and what goes with it; arguments and errors as for `open_generator`."""
    opened, meta = _open(path, "predictor", runtime, provider, threads, trust_code)
    return (Recurrent(cast(Backend, opened)) if meta.recurrent else cast(Decoder, opened)), meta


def bundled_grammar(bundle: "Bundle") -> "TrainedGrammar":
    """The grammar in a bundle.

    Raises:
        BundleError: its parts do not fit together.
    """
    from compgen.csl.trained import TrainedGrammar
    from compgen.runtime.bundle import arrays_of
    from compgen.runtime.manifest import RULES, SCORES, TARGET_RULES

    rules, targets = bundle.text(RULES), bundle.text(TARGET_RULES)
    scores = arrays_of(bundle.path / SCORES, bundle.file(SCORES))
    try:
        return TrainedGrammar.of(rules, targets, scores, bundle.manifest.sampling)
    except DataError as error:
        raise BundleError(f"{bundle.path}: {error}") from error


def _open(
    path: Path, kind: str, runtime: str | None, provider: str, threads: int, trust_code: bool
) -> tuple[Backend | GrammarBackend | Decoder, Opened]:
    if trust_code and runtime != "torchscript":
        raise UserError("--trust-code (trust_code) is for the runtime torchscript alone: leave it out")
    if runtime not in (None, *RUNTIMES):
        raise UserError(f"no runtime {runtime!r}: expected one of {', '.join(RUNTIMES)}")
    if is_pretrained(path):
        raise UserError(f"{path}: holds a pretrained model, expected a {kind}'s checkpoint or bundle")
    if provider != "auto" and (path.suffix == ".pt" or runtime == "torchscript"):
        raise UserError(f"{path}: --provider is for bundles in ONNX Runtime; torch finds its device by itself")
    if path.suffix == ".pt":
        return _open_checkpoint(path, kind, runtime, threads)
    from compgen.runtime.bundle import Bundle

    try:
        bundle = Bundle.load(path)
    except BundleError:
        _require_no_data(path)  # not before: it imports polars, which bundles do without
        raise
    _require(path, bundle.manifest.kind, kind)
    vocabulary, manifest = Vocabulary(bundle.vocabulary), bundle.manifest
    meta = Opened(vocabulary, manifest.max_length, bundle.pool, manifest.sampling, bundle.identity)
    if runtime == "torch":
        raise UserError(f"{path}: a bundle runs in onnx or torchscript; for --runtime torch give the checkpoint (.pt)")
    if manifest.architecture == "grammar":
        if runtime is not None or provider != "auto":
            raise UserError(f"{path}: a grammar needs no runtime: leave out runtime and provider")
        return GrammarBackend(bundled_grammar(bundle), vocabulary), replace(meta, recurrent=False)
    if manifest.architecture == "transformer":
        if runtime == "torchscript":
            raise UserError(f"{path}: a Transformer's bundle runs in onnx alone")
        from compgen.runtime.onnx_transformer import OnnxTransformer

        return OnnxTransformer(bundle, threads, provider), replace(meta, recurrent=False)
    if runtime == "torchscript":
        from compgen.runtime.torchscript_backend import TorchScriptBackend

        return TorchScriptBackend(bundle, threads, trust_code=trust_code), meta
    from compgen.runtime.onnx_backend import OnnxBackend

    return OnnxBackend(bundle, threads, provider), replace(meta, bundle=bundle.path)


def _open_checkpoint(
    path: Path, kind: str, runtime: str | None, threads: int
) -> tuple[Backend | GrammarBackend | Decoder, Opened]:
    if runtime not in (None, "torch"):
        raise UserError(f"{path}: a checkpoint runs in torch; export it first for --runtime {runtime}")
    if not path.exists():
        raise UserError(f"{path}: no such file")
    try:
        import torch
    except ModuleNotFoundError as error:
        raise UserError(
            f"{path}: a checkpoint needs torch (pip install 'compgen[train]'); a bundle does not"
        ) from error
    from compgen.models.backend import TorchBackend, TorchTransformer
    from compgen.models.rules import RuleTables
    from compgen.models.transformer import Transformer
    from compgen.training.checkpoint import Checkpoint

    torch.set_num_threads(threads)
    checkpoint = Checkpoint.load(path)
    _require(path, checkpoint.kind, kind)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    meta = Opened(checkpoint.vocabulary, checkpoint.max_length, checkpoint.pool, checkpoint.sampling, sha256(path))
    if isinstance(checkpoint.network, RuleTables):
        from compgen.csl.checkpoint import grammar_of

        return GrammarBackend(grammar_of(checkpoint), checkpoint.vocabulary), replace(meta, recurrent=False)
    if isinstance(checkpoint.network, Transformer):
        return TorchTransformer(checkpoint.network, device, str(path)), replace(meta, recurrent=False)
    return TorchBackend(checkpoint.network, device, str(path)), meta


def _require_no_data(path: Path) -> None:
    from compgen.data.catalog import names

    if str(path) in names():
        raise UserError(f"{path}: a data set, expected a model: a bundle's folder or a checkpoint (.pt)")


def _require(path: Path, found: str, wanted: str) -> None:
    if found != wanted:
        raise UserError(f"{path}: holds a {found}, expected a {wanted}; {_MAKERS[wanted]}")
