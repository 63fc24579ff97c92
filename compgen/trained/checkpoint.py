"""Checkpoints: one `.pt` file with a network's weights, configuration and vocabulary, and a generator's pool.

Only tensors, strings and numbers are stored and files are read weights-only, so a checkpoint from a stranger is data.
A digest of the content is stored with it, because torch does not check the sums of its own format: a damaged file is
refused.
"""

import copy
import errno
import hashlib
import json
import os
import pickletools
import re
import warnings
import zipfile
from collections.abc import Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import torch
from torch import Tensor

from compgen.data.unimorph import WORDS
from compgen.data.vocabulary import Vocabulary
from compgen.errors import CheckpointError, UserError, tell
from compgen.files import atomic_path
from compgen.models.config import LONGEST
from compgen.models.seeding import undrawn
from compgen.models.trainable import Trainable
from compgen.runtime.bundle import pool_problem, require_finished
from compgen.runtime.manifest import temperature_problem
from compgen.runtime.pool import PrototypePool
from compgen.trained import old
from compgen.trained.architectures import architecture

if TYPE_CHECKING:
    from compgen.csl.grammar_file import GrammarFile

FORMAT = "compgen-checkpoint"
VERSION = 2
UNSEALED = 1  # the version without a digest
KEYS = {"format", "meta", "weights", "pool"}
TABLES = {"kind": str, "sampling": dict, "trained_on": dict}  # of the meta data; opening checks the rest
# What the pickle in such a file names: how a tensor is put together, its numbers' type, and a table of a module.
NAMED = re.compile(r"torch\._utils _rebuild_tensor_v2|torch \w+Storage|collections OrderedDict")
MOST_AGAIN = 12  # lists, tuples and tables: what is written has none, and so many hold at most 4,096 in one
MISFITS = (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, UserError, ValueError)


@dataclass
class Checkpoint:
    """A trained network and what sampling or predicting needs beside it.

    Attributes:
        kind: "generator" or "predictor".
        network: the `Trainable` that its architecture builds.
        vocabulary: of sources and targets together.
        config: the configuration it was trained with, as JSON-able values.
        pool: prototypes and Omega (generators).
        max_length: the most tokens to decode, the end symbol included.
        sampling: defaults for sampling (`temperature`: source half and target half).
        trained_on: name, sizes, seed and the like, for manifest and model card.
    """

    kind: str
    network: Any
    vocabulary: Vocabulary
    config: dict[str, Any]
    max_length: int
    pool: PrototypePool | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    trained_on: dict[str, Any] = field(default_factory=dict)

    @property
    def architecture(self) -> str:
        """The tag of the network's architecture."""
        return str(self.network.architecture)

    def save(self, path: Path) -> None:
        """Write the checkpoint; the file appears whole or not at all."""
        meta = {
            "architecture": self.architecture,
            "kind": self.kind,
            "vocabulary": list(self.vocabulary.tokens),
            "config": self.config,
            "max_length": self.max_length,
            "sampling": self.sampling,
            "trained_on": self.trained_on,
        }
        content: dict[str, Any] = {
            "format": FORMAT,
            "meta": json.dumps(meta, ensure_ascii=False),
            "weights": {name: tensor.cpu().contiguous() for name, tensor in self.network.state_dict().items()},
            "pool": {} if self.pool is None else {name: torch.from_numpy(a) for name, a in self.pool.arrays.items()},
        }
        write_sealed(content, path)

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        """Read a checkpoint of a network. One without a digest is read with a `Remark`.

        Raises:
            CheckpointError: the file is missing, cut short, damaged, of another version, not ours, or of a grammar.
        """
        content, meta, tag = _read_tagged(path)
        if tag == "grammar":
            raise CheckpointError(f"{path}: holds a grammar, expected a network")
        return _checkpoint(path, content, meta, tag)


def load_saved(path: Path) -> "Checkpoint | GrammarFile":
    """Return what a `.pt` file holds: a network, or the grammar of an old checkpoint; raises as `Checkpoint.load`."""
    content, meta, tag = _read_tagged(path)
    if tag != "grammar":
        return _checkpoint(path, content, meta, tag)
    try:
        return old.grammar_of(meta, content["weights"], content["pool"]["tokens"])
    except MISFITS as error:
        raise _misfit(path, error) from error


def _read_tagged(path: Path) -> tuple[dict[str, Any], dict[str, Any], str]:
    """Return a checkpoint's content, its meta data and its architecture's tag."""
    require_finished(path)
    content = read_sealed(path, KEYS)
    if content["format"] != FORMAT:
        raise CheckpointError(f"{path}: not a compgen checkpoint")
    try:
        meta = json.loads(content["meta"])
        for name, kind in TABLES.items():
            if not isinstance(meta.get(name, kind()), kind):
                raise TypeError(f"{name} {meta[name]!r:.40}, expected {'a text' if kind is str else 'a table'}")
        return content, meta, old.tag_of(meta)
    except MISFITS as error:
        raise _misfit(path, error) from error


