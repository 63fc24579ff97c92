"""Checks of tables. What each says of small tables is in tests/cli/test_wrong_tables.py."""

import polars as pl
import pytest

from compgen.data import checks
from compgen.data.checks import findings, naming, rows_of, worst
from compgen.data.examples import Dataset


def rows(*lines):
    """Rows of (source, target) or (source, target, split), numbered from 1."""
    filled = [(number, *line, *["train"][: 3 - len(line)]) for number, line in enumerate(lines, start=1)]
    return pl.DataFrame(filled, schema=["number", "source", "target", "split"], orient="row")


def test_brackets_that_do_not_pair_are_found_in_any_row():
    odd = ["f ( x", "f ) x (", "( [ ) ]", "( [ ] )", "x"]
    finding = checks.brackets(rows(*[("x", "f ( x )")] * 50, *(("x", text) for text in odd)))
    assert finding.lines == [51, 52, 53]


def test_brackets_are_no_matter_where_most_rows_have_none_or_most_do_not_pair():
    assert checks.brackets(rows(*[("a", "b")] * 9, ("a", "b )"))) is None
    assert checks.brackets(rows(*[("a", "b )")] * 9, ("a", "b ( )"))) is None


def test_targets_that_are_their_sources_are_a_warning_for_ten_examples_of_which_nine_tenths_are_so():
    same, other, sentence = (("go left", "go left"), ("go left", "L"), ("go left", ""))
    assert checks.copies(rows(*[same] * 18, *[other] * 2)).what == "18 of 20 targets are the same as their sources"
    assert checks.copies(rows(*[same] * 17, *[other] * 3)) is None and checks.copies(rows(*[same] * 9)) is None
    assert checks.copies(rows(*[sentence] * 20)) is None and checks.copies(rows(*[("", "")] * 20)) is None
    assert [one.severity for one in findings(rows(*[same] * 10)) if "same as their" in one.what] == ["warning"]


def test_a_file_of_answers_needs_no_split_to_learn_from():
    assert checks.splits(rows(("a", "b", "predicted"), ("c", "d", "predicted"))) is None
    assert checks.splits(rows(("a", "b", "predicted"), ("c", "d", "mine"))).severity == "error"


def test_a_tidy_table_has_no_findings():
    tidy = rows(*[(f"go to room {number}", f"MOVE room {number}") for number in range(30)])
    assert findings(tidy) == []


@pytest.mark.parametrize(
    "lines",
    [
        [("jump", "I_JUMP"), ("walk", "I_WALK")],
        [("command", "answer ( x )"), ("text", "answer ( y )")],
        [("what is the question", "ask ( x )"), ("who", "ask ( y )")],
    ],
)
def test_examples_are_not_taken_for_a_header(lines):
    assert checks.header(rows(*lines)) is None


def test_categories_in_the_third_column_are_splits():
    lines = [(f"a {number}", "b", f"category{number % 20}" if number % 21 else "train") for number in range(2100)]
    assert checks.splits(rows(*lines)) is None


def test_a_few_quoted_sides_among_many_are_text():
    assert checks.quotes(rows(*[("a", "b")] * 200, ('"yes"', "b"))) is None
    assert checks.quotes(rows(*[("a", "b")] * 50, ('"yes"', "b"))) is not None


def test_repetitions_and_contradictions_are_of_one_split():
    lines = [("a", "b", "train"), ("a", "b", "test"), ("a", "c", "test")]
    assert checks.duplicates(rows(*lines)) is None
    assert checks.contradictions(rows(*lines)).lines == [3]
    assert checks.leaks(rows(*lines)).lines == [2]
    assert checks.leaked_sources(rows(*lines)).lines == [3]


def test_examples_are_the_same_whatever_spaces_are_between_their_tokens():
    lines = [
        ("a b", "c d", "train"),
        ("a\u00a0b", "c  d ", "train"),
        ("a\u2003b", "x", "train"),
        ("a\u00a0 b", "c d", "test"),
    ]
    assert checks.duplicates(rows(*lines)).lines == [2]
    assert checks.contradictions(rows(*lines)).lines == [3]
    assert checks.leaks(rows(*lines)).lines == [4]
    assert checks.leaked_sources(rows(*lines, ("a\u00a0b", "y", "test"))).lines == [5]


def test_a_no_break_space_is_part_of_a_word_in_sentences():
    assert checks.duplicates(rows(("a b", ""), ("a\u00a0b", ""))) is None


def test_words_of_inflection_are_meant_to_be_letters():
    assert checks.spelled(rows(("g e h e n V PST", "g i n g"), ("s e h e n V PST", "s a h"))) is None
    assert checks.spelled(rows(("g e h e n", "g i n g"), ("s e h e n", "s a h"))) is not None


def test_a_tag_that_a_word_has_twice_is_noted_where_most_rows_are_words():
    lines = [("t a l o N GEN SG", "t a l o n"), ("t a l o N GEN SG GEN", "t a l o n"), ("^T a l o N N", "^T a l o")]
    finding = checks.repeated_tags(rows(*lines, ("a a ^A ^A N", "a")))
    assert (finding.severity, finding.lines) == ("note", [2, 3])
    assert checks.repeated_tags(rows(("b o s t o n", "BOS BOS"), ("is X in X", "f ( X , X )"), lines[1])) is None


