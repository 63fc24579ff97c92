"""Bundles altered as a stranger would who means harm."""

import hashlib
import json


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
