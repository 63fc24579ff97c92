"""Checkpoints: one `.pt` file with weights, configuration, vocabulary and, for generators, the prototype pool.

Only tensors, strings and numbers are stored and files are read weights-only, so a checkpoint from a stranger is data.
A digest of the content is stored with it, because torch does not look at the check sums of its own format: a damaged
file is refused.
"""

import copy
import hashlib
import json
import warnings
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from compgen.data.vocabulary import Vocabulary
from compgen.errors import CheckpointError, Remark, UserError
from compgen.files import atomic_path
from compgen.models.build import AnyNetwork, build, described
from compgen.models.config import LONGEST
from compgen.models.network import Network
from compgen.models.rules import RuleTables
from compgen.runtime.pool import PrototypePool

FORMAT = "compgen-checkpoint"
VERSION = 2
UNSEALED = 1  # the version before there was a digest
KEYS = {"format", "meta", "weights", "pool"}


@dataclass
class Checkpoint:
    """A trained network, or the tables of a grammar, with all that sampling or predicting from it needs.

    Attributes:
        kind: "generator" or "predictor".
        network: the weights, as a module.
        vocabulary: of sources and targets together.
        config: the configuration it was trained with, as JSON-able values.
        pool: prototypes and Omega (generators).
        max_length: the most tokens to decode, the end symbol included.
        sampling: defaults for sampling (`temperature`: source half and target half).
        trained_on: name, sizes, seed and the like, for manifest and model card.
    """

    kind: str
    network: AnyNetwork | RuleTables
    vocabulary: Vocabulary
    config: dict[str, Any]
    max_length: int
    pool: PrototypePool | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    trained_on: dict[str, Any] = field(default_factory=dict)

    @property
    def recurrent(self) -> Network:
        """The network of a generator, or of a recurrent predictor.

        Raises:
            CheckpointError: it is something else.
        """
        if not isinstance(self.network, Network):
            what = "grammar" if isinstance(self.network, RuleTables) else "Transformer"
            raise CheckpointError(f"the checkpoint holds a {what}: expected a recurrent network")
        return self.network

    def save(self, path: Path) -> None:
        """Write the checkpoint; the file appears whole or not at all."""
        meta = {
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
            "pool": {} if self.pool is None else {name: torch.from_numpy(a) for name, a in vars(self.pool).items()},
        }
        write_sealed(content, path)

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        """Read a checkpoint. One of before there was a digest is read with a `Remark`.

        Raises:
            CheckpointError: the file is missing, cut short, damaged, of another version, or not ours.
        """
        content = read_sealed(path, KEYS)
        if content["format"] != FORMAT:
            raise CheckpointError(f"{path}: not a compgen checkpoint")
        try:
            meta = json.loads(content["meta"])
            vocabulary = Vocabulary(meta["vocabulary"])
            network = _network(meta["config"]["network"], len(vocabulary), content["weights"])
            pool = PrototypePool(**{k: _array(v) for k, v in content["pool"].items()}) if content["pool"] else None
            max_length = int(meta["max_length"])
            if not 1 <= max_length <= LONGEST:
                raise ValueError(f"max_length {max_length}, expected 1 to {LONGEST:,}")
            return cls(
                meta["kind"],
                network.eval(),
                vocabulary,
                meta["config"],
                max_length,
                pool,
                meta["sampling"],
                meta["trained_on"],
            )
        except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, UserError, ValueError) as error:
            raise CheckpointError(f"{path}: the checkpoint's content does not fit together: {_line(error)}") from error


def _network(config: dict[str, Any], vocabulary: int, weights: dict[str, Tensor]) -> AnyNetwork | RuleTables:
    """The network that a configuration describes, with its weights.

    Raises:
        ValueError: the weights are of another network. So no more memory is asked for than the file has weights.
    """
    with torch.device("meta"):  # no memory
        described = {name: tensor.shape for name, tensor in _empty(config, vocabulary).state_dict().items()}
    found = {name: tensor.shape for name, tensor in weights.items()}
    if described != found:
        odd = min(name for name in described | found if described.get(name) != found.get(name))
        sizes = [list(shapes[odd]) if odd in shapes else "none" for shapes in (found, described)]
        raise ValueError(f"weights {odd!r} of sizes {sizes[0]}, by its configuration {sizes[1]}")
    network = _empty(config, vocabulary)
    network.load_state_dict(weights)
    return network


def _empty(config: dict[str, Any], vocabulary: int) -> AnyNetwork | RuleTables:
    return RuleTables(**config) if "rules" in config else build(described(config), vocabulary)


def write_sealed(content: dict[str, Any], path: Path) -> None:
    """Write a dictionary of tensors, strings and numbers with a digest; the file appears whole or not at all."""
    sealed = {**content, "version": VERSION}
    with atomic_path(path) as temporary:
        torch.save({**sealed, "digest": digest(sealed)}, temporary)


def read_sealed(path: Path, keys: set[str]) -> dict[str, Any]:
    """What `write_sealed` wrote: a dictionary with these keys. No code in the file is ever run.

    A file of before there was a digest is read with a `Remark`.

    Raises:
        CheckpointError: the file is missing, cut short, damaged, of another version, or not ours.
    """
    content, found = _read(path)
    version = content.get("version", UNSEALED)
    if content.keys() - {"version", "digest"} != keys:
        raise CheckpointError(f"{path}: not a compgen checkpoint")
    if type(version) is not int or version not in (UNSEALED, VERSION):
        raise CheckpointError(f"{path}: checkpoint version {version!r:.20}, this compgen reads {UNSEALED} to {VERSION}")
    said = content.pop("digest", None)
    if version == UNSEALED and said is None:
        warnings.warn(f"{path}: it has no digest of its content, so damage cannot be seen", Remark, stacklevel=3)
    elif said != found:
        raise CheckpointError(f"{path}: damaged: its content does not agree with its digest; use another copy")
    return content


def digest(content: dict[str, Any]) -> str:
    """The SHA-256, in hexadecimal, of a tree of dictionaries, lists, tensors, strings, numbers and None.

    Raises:
        ValueError: a tensor has more elements than are stored.
    """
    return _digest(content, {}).hex()


def _digest(node: Any, known: dict[int, bytes]) -> bytes:
    """The digest of a node, from those of its children; `known` has those of nodes met before, by their `id`."""
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
    """The bytes of a tensor's elements."""
    if tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ValueError(f"a tensor of sizes {list(tensor.shape)} in {tensor.untyped_storage().nbytes():,} bytes")
    plain = tensor.detach().cpu().clone(memory_format=torch.contiguous_format).flatten()
    return plain.view(torch.uint8).numpy() if len(plain) else b""


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """A dictionary of tensors, strings and numbers from a file that torch.save wrote, and the digest of its content.

    What is read needs no more memory than the file has bytes.
    """
    if path.exists() and not path.is_file() and not path.is_dir():
        raise CheckpointError(f"{path}: a pipe or a device, expected a checkpoint file")
    try:
        with zipfile.ZipFile(path) as packed:  # torch reads older kinds of files, too, which say less of their sizes
            if sum(entry.file_size for entry in packed.infolist()) > path.stat().st_size:
                raise ValueError("compressed")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # our message says it
            mapped = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        content = copy.deepcopy(mapped)  # from the map, which would change with the file, into memory
        return content, digest({key: value for key, value in content.items() if key != "digest"})
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise CheckpointError(f"{path}: a folder, expected a checkpoint file") from error
    except Exception as error:  # the reader of a file that is no checkpoint may stumble over anything
        raise CheckpointError(f"{path}: not a checkpoint, or cut short ({type(error).__name__})") from error


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array
