"""The whole sampler as one ONNX graph, for programs that have ONNX Runtime and nothing of ours.

It joins the exported parts by plain operators: the encoder reads all memories, then the body of a `Loop` is the step
that continuous batching runs. Uniform numbers are an input, so the caller decides every draw.
"""

import copy
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import NameFixPass
from onnxscript import GraphBuilder, OpBuilder

from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID
from compgen.models.network import Network
from compgen.runtime.manifest import ENCODER, START, STEP

IR_VERSION = 8  # old enough for every ONNX Runtime of the last years
BOOL, INT = ir.DataType.BOOL, ir.DataType.INT64


def sampler(models: dict[str, Any], network: Network, half: int) -> Any:
    """Join exported parts (by file name) to a sampler that starts in the source (half 0) or the target (half 1).

    Inputs are memory_tokens (B, n, T) where n > 0, uniforms (L, B), temperature (2), and latent (B, Z) where Z > 0.
    Outputs are tokens (L, B), 0 after a row's end symbol, and the log-probability (B) of each row.
    """
    kind = ir.DataType.from_numpy(np.dtype(str(network.embedding.weight.dtype).removeprefix("torch.")))
    opsets = {opset.domain: opset.version for opset in models[STEP].opset_import}
    builder = GraphBuilder(ir.Graph([], [], nodes=[], opset_imports=opsets, name="sampler"))
    op, given = builder.op, {}
    if network.memories:
        given["memory_tokens"] = builder.input("memory_tokens", INT, ["B", network.memories, "T"])
        given["keys"], given["values"], final = _encode(op, models[ENCODER], given["memory_tokens"], network.memories)
    uniforms = builder.input("uniforms", kind, ["L", "B"])
    given["temperature"] = builder.input("temperature", kind, [2])
    length, rows = op.Shape(uniforms, start=0, end=1), op.Shape(uniforms, start=1, end=2)
    zero = op.initializer(ir.tensor([0.0], kind, name="zero"))
    hidden = cell = op.Expand(zero, op.Concat(rows, [network.hidden], axis=0))  # (B, H)
    if START in models:
        hidden, cell = _include(op, models[START], "start", {"final": final})
    fed = op.Expand(zero, op.Concat(rows, [network.carried], axis=0))
    if network.latent:
        latent = builder.input("latent", kind, ["B", network.latent])
        fed = op.Pad(latent, [0, network.output, 0, network.carried - network.output - network.latent])
    token, first_half, ended, score = (op.Expand(value, rows) for value in ([BOS_ID], [half], [False], zero))
    state = {"token": token, "hidden": hidden, "cell": cell, "fed": fed, "half": first_half}

    def body(op: OpBuilder, i: ir.Value, _: ir.Value, ended: ir.Value, score: ir.Value, *state: ir.Value) -> Any:
        """One iteration: a step of every row; a row that has ended keeps its score and writes padding."""
        inputs = given | dict(zip(names, state, strict=True))
        inputs |= {"uniform": op.Gather(uniforms, i, axis=0), "position": op.Expand(i, rows)}
        token, log_probs, half, hidden, cell, fed = _include(op, models[STEP], "step", inputs)
        gained = op.Squeeze(op.GatherElements(log_probs, op.Unsqueeze(token, [1]), axis=1), [1])
        score = op.Add(score, op.Where(ended, zero, gained))
        written = op.Where(ended, [PAD_ID], token)
        ended = op.Or(ended, op.Equal(token, [EOS_ID]))
        all_ended = op.Cast(op.ReduceMin(op.Cast(ended, to=ir.DataType.INT32), keepdims=0), to=BOOL)
        return op.Not(all_ended), ended, score, token, hidden, cell, fed, half, written

    names = list(state)
    kinds = {"ended": BOOL, "score": kind} | dict.fromkeys(names, kind) | {"token": INT, "half": INT}
    carried = [ir.val(name, dtype=kind) for name, kind in kinds.items()]
    new = [ir.val(f"new_{name}", dtype=kind) for name, kind in kinds.items()]
    control = [ir.val("i", dtype=INT, shape=[]), ir.val("going", dtype=BOOL, shape=[])]
    outputs = [ir.val("going_on", dtype=BOOL, shape=[]), *new, ir.val("written", dtype=INT)]
    loop = builder.subgraph(body, [*control, *carried], outputs)
    limit = op.Squeeze(length)
    _, log_prob, *_, written = op.Loop(limit, True, ended, score, *state.values(), body=loop, _outputs=len(kinds) + 1)
    log_prob.type, written.type = ir.TensorType(kind), ir.TensorType(INT)  # not inferred where the step has int8
    # The loop stops once all rows have ended: pad what it did not write.
    left = op.Sub(length, op.Shape(written, start=0, end=1))
    tokens = op.Pad(written, op.Concat([0, 0], left, [0], axis=0), PAD_ID)
    for value, name, shape in ((tokens, "tokens", ["L", "B"]), (log_prob, "log_prob", ["B"])):
        value.shape = ir.Shape(shape)
        builder.add_output(value, name)
    model = ir.Model(builder.graph, ir_version=IR_VERSION, producer_name="compgen")
    NameFixPass()(model)  # the loop's body is numbered apart from what is around it, and may have its names
    return ir.serde.serialize_model(model)


def _encode(op: OpBuilder, encoder: Any, memory_tokens: ir.Value, n: int) -> list[ir.Value]:
    """Keys (B, n, T, A), values (B, n, T, A) and last states (B, n, D) of all memories (B, n, T)."""
    length = op.Shape(memory_tokens, start=2, end=3)
    tokens = op.Reshape(memory_tokens, op.Concat([-1], length, axis=0))  # (B * n, T)
    parts = _include(op, encoder, "encoder", {"tokens": tokens})  # (B * n, n, ...): every sequence in every slot
    own = [slot * n + slot for slot in range(n)]  # of (B, n * n, ...); a size of 0 keeps the size
    every = [op.Reshape(part, [-1, n * n, *rest]) for part, rest in zip(parts, ([0, 0], [0, 0], [0]), strict=True)]
    return [op.Gather(part, own, axis=1) for part in every]


def _include(op: OpBuilder, model: Any, name: str, inputs: dict[str, ir.Value]) -> list[ir.Value]:
    """Put a model's nodes here and its constants into the outermost graph; return its outputs."""
    part = ir.serde.deserialize_model(copy.deepcopy(model)).graph  # renaming a value reaches into the model
    for key, constant in list(part.initializers.items()):
        del part.initializers[key]
        constant.name = f"{name}/{key}"
        op.builder.root.graph.register_initializer(constant)
    function = ir.Function("compgen", name, graph=part, attributes={})
    outputs: list[ir.Value] = op.call_inline(
        function, *(inputs[str(value.name)] for value in part.inputs), _prefix=name
    )
    return outputs
