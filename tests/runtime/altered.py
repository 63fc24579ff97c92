"""Bundles altered as a stranger would who means harm."""

import hashlib
import json

import onnx


def sign(folder, name, data=None):
    """Write a file, and make the manifest agree with it."""
    if data is not None:
        (folder / name).write_bytes(data)
    data = (folder / name).read_bytes()
    edit(folder, lambda c: c["files"].update({name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}}))


def edit(folder, change):
    content = json.loads((folder / "manifest.json").read_text("utf-8"))
    change(content)
    (folder / "manifest.json").write_text(json.dumps(content), "utf-8")


def output_through(folder, name, output, operator, type_proto=None, **attributes):
    """Let a graph give an output through another node, with another declared type or one of no shape."""
    model = onnx.load(folder / name)
    graph, inner = model.graph, f"{output}_within"
    for node in graph.node:
        node.input[:] = [inner if one == output else one for one in node.input]
        node.output[:] = [inner if one == output else one for one in node.output]
    graph.node.append(onnx.helper.make_node(operator, [inner], [output], **attributes))
    declared = next(one for one in graph.output if one.name == output)
    if type_proto is None:
        declared.type.tensor_type.ClearField("shape")
    else:
        declared.type.CopyFrom(type_proto)
    sign(folder, name, model.SerializeToString())
