"""The check that an export computes what its checkpoint does: the same samples, address by address, in every runtime.

The truth is PyTorch in float64. In float64 every runtime must give exactly its sequences. In float32 rounding moves a
draw that lies next to a boundary between two tokens; each sequence that differs is replayed in float64 up to its
first difference, and must turn out to be such a draw.
"""

import copy
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from compgen.data import random
from compgen.data.vocabulary import EOS_ID, PAD_ID, UNK_ID, forbidden
from compgen.errors import BundleError
from compgen.export.assemble import HALVES, assemble
from compgen.models.backend import TorchBackend
from compgen.models.decoding import BANNED
from compgen.progress import Progress
from compgen.runtime.backend import Backend, Ints, Loop
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import Parity
from compgen.runtime.onnx_backend import OnnxBackend, OnnxLoop
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import Recurrent, as_sources, greedy, opening
from compgen.runtime.torchscript_backend import TorchScriptBackend
from compgen.sampling import native as native_runner
from compgen.sampling.batching import draws
from compgen.training.checkpoint import Checkpoint

SAMPLES = 1000
ROUNDED = 1000  # of so many sequences in float32 (or a part of them), rounding may change one
NEAR = 1e-5  # how far from a boundary, in probability, rounding may move a draw
SEED = 20_220  # any number does
LONGEST_SOURCE = 12

Written = tuple[int, ...]  # tokens, with the end symbol where the length limit did not come first
Runner = Callable[[int, int], list[Written]]  # how many samples, in batches of how many, to their sequences


@dataclass(frozen=True)
class Task:
    """What all runtimes are asked to do.

    Attributes:
        memory_tokens: (N, n, T), the prototypes of each sample, or its source.
        uniforms: (N, L).
        temperature: of the source half and the target half.
        half: the half that decoding begins in.
        pool: for generators, where the prototypes come from.
    """

    memory_tokens: Ints
    uniforms: NDArray[np.float32]
    temperature: tuple[float, float]
    half: int
    pool: PrototypePool | None

    @property
    def max_length(self) -> int:
        return int(self.uniforms.shape[1])

    def stepwise(self, backend: Backend, count: int, batch: int) -> list[Written]:
        """The first `count` samples by the step: with continuous batching, or greedily for a predictor."""
        if self.pool is None:
            sources = [[t for t in row if t not in (PAD_ID, EOS_ID)] for row in self.memory_tokens[:count, 0].tolist()]
            found = [tuple(tokens) for tokens, _ in greedy(Recurrent(backend), sources, self.max_length, batch)]
        else:
            found = [draw.tokens for draw in self._draws(backend, self.pool, count, batch)]
        return [self.ended(tokens) for tokens in found]

    def _draws(self, backend: Backend, pool: PrototypePool, count: int, batch: int) -> Any:
        return draws(
            backend,
            pool,
            seed=SEED,
            start=0,
            stop=count,
            max_length=self.max_length,
            temperature=self.temperature,
            slots=batch,
        )

    def looped(self, loop: Loop, dtype: str, count: int, batch: int) -> list[Written]:
        """The first `count` samples by a whole loop."""
        found: list[Written] = []
        for first in range(0, count, batch):
            rows = slice(first, min(first + batch, count))
            uniforms = np.ascontiguousarray(self.uniforms[rows].T.astype(dtype))
            addresses = np.arange(rows.start, rows.stop, dtype=np.int64)
            latent = None if loop.latent is None else loop.latent.draw(SEED, addresses).astype(dtype)
            warmth = np.array(self.temperature, dtype=dtype)
            tokens, _ = loop.sample(self.memory_tokens[rows], uniforms, warmth, latent)
            found.extend(self._trimmed(row) for row in tokens.T.tolist())
        return found

    def _trimmed(self, row: list[int]) -> Written:
        """A row of a loop without the padding at its end; padding or an end anywhere else stays and is a difference."""
        while row and row[-1] == PAD_ID:
            row.pop()
        return tuple(row)

    def ended(self, tokens: Written) -> Written:
        """Tokens with the end symbol, unless the length limit came first."""
        return (*tokens, EOS_ID) if len(tokens) < self.max_length else tokens


