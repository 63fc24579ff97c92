"""The files of a bundle: graphs, weights, vocabulary, pool and manifest."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from compgen import __version__
from compgen.csl.grammar_file import GrammarFile
from compgen.errors import BundleError
from compgen.export.onnx_graphs import write_graphs
from compgen.export.step_weights import own_step, step_weights
from compgen.export.torchscript import write_script
from compgen.files import sha256
from compgen.models.cuda_graph import latent_of
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import (
    MANIFEST,
    POOL,
    SCRIPT,
    STEP_WEIGHTS,
    VOCABULARY,
    Approximation,
    FileEntry,
    Manifest,
    Parity,
)
from compgen.trained.architectures import architecture
from compgen.trained.checkpoint import Checkpoint

HALVES = {"generator": 0, "predictor": 1}  # the half that decoding begins in


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest, with the size and hash of every other file; return it."""
    files = {
        path.name: FileEntry(sha256=sha256(path), size=path.stat().st_size)
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST
    }
    manifest = manifest.model_copy(update={"files": files})
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", "utf-8")
    return manifest


def write_manifest(saved: Checkpoint | GrammarFile, folder: Path, **fields: Any) -> Bundle:
    """Write the vocabulary and the manifest, with further `fields`, of a bundle whose other files are written.

    Returns:
        The bundle, whose manifest has no parity yet.
    """
    vocabulary = list(saved.vocabulary.tokens)
    (folder / VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False, indent=0) + "\n", "utf-8")
    known = {
        "compgen": __version__,
        "kind": saved.kind,
        "architecture": saved.architecture,
        "trained_on": saved.trained_on,
        "files": {},
        "parity": [],
    }
    seal(folder, Manifest.model_validate(known | fields))
    return Bundle.load(folder)


def settings_of(checkpoint: Checkpoint) -> dict[str, Any]:
    """The fields of a manifest that say how a network is run."""
    # An old checkpoint lacks settings that came after it. The C++ runner reads some: all are written as they are used.
    network = architecture(checkpoint.architecture).configuration(checkpoint.config["network"])
    return {
        "config": checkpoint.config | {"network": network.model_dump(mode="json")},
        "max_length": checkpoint.max_length,
        "sampling": {"temperature": [0.0, 0.0]} | checkpoint.sampling,
    }


def measured(bundle: Bundle, parity: list[Parity], approximation: Approximation | None) -> Bundle:
    """The bundle with what was measured in its manifest, which decides about its golden draws; writes no file."""
    manifest = bundle.manifest.model_copy(update={"parity": parity, "approximation": approximation})
    return replace(bundle, manifest=manifest)


def assemble(checkpoint: Checkpoint, folder: Path, *, script: bool = True) -> Bundle:
    """Write graphs, vocabulary and pool of a checkpoint to `folder`, in the dtype of its weights.

    Args:
        checkpoint: a generator or a predictor with a recurrent network.
        folder: is there, and empty.
        script: write TorchScript, too.

    Raises:
        BundleError: a kind of checkpoint that cannot be exported.
    """
    if checkpoint.kind not in HALVES or (checkpoint.pool is None) == (checkpoint.kind == "generator"):
        raise BundleError(f"a {checkpoint.kind} cannot be exported: expected a generator with its pool, or a predictor")
    network, half = checkpoint.network.eval(), HALVES[checkpoint.kind]
    graphs = write_graphs(network, half, folder)
    if script:
        write_script(network, half, folder / SCRIPT)
    if own_step(network):
        (folder / STEP_WEIGHTS).write_bytes(save(step_weights(network)))
    if checkpoint.pool is not None:
        largest = len(checkpoint.vocabulary) - 1
        tokens = checkpoint.pool.tokens.astype(np.min_scalar_type(largest) if largest < 2**16 else np.int32)
        (folder / POOL).write_bytes(save(checkpoint.pool.arrays | {"tokens": tokens}))
    dtype = str(network.embedding.weight.dtype).removeprefix("torch.")
    shape: dict[str, Any] = {"hidden": network.hidden, "output": network.carried, "dtype": dtype}
    if (latent := latent_of(network)) is not None:
        shape["latent"] = asdict(latent)
    fields = settings_of(checkpoint) | {"prototypes": network.memories, "shape": shape, "graphs": graphs}
    return write_manifest(checkpoint, folder, **fields)
