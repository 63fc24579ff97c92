"""Functions that stand in for operators compute the same, and no function is left in a graph."""

import copy

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from compgen.export.onnx_functions import OPSET, OURS, inlined, never_one_row, spell_out_lstms
from compgen.runtime.sealed import require_sealed

T, WIDTH, H = 4, 3, 5


def model(node, outputs, **inputs):
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, list(array.shape)) for name, array in inputs.items()
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([node], "g", values, ends)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def run(made, inputs):
    session = onnxruntime.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_spelled_out_lstm_is_the_operator(rows):
    rng = np.random.default_rng(0)
    shapes = {
        "x": (T, rows, WIDTH),
        "w": (1, 4 * H, WIDTH),
        "r": (1, 4 * H, H),
        "b": (1, 8 * H),
        "h": (1, rows, H),
        "c": (1, rows, H),
    }
    inputs = {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}
    node = helper.make_node("LSTM", ["x", "w", "r", "b", "", "h", "c"], ["y", "last_h", "last_c"], hidden_size=H)
    made = model(node, ["y", "last_h", "last_c"], **inputs)
    spelled = spell_out_lstms(copy.deepcopy(made))
    assert "LSTM" not in {node.op_type for node in spelled.graph.node}
    require_sealed("lstm.onnx", spelled.SerializeToString())
    for one, other in zip(run(made, inputs), run(spelled, inputs), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_product_of_a_row_more_is_the_product():
    rng = np.random.default_rng(0)
    inputs = {
        "x": rng.normal(size=(2, 1, WIDTH)).astype(np.float32),
        "m": rng.normal(size=(2, WIDTH, H)).astype(np.float32),
    }
    made = model(helper.make_node(never_one_row.name, ["x", "m"], ["y"], domain=OURS.domain), ["y"], **inputs)
    made = inlined(made, never_one_row)
    require_sealed("product.onnx", made.SerializeToString())
    assert [node.op_type for node in made.graph.node if node.op_type != "Constant"] == ["Pad", "MatMul", "Slice"]
    np.testing.assert_allclose(run(made, inputs)[0], inputs["x"] @ inputs["m"], rtol=1e-5)
