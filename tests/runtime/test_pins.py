"""Literal samples of the shipped bundle by address: what users get for a seed.

The files are those of the C++ runner's tests. Whoever changes them changes what a seed gives, and must say so where a
version's changes are told.
"""

import json
from pathlib import Path

import numpy as np
import pytest

from compgen.api import Generator
from compgen.export.golden_draws import margins

ROOT = Path(__file__).parents[2]
PINS = {"first": (0, 0, None), "far": (2**64 - 1, 2**40, (1.0, 1.0))}  # seed, first address, temperature


@pytest.fixture(scope="module")
def shipped():
    return Generator.load(ROOT / "exported" / "recomb2", provider="cpu")


def pinned(name):
    text = (ROOT / "cpp_runner" / "tests" / f"recomb2-{name}.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", PINS)
def test_samples_by_address(shipped, name):
    (seed, start, temperature), expected = PINS[name], pinned(name)
    draws = list(shipped.draw(seed, start, start + len(expected), temperature=temperature))
    found = [
        {"index": d.index, "prototypes": list(d.prototypes), "tokens": list(d.tokens), "finished": d.finished}
        for d in draws
    ]
    assert found == expected


@pytest.mark.parametrize("name", PINS)
def test_no_pin_hangs_on_rounding(shipped, name):
    """Another processor's last bits must not move a pinned draw over a boundary between two tokens."""
    seed, start, temperature = PINS[name]
    samples = np.arange(start, start + len(pinned(name)), dtype=np.int64)
    warmth = temperature or shipped.temperature
    assert margins(shipped.backend, shipped.pool, seed, samples, warmth, shipped.max_length).min() > 5e-5


def test_the_first_samples_in_words(shipped):
    found = [" ".join([*sample.source, "→", *sample.target]) for sample in shipped.stream(draws=3)]
    assert found == [
        "look twice and look around left → I_LOOK I_LOOK" + 4 * " I_TURN_LEFT I_LOOK",
        "turn opposite right and turn opposite left thrice → I_TURN_RIGHT I_TURN_RIGHT" + 6 * " I_TURN_LEFT",
        "run left and turn right → I_TURN_LEFT I_RUN I_TURN_RIGHT",
    ]
