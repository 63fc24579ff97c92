"""All random numbers of the package: named purposes, keyed by (seed, purpose, index).

Two families, because a sample must be the same in every runtime, and a split or a batch order need not be:

- *Addressed numbers* belong to samples. Each is Philox 4x32-10 (Salmon et al. 2011) at a counter (`address`), so any
  batch, thread or machine draws the same numbers for the same sample, in any order. The C++ runtime has its own copy.
- *Streams* (`stream`) serve everything else in numpy: splits, batches, neighborhoods, controls, bootstrap.

Published results depend on the keys below, so a key never changes. Some purposes have the same key, and so the same
numbers for one seed; a new purpose should be a `_PCG` with a tag of its own. No other module may import `numpy.random`
or `random` (ruff holds that). PyTorch's generators are seeded in `models.seeding` alone. GECA orders its candidates
by a hash of what they are (`geca.arrays.mix`): that is no stream. `cgen data show --seed` lets Polars choose rows.
"""

import random
from enum import Enum, IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

Stream = np.random.Generator  # for annotations
LegacyStream = np.random.RandomState

_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


# Streams


_PCG = "PCG64 seeded with (seed, tag, index)"
_SEEDED = "Philox 4x64 with a key hashed from the seed"
_KEYED = "Philox 4x64 with the key (seed, tag); each index has 2^64 blocks of the counter to itself"


class Purpose(Enum):
    """What a stream is for: (what draws from it, how it is keyed, its tag). The index is in brackets."""

    BATCHES = ("order and mixture of training examples (epoch)", _PCG, ())
    SWAPS = ("token swaps in a batch of neighborhoods (rows of the batch)", _PCG, ())
    HELD_OUT = ("examples held out of training", _PCG, (0xDE,))
    HELD_OUT_AUGMENTED = ("augmented examples held out of training", _PCG, (0xDF,))
    NEIGHBORHOODS = ("prototypes of each training example", _PCG, (0x4E,))
    LEMMA_SPLIT = ("order of lemmas in a split by lemma", _PCG, (0x1E,))
    DIVERGENCE_SPLIT = ("the random split that TMCD and MCD start from", _PCG, (0x3CD,))
    RANDOM_SPLIT = ("order of examples in a random split", _PCG, (0x5B17,))
    DEVELOPMENT = ("test examples that become dev", _PCG, (0xDE,))
    QUALITY = ("pairs of examples whose distance is measured; targets that are parsed (which)", _PCG, (0x9A,))
    LIMIT = ("examples that an evaluation is limited to", _PCG, (0x11,))
    SETTINGS = ("examples that the settings of a generator are tried on", _PCG, (0x5E,))
    PROBES = ("made-up sources that runtimes are compared on", _PCG, ())
    SELECTION = ("synthetic examples chosen by a strategy", _SEEDED, ())
    CONCATENATION = ("pairs of examples to concatenate", _SEEDED, ())
    RESAMPLING = ("training sentences repeated as a control", _SEEDED, ())
    BOOTSTRAP = ("items resampled for a confidence interval", _SEEDED, ())
    PERMUTATIONS = ("permutations that estimate dependence by chance", _SEEDED, ())
    CORRUPTION = ("StemCorrupt's examples and characters (block of samples)", _KEYED, (0,))
    HARMONY = ("Gumbel noise that ranks candidates in vowel harmony", _KEYED, (1,))
    COMPARISON = (
        "comparisons: held-out parts (which, carving), made examples (2), bootstrap (3)",
        _PCG,
        (0xC0,),
    )
    FRESH = ("seeds of augmenters, and which samples are kept, in training (epoch)", _PCG, (0xF5,))
    CONFIRMATION = ("parts of synthetic examples that a predictor does not learn", _PCG, (0xCF,))
    SIGNATURES = ("coefficients of the hash of words, with seed 0", _KEYED, (0,))


def stream(purpose: Purpose, seed: int, *index: int) -> Stream:
    """Return the stream of random numbers for (seed, purpose, index), from its beginning."""
    _, how, tag = purpose.value
    if how == _PCG:
        return np.random.default_rng([seed, *tag, *index])
    if how == _SEEDED:
        assert not index
        return np.random.Generator(np.random.Philox(seed))
    counter = np.array([0, *(index or [0]), 0, 0], np.uint64)
    return np.random.Generator(np.random.Philox(key=np.array([seed, *tag], np.uint64), counter=counter))


def shuffle_templates(templates: list[Any], seed: int) -> None:
    """Shuffle templates in place, by Python's generator as in the published splits of GeoQuery."""
    random.Random(seed).shuffle(templates)


def few_shot_streams() -> tuple[LegacyStream, LegacyStream]:
    """Return the streams of easy and of held-out words in the published few-shot splits (numpy's former generator)."""
    return np.random.RandomState(0), np.random.RandomState(1)


# Addressed numbers


