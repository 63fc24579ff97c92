"""Graphs that reach for what is not theirs: made from an honest one, for the tests of both runners."""

import onnx
from onnx import TensorProto, helper

SECRET = "secret.bin"  # a file that only a graph with external data reads


def external(name: str = "leak", location: str = SECRET) -> TensorProto:
    """A tensor that says that its numbers are in another file."""
    tensor = TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[2], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=location)
    return tensor


def _graph(tensor: TensorProto) -> onnx.GraphProto:
    return helper.make_graph([], "inner", [], [], initializer=[tensor])


def _sparse() -> onnx.SparseTensorProto:
    indices = TensorProto(name="at", data_type=TensorProto.INT64, dims=[1], int64_data=[0])
    return onnx.SparseTensorProto(values=external(), indices=indices, dims=[2])


def _with_node(model: onnx.ModelProto, **attributes: object) -> None:
    model.graph.node.append(helper.make_node("Constant", [], ["leaked"], **attributes))


def _with_attribute(model: onnx.ModelProto, **parts: object) -> None:
    node = onnx.NodeProto(op_type="Constant", output=["leaked"])
    node.attribute.append(onnx.AttributeProto(name="value", **parts))
    model.graph.node.append(node)


def _initializer(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(external())


def _absolute(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(external(location="/etc/passwd"))


def _upwards(model: onnx.ModelProto) -> None:
    model.graph.initializer.append(external(location="../../etc/passwd"))


def _memory(model: onnx.ModelProto) -> None:
    """ONNX Runtime's own mark of a tensor whose location is an address in the process's memory."""
    tensor = external(location="*/_ORT_MEM_ADDR_/*")
    tensor.external_data.add(key="offset", value="4096")
    tensor.external_data.add(key="length", value="8")
    model.graph.initializer.append(tensor)


def _sparse_initializer(model: onnx.ModelProto) -> None:
    model.graph.sparse_initializer.append(_sparse())


def _subgraph(model: onnx.ModelProto) -> None:
    node = helper.make_node("If", ["half"], ["leaked"], then_branch=_graph(external()), else_branch=_graph(external()))
    model.graph.node.append(node)


def _loop(model: onnx.ModelProto) -> None:
    model.graph.node.append(helper.make_node("Loop", ["", ""], ["leaked"], body=_graph(external())))


def _nested(model: onnx.ModelProto) -> None:
    inner = helper.make_node("Scan", ["half"], ["x"], num_scan_inputs=1, body=_graph(external()))
    body = helper.make_graph([inner], "outer", [], [])
    model.graph.node.append(helper.make_node("Loop", ["", ""], ["leaked"], body=body))


def _function(model: onnx.ModelProto) -> None:
    node = helper.make_node("Constant", [], ["y"], value=external())
    model.functions.append(helper.make_function("ours", "f", [], ["y"], [node], [helper.make_opsetid("", 18)]))


def _training(model: onnx.ModelProto) -> None:
    model.training_info.append(onnx.TrainingInfoProto(initialization=_graph(external())))


def _location_alone(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].data_location = TensorProto.EXTERNAL


def _keys_alone(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].external_data.add(key="location", value=SECRET)


def _metadata(model: onnx.ModelProto) -> None:
    """Options of a session, which can make it write a profile to a file."""
    model.metadata_props.add(key="ort_config", value='{"session_options": {"enable_profiling": 1}}')


def _context(model: onnx.ModelProto) -> None:
    """The operator that loads what another compiler made, from a file beside the graph."""
    node = helper.make_node("EPContext", ["token"], ["leaked"], domain="com.microsoft", ep_cache_context=SECRET)
    model.graph.node.append(node)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def _reference(model: onnx.ModelProto) -> None:
    _with_attribute(model, ref_attr_name="value", type=onnx.AttributeProto.TENSOR)


def _operator(model: onnx.ModelProto) -> None:
    """An operator of a library that a runtime may have loaded."""
    model.graph.node.append(helper.make_node("Leak", ["token"], ["leaked"], domain="ours"))
    model.opset_import.append(helper.make_opsetid("ours", 1))


CHANGES = {
    "initializer": _initializer,
    "absolute path": _absolute,
    "path upwards": _upwards,
    "address in memory": _memory,
    "sparse initializer": _sparse_initializer,
    "attribute": lambda model: _with_node(model, value=external()),
    "attribute, list": lambda model: _with_attribute(model, tensors=[external()], type=onnx.AttributeProto.TENSORS),
    "attribute, sparse": lambda model: _with_attribute(
        model, sparse_tensor=_sparse(), type=onnx.AttributeProto.SPARSE_TENSOR
    ),
    "attribute, list of sparse": lambda model: _with_attribute(
        model, sparse_tensors=[_sparse()], type=onnx.AttributeProto.SPARSE_TENSORS
    ),
    "attribute, graphs": lambda model: _with_attribute(
        model, graphs=[_graph(external())], type=onnx.AttributeProto.GRAPHS
    ),
    "subgraph of If": _subgraph,
    "subgraph of Loop": _loop,
    "subgraph of a subgraph": _nested,
    "function": _function,
    "training": _training,
    "location without keys": _location_alone,
    "keys without location": _keys_alone,
    "session's options": _metadata,
    "compiled context": _context,
    "reference to a function's attribute": _reference,
    "another's operator": _operator,
}


def field(number: int, content: bytes) -> bytes:
    """A field of a message that holds bytes."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(value: int, length: int = 0) -> bytes:
    """A number as protocol buffers write it, in `length` bytes if it needs fewer."""
    found = bytearray()
    while value > 127 or len(found) < length - 1:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _tensor_with(extra: bytes) -> bytes:
    """A tensor whose encoding goes on with some bytes."""
    return TensorProto(name="leak", data_type=TensorProto.FLOAT, dims=[2]).SerializeToString() + extra


def _appended(honest: bytes, tensor: bytes) -> bytes:
    """A graph with one more initializer: fields of a message that comes twice are put together."""
    return honest + field(7, field(5, tensor))


def _deep(levels: int) -> bytes:
    """A graph in an attribute of a node of a graph, and so on."""
    graph = b""
    for _ in range(levels):
        graph = field(1, field(5, field(6, graph)))
    return graph


KEYS = field(13, field(1, b"location") + field(2, SECRET.encode()))
ENCODINGS = {
    # A location of 2^32 + 1, which a reader that keeps 32 bits takes for EXTERNAL.
    "location beyond 32 bits": lambda honest: _appended(honest, _tensor_with(varint(14 << 3) + varint(2**32 + 1))),
    # The same field written with more bytes than it needs.
    "location with a long tag": lambda honest: _appended(honest, _tensor_with(varint(14 << 3, 5) + b"\x01")),
    "keys with a long tag": lambda honest: _appended(honest, _tensor_with(varint(13 << 3 | 2, 4) + KEYS[1:])),
    # Half of the tensor in one message, half in another, which readers put together.
    "in two halves": lambda honest: (
        honest + field(7, field(1, field(5, field(5, KEYS)) + field(5, field(5, varint(14 << 3) + b"\x01"))))
    ),
    "in a group": lambda honest: _appended(honest, _tensor_with(varint(13 << 3 | 3) + varint(13 << 3 | 4))),
    # ONNX Runtime tells its own format by four letters, whatever the file is called.
    "another format": lambda honest: b"\x10\x00\x00\x00ORTM" + honest,
    "two formats at once": lambda honest: b"\x12\x40\x00\x00ORTM" + bytes(58) + honest,
    "cut short": lambda honest: honest[:-3],
    "location as text": lambda honest: _appended(honest, _tensor_with(field(14, b"1"))),
    "a field without a number": lambda honest: honest + b"\x02\x00",
    "a number that is cut short": lambda honest: honest + b"\x08\x80",
    "a number beyond 64 bits": lambda honest: honest + b"\x08" + b"\xff" * 9 + b"\x02",
    "a number of more than ten bytes": lambda honest: honest + b"\x08" + b"\xff" * 10 + b"\x01",
    "four bytes that are cut short": lambda honest: honest + varint(1 << 3 | 5) + b"\x00\x00",
    "eight bytes that are cut short": lambda honest: honest + varint(1 << 3 | 1) + b"\x00\x00",
    "graphs within graphs": lambda honest: honest + field(7, _deep(12)),
    "nothing known": lambda honest: honest + field(99, b"x"),
}


def attacked(honest: bytes) -> dict[str, bytes]:
    """Graphs made from an honest one, by the name of what is wrong with them."""
    found = {}
    for name, change in CHANGES.items():
        model = onnx.ModelProto.FromString(honest)
        change(model)
        found[name] = model.SerializeToString()
    return found | {name: change(honest) for name, change in ENCODINGS.items()}
