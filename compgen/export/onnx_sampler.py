"""The whole sampler as one ONNX graph, for programs that have ONNX Runtime and nothing of ours.

It is put together from the exported parts with plain operators: the encoder over all memories, then a `Loop` whose
body is the very step that continuous batching runs. Uniform numbers are an input, so the caller decides every draw.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, compose, helper, numpy_helper

from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID
from compgen.models.network import Network
from compgen.runtime.manifest import ENCODER, START, STEP

OPSET, IR_VERSION = 18, 8  # old enough for every ONNX Runtime of the last years

INT, BOOL = TensorProto.INT64, TensorProto.BOOL


class _Builder:
    """Nodes and constants of a graph under construction; values are called by their names."""

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def op(self, operator: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add a node with one output; return the output's name."""
        output = name or f"{self.prefix}{operator}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def constant(self, value: "NDArray[Any] | list[int] | int") -> str:
        """Add a constant (integers become int64); return its name."""
        name = f"{self.prefix}constant_{len(self.constants)}"
        array = value if isinstance(value, np.ndarray) else np.array(value, dtype=np.int64)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def include(self, model: Any, prefix: str) -> list[Any]:
        """Take over a model's constants and return its nodes, all values renamed by a prefix."""
        graph = compose.add_prefix(model, prefix).graph
        self.constants.extend(graph.initializer)
        return list(graph.node)


def sampler(models: dict[str, Any], network: Network, half: int) -> Any:
    """The sampler of exported parts (by file name), starting in source (half 0) or target (half 1).

    Inputs are memory_tokens (B, n, T) where n > 0, uniforms (L, B), temperature (2), and latent (B, Z) where Z > 0;
    outputs are tokens (L, B), 0 after a row's end symbol, and the log-probability (B) of each row.
    """
    dtype = np.dtype(str(network.embedding.weight.dtype).removeprefix("torch."))
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    outer = _Builder("sampler/")
    rows = outer.op("Shape", "uniforms", start=1, end=2)
    inputs = [
        helper.make_tensor_value_info("uniforms", kind, ["L", "B"]),
        helper.make_tensor_value_info("temperature", kind, [2]),
    ]
    hidden = cell = _filled(outer, np.zeros(1, dtype), rows, network.hidden)
    fed = _filled(outer, np.zeros(1, dtype), rows, network.carried)
    if network.latent:
        inputs.append(helper.make_tensor_value_info("latent", kind, ["B", network.latent]))
        after = network.carried - network.output - network.latent
        fed = outer.op("Pad", "latent", outer.constant([0, network.output, 0, after]))
    if network.attention is not None:
        inputs.insert(0, helper.make_tensor_value_info("memory_tokens", INT, ["B", network.memories, "T"]))
        final = _remember(outer, models[ENCODER], network.memories)
        if START in models:
            hidden, cell = _start(outer, models[START], final)
    outer.op("Identity", "temperature", name="step/temperature")
    opening = {
        "step/token": (_filled(outer, np.array([BOS_ID]), rows), INT, []),
        "step/hidden": (hidden, kind, [network.hidden]),
        "step/cell": (cell, kind, [network.hidden]),
        "step/fed": (fed, kind, [network.carried]),
        "step/half": (_filled(outer, np.array([half]), rows), INT, []),
        "done": (_filled(outer, np.zeros(1, bool), rows), BOOL, []),
        "score": (_filled(outer, np.zeros(1, dtype), rows), kind, []),
    }
    body = _body(outer, models[STEP], dtype, {name: (k, size) for name, (_, k, size) in opening.items()}, rows)
    limit = outer.op("Shape", "uniforms", start=0, end=1)
    going = outer.constant(np.array(True))
    # The last one is the score. The others are of no use, but ONNX Runtime crashes on a Loop that leaves them unnamed.
    ends = [*(f"last/{name}" for name in list(opening)[:-1]), "log_prob"]
    loop_inputs = [outer.op("Squeeze", limit), going, *(value for value, _, _ in opening.values())]
    outer.nodes.append(helper.make_node("Loop", loop_inputs, [*ends, "sampler/written"], body=body))
    _pad(outer, limit)
    outputs = [
        helper.make_tensor_value_info("tokens", INT, ["L", "B"]),
        helper.make_tensor_value_info("log_prob", kind, ["B"]),
    ]
    graph = helper.make_graph(outer.nodes, "sampler", inputs, outputs, outer.constants)
    model = helper.make_model(graph, opset_imports=models[STEP].opset_import, producer_name="compgen")
    model.ir_version = IR_VERSION
    return model


