"""COGS: logical forms to the variable-free form and back, and what is neither."""

import pytest

from compgen.data.cogs_forms import converted, logical_form, variable_free
from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError

# A sentence, its logical form and its variable-free form.
PAIRS = [
    (
        "A rose was helped by a dog .",
        "rose ( x_1 ) AND help . theme ( x_3 , x_1 ) AND help . agent ( x_3 , x_6 ) AND dog ( x_6 )",
        "help ( theme = rose , agent = dog )",
    ),
    (  # a star for each "the", whoever it is of
        "The cat saw Mia by the car .",
        "* cat ( x_1 ) ; * car ( x_6 ) ; see . theme ( x_2 , x_1 ) AND see . recipient ( x_2 , Mia ) AND "
        "see . agent ( x_2 , x_6 )",
        "see ( theme = * cat , recipient = Mia , agent = * car )",
    ),
    (  # phrases on phrases; two nouns of the same word
        "A cat on the bed in a cat slept .",
        "* bed ( x_4 ) ; cat ( x_1 ) AND cat . nmod . on ( x_1 , x_4 ) AND bed . nmod . in ( x_4 , x_7 ) AND "
        "cat ( x_7 ) AND sleep . agent ( x_8 , x_1 )",
        "sleep ( agent = cat ( nmod . on = * bed ( nmod . in = cat ) ) )",
    ),
    (  # clauses within clauses, and a subject of two verbs, which is named twice
        "Zoe hoped that a girl beside the TV wanted to run .",
        "* tv ( x_7 ) ; hope . agent ( x_1 , Zoe ) AND hope . ccomp ( x_1 , x_8 ) AND girl ( x_4 ) AND "
        "girl . nmod . beside ( x_4 , x_7 ) AND want . agent ( x_8 , x_4 ) AND want . xcomp ( x_8 , x_10 ) AND "
        "run . agent ( x_10 , x_4 )",
        "hope ( agent = Zoe , ccomp = want ( agent = girl ( nmod . beside = * tv ) , "
        "xcomp = run ( agent = girl ( nmod . beside = * tv ) ) ) )",
    ),
    (  # what no verb is before keeps no place before it
        "Mia tried to plan to sleep .",
        "try . agent ( x_1 , Mia ) AND try . xcomp ( x_1 , x_3 ) AND plan . agent ( x_3 , Mia ) AND "
        "plan . xcomp ( x_3 , x_5 ) AND sleep . agent ( x_5 , Mia )",
        "try ( agent = Mia , xcomp = plan ( agent = Mia , xcomp = sleep ( agent = Mia ) ) )",
    ),
]


def split(text):
    return text.split()


@pytest.mark.parametrize(("sentence", "lf", "free"), PAIRS)
def test_one_form_gives_the_other(sentence, lf, free):
    source = sentence.split()
    assert variable_free(source, lf.split()) == free.split()
    assert logical_form(source, free.split()) == lf.split()


def test_variables_may_be_three_tokens_as_published():
    assert variable_free(split("Mia slept ."), split("sleep . agent ( x _ 1 , Mia )")) == split("sleep ( agent = Mia )")


def test_a_single_word_is_its_variable_free_form_but_only_a_name_its_logical_form():
    assert variable_free(["shark"], split("LAMBDA a . shark ( a )")) == ["shark"]
    assert variable_free(["Mia"], ["Mia"]) == logical_form(["Mia"], ["Mia"]) == ["Mia"]
    with pytest.raises(DataError, match="the single word 'shark', expected a sentence or a name"):
        logical_form(["shark"], ["shark"])
    for lf in ("sleep", "LAMBDA a . sleep ( a )"):
        with pytest.raises(DataError, match="the form of a single word, for 4 words"):
            variable_free(split("A cat slept ."), split(lf))


