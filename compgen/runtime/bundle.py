"""The bundle: a folder that holds an exported model and everything that running it needs, torch excepted.

A bundle may come from a stranger. So nothing in it is code of ours to run: the manifest is checked field by field,
every file against its size and SHA-256, the pool against the vocabulary, and no name may lead out of the folder.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from compgen.data.vocabulary import EOS_ID
from compgen.errors import BundleError
from compgen.files import sha256
from compgen.runtime.backend import Latent, Shape, warm
from compgen.runtime.pool import PrototypePool

FORMAT: Literal["compgen-bundle"] = "compgen-bundle"
VERSION: Literal[1] = 1
MANIFEST, VOCABULARY, POOL, CARD = "manifest.json", "vocabulary.json", "pool.safetensors", "README.md"
ENCODER, START, STEP, SAMPLER, SCRIPT = "encoder.onnx", "start.onnx", "step.onnx", "sampler.onnx", "sampler.ts"
RULES, TARGET_RULES, SCORES = "rules.txt", "targets.cfg", "scores.safetensors"  # of a grammar
STEP_WEIGHTS = "step.safetensors"  # for the C++ runner, which has a decoding step of its own
PACKAGE = Path(__file__).parents[1]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class FileEntry(_Strict):
    """What a file of the bundle must be."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(ge=0, description="bytes")


class Tensor(_Strict):
    """An input or output of a graph; a letter in the shape is a size that the caller chooses."""

    name: str
    dtype: str
    shape: list[int | str]


class Graph(_Strict):
    """One ONNX file's interface."""

    inputs: list[Tensor]
    outputs: list[Tensor]


class LatentPlace(_Strict):
    """The latent edit vector, which is drawn a priori and stands in `fed` before the first step."""

    start: int = Field(ge=0)
    size: int = Field(ge=2)
    norm: float = Field(gt=0, description="its largest")


class State(_Strict):
    """What the decoder's state looks like."""

    hidden: int = Field(ge=1)
    output: int = Field(ge=1, description="size of `fed`, what a step hands to the next beside hidden and cell")
    dtype: Literal["float32", "float64"]
    latent: LatentPlace | None = Field(None, description="null in a network without latent vectors")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.latent is not None and self.latent.start + self.latent.size > self.output:
            raise ValueError(f"a latent vector beyond the {self.output} numbers of fed")
        return self

    @property
    def of_decoder(self) -> Shape:
        """The same for the runtime."""
        place = self.latent
        latent = None if place is None else Latent(place.start, place.size, place.norm)
        return Shape(self.hidden, self.output, self.dtype, latent)


class Parity(_Strict):
    """How the sequences of one runtime compare with those of PyTorch in float64, address by address.

    For an approximate bundle, with its own: those that its step gives in a batch of 256 on one thread.

    `explained` counts the differing sequences whose first difference is a draw so near to a boundary between two
    tokens that rounding moves it; `largest` is the greatest distance among the differing ones.
    """

    runtime: str
    dtype: Literal["float32", "float64"]
    batch: int
    samples: int
    tokens: int
    differing: int
    explained: int
    largest: float


class Approximation(_Strict):
    """How far a bundle that is approximate by intent is from its checkpoint, measured in float32.

    `same` of `samples` addressed samples are the checkpoint's, token for token. `kl` is the mean divergence of the
    bundle's next-token distribution from the checkpoint's, in nats a token, over the checkpoint's samples.
    """

    weights: Literal["int8"]
    samples: int
    same: int
    tokens: int
    kl: float

    def sentence(self) -> str:
        """The measurement in words."""
        return (
            f"approximate ({self.weights}): {self.same:,} of {self.samples:,} samples are the checkpoint's "
            f"({self.same / self.samples:.1%}); next-token distributions diverge by {self.kl:.1e} nats a token"
        )


