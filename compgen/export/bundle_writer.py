"""From a checkpoint to a bundle: assembled in a temporary folder, verified, described, then moved to its place."""

import json
from collections.abc import Mapping
from pathlib import Path

from compgen.csl.backend import GrammarBackend
from compgen.errors import BundleError
from compgen.export import grammar, transformer
from compgen.export.assemble import assemble, seal
from compgen.export.card import card
from compgen.export.golden_draws import answers_of, draws_of, draws_of_grammar, write_golden
from compgen.export.int8 import approximate, verify_approximate
from compgen.export.verify import at_batches, verify
from compgen.files import atomic_path
from compgen.models.rules import RuleTables
from compgen.models.transformer import Transformer
from compgen.runtime.manifest import CARD, FORMAT, MANIFEST, SCRIPT, Manifest
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.runtime.onnx_transformer import OnnxTransformer
from compgen.runtime.predict import Recurrent
from compgen.trained.opening import bundled_grammar, is_pretrained
from compgen.training.checkpoint import Checkpoint


def export(
    checkpoint_path: Path,
    out: Path,
    *,
    batches: Mapping[int, int] | None = None,
    torchscript: bool | None = None,
    int8: bool = False,
    quiet: bool = False,
) -> Manifest:
    """Export a checkpoint to the folder `out`, verified; a bundle already there is replaced.

    Args:
        checkpoint_path: a `.pt` file of training.
        out: the bundle's folder.
        batches: in which batches to verify, and with how many samples each; `verify.at_batches()` if not given.
        torchscript: keep the TorchScript file; it is a quarter of the bundle. It is verified either way. Kept if not
            given, but for int8, which has none.
        int8: large products in 8-bit integers. The bundle is then verified against itself, and measured against the
            checkpoint, whose equal it is not meant to be.
        quiet: without progress.

    Returns:
        The manifest, whose `parity` says what was measured.

    Raises:
        CheckpointError: the checkpoint cannot be read.
        BundleError: the export does not compute what the checkpoint does, `out` is or holds something else than a
            bundle, or the checkpoint cannot be had in int8 or is a pretrained model.
    """
    if int8 and torchscript:
        raise BundleError("int8 is for ONNX Runtime alone: an int8 bundle has no TorchScript")
    _require_replaceable(out)
    if is_pretrained(checkpoint_path):
        raise BundleError(f"{checkpoint_path}: a pretrained model has no bundle: it runs in torch, by transformers")
    checkpoint = Checkpoint.load(checkpoint_path)
    if isinstance(checkpoint.network, Transformer) and (int8 or torchscript):
        raise BundleError("a Transformer is exported to ONNX in float32 alone: leave out int8 and torchscript")
    if isinstance(checkpoint.network, RuleTables) and (int8 or torchscript):
        raise BundleError("a grammar is exported as rules and arrays: leave out int8 and torchscript")
    with atomic_path(out, directory=True) as folder:
        approximation = None
        if isinstance(checkpoint.network, Transformer):
            bundle = transformer.assemble(checkpoint, checkpoint.network, folder)
            parity = transformer.verify(checkpoint, bundle, batches or at_batches(), quiet=quiet)
            write_golden(folder, answers_of(bundle, OnnxTransformer(bundle, provider="cpu")))
            return _described(folder, bundle.manifest.model_copy(update={"parity": parity}), out)
        if isinstance(checkpoint.network, RuleTables):
            bundle = grammar.assemble(checkpoint, folder)
            parity = grammar.verify(checkpoint, bundle, batches or at_batches())
            backend = GrammarBackend(bundled_grammar(bundle), checkpoint.vocabulary)
            write_golden(folder, draws_of_grammar(backend, backend.trained.drawing.temperature))
            return _described(folder, bundle.manifest.model_copy(update={"parity": parity}), out)
        bundle = assemble(checkpoint, folder)
        if int8:
            bundle = approximate(checkpoint, bundle)
            parity, approximation = verify_approximate(checkpoint, bundle, batches or at_batches(), quiet=quiet)
        else:
            parity = verify(checkpoint, bundle, batches or at_batches(), quiet=quiet)
            if torchscript is False:
                (folder / SCRIPT).unlink()
        onnx = OnnxBackend(bundle, provider="cpu")
        generates = checkpoint.kind == "generator"
        write_golden(folder, draws_of(bundle, onnx) if generates else answers_of(bundle, Recurrent(onnx)))
        measured = {"parity": parity, "approximation": approximation}
        return _described(folder, bundle.manifest.model_copy(update=measured), out)


def _described(folder: Path, manifest: Manifest, out: Path) -> Manifest:
    """Write the card, which tells how large the bundle is and is part of it, and the manifest."""
    manifest = seal(folder, manifest)
    (folder / CARD).write_text(card(manifest, out.resolve().name), "utf-8")
    return seal(folder, manifest)


def _require_replaceable(out: Path) -> None:
    """Exporting replaces a bundle, and must not delete anything else: another's folder, or what was put into ours."""
    if not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        manifest = dict(json.loads((out / MANIFEST).read_text(encoding="utf-8")))
        listed = dict(manifest["files"])
    except (OSError, ValueError, TypeError, KeyError):
        manifest, listed = {}, {}
    if manifest.get("format") != FORMAT:
        raise BundleError(f"{out}: exists and is not a bundle: choose another name")
    others = sorted(entry.name for entry in out.iterdir() if entry.name != MANIFEST and entry.name not in listed)
    if others:
        raise BundleError(f"{out}: holds {', '.join(others[:3])}, too: a bundle is replaced as a whole, move that")
