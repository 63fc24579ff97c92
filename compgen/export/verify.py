"""The check that an export computes what its checkpoint does: the same samples, address by address, in every runtime.

The truth is PyTorch in float64. In float64 every runtime must give exactly its sequences. In float32 rounding moves a
draw that lies next to a boundary between two tokens: each sequence that differs is replayed in float64 up to its first
difference, and must turn out to be such a draw.
"""

import copy
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data import random
from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID, SEP_ID, SPECIALS, forbidden
from compgen.errors import BundleError
from compgen.export.assemble import HALVES, assemble
from compgen.models.attention import MASKED
from compgen.models.backend import TorchBackend
from compgen.processors import cores
from compgen.progress import Progress
from compgen.runtime.backend import Backend, Decoder, Ints, Loop, State
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import SCRIPT, Parity
from compgen.runtime.onnx_backend import OnnxBackend, OnnxLoop
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import Recurrent, advance, as_sources, greedy, opening
from compgen.runtime.torchscript_backend import TorchScriptBackend
from compgen.sampling import native as native_runner
from compgen.sampling.batching import draws
from compgen.trained.checkpoint import Checkpoint

SAMPLES = 1000
BATCH = 256  # of the truth
ROUNDED = 1000  # sequences in float32: rounding may change one in as many, and one in fewer
NEAR = 1e-5  # how far from a boundary, in probability, rounding may move a draw
SEED = 20_220  # any number does
LONGEST_SOURCE = 12
THREADS = 1  # of PyTorch: the work is in small pieces, on which several threads would mostly wait for one another

Written = tuple[int, ...]  # tokens, with the end symbol where the length limit did not come first
Runner = Callable[[int, int], list[Written]]  # the number of samples and the size of a batch to their sequences
Distance = Callable[[int, Written, Written], float]  # of a row, the sequence expected and the one found


@dataclass(frozen=True)
class Task:
    """The samples that all runtimes draw, or the sources that all answer.

    Attributes:
        memory_tokens: (N, n, T), the prototypes of each sample, or its source.
        uniforms: (N, L).
        temperature: of the source half and the target half.
        half: the half that decoding begins in.
        pool: of a generator, where the prototypes come from.
        seed: of the samples' addresses.
    """

    memory_tokens: Ints
    uniforms: NDArray[np.float32]
    temperature: tuple[float, float]
    half: int
    pool: PrototypePool | None
    seed: int

    @property
    def max_length(self) -> int:
        return int(self.uniforms.shape[1])

    def sources(self, count: int) -> list[list[int]]:
        """The first `count` sources, without end symbols."""
        return [[t for t in row if t not in (PAD_ID, EOS_ID)] for row in self.memory_tokens[:count, 0].tolist()]

    def stepwise(self, backend: Backend, count: int, batch: int) -> list[Written]:
        """The first `count` samples by the step: with continuous batching, or greedily for a predictor."""
        if self.pool is None:
            return self.answers(Recurrent(backend), count, batch)
        found = draws(
            backend,
            self.pool,
            seed=self.seed,
            start=0,
            stop=count,
            max_length=self.max_length,
            temperature=self.temperature,
            slots=batch,
        )
        return [self.ended(draw.tokens) for draw in found]

    def answers(self, decoder: Decoder, count: int, batch: int) -> list[Written]:
        """The greedy answers to the first `count` sources."""
        found = greedy(decoder, self.sources(count), self.max_length, batch)
        return [self.ended(tuple(tokens)) for tokens, _ in found]

    def looped(self, loop: Loop, dtype: str, count: int, batch: int) -> list[Written]:
        """The first `count` samples by a whole loop; padding or an end before the last token is a difference."""
        found: list[Written] = []
        for first in range(0, count, batch):
            rows = slice(first, min(first + batch, count))
            uniforms = np.ascontiguousarray(self.uniforms[rows].T.astype(dtype))  # (L, B)
            addresses = np.arange(rows.start, rows.stop, dtype=np.int64)
            latent = None if loop.latent is None else loop.latent.draw(self.seed, addresses).astype(dtype)
            tokens, _ = loop.sample(self.memory_tokens[rows], uniforms, np.array(self.temperature, dtype), latent)
            found += [tuple(np.trim_zeros(row, "b").tolist()) for row in tokens.T]
        return found

    def ended(self, tokens: Written) -> Written:
        """Tokens with the end symbol, unless the length limit came first."""
        return (*tokens, EOS_ID) if len(tokens) < self.max_length else tokens


