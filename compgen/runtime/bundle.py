"""The bundle: a folder that holds an exported model and everything that running it needs, torch excepted.

A bundle may come from a stranger, and opening it must read nothing else and run nothing. So the manifest is checked
field by field (`runtime.manifest`), every file against its size and SHA-256, graphs for what could lead out of them
(`runtime.sealed`), the pool against the vocabulary; and each file is read once: what was checked is what is used.
"""

import hashlib
import math
import os
import stat
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from compgen.data.vocabulary import EOS_ID, PAD_ID, Vocabulary
from compgen.errors import BundleError, CheckpointError, DataError
from compgen.runtime.manifest import (
    FORMAT,
    MANIFEST,
    POOL,
    STEP_WEIGHTS,
    VERSION,
    VOCABULARY,
    FileEntry,
    Manifest,
    TransformerSizes,
    first_problem,
    strict_json,
)
from compgen.runtime.pool import PrototypePool
from compgen.runtime.sealed import require_sealed

PACKAGE = Path(__file__).parents[1]
LARGEST_MANIFEST = 1 << 24  # bytes
# Matrices of a recurrent network's step, which may be integers.
MATRICES = ("state_gates", "combine", "project", "state_queries")
MOST_WEIGHT = 64  # in integers: processors may add two products in 16 bits, see `export.integers`
MOST_DEPTH = 1 << 15  # rows of a matrix in integers, so that no sum leaves 32 bits

Sizes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Bundle:
    """A bundle whose files were read and checked."""

    path: Path  # the folder
    manifest: Manifest
    files: dict[str, bytes]  # the content of every file that the manifest lists, by name
    vocabulary: list[str]  # tokens in the order of their ids
    pool: PrototypePool | None  # prototypes and which go together; None for a predictor
    identity: str  # the manifest's SHA-256; the manifest holds those of all other files

    @classmethod
    def load(cls, path: str | Path) -> "Bundle":
        """Read and check a bundle: a folder, or the name of one that comes with the product.

        Raises:
            BundleError: the folder is missing, not a bundle, of another version, cut short, altered, or could make a
                runtime read anything but its files.
        """
        folder = resolve(Path(path))
        content = _manifest_content(folder)
        manifest = _manifest(folder / MANIFEST, content)
        files = {name: _content(folder, name, entry) for name, entry in manifest.files.items()}
        for name in manifest.graphs:
            require_sealed(str(folder / name), files[name])
        vocabulary = _vocabulary(folder / VOCABULARY, files[VOCABULARY])
        pool = None
        if manifest.kind == "generator":
            pool = _pool(folder / POOL, files[POOL], manifest.prototypes, len(vocabulary))
        if STEP_WEIGHTS in files and manifest.architecture != "grammar":
            _check_step_weights(folder / STEP_WEIGHTS, files[STEP_WEIGHTS], manifest, len(vocabulary))
        return cls(folder, manifest, files, vocabulary, pool, hashlib.sha256(content).hexdigest())

    def file(self, name: str) -> bytes:
        """Return the content of a file; raises BundleError if the manifest does not list it."""
        if name not in self.files:
            raise BundleError(f"{self.path}: lists no {name}")
        return self.files[name]

    def require_same(self) -> None:
        """Raise BundleError if the folder holds no bundle by now, or another one."""
        self.require_identity(hashlib.sha256(_manifest_content(self.path)).hexdigest())

    def require_identity(self, identity: str) -> None:
        """Raise BundleError for the identity of another bundle, of which one was opened before or after this one."""
        if identity != self.identity:
            raise BundleError(f"{self.path}: found another bundle than was opened there: open it again")

    def text(self, name: str) -> str:
        """Return the content of a text file; raises as `file`, and for what is not UTF-8."""
        try:
            return self.file(name).decode("utf-8")
        except UnicodeDecodeError as error:
            raise BundleError(f"{self.path / name}: not UTF-8: {_line(error)}") from error


