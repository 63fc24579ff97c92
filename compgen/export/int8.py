"""Bundles whose decoding step has its large weight matrices in 8-bit integers: faster, and another sampler.

A sample stays a function of its address: it is the same in any batch, with any number of threads, and from the step as
from the whole loop. So the rows of a product must not see each other. ONNX Runtime's dynamic quantisation scales
activations by the largest of the whole batch, so it is not used. Here each feature of an activation has one scale,
fixed at export from samples of the generator itself, and the products are exact integer arithmetic:

    x W  ~  column_scale * (round(x / feature_scale) @ weights)      weights = round(feature_scale * W / column_scale)

Activations are unsigned with 128 for zero, weights signed: the pair of types that ONNX Runtime multiplies fast. Weights
stay within ±64, because processors without VNNI add two products in 16 bits, and 2 * 255 * 64 still fits: so every
processor gets the same integers. Attention, softmax and the choice of the token stay in floating point.

Rounding to integers turns a difference in the last bit into one of a whole level, so floating point must not depend on
the batch either. It does in one place: ONNX Runtime multiplies a single row by another routine than many.
"""

import copy
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save

from compgen.data.padding import padded
from compgen.errors import BundleError
from compgen.export.assemble import HALVES, seal
from compgen.export.onnx_functions import MICROSOFT, OURS, inlined, int8_product, never_one_row
from compgen.export.onnx_graphs import save_graphs
from compgen.export.onnx_sampler import sampler
from compgen.export.step_weights import own_step, step_weights
from compgen.export.verify import BATCH, Runner, Task, Written, compare, distance, one_thread, require, task
from compgen.models.backend import TorchBackend
from compgen.models.network import Network
from compgen.progress import Progress
from compgen.runtime import device
from compgen.runtime.backend import Backend, Ints, StepInputs, StepOutputs
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import SAMPLER, SCRIPT, STEP, STEP_WEIGHTS, Approximation, Parity
from compgen.runtime.onnx_backend import OnnxBackend, OnnxLoop
from compgen.runtime.predict import advance, opening
from compgen.trained.checkpoint import Checkpoint

CALIBRATION, CALIBRATION_SEED = 256, 8  # samples for the ranges of activations; the distance is measured on others
LARGE = 2**14  # numbers in a matrix that is worth it; below, the other operations of a step take longer
LEVELS = 127  # of an activation on each side of zero
WEIGHTS = 64  # the largest weight

Ranges = dict[str, NDArray[np.float32]]  # by activation, the largest magnitude of each feature (K)
PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}  # attributes of a Gemm that is x W + y


def approximate(checkpoint: Checkpoint, bundle: Bundle) -> Bundle:
    """Put the large products of a bundle's step and sampler in 8-bit integers, in place, and drop its TorchScript.

    Args:
        checkpoint: what the bundle was assembled from.
        bundle: from `assemble`, in float32.

    Returns:
        The new bundle, whose manifest has no parity yet.

    Raises:
        BundleError: the checkpoint cannot be had in int8; the message says why.
    """
    if checkpoint.kind != "generator":
        raise BundleError(f"int8 is for generators, which are sampled by the million; this is a {checkpoint.kind}")
    if not own_step(checkpoint.network):
        raise BundleError(
            "int8 is for networks that copy from prototypes alone, by one softmax (mixing = joint, own = 0)"
        )
    if bundle.manifest.decoder.dtype != "float32":
        raise BundleError(f"int8 is made from float32 weights, found {bundle.manifest.decoder.dtype}")
    models = {name: onnx.load(bundle.path / name) for name in bundle.manifest.graphs if name != SAMPLER}
    large = _large(models[STEP])
    if not large:
        raise BundleError("no weight matrix of this network is large enough for int8 to be faster")
    ranges = _ranges(checkpoint, models[STEP])
    weights = step_weights(checkpoint.network)
    for name, matrix in list(weights.items()):
        for activation, constant in large.values():
            if np.array_equal(constant, matrix):
                integers = rounded(matrix, ranges[activation])
                weights.pop(name, None)
                weights |= {f"{name}.{kind}": integers[kind] for kind in ("levels", "scales")}
                weights[f"{name}.int8"] = integers["weights"]
    models[STEP] = quantised(models[STEP], ranges)
    models[SAMPLER] = sampler(models, checkpoint.network, HALVES[checkpoint.kind])
    graphs = save_graphs(models, bundle.path)
    (bundle.path / STEP_WEIGHTS).write_bytes(save(weights))
    (bundle.path / SCRIPT).unlink()
    seal(bundle.path, bundle.manifest.model_copy(update={"graphs": graphs}))
    return Bundle.load(bundle.path)


