"""Random numbers: the published vectors, independence from the order of work, and keys that never change."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data import random


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ([0, 0, 0, 0], [0, 0], [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, [0xFFFFFFFF] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_vectors_of_random123(counter, key, expected):
    seed = key[0] | key[1] << 32
    assert random.philox(seed, np.array(counter, dtype=np.uint64)).tolist() == expected


@given(st.integers(0, 2**64 - 1), st.lists(st.integers(0, 2**62), min_size=1, max_size=5), st.integers(1, 9))
def test_a_number_depends_on_its_address_alone(seed, samples, steps):
    together = random.uniforms(seed, np.array(samples), steps)
    for row, sample in enumerate(samples):
        assert random.uniforms(seed, np.array([sample]), steps + 4)[0, :steps].tolist() == together[row].tolist()
    assert ((together >= 0) & (together < 1)).all()


def test_ranks_are_uniform_and_another_stream_than_tokens():
    samples = np.arange(60_000)
    counts = np.bincount(random.ranks(3, samples, 6), minlength=6)
    assert abs(counts - 10_000).max() < 500
    same = random.words(3, samples[:9], random.SamplePurpose.TOKENS, 2) == random.words(
        3, samples[:9], random.SamplePurpose.PROTOTYPES, 2
    )
    assert not same.any()


def test_latents_are_uniform_in_direction_and_norm():
    drawn = random.latents(3, np.arange(20_000), 5, 10.0)
    norms = np.linalg.norm(drawn, axis=1)
    assert norms.max() < 10 and abs(norms.mean() - 5) < 0.05 and abs(norms.std() - 10 / 12**0.5) < 0.05
    assert np.abs((drawn / norms[:, None]).mean(axis=0)).max() < 0.02
    np.testing.assert_array_equal(random.latents(3, np.array([7, 123]), 5, 10.0), drawn[[7, 123]])


def test_ranks_have_53_bits_from_two_words():
    samples = np.array([0, 5, 2**40])
    high, low = random.words(9, samples, random.SamplePurpose.PROTOTYPES, 2).T.tolist()
    expected = [(first << 32 | second) >> 11 for first, second in zip(high, low, strict=True)]
    assert random.ranks(9, samples, 2**53).tolist() == expected
    assert random.ranks(9, samples, 1).tolist() == [0, 0, 0]


def test_the_address_of_a_uniform_number():
    seed, sample, step = 11, 5 + 2**40, 6
    counter = np.array([5, 2**8, step // 4, 0], dtype=np.uint64)  # the last is the purpose, tokens
    bits = int(random.philox(seed, counter)[step % 4]) >> 8
    assert random.uniforms(seed, np.array([sample]), step + 1)[0, step] == bits * 2.0**-24
    found = random.address(np.array([sample, 1]), random.SamplePurpose.NODES, np.array([9, 8]), np.array([2, 0]))
    assert found.tolist() == [[5, 2**8, 9, 3 + 512], [1, 0, 8, 3]]


def _philox(key, block=0):
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64), counter=[0, block, 0, 0]))


KEYS = {
    "BATCHES": ((3, 8), lambda: np.random.default_rng([3, 8])),
    "SWAPS": ((3, 8, 1), lambda: np.random.default_rng([3, 8, 1])),
    "HELD_OUT": ((3,), lambda: np.random.default_rng([3, 222])),
    "HELD_OUT_AUGMENTED": ((3,), lambda: np.random.default_rng([3, 223])),
    "NEIGHBORHOODS": ((3,), lambda: np.random.default_rng([3, 78])),
    "LEMMA_SPLIT": ((3,), lambda: np.random.default_rng([3, 30])),
    "DIVERGENCE_SPLIT": ((3,), lambda: np.random.default_rng([3, 973])),
    "RANDOM_SPLIT": ((3,), lambda: np.random.default_rng([3, 0x5B17])),
    "DEVELOPMENT": ((3,), lambda: np.random.default_rng([3, 222])),
    "QUALITY": ((3, 8), lambda: np.random.default_rng([3, 0x9A, 8])),
    "SETTINGS": ((3,), lambda: np.random.default_rng([3, 0x5E])),
    "LIMIT": ((3,), lambda: np.random.default_rng([3, 0x11])),
    "COMPARISON": ((3, 1, 8), lambda: np.random.default_rng([3, 0xC0, 1, 8])),
    "FRESH": ((3, 1, 8), lambda: np.random.default_rng([3, 0xF5, 1, 8])),
    "PROBES": ((3,), lambda: np.random.default_rng(3)),
    "SELECTION": ((3,), lambda: np.random.Generator(np.random.Philox(3))),
    "CONCATENATION": ((3,), lambda: np.random.Generator(np.random.Philox(3))),
    "RESAMPLING": ((3,), lambda: np.random.Generator(np.random.Philox(3))),
    "BOOTSTRAP": ((3,), lambda: np.random.Generator(np.random.Philox(3))),
    "PERMUTATIONS": ((3,), lambda: np.random.Generator(np.random.Philox(3))),
    "CORRUPTION": ((3, 8), lambda: _philox([3, 0], 8)),
    "HARMONY": ((3,), lambda: _philox([3, 1])),
    "CONFIRMATION": ((3,), lambda: np.random.default_rng([3, 0xCF])),
    "SIGNATURES": ((0,), lambda: np.random.Generator(np.random.Philox(key=0))),
}


@pytest.mark.parametrize("purpose", random.Purpose)
def test_a_stream_has_the_key_that_published_results_were_drawn_with(purpose):
    key, expected = KEYS[purpose.name]
    assert random.stream(purpose, *key).random(9).tolist() == expected().random(9).tolist()
    large = 2**63 + 5
    assert random.stream(purpose, large, *key[1:]).random() != random.stream(purpose, *key).random()


def test_templates_are_shuffled_as_python_does():
    templates, expected = list(range(40)), list(range(40))
    random.shuffle_templates(templates, 3)
    Random(3).shuffle(expected)
    assert templates == expected