def task(model: Checkpoint | Bundle, samples: int, seed: int = SEED) -> Task:
    """Make the task of a model: samples of a generator at its own temperature, or answers to made-up sources."""
    about = model.manifest if isinstance(model, Bundle) else model
    half, pool = HALVES[about.kind], model.pool
    if pool is None:
        rng = random.stream(random.Purpose.PROBES, SEED)
        memories = as_sources(made_up_sources(rng, samples, len(model.vocabulary)))[:, None]  # (N, 1, T)
        return Task(memories, np.zeros((samples, about.max_length), np.float32), (0.0, 0.0), half, None, seed)
    addresses = np.arange(samples, dtype=np.int64)
    first, second = about.sampling["temperature"]
    memories = pool.sequences(pool.choose(seed, addresses))
    uniforms = random.uniforms(seed, addresses, about.max_length)
    return Task(memories, uniforms, (float(first), float(second)), half, pool, seed)


def made_up_sources(rng: random.Stream, count: int, vocabulary: int) -> list[list[int]]:
    """Sources of 1 to LONGEST_SOURCE random tokens, none of them a special symbol."""
    lengths = rng.integers(1, LONGEST_SOURCE + 1, count)
    return [rng.integers(len(SPECIALS), vocabulary, length).tolist() for length in lengths]


