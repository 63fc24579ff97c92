"""Figures as people read them."""

import pytest

from compgen.comparison.words import between, chance, chosen, duration, percent, points, span
from tests.comparison import made_up


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0.0 s"), (0.44, "0.4 s"), (9.96, "10.0 s"), (59.6, "1 min"), (61, "1 min 1 s"), (7200, "2 h"),
     (3725, "1 h 2 min")],
)  # fmt: skip
def test_a_time_has_its_two_largest_units(seconds, words):
    assert duration(seconds) == words


def test_numbers_have_their_signs_and_units():
    bare, better = made_up.tested("bare"), made_up.tested("recombine x1")
    assert percent(0.7144) == "71.4 %" and points(0.052) == "+5.2" and points(-0.01) == "−1.0"
    assert [percent(share) for share in (0, 0.0001, 0.0006)] == ["0.0 %", "< 0.1 %", "0.1 %"]
    assert [percent(share) for share in (0.9994, 2999 / 3000, 1)] == ["99.9 %", "> 99.9 %", "100.0 %"]
    assert chance(0.0123) == "0.012" and chance(0.0004) == "< 0.001"
    assert between(better.over_bare) == "−7.6 to −0.8" and span(bare) == "55.1 to 63.8 %"


def test_the_chosen_system_may_be_untested():
    assert chosen(made_up.result()).system == "geca + csl x8"
    assert chosen(made_up.result(tested=[])) is None
