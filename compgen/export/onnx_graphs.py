"""ONNX export: each part of a network as a graph, and all parts together as one graph that samples.

The parts are traced by PyTorch's tracing exporter. The exporter built on torch.export is not used: it fixes the
sequence length of an LSTM to the example's, and takes 40 times as long.
"""

import itertools
import warnings
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper

from compgen.export.graphs import Part, parts
from compgen.export.onnx_lstm import spell_out_lstms
from compgen.export.onnx_sampler import IR_VERSION, OPSET, sampler
from compgen.models.network import Network
from compgen.runtime.manifest import ENCODER, SAMPLER, Graph, Tensor

NAMES = {TensorProto.INT64: "int64", TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64"}


def write_graphs(network: Network, half: int, folder: Path) -> dict[str, Graph]:
    """Write all ONNX files of a network to `folder`; return their interfaces, by file name.

    Args:
        network: in evaluation mode, in the dtype that the graphs are to have.
        half: 0 if decoding begins with a source (generators), 1 if it begins with a target (predictors).
        folder: exists.
    """
    models = {part.file: trace(part, folder / part.file) for part in parts(network)}
    if network.embedding.weight.dtype == torch.float64 and ENCODER in models:
        spell_out_lstms(models[ENCODER].graph)
    models[SAMPLER] = sampler(models, network, half)
    return save_graphs(models, folder)


def save_graphs(models: dict[str, Any], folder: Path) -> dict[str, Graph]:
    """Check ONNX models (by file name) and write them to `folder`; return their interfaces."""
    for name, model in models.items():
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, folder / name)
    return {name: Graph(inputs=_tensors(m.graph.input), outputs=_tensors(m.graph.output)) for name, m in models.items()}


def trace(part: Part, path: Path) -> Any:
    """One part as an ONNX model, rid of what the exporter notes about the machine it ran on."""
    axes = {
        name: {axis: size for axis, size in enumerate(sizes) if isinstance(size, str)}
        for name, sizes in (part.inputs | part.outputs).items()
    }
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # deprecation of the exporter, and batch sizes, which tests vary
        torch.onnx.export(
            part.module.eval(),
            tuple(part.example.values()),
            path,
            dynamo=False,
            opset_version=OPSET,
            input_names=list(part.inputs),
            output_names=list(part.outputs),
            dynamic_axes={name: sizes for name, sizes in axes.items() if sizes},
        )
    model = onnx.load(path)
    model.ir_version = IR_VERSION
    _state_shapes(model.graph, part)
    _tidy(model)
    return model


def _state_shapes(graph: Any, part: Part) -> None:
    """Declare every input and output with our names for the sizes; the exporter knows some of them only."""
    for values, sizes in ((graph.input, part.inputs), (graph.output, part.outputs)):
        for value in values:
            kind = value.type.tensor_type.elem_type
            value.CopyFrom(helper.make_tensor_value_info(value.name, kind, sizes[value.name]))


def _tidy(model: Any) -> None:
    """Drop descriptions: source paths, stack traces and inferred shapes, none of which a runtime needs."""
    model.ClearField("metadata_props")
    model.ClearField("doc_string")
    del model.graph.value_info[:]
    _tidy_graph(model.graph)


def _tidy_graph(graph: Any) -> None:
    for described in (graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        described.ClearField("doc_string")
        described.ClearField("metadata_props")
    for attribute in itertools.chain.from_iterable(node.attribute for node in graph.node):
        if attribute.type == onnx.AttributeProto.GRAPH:
            _tidy_graph(attribute.g)


def _tensors(values: Any) -> list[Tensor]:
    return [_tensor(value) for value in values]


def _tensor(value: Any) -> Tensor:
    kind = value.type.tensor_type
    shape = [size.dim_param or size.dim_value for size in kind.shape.dim]
    return Tensor.model_validate({"name": value.name, "dtype": NAMES[kind.elem_type], "shape": shape})
