"""Rounding of weight matrices with error feedback, for activations that are themselves rounded.

With y = x / s the activations in levels, q = round(y), and V = s * W, the integers Z and the scales c of columns are to
make the error small that a product has on samples:

    E |y V - q (c Z)|^2 = E |q (V' - c Z)|^2 + const.,    V' = V + E[q q^T]^-1 E[q (y - q)^T] V

V' makes up for what the rounding of some features has in common with others. With E[q q^T] = R^T R, R upper triangular,
the first term is a sum of squares, one for each row of R. The rows of Z are found from the last to the first: each is
rounded such that its own square is least, given the errors of those after it. This is GPTQ (Frantar et al. 2022) as
Babai's nearest plane (Chen et al. 2025). What differs: V' is rounded, not V; the features of largest moments go first;
and a column whose integers would leave ±64 gets a larger scale, instead of being cut.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.export.integers import Integers, column_scales
from compgen.export.onnx_functions import LEVELS, ZERO
from compgen.runtime.bundle import MOST_WEIGHT

DAMPING = 0.1  # squared levels that each feature is taken to vary by more than in the samples


@dataclass(frozen=True)
class Moments:
    """What rounding needs to know of an activation of K features.

    Attributes:
        levels: (K), the number of levels from 0 to 1, 1 / s.
        squares: (K, K), E[q q^T].
        errors: (K, K), E[q (y - q)^T].
    """

    levels: NDArray[np.float32]
    squares: NDArray[np.float64]
    errors: NDArray[np.float64]

    @classmethod
    def of(cls, batches: Sequence[NDArray[np.float32]]) -> "Moments":
        """The moments of batches of activations (B, K); the largest magnitude of a feature is the largest level."""
        largest = np.max([np.abs(x).max(axis=0) for x in batches], axis=0)  # (K)
        levels = (LEVELS / np.where(largest > 0, largest, 1)).astype(np.float32)
        squares, errors = (np.zeros((len(levels), len(levels))) for _ in range(2))
        for x in batches:
            y = x * levels
            q = np.clip(np.rint(y), -ZERO, LEVELS)
            squares += q.T @ q
            errors += q.T @ (y - q)
        rows = sum(map(len, batches))
        return cls(levels, squares / rows, errors / rows)


def rounded(matrix: NDArray[np.float32], moments: Moments) -> Integers:
    """Round a matrix (K, N) to integers, with error feedback.

    Returns:
        weights (K, N) int8; levels (K), the number of an activation's levels from 0 to 1; scales (N) of the product.
    """
    order = np.argsort(np.diag(moments.squares), kind="stable")  # the largest last, which are rounded first
    exact = matrix[order] / moments.levels[order, None].astype(np.float64)  # V
    squares = moments.squares[np.ix_(order, order)] + DAMPING * np.eye(len(order))
    exact += np.linalg.solve(squares, moments.errors[np.ix_(order, order)] @ exact)  # V'
    scales = column_scales(exact)
    integers = nearest(exact / scales, squares)
    largest = np.abs(integers).max(axis=0)
    beyond = largest > MOST_WEIGHT  # columns whose heaviest weight has to make up for others
    scales[beyond] *= largest[beyond] / (MOST_WEIGHT - 1)
    integers[:, beyond] = nearest(exact[:, beyond] / scales[beyond], squares)
    weights = np.empty(matrix.shape, np.int8)
    weights[order] = np.clip(integers, -MOST_WEIGHT, MOST_WEIGHT)
    return {"weights": weights, "levels": moments.levels, "scales": scales.astype(np.float32)}


def nearest(matrix: NDArray[np.float64], squares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Integers Z near V (K, N) whose tr((V - Z)^T squares (V - Z)) is small; see the module's text."""
    upper = np.linalg.cholesky(squares).T
    upper /= np.diag(upper)[:, None].copy()
    integers, errors = np.empty_like(matrix), np.empty_like(matrix)
    for row in reversed(range(len(matrix))):
        wanted = matrix[row] + upper[row, row + 1 :] @ errors[row + 1 :]
        integers[row] = np.rint(wanted)
        errors[row] = matrix[row] - integers[row]
    return integers
