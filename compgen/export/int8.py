"""A decoding step whose large weight matrices are 8-bit integers: faster, and another sampler than its checkpoint.

A sample stays a function of its address: a product's rows must not see each other. ONNX Runtime's own dynamic
quantisation scales activations by the largest of the whole batch, so it is not used. Here each feature of an activation
has one scale, fixed at export from samples of the generator itself, and the products are exact integer arithmetic:

    x W  ~  column_scale * (round(x / feature_scale) @ weights)      weights = round(feature_scale * W / column_scale)

Activations are unsigned with 128 for zero, weights signed: the pair of types that ONNX Runtime multiplies fast. Weights
stay within ±64, because processors without VNNI add two products in 16 bits, and 2 * 255 * 64 still fits: so every
processor gets the same integers. Attention, softmax and the choice of the token stay in floating point.

Rounding to integers turns a difference in the last bit into one of a whole level, so floating point must not depend on
the batch either. It does in one place: ONNX Runtime multiplies a single row by another routine than many.
"""

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

LARGE = 2**14  # numbers in a matrix that is worth it; below, the other operations of a step take longer
ZERO, LEVELS = 128, 127  # of an activation
WEIGHTS = 64  # the largest weight
MICROSOFT = "com.microsoft"  # whose operators ONNX Runtime adds to ONNX


def activations(model: Any) -> list[str]:
    """The activations that the large products of a graph multiply, by name."""
    constants = _constants(model)
    return sorted({node.input[0] for node in model.graph.node if _large(node, constants) is not None})


def probed(model: Any) -> Any:
    """A copy of a graph whose last outputs are the activations of its large products, in the order of `activations`."""
    model = copy.deepcopy(model)
    for name in activations(model):
        model.graph.node.append(helper.make_node("Identity", [name], [f"{name}/watched"]))
        model.graph.output.append(helper.make_tensor_value_info(f"{name}/watched", TensorProto.FLOAT, None))
    return model


def quantised(model: Any, ranges: dict[str, NDArray[np.float32]]) -> Any:
    """A copy of a float32 graph with its large products in integers.

    Args:
        model: a graph whose products have constants on their right.
        ranges: for each of `activations`, the largest magnitude of each feature (K); what is larger counts as this.
    """
    model = copy.deepcopy(model)
    graph, constants = model.graph, _constants(model)
    nodes: list[Any] = []
    for node in graph.node:
        weights = _large(node, constants)
        if weights is not None:
            nodes.extend(_product(graph, node, weights, ranges[node.input[0]]))
        elif node.op_type == "MatMul" and node.input[1] in constants and constants[node.input[1]].ndim == 3:
            nodes.extend(_never_one_row(graph, node))
        else:
            nodes.append(node)
    used = {name for node in nodes for name in node.input}
    kept = [tensor for tensor in graph.initializer if tensor.name in used]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(node for node in nodes if node.op_type != "Constant" or node.output[0] in used)
    graph.initializer.extend(kept)
    model.opset_import.append(helper.make_opsetid(MICROSOFT, 1))
    return model


def _constants(model: Any) -> dict[str, NDArray[Any]]:
    """All constants of a graph, by name."""
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == "Constant"]
    return found | {node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in nodes}


def _large(node: Any, constants: dict[str, NDArray[Any]]) -> NDArray[np.float32] | None:
    """The matrix (K, N) of a product x W or x W + y that is worth it; None for any other node."""
    if node.op_type not in {"MatMul", "Gemm"} or node.input[1] not in constants:
        return None
    matrix = constants[node.input[1]]
    if matrix.ndim != 2 or matrix.size < LARGE:
        return None
    settings = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
    plain = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0} | settings
    return matrix if plain == {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0} else None


def rounded(matrix: NDArray[np.float32], largest: NDArray[np.float32]) -> dict[str, NDArray[Any]]:
    """A matrix (K, N) in integers, for activations whose features are at most `largest` (K) in magnitude.

    Returns:
        weights (K, N) int8, levels (K), how many levels of an activation there are to 1, and scales (N) of the product.
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


def in_integers(
    weights: dict[str, NDArray[Any]], model: Any, ranges: dict[str, NDArray[np.float32]]
) -> dict[str, NDArray[Any]]:
    """A step's weights by name (`step_weights`) with those of its large products as the graph has them in integers.

    Such a matrix `name` becomes `name.int8`, `name.levels` and `name.scales`; see `rounded`.

    Args:
        weights: by name.
        model: the step's graph, not quantised yet.
        ranges: as for `quantised`.
    """
    constants = _constants(model)
    found = ((node, _large(node, constants)) for node in model.graph.node)
    large = [(node.input[0], constant) for node, constant in found if constant is not None]
    result = dict(weights)
    for name, matrix in weights.items():
        for activation, constant in large:
            if np.array_equal(constant, matrix):
                integers = rounded(matrix, ranges[activation])
                del result[name]
                result |= {f"{name}.{kind}": integers[kind] for kind in ("levels", "scales")}
                result[f"{name}.int8"] = integers["weights"]
    return result


def _product(graph: Any, node: Any, matrix: NDArray[np.float32], largest: NDArray[np.float32]) -> list[Any]:
    """The nodes of a product in integers, and of the sum if it is a Gemm."""
    output = node.output[0]
    inputs: dict[str, NDArray[Any]] = {"one": np.ones((), np.float32), "zero": np.array(ZERO, np.uint8)}
    inputs |= rounded(matrix, largest)
    names = {name: f"{output}/{name}" for name in inputs}
    graph.initializer.extend(numpy_helper.from_array(value, names[name]) for name, value in inputs.items())
    spread, levels = f"{output}/spread", f"{output}/rounded"
    product = output if node.op_type == "MatMul" else f"{output}/product"
    integers = [levels, names["weights"], names["one"], names["scales"], names["zero"]]
    nodes = [
        helper.make_node("Mul", [node.input[0], names["levels"]], [spread]),
        helper.make_node("QuantizeLinear", [spread, names["one"], names["zero"]], [levels]),
        helper.make_node("MatMulIntegerToFloat", integers, [product], domain=MICROSOFT),
    ]
    return nodes if product == output else [*nodes, helper.make_node("Add", [product, node.input[2]], [output])]


def _never_one_row(graph: Any, node: Any) -> list[Any]:
    """A product (n, B, I) with n matrices, given one row more, so that it is the same routine for B = 1."""
    output = node.output[0]
    inputs = {"more": [0, 0, 0, 0, 1, 0], "begin": [0], "end": [-1], "rows": [1]}
    names = {name: f"{output}/{name}" for name in inputs}
    graph.initializer.extend(numpy_helper.from_array(np.array(inputs[name]), names[name]) for name in inputs)
    padded, product = f"{output}/padded", f"{output}/product"
    return [
        helper.make_node("Pad", [node.input[0], names["more"]], [padded]),
        helper.make_node("MatMul", [padded, node.input[1]], [product]),
        helper.make_node("Slice", [product, names["begin"], names["end"], names["rows"]], [output]),
    ]
