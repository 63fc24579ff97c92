"""Golden draws: what a bundle gave where it was made, so that its receiver can verify that it gives the same.

`golden.json` holds draws of a generator by address, or a predictor's answers to made-up sources. None is so near the
boundary between two tokens that another processor's rounding could move it, unless a model gives almost no others, like
one that has learned nothing: then the file holds the few that are farthest from a boundary.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated

from pydantic import Field, ValidationError

from compgen.errors import BundleError
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import GOLDEN, Strict, first_problem, strict_json

SPREAD = 16  # addresses from a stream's first draw to its last, at most, for each draw that it has
LONGEST = 64  # tokens of a source; exports have 12, and a Transformer's memory grows with the square of it
Id = Annotated[int, Field(ge=0, lt=2**31)]
Address = Annotated[int, Field(ge=0, le=2**61)]


class GoldenDraw(Strict):
    """A draw: its address, prototypes (rows of the pool), and what was written, the end symbol left out.

    `log_prob` is that of all tokens and the end symbol, before temperature.
    """

    index: Address
    prototypes: list[Id]
    tokens: list[Id]
    finished: bool = Field(description="false when the length limit came first")
    log_prob: float


class GoldenStream(Strict):
    """Draws of one seed at one temperature, in ascending order of address."""

    seed: int = Field(ge=0, lt=2**64)
    temperature: list[float] = Field(min_length=2, max_length=2)
    samples: list[GoldenDraw] = Field(min_length=1)


class GoldenAnswer(Strict):
    """What greedy decoding answers to a source, both without end symbols."""

    source: list[Id] = Field(min_length=1, max_length=LONGEST)
    target: list[Id]
    finished: bool
    log_prob: float


class Golden(Strict):
    """`golden.json`: streams of a generator, or answers of a predictor."""

    streams: list[GoldenStream] = Field([])
    answers: list[GoldenAnswer] = Field([])


def golden_of(bundle: Bundle) -> Golden:
    """Return the golden draws of a bundle; raises BundleError if it has none, or they cannot be its own."""
    path = bundle.path / GOLDEN
    if GOLDEN not in bundle.files:
        raise BundleError(f"{bundle.path}: holds no golden draws: export it again")
    try:
        golden = Golden.model_validate(strict_json(bundle.file(GOLDEN)))
    except ValidationError as error:
        raise BundleError(f"{path}: {first_problem(error)}") from error
    except ValueError as error:
        raise BundleError(f"{path}: cannot be read: {error}") from error
    if problem := _problem(bundle, golden):
        raise BundleError(f"{path}: {problem}")
    return golden


def _problem(bundle: Bundle, golden: Golden) -> str:
    """Return why draws cannot be this bundle's; empty if they can."""
    generates, length = bundle.manifest.kind == "generator", bundle.manifest.max_length
    if (bool(golden.streams), bool(golden.answers)) != (generates, not generates):
        return f"expected {'draws' if generates else 'answers'} of a {bundle.manifest.kind}"
    pool = 0 if bundle.pool is None else len(bundle.pool.tokens)
    samples = [sample for stream in golden.streams for sample in stream.samples]
    written = [sample.tokens for sample in samples] + [answer.target for answer in golden.answers]
    sources = [answer.source for answer in golden.answers]
    if _largest([*written, *sources]) >= len(bundle.vocabulary):
        return "a token outside the vocabulary"
    if max(map(len, written)) > length and bundle.manifest.layout.bounded:
        return f"a sequence of more than {length} tokens"
    problems = (_stream_problem(stream, max(pool, 1)) for stream in golden.streams)
    return next((problem for problem in problems if problem), "")


def _stream_problem(stream: GoldenStream, pool: int) -> str:
    addresses = [sample.index for sample in stream.samples]
    if _largest([sample.prototypes for sample in stream.samples]) >= pool:
        return "a prototype outside the pool"
    if any(one >= other for one, other in pairwise(addresses)):
        return "addresses that do not ascend"
    if addresses[-1] - addresses[0] > SPREAD * len(addresses):
        return "addresses too far apart to draw all between them"
    return ""


def _largest(lists: Sequence[Sequence[int]]) -> int:
    return max((max(numbers, default=0) for numbers in lists), default=0)
