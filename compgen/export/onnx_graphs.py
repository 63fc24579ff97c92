"""ONNX export: each part of a network as a graph, and all parts together as one graph that samples.

The parts are traced by PyTorch's tracing exporter. The exporter built on torch.export is not used: it fixes the
sequence length of an LSTM to the example's, and takes 40 times as long.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx
import torch
from onnx import TensorProto, helper
from torch import nn

from compgen.export.onnx_functions import OPSET, spell_out_lstms
from compgen.export.onnx_sampler import IR_VERSION, sampler
from compgen.models.decoding import DecodingStep
from compgen.models.network import Network
from compgen.runtime.manifest import ENCODER, SAMPLER, START, STEP, Graph, Tensor

DTYPES = {TensorProto.INT64: "int64", TensorProto.FLOAT: "float32", TensorProto.DOUBLE: "float64"}
INTEGERS = {"token", "tokens", "source", "position", "half", "memory_tokens"}  # inputs
EXAMPLE = {"B": 2, "T": 3, "S": 3, "P": 2}  # sizes to trace with
Sizes = list[str | int]  # a letter is a size that the caller chooses: B rows, T memory tokens, L steps, ...


@dataclass(frozen=True)
class Part:
    """One graph: the file, the module, and the shape of every input and output by name.

    Tracing, the manifest and the runtime's check all read these, so they cannot disagree.
    """

    file: str
    module: nn.Module
    inputs: dict[str, Sizes]
    outputs: dict[str, Sizes]


class _Method(nn.Module):
    """A function as the module that the exporter asks for; the parameters of `owner` become the graph's constants."""

    def __init__(self, owner: nn.Module, function: Callable[..., Any]) -> None:
        super().__init__()
        self.owner, self.function = owner, function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def parts(network: Network) -> list[Part]:
    """The graphs of a network: encoder and start where it has them, and the step."""
    found = []
    decoding = DecodingStep(network).eval()
    step: nn.Module = decoding
    memories: dict[str, Sizes] = {}
    state: Sizes = ["B", network.hidden]
    fed: Sizes = ["B", network.carried]
    if network.attention is None:
        step = _Method(decoding, _without_memories(decoding))
    else:
        n, size, final = network.memories, network.attention.size, network.attention.key_value.in_features
        memory: Sizes = ["B", n, "T", size]
        last: Sizes = ["B", n, final]
        memories = {"keys": memory, "values": memory, "memory_tokens": memory[:3]}
        outputs = {"keys": memory, "values": memory, "final": last}
        found.append(Part(ENCODER, _Method(network, network.encode), {"tokens": ["B", "T"]}, outputs))
        if network.bridge is not None:
            first = {"first_hidden": state, "first_cell": state}
            found.append(Part(START, _Method(network, network.start), {"final": last}, first))
    inputs: dict[str, Sizes] = {"token": ["B"], "hidden": state, "cell": state, "fed": fed, "position": ["B"]}
    inputs |= {"half": ["B"], "uniform": ["B"], "temperature": [2], **memories}
    written: dict[str, Sizes] = {"next_token": ["B"], "log_probs": ["B", network.vocabulary], "next_half": ["B"]}
    return [*found, Part(STEP, step, inputs, written | {"next_hidden": state, "next_cell": state, "next_fed": fed})]


def _without_memories(decoding: DecodingStep) -> Callable[..., Any]:
    """The decoding step of a network without memories, which has no inputs for them."""

    def step(*state: torch.Tensor) -> Any:
        nothing = torch.zeros((1, 0, 0, 0), dtype=decoding.token_gates.dtype)
        return decoding(*state, nothing, nothing, torch.zeros((1, 0, 0), dtype=torch.int64))

    return step


def write_graphs(network: Network, half: int, folder: Path) -> dict[str, Graph]:
    """Write all ONNX files of a network to `folder`; return their interfaces, by file name.

    Args:
        network: in evaluation mode, in the dtype that the graphs are to have.
        half: 0 if decoding begins with a source (generators), 1 if it begins with a target (predictors).
        folder: exists.
    """
    models = {part.file: trace(part, folder / part.file) for part in parts(network)}
    if network.embedding.weight.dtype == torch.float64 and ENCODER in models:
        models[ENCODER] = spell_out_lstms(models[ENCODER])
    return save_graphs(models | {SAMPLER: sampler(models, network, half)}, folder)


def save_graphs(models: dict[str, Any], folder: Path) -> dict[str, Graph]:
    """Check ONNX models (by file name) and write them to `folder`; return their interfaces."""
    for name, model in models.items():
        model.ClearField("doc_string")
        model.ClearField("metadata_props")
        _tidy(model.graph)
        onnx.checker.check_model(model, full_check=True)
        onnx.save(model, folder / name)
    return {name: Graph(inputs=_tensors(m.graph.input), outputs=_tensors(m.graph.output)) for name, m in models.items()}


def trace(part: Part, path: Path) -> Any:
    """One part as an ONNX model; `path` is written over."""
    shapes = part.inputs | part.outputs
    axes = {
        name: {at: size for at, size in enumerate(sizes) if isinstance(size, str)} for name, sizes in shapes.items()
    }
    floating = next(part.module.parameters()).dtype
    example = []
    for name, sizes in part.inputs.items():
        shape = [EXAMPLE[size] if isinstance(size, str) else size for size in sizes]
        example.append(torch.ones(shape, dtype=torch.int64 if name in INTEGERS else floating))
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")  # deprecation of the exporter, and batch sizes, which tests vary
        torch.onnx.export(
            part.module.eval(),
            tuple(example),
            path,
            dynamo=False,
            opset_version=OPSET,
            input_names=list(part.inputs),
            output_names=list(part.outputs),
            dynamic_axes={name: sizes for name, sizes in axes.items() if sizes},
        )
    model = onnx.load(path)
    model.ir_version = IR_VERSION
    for value in (*model.graph.input, *model.graph.output):  # the exporter knows only some of their sizes
        kind = value.type.tensor_type.elem_type
        value.CopyFrom(helper.make_tensor_value_info(value.name, kind, shapes[value.name]))
    return model


def _tidy(graph: Any) -> None:
    """Drop descriptions: source paths, stack traces and inferred shapes, none of which a runtime needs."""
    del graph.value_info[:]
    for described in (graph, *graph.node, *graph.input, *graph.output, *graph.initializer):
        described.ClearField("doc_string")
        described.ClearField("metadata_props")
        for attribute in getattr(described, "attribute", ()):
            if attribute.type == onnx.AttributeProto.GRAPH:
                _tidy(attribute.g)


def _tensors(values: Any) -> list[Tensor]:
    """Name, dtype and shape of some inputs or outputs."""
    found = []
    for value in values:
        kind = value.type.tensor_type
        shape = [size.dim_param or size.dim_value for size in kind.shape.dim]
        found.append(Tensor.model_validate({"name": value.name, "dtype": DTYPES[kind.elem_type], "shape": shape}))
    return found