class Manifest(_Strict):
    """`manifest.json`."""

    format: Literal["compgen-bundle"] = FORMAT
    version: Literal[1] = VERSION
    compgen: str = Field(description="version of the program that wrote the bundle")
    kind: Literal["generator", "predictor"]
    trained_on: dict[str, Any]
    config: dict[str, Any]
    prototypes: int = Field(ge=0, description="sequences a row attends to; the source is one")
    max_length: int = Field(ge=1, description="most tokens to decode, the end symbol included")
    sampling: dict[str, Any] = Field(description="defaults for sampling: temperature of the source and target half")
    architecture: Literal["recurrent", "transformer", "grammar"] = "recurrent"
    shape: State | None = Field(None, description="of a recurrent network's decoder; null in others")
    graphs: dict[str, Graph]
    files: dict[str, FileEntry]
    parity: list[Parity]
    approximation: Approximation | None = Field(None, description="absent where the bundle is its checkpoint's equal")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if (self.shape is None) == (self.architecture == "recurrent"):
            raise ValueError(f"a {self.architecture} {'without a' if self.shape is None else 'with a'} shape")
        if (self.architecture, self.kind) in (("transformer", "generator"), ("grammar", "predictor")):
            raise ValueError(f"a {self.kind} with a {self.architecture}")
        return self

    @property
    def against(self) -> str:
        """What the bundle's sequences were compared with."""
        if self.approximation is not None:
            return "this bundle's own, by its step in batches of 256"
        return "the checkpoint's" if self.architecture == "grammar" else "PyTorch in float64"

    @property
    def decoder(self) -> Shape:
        """What a recurrent network's decoder state looks like, for the runtime."""
        assert self.shape is not None, "only a recurrent network has such a state"
        return self.shape.of_decoder


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files were checked."""

    path: Path
    manifest: Manifest
    vocabulary: list[str]
    pool: PrototypePool | None

    @property
    def identity(self) -> str:
        """The manifest's SHA-256; the manifest holds those of all other files."""
        return sha256(self.path / MANIFEST)

    @classmethod
    def load(cls, path: str | Path) -> "Bundle":
        """Read and check a bundle: a folder, or the name of one that comes with the product.

        Raises:
            BundleError: the folder is missing, not a bundle, of another version, cut short or altered.
        """
        folder = resolve(Path(path))
        manifest = _manifest(folder)
        for name in _required(manifest):
            if name not in manifest.files:
                raise BundleError(f"{folder / MANIFEST}: lists no {name}, expected in a {manifest.kind}'s bundle")
        for name, entry in manifest.files.items():
            _check(folder, name, entry)
        vocabulary = _vocabulary(folder / VOCABULARY)
        pool = None
        if manifest.kind == "generator":
            pool = _pool(folder / POOL, manifest.prototypes, len(vocabulary))
            _temperature(folder / MANIFEST, manifest.sampling)
        return cls(folder, manifest, vocabulary, pool)


def resolve(path: Path) -> Path:
    """The folder that `path` names: itself, or a bundle of that name among those that come with the product."""
    if path.is_dir():
        return path
    if path.exists():
        raise BundleError(f"{path}: a file, expected a bundle's folder")
    homes = (PACKAGE / "exported", PACKAGE.parent / "exported")
    for home in homes:
        named = path.name and path.parent in (Path(), Path("exported"))
        if named and (home / path.name / MANIFEST).is_file():
            return home / path.name
    shipped = sorted({entry.parent.name for home in homes for entry in home.glob(f"*/{MANIFEST}")})
    raise BundleError(f"{path}: no such bundle; those that come with compgen: {', '.join(shipped) or 'none'}")


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    try:
        content = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        raise BundleError(f"{folder}: not a bundle: it has no {MANIFEST}") from error
    except (ValueError, RecursionError, OSError) as error:
        raise BundleError(f"{path}: cannot be read: {_line(error)}") from error
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise BundleError(f"{path}: format {found!r}, expected {FORMAT!r}")
    if content.get("version") != VERSION:
        raise BundleError(f"{path}: bundle version {content.get('version')!r}, this compgen reads {VERSION}")
    try:
        return Manifest.model_validate(content)
    except ValidationError as error:
        problem = error.errors()[0]
        place = ".".join(str(part) for part in problem["loc"])
        said = f"{place}: {problem['msg']}, found {problem['input']!r:.80}" if place else problem["msg"]
        raise BundleError(f"{path}: {said}") from error


def _required(manifest: Manifest) -> list[str]:
    if manifest.architecture == "transformer":
        return [VOCABULARY, ENCODER, STEP]
    if manifest.architecture == "grammar":
        return [VOCABULARY, POOL, RULES, TARGET_RULES, SCORES]
    always = [VOCABULARY, STEP, SAMPLER, *manifest.graphs]
    return [*always, *([ENCODER] if manifest.prototypes else []), *([POOL] if manifest.kind == "generator" else [])]