def at_batches(samples: int = SAMPLES) -> dict[int, int]:
    """The number of samples to verify with by size of batch: fewer one at a time, which takes long."""
    return {1: max(1, samples // 10), 64: samples, 1000: samples}


def parity(
    checkpoint: Checkpoint | Path,
    batches: Mapping[int, int],
    *,
    script: bool = True,
    native: bool = False,
    quiet: bool = False,
) -> list[Parity]:
    """Export to a temporary folder, with TorchScript if asked for, and compare the runtimes as `verify` does."""
    loaded = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint.load(checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        return verify(loaded, assemble(loaded, Path(folder), script=script), batches, native=native, quiet=quiet)


def verify(
    checkpoint: Checkpoint, bundle: Bundle, batches: Mapping[int, int], *, native: bool = False, quiet: bool = False
) -> list[Parity]:
    """Compare the runtimes of a bundle, and of the same in float64, with PyTorch in float64.

    Args:
        checkpoint: what was exported, in float32.
        bundle: its export.
        batches: sizes of batches, and how many samples to draw in each.
        native: compare the C++ runner too.
        quiet: without progress.

    Raises:
        UserError: there is no C++ runner.
        BundleError: a sequence differs in float64, or in float32 without rounding as the reason, or too many differ.
    """
    samples = max(batches.values())
    work = task(checkpoint, samples)
    double = replace(checkpoint, network=copy.deepcopy(checkpoint.network).double())
    rows: list[Parity] = []
    script = SCRIPT in bundle.files
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress("verify", 2 * (3 + 2 * script + 2 * native) * len(batches), quiet=quiet) as progress,
    ):
        truth = TorchBackend(double.network, threads=THREADS)
        expected = work.stepwise(truth, samples, BATCH)
        for own, exported in ((double, assemble(double, Path(folder), script=script)), (checkpoint, bundle)):
            runners = _runners(work, own, exported, native)
            dtype = exported.manifest.decoder.dtype
            rows += compare(expected, dtype, runners, batches, partial(distance, work, truth), progress, len(rows))
    require(rows, "the export does not compute what its checkpoint does")
    return rows


def _runners(work: Task, checkpoint: Checkpoint, bundle: Bundle, native: bool) -> dict[str, Runner]:
    """The ways to run an export: by steps, and by a loop that is the whole sampler behind one call."""
    dtype = bundle.manifest.decoder.dtype
    found: dict[str, Runner] = {
        "torch": partial(work.stepwise, TorchBackend(checkpoint.network, threads=THREADS)),
        "onnx": partial(work.stepwise, OnnxBackend(bundle, provider="cpu")),
        "onnx loop": partial(work.looped, OnnxLoop(bundle, provider="cpu"), dtype),
    }
    if SCRIPT in bundle.files:
        script = TorchScriptBackend(bundle, THREADS, trust_code=True)
        found |= {
            "torchscript": partial(work.stepwise, script),
            "torchscript loop": partial(work.looped, script, dtype),
        }
    if native:
        found |= {
            "native": partial(in_cpp, work, bundle, {"--step": "own"}),
            "native graph": partial(in_cpp, work, bundle, {"--step": "graph"}),
        }
    return found


def in_cpp(work: Task, bundle: Bundle, options: Mapping[str, object], count: int, batch: int) -> list[Written]:
    """Samples of the C++ runner with some of its options."""
    given = {"--batch": batch} | dict(options)
    if work.pool is None:
        drawn = native_runner.raw_answers(bundle, work.sources(count), given)
    else:
        drawn = native_runner.raw(bundle, work.seed, 0, count, work.temperature, given)
    return [work.ended(draw.tokens) for draw in drawn]


def compare(
    expected: list[Written],
    dtype: str,
    runners: Mapping[str, Runner],
    batches: Mapping[int, int],
    distance: Distance,
    progress: Progress,
    done: int = 0,
) -> list[Parity]:
    """Compare the sequences of some runners, in batches of some sizes, with those expected of the truth.

    Each runner works on one thread, as many of them at a time as there are cores.
    """

    stopped = Event()

    def judged(name: str) -> list[Parity]:
        found = []
        for batch, count in batches.items():
            if stopped.is_set():
                break
            one = judge(expected[:count], runners[name](count, batch), distance)
            found.append(Parity.model_validate({"runtime": name, "dtype": dtype, "batch": batch} | one))
        return found

    rows: list[Parity] = []
    with ThreadPoolExecutor(cores()) as pool:
        try:
            for name, some in zip(runners, pool.map(judged, runners), strict=True):
                rows += some
                progress.update(done + len(rows), name)
        finally:  # after an interruption the pool waits for what runs: a batch of each thread
            stopped.set()
    return rows


def judge(expected: list[Written], found: list[Written], distance: Distance) -> dict[str, Any]:
    """The counts in `Parity` of sequences found, compared with those expected."""
    return counts(expected, found, lambda row: distance(row, expected[row], found[row]))


def counts(
    expected: list[Written], found: list[Written], distance: Callable[[int], float], near: float = NEAR
) -> dict[str, Any]:
    """The counts in `Parity`; `distance` says how far a row that differs is, and below `near` rounding explains it."""
    differing = [row for row, pair in enumerate(zip(expected, found, strict=True)) if pair[0] != pair[1]]
    distances = [distance(row) for row in differing]
    return {
        "samples": len(found),
        "tokens": sum(map(len, found)),
        "differing": len(differing),
        "explained": sum(value < near for value in distances),
        "largest": max(distances, default=0.0),
    }


def distance(work: Task, truth: Backend, row: int, expected: Written, found: Written) -> float:
    """By how much probability the first differing draw of a sample would have to move to become what was found.

    For a greedy choice, by how much the expected token is more probable than the found one. A sequence that goes on
    after its end, stops without one, or has a token that may not be there, is infinitely far.
    """
    at = first_difference(expected, found)
    if at is None or found[at] in forbidden(at):
        return float("inf")
    fed = truth.shape.fed(work.seed, np.array([row], dtype=np.int64))
    state = opening(truth, work.memory_tokens[row : row + 1], work.half, fed)
    log_probs = replay(partial(advance, truth), state, expected[:at])
    log_probs[list(forbidden(at))] = MASKED
    half = max(work.half, int(SEP_ID in expected[:at]))
    warmth, wrong, right = work.temperature[half], found[at], expected[at]
    if warmth == 0:
        return float(np.exp(log_probs[right]) - np.exp(log_probs[wrong]))
    weights = np.exp((log_probs - log_probs.max()) / warmth)
    cdf = np.cumsum(weights / weights.sum())
    draw = float(work.uniforms[row, at]) * cdf[-1]
    # Token k is drawn between cdf[k - 1] and cdf[k].
    return float(cdf[wrong - 1] - draw if wrong > right else draw - cdf[wrong])


def answer_distance(work: Task, truth: Decoder, row: int, expected: Written, found: Written) -> float:
    """By how much the first token found that differs is less probable than the one expected, in a greedy answer.

    An answer that goes on after its end, stops without one, or has a token that may not be there, is infinitely far.
    """
    at = first_difference(expected, found)
    if at is None or found[at] in forbidden(at):
        return float("inf")
    state = truth.open(work.memory_tokens[row : row + 1, 0])
    right, wrong = np.exp(replay(truth.advance, state, expected[:at])[[expected[at], found[at]]])
    return float(right - wrong)


def first_difference(expected: Written, found: Written) -> int | None:
    """The first place where two sequences hold different tokens; None if one only goes on after the other."""
    pairs = enumerate(zip(expected, found, strict=False))
    return next((place for place, (one, other) in pairs if one != other), None)


def replay(
    advance: Callable[[State], tuple[State, NDArray[np.floating[Any]]]], state: State, written: Written
) -> NDArray[np.float64]:
    """Log-probabilities (V) of the next token after those written, from the first state of one row."""
    log_probs: NDArray[np.floating[Any]] = np.empty((1, 0))
    for token in (BOS_ID, *written):
        state["token"] = np.full_like(state["token"], token)
        state, log_probs = advance(state)
    result: NDArray[np.float64] = log_probs[0].astype(np.float64)
    return result


def require(rows: list[Parity], otherwise: str) -> None:
    """Require that rounding explains every difference, and that few sequences differ: none in float64.

    Raises:
        BundleError: it is not so; the message begins with `otherwise`.
    """
    allowed = [0 if row.dtype == "float64" else -(-row.samples // ROUNDED) for row in rows]
    wrong = [row for row, most in zip(rows, allowed, strict=True) if not row.explained == row.differing <= most]
    if wrong:
        worst = max(wrong, key=lambda row: row.differing / row.samples)
        raise BundleError(
            f"{otherwise}: {worst.runtime}, {worst.dtype}, batch {worst.batch}: {worst.differing} of {worst.samples} "
            f"sequences differ, {worst.explained} of them by rounding; {len(wrong)} of {len(rows)} comparisons fail"
        )