def _checkpoint(path: Path, content: dict[str, Any], meta: dict[str, Any], tag: str) -> Checkpoint:
    try:
        vocabulary, max_length = Vocabulary(meta["vocabulary"]), int(meta["max_length"])
        network = _network(tag, meta["config"]["network"], len(vocabulary), content["weights"])
        pool = PrototypePool(**{k: v.numpy() for k, v in content["pool"].items()}) if content["pool"] else None
        if not 1 <= max_length <= LONGEST:
            raise ValueError(f"max_length {max_length}, expected 1 to {LONGEST:,}")
        if problem := _problem(meta["kind"], pool, network, len(vocabulary), meta["sampling"]):
            raise ValueError(problem)
        if not isinstance(words := meta["trained_on"].get(WORDS, ""), str):
            raise TypeError(f"trained_on: words {words!r:.40}, expected a text")
        rest = (pool, meta["sampling"], meta["trained_on"])
        return Checkpoint(meta["kind"], network.eval(), vocabulary, meta["config"], max_length, *rest)
    except MISFITS as error:
        raise _misfit(path, error) from error


def _problem(kind: str, pool: PrototypePool | None, network: Any, vocabulary: int, sampling: dict[str, Any]) -> str:
    """Return why a generator cannot be sampled, or a predictor cannot answer, as of a bundle; empty if it can."""
    if (pool is None) == (kind == "generator"):
        return f"a {kind} {'without' if pool is None else 'with'} prototypes"
    if pool is None:
        memories = getattr(network, "memories", 1)
        return "" if memories == 1 else f"a {kind} of {memories} memories, expected 1"
    return pool_problem(pool, network.memories, vocabulary) or temperature_problem(sampling.get("temperature"))


def _misfit(path: Path, error: Exception) -> CheckpointError:
    line = " ".join(str(error).split())[:300]
    return CheckpointError(f"{path}: the checkpoint's content does not fit together: {line}")


@undrawn("cpu")
def _network(tag: str, values: dict[str, Any], vocabulary: int, weights: dict[str, Tensor]) -> Trainable:
    """Return the network that a configuration describes, with its weights.

    The weights' sizes are compared first, so no more memory is asked for than the file has weights.
    """
    entry = architecture(tag)
    config = entry.configuration(values)
    with torch.device("meta"):  # no memory
        described = {name: tensor.shape for name, tensor in entry.build(config, vocabulary).state_dict().items()}
    found = {name: tensor.shape for name, tensor in weights.items()}
    if described != found:
        odd = min(name for name in described | found if described.get(name) != found.get(name))
        sizes = [list(shapes[odd]) if odd in shapes else "none" for shapes in (found, described)]
        raise ValueError(f"weights {odd!r} of sizes {sizes[0]}, by its configuration {sizes[1]}")
    parts = [tensor.untyped_storage() for tensor in weights.values()]
    stored = sum({part.data_ptr(): part.nbytes() for part in parts}.values())
    if (needed := sum(tensor.nbytes for tensor in weights.values())) > stored:
        raise ValueError(f"weights of {needed:,} bytes are stored in {stored:,}: some share their numbers")
    network = entry.build(config, vocabulary)
    network.load_state_dict(weights)
    return network


def write_sealed(content: dict[str, Any], path: Path) -> None:
    """Write a dictionary of tensors, strings and numbers with a digest; the file appears whole or not at all."""
    sealed = {**content, "version": VERSION}
    with atomic_path(path) as temporary, temporary.open("wb") as stream:
        try:
            torch.save({**sealed, "digest": digest(sealed)}, stream)
        except RuntimeError as error:  # torch ends its file before it lets the system's error through
            raise (error.__context__ if isinstance(error.__context__, OSError) else error) from None


