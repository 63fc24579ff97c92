"""Random models through all runtimes, in short: `scripts/random_models.py` takes as many as one likes."""

from pathlib import Path

import numpy as np
import pytest

from compgen.errors import UserError
from compgen.sampling import native


@pytest.fixture
def random_models(monkeypatch):
    """The script."""
    try:
        native.runner()
    except UserError as error:
        pytest.skip(str(error))
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "scripts"))
    import random_models

    return random_models


@pytest.mark.parametrize(
    "kind", ["generator", pytest.param("predictor", marks=pytest.mark.long), "transformer", "grammar"]
)
def test_a_random_model_gives_the_same_in_all_runtimes(random_models, kind):
    rows = random_models.KINDS[kind](np.random.default_rng(20_261))
    assert sum(row.samples for row in rows) >= 45
    assert all(row.differing == row.explained for row in rows)


def test_shapes_differ(random_models):
    shapes = {str(random_models.network_config(np.random.default_rng(seed), "generator")) for seed in range(20)}
    assert len(shapes) == 20
