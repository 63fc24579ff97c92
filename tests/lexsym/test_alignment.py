"""Alignments: the published aligner's worked examples, and IBM Model 1 in both directions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.lexsym.alignment import model1, simple


def pairs(*lines):
    return [tuple(tuple(side.split()) for side in line.split(" -> ")) for line in lines]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["walk twice -> W W", "run twice -> R R", "walk -> W", "run -> R"], {"walk": {"W": 2}, "run": {"R": 2}}),
        (
            ["walk left -> L W", "run left -> L R", "walk -> W", "run -> R", "turn left -> L"],
            {"walk": {"W": 2}, "run": {"R": 2}, "left": {"L": 3}},
        ),
        (
            ["big dog -> B D", "big dog ran -> B D R"],
            {"big": {"B": 2, "D": 2}, "dog": {"B": 2, "D": 2}, "ran": {"B": 1, "D": 1, "R": 1}},
        ),
        (["Emma ran -> Emma R", "Noah ran -> Noah R"], {"ran": {"R": 2}, "Emma": {"Emma": 2}, "Noah": {"Noah": 2}}),
        ([f"the {one} -> X {one.upper()}" for one in "abcde"], {one: {one.upper(): 1} for one in "abcde"}),
        ([f"the {one} -> X {one.upper()}" for one in "abcd"], {one: {one.upper(): 1} for one in "abcd"}),
        (
            ["the a -> X A", "the b -> X B", "the c -> X C"],
            {"the": {"X": 3}, "a": {"A": 1}, "b": {"B": 1}, "c": {"C": 1}},
        ),
    ],
)
def test_the_published_aligner(lines, expected):
    assert simple(pairs(*lines)) == expected


def slow_model1(examples, rounds=5, null=0.08):
    """Model 1 by its definition, for one direction: the place of the origin of each token, or None."""
    tokens = {token for _, side in examples for token in side}
    origins = {token for side, _ in examples for token in side} | {None}
    table = {origin: dict.fromkeys(tokens, 1 / len(tokens)) for origin in origins}
    for _ in range(rounds):
        expected = {origin: dict.fromkeys(tokens, 0.0) for origin in origins}
        for given_, side in examples:
            for token in side:
                share = {place: (1 - null) / len(given_) * table[one][token] for place, one in enumerate(given_)}
                share[None] = null * table[None][token]
                for place, value in share.items():
                    origin = None if place is None else given_[place]
                    expected[origin][token] += value / sum(share.values())
        table = {
            origin: {token: value / max(sum(row.values()), 1e-300) for token, value in row.items()}
            for origin, row in expected.items()
        }
    found = []
    for given_, side in examples:
        for token in side:
            scores = [(1 - null) / len(given_) * table[one][token] for one in given_]
            best = int(np.argmax(scores))
            found.append(best if scores[best] > null * table[None][token] else None)
    return found


def noisy(seed):
    """Sentences of which some words and symbols are lost."""
    random = np.random.default_rng(seed)
    words = [random.choice(list("abcdefg"), random.integers(1, 6)).tolist() for _ in range(30)]
    kept = [[one.upper() for one in random.permutation(side) if random.random() < 0.8] or ["X"] for side in words]
    return [(tuple(source), tuple(target)) for source, target in zip(words, kept, strict=True)]


SLEPT = pairs(
    "a dog slept -> dog sleep", "the dog ran -> dog run", "a cat ran -> cat run", "the cat slept here -> sleep cat"
)


@pytest.mark.parametrize("examples", [SLEPT, *map(noisy, range(4))])
def test_model_1_is_its_definition_in_both_directions(examples):
    forward = iter(slow_model1(examples))
    backward = iter(slow_model1([(target, source) for source, target in examples]))
    links = {}
    for source, target in examples:
        origins, symbols = [next(forward) for _ in target], [next(backward) for _ in source]
        for place, origin in enumerate(origins):
            if origin is not None and symbols[origin] == place:
                links.setdefault(source[origin], {}).setdefault(target[place], 0)
                links[source[origin]][target[place]] += 1
    assert links == model1(examples)
    assert examples is not SLEPT or links["dog"] == {"dog": 2}


@given(st.lists(st.tuples(st.lists(st.sampled_from("abc"), min_size=1, max_size=4), st.just(["X"])), max_size=4))
def test_model_1_takes_any_pairs(examples):
    for word, symbols in model1(examples).items():
        assert set(symbols) == {"X"} and word in "abc"


def test_empty_sides_have_no_links():
    assert model1([(("a",), ()), ((), ("X",))]) == {} == model1([])