@pytest.mark.parametrize(
    ("lf", "message"),
    [
        ("", "the term '', expected 'label"),
        ("cat x_1", "the term 'cat x_1'"),
        ("cat ( x_1", "the term"),
        ("cat ( x_1 , x_2 )", "the term"),
        ("see . agent ( x_1 )", "the term"),
        ("see . agent ( x_1 x_2 x_3 )", "the term"),
        ("* see . agent ( x_1 , Mia )", "the term"),
        ("see . agent ( x_2 , x_1 )", "the variable x_1 without a noun or verb"),
        ("cat ( x_1 ) AND dog ( x_1 )", "x_1 as 'cat' and as 'dog', expected one"),
        (
            "see . agent ( x_1 , Mia ) AND hear . agent ( x_2 , Mia )",
            r"2 nodes that are below no other \('see', 'hear'\)",
        ),
        ("see . ccomp ( x_1 , x_2 ) AND see . ccomp ( x_2 , x_1 )", r"0 nodes that are below no other \(none\)"),
        (
            "go . agent ( x_0 , x_1 ) AND see . ccomp ( x_1 , x_2 ) AND hear . ccomp ( x_2 , x_1 )",
            "'see' below itself, expected a tree",
        ),
        (
            "go . agent ( x_0 , Mia ) AND see . ccomp ( x_1 , x_2 ) AND hear . ccomp ( x_2 , x_1 )",
            "'see' in a circle that is not below 'go', expected a tree",
        ),
    ],
)
def test_what_is_no_logical_form_is_refused(lf, message):
    with pytest.raises(DataError, match=message):
        variable_free(split("A cat slept ."), lf.split())


@pytest.mark.parametrize(
    ("free", "message"),
    [
        ("", "found the end as token 1, expected a word"),
        ("sleep ( agent = cat", r"found the end as token 6, expected ',' or '\)'"),
        ("sleep ( agent cat )", "found 'cat' as token 4, expected '='"),
        ("sleep ( )", r"found '\)' as token 3, expected a word"),
        ("sleep ( agent = * )", r"found '\)' as token 6, expected a word"),
        ("sleep ( agent = cat ) )", r"found '\)' as token 7, expected the end"),
        ("sleep ( agent = cat , theme = dog )", "found 3 nodes .* expected 2, one for each noun, name and verb"),
        ("sleep", "found 1 nodes .* expected 2"),
        ("sleep ( agent = Mia , xcomp = run ( agent = Zoe ) )", "found 'Zoe' as the subject of 'run', expected 'Mia'"),
    ],
)
def test_what_is_not_in_the_variable_free_form_or_not_of_the_sentence_is_refused(free, message):
    with pytest.raises(DataError, match=message):
        logical_form(split("A cat slept ."), free.split())


def test_what_is_too_deep_is_refused():
    lf = " AND ".join(f"say . ccomp ( x_{place} , x_{place + 1} )" for place in range(2000)) + " AND say ( x_2000 )"
    with pytest.raises(DataError, match="more than 100 nodes one below another"):
        variable_free(split("A cat slept ."), lf.split())
    with pytest.raises(DataError, match="more than 100 nodes one below another"):
        logical_form(split("A cat slept ."), ["say", "(", "ccomp", "="] * 2000 + ["say"] + [")"] * 2000)


def test_a_verb_alone_has_no_logical_form():
    with pytest.raises(DataError, match="found 'sleep' without arguments"):
        logical_form(split("Slept ."), ["sleep"])


def test_a_data_set_is_converted_whole_or_but_for_what_cannot_be():
    pairs = [(split(sentence), split(lf)) for sentence, lf, _ in PAIRS]
    found, kept = converted(Dataset.from_pairs(pairs), "variable-free", "mine")
    assert [target for _, target in found.pairs()] == [split(free) for *_, free in PAIRS] and kept == 0
    odd = Dataset.from_pairs([*pairs, (["A", "cat"], ["say"])])
    with pytest.raises(DataError, match=r"^mine, example 6: "):
        converted(odd, "variable-free", "mine")
    found, kept = converted(odd, "variable-free", "mine", keep=True)
    assert found.pairs()[-1] == (["A", "cat"], ["say"]) and kept == 1
    with pytest.raises(UserError, match="no form 'short': expected "):
        converted(odd, "short", "mine")


@pytest.mark.long
def test_all_published_targets_are_restored_to_the_letter(downloaded):
    wanted, free = downloaded("cogs/lf").pairs(), downloaded("cogs/variable-free").pairs()
    restored = 0
    for (source, target), (same, short) in zip(wanted, free, strict=True):
        assert source == same
        assert variable_free(source, target) == short
        if len(source) > 1:
            assert logical_form(source, short) == target
            restored += 1
    assert (len(wanted), restored) == (51_155, 51_012)
