"""From a bundle to one whose decoding step is approximate: faster, another sampler, and measured for how much another.

What stays is that a sample is a function of its address: samples must be the same in any batch, with any number of
threads, and from the step as from the whole loop.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from safetensors.numpy import save

from compgen.data.padding import padded
from compgen.errors import BundleError
from compgen.export.assemble import HALVES, seal
from compgen.export.int8 import activations, in_integers, probed, quantised
from compgen.export.onnx_graphs import save_graphs
from compgen.export.onnx_sampler import sampler
from compgen.export.step_weights import own_step, step_weights
from compgen.export.verify import Runner, Task, Written, judge, one_thread, require, task
from compgen.models.backend import TorchBackend
from compgen.progress import Progress
from compgen.runtime import device
from compgen.runtime.backend import Backend, Ints, StepInputs, StepOutputs
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import SAMPLER, SCRIPT, STEP, STEP_WEIGHTS, Approximation, Parity
from compgen.runtime.onnx_backend import OnnxBackend, OnnxLoop
from compgen.runtime.predict import advance, opening
from compgen.sampling.batching import draws
from compgen.training.checkpoint import Checkpoint

CALIBRATION, CALIBRATION_SEED = 256, 8  # samples that the ranges of activations are taken from, and not measured on


def approximate(checkpoint: Checkpoint, bundle: Bundle) -> Bundle:
    """Put the large products of a bundle's step and sampler in 8-bit integers, in place, and drop its TorchScript.

    Args:
        checkpoint: what the bundle was assembled from.
        bundle: from `assemble`, in float32.

    Returns:
        The bundle as it is now; its manifest still says nothing of parity.

    Raises:
        BundleError: a predictor, another dtype, a network with no product large enough, or one that looks at what it
            writes or copies by a gate.
    """
    if checkpoint.kind != "generator":
        raise BundleError(f"int8 is for generators, which are sampled by the million; this is a {checkpoint.kind}")
    if not own_step(checkpoint.recurrent):
        raise BundleError(
            "int8 is for networks that copy from prototypes alone, by one softmax (mixing = joint, own = 0)"
        )
    if bundle.manifest.decoder.dtype != "float32":
        raise BundleError(f"int8 is made from float32 weights, found {bundle.manifest.decoder.dtype}")
    models = {name: onnx.load(bundle.path / name) for name in bundle.manifest.graphs if name != SAMPLER}
    if not activations(models[STEP]):
        raise BundleError("no weight matrix of this network is large enough for int8 to be faster")
    ranges = _ranges(checkpoint, models[STEP])
    weights = in_integers(step_weights(checkpoint.recurrent), models[STEP], ranges)
    models[STEP] = quantised(models[STEP], ranges)
    models[SAMPLER] = sampler(models, checkpoint.recurrent, HALVES[checkpoint.kind])
    graphs = save_graphs(models, bundle.path)
    (bundle.path / STEP_WEIGHTS).write_bytes(save(weights))
    (bundle.path / SCRIPT).unlink()
    seal(bundle.path, bundle.manifest.model_copy(update={"graphs": graphs}))
    return Bundle.load(bundle.path)


def _ranges(checkpoint: Checkpoint, step: Any) -> dict[str, NDArray[np.float32]]:
    """The largest magnitude of each feature of each activation, over samples at the generator's own temperature."""
    assert checkpoint.pool is not None, "a generator has a pool"
    probe = _Probe(TorchBackend(checkpoint.recurrent), step)
    first, second = checkpoint.sampling["temperature"]
    with one_thread():
        for _ in draws(
            probe,
            checkpoint.pool,
            seed=CALIBRATION_SEED,
            start=0,
            stop=CALIBRATION,
            max_length=checkpoint.max_length,
            temperature=(float(first), float(second)),
        ):
            pass
    return probe.largest


