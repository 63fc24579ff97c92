"""Bundles whose decoding step has its large weight matrices in 8-bit integers: faster, and another sampler.

A sample stays a function of its address: it is the same in any batch, with any number of threads, and from the step as
from the whole loop. So the rows of a product must not see each other: each feature of an activation has one scale. It
is fixed at export from samples of the generator itself, as integer weights are (see `integers` and `rounding`).
Attention, softmax and the choice of the token stay in floating point.

Rounding to integers turns a difference in the last bit into one of a whole level, so floating point must not depend on
the batch either. It does in one place: ONNX Runtime multiplies a single row by another routine than many.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from safetensors.numpy import save

from compgen.data.padding import padded
from compgen.errors import BundleError
from compgen.export.assemble import HALVES, seal
from compgen.export.integers import Integers, constants, large_products, with_integers
from compgen.export.onnx_functions import OURS, int8_product, never_one_row
from compgen.export.onnx_graphs import save_graphs
from compgen.export.onnx_sampler import sampler
from compgen.export.rounding import Moments, rounded
from compgen.export.step_weights import own_step, step_weights
from compgen.export.verify import BATCH, THREADS, Distance, Runner, Task, Written, compare, distance, require, task
from compgen.models.backend import TorchBackend
from compgen.models.network import Network
from compgen.progress import Progress
from compgen.runtime import device
from compgen.runtime.backend import Backend, State, StepInputs, StepOutputs
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import SAMPLER, STEP, STEP_WEIGHTS, Approximation, Parity
from compgen.runtime.onnx_backend import OnnxBackend, OnnxLoop
from compgen.runtime.predict import advance, opening
from compgen.trained.checkpoint import Checkpoint

CALIBRATION, CALIBRATION_SEED = 256, 8  # samples of activations; the distance is measured on others
SPARED = 0.08  # of the multiplications of large products: so many may stay in float32, those nearest to the tokens

Products = dict[str, tuple[str, NDArray[np.float32]]]  # as `large_products` gives them
# For some rows of a model's memories: their first state, and a function from a state to the next one and to
# log-probabilities (B, V).
Opener = Callable[[slice], tuple[State, Callable[[State], tuple[State, NDArray[np.floating[Any]]]]]]


def approximate(checkpoint: Checkpoint, bundle: Bundle) -> Bundle:
    """Put the large products of a bundle's step and sampler in 8-bit integers, in place, and drop its TorchScript.

    Args:
        checkpoint: what the bundle was assembled from.
        bundle: from `assemble`, in float32.

    Returns:
        The new bundle, whose manifest has no parity yet.

    Raises:
        BundleError: int8 is not for this checkpoint; the message says why.
    """
    if checkpoint.kind != "generator":
        raise BundleError(
            "int8 is for generators, which are sampled by the million, and for Transformers: this is neither"
        )
    if not own_step(checkpoint.network):
        raise BundleError(
            "int8 is for networks that copy from prototypes alone, by one softmax (mixing = joint, own = 0), without "
            "latent vectors (latent = 0)"
        )
    if bundle.manifest.decoder.dtype != "float32":
        raise BundleError(f"int8 is made from float32 weights, found {bundle.manifest.decoder.dtype}")
    models = {name: onnx.load(bundle.path / name) for name in bundle.manifest.graphs if name != SAMPLER}
    if not large_products(models[STEP]):
        raise BundleError("no weight matrix of this network is large enough for int8 to be faster")
    weights = step_weights(checkpoint.network)
    products = to_round(models[STEP], weights)
    moments = _moments(checkpoint, models[STEP], sorted({activation for activation, _ in products.values()}))
    integers = {output: (name, rounded(matrix, moments[name])) for output, (name, matrix) in products.items()}
    for name, matrix in list(weights.items()):
        for output, (_, constant) in products.items():
            if np.array_equal(constant, matrix):
                arrays = integers[output][1]
                weights.pop(name, None)
                weights |= {f"{name}.{kind}": arrays[kind] for kind in ("levels", "scales")}
                weights[f"{name}.int8"] = arrays["weights"]
    models[STEP] = quantised(models[STEP], integers)
    models[SAMPLER] = sampler(models, checkpoint.network, HALVES[checkpoint.kind])
    graphs = save_graphs(models, bundle.path)
    (bundle.path / STEP_WEIGHTS).write_bytes(save(weights))
    seal(bundle.path, bundle.manifest.model_copy(update={"graphs": graphs}))
    return Bundle.load(bundle.path)


def to_round(step: Any, weights: Mapping[str, NDArray[Any]]) -> Products:
    """The large products of a step without those that stay in float32.

    An error of the output's products, `project` and `combine`, goes into the very next token, so they are spared where
    they are few of the multiplications.
    """
    found = large_products(step)
    left = SPARED * sum(matrix.size for _, matrix in found.values())
    for name in ("project", "combine"):
        for output, (_, matrix) in list(found.items()):
            if np.array_equal(matrix, weights[name]) and matrix.size <= left:
                del found[output]
                left -= matrix.size
    return found


def quantised(model: Any, integers: Mapping[str, tuple[str, Integers]]) -> Any:
    """A copy of a float32 graph with some products in integers, see `with_integers`."""
    several = {name for name, constant in constants(model).items() if constant.ndim == 3}  # matrices

    def replacement(node: Any) -> Any:
        if node.op_type == "MatMul" and node.input[1] in several:
            return helper.make_node(never_one_row.name, node.input, node.output, domain=OURS.domain)
        return node

    return with_integers(model, integers, int8_product, replacement, never_one_row)


def _moments(checkpoint: Checkpoint, step: Any, activations: list[str]) -> dict[str, Moments]:
    """The moments of a step's activations over samples at the generator's own temperature."""
    probe = _Probe(checkpoint.network, step, activations)
    task(checkpoint, CALIBRATION, CALIBRATION_SEED).stepwise(probe, CALIBRATION, BATCH)
    return {name: Moments.of(rows) for name, rows in probe.rows.items()}


class _Probe(TorchBackend):
    """A backend that runs the step's graph and keeps some activations."""

    def __init__(self, network: Network, step: Any, activations: list[str]) -> None:
        super().__init__(network, threads=THREADS)
        self.rows: dict[str, list[NDArray[np.float32]]] = {name: [] for name in activations}
        step = copy.deepcopy(step)
        for name in activations:
            step.graph.node.append(helper.make_node("Identity", [name], [f"{name}/watched"]))
            step.graph.output.append(helper.make_tensor_value_info(f"{name}/watched", TensorProto.FLOAT, None))
        options = device.onnxruntime().SessionOptions()
        options.intra_op_num_threads = 1
        self._session = device.onnxruntime().InferenceSession(step.SerializeToString(), options, providers=[device.CPU])

    def step(self, inputs: StepInputs) -> StepOutputs:
        given = {tensor.name: getattr(inputs, tensor.name) for tensor in self._session.get_inputs()}
        found = self._session.run(None, given)
        outputs, watched = StepOutputs(*found[: len(StepOutputs._fields)]), found[len(StepOutputs._fields) :]
        for rows, values in zip(self.rows.values(), watched, strict=True):
            rows.append(values.reshape(-1, values.shape[-1]))  # (..., K) to (B, K)
        return outputs


