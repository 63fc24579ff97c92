"""Weight matrices in 8-bit integers, and graphs that multiply by them.

    x W  ~  column_scale * (round(x / s) @ weights)      weights ~ s * W / column_scale

The products are exact integer arithmetic, and the rows of a batch do not see each other: s has a number for each
feature of x, fixed at export (`int8_product`; the weights are chosen by `rounding`), or one for each row, its largest
number over 127 (`int8_rows`; weights are then rounded without s). ONNX Runtime's dynamic quantisation scales by the
largest of the whole batch, so it is not used.

Activations are unsigned with 128 for zero, weights signed: the pair of types that ONNX Runtime multiplies fast. Weights
stay within ±64, because processors without VNNI add two products in 16 bits, and 2 * 255 * 64 still fits: so every
processor gets the same integers.
"""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from compgen.export.onnx_functions import MICROSOFT, OURS, inlined
from compgen.runtime.bundle import MOST_WEIGHT

LARGE = 2**14  # numbers in a matrix from where on integers are faster; below, the step's other operations take longer
PLAIN = {"alpha": 1.0, "beta": 1.0, "transA": 0, "transB": 0}  # attributes of a Gemm that is x W + y
Integers = dict[str, NDArray[Any]]


def rounded_by_column(matrix: NDArray[np.floating[Any]]) -> Integers:
    """Round a matrix (K, N) to integers, each column by its largest.

    Returns:
        weights (K, N) int8; scales (N) of the product.
    """
    column = column_scales(matrix)
    return {"weights": np.rint(matrix / column).astype(np.int8), "scales": column.astype(np.float32)}


def column_scales(matrix: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """The scales (N) by which the heaviest weight of each column is the largest integer."""
    heaviest = np.abs(matrix).max(axis=0).astype(np.float64)
    scales: NDArray[np.float64] = np.where(heaviest > 0, heaviest, 1) / MOST_WEIGHT
    return scales


def with_integers(
    model: Any,
    integers: Mapping[str, tuple[str, Integers]],
    function: Any,
    replacement: Callable[[Any], Any] = lambda node: node,
    *others: Any,
) -> Any:
    """A copy of a float32 graph with some products in integers.

    Args:
        model: the graph.
        integers: by the name of a product's output, the name of the activation, and the matrix in integers.
        function: the ONNX function that multiplies an activation by the arrays of a matrix.
        replacement: gives the node to use in place of any other node.
        others: further ONNX functions, which those nodes call.
    """
    model = copy.deepcopy(model)
    graph = model.graph
    nodes: list[Any] = []
    for node in graph.node:
        output = node.output[0]
        if output not in integers:
            nodes.append(replacement(node))
            continue
        activation, arrays = integers[output]
        names = [f"{output}/{name}" for name in arrays]
        graph.initializer.extend(map(numpy_helper.from_array, arrays.values(), names))
        product = output if node.op_type == "MatMul" else f"{output}/product"
        nodes.append(helper.make_node(function.name, [activation, *names], [product], domain=OURS.domain))
        if node.op_type == "Gemm":
            nodes.append(helper.make_node("Add", [product, node.input[2]], [output]))
    del graph.node[:]
    graph.node.extend(nodes)
    _drop_unused(graph)
    model.opset_import.append(helper.make_opsetid(MICROSOFT.domain, 1))
    return inlined(model, function, *others)


def _drop_unused(graph: Any) -> None:
    """Drop the constants that no node reads."""
    used = {name for node in graph.node for name in node.input}
    for tensor in [tensor for tensor in graph.initializer if tensor.name not in used]:
        graph.initializer.remove(tensor)
    for node in [node for node in graph.node if node.op_type == "Constant" and node.output[0] not in used]:
        graph.node.remove(node)


def constants(model: Any) -> dict[str, NDArray[Any]]:
    """All constants of a graph, by name."""
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    nodes = [node for node in model.graph.node if node.op_type == "Constant"]
    return found | {node.output[0]: numpy_helper.to_array(node.attribute[0].t) for node in nodes}


def large_products(model: Any) -> dict[str, tuple[str, NDArray[np.float32]]]:
    """The products of a graph with matrices of LARGE or more numbers, as `products` gives them."""
    return {output: found for output, found in products(model).items() if found[1].size >= LARGE}


def products(model: Any) -> dict[str, tuple[str, NDArray[np.float32]]]:
    """The products x W or x W + y of a graph with a matrix: by output, the name of x and the matrix W (K, N)."""
    known, found = constants(model), {}
    for node in model.graph.node:
        if node.op_type in {"MatMul", "Gemm"} and node.input[1] in known:
            matrix = known[node.input[1]]
            settings = {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}
            if matrix.ndim == 2 and PLAIN | settings == PLAIN:
                found[node.output[0]] = node.input[0], matrix
    return found
