"""Functions in ONNX that replace operators of a traced graph; they are inlined, so no runtime sees a function."""

from typing import Any

import numpy as np
from onnx import helper, inliner, numpy_helper
from onnxscript import graph, opset18, script
from onnxscript.values import Opset

OPSET = 18  # old enough for every ONNX Runtime of the last years
OURS = Opset("compgen", 1)  # where the functions are until they are inlined
MICROSOFT = Opset("com.microsoft", 1)  # operators that ONNX Runtime adds to ONNX
ZERO = 128  # of an activation in 8-bit integers
LEVELS = 127  # of it on each side of zero
LEVEL = 1 / LEVELS
LEAST = 1e-30  # the largest number of a row that is scaled: less counts as nothing
_ZERO = numpy_helper.from_array(np.array(ZERO, np.uint8))

op: Any = opset18  # whose annotations want tensors where onnxscript takes numbers
# mypy: disable-error-code="no-untyped-def, no-untyped-call"


@script(OURS, default_opset=op)
def lstm(x, weights, recurrent, bias, lengths, hidden, cell):  # noqa: ARG001
    """ONNX's LSTM in one direction, without lengths: x (T, B, I) to y (T, 1, B, H) and the last states (1, B, H).

    weights (1, 4H, I), recurrent (1, 4H, H) and bias (1, 8H) hold the gates in ONNX's order: i, o, f, c.
    """
    of_input = op.Transpose(op.Squeeze(weights, [0]), perm=[1, 0])  # (I, 4H)
    of_state = op.Transpose(op.Squeeze(recurrent, [0]), perm=[1, 0])  # (H, 4H)
    input_bias, state_bias = op.Split(op.Squeeze(bias, [0]), axis=0, num_outputs=2)
    both = input_bias + state_bias  # (4H)

    @graph()
    def step(h, c, now):
        gates = op.MatMul(now, of_input) + op.MatMul(h, of_state) + both  # (B, 4H)
        enter, leave, keep, candidate = op.Split(gates, axis=1, num_outputs=4)
        new_c = op.Sigmoid(keep) * c + op.Sigmoid(enter) * op.Tanh(candidate)
        new_h = op.Sigmoid(leave) * op.Tanh(new_c)
        y = op.Identity(new_h)
        return new_h, new_c, y

    first_hidden, first_cell = op.Squeeze(hidden, [0]), op.Squeeze(cell, [0])
    last_hidden, last_cell, ys = op.Scan(first_hidden, first_cell, x, body=step, num_scan_inputs=1)
    return op.Unsqueeze(ys, [1]), op.Unsqueeze(last_hidden, [0]), op.Unsqueeze(last_cell, [0])


@script(OURS, default_opset=op)
def int8_product(x, weights, levels, scales):
    """The product (B, N) of x (B, K) and a matrix in 8-bit integers, see `integers.rounded`."""
    zero = op.Constant(value=_ZERO)
    integers = op.QuantizeLinear(x * levels, 1.0, zero)
    return MICROSOFT.MatMulIntegerToFloat(integers, weights, 1.0, scales, zero)


@script(OURS, default_opset=op)
def int8_rows(x, weights, scales):
    """The product (..., N) of x (..., K) and a matrix in 8-bit integers, each row by a scale of its own."""
    largest = op.Max(op.ReduceMax(op.Abs(x), [-1], keepdims=1), LEAST)  # (..., 1)
    zero = op.Constant(value=_ZERO)
    integers = op.QuantizeLinear(x * (LEVELS / largest), 1.0, zero)
    return MICROSOFT.MatMulIntegerToFloat(integers, weights, 1.0, scales, zero) * (largest * LEVEL)


@script(OURS, default_opset=op)
def never_one_row(x, matrices):
    """The product of x (n, B, I) and n matrices with one row more, so that B = 1 takes the routine of many rows."""
    product = op.MatMul(op.Pad(x, [0, 0, 0, 0, 1, 0]), matrices)  # (n, B + 1, N)
    return op.Slice(product, [0], [-1], [1])


def inlined(model: Any, *functions: Any) -> Any:
    """A model whose nodes call our functions, with their operators instead."""
    model.functions.extend(function.to_function_proto() for function in functions)
    model.opset_import.append(helper.make_opsetid(OURS.domain, 1))
    model = inliner.inline_local_functions(model)
    kept = [opset for opset in model.opset_import if opset.domain != OURS.domain]
    del model.opset_import[:]
    model.opset_import.extend(kept)
    return model


def spell_out_lstms(model: Any) -> Any:
    """The model with each LSTM operator replaced by a Scan.

    ONNX Runtime has no float64 LSTM, and exports are verified in float64. In float32 its LSTM is the faster one.
    """
    for node in model.graph.node:
        if node.op_type == "LSTM":
            node.op_type, node.domain = lstm.name, OURS.domain
            del node.attribute[:]
    return inlined(model, lstm)
