"""Whether other words mean a symbol, by hand."""

import pytest

from compgen.lexsym.elsewhere import Elsewhere

TEN = [("wait ten", "W 10"), ("wait ten", "W 10"), ("set 10", "S 10"), ("wait five", "W 5"), ("wait six", "W 6")]
MORE = [("stop", "STOP"), ("go", "GO")]


def means(lines, word, symbol="10", without="10"):
    pairs = [(source.split(), target.split()) for source, target in lines]
    return Elsewhere(pairs).means({word}, frozenset([without]), symbol)


@pytest.mark.parametrize(
    ("lines", "word", "expected"),
    [
        (TEN + MORE, "ten", True),
        (TEN + MORE, "wait", False),  # in half of its examples the symbol is there, which `ten` explains
        (TEN + MORE, "five", False),
        (TEN[1:] + MORE, "ten", False),  # once may be chance
        (TEN[:4], "ten", False),  # the symbol is in most examples, with whatever words
        ([("about x", "10"), ("about y", "10"), ("about x", "W"), ("about y", "W"), *MORE], "about", True),  # in half
        ([("about x", "10"), ("about y", "10"), *[("about x", "W")] * 3, *MORE], "about", False),
    ],
)
def test_a_word_means_a_symbol_that_its_examples_have_without_the_words_that_are_known_to(lines, word, expected):
    assert means(lines, word) is expected