def rounded(matrix: NDArray[np.float32], largest: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """Round a matrix (K, N) to integers, for activations whose features are at most `largest` (K) in magnitude.

    Returns:
        weights (K, N) int8; levels (K), the number of an activation's levels from 0 to 1; scales (N) of the product.
    """
    feature = np.where(largest > 0, largest, 1) / LEVELS  # (K)
    scaled = feature[:, None] * matrix.astype(np.float64)
    heaviest = np.abs(scaled).max(axis=0)
    column = np.where(heaviest > 0, heaviest, 1) / WEIGHTS  # (N)
    return {
        "weights": np.rint(scaled / column).astype(np.int8),
        "levels": (1 / feature).astype(np.float32),
        "scales": column.astype(np.float32),
    }


def quantised(model: Any, ranges: Ranges) -> Any:
    """A copy of a float32 graph with its large products in integers; values beyond a range count as its end."""
    model = copy.deepcopy(model)
    graph, large, constants = model.graph, _large(model), _constants(model)
    several = {name for name, constant in constants.items() if constant.ndim == 3}  # matrices
    nodes: list[Any] = []
    for node in graph.node:
        output = node.output[0]
        if output in large:
            activation, matrix = large[output]
            integers = rounded(matrix, ranges[activation])
            names = [f"{output}/{name}" for name in integers]
            graph.initializer.extend(map(numpy_helper.from_array, integers.values(), names))
            product = output if node.op_type == "MatMul" else f"{output}/product"
            nodes.append(helper.make_node(int8_product.name, [activation, *names], [product], domain=OURS.domain))
            if node.op_type == "Gemm":
                nodes.append(helper.make_node("Add", [product, node.input[2]], [output]))
        elif node.op_type == "MatMul" and node.input[1] in several:
            nodes.append(helper.make_node(never_one_row.name, node.input, [output], domain=OURS.domain))
        else:
            nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    _drop_unused(graph)
    model.opset_import.append(helper.make_opsetid(MICROSOFT.domain, 1))
    return inlined(model, int8_product, never_one_row)


def _drop_unused(graph: Any) -> None:
    """Drop the constants that no node reads."""
    used = {name for node in graph.node for name in node.input}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in used]:
        graph.initializer.remove(tensor)
    for node in [node for node in graph.node if node.op_type == "Constant" and node.output[0] not in used]:
        graph.node.remove(node)


def _constants(model: Any) -> dict[str, NDArray[Any]]:
    """All constants of a graph, by name."""
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == "Constant"]
    return found | {node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in nodes}


def _large(model: Any) -> dict[str, tuple[str, NDArray[np.float32]]]:
    """The products x W or x W + y of a graph that are worth it: by output, the name of x and the matrix W (K, N)."""
    constants, found = _constants(model), {}
    for node in model.graph.node:
        if node.op_type in {"MatMul", "Gemm"} and node.input[1] in constants:
            matrix = constants[node.input[1]]
            settings = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
            if matrix.ndim == 2 and matrix.size >= LARGE and PLAIN | settings == PLAIN:
                found[node.output[0]] = node.input[0], matrix
    return found


