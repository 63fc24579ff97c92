"""`manifest.json`: the description of a bundle, and the rules by which it is accepted or refused.

A bundle may come from a stranger, so the manifest is read strictly, and every size has a limit. The models below are
the one place for fields and limits. The C++ runner reads them as JSON Schema (`manifest.schema.json`, which a test
holds equal to `schemas()`). Rules that no schema can say are in `Manifest.problem` here and in
`cpp_runner/src/bundle.cpp` there, and a test gives both programs the same bundles.
"""

import json
import math
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from compgen.runtime.backend import Latent, Shape, warm

FORMAT: Literal["compgen-bundle"] = "compgen-bundle"
VERSION = 1
MANIFEST, VOCABULARY, POOL, CARD = "manifest.json", "vocabulary.json", "pool.safetensors", "README.md"
ENCODER, START, STEP, SAMPLER, SCRIPT = "encoder.onnx", "start.onnx", "step.onnx", "sampler.onnx", "sampler.ts"
RULES, TARGET_RULES, SCORES = "rules.txt", "targets.cfg", "scores.safetensors"  # of a grammar
STEP_WEIGHTS = "step.safetensors"  # for the C++ runner, which has a decoding step of its own
GOLDEN = "golden.json"  # draws, or answers, that every runtime must give: see `runtime.golden`

DEPTH = 64  # lists and objects within one another, in JSON
Size = Annotated[int, Field(ge=1, le=2**16)]
Handed = Annotated[int, Field(ge=1, le=2**17)]  # one vector holds what is kept of all the tokens attended to
Count = Annotated[int, Field(ge=0, le=2**53)]


class Strict(BaseModel):
    """Neither unknown fields nor numbers in place of other types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class FileEntry(Strict):
    """What a file of the bundle must be."""

    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    size: int = Field(ge=0, le=2**33, description="bytes")


class Tensor(Strict):
    """An input or output of a graph; a letter in the shape is a size that the caller chooses."""

    name: str
    dtype: Literal["int64", "float32", "float64"]
    shape: list[Handed | str] = Field(max_length=8)


class Graph(Strict):
    """One ONNX file's interface."""

    inputs: list[Tensor]
    outputs: list[Tensor]


class LatentPlace(Strict):
    """The latent edit vector, which is drawn a priori and stands in `fed` before the first step."""

    start: int = Field(ge=0, le=2**16)
    size: int = Field(ge=2, le=2**16)
    norm: float = Field(gt=0, le=1e6, description="its largest")


class State(Strict):
    """What the decoder's state looks like."""

    hidden: Size
    output: Handed = Field(description="size of `fed`, what a step hands to the next beside hidden and cell")
    dtype: Literal["float32", "float64"]
    latent: LatentPlace | None = Field(None, description="null in a network without latent vectors")


class Parity(Strict):
    """How the sequences of one runtime compare with those of PyTorch in float64, address by address.

    For an approximate bundle, with its own: those that its step gives in a batch of 256 on one thread.

    `explained` counts the differing sequences whose first difference is a draw so near to a boundary between two
    tokens that rounding moves it; `largest` is the greatest distance among the differing ones.
    """

    runtime: str
    dtype: Literal["float32", "float64"]
    batch: Count
    samples: Count
    tokens: Count
    differing: Count
    explained: Count
    largest: float


class Approximation(Strict):
    """How far a bundle that is approximate by intent is from its checkpoint, measured in float32.

    `same` of `samples` addressed samples are the checkpoint's, token for token. `kl` is the mean divergence of the
    bundle's next-token distribution from the checkpoint's, in nats a token, over the checkpoint's samples.
    """

    weights: Literal["int8"]
    samples: Annotated[int, Field(ge=1, le=2**53)]
    same: Count
    tokens: Count
    kl: float

    def sentence(self, kind: str) -> str:
        """Return the measurement in words; `kind` is the manifest's."""
        compared = "samples" if kind == "generator" else "answers to made-up sources"
        return (
            f"approximate ({self.weights}): {self.same:,} of {self.samples:,} {compared} are the checkpoint's "
            f"({self.same / self.samples:.1%}); next-token distributions diverge by {self.kl:.1e} nats a token"
        )


class RecurrentConfig(BaseModel):
    """What the C++ runner's own step reads of a recurrent network's configuration, `config.network`."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    feed: bool
    copying: bool
    activation: Literal["tanh", "linear"]
    positions: int = Field(ge=0, le=2**16)


class TransformerSizes(BaseModel):
    """What the C++ runner's own step reads of a Transformer's configuration, `config.network`."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    layers: int = Field(ge=1, le=64)
    heads: int = Field(ge=1, le=2**16)
    size: int = Field(ge=2, le=2**16)
    inner: int = Field(ge=1, le=2**16)
    relative: int = Field(ge=0, le=2**16)

    @model_validator(mode="after")
    def _heads_fit(self) -> Self:
        if self.size % 2 or self.size % self.heads:
            raise ValueError(f"a size of {self.size} and {self.heads} heads, expected an even multiple")
        return self


