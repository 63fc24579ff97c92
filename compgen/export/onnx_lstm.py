"""LSTM operators of an ONNX graph, spelled out as a Scan over plain operators.

ONNX Runtime has no LSTM for float64, which exports are verified in. Only float64 graphs are rewritten: for float32
its LSTM is the fast path.
"""

from typing import Any

import numpy as np
from onnx import helper, numpy_helper


def spell_out_lstms(graph: Any) -> None:
    """Replace each one-directional LSTM operator of `graph`, in place, keeping the order of nodes."""
    nodes = []
    for node in graph.node:
        nodes.extend(_scan(node, graph) if node.op_type == "LSTM" else [node])
    del graph.node[:]
    graph.node.extend(nodes)


def _scan(lstm: Any, graph: Any) -> list[Any]:
    """Nodes that compute what `lstm` does: X (T, B, I) to Y (T, 1, B, H) and the last states (1, B, H)."""
    x, weights, recurrent, bias, _, hidden, cell = lstm.input[:7]
    name = f"{lstm.output[0]}/scan"
    axis = numpy_helper.from_array(np.array([0], dtype=np.int64), f"{name}/first_axis")
    second = numpy_helper.from_array(np.array([1], dtype=np.int64), f"{name}/second_axis")
    graph.initializer.extend([axis, second])
    kind = numpy_helper.to_array(next(i for i in graph.initializer if i.name == recurrent)).dtype
    nodes = []

    def op(operator: str, inputs: list[str], *outputs: str, **attributes: Any) -> None:
        nodes.append(helper.make_node(operator, inputs, [f"{name}/{output}" for output in outputs], **attributes))

    for source, output in ((weights, "w"), (recurrent, "r"), (bias, "b"), (hidden, "h0"), (cell, "c0")):
        op("Squeeze", [source, axis.name], output)
    op("Transpose", [f"{name}/w"], "wt", perm=[1, 0])
    op("Transpose", [f"{name}/r"], "rt", perm=[1, 0])
    op("Split", [f"{name}/b"], "b_input", "b_recurrent", axis=0, num_outputs=2)
    op("Add", [f"{name}/b_input", f"{name}/b_recurrent"], "bias")
    body = _body(name, helper.np_dtype_to_tensor_dtype(kind))
    op("Scan", [f"{name}/h0", f"{name}/c0", x], "h_last", "c_last", "y", body=body, num_scan_inputs=1)
    for output, source, where in zip(lstm.output, ("y", "h_last", "c_last"), (second, axis, axis), strict=False):
        if output:
            nodes.append(helper.make_node("Unsqueeze", [f"{name}/{source}", where.name], [output]))
    return nodes


def _body(name: str, kind: int) -> Any:
    """One step: states h, c (B, H) and input x (B, I) to new states and output. ONNX orders its gates i, o, f, c."""
    operations: list[tuple[str, list[str], list[str], dict[str, Any]]] = [
        ("MatMul", ["x", f"{name}/wt"], ["from_input"], {}),
        ("MatMul", ["h", f"{name}/rt"], ["from_state"], {}),
        ("Add", ["from_input", "from_state"], ["sum"], {}),
        ("Add", ["sum", f"{name}/bias"], ["gates"], {}),
        ("Split", ["gates"], ["i", "o", "f", "g"], {"axis": 1, "num_outputs": 4}),
        ("Sigmoid", ["i"], ["enter"], {}),
        ("Sigmoid", ["o"], ["leave"], {}),
        ("Sigmoid", ["f"], ["keep"], {}),
        ("Tanh", ["g"], ["candidate"], {}),
        ("Mul", ["keep", "c"], ["kept"], {}),
        ("Mul", ["enter", "candidate"], ["entered"], {}),
        ("Add", ["kept", "entered"], ["c_next"], {}),
        ("Tanh", ["c_next"], ["shown"], {}),
        ("Mul", ["leave", "shown"], ["h_next"], {}),
        ("Identity", ["h_next"], ["y"], {}),
    ]
    local = {"x", "h", "c"} | {output for _, _, outputs, _ in operations for output in outputs}

    def own(values: list[str]) -> list[str]:
        """Names inside the body, apart from those of the graph around it."""
        return [f"{name}/step/{value}" if value in local else value for value in values]

    nodes = [helper.make_node(op, own(ins), own(outs), **attributes) for op, ins, outs, attributes in operations]
    values = [
        helper.make_tensor_value_info(v, kind, ["B", None]) for v in own(["h", "c", "x", "h_next", "c_next", "y"])
    ]
    return helper.make_graph(nodes, f"{name}/step", values[:3], values[3:])