def task(checkpoint: Checkpoint, samples: int) -> Task:
    """Samples of a generator at its own temperature, or answers of a predictor to made-up sources."""
    half = HALVES[checkpoint.kind]
    addresses = np.arange(samples, dtype=np.int64)
    pool = checkpoint.pool
    if pool is None:
        memories = as_sources(made_up_sources(samples, len(checkpoint.vocabulary)))[:, None]
        return Task(memories, np.zeros((samples, checkpoint.max_length), np.float32), (0.0, 0.0), half, None)
    first, second = checkpoint.sampling["temperature"]
    memories = pool.tokens[pool.choose(SEED, addresses), : pool.longest].astype(np.int64)
    uniforms = random.uniforms(SEED, addresses, checkpoint.max_length)
    return Task(memories, uniforms, (float(first), float(second)), half, pool)


def made_up_sources(count: int, vocabulary: int) -> list[list[int]]:
    """Sources of random tokens, to compare answers by."""
    rng = random.stream(random.Purpose.PROBES, SEED)
    lengths = rng.integers(1, LONGEST_SOURCE + 1, count)
    return [rng.integers(UNK_ID + 1, vocabulary, length).tolist() for length in lengths]


def at_batches(samples: int = SAMPLES) -> dict[int, int]:
    """How many samples to verify with at which batch: fewer where they come one at a time, which takes long."""
    return {1: max(1, samples // 10), 64: samples, 1000: samples}


def parity(
    checkpoint: Checkpoint | Path, batches: Mapping[int, int], *, native: bool = False, quiet: bool = False
) -> list[Parity]:
    """Export a checkpoint to a folder that is thrown away, and compare all runtimes as `verify` does."""
    loaded = checkpoint if isinstance(checkpoint, Checkpoint) else Checkpoint.load(checkpoint)
    with tempfile.TemporaryDirectory() as folder:
        return verify(loaded, assemble(loaded, Path(folder)), batches, native=native, quiet=quiet)


def verify(
    checkpoint: Checkpoint,
    bundle: Bundle,
    batches: Mapping[int, int],
    *,
    native: bool = False,
    quiet: bool = False,
) -> list[Parity]:
    """Compare the runtimes of a bundle, and of the same in float64, with PyTorch in float64.

    Args:
        checkpoint: what was exported, in float32.
        bundle: what it became.
        batches: rows decoded at once, and how many samples to draw so.
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
    with ExitStack() as stack:
        stack.enter_context(one_thread())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        truth = TorchBackend(double.recurrent)
        progress = stack.enter_context(Progress("verify", 2 * (5 + 2 * native) * len(batches), quiet=quiet))
        expected = work.stepwise(truth, samples, 256)
        for own, exported in ((double, assemble(double, folder)), (checkpoint, bundle)):
            runners = _runners(work, own, exported) | (_native(work, exported) if native else {})
            for name, runner in runners.items():
                for batch, count in batches.items():
                    found = runner(count, batch)
                    judged = judge(work, truth, expected[:count], found)
                    about = {"runtime": name, "dtype": exported.manifest.decoder.dtype, "batch": batch}
                    rows.append(Parity.model_validate(about | judged))
                    progress.update(len(rows), name)
    require(rows, "the export does not compute what its checkpoint does")
    return rows


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: the work comes in small pieces, for which threads wait for one another more than they do."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _runners(work: Task, checkpoint: Checkpoint, bundle: Bundle) -> dict[str, Runner]:
    """The ways to run an export; a loop is the whole sampler behind one call."""
    dtype = bundle.manifest.decoder.dtype
    script = TorchScriptBackend(bundle, trust_code=True)
    stepped: dict[str, Backend] = {
        "torch": TorchBackend(checkpoint.recurrent),
        "torchscript": script,
        "onnx": OnnxBackend(bundle, provider="cpu"),
    }
    looped: dict[str, Loop] = {"torchscript loop": script, "onnx loop": OnnxLoop(bundle, provider="cpu")}

    def by_step(backend: Backend) -> Runner:
        return lambda count, batch: work.stepwise(backend, count, batch)

    def by_loop(loop: Loop) -> Runner:
        return lambda count, batch: work.looped(loop, dtype, count, batch)

    steps = {name: by_step(backend) for name, backend in stepped.items()}
    return steps | {name: by_loop(loop) for name, loop in looped.items()}


def _native(work: Task, bundle: Bundle) -> dict[str, Runner]:
    """The C++ runner, with its own decoding step and with the step's graph."""
    half = work.half

    def by(step: str) -> Runner:
        def run(count: int, batch: int) -> list[Written]:
            options: dict[str, object] = {"--step": step, "--batch": batch}
            if half:
                rows = work.memory_tokens[:count, 0].tolist()
                sources = [[t for t in row if t not in (PAD_ID, EOS_ID)] for row in rows]
                drawn = native_runner.raw_answers(bundle, sources, options)
            else:
                drawn = native_runner.raw(bundle, SEED, 0, count, work.temperature, options)
            return [work.ended(draw.tokens) for draw in drawn]

        return run

    return {"native": by("own"), "native graph": by("graph")}


def judge(work: Task, truth: Backend, expected: list[Written], found: list[Written]) -> dict[str, Any]:
    """Counts of what was compared and of what differs, with the distances of the differing draws."""
    return counts(expected, found, lambda row: distance(work, truth, row, expected[row], found[row]))


def counts(expected: list[Written], found: list[Written], distance: Callable[[int], float]) -> dict[str, Any]:
    """What `Parity` counts of sequences, given how far a differing one (by its row) is from what was expected."""
    differing = [row for row, pair in enumerate(zip(expected, found, strict=True)) if pair[0] != pair[1]]
    distances = [distance(row) for row in differing]
    return {
        "samples": len(found),
        "tokens": sum(map(len, found)),
        "differing": len(differing),
        "explained": sum(value < NEAR for value in distances),
        "largest": max(distances, default=0.0),
    }


def distance(work: Task, truth: Backend, row: int, expected: Written, found: Written) -> float:
    """By how much probability the first differing draw of a sample would have to move to become what was found.

    For a greedy choice, by how much the chosen token is more probable than the found one. A sequence that goes on
    after its end, or stops without one, is infinitely far.
    """
    shared = min(len(expected), len(found))
    at = next((place for place in range(shared) if expected[place] != found[place]), shared)
    if at == shared or found[at] in forbidden(at):
        return float("inf")
    log_probs, half = _replay(work, truth, row, at)
    never = list(forbidden(at))
    log_probs[never] = BANNED
    warmth, wrong, right = work.temperature[half], found[at], expected[at]
    if warmth == 0:
        return float(np.exp(log_probs[right]) - np.exp(log_probs[wrong]))
    weights = np.exp((log_probs - log_probs.max()) / warmth)
    cdf = np.cumsum(weights / weights.sum())
    draw = float(work.uniforms[row, at]) * cdf[-1]
    # Token k is drawn between cdf[k - 1] and cdf[k].
    return float(cdf[wrong - 1] - draw if wrong > right else draw - cdf[wrong])


def _replay(work: Task, truth: Backend, row: int, at: int) -> tuple[NDArray[np.float64], int]:
    """Log-probabilities (V) of step `at` of a sample, and the half that it is in."""
    fed = truth.shape.fed(SEED, np.array([row], dtype=np.int64))
    state = opening(truth, work.memory_tokens[row : row + 1], work.half, fed)
    dtype = truth.shape.dtype
    warmth = np.array(work.temperature, dtype=dtype)
    half, log_probs = state["half"], np.empty((1, 0))
    for step in range(at + 1):
        half = state["half"]
        inputs = {"uniform": work.uniforms[row : row + 1, step].astype(dtype), "temperature": warmth}
        token, now, following, hidden, cell, fed = truth.step(state | inputs)
        state |= {"token": token, "half": following, "hidden": hidden, "cell": cell, "fed": fed}
        state["position"] = state["position"] + 1
        log_probs = now.astype(np.float64)
    return log_probs[0], int(half[0])


def require(rows: list[Parity], otherwise: str) -> None:
    """Every difference must be one that rounding explains, and few may differ: none in float64.

    Raises:
        BundleError: it is not so; the message begins with `otherwise`.
    """
    allowed = [0 if row.dtype == "float64" else -(-row.samples // ROUNDED) for row in rows]
    wrong = [row for row, most in zip(rows, allowed, strict=True) if not row.explained == row.differing <= most]
    if wrong:
        worst = max(wrong, key=lambda row: row.differing / row.samples)
        raise BundleError(
            f"{otherwise}: {worst.runtime}, {worst.dtype}, batch "
            f"{worst.batch}: {worst.differing} of {worst.samples} sequences differ, {worst.explained} of them by "
            f"rounding; {len(wrong)} of {len(rows)} comparisons fail"
        )