class _Probe:
    """A backend that encodes by another and runs a step graph, whose activations it watches."""

    def __init__(self, encoder: TorchBackend, step: Any) -> None:
        self.encode, self.start, self.shape, self.loop = encoder.encode, encoder.start, encoder.shape, None
        self.name = encoder.name
        self.largest: dict[str, NDArray[np.float32]] = {}
        self._watched = activations(step)
        options = device.onnxruntime().SessionOptions()
        options.intra_op_num_threads = 1
        self._session = device.onnxruntime().InferenceSession(
            probed(step).SerializeToString(), options, providers=[device.CPU]
        )
        self._inputs = [tensor.name for tensor in self._session.get_inputs()]

    def step(self, inputs: StepInputs) -> StepOutputs:
        found = self._session.run(None, {name: getattr(inputs, name) for name in self._inputs})
        outputs, watched = StepOutputs(*found[: len(StepOutputs._fields)]), found[len(StepOutputs._fields) :]
        for name, values in zip(self._watched, watched, strict=True):
            largest = np.abs(values.reshape(-1, values.shape[-1])).max(axis=0)
            self.largest[name] = np.maximum(self.largest.get(name, largest), largest)
        return outputs


def verify_approximate(
    checkpoint: Checkpoint, bundle: Bundle, batches: Mapping[int, int], *, quiet: bool = False
) -> tuple[list[Parity], Approximation]:
    """Compare an approximate bundle with itself in all batches, and measure how far it is from its checkpoint.

    Args:
        checkpoint: what it was made from.
        bundle: from `approximate`.
        batches: rows decoded at once, and how many samples to draw so.
        quiet: without progress.

    Returns:
        What was compared, and the measured distance.

    Raises:
        BundleError: a sample depends on its batch, the number of threads, or on who runs the loop, without rounding as
            the reason, or too many do.
    """
    samples = max(batches.values())
    work, backend = task(checkpoint, samples), OnnxBackend(bundle, provider="cpu")
    rows: list[Parity] = []
    runners = _runners(work, bundle)
    with one_thread(), Progress("verify", len(runners) * len(batches) + 1, quiet=quiet) as progress:
        own = work.stepwise(backend, samples, 256)
        for name, runner in runners.items():
            for batch, count in batches.items():
                judged = judge(work, backend, own[:count], runner(count, batch))
                rows.append(Parity(runtime=name, dtype="float32", batch=batch, **judged))
                progress.update(len(rows), name)
        require(rows, "samples depend on what they are drawn with")
        exact = TorchBackend(checkpoint.recurrent)
        written = work.stepwise(exact, samples, 256)
        same = sum(one == other for one, other in zip(own, written, strict=True))
        tokens, nats = divergence(work, exact, backend, written)
        progress.update(len(rows) + 1, "torch")
    return rows, Approximation(weights="int8", samples=samples, same=same, tokens=tokens, kl=nats / tokens)


def _runners(work: Task, bundle: Bundle) -> dict[str, Runner]:
    one, two = OnnxBackend(bundle, 1, "cpu"), OnnxBackend(bundle, 2, "cpu")
    loop = OnnxLoop(bundle, 1, "cpu")
    return {
        "onnx": lambda count, batch: work.stepwise(one, count, batch),
        "onnx, 2 threads": lambda count, batch: work.stepwise(two, count, batch),
        "onnx loop": lambda count, batch: work.looped(loop, "float32", count, batch),
    }


def divergence(work: Task, exact: Backend, other: Backend, sequences: list[Written]) -> tuple[int, float]:
    """Tokens of the sequences, and the sum of the divergences of next-token distributions before each of them.

    The divergence is Kullback and Leibler's, sum_v p(v) log(p(v) / q(v)) in nats, of `other`'s distribution q from
    that of `exact`, both before bans and temperature and both made to write the given sequences.
    """
    tokens, nats = 0, 0.0
    for first in range(0, len(sequences), 256):
        rows = slice(first, first + 256)
        steps = (_forced(backend, work.memory_tokens[rows], work.half, sequences[rows]) for backend in (exact, other))
        for (running, p), (_, q) in zip(*steps, strict=True):
            tokens += int(running.sum())
            nats += float((np.exp(p) * (p - q))[running].sum())
    return tokens, nats


def _forced(
    backend: Backend, memory_tokens: Ints, half: int, sequences: list[Written]
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
    """At each step, which rows still have a token to write (B), and log-probabilities (B, V) of what may come."""
    state = opening(backend, memory_tokens, half)
    for token in padded(sequences).T:
        state, log_probs = advance(backend, state)
        yield token != 0, log_probs.astype(np.float64)
        state["token"] = token.copy()