DEEPEST = 1000  # levels of a derivation
LONGEST_SIDE = 2**15 - 1  # tokens: two sides and two symbols are a sample's 2^16; they may double with each level
MOST_UNITS = 10  # unit rules on top of each other


class GrammarSettings(Strict):
    """How pairs of a grammar are drawn and sources parsed: what `sampling` is for a grammar."""

    model_config = ConfigDict(allow_inf_nan=False)

    temperature: list[Annotated[float, Field(gt=0)]] = Field(min_length=2, max_length=2)
    least: int = Field(ge=0, le=DEEPEST)
    most: int = Field(ge=0, le=DEEPEST)
    longest: int = Field(ge=1, le=LONGEST_SIDE)
    bias: float
    biased: int = Field(ge=-(2**53), le=2**53)
    unit_limit: int = Field(ge=0, le=MOST_UNITS)
    copying: bool

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.temperature[0] != self.temperature[1]:
            raise ValueError("two temperatures, expected twice the same")
        if self.least > self.most:
            raise ValueError(f"depth: found at least {self.least} and at most {self.most}, expected least <= most")
        return self


class Manifest(Strict):
    """`manifest.json`."""

    format: Literal["compgen-bundle"] = FORMAT
    version: Annotated[int, Field(ge=VERSION, le=VERSION)] = VERSION  # not a Literal, for which true is 1
    compgen: str = Field(description="version of the program that wrote the bundle")
    kind: Literal["generator", "predictor"]
    trained_on: dict[str, Any]
    config: dict[str, Any]
    prototypes: int = Field(ge=0, le=64, description="sequences a row attends to; the source is one")
    max_length: Size = Field(description="most tokens to decode, the end symbol included")
    sampling: dict[str, Any] = Field(description="defaults for sampling: temperature of the source and target half")
    architecture: Literal["recurrent", "transformer", "grammar"] = "recurrent"
    shape: State | None = Field(None, description="of a recurrent network's decoder; null in others")
    graphs: dict[str, Graph]
    files: dict[str, FileEntry]
    parity: list[Parity]
    approximation: Approximation | None = Field(None, description="absent where the bundle is its checkpoint's equal")

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if problem := self.problem():
            raise ValueError(problem)
        return self

    def problem(self) -> str:
        """Return what no single field can say, where fields contradict one another; empty if they do not."""
        if (self.shape is None) == (self.architecture == "recurrent"):
            return f"a {self.architecture} {'without a' if self.shape is None else 'with a'} shape"
        if self.kind not in self.layout.kinds:
            return f"a {self.kind} with a {self.architecture}"
        wanted = 1 if self.kind == "predictor" else self.prototypes if self.layout.encodes else 0
        if self.prototypes != wanted:
            return f"a {self.kind} with a {self.architecture} of {self.prototypes} memories, expected {wanted}"
        return "" if self.shape is None else self._recurrent_problem(self.shape.latent)

    def _recurrent_problem(self, latent: LatentPlace | None) -> str:
        if latent is not None and latent.start + latent.size > self.decoder.output:
            return f"a latent vector beyond the {self.decoder.output} numbers of fed"
        try:
            RecurrentConfig.model_validate(self.config.get("network"))
        except ValidationError as error:
            return first_problem(error, "config.network")
        return "" if self.kind == "predictor" else temperature_problem(self.sampling.get("temperature"))

    def graph_problem(self) -> str:
        """Return what is wrong with the lists of graphs and files, once files are known; empty if nothing is."""
        missing = [name for name in self.required if name not in self.files]
        if missing:
            return f"lists no {missing[0]}, expected in a {self.kind}'s bundle"
        for name in self.files:
            if not plain(name):
                return f"file name {name!r:.80}, expected a plain name inside the bundle"
        known = set(self.layout.graphs) - (set() if self.prototypes else {ENCODER})
        listed = {name for name in self.files if name.endswith(".onnx")}
        if odd := sorted((listed ^ set(self.graphs)) | (listed - known)):
            return f"graphs and files disagree on {odd[0]!r:.80}"
        if self.shape is not None and self.prototypes and not (self.attention and self.final_size):
            return f"graphs: {ENCODER} has no outputs keys and final of a fixed size"
        return ""

    @property
    def layout(self) -> "Layout":
        """What a bundle of this architecture holds."""
        return LAYOUTS[self.architecture]

    @property
    def required(self) -> list[str]:
        """Files without which such a bundle cannot be run."""
        encoder = [ENCODER] if self.prototypes and self.layout.encodes else []
        return [*self.layout.files, *self.graphs, *encoder, *([POOL] if self.kind == "generator" else [])]

    @property
    def against(self) -> str:
        """What the bundle's sequences were compared with."""
        if self.approximation is not None:
            return "this bundle's own, by its step in batches of 256"
        return self.layout.against

    @property
    def decoder(self) -> Shape:
        """What a recurrent network's decoder state looks like, for the runtime."""
        assert self.shape is not None, "only a recurrent network has such a state"
        place = self.shape.latent
        latent = None if place is None else Latent(place.start, place.size, place.norm)
        return Shape(self.shape.hidden, self.shape.output, self.shape.dtype, latent)

    @property
    def dtype(self) -> str:
        """The type of the numbers of a network that has no shape, as its step declares it."""
        tensors = self.graphs[STEP].outputs if STEP in self.graphs else []
        return next((tensor.dtype for tensor in tensors if tensor.name == "log_probs"), "float32")

    @property
    def attention(self) -> int:
        """A, the size of a prototype token's key, as the encoder declares it; 0 if it does not."""
        return self._last_size("keys")

    @property
    def final_size(self) -> int:
        """D, the size of an encoder's last state, as the encoder declares it; 0 if it does not."""
        return self._last_size("final")

    def _last_size(self, output: str) -> int:
        tensors = self.graphs[ENCODER].outputs if ENCODER in self.graphs else []
        shape: list[int | str] = next((tensor.shape for tensor in tensors if tensor.name == output), [])
        return shape[-1] if shape and isinstance(shape[-1], int) else 0


