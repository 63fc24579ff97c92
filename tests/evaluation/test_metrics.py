"""Scores by hand."""

import pytest

from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError
from compgen.evaluation.metrics import (
    check_executes,
    check_scorable,
    executes,
    f1_counts,
    item_f1,
    most_right,
    score,
    spaces_alone,
)


def test_exact_match_and_micro_f1():
    scores = score([["a", "b"], ["a", "a", "c"], []], [["a", "b"], ["a", "c"], ["d"]])
    assert scores.exact_match == pytest.approx(1 / 3)
    assert scores.precision == pytest.approx(4 / 5)  # of a b | a a c, the second a is one too many
    assert scores.recall == pytest.approx(4 / 5)
    assert scores.f1 == pytest.approx(4 / 5)
    assert "f1:micro,multiset" in scores.to_dict()["signature"]


def test_f1_is_a_harmonic_mean_and_a_repeated_token_counts_each_time():
    prediction, reference = ["a", "a", "b", "c"], ["a", "a"]
    scores = score([prediction], [reference])
    assert (scores.precision, scores.recall) == (0.5, 1)
    assert scores.f1 == item_f1(prediction, reference) == pytest.approx(2 / 3)
    assert (item_f1([], []), item_f1(["a"], [])) == (1, 0)


def test_nothing_right_is_zero_and_mismatched_numbers_are_refused():
    assert score([["a"]], [["b"]]).f1 == 0
    for predictions, references in ([["a"]], []), ([], []):
        with pytest.raises(ValueError, match="references"):
            score(predictions, references)


def test_answers_that_are_given_need_a_target_each():
    some, none = Dataset.from_pairs([(["a"], ["A"]), (["b"], [])]), Dataset.from_pairs([(["b"], [])])
    check_scorable(some, every=False)
    for wrong, every in ((some, True), (none, False)):
        with pytest.raises(UserError, match="found an example without a target"):
            check_scorable(wrong, every=every)


ACTIONS = ["I_RUN I_WALK", "I_JUMP I_JUMP", "I_LOOK", "I_LOOK"]
COMMANDS = ["run and walk", "jump twice", "look", "look"]
PREDICTED = ["walk after run", "jump and jump", "I_LOOK", ""]  # two right ones, other than the references; no commands


def tokens(*lines):
    return [line.split() for line in lines]


def test_execution_counts_every_command_with_the_right_actions():
    scores = score(tokens(*PREDICTED), tokens(*COMMANDS), tokens(*ACTIONS), "scan")
    assert (scores.exact_match, scores.executes) == (0, 0.5)
    assert scores.signature == "exact:whole-sequence|f1:micro,multiset|executes:scan,equals-source"
    assert scores.to_dict()["executes"] == 0.5
    assert executes(tokens(*PREDICTED), tokens(*ACTIONS), "scan") == [True, True, False, False]
    wrong = tokens("walk and run", "jump thrice", "look left", "walk")
    assert score(wrong, tokens(*COMMANDS), tokens(*ACTIONS), "scan").executes == 0


def test_without_execution_nothing_says_executes():
    scores = score(tokens(*PREDICTED), tokens(*COMMANDS), tokens(*ACTIONS))
    assert scores.executes is None
    assert "execute" not in str(scores.to_dict())


def test_execution_needs_an_interpreter_and_sources():
    with pytest.raises(UserError, match="no interpreter 'lisp': expected one of scan"):
        score(tokens("walk"), tokens("walk"), tokens("I_WALK"), "lisp")
    with pytest.raises(ValueError, match="0 sources"):
        score(tokens("walk"), tokens("walk"), execute="scan")


def test_data_the_wrong_way_round_cannot_be_scored_by_execution():
    check_executes(tokens(*COMMANDS), tokens(*ACTIONS), "scan")
    with pytest.raises(DataError, match="found the source 'run and walk' with the target 'I_RUN I_WALK'"):
        check_executes(tokens(*ACTIONS), tokens(*COMMANDS), "scan")


def test_an_analysis_is_its_lemma_and_its_tags():
    references = tokens("g o ␣ o n V PST", "b e V PRS SG")
    predictions = tokens("g o ␣ o f V PST", "b e V V PL")
    assert f1_counts(predictions[0], references[0], "analysis") == (2, 1, 1)
    assert f1_counts(predictions[0], references[0], "analysis-words") == (3, 1, 1)
    assert f1_counts(predictions[1], references[1], "analysis") == (3, 1, 2)  # V is right each time
    scores = score(predictions, references, unit="analysis")
    assert (scores.precision, scores.recall) == (5 / 7, 5 / 8)
    assert scores.signature.endswith("f1:micro,membership,lemma-and-tags")
    assert f1_counts([], references[0], "analysis") == (0, 0, 3)
    with pytest.raises(UserError, match="no unit 'word': expected one of token, analysis"):
        score(predictions, references, unit="word")
    with pytest.raises(UserError, match="no reference has tags after letters: expected unit token"):
        score([["a", "b"]], [["a", "b"]], unit="analysis")


def test_of_several_targets_of_a_source_one_can_be_right():
    pairs = [(["a"], ["X"]), (["a"], ["X"]), (["a"], ["Y"]), (["b"], ["Z"])]
    (said,) = most_right(pairs)
    assert said == "1 sources have several targets, of which one is predicted: 3 of 4 examples can be right"
    assert most_right([*pairs[:2], *pairs[3:]]) == []


def test_predictions_that_differ_in_spaces_alone_are_told():
    references = tokens("play(it)", "stop", "now")
    (said,) = spaces_alone(tokens("play ( it )", "stop", "not"), references)
    assert said.startswith("1 of 3 predictions differ from their targets in spaces alone, and count as wrong")
    assert spaces_alone(tokens("play(it)", "st", "not"), references) == []
