"""Samples that may make no sense, by hand, and the warning of them."""

import polars as pl
import pytest

from compgen.csl.augmenter import Csl
from compgen.csl.rules import Grammar
from compgen.csl.sense import odd, with_own_rules
from compgen.data.catalog import load
from compgen.data.examples import TOKENS, Dataset


def data(*lines):
    return Dataset.from_pairs([tuple(side.split() for side in line.split("|")) for line in lines])


def sources(*texts):
    return pl.Series([text.split() for text in texts], dtype=TOKENS)


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (("a b", "c d"), 0),
        (("a d",), 0),
        (("a d b", "b d"), 0.5),  # one and two are
        (("b a", "a b"), 0.5),
    ],
)
def test_sources_with_two_new_pairs_of_tokens_are_odd(made, expected):
    assert odd(sources(*made), data("a b|x", "a b|y", "c d|x", "a d|y", "c b|z")) == (expected, 0)


def test_sources_of_the_data_are_odd_by_the_others():
    # The fourth alone has `b c`, and `c` at its end; others have one such pair, or pairs with a token of their own.
    some = data("a c b|x", "a b|x", "c a x b|y", "c b c|z", "a b|z")
    assert odd(sources(), some)[1] == 1 / 4


def test_examples_with_a_rule_that_no_other_has():
    grammar = Grammar.parse(["a NT_1 ### A NT_1", "b NT_1 ### B NT_1", "x ### X", "y ### Y"])
    assert with_own_rules(grammar, data("a x|A X", "a y|A Y", "b x|B X")) == pytest.approx(2 / 3)  # y, and b
    assert with_own_rules(grammar, data("a x|A X", "a y|A Y", "b x|B X", "b y|B Y", "b y|B Y")) == 0


def test_samples_that_may_make_no_sense_are_warned_of():
    places = ["rome", "oslo", "lima", "bern"]
    asked = [f"w{n} is v{n} {places[n % 4]} u{n}|f{n} ( {places[n % 4]} )" for n in range(40)]
    few = Csl(uniform=True).fit(data(*asked))
    few.sample(200)
    (told,) = few.warnings()
    assert "100% of DATA need a rule of their own: many samples may make no sense; look at them; leave out" in told
    # New pairs of tokens alone are no sign.
    scan = Dataset(load("scan/jump").split("train").frame.sample(1000, seed=0))
    many = Csl(config="csl_scan", uniform=True).fit(scan)
    made, own = odd(many.sample(200).frame["source"], scan)
    assert made > max(0.2, 1.5 * own) and many.warnings() == []