class Layout(NamedTuple):
    """What the bundle of an architecture holds."""

    kinds: tuple[str, ...]
    files: tuple[str, ...]  # of every such bundle
    graphs: tuple[str, ...] = ()  # that it may have
    bounded: bool = True  # no sequence has more than `max_length` tokens
    against: str = "PyTorch in float64"  # what its sequences were compared with

    @property
    def encodes(self) -> bool:
        """Whether it reads memories, prototypes or a source, by an encoder."""
        return ENCODER in self.graphs


LAYOUTS = {
    "recurrent": Layout(("generator", "predictor"), (VOCABULARY, STEP, SAMPLER), (STEP, SAMPLER, START, ENCODER)),
    "transformer": Layout(("predictor",), (VOCABULARY, STEP), (STEP, ENCODER)),
    "grammar": Layout(("generator",), (VOCABULARY, RULES, TARGET_RULES, SCORES), (), False, "the checkpoint's"),
}


def plain(name: str) -> bool:
    """Whether a name can only be that of a file in the bundle's own folder."""
    return 0 < len(name) <= 100 and name[0] != "." and all(c.isascii() and (c.isalnum() or c in "._-") for c in name)


def temperature_problem(found: object) -> str:
    """Return why a generator's default temperature cannot be used; empty if it can."""
    pair = found if isinstance(found, list) and len(found) == 2 else []
    if not pair or any(isinstance(value, bool) or not isinstance(value, int | float) for value in pair):
        return f"sampling.temperature {found!r:.60}, expected two numbers"
    try:
        for value in pair:
            warm(value)
    except ValueError as error:
        return f"sampling.{error}"
    return ""


def first_problem(error: ValidationError, place: str = "") -> str:
    """Return the first error of a validation, in one line; `place` is where the value stands, if not by itself.

    The C++ runner has the same words (`cpp_runner/src/schema.cpp`).
    """
    problem = error.errors()[0]
    place = ".".join([*([place] if place else []), *map(str, problem["loc"])])
    message = problem["msg"].removeprefix("Value error, ")
    if place and problem["type"] not in ("missing", "value_error"):  # which say what was found, if anything was
        message += f", found {problem['input']!r:.80}"
    return f"{place}: {message}" if place else message


def strict_json(data: bytes) -> Any:
    """Return the value of a JSON text: UTF-8 without a byte order mark, finite numbers, no surrogates, DEPTH at most.

    Raises:
        ValueError: it is something else.
    """
    text = data.decode("utf-8")
    if text.startswith("\ufeff"):
        raise ValueError("begins with a byte order mark")
    try:
        value = json.loads(text, parse_constant=_no_constant, parse_float=_finite, parse_int=_whole)
    except RecursionError as error:
        raise ValueError(f"nested more than {DEPTH} deep") from error
    _require_shallow(value, DEPTH)
    return value


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text:.20} is too large")
    return number


def _whole(text: str) -> int:
    _finite(text)  # beyond any float, other readers refuse it
    return int(text)


def _require_shallow(value: object, left: int) -> None:
    if isinstance(value, str):
        value.encode("utf-8")  # a lone surrogate, which \ud800 may write, is an error of this kind
    elif isinstance(value, list | dict):
        if not left:
            raise ValueError(f"nested more than {DEPTH} deep")
        for part in value:
            _require_shallow(part, left - 1)
        for part in value.values() if isinstance(value, dict) else ():
            _require_shallow(part, left - 1)


def schemas() -> dict[str, Any]:
    """Return the models as JSON Schema, for programs in other languages: the content of `manifest.schema.json`."""
    from compgen.runtime.golden import Golden

    models: dict[str, type[BaseModel]] = {"manifest": Manifest, "recurrent": RecurrentConfig, "golden": Golden}
    models |= {"transformer": TransformerSizes, "grammar": GrammarSettings}
    return {name: model.model_json_schema() for name, model in models.items()}