def _filled(outer: _Builder, value: NDArray[Any], rows: str, size: int | None = None) -> str:
    """A value repeated to (B) or (B, size)."""
    shape = rows if size is None else outer.op("Concat", rows, outer.constant([size]), axis=0)
    return outer.op("Expand", outer.constant(value), shape)


def _remember(outer: _Builder, encoder: Any, n: int) -> str:
    """Encode all memories as B * n sequences, then keep of each the role it has; return the last states (B, n, D)."""
    length = outer.op("Shape", "memory_tokens", start=2, end=3)
    flat = outer.op("Concat", outer.constant([-1]), length, axis=0)
    outer.op("Reshape", "memory_tokens", flat, name="encoder/tokens")
    outer.nodes.extend(outer.include(encoder, "encoder/"))
    # (B * n, n, ...) becomes (B, n * n, ...), of which sequence s in role s is entry s * n + s. A 0 keeps a size.
    own = outer.constant([slot * n + slot for slot in range(n)])
    for part in ("keys", "values"):
        every = outer.op("Reshape", f"encoder/{part}", outer.constant([-1, n * n, 0, 0]))
        outer.op("Gather", every, own, axis=1, name=f"step/{part}")
    outer.op("Identity", "memory_tokens", name="step/memory_tokens")
    return outer.op("Gather", outer.op("Reshape", "encoder/final", outer.constant([-1, n * n, 0])), own, axis=1)


def _start(outer: _Builder, start: Any, final: str) -> tuple[str, str]:
    outer.op("Identity", final, name="start/final")
    outer.nodes.extend(outer.include(start, "start/"))
    return "start/first_hidden", "start/first_cell"


def _body(
    outer: _Builder, step: Any, dtype: np.dtype[Any], carried: dict[str, tuple[int, list[int]]], rows: str
) -> Any:
    """One iteration: a step for every row, of which rows that are done keep nothing. Constants go to `outer`."""
    body = _Builder("body/")
    body.op("Gather", "uniforms", "iteration", axis=0, name="step/uniform")
    body.op("Expand", "iteration", rows, name="step/position")
    body.nodes.extend(outer.include(step, "step/"))
    column = outer.constant([1])
    index = body.op("Unsqueeze", "step/next_token", column)
    gained = body.op("Squeeze", body.op("GatherElements", "step/log_probs", index, axis=1), column)
    gained = body.op("Where", "done", outer.constant(np.zeros(1, dtype)), gained)
    body.op("Add", "score", gained, name="next_score")
    body.op("Where", "done", outer.constant([PAD_ID]), "step/next_token", name="written")
    body.op("Or", "done", body.op("Equal", "step/next_token", outer.constant([EOS_ID])), name="next_done")
    all_done = body.op("ReduceMin", body.op("Cast", "next_done", to=TensorProto.INT32), keepdims=0)
    body.op("Not", body.op("Cast", all_done, to=BOOL), name="going_on")
    following = [name.replace("step/", "step/next_") if "/" in name else f"next_{name}" for name in carried]
    inputs = [helper.make_tensor_value_info("iteration", INT, []), helper.make_tensor_value_info("going", BOOL, [])]
    outputs = [helper.make_tensor_value_info("going_on", BOOL, [])]
    for (name, (k, size)), new in zip(carried.items(), following, strict=True):
        inputs.append(helper.make_tensor_value_info(name, k, ["B", *size]))
        outputs.append(helper.make_tensor_value_info(new, k, ["B", *size]))
    outputs.append(helper.make_tensor_value_info("written", INT, ["B"]))
    return helper.make_graph(body.nodes, "step", inputs, outputs)


def _pad(outer: _Builder, limit: str) -> None:
    """The loop stops once all rows are done: fill what it did not write with padding, so that L tokens come out."""
    steps = outer.op("Shape", "sampler/written", start=0, end=1)
    left = outer.op("Sub", limit, steps)
    pads = outer.op("Concat", outer.constant([0, 0]), left, outer.constant([0]), axis=0)
    outer.op("Pad", "sampler/written", pads, outer.constant(PAD_ID), name="tokens")
