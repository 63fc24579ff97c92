"""A look at an ONNX graph before any runtime sees it: it must hold all its numbers itself, and no more than graphs do.

A tensor of a graph may say that its numbers are *external*: in another file, which ONNX Runtime then reads, or at an
address in memory. Such a tensor can stand in many places, and readers of the format differ in what they overlook. So
this walks the encoding itself (protocol buffers) and goes by what a bundle's graphs are made of: a field that they do
not need is refused, whatever it says. `cpp_runner/src/sealed.cpp` has the same tables.
"""

from collections.abc import Iterator

from compgen.errors import BundleError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
SKIP = "skip"  # a string or number, or a message whose content no runtime follows anywhere

# Of each message the fields that may come: their number to the message inside, SKIP, or a rule with a name.
Fields = dict[int, str]
MESSAGES: dict[str, Fields] = {
    # ir_version, producer's name and version, domain, model_version, doc_string, graph, opset_import.
    # Not: metadata_props (14), which can configure a session; training_info (20); functions (25).
    "model": {1: SKIP, 2: SKIP, 3: SKIP, 4: SKIP, 5: SKIP, 6: SKIP, 7: "graph", 8: SKIP},
    # node, name, initializer, doc_string, input, output, value_info. Not: quantization_annotation (14),
    # sparse_initializer (15).
    "graph": {1: "node", 2: SKIP, 5: "tensor", 10: SKIP, 11: SKIP, 12: SKIP, 13: SKIP, 16: SKIP},
    # input, output, name, op_type, attribute, doc_string, domain, metadata_props. Not: overload (8), which is of
    # functions; device_configurations (10).
    "node": {1: SKIP, 2: SKIP, 3: SKIP, 4: "op_type", 5: "attribute", 6: SKIP, 7: "domain", 9: SKIP},
    # name, f, i, s, t, g, floats, ints, strings, tensors, graphs, doc_string, type. Not: type_proto (14, 15),
    # ref_attr_name (21), which is of functions; sparse_tensor (22) and sparse_tensors (23).
    "attribute": {1: SKIP, 2: SKIP, 3: SKIP, 4: SKIP, 5: "tensor", 6: "graph", 7: SKIP, 8: SKIP, 9: SKIP}
    | {10: "tensor", 11: "graph", 13: SKIP, 20: SKIP},
    # dims, data_type, float_data, int32_data, string_data, int64_data, name, raw_data, double_data, uint64_data,
    # doc_string, data_location, metadata_props. Not: segment (3), external_data (13).
    "tensor": {1: SKIP, 2: SKIP, 4: SKIP, 5: SKIP, 6: SKIP, 7: SKIP, 8: SKIP, 9: SKIP, 10: SKIP, 11: SKIP, 12: SKIP}
    | {14: "data_location", 16: SKIP},
}
NAMES = {
    ("model", 14): "metadata",
    ("model", 20): "training information",
    ("model", 25): "functions",
    ("graph", 15): "sparse initializers",
    ("attribute", 22): "sparse tensors",
    ("attribute", 23): "sparse tensors",
    ("tensor", 13): "external data",
}
NESTED = 32  # messages within one another; ours are 9 deep
EXTENSIONS = {("com.microsoft", "MatMulIntegerToFloat")}  # the one operator beyond the standard: products in int8


def require_sealed(where: str, data: bytes) -> None:
    """Refuse a graph that can make a runtime read anything but the graph.

    Args:
        where: the file's name, for the message.
        data: its content.

    Raises:
        BundleError: external data, or anything else that a bundle's graphs do not have.
    """
    if data[4:8] == b"ORTM":
        raise BundleError(f"{where}: a graph in ONNX Runtime's own format, expected ONNX")
    try:
        _walk("model", data, NESTED)
    except _Refused as refusal:
        raise BundleError(f"{where}: {refusal}") from None


class _Refused(Exception):  # noqa: N818 - it is no error of ours
    """Why a graph is not taken."""


def _walk(message: str, data: bytes, left: int) -> None:
    """Refuse a message with a field that its table does not have; look into the messages in it."""
    if not left:
        raise _Refused(f"messages more than {NESTED} deep")
    operator = domain = b""
    rules = MESSAGES[message]
    for field, wire, value in _fields(data):
        rule = rules.get(field)
        if rule is None:
            found = NAMES.get((message, field), f"field {field} of a {message}")
            raise _Refused(f"holds {found}, which a bundle's graphs do not have")
        if rule == "data_location":
            if wire != VARINT or value != 0:
                raise _Refused("holds external data, which a bundle's graphs do not have")
        elif rule != SKIP:
            if not isinstance(value, bytes):
                raise _Refused(f"field {field} of a {message} is no message")
            if rule == "op_type":
                operator = value
            elif rule == "domain":
                domain = value
            else:
                _walk(rule, value, left - 1)
    if domain and (domain.decode("latin-1"), operator.decode("latin-1")) not in EXTENSIONS:
        name = f"{domain.decode('utf-8', 'replace')}.{operator.decode('utf-8', 'replace')}"
        raise _Refused(f"holds the operator {name!r:.80}, which a bundle's graphs do not have")


def _fields(data: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a message: number, wire type, and value (of fixed sizes 0, which no rule looks at)."""
    at = 0
    while at < len(data):
        tag, at = (data[at], at + 1) if data[at] < 128 else _varint(data, at)
        field, wire = tag >> 3, tag & 7
        value: int | bytes = 0
        if wire == VARINT:
            value, at = _varint(data, at)
        elif wire == BYTES:
            size, at = (data[at], at + 1) if at < len(data) and data[at] < 128 else _varint(data, at)
            if size > len(data) - at:
                raise _Refused("cut short")
            value, at = data[at : at + size], at + size
        elif wire in (FIXED32, FIXED64):
            at += 4 if wire == FIXED32 else 8
        else:
            raise _Refused("not an ONNX graph")
        if at > len(data) or not field:
            raise _Refused("not an ONNX graph")
        yield field, wire, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number in as few bytes as it needs, or in ten where it is negative, and where it ends."""
    value = 0
    for place in range(10):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 127) << (7 * place)
        if byte < 128:
            if (place and not byte) or value >= 1 << 64:
                break
            return value, at
    raise _Refused("not an ONNX graph")
