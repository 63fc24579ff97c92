"""Arithmetic modulo 2^64, for hashes."""

import numpy as np
from numpy.typing import NDArray

Tokens = NDArray[np.int32]
Hashes = NDArray[np.uint64]

BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse modulo 2^64
INVERSE = np.uint64(pow(int(BASE), -1, 2**64))


def mix(values: Hashes) -> Hashes:
    """Return a bijection of 64-bit numbers that looks random (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def powers(base: np.uint64, count: int) -> Hashes:
    """Return base^0 .. base^(count - 1)."""
    result = np.full(count, base, dtype=np.uint64)
    result[:1] = 1
    return np.cumprod(result, dtype=np.uint64)
