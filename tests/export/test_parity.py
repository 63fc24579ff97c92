"""Exports compute what their checkpoints do, in every configuration, runtime and batch size."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from compgen.errors import BundleError
from compgen.export.assemble import assemble
from compgen.export.verify import distance, parity, task, verify
from compgen.models.backend import TorchBackend

BATCHES = (1, 7, 60)
ALONE = {"memories": 0, "copying": False, "feed": False}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("generator", {}),
        ("generator", {"memories": 1, "feed": False, "tied": False, "output": 6, "initial": "encoder"}),
        ("generator", {"copying": False, "encoder_shared": False, "positions": 0, "initial": "encoder"}),
        ("generator", ALONE),
        ("predictor", {"initial": "encoder"}),
        ("predictor", {"feed": False, "copying": False, "activation": "linear"}),
    ],
    ids=str,
)
def test_every_runtime_draws_the_same_samples(make, kind, changes):
    rows = parity(make(kind, **changes), 60, BATCHES, quiet=True)
    assert len(rows) == 2 * 5 * len(BATCHES)
    assert all(row.differing == 0 for row in rows if row.dtype == "float64")
    assert all(row.explained == row.differing for row in rows)
    assert {row.samples for row in rows} == {6, 60}
    assert all(row.tokens > 2 * row.samples for row in rows)