def test_words_that_sides_share_but_for_marks_are_said():
    """A sign before a bracket has one in both tables; in the second the words have none."""
    table = rows(("in 1997 ?", "year ￭( ￭1997 ￭)"), ("in 1998 ?", "year ￭( ￭1998 ￭)"), ("in 2001", "year 2001"))
    (finding,) = findings(table)
    assert finding.severity == "note" and "as 1997 and ￭1997" in finding.what and "--signs apart" in finding.advice
    assert not findings(rows(("in 1997", "year ￭( 1997 ￭)"), ("￭1998 too", "year ￭( ￭1998 ￭)")))


def test_brackets_with_labels_are_not_glued():
    assert checks.glued(rows(("buy milk", "[IN:REMIND [SL:TASK buy milk ] ]"), ("skip", "[IN:SKIP ]"))) is None
    for target in ("[IN:REMIND [SL:TASK buy milk]]", "(lambda $0 (f $0 g(x) ) )"):
        assert checks.glued(rows(("buy milk", target))).what == "brackets in targets are parts of tokens"


def test_lists_of_tokens_in_a_table_are_text():
    for text in ('["buy", "milk"]', "['buy', 'milk']", '"[""buy"", ""milk""]"'):
        table = rows((text, "f ( x )"), ("a b", "g ( x )"), (text, "g ( x )"))
        finding = checks.lists(table)
        assert finding.severity == "warning" and "most sources are lists of tokens" in finding.what
        assert checks.glued(table) is None
    assert not findings(rows(('say "a', "[IN:SAY [SL:TEXT a ] ]"), ("b", '[IN:SAY [SL:TEXT "b" ] ]')))


def test_signs_and_letters_without_spaces_are_set_apart_where_there_are_some():
    for text, several in (
        ("answer(count(river))", True),
        ("東京都は日本の首都であり人口", True),
        ("हिन्दी" * 4, False),
    ):
        finding = checks.unsegmented(rows(("a b", text)))
        assert ("--signs apart" in finding.advice) == several and "put spaces between" in finding.advice


def test_lemmas_with_tags_are_words_without_forms():
    assert checks.unformed(rows(("go", "V;PST"), ("be", "V"), ("see", "V;PRS"))).severity == "warning"
    assert checks.unformed(rows(("lemma", "tags", "gold"), ("go", "V;PST", "went"))).severity == "error"
    for others in ([("go", "V;PST"), ("be", "V")], [("go", "V;PST", "test")], [("go left", "l;pst")]):
        assert checks.unformed(rows(*others)) is None
    for names in (("lemma", "form", "tags"), ("lemma", "features", "split"), ("lemma", "x", "y")):
        assert checks.unformed(rows(names, ("go", "x", "went"))) is None


def test_the_one_training_example_among_many_is_not_missed():
    """All that is looked at of a large table is a thousand examples."""
    pairs = Dataset.from_pairs([([f"a{number}", "b"], ["f"]) for number in range(20_000)])
    others = pl.Series("split", ["train" if number == 7_777 else "mine" for number in range(20_000)])
    assert worst(Dataset(pairs.frame.with_columns(others))) is None
    assert "train is not among them" in worst(Dataset(pairs.frame.with_columns(split=pl.lit("mine"))))


def test_the_worst_is_found_in_a_part_of_a_large_table():
    pairs = [([f"a{number}"], ["f", "(", "x", ")"]) for number in range(20_000)]
    assert worst(Dataset.from_pairs(pairs)) is None
    pairs[::10] = [(source, ["f", "(", "x"]) for source, _ in pairs[::10]]
    assert worst(Dataset.from_pairs(pairs)) == checks.brackets(rows_of(Dataset.from_pairs(pairs))).what


def test_a_first_line_of_words_of_its_own_is_strange_where_others_share_theirs():
    others = [(f"go {number % 3}", "MOVE x") for number in range(30)]

    def strange_first(table):
        return checks.strange_first(table, table.row(0)[1:])

    assert strange_first(rows(("Satz", "unser Programm"), *others)).lines == [1]
    assert strange_first(rows(("Satz", "MOVE"), *others)) is None
    assert strange_first(rows(("one two three four five", "f"), *others)) is None
    assert strange_first(rows(("source", "target"), *others)) is None  # `header` says so
    assert strange_first(rows(*[(f"a{number}", f"b{number}") for number in range(30)])) is None
    assert strange_first(rows(("Satz", "Programm"), *others[:5])) is None


def test_columns_are_named_the_way_round_that_their_names_say():
    assert naming("requête", "question_fr") == "--source question_fr --target 'requête'"
    assert naming("SQL query", "frage") == "--source frage --target 'SQL query'"
    assert naming("question", "frage") == "--source question --target frage"
    assert naming("eins", "zwei") == "--source eins --target zwei"
    assert naming("domain", "user_utterance", "decoupled_parse") == "--source user_utterance --target decoupled_parse"
    assert naming("domain", "locale", "the parse") == "--source domain --target 'the parse'"