def resolve(path: Path) -> Path:
    """Return the folder that `path` names: itself, or the shipped bundle of that name."""
    if path.is_dir():
        return path
    if path.exists():
        require_finished(path)
        if path.suffix in (".pt", ".grammar"):
            raise BundleError(f"{path}: a model that is not exported, expected a bundle: `cgen export` makes one of it")
        raise BundleError(f"{path}: a file, expected a model: a bundle's folder, a checkpoint (.pt) or a .grammar")
    homes = (PACKAGE / "exported", PACKAGE.parent / "exported")
    for home in homes:
        named = path.name and path.parent in (Path(), Path("exported"))
        if named and (home / path.name / MANIFEST).is_file():
            return home / path.name
    shipped = sorted({entry.parent.name for home in homes for entry in home.glob(f"*/{MANIFEST}")})
    come = f", or the name of one that comes with compgen: {', '.join(shipped)}" if shipped else ""
    raise BundleError(f"{path}: no such bundle; expected a bundle's folder{come}")


def require_finished(path: Path) -> None:
    """Raise CheckpointError, which says what to do, for the file in which an interrupted training is kept."""
    out = path.with_suffix("")
    if path.suffix == ".partial" and out.suffix in (".pt", "") and path.is_file():
        done = f"; {out} is of another one, which was finished" if out.exists() else ""
        raise CheckpointError(
            f"{path}: an interrupted training, expected a model: the same command with --resume goes on with it, and "
            f"writes {out}{done}"
        )


