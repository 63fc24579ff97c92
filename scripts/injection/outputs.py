"""What a run has left: files in a form that does not depend on times, whole or not, finished or journals."""

import gzip
import hashlib
import io
import json
import shutil
import struct
import zipfile
from pathlib import Path
from typing import Any

TIMES = {"seconds", "trained", "per_update", "tokens_per_second", "digest", "resume"}  # values differ between runs
Tree = dict[str, str]


def tree(folder: Path) -> Tree:
    """All files and folders below a folder, with digests of their bytes: equal if nothing has changed."""
    found = {}
    for path in sorted(folder.rglob("*")):
        content = b"folder" if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = hashlib.sha256(content).hexdigest()
    return found


def outputs(folder: Path, grows: bool) -> dict[str, str]:
    """The entries of a folder, or all files below one that `grows`, each with a digest of its content but for times."""
    paths = (path for path in folder.rglob("*") if path.is_file()) if grows else folder.iterdir()
    return {str(path.relative_to(folder)): digest(path) for path in sorted(paths)}


def digest(path: Path) -> str:
    """A digest of a file, or of a folder with all its files; `broken` if a file is not what its name says."""
    if path.is_dir():
        parts = [f"{one.relative_to(path)} {digest(one)}" for one in sorted(path.rglob("*")) if one.is_file()]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()
    try:
        return hashlib.sha256(_normal(path)).hexdigest()
    except Exception as error:
        return f"broken: {error}"


def _normal(path: Path) -> bytes:
    content = path.read_bytes()
    if path.name.endswith(".log.jsonl") or path.name == "more.jsonl":
        lines = (repr(_timeless(json.loads(line))) for line in content.splitlines())
        return "\n".join(lines).encode() + content[-1:]
    if path.name == "elapsed":
        return str(float(content) >= 0).encode()
    if path.suffix == ".html":  # of times in compare.json, in words
        return content[content.index(b"</html>") :]
    if path.suffix == ".json":
        found = _timeless(json.loads(content))
        if path.name == "compare.json":
            del found["steps"]  # in the order in which they were done
        return json.dumps(found).encode()
    if path.suffix == ".pt" and content[:2] == b"PK":
        return _checkpoint(content)
    if path.suffix == ".grammar":
        (size,) = struct.unpack("<Q", content[:8])
        head = json.loads(content[8 : 8 + size])
        return json.dumps(_timeless(head)).encode() + content[8 + size :]
    return gzip.decompress(content) if path.suffix == ".gz" else content


def _timeless(value: Any) -> Any:
    """A value of JSON without times and digests, which depend on them; texts that are JSON are parsed.

    The last digits of a log-probability depend on what was drawn beside it, and threads take turns as they like. A
    record has the command as it was called, with `--resume` where the run was gone on with.
    """
    if isinstance(value, dict):
        value = value | {key: round(value[key], 4) for key in value.keys() & {"log_prob"}}  # of more.jsonl
        return {key: _timeless(one) for key, one in value.items() if key not in TIMES}
    if isinstance(value, str) and value.startswith("{"):
        return _timeless(json.loads(value))
    if isinstance(value, str) and value.startswith("cgen "):
        return value.replace(" --resume", "")
    return [_timeless(one) for one in value] if isinstance(value, list) else value


def _checkpoint(content: bytes) -> bytes:
    """A digest of a file of torch's: its tensors, and its tree without times."""
    import torch

    with zipfile.ZipFile(io.BytesIO(content)) as packed:
        broken = packed.testzip()
    if broken:
        raise ValueError(broken)
    held = torch.load(io.BytesIO(content), weights_only=True)
    hashed = hashlib.sha256()

    def add(node: Any) -> None:
        if isinstance(node, dict):
            for key in node:
                if key not in TIMES:
                    hashed.update(str(key).encode())
                    add(node[key])
        elif isinstance(node, list | tuple):
            for one in node:
                add(one)
        else:
            plain = node.numpy().tobytes() if isinstance(node, torch.Tensor) else repr(_timeless(node)).encode()
            hashed.update(plain)

    add(held)
    return hashed.digest()


def clear(folder: Path) -> None:
    """Empty the folder of a run."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("out", "tmp"):
        (folder / name).mkdir(parents=True)


def copy(old: Path, folder: Path) -> None:
    """Make the folder of a run as it was kept."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(old, folder, symlinks=True)
