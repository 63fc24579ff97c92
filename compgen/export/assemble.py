"""All files of a bundle but those that speak of the whole: the manifest and the model card."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
from safetensors.numpy import save

from compgen import __version__
from compgen.errors import BundleError
from compgen.export.onnx_graphs import write_graphs
from compgen.export.step_weights import own_step, step_weights
from compgen.export.torchscript import write_script
from compgen.files import sha256
from compgen.models.cuda_graph import latent_of
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import MANIFEST, POOL, SCRIPT, STEP_WEIGHTS, VOCABULARY, FileEntry, Manifest, State
from compgen.training.checkpoint import Checkpoint

HALVES = {"generator": 0, "predictor": 1}  # the half that decoding begins in


def seal(folder: Path, manifest: Manifest) -> Manifest:
    """Write the manifest, with the size and hash of every other file; returns it."""
    files = {
        path.name: FileEntry(sha256=sha256(path), size=path.stat().st_size)
        for path in sorted(folder.iterdir())
        if path.name != MANIFEST
    }
    manifest = manifest.model_copy(update={"files": files})
    (folder / MANIFEST).write_text(manifest.model_dump_json(indent=2) + "\n", "utf-8")
    return manifest


def assemble(checkpoint: Checkpoint, folder: Path) -> Bundle:
    """Write graphs, TorchScript, vocabulary and pool of a checkpoint to `folder`, in the dtype of its weights.

    Returns:
        The bundle as it was written, whose manifest says nothing of parity yet.

    Raises:
        BundleError: a kind of checkpoint that cannot be exported.
    """
    if checkpoint.kind not in HALVES or (checkpoint.pool is None) == (checkpoint.kind == "generator"):
        raise BundleError(f"a {checkpoint.kind} cannot be exported: expected a generator with its pool, or a predictor")
    network = checkpoint.recurrent.eval()
    graphs = write_graphs(network, HALVES[checkpoint.kind], folder)
    write_script(network, HALVES[checkpoint.kind], folder / SCRIPT)
    if own_step(network):
        (folder / STEP_WEIGHTS).write_bytes(save(step_weights(network)))
    vocabulary = list(checkpoint.vocabulary.tokens)
    (folder / VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False, indent=0) + "\n", "utf-8")
    if checkpoint.pool is not None:
        smallest = np.min_scalar_type(len(vocabulary) - 1) if len(vocabulary) <= 2**16 else np.int32
        tokens = checkpoint.pool.tokens.astype(smallest)
        (folder / POOL).write_bytes(save(vars(checkpoint.pool) | {"tokens": tokens}))
    dtype = str(network.embedding.weight.dtype).removeprefix("torch.")
    manifest = Manifest.model_validate(
        {
            "compgen": __version__,
            "kind": checkpoint.kind,
            "trained_on": checkpoint.trained_on,
            "config": checkpoint.config,
            "prototypes": network.memories,
            "max_length": checkpoint.max_length,
            "sampling": {"temperature": [0.0, 0.0]} | checkpoint.sampling,
            "shape": State.model_validate(
                {"hidden": network.hidden, "output": network.carried, "dtype": dtype}
                | ({"latent": asdict(latent)} if (latent := latent_of(network)) else {})
            ),
            "graphs": graphs,
            "files": {},
            "parity": [],
        }
    )
    seal(folder, manifest)
    return Bundle.load(folder)
