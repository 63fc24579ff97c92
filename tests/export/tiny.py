"""Tiny models with random weights: small enough to export in a fraction of a second, varied enough to break things."""

import functools
import hashlib
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compgen.data.vocabulary import Vocabulary
from compgen.export.bundle_writer import export
from compgen.models.config import NetworkConfig
from compgen.models.network import Network
from compgen.recombine.compatible import compatible
from compgen.trained.checkpoint import Checkpoint

SEQUENCES = [[5, 6, 3, 8, 9], [6, 3, 9], [5, 3, 8], [7, 5, 3, 10, 8], [7, 3, 10], [5, 7, 3, 8, 10, 11]]
VOCABULARY = Vocabulary.of([list("abcdefg")])

torch.set_num_threads(1)  # the work is tiny, and threads would wait for one another


def make(kind: str = "generator", vocabulary: Vocabulary = VOCABULARY, **changes: Any) -> Checkpoint:
    """A checkpoint of a small network with everything switched on but for `changes` of its configuration."""
    torch.manual_seed(3)
    sizes = {"hidden": 12, "encoder_hidden": 7, "embedding": 8, "output": 8, "attention": 5, "positions": 3}
    config = NetworkConfig(**(sizes | {"memories": 2 if kind == "generator" else 1} | changes))
    network = Network(config, len(vocabulary)).eval()
    for parameter in network.parameters():  # fresh weights are so small that every token is as good as any other
        parameter.data += 0.4 * torch.randn_like(parameter)
    pool = None
    if kind == "generator":
        rows = np.array([[0, *range(1, 1 + config.memories)]], dtype=np.int32)
        pool = compatible(SEQUENCES, vocabulary, rows, "long-short", "mean+std")
    return Checkpoint(
        kind,
        network,
        vocabulary,
        {"network": config.model_dump(mode="json"), "neighborhood": {"kind": "long-short"}, "max_tokens": None},
        max_length=9,
        pool=pool,
        sampling={"temperature": [1.0, 0.5]} if kind == "generator" else {},
        trained_on={"data": "made up"},
    )


@functools.cache
def _own() -> tempfile.TemporaryDirectory[str]:
    """A folder that goes with this process."""
    return tempfile.TemporaryDirectory(prefix="compgen-tests-")


@functools.cache
def exported(kind: str = "generator", **changes: Any) -> Path:
    """The bundle of `make(kind, **changes)`; each is made once for all test processes, so nobody must change it.

    Outside of tests they go with the process. The plain ones have TorchScript, too; of others, tests of parity verify
    it.
    """
    name = hashlib.sha256(repr((kind, sorted(changes.items()))).encode()).hexdigest()[:16]
    bundle = Path(os.environ.get("COMPGEN_TESTS") or _own().name) / f"{kind}-{name}"
    if not bundle.exists():
        with tempfile.TemporaryDirectory(dir=bundle.parent) as made:
            make(kind, **changes).save(Path(made) / "model.pt")
            export(Path(made) / "model.pt", Path(made) / "bundle", batches={7: 20}, torchscript=not changes, quiet=True)
            with suppress(OSError):  # another process was faster
                (Path(made) / "bundle").rename(bundle)
    return bundle