def verify_approximate(
    checkpoint: Checkpoint, bundle: Bundle, batches: Mapping[int, int], *, quiet: bool = False
) -> tuple[list[Parity], Approximation]:
    """Compare an approximate bundle with itself, and measure how far it is from its checkpoint.

    Args:
        checkpoint: what it was made from.
        bundle: from `approximate`.
        batches: sizes of batches, and how many samples to draw in each.
        quiet: without progress.

    Raises:
        BundleError: more samples depend on their batch, the number of threads or the loop than rounding explains.
    """
    samples = max(batches.values())
    work, backend = task(checkpoint, samples), OnnxBackend(bundle, provider="cpu")
    exact = TorchBackend(checkpoint.network, threads=THREADS)
    runners: dict[str, Runner] = {
        "onnx": partial(work.stepwise, OnnxBackend(bundle, 1, "cpu")),
        "onnx, 2 threads": partial(work.stepwise, OnnxBackend(bundle, 2, "cpu")),
        "onnx loop": partial(work.looped, OnnxLoop(bundle, 1, "cpu"), "float32"),
    }
    forced = (opened(work, one) for one in (exact, backend))
    own, written = (partial(work.stepwise, one) for one in (backend, exact))
    return compared(samples, own, written, forced, runners, batches, partial(distance, work, backend), quiet=quiet)


def compared(
    samples: int,
    own: Runner,
    written: Runner,
    openers: Iterable[Opener],
    runners: Mapping[str, Runner],
    batches: Mapping[int, int],
    distance: Distance,
    *,
    quiet: bool,
) -> tuple[list[Parity], Approximation]:
    """Compare an approximate bundle with itself, and with its checkpoint.

    Args:
        samples: how many to draw, or to answer.
        own, written: give the sequences of the bundle and of the checkpoint, on one thread.
        openers: of the checkpoint and of the bundle.
        runners: ways to run the bundle, by name.
        batches: sizes of batches, and how many samples to draw in each.
        distance: of a sequence that differs, how far it is from the one expected.
        quiet: without progress.

    Raises:
        BundleError: more samples depend on how they are drawn than rounding explains.
    """
    with Progress("verify", len(runners) * len(batches) + 1, quiet=quiet) as progress:
        expected, truth = own(samples, BATCH), written(samples, BATCH)
        rows = compare(expected, "float32", runners, batches, distance, progress)
        require(rows, "samples depend on what they are drawn with")
        same = sum(one == other for one, other in zip(expected, truth, strict=True))
        exact, other = openers
        tokens, nats = divergence(exact, other, truth)
        progress.update(len(rows) + 1, "torch")
    return rows, Approximation(weights="int8", samples=samples, same=same, tokens=tokens, kl=nats / tokens)


def divergence(exact: Opener, other: Opener, sequences: list[Written]) -> tuple[int, float]:
    """The number of tokens of the sequences, and the sum of divergences of next-token distributions before each.

    The divergence is Kullback and Leibler's, sum_v p(v) log(p(v) / q(v)) in nats, of the distribution q of `other` from
    p of `exact`, both before bans and temperature, with the given sequences forced on both.
    """
    tokens, nats = 0, 0.0
    for first in range(0, len(sequences), BATCH):
        rows = slice(first, first + BATCH)
        forced = [_forced(opener, rows, sequences[rows]) for opener in (exact, other)]
        for (running, p), (_, q) in zip(*forced, strict=True):
            tokens += int(running.sum())
            nats += float((np.exp(p) * (p - q))[running].sum())
    return tokens, nats


def opened(work: Task, backend: Backend) -> Opener:
    """The opener for the rows of a task, decoded by a backend."""
    return lambda rows: (opening(backend, work.memory_tokens[rows], work.half), partial(advance, backend))


def _forced(
    opener: Opener, rows: slice, sequences: list[Written]
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
    """At each step, whether a row has a token to write (B), and the log-probabilities (B, V) of the next token."""
    state, following = opener(rows)
    for token in padded([list(sequence) for sequence in sequences]).T:
        state, log_probs = following(state)
        yield token != 0, log_probs.astype(np.float64)
        state["token"] = token.copy()
