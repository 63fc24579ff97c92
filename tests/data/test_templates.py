"""Templates of examples."""

import pytest

from compgen.data.examples import Dataset
from compgen.data.templates import BLANK, lengths, shapes, tags, usual
from compgen.errors import DataError


def dataset(*pairs: tuple[str, str]) -> Dataset:
    return Dataset.from_pairs((source.split(), target.split()) for source, target in pairs)


def test_a_shape_has_blanks_for_what_is_copied():
    some = dataset(("in ohio or utah", "or ( ohio , utah )"), ("rivers", "river ( all )"), ("in utah", "utah"))
    assert shapes(some).to_list() == [f"{BLANK} ( {BLANK} , {BLANK} )", "river ( all )", BLANK]
    assert lengths(some).to_list() == [4, 1, 2]


def test_shapes_stand_in_the_order_of_examples():
    many = dataset(*[(f"w{i % 7}", f"w{i % 5} end{i}") for i in range(500)])
    expected = [f"{BLANK if i % 7 == i % 5 else f'w{i % 5}'} end{i}" for i in range(500)]
    assert shapes(many).to_list() == expected


def test_sentences_are_their_own_shape_and_an_empty_target_has_none():
    assert shapes(dataset(("a b", ""))).to_list() == [f"a{BLANK}b"]
    assert shapes(dataset(("a b", ""), ("a", "a"))).to_list() == ["", BLANK]


def test_sentences_that_begin_with_a_capital_have_no_tags():
    some = dataset(*[(f"The n{i} ran", f"ran ( n{i} )") for i in range(5)])
    assert usual(some).n_unique() == shapes(some).n_unique() == 1
    assert usual(dataset(("stop V ;", "x"))).to_list() == ["x"]


def test_tags_where_all_sources_have_some():
    words, mixed = dataset(("w a l k V;PST", "w a l k e d")), dataset(("a V;PST", "b"), ("a", "b"))
    assert usual(words).to_list() == tags(words).to_list() == ["V;PST"]
    assert usual(mixed).to_list() == shapes(mixed).to_list()
    with pytest.raises(DataError, match="'a' without a tag"):
        tags(mixed)
    assert usual(dataset(("^H a u s N PL", "^H ä u s e r"))).to_list() == ["N PL"]
