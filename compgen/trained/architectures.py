"""The registry of architectures: how a trained model is saved, opened, exported and verified, and what it can do.

Each architecture has a tag, which checkpoints and bundles hold. Code that uses a model asks for an ability and never
for an architecture: `draws` (samples by address: a generator), `answers` (targets of sources: a predictor, a grammar,
direct inference) and `losses` (how improbable a target is given its source).

A new architecture of predictors touches three files:

1. `models/NAME.py`: the torch module, a `Trainable` with this tag, and its configuration;
2. this file: one line of `MODULES`;
3. `trained/NAME.py`: its `Architecture`, which builds the network and opens it in PyTorch.

An exporter (`Architecture.exporter`) and a row of `runtime.manifest.LAYOUTS` are needed only for a bundle of its own,
which is a change of the bundle format that the C++ runner shares.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, SupportsIndex

from compgen.data.vocabulary import Vocabulary
from compgen.errors import BundleError, UserError
from compgen.files import reading, sha256
from compgen.runtime.backend import Backend
from compgen.runtime.pool import PrototypePool
from compgen.sampling.batching import Draw, Tokens
from compgen.trained.limits import check_limits

if TYPE_CHECKING:
    from pydantic import BaseModel

    from compgen.models.trainable import Trainable
    from compgen.runtime.bundle import Bundle
    from compgen.runtime.golden import Golden
    from compgen.trained.predictor import Predictor

MODULES = {  # tag -> the module whose `ARCHITECTURE` is the entry
    "recurrent": "compgen.trained.recurrent",
    "transformer": "compgen.trained.transformer",
    "grammar": "compgen.trained.grammar",
    "pretrained": "compgen.trained.pretrained",
}
DRAWS, ANSWERS, LOSSES = "draws", "answers", "losses"
GENERATOR, PREDICTOR = frozenset({DRAWS, ANSWERS}), frozenset({ANSWERS, LOSSES})
RUNTIMES = ("onnx", "torchscript", "torch", "native")
Runner = Callable[["Golden"], Sequence[Draw]]  # returns what a runtime gives in place of each golden draw or answer
Runners = dict[str, Callable[[], Runner]]
State = list[tuple[str, int, int]]  # of files: name, size and time of the last change


@dataclass(frozen=True)
class Runtime:
    """Where to run a model; arguments of `Generator.load`."""

    name: str | None = None
    provider: str = "auto"
    threads: int = 1
    trust_code: bool = False

    def __post_init__(self) -> None:
        """Raise UserError for a number of threads that there cannot be."""
        check_limits(threads=self.threads)


@dataclass(frozen=True)
class Request:
    """The draws of addresses start .. stop - 1; arguments of `Generator.draw`.

    Attributes:
        pool: what prototypes are drawn from, if not all of the generator's: some of its tuples.
        enough: after so many draws no more may be asked for; None if that cannot be said.
    """

    seed: int
    start: int
    stop: int
    temperature: tuple[float, float] | None = None
    beam: int | None = None
    batch: int | None = None
    workers: int | None = None
    unwanted: Container[Tokens] = ()
    pool: PrototypePool | None = None
    enough: int | None = None


class Opened:
    """A model that `open_model` opened. If it runs from a bundle, copying or unpickling it opens that bundle again."""

    opening: "tuple[Path, str, Runtime, str] | None" = None  # of `open_model`; None for what can be copied itself

    def __reduce_ex__(self, protocol: SupportsIndex, /) -> str | tuple[Any, ...]:
        return super().__reduce_ex__(protocol) if self.opening is None else (open_model, self.opening)


class GeneratorModel(Protocol):
    """An opened model with the abilities `draws` and `answers`."""

    method: str  # of its samples
    threaded: bool  # whether `workers` of a request are threads
    vocabulary: Vocabulary
    pool: PrototypePool  # the training examples
    max_length: int
    temperature: tuple[float, float]
    identity: str  # SHA-256 of its files
    bundle: Path | None  # a folder that workers on other machines can open in ONNX Runtime

    @property
    def backend(self) -> Backend | None:
        """What scores one token at a time; None for a grammar."""

    def draws(self, asked: Request) -> Iterator[Draw]:
        """Yield the draws in order of address."""

    def answers(
        self, sources: Sequence[Sequence[str]], each: int, watch: Callable[[int], None] | None
    ) -> list[list[str]]:
        """Return the target of each source, empty where there is none."""


class Architecture(ABC):
    """An entry of the registry. Its last four methods are for networks, whose checkpoints are `.pt` files."""

    tag: ClassVar[str]
    abilities: ClassVar[Mapping[str, frozenset[str]]]  # of each kind, "generator" and "predictor", that there is
    exporter: ClassVar[str | None] = None  # a module with a function `write_bundle`; None if it has no bundle
    memory: ClassVar[str] = ""  # the settings that say how much memory a network needs

    @abstractmethod
    def open_saved(self, saved: Any, path: Path, runtime: Runtime) -> "GeneratorModel | Predictor":
        """Open what training wrote to `path`, as `read_saved` returned it."""

    def open_bundle(self, bundle: "Bundle", runtime: Runtime) -> "GeneratorModel | Predictor":
        """Open what `exporter` wrote."""
        raise NotImplementedError(self.tag)

    def runners(self, bundle: "Bundle", runtime: Runtime) -> tuple[Runners, list[str]]:
        """Return a bundle's runtimes on this machine, each to be opened, and a line for each that is missing."""
        raise NotImplementedError(self.tag)

    def configuration(self, values: dict[str, Any]) -> "BaseModel":
        """Return the network's configuration from JSON values; raises ValueError."""
        raise NotImplementedError(self.tag)

    def build(self, config: Any, vocabulary: int) -> "Trainable":
        """Return a network with new weights for a vocabulary of some size."""
        raise NotImplementedError(self.tag)

    def spares(self, config: Any) -> bool:  # noqa: ARG002
        """Return whether the vocabulary of such a network needs spare tokens, which stand for unknown ones."""
        return False

    def prepare(self, network: Any, vocabulary: Vocabulary) -> None:  # noqa: B027 - most have nothing to do
        """Tell a new network which tokens of its vocabulary it treats in another way."""


