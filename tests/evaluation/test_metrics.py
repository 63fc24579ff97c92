"""Scores by hand."""

import pytest

from compgen.evaluation.metrics import score


def test_exact_match_and_micro_f1():
    scores = score([["a", "b"], ["a", "a", "c"], []], [["a", "b"], ["a", "c"], ["d"]])
    assert scores.exact_match == pytest.approx(1 / 3)
    assert scores.precision == pytest.approx(4 / 5)  # of a b | a a c, the second a is one too many
    assert scores.recall == pytest.approx(4 / 5)
    assert scores.f1 == pytest.approx(4 / 5)
    assert "f1:micro,multiset" in scores.to_dict()["signature"]


def test_nothing_right_is_zero_and_mismatched_numbers_are_refused():
    assert score([["a"]], [["b"]]).f1 == 0
    for predictions, references in ([["a"]], []), ([], []):
        with pytest.raises(ValueError, match="references"):
            score(predictions, references)