def arrays_of(path: Path, data: bytes) -> dict[str, "np.ndarray[Any, Any]"]:
    """Return the arrays in a file's content, by name; raises BundleError if it holds none."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        return load(data)
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:  # of types that numpy has not
        raise BundleError(f"{path}: not a file of arrays: {_line(error)}") from error


def read_within(path: Path, most: int) -> bytes:
    """Return at most `most` + 1 bytes of a plain file; raises OSError for a link, or anything else."""
    # Without O_NONBLOCK, opening a pipe would wait for its writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("not a plain file")
        return stream.read(min(most, status.st_size) + 1)  # Python takes memory for all that it is asked to read


def _manifest_content(folder: Path) -> bytes:
    path = folder / MANIFEST
    try:
        content = read_within(path, LARGEST_MANIFEST)
    except FileNotFoundError as error:
        inner = folder / "bundle"  # of a comparison's folder
        hint = f"; {inner} is one" if (inner / MANIFEST).is_file() else ""
        raise BundleError(f"{folder}: not a bundle: it has no {MANIFEST}{hint}") from error
    except PermissionError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error
    except OSError as error:
        raise BundleError(f"{path}: cannot be read: expected a plain file, no link") from error
    if len(content) > LARGEST_MANIFEST:
        raise BundleError(f"{path}: more than {LARGEST_MANIFEST:,} bytes")
    return content


def _manifest(path: Path, data: bytes) -> Manifest:
    content = _json(path, data)
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise BundleError(f"{path}: format {found!r:.80}, expected {FORMAT!r}")
    if content.get("version") != VERSION:
        raise BundleError(f"{path}: bundle version {content.get('version')!r:.80}, this compgen reads {VERSION}")
    try:
        manifest = Manifest.model_validate(content)
    except ValidationError as error:
        raise BundleError(f"{path}: {_line(first_problem(error))}") from error
    if problem := manifest.graph_problem():
        raise BundleError(f"{path}: {problem}")
    return manifest


def _json(path: Path, data: bytes) -> Any:
    try:
        return strict_json(data)
    except ValueError as error:
        raise BundleError(f"{path}: cannot be read: {_line(error)}") from error


def _content(folder: Path, name: str, entry: FileEntry) -> bytes:
    path = folder / name
    try:
        content = read_within(path, entry.size)
    except PermissionError as error:
        raise BundleError(f"{path}: cannot be read: {error.strerror}") from error
    except OSError as error:
        raise BundleError(f"{path}: missing or a link, expected a plain file of {entry.size:,} bytes") from error
    if len(content) != entry.size:
        size = path.stat().st_size
        raise BundleError(f"{path}: {size:,} bytes, expected {entry.size:,}: cut short or altered")
    found = hashlib.sha256(content).hexdigest()
    if found != entry.sha256:
        raise BundleError(f"{path}: altered: SHA-256 {found[:16]}…, expected {entry.sha256[:16]}…")
    return content


def _vocabulary(path: Path, data: bytes) -> list[str]:
    tokens = _json(path, data)
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BundleError(f"{path}: expected a list of strings")
    try:
        Vocabulary(tokens)
    except DataError as error:
        raise BundleError(f"{path}: {_line(error)}") from error
    return tokens


def _pool(path: Path, data: bytes, prototypes: int, vocabulary: int) -> PrototypePool:
    arrays = arrays_of(path, data)
    names = [field.name for field in fields(PrototypePool)]
    if odd := sorted(set(arrays) - set(names)):
        raise BundleError(f"{path}: has an array {odd[0]}, which is not expected here")
    if missing := [name for name in names if name not in arrays]:
        raise BundleError(f"{path}: has no array {missing[0]}")
    if arrays["tokens"].dtype in (np.uint8, np.uint16):  # as small as the vocabulary allows
        arrays["tokens"] = arrays["tokens"].astype(np.int32)
    pool = PrototypePool(**arrays)
    if problem := pool_problem(pool, prototypes, vocabulary):
        raise BundleError(f"{path}: {problem}")
    return pool


def pool_problem(pool: PrototypePool, prototypes: int, vocabulary: int) -> str:
    """Return what would make sampling read outside an array; empty if nothing would."""
    wanted = {"tokens": (2, "int32"), "members": (1, "int32"), "starts": (2, "int64"), "counts": (2, "int64")}
    for name, (rank, dtype) in wanted.items():
        array = getattr(pool, name)
        if (array.ndim, str(array.dtype)) != (rank, dtype):
            return f"{name} is {array.dtype} of rank {array.ndim}, expected {dtype} of rank {rank}"
    if pool.starts.shape != pool.counts.shape or pool.prototypes != prototypes:
        return f"starts {pool.starts.shape} and counts {pool.counts.shape}, expected {prototypes} prototypes in both"
    if _outside(pool.tokens, vocabulary):
        return f"token ids outside the vocabulary of {vocabulary}"
    if _outside(pool.members, len(pool.tokens)):
        return f"members outside the {len(pool.tokens)} sequences"
    if not (pool.tokens == EOS_ID).any(axis=1).all():
        return "a sequence without its end symbol"
    padding = pool.tokens == PAD_ID
    if (padding[:, :-1] & ~padding[:, 1:]).any():
        return "a sequence that goes on after its padding"
    if pool.too_large:
        return f"more than 2^53 tuples of {prototypes} prototypes"
    if prototypes and not len(pool.starts):
        return "no prototypes go together"
    groups_fit = (pool.starts >= 0) & (pool.counts >= 1) & (pool.starts <= len(pool.members) - pool.counts)
    if prototypes and not groups_fit.all():
        return f"groups outside the {len(pool.members)} members"
    return ""


def _outside(ids: "np.ndarray[Any, Any]", size: int) -> bool:
    return bool(ids.size and (ids.min() < 0 or ids.max() >= size))


def _check_step_weights(path: Path, data: bytes, manifest: Manifest, vocabulary: int) -> None:
    """Refuse weights of our own step that are not those of this network, or not finite; see `export.step_weights`."""
    arrays = arrays_of(path, data)
    if manifest.shape is None:
        wanted, types = _weights_of_transformer(path.parent / MANIFEST, manifest, vocabulary, arrays)
    else:
        wanted, types = _weights_of_recurrent(path, manifest, vocabulary, arrays)
    for name, sizes in wanted.items():
        array = arrays.get(name)
        if array is None or array.shape != sizes or str(array.dtype) != types[name]:
            raise BundleError(f"{path}: {name}: expected {types[name]} of {' x '.join(map(str, sizes))}")
        if not np.isfinite(array).all():
            raise BundleError(f"{path}: {name} has numbers that are not finite")
        if name.endswith(".int8") and array.size and max(array.max(), -int(array.min())) > MOST_WEIGHT:
            raise BundleError(f"{path}: {name} has numbers beyond {MOST_WEIGHT}")


def _weights_of_recurrent(
    path: Path, manifest: Manifest, vocabulary: int, arrays: dict[str, "np.ndarray[Any, Any]"]
) -> tuple[Sizes, dict[str, str]]:
    """Shapes and types. A matrix may stand in 8-bit integers, as `name.int8`, `name.levels` and `name.scales`."""
    shape = manifest.decoder
    real, h, f, v = str(np.dtype(shape.dtype)), shape.hidden, shape.output, vocabulary
    n, a, k = manifest.prototypes, manifest.attention, manifest.config["network"]["positions"]
    s = (f if manifest.config["network"]["feed"] else 0) + h
    sizes: Sizes = {"token_gates": (v, 4 * h), "state_gates": (s, 4 * h), "combine": (h + n * a, f)}
    sizes |= {"combine_bias": (f,), "project": (f, v), "project_bias": (v,)}
    if n:
        sizes |= {"token_queries": (v, n * a), "state_queries": (s, n * a)}
    if n and k:
        sizes |= {"position_values": (n, 2 * k + 1, a), "position_keys": (n, a, 2 * k + 1)}
    wanted: Sizes = {}
    types: dict[str, str] = {}
    for name, extent in sizes.items():
        if f"{name}.int8" not in arrays or name not in MATRICES:
            wanted[name], types[name] = extent, real
            continue
        if extent[0] > MOST_DEPTH:
            raise BundleError(f"{path}: {name} is too large for integers")
        wanted |= {f"{name}.levels": extent[:1], f"{name}.int8": extent, f"{name}.scales": extent[1:]}
        types |= {f"{name}.levels": real, f"{name}.int8": "int8", f"{name}.scales": "float32"}
    return wanted, types


def _weights_of_transformer(
    path: Path, manifest: Manifest, v: int, arrays: dict[str, "np.ndarray[Any, Any]"]
) -> tuple[Sizes, dict[str, str]]:
    """Shapes and types; raises BundleError for sizes that the manifest, at `path`, does not have.

    A matrix may stand in 8-bit integers, as `name.int8` and `name.scales`.
    """
    try:
        sizes = TransformerSizes.model_validate(manifest.config.get("network"))
    except ValidationError as error:
        raise BundleError(f"{path}: {_line(first_problem(error, 'config.network'))}") from error
    n, h, d, k = sizes.layers, sizes.heads, sizes.size, sizes.relative
    matrices: Sizes = {"project": (d, v)}
    of_layers: Sizes = {
        "attend": (d, 3, h, d // h),
        "mix": (d, d),
        "expand": (d, sizes.inner),
        "contract": (sizes.inner, d),
    }
    wanted: Sizes = {"embedding": (v, d), "source_embedding": (v, d), "positioned": (v,)}
    if not k:
        wanted["frequency"] = (d // 2,)
    sides: dict[str, Sizes] = {
        "encoder": {},
        "decoder": {"remember": (d, 2 * d), "query": (d, d), "across_mix": (d, d)},
    }
    for side, others in sides.items():
        for layer in range(n):
            matrices |= {f"{side}.{layer}.{name}": shape for name, shape in (of_layers | others).items()}
            if k:
                wanted[f"{side}.{layer}.distances"] = (h, 2 * k + 1, d // h)
    integers: dict[str, str] = {"positioned": "int8"}
    for name, shape in matrices.items():
        columns = (math.prod(shape[1:]),)
        wanted[f"{name}_bias"] = columns
        if f"{name}.int8" not in arrays:
            wanted[name] = shape
            continue
        if shape[0] > MOST_DEPTH:
            raise BundleError(f"{path.with_name(STEP_WEIGHTS)}: {name} is too large for integers")
        wanted |= {f"{name}.int8": shape, f"{name}.scales": columns}
        integers |= {f"{name}.int8": "int8", f"{name}.scales": "float32"}
    return wanted, dict.fromkeys(wanted, manifest.dtype) | integers


def _line(error: object) -> str:
    return " ".join(str(error).split())[:160]