@cache
def architecture(tag: str) -> Architecture:
    """Return the entry of a tag.

    Raises:
        UserError: there is no such architecture.
    """
    if tag not in MODULES:
        raise UserError(f"architecture {tag!r:.40}: expected one of {', '.join(MODULES)}")
    found: Architecture = import_module(MODULES[tag]).ARCHITECTURE
    return found


def read_saved(path: Path) -> tuple[Architecture, str, Any]:
    """Return the architecture, the kind and the content of what training wrote, read but not opened.

    Raises:
        UserError: the file is missing, damaged or not ours, or needs torch.
    """
    if is_pretrained(path):
        return architecture("pretrained"), "predictor", path
    if path.suffix == ".grammar":
        from compgen.csl.grammar_file import GrammarFile

        return architecture("grammar"), "generator", GrammarFile.load(path)
    require_torch(f"{path}: a checkpoint needs torch (pip install 'compgen[train]'); a bundle does not")
    from compgen.trained.checkpoint import load_saved

    saved = load_saved(path)
    return architecture(saved.architecture), saved.kind, saved


def open_model(path: Path, ability: str, runtime: Runtime, identity: str | None = None) -> Any:
    """Return a `GeneratorModel` for the ability `draws`, a `Predictor` for `losses`.

    Raises:
        UserError: it cannot be used, or lacks the ability, or is a bundle of another `identity` than a given one; the
            message says why.
    """
    _check_runtime(path, runtime)
    with reading(path):
        by_training, there = is_saved(path), path.exists()
    if by_training:
        if not there:
            raise UserError(f"{path}: no such file")
        identify = partial(_identity, path.absolute(), _state(path))
        entry, kind, saved = read_saved(path)
        _require(path, entry, kind, ability)
        return _told(entry.open_saved(saved, path, runtime), getattr(saved, "trained_on", {}), identify)
    from compgen.runtime.bundle import Bundle

    try:
        bundle = Bundle.load(path)
    except BundleError:
        _require_no_data(path)  # not before: it imports polars, which bundles do without
        raise
    if identity is not None:
        bundle.require_identity(identity)
    entry = architecture(bundle.manifest.architecture)
    _require(path, entry, bundle.manifest.kind, ability)
    if runtime.name == "torch":
        raise UserError(
            f"{path}: a bundle runs in onnx, native or torchscript; for --runtime torch give the checkpoint (.pt)"
        )
    opened = _told(entry.open_bundle(bundle, runtime), bundle.manifest.trained_on, lambda: bundle.identity)
    if isinstance(opened, Opened):
        opened.opening = bundle.path.absolute(), ability, runtime, bundle.identity
    return opened


