"""The state of a Transformer's decoder, from step to step."""

import numpy as np
import pytest

from compgen.errors import BundleError
from compgen.runtime.cached import first_state, next_state

WORDS = 9


def state():
    keys = np.arange(48, dtype=np.float32).reshape(2, 1, 2, 3, 4)
    return first_state(np.array([[5, 6, 2], [7, 2, 0]]), keys, -keys)


def test_before_the_first_token_there_is_the_source_and_nothing_written():
    first = state()
    assert first["token"].tolist() == [1, 1] and first["position"].tolist() == [0, 0]
    assert first["source"].tolist() == [[5, 6, 2], [7, 2, 0]]
    assert first["memory_keys"].shape == first["memory_values"].shape == (2, 1, 2, 3, 4)
    assert (first["memory_keys"] == -first["memory_values"]).all()
    assert first["keys"].shape == first["values"].shape == (2, 1, 2, 0, 4)


@pytest.mark.parametrize(
    ("best", "at_first", "later"), [(0, 8, 8), (1, 8, 8), (4, 8, 8), (2, 8, 2), (3, 8, 3), (5, 5, 5)]
)
def test_the_most_probable_token_that_may_come(best, at_first, later):
    log_probs = np.full((2, WORDS), -9.0)
    log_probs[:, 8], log_probs[:, best] = -2, -1
    keys = np.ones((2, 1, 2, 1, 4), dtype=np.float32)
    before = state() | {"position": np.array([0, 3])}
    after = next_state("model", before, log_probs, keys, 2 * keys)
    assert after["token"].tolist() == [at_first, later] and after["token"].dtype == np.int64
    assert after["position"].tolist() == [1, 4]
    assert (after["keys"] == 1).all() and (after["values"] == 2).all()
    assert after["source"] is before["source"] and after["memory_keys"] is before["memory_keys"]
    assert (log_probs[:, best] == -1).all()  # what was given stays as it is


def test_log_probabilities_that_are_no_numbers_are_refused():
    keys = np.ones((2, 1, 2, 1, 4), dtype=np.float32)
    with pytest.raises(BundleError, match=r"^model: "):
        next_state("model", state(), np.full((2, WORDS), np.nan), keys, keys)