class SamplePurpose(IntEnum):
    """What an addressed number decides. Samples of shipped bundles depend on these values."""

    TOKENS = 0
    PROTOTYPES = 1
    LATENTS = 2
    NODES = 3  # of derivations
    EXAMPLES = 4  # training examples, of augmenters that draw them by address (`resample`)
    SYMMETRIES = 5  # examples and words, of `lexsym`
    SUBSTITUTIONS = 6  # hosts, places and pieces, of `substitute`


def address(
    samples: NDArray[np.int64],
    purpose: SamplePurpose,
    block: NDArray[Any],
    attempt: NDArray[np.int64] | int = 0,
) -> NDArray[np.uint64]:
    """Return the Philox counter of (sample, purpose, block of steps) as (..., 4) words of 32 bits; the seed is the key.

        counter = (sample mod 2^32, sample div 2^32, block, purpose + 256 attempt)

    One counter gives four words: step s of a sample is word s mod 4 of block s div 4. For nodes of a derivation the
    block is the node's place, counted level by level, and `attempt` counts the attempts at the sample. Arguments
    broadcast.
    """
    low, high = samples.astype(np.uint64) & _LOW, samples.astype(np.uint64) >> _HALF
    words = np.broadcast_arrays(low, high, np.asarray(block, np.uint64), np.asarray(purpose + 256 * attempt, np.uint64))
    return np.stack(words, axis=-1)


def philox(seed: int, counter: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return four 32-bit words (..., 4) for each counter (..., 4); words are held in 64 bits, the key is the seed."""
    keys = [seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF]
    c0, c1, c2, c3 = (counter[..., k] for k in range(4))
    for _ in range(10):
        p0, p1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        k0, k1 = np.uint64(keys[0]), np.uint64(keys[1])
        c0, c1, c2, c3 = (p1 >> _HALF) ^ c1 ^ k0, p1 & _LOW, (p0 >> _HALF) ^ c3 ^ k1, p0 & _LOW
        keys = [(key + weyl) & 0xFFFFFFFF for key, weyl in zip(keys, _WEYL, strict=True)]
    return np.stack([c0, c1, c2, c3], axis=-1)


def words(seed: int, samples: NDArray[np.int64], purpose: SamplePurpose, count: int) -> NDArray[np.uint64]:
    """Return the words (B, count) of steps 0 .. count - 1 of each sample (B), for one purpose."""
    blocks = -(-count // 4)
    found = philox(seed, address(samples[:, None], purpose, np.arange(blocks)))  # (B, blocks, 4)
    return found.reshape(len(samples), blocks * 4)[:, :count]


def uniforms(seed: int, samples: NDArray[np.int64], steps: int) -> NDArray[np.float32]:
    """Return the numbers in [0, 1) that choose tokens, (B, steps): 24 bits each, exact in float32 and in float64."""
    bits = words(seed, samples, SamplePurpose.TOKENS, steps) >> np.uint64(8)
    return bits.astype(np.float32) * np.float32(2**-24)


def ranks(
    seed: int, samples: NDArray[np.int64], total: int, purpose: SamplePurpose = SamplePurpose.PROTOTYPES
) -> NDArray[np.int64]:
    """Return a number in 0 .. total - 1 for each sample, (B), which chooses its prototypes: 53 random bits, scaled."""
    high, low = words(seed, samples, purpose, 2).T
    fraction = ((high << _HALF | low) >> np.uint64(11)).astype(np.float64) * 2.0**-53
    rank: NDArray[np.int64] = np.minimum((fraction * total).astype(np.int64), total - 1)
    return rank


def latents(seed: int, samples: NDArray[np.int64], size: int, norm: float) -> NDArray[np.float64]:
    """Return latent vectors from the prior, (B, size): direction uniform, norm uniform in [0, norm) (R&R, equation 31).

    The direction is that of a vector of normal numbers, two from each two uniform ones (Box and Muller 1958).
    """
    pairs = -(-size // 2)
    bits = words(seed, samples, SamplePurpose.LATENTS, 2 * pairs + 1) >> np.uint64(8)
    numbers = bits.astype(np.float64) * 2.0**-24  # (B, 2 pairs + 1)
    radius = np.sqrt(-2 * np.log(1 - numbers[:, 0:-1:2]))  # (B, pairs)
    angle = 2 * np.pi * numbers[:, 1::2]
    normal = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=2)  # (B, pairs, 2)
    normal = normal.reshape(len(samples), 2 * pairs)[:, :size]
    length = np.sqrt((normal * normal).sum(axis=1, keepdims=True))
    vectors: NDArray[np.float64] = normal / np.maximum(length, 1e-30) * (norm * numbers[:, -1:])
    return vectors


def nodes(
    seed: int, samples: NDArray[np.int64], places: NDArray[np.int64], attempts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return two numbers in [0, 1), (n, 2), for each node of a derivation, given its place and the attempt (n).

    They have 32 bits each, so that they stay exact when a whole number below 2^20 is added.
    """
    counter = address(samples, SamplePurpose.NODES, places, attempts)
    return philox(seed, counter)[:, :2].astype(np.float64) * 2.0**-32
