"""Weights in 8-bit integers that make up for each other's rounding, and for that of the activations."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compgen.export.onnx_functions import LEVELS
from compgen.export.rounding import Moments, nearest, rounded
from compgen.runtime.bundle import MOST_WEIGHT

EXAMPLES = settings(max_examples=30, deadline=None)


def samples(seed, features, causes, rows=400):
    """Activations (rows, features) within ±1 that follow fewer causes, and a little noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, causes)) @ rng.normal(size=(causes, features)) / np.sqrt(causes)
    return np.clip(0.3 * x + 0.005 * rng.normal(size=x.shape), -1, 1).astype(np.float32)


def plain(matrix, levels):
    """Each weight rounded to the nearest."""
    scaled = matrix / levels[:, None].astype(np.float64)
    scales = np.abs(scaled).max(axis=0) / MOST_WEIGHT
    return {"weights": np.rint(scaled / scales), "levels": levels, "scales": scales}


def error(x, matrix, integers):
    """The mean square of what a product in integers differs by."""
    levels = np.clip(np.rint(x * integers["levels"]), -128, 127).astype(np.float64)
    return ((x.astype(np.float64) @ matrix - levels @ integers["weights"] * integers["scales"]) ** 2).mean()


@given(st.integers(0, 2**32 - 1), st.integers(2, 24), st.integers(1, 24))
@example(1717, 5, 4)  # where the heaviest weight of a column is to make up for others
@EXAMPLES
def test_a_product_is_never_worse_than_with_each_weight_rounded_alone(seed, features, causes):
    x, matrix = samples(seed, features, causes), np.random.default_rng(seed).normal(size=(features, 32))
    found = rounded(matrix.astype(np.float32), Moments.of([x]))
    assert error(x, matrix, found) <= 1.25 * error(x, matrix, plain(matrix, found["levels"]))
    assert np.abs(found["weights"].astype(int)).max() <= MOST_WEIGHT


@pytest.mark.parametrize("seed", range(3))
def test_a_product_of_related_features_is_much_better_on_other_samples(seed):
    x, matrix = samples(seed, 48, 8, 1200), np.random.default_rng(seed).normal(size=(48, 16)).astype(np.float32)
    x = np.rint(x * LEVELS) / np.float32(LEVELS)  # weights alone are to be rounded
    x[0] = 1
    found = rounded(matrix, Moments.of([x[:800]]))
    assert error(x[800:], matrix, found) < 0.25 * error(x[800:], matrix, plain(matrix, found["levels"]))


def test_weights_make_up_for_activations_that_are_always_rounded_up():
    """A feature is mostly at 126.6 of 127 levels, which becomes 127; the scale makes up for it."""
    rng = np.random.default_rng(0)
    x = np.where(rng.random((500, 2)) < 0.01, 1, [0.997, 0.5]).astype(np.float32)
    matrix = np.array([[1.0], [0.01]], dtype=np.float32)
    fixed = Moments.of([x])
    without = Moments(fixed.levels, fixed.squares, np.zeros_like(fixed.errors))
    assert error(x, matrix, rounded(matrix, fixed)) < 0.5 * error(x, matrix, rounded(matrix, without))


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@EXAMPLES
def test_without_relations_the_nearest_integers_are_those_of_each_weight(seed, features):
    matrix = np.random.default_rng(seed).uniform(-80, 80, (features, 5))
    np.testing.assert_array_equal(nearest(matrix, np.diag(np.arange(1.0, features + 1))), np.rint(matrix))


def test_batches_are_added_up_and_the_result_is_the_same_each_time():
    x, matrix = samples(3, 20, 5), np.random.default_rng(3).normal(size=(20, 9)).astype(np.float32)
    parts, whole, again = Moments.of([x[:150], x[150:]]), Moments.of([x]), Moments.of([x])
    np.testing.assert_array_equal(parts.levels, whole.levels)
    np.testing.assert_allclose(parts.squares, whole.squares, rtol=1e-5)
    np.testing.assert_allclose(parts.errors, whole.errors, atol=1e-4)
    for one, other in zip(rounded(matrix, whole).values(), rounded(matrix, again).values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_largest_of_a_feature_is_the_largest_level_and_the_heaviest_weight_the_largest_integer():
    x = samples(4, 6, 6) * np.array([0.5, 2, 0, 7, 1, 1], dtype=np.float32)
    matrix = np.random.default_rng(4).normal(size=(6, 4)).astype(np.float32)
    matrix[:, 3] = 0
    found = rounded(matrix, Moments.of([x]))
    assert [value.dtype.name for value in found.values()] == ["int8", "float32", "float32"]
    assert list(found) == ["weights", "levels", "scales"]
    largest = np.abs(x).max(axis=0)
    np.testing.assert_allclose((found["levels"] * largest)[largest > 0], LEVELS, rtol=1e-6)
    assert found["levels"][2] == LEVELS  # a feature that is never on
    assert (np.abs(found["weights"].astype(int)).max(axis=0)[:3] >= MOST_WEIGHT - 2).all()
    assert not found["weights"][:, 3].any() and found["scales"][3] == np.float32(1 / MOST_WEIGHT)
