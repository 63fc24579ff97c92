"""Grammars as bundles: rules as text, scores as arrays. What draws from them is numpy, before and after."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors.numpy import save

from compgen import __version__
from compgen.csl.backend import GrammarBackend
from compgen.csl.checkpoint import grammar_of
from compgen.csl.trained import TrainedGrammar
from compgen.export.assemble import seal
from compgen.export.verify import counts, require
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import POOL, RULES, SCORES, TARGET_RULES, VOCABULARY, Manifest, Parity
from compgen.trained.opening import bundled_grammar
from compgen.training.checkpoint import Checkpoint


def assemble(checkpoint: Checkpoint, folder: Path) -> Bundle:
    """Write rules, scores, vocabulary and training examples of a grammar to `folder`.

    Returns:
        The bundle as it was written, whose manifest says nothing of parity yet.
    """
    trained, vocabulary = grammar_of(checkpoint), list(checkpoint.vocabulary.tokens)
    assert checkpoint.pool is not None, "a generator has a pool"
    (folder / RULES).write_text(trained.grammar.text(), "utf-8")
    (folder / TARGET_RULES).write_text(trained.target_rules, "utf-8")
    (folder / SCORES).write_bytes(save({"slots": trained.scores.slots, "rules": trained.scores.rules}))
    (folder / VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False, indent=0) + "\n", "utf-8")
    (folder / POOL).write_bytes(save(vars(checkpoint.pool)))
    values: dict[str, Any] = {
        "compgen": __version__,
        "kind": checkpoint.kind,
        "architecture": "grammar",
        "trained_on": checkpoint.trained_on,
        "config": {"network": checkpoint.config["network"]},
        "prototypes": 0,
        "max_length": checkpoint.max_length,
        "sampling": checkpoint.sampling,
        "graphs": {},
        "files": {},
        "parity": [],
    }
    seal(folder, Manifest.model_validate(values))
    return Bundle.load(folder)


def verify(checkpoint: Checkpoint, bundle: Bundle, batches: Mapping[int, int]) -> list[Parity]:
    """Compare samples of the bundle, so many together, with those of the checkpoint; none may differ.

    Raises:
        BundleError: one does.
    """
    expected = _drawn(grammar_of(checkpoint), checkpoint, max(batches.values()), 256)
    rows = []
    for batch, samples in batches.items():
        found = _drawn(bundled_grammar(bundle), checkpoint, samples, batch)
        judged = counts(expected[:samples], found, lambda _: float("inf"))
        rows.append(Parity.model_validate({"runtime": "numpy", "dtype": "float64", "batch": batch} | judged))
    require(rows, "the bundle does not draw what its checkpoint does")
    return rows


def _drawn(trained: TrainedGrammar, checkpoint: Checkpoint, samples: int, batch: int) -> list[tuple[int, ...]]:
    backend = GrammarBackend(trained, checkpoint.vocabulary)
    return [draw.tokens for draw in backend.draws(0, 0, samples, trained.drawing.temperature, batch)]