def read_sealed(path: Path, keys: set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the dictionary that `write_sealed` wrote, with these keys; raises as `Checkpoint.load`.

    No code in the file is run. A file without a digest is read with a `Remark`.
    """
    content, found = _read(path)
    version = content.get("version", UNSEALED)
    if content.keys() - {"version", "digest"} - optional != keys:
        raise CheckpointError(f"{path}: not a compgen checkpoint")
    if type(version) is not int or version not in (UNSEALED, VERSION):
        raise CheckpointError(f"{path}: checkpoint version {version!r:.20}, this compgen reads {UNSEALED} to {VERSION}")
    said = content.pop("digest", None)
    if version == UNSEALED and said is None:
        tell(f"{path}: it has no digest of its content, so damage cannot be detected")
    elif said != found:
        raise CheckpointError(f"{path}: damaged: its content does not agree with its digest; use another copy")
    return content


def digest(content: dict[str, Any]) -> str:
    """Return the SHA-256, in hexadecimal, of a tree of dictionaries, lists, tensors, strings, numbers and None.

    Raises:
        ValueError: a tensor has more elements than are stored.
    """
    return _digest(content, {}).hex()


def _digest(node: Any, known: dict[int, bytes]) -> bytes:
    """Return the digest of a node, from those of its children; `known` has those of nodes met before, by `id`."""
    if id(node) not in known:
        if isinstance(node, dict):
            kind, parts = "dict", [_digest(child, known) for item in node.items() for child in item]
        elif isinstance(node, list | tuple):
            kind, parts = "list", [_digest(child, known) for child in node]
        elif isinstance(node, Tensor):
            kind, parts = f"{node.dtype} {list(node.shape)}", [_bytes(node)]
        else:
            kind, parts = type(node).__name__, [repr(node).encode("utf-8", "backslashreplace")]
        made = hashlib.sha256(f"{kind} {len(parts)}\n".encode())
        for part in parts:
            made.update(part)
        known[id(node)] = made.digest()
    return known[id(node)]


def _bytes(tensor: Tensor) -> Any:
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ValueError(f"a tensor of sizes {list(tensor.shape)} in {tensor.untyped_storage().nbytes():,} bytes")
    plain = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).flatten()
    return plain.view(torch.uint8).numpy() if len(plain) else b""


def _stored(content: Any) -> int:
    """Return how many bytes the numbers of all tensors in a tree take when each is copied."""
    left, seen, sizes = [content], set[int](), dict[int, int]()
    while left:
        node = left.pop()
        if isinstance(node, dict | list | tuple) and id(node) not in seen:
            seen.add(id(node))
            left += [*node, *node.values()] if isinstance(node, dict) else node
        elif isinstance(node, Tensor):
            sizes[node.untyped_storage()._cdata] = node.untyped_storage().nbytes()
    return sum(sizes.values())


def _name_of(path: Path, stream: BinaryIO) -> str:
    """Return a name of an open file by which torch can map it: one in UTF-8."""
    return str(path) if str(path).isprintable() else f"/dev/fd/{stream.fileno()}"


def _require_plain(pickled: bytes) -> None:
    """Raise ValueError for a pickle that torch's reader would read, but that no checkpoint holds.

    Of what else it may call, some takes any memory: `bytearray(10**12)`. And of tuples, each holding the one before it
    twice, thirty take the reader hours, as their hash does: so few values but names and texts may be used again.
    """
    last, shared, again = "", set[object](), 0
    for operation, argument, _ in pickletools.genops(pickled):
        if operation.name == "GLOBAL" and not NAMED.fullmatch(str(argument)):
            raise ValueError(f"names {argument}")
        if operation.name in ("BINPUT", "LONG_BINPUT"):
            (shared.add if last in ("GLOBAL", "BINUNICODE") else shared.discard)(argument)
        elif operation.name in ("BINGET", "LONG_BINGET") and argument not in shared:
            again += 1
            if again > MOST_AGAIN:
                raise ValueError("uses many values again")
        last = operation.name


def _loaded(path: Path) -> dict[str, Any]:
    """The content of a file that torch.save wrote; ValueError if it would take more memory than the file."""
    with zipfile.ZipFile(path) as packed:  # torch reads older kinds of files, too, which say less of their sizes
        entries = packed.infolist()
        if sum(entry.file_size for entry in entries) > path.stat().st_size:
            raise ValueError("compressed")
        for entry in entries:
            if entry.filename.endswith(".pkl"):
                _require_plain(packed.read(entry))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the message of `_read` says it
        with path.open("rb") as stream:
            mapped = torch.load(_name_of(path, stream), map_location="cpu", weights_only=True, mmap=True)
    if _stored(mapped) > path.stat().st_size:  # the numbers of one tensor may lie in those of another
        raise ValueError("overlapping")
    return copy.deepcopy(mapped)  # from the map, which would change with the file


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """Return the content of a checkpoint, and its digest. It takes no more memory than the file."""
    if path.exists() and not path.is_file() and not path.is_dir():
        raise CheckpointError(f"{path}: a pipe or a device, expected a checkpoint file")
    try:
        content = _loaded(path)
        return content, digest({key: value for key, value in content.items() if key != "digest"})
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise CheckpointError(f"{path}: a folder, expected a checkpoint file") from error
    except PermissionError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from error
    except Exception as error:  # the reader of a file that is no checkpoint may stumble over anything
        if isinstance(error, MemoryError) or (
            isinstance(error, RuntimeError | OSError) and os.strerror(errno.ENOMEM) in str(error)
        ):
            raise
        if path.suffix == ".grammar":
            raise CheckpointError(f"{path}: a grammar, expected a network's checkpoint (.pt)") from error
        raise CheckpointError(
            f"{path}: not a checkpoint, or cut short; expected a file that `cgen train` wrote"
        ) from error
