"""Addressed random numbers: Philox 4x32-10 (Salmon et al. 2011), a function of (seed, sample, purpose, step) alone.

Key = the seed's low and high 32 bits. Counter = (sample low, sample high, step / 4, purpose); the word is step % 4.
No state, so any batch, thread or machine draws the same numbers for the same sample, in any order.
"""

import numpy as np
from numpy.typing import NDArray

TOKENS, PROTOTYPES, LATENTS, NODES, EXAMPLES = 0, 1, 2, 3, 4  # purposes; each has a counter space of its own

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox(seed: int, counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Four 32-bit words (..., 4) for each counter (..., 4) of 32-bit words held in 64 bits, under a 64-bit seed."""
    keys = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
    c0, c1, c2, c3 = (counter[..., k] for k in range(4))
    for _ in range(10):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        k0, k1 = np.uint64(keys[0]), np.uint64(keys[1])
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW
        keys = [(key + weyl) & 0xFFFFFFFF for key, weyl in zip(keys, _WEYL, strict=True)]
    return np.stack([c0, c1, c2, c3], axis=-1)


def words(seed: int, samples: NDArray[np.int64], purpose: int, count: int) -> NDArray[np.uint64]:
    """The first `count` 32-bit words (B, count) of each sample's stream for one purpose."""
    blocks = -(-count // 4)
    counter = np.empty((len(samples), blocks, 4), dtype=np.uint64)
    address = samples.astype(np.uint64)[:, None]
    counter[..., 0], counter[..., 1] = address & _LOW, address >> _HALF
    counter[..., 2], counter[..., 3] = np.arange(blocks, dtype=np.uint64), purpose
    return philox(seed, counter).reshape(len(samples), blocks * 4)[:, :count]


def uniforms(seed: int, samples: NDArray[np.int64], steps: int) -> NDArray[np.float32]:
    """Numbers in [0, 1) that choose tokens, (B, steps): 24 bits each, so exact in float32 and in float64."""
    bits = words(seed, samples, TOKENS, steps) >> np.uint64(8)
    return bits.astype(np.float32) * np.float32(2**-24)


def ranks(seed: int, samples: NDArray[np.int64], total: int, purpose: int = PROTOTYPES) -> NDArray[np.int64]:
    """One number in 0 .. total - 1 for each sample, (B), which chooses its prototypes: 53 random bits, scaled."""
    high, low = words(seed, samples, purpose, 2).T
    fraction = ((high << _HALF | low) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    rank: NDArray[np.int64] = np.minimum((fraction * total).astype(np.int64), total - 1)
    return rank


def latents(seed: int, samples: NDArray[np.int64], size: int, norm: float) -> NDArray[np.float64]:
    """Latent edit vectors a priori, (B, size): a uniform direction, and a norm uniform in [0, norm) (R&R, equation 31).

    The direction is that of normal numbers, two of each two uniform ones (Box and Muller 1958).
    """
    pairs = -(-size // 2)
    bits = words(seed, samples, LATENTS, 2 * pairs + 1) >> np.uint64(8)
    numbers = bits.astype(np.float64) * 2.0**-24
    radius = np.sqrt(-2 * np.log(1 - numbers[:, 0:-1:2]))
    angle = 2 * np.pi * numbers[:, 1::2]
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2).reshape(len(samples), 2 * pairs)[
        :, :size
    ]
    length = np.sqrt((normal * normal).sum(axis=1, keepdims=True))
    vectors: NDArray[np.float64] = normal / np.maximum(length, 1e-30) * (norm * numbers[:, -1:])
    return vectors


def nodes(
    seed: int, samples: NDArray[np.int64], places: NDArray[np.int64], attempts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Two numbers in [0, 1), (n, 2), for each node of a derivation, by its place there, and for each attempt at it.

    They have 32 bits each, so that with a whole number below 2^20 before them they are still exact. The counter is
    (sample low, sample high, place, purpose + 256 attempt).
    """
    counter = np.empty((len(samples), 4), dtype=np.uint64)
    address = samples.astype(np.uint64)
    counter[:, 0], counter[:, 1] = address & _LOW, address >> _HALF
    counter[:, 2], counter[:, 3] = places, NODES + 256 * attempts
    return philox(seed, counter)[:, :2].astype(np.float64) * 2.0**-32
