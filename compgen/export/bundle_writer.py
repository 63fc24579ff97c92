"""From a trained model to a bundle: assembled in a temporary folder, verified, described, then moved to its place."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from pydantic import ValidationError

from compgen.errors import BundleError, UserError
from compgen.export.assemble import seal
from compgen.export.card import card
from compgen.export.verify import at_batches
from compgen.files import as_utf8, atomic_path, check_replaceable, reading, writing
from compgen.runtime.bundle import resolve
from compgen.runtime.manifest import CARD, FORMAT, MANIFEST, Manifest, first_problem, strict_json
from compgen.trained.architectures import read_saved


@dataclass(frozen=True)
class Options:
    """Options of `export` for the exporter of an architecture."""

    batches: Mapping[int, int]
    torchscript: bool | None = None
    int8: bool = False
    quiet: bool = False


def export(
    checkpoint_path: Path,
    out: Path,
    *,
    batches: Mapping[int, int] | None = None,
    torchscript: bool | None = None,
    int8: bool = False,
    quiet: bool = False,
) -> Manifest:
    """Export a trained model to the folder `out`, verified; a bundle already there is replaced.

    Args:
        checkpoint_path: a checkpoint (`.pt`) or a grammar (`.grammar`).
        out: the bundle's folder.
        batches: how many samples to verify with by size of batch, both 1 or more; by default `verify.at_batches()`.
        torchscript: whether to write the TorchScript file, which is a quarter of the bundle and takes nearly half of
            the time of verifying. By default it is written, except with `int8`, which has none.
        int8: whether large products are in 8-bit integers. Such a bundle is verified against itself, and its distance
            from the checkpoint is measured, as it is not meant to be equal to it.
        quiet: without progress.

    Returns:
        The manifest, whose `parity` says what was measured.

    Raises:
        CheckpointError: the file cannot be read.
        UserError: `batches` are others.
        BundleError: the export does not compute what the checkpoint does, `out` is or holds something else than a
            bundle, an option does not apply to the architecture, or it has no bundle.
    """
    batches = at_batches() if batches is None else batches
    _require_counts(batches)
    with reading(checkpoint_path):
        _require_no_bundle(checkpoint_path)
    _require_replaceable(out)
    entry, _, saved = read_saved(checkpoint_path)
    if entry.exporter is None:
        raise BundleError(f"{checkpoint_path}: a {entry.tag} model has no bundle: it runs in torch, by transformers")
    write = import_module(entry.exporter).write_bundle
    options = Options(batches, torchscript, int8, quiet)
    with atomic_path(out, directory=True) as folder:
        try:
            manifest: Manifest = write(saved, folder, options)
        except ValidationError as error:
            raise BundleError(f"{checkpoint_path}: beyond what a bundle may hold: {first_problem(error)}") from error
        except RuntimeError as error:
            if "2GiB limit" not in str(error):
                raise
            limit = "a graph of ONNX has at most 2 GiB, also in float64, to be verified: use the checkpoint itself"
            raise BundleError(f"{checkpoint_path}: too large for a bundle: {limit}") from error
        manifest = seal(folder, manifest)  # the card says how large the bundle is, and is part of it
        (folder / CARD).write_text(card(manifest, as_utf8(out.resolve().name)), "utf-8")
        return seal(folder, manifest)


def _require_counts(batches: object) -> None:
    """Raise UserError unless there are sizes of batches with numbers of samples: else nothing would be verified."""
    counts = [count for pair in batches.items() for count in pair] if isinstance(batches, Mapping) else []
    if not counts or not all(type(count) is int and count >= 1 for count in counts):
        raise UserError(
            f"batches: found {batches!r:.80}, expected numbers of samples by sizes of batches, all 1 or more, for "
            "instance {1: 100, 64: 1000}"
        )


def _require_no_bundle(path: Path) -> None:
    """Raise BundleError for what is a bundle already, by its folder or by the name that it comes with."""
    try:
        folder = resolve(path)
    except UserError:  # a checkpoint, or nothing
        return
    if (folder / MANIFEST).is_file():
        raise BundleError(f"{path}: a bundle already, expected a checkpoint (.pt) or a grammar (.grammar)")


def _require_replaceable(out: Path) -> None:
    """Exporting replaces a bundle, and must not delete anything else: another's folder, or what was put into ours."""
    check_replaceable(out)
    with writing(out):
        free = not out.exists() or (out.is_dir() and not any(out.iterdir()))
    if free:
        return
    try:
        manifest = dict(strict_json((out / MANIFEST).read_bytes()))
        listed = dict(manifest["files"])
    except (OSError, ValueError, TypeError, KeyError):
        manifest, listed = {}, {}
    if manifest.get("format") != FORMAT:
        raise BundleError(f"{out}: exists and is not a bundle: choose another name")
    others = sorted(entry.name for entry in out.iterdir() if entry.name != MANIFEST and entry.name not in listed)
    if others:
        raise BundleError(f"{out}: holds {', '.join(others[:3])}, too: a bundle is replaced as a whole, move that")