def _ranges(checkpoint: Checkpoint, step: Any) -> Ranges:
    """The ranges of a step's activations over samples at the generator's own temperature."""
    probe = _Probe(checkpoint.network, step)
    with one_thread():
        task(checkpoint, CALIBRATION, CALIBRATION_SEED).stepwise(probe, CALIBRATION, BATCH)
    return probe.largest


class _Probe(TorchBackend):
    """A backend that runs the step's graph and keeps the ranges of the activations of its large products."""

    def __init__(self, network: Network, step: Any) -> None:
        super().__init__(network)
        self.largest: Ranges = {}
        self._watched = sorted({activation for activation, _ in _large(step).values()})
        step = copy.deepcopy(step)
        for name in self._watched:
            step.graph.node.append(helper.make_node("Identity", [name], [f"{name}/watched"]))
            step.graph.output.append(helper.make_tensor_value_info(f"{name}/watched", TensorProto.FLOAT, None))
        options = device.onnxruntime().SessionOptions()
        options.intra_op_num_threads = 1
        self._session = device.onnxruntime().InferenceSession(step.SerializeToString(), options, providers=[device.CPU])

    def step(self, inputs: StepInputs) -> StepOutputs:
        given = {tensor.name: getattr(inputs, tensor.name) for tensor in self._session.get_inputs()}
        found = self._session.run(None, given)
        outputs, watched = StepOutputs(*found[: len(StepOutputs._fields)]), found[len(StepOutputs._fields) :]
        for name, values in zip(self._watched, watched, strict=True):
            largest = np.abs(values.reshape(-1, values.shape[-1])).max(axis=0)  # (..., K) to (K)
            self.largest[name] = np.maximum(self.largest.get(name, largest), largest)
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
    runners: dict[str, Runner] = {
        "onnx": partial(work.stepwise, OnnxBackend(bundle, 1, "cpu")),
        "onnx, 2 threads": partial(work.stepwise, OnnxBackend(bundle, 2, "cpu")),
        "onnx loop": partial(work.looped, OnnxLoop(bundle, 1, "cpu"), "float32"),
    }
    with one_thread(), Progress("verify", len(runners) * len(batches) + 1, quiet=quiet) as progress:
        own = work.stepwise(backend, samples, BATCH)
        rows = compare(own, "float32", runners, batches, partial(distance, work, backend), progress)
        require(rows, "samples depend on what they are drawn with")
        exact = TorchBackend(checkpoint.network)
        written = work.stepwise(exact, samples, BATCH)
        same = sum(one == other for one, other in zip(own, written, strict=True))
        tokens, nats = divergence(work, exact, backend, written)
        progress.update(len(rows) + 1, "torch")
    return rows, Approximation(weights="int8", samples=samples, same=same, tokens=tokens, kl=nats / tokens)


def divergence(work: Task, exact: Backend, other: Backend, sequences: list[Written]) -> tuple[int, float]:
    """The number of tokens of the sequences, and the sum of divergences of next-token distributions before each.

    The divergence is Kullback and Leibler's, sum_v p(v) log(p(v) / q(v)) in nats, of the distribution q of `other` from
    p of `exact`, both before bans and temperature, with the given sequences forced on both.
    """
    tokens, nats = 0, 0.0
    for first in range(0, len(sequences), BATCH):
        part, memories = sequences[first : first + BATCH], work.memory_tokens[first : first + BATCH]
        forced = [_forced(backend, memories, work.half, part) for backend in (exact, other)]
        for (running, p), (_, q) in zip(*forced, strict=True):
            tokens += int(running.sum())
            nats += float((np.exp(p) * (p - q))[running].sum())
    return tokens, nats


def _forced(
    backend: Backend, memory_tokens: Ints, half: int, sequences: list[Written]
) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.float64]]]:
    """At each step, whether a row has a token to write (B), and the log-probabilities (B, V) of the next token."""
    state = opening(backend, memory_tokens, half)
    for token in padded([list(sequence) for sequence in sequences]).T:
        state, log_probs = advance(backend, state)
        yield token != 0, log_probs.astype(np.float64)
        state["token"] = token.copy()
