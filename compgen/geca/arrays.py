"""Small numpy helpers: arithmetic modulo 2^64, and membership."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]
Hashes = NDArray[np.uint64]

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that it has an inverse modulo 2^64
INVERSE = np.uint64(pow(int(BASE), -1, 2**64))


def mix(values: Hashes) -> Hashes:
    """A bijection of 64-bit numbers that leaves no bit where it was (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def powers(base: np.uint64, count: int) -> Hashes:
    """base^0 .. base^(count - 1), modulo 2^64."""
    result = np.full(count, base, dtype=np.uint64)
    result[:1] = 1
    return np.cumprod(result, dtype=np.uint64)


def within(sorted_values: NDArray[Any], values: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of `values` are among `sorted_values`."""
    if not len(sorted_values):
        return np.zeros(len(values), dtype=bool)
    found = np.searchsorted(sorted_values, values)
    found[found == len(sorted_values)] = 0
    result: NDArray[np.bool_] = sorted_values[found] == values
    return result