def _told(opened: Any, trained_on: Mapping[str, Any], identify: Callable[[], str]) -> Any:
    """Return the opened model; a predictor is told what it was trained on, and how its identity is computed."""
    if hasattr(opened, "trained_on"):
        opened.trained_on, opened.identify = trained_on, identify
    return opened


def _state(path: Path) -> State:
    """Return what shows that a file, or a file of a folder, was changed, without reading it."""
    files = sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]
    found = ((one.name, one.stat()) for one in files)
    return [(name, status.st_size, status.st_mtime_ns) for name, status in found]


def _identity(path: Path, opened: State) -> str:
    """Return the SHA-256 of what training wrote: of a file, or of the names and SHA-256s of a folder's files.

    Raises:
        UserError: it is gone, or was changed after it was opened.
    """
    try:
        now = _state(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be read again, to tell which model it was: {error.strerror}") from error
    if now != opened:
        raise UserError(f"{path}: found another model than was opened there: open it again")
    if path.is_file():
        return sha256(path)
    sums = (f"{sha256(one)}  {one.name}\n" for one in sorted(path.iterdir()) if one.is_file())
    return hashlib.sha256("".join(sums).encode()).hexdigest()


def identity(path: Path) -> str:
    """Return the SHA-256 of what training wrote, or of a pretrained model's folder, as `Predictor.identity`."""
    return _identity(path, _state(path))


def is_pretrained(path: Path) -> bool:
    """Return whether a path is the folder of a pretrained model: one where transformers keeps its configuration."""
    return (path / "config.json").is_file()


def is_saved(path: Path) -> bool:
    """Return whether a path is what training writes, by its name; else it is a bundle's."""
    return path.suffix in (".pt", ".grammar") or is_pretrained(path)


def require_torch(message: str) -> None:
    """Raise UserError with this message if torch is not installed."""
    try:
        import torch  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError(message) from error


def torch_device() -> str:
    """Return the device that torch runs on."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def _check_runtime(path: Path, runtime: Runtime) -> None:
    if runtime.trust_code and runtime.name != "torchscript":
        raise UserError("--trust-code (trust_code) is for the runtime torchscript alone: leave it out")
    if runtime.name not in (None, *RUNTIMES):
        raise UserError(f"no runtime {runtime.name!r}: expected one of {', '.join(RUNTIMES)}")
    if runtime.provider != "auto" and runtime.name == "native":
        raise UserError(f"{path}: --provider is for bundles in ONNX Runtime; the C++ runner runs on the CPU")
    if runtime.provider != "auto" and (path.suffix == ".pt" or runtime.name == "torchscript"):
        raise UserError(f"{path}: --provider is for bundles in ONNX Runtime; torch finds its device by itself")
    if path.suffix == ".pt" and runtime.name not in (None, "torch"):
        raise UserError(f"{path}: a checkpoint runs in torch; export it first for --runtime {runtime.name}")


def _require(path: Path, entry: Architecture, kind: str, ability: str) -> None:
    if ability in entry.abilities.get(kind, ()):
        return
    wanted, makers = "predictor", "`cgen train seq2seq` makes one, and with --direct a generator answers by itself"
    makers += " (in Python Generator.load opens it)"
    if ability == DRAWS:
        wanted, makers = "generator", "`cgen train recombine` and `cgen train csl` make generators"
        makers += "; a predictor answers `cgen predict` and `cgen evaluate`, without --direct"
    raise UserError(f"{path}: holds a {kind}, expected a {wanted}; {makers}")


def _require_no_data(path: Path) -> None:
    from compgen.data.catalog import names

    if str(path) in names():
        raise UserError(f"{path}: a data set, expected a model: a bundle's folder, a checkpoint (.pt) or a .grammar")