def _check(folder: Path, name: str, entry: FileEntry) -> None:
    if name in {"", ".", ".."} or "/" in name or "\\" in name or "\0" in name:
        raise BundleError(f"{folder / MANIFEST}: file name {name!r}, expected a plain name inside the bundle")
    path = folder / name
    if path.is_symlink() or not path.is_file():
        raise BundleError(f"{path}: missing, expected a file of {entry.size:,} bytes")
    size = path.stat().st_size
    if size != entry.size:
        raise BundleError(f"{path}: {size:,} bytes, expected {entry.size:,}: cut short or altered")
    found = sha256(path)
    if found != entry.sha256:
        raise BundleError(f"{path}: altered: SHA-256 {found[:16]}…, expected {entry.sha256[:16]}…")


def _vocabulary(path: Path) -> list[str]:
    try:
        tokens = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise BundleError(f"{path}: cannot be read: {_line(error)}") from error
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BundleError(f"{path}: expected a list of strings")
    return tokens


def arrays_of(path: Path) -> dict[str, "np.ndarray[Any, Any]"]:
    """The arrays in a file, by name.

    Raises:
        BundleError: it holds none.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return load_file(path)
    except SafetensorError as error:
        raise BundleError(f"{path}: not a file of arrays: {_line(error)}") from error


def _pool(path: Path, prototypes: int, vocabulary: int) -> PrototypePool:
    try:
        arrays = arrays_of(path)
        if arrays["tokens"].dtype in (np.uint8, np.uint16):  # as small as the vocabulary allows
            arrays["tokens"] = arrays["tokens"].astype(np.int32)
        pool = PrototypePool(**arrays)
    except (TypeError, KeyError) as error:
        raise BundleError(f"{path}: not a prototype pool: {_line(error)}") from error
    if problem := _pool_problem(pool, prototypes, vocabulary):
        raise BundleError(f"{path}: {problem}")
    return pool


def _pool_problem(pool: PrototypePool, prototypes: int, vocabulary: int) -> str:
    """What would make sampling read outside an array; empty when nothing does."""
    wanted = {"tokens": (2, "int32"), "members": (1, "int32"), "starts": (2, "int64"), "counts": (2, "int64")}
    for name, (rank, dtype) in wanted.items():
        array = getattr(pool, name)
        if (array.ndim, str(array.dtype)) != (rank, dtype):
            return f"{name} is {array.dtype} of rank {array.ndim}, expected {dtype} of rank {rank}"
    if pool.starts.shape != pool.counts.shape or pool.prototypes != prototypes:
        return f"starts {pool.starts.shape} and counts {pool.counts.shape}, expected {prototypes} prototypes in both"
    if pool.too_large:
        return f"more than 2^53 tuples of {prototypes} prototypes"
    if _outside(pool.tokens, vocabulary):
        return f"token ids outside the vocabulary of {vocabulary}"
    if _outside(pool.members, len(pool.tokens)):
        return f"members outside the {len(pool.tokens)} sequences"
    groups_fit = (pool.starts >= 0) & (pool.counts >= 1) & (pool.starts <= len(pool.members) - pool.counts)
    if prototypes and not (len(pool.starts) and groups_fit.all()):
        return f"groups outside the {len(pool.members)} members"
    if not (pool.tokens == EOS_ID).any(axis=1).all():
        return "a sequence without its end symbol"
    if prototypes and (pool.tokens[pool.members, :1] == 0).any():
        return "a prototype without tokens"
    return ""


def _outside(ids: "np.ndarray[Any, Any]", size: int) -> bool:
    return bool(ids.size and (ids.min() < 0 or ids.max() >= size))


def _temperature(path: Path, sampling: dict[str, Any]) -> None:
    found = sampling.get("temperature")
    pair = isinstance(found, list) and len(found) == 2
    if not pair or not all(isinstance(value, int | float) for value in found or []):
        raise BundleError(f"{path}: sampling.temperature {found!r:.60}, expected two numbers")
    try:
        for value in found or []:
            warm(value)
    except ValueError as error:
        raise BundleError(f"{path}: sampling.{error}") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:160]
