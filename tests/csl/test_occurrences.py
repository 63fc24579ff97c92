import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.csl.occurrences import Occurrences, bits, number_of, occurs
from tests.csl import naive
from tests.csl.test_charts import plain


@pytest.mark.parametrize(
    ("pattern", "sequence", "expected"),
    [
        ("NT_1 twice", "walk twice", True),
        ("NT_1 twice", "walk left twice and run", True),
        ("twice NT_1", "walk twice", False),
        ("a NT_1 b", "a b", False),
        ("a NT_1 NT_2 b", "a x b", False),
        ("a NT_1 NT_2 b", "a x y b", True),
        ("a b", "x a a b", True),
        ("NT_1", "anything", True),
        ("a NT_1 a", "a a a a", True),
        ("a NT_1 c", "a NT_2 b NT_1 c", True),
        ("a b", "a NT_1 b", False),
    ],
)
def test_occurs(pattern, sequence, expected):
    first, second = (" ".join(side.split()) for side in (pattern, sequence))
    _, (one, other) = naive.read(
        *(f"{side} ### {side}" for side in (first, second.replace("NT_2 b NT_1", "NT_1 b NT_2")))
    )
    assert occurs(one.source, other.source) == expected


SIDES = st.text("αβ\1\2\3", max_size=6)


@settings(deadline=None)
@given(SIDES, SIDES)
def test_occurs_as_defined(pattern, sequence):
    assert occurs(pattern, sequence) == naive.occurs(plain(pattern), plain(sequence))


@settings(deadline=None)
@given(SIDES.filter(bool), st.lists(SIDES, max_size=6), st.integers(0, 63))
def test_occurrences(pattern, sequences, among):
    index = Occurrences()
    for sequence in sequences:
        index.add(sequence)
    among &= 2 ** len(sequences) - 1
    expected = [place for place, sequence in enumerate(sequences) if among >> place & 1 and occurs(pattern, sequence)]
    assert [*bits(index.of(pattern, among))] == expected
    assert {*expected} <= {*bits(index.likely(pattern, among))}


@given(st.sets(st.integers(0, 3000), max_size=30))
def test_places_of_bits(places):
    numbers = number_of(sorted(places))
    assert numbers == sum(1 << place for place in places)
    assert [*bits(numbers)] == sorted(places)


@settings(deadline=None)
@given(SIDES.filter(bool), SIDES, SIDES, st.dictionaries(st.sampled_from("\1\2\3"), SIDES.filter(bool), min_size=3))
def test_what_a_pattern_makes_is_where_it_occurs(pattern, before, behind, arguments):
    made = "".join(arguments.get(letter, letter) for letter in pattern)
    assert occurs(pattern, before + made + behind)
