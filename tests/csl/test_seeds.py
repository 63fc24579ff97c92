"""Seed rules: phrases that both sides share, and inflected forms by word alignment."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.configuration import load_config
from compgen.csl.augmenter import Csl
from compgen.csl.options import CslOptions
from compgen.csl.seeds import _shared, companions, exact_matches, inflections, names, shared_phrases
from compgen.data import scan
from compgen.data.examples import Dataset
from compgen.errors import DataError
from tests.csl.data import cogs, geoquery


def test_exact_matches_of_geoquery():
    expected = (
        "capital city highest largest longer longest lowest m0 m1 major most mountain river shortest size smallest"
    )
    expected += " state"
    found = exact_matches(geoquery("standard", "train")).text().splitlines()
    assert found == [f"{word} ### {word}" for word in expected.split()]


def test_exact_matches_longest_first():
    pairs = [(["a", "b", "c", ".", "a"], ["b", "c", "a", ".", "a", "b", "c", "."]), (["'", "x", "'"], ["'", "x", "'"])]
    found = exact_matches(Dataset.from_pairs(pairs)).text().splitlines()
    assert found == ["a ### a", "a b c ### a b c", "x ### x"]


SIDE = st.text("ab.'cd", max_size=9)


@given(SIDE, SIDE)
def test_shared_phrases_are_those_of_a_search_of_all_lengths(source, target):
    def all_lengths(source, target):
        for length in range(len(source), 0, -1):
            for start in range(len(source) - length + 1):
                phrase = source[start : start + length]
                if phrase in target and "." not in (phrase[0], phrase[-1]) and "'" not in (phrase[0], phrase[-1]):
                    yield phrase
                    source = source[:start] + "1" * length + source[start + length :]
                    target = target.replace(phrase, "2" * length, 1)

    assert [*_shared(source, target, {".", "'"})] == [*all_lengths(source, target)]


def named(*lines):
    """The seed rules of names, as text; a line is a source and a target."""
    return (
        names(Dataset.from_pairs([part.split() for part in line.split(" -> ")] for line in lines)).text().splitlines()
    )


QUESTIONS = [
    "rivers in texas -> river ( loc ( stateid ( texas ) ) )",
    "states beside ohio -> state ( next ( stateid ( ohio ) ) )",
    "the ohio -> riverid ( ohio )",
    "the red -> riverid ( red )",
    "where is boston -> loc ( cityid ( boston , _ ) )",
    "where is new york -> loc ( cityid ( new york , ny ) )",
    "the state state -> state ( state ( all ) )",
]


def test_names_with_the_functions_that_are_there_for_them():
    """Each in all its terms; where a term says more than the name, the name means itself, as other phrases do."""
    assert named(*QUESTIONS) == [
        "boston ### cityid ( boston , _ )",
        "new york ### new york",
        "ohio ### riverid ( ohio )",
        "ohio ### stateid ( ohio )",
        "red ### riverid ( red )",
        "state ### state",
        "texas ### stateid ( texas )",
    ]


def test_names_in_brackets_with_labels():
    """Where one term in three has another term inside, its function is not there for phrases."""
    lines = [
        "play jazz -> [IN:PLAY [SL:GENRE jazz ] ]",
        "buy milk -> [IN:REMIND [SL:TASK buy milk ] ]",
        "jog now -> [IN:REMIND [SL:TASK jog ] [SL:DATE now ] ]",
        "call mom -> [IN:REMIND [SL:TASK [IN:CALL [SL:WHO mom ] ] ] ]",
    ]
    assert named(*lines) == [
        "buy milk ### buy milk",
        "jazz ### [SL:GENRE jazz ]",
        "jog ### jog",
        "mom ### [SL:WHO mom ]",
        "now ### [SL:DATE now ]",
    ]
    assert "jog ### [SL:TASK jog ]" in named(*lines[:3])


def test_a_function_is_not_there_for_names_if_it_has_other_arguments_or_if_they_are_elsewhere():
    others = [f"{what} -> stateid ( {code} )" for what, code in zip("abc", "xyz", strict=True)]
    assert "texas ### texas" in named(*QUESTIONS, *others)
    inside = [
        "rivers in m0 -> river ( loc ( m0 ) )",
        "cities in m0 -> city ( loc ( m0 ) )",
        "rivers in states -> river ( loc ( state ( all ) ) )",
    ]
    assert named("how high is m0 -> height ( m0 )", *inside) == ["m0 ### m0"]


def test_names_are_exact_matches_where_no_function_is_there_for_them():
    data = geoquery("standard", "train")
    assert names(data).text() == exact_matches(data).text()
    unbalanced = Dataset.from_pairs([(["a", "b"], [")", "f", "(", "a", ")", "(", "b", "("])])
    assert names(unbalanced).text().splitlines() == ["a ### f ( a )", "b ### b"]


def sentences():
    """Nouns that see, and are seen by, others; each verb in two forms, and a noun that differs in case alone."""
    verbs = {"ate": "eat", "touched": "touch", "thought": "think"}, {"eaten": "eat", "touching": "touch"}
    nouns = {"dog": "dog", "cat": "cat", "TV": "tv", "tench": "tench"}
    for one, other, verb in product(nouns, nouns, verbs[0]):
        target = f"{verbs[0][verb]} ( agent = {nouns[one]} , theme = {nouns[other]} )"
        yield f"a {one} {verb} a {other} .".split(), target.split()
    for one, other, verb in product(nouns, nouns, verbs[1]):
        target = f"{verbs[1][verb]} ( theme = {nouns[one]} , agent = {nouns[other]} )"
        yield f"a {one} was {verb} by a {other} .".split(), target.split()


def test_inflections_are_aligned_and_alike():
    """Not so `TV` and `tv`, which differ in case alone; `was`, whose best is no like word; `tench`, which is itself."""
    found = inflections(Dataset.from_pairs(sentences())).text().splitlines()
    assert found == ["ate ### eat", "eaten ### eat", "thought ### think", "touched ### touch", "touching ### touch"]


def test_inflections_are_not_what_is_alike_but_not_aligned():
    pairs = [(["cat", "cats"], ["x", "cat"]), (["cats"], ["x"]), (["cat"], ["cat"])]
    assert inflections(Dataset.from_pairs(pairs)).rules == ()


def test_without_examples_there_are_no_seed_rules():
    assert all(found(Dataset.from_pairs([])).rules == () for found in (exact_matches, names, companions, inflections))


def test_what_cannot_be_a_rule_is_refused():
    with pytest.raises(DataError, match="example 2: found an empty target"):
        inflections(Dataset.from_pairs([(["a"], ["b"]), (["a"], [])]))


def test_inflections_of_cogs():
    """As many as published: no identities, names or marks among them."""
    found = [tuple(rule.split(" ### ")) for rule in inflections(cogs("train")).text().splitlines()]
    assert len(found) == 140
    known = {"ate": "eat", "gave": "give", "given": "give", "lended": "lend", "thought": "think", "touched": "touch"}
    assert known.items() <= dict(found).items()
    assert all(form != lemma and form.islower() and lemma.isalpha() for form, lemma in found)


def test_companions_are_in_the_same_examples():
    pairs = ["walk left", "run left", "walk right", "run right twice", "turn left and turn right", "turn left"]
    targets = ["L W", "L R", "J W", "J R J R", "L J", "L"]
    made = Dataset.from_pairs((source.split(), target.split()) for source, target in zip(pairs, targets, strict=True))
    assert companions(made).text().splitlines() == ["left ### L", "right ### J", "run ### R", "walk ### W"]
    both = Dataset.from_pairs([(["a", "b"], ["A"]), (["c"], ["C"])])  # a and b are in the same examples
    assert companions(both).text() == "c ### C\n"


@pytest.mark.long
@pytest.mark.parametrize("split", ["around_right", "jump"])
def test_with_companions_the_grammar_knows_what_right_is(split):
    """Nothing that is done around right is in the training data of that split."""
    parts = {part: scan.SPLITS[split][0]().split(part) for part in ("train", "test")}
    config = load_config(CslOptions, "csl_scan_companions", ["training.steps=500"])  # as there are few examples
    trained = Csl(config).fit(Dataset(parts["train"].frame.sample(1000, seed=0))).trained
    assert "NT_1 around NT_2 ### NT_2 NT_1 NT_2 NT_1 NT_2 NT_1 NT_2 NT_1" in trained.grammar.text().splitlines()
    found = trained.parser().evaluate(Dataset(parts["test"].frame.sample(300, seed=0)))
    assert found.accuracy == 1


def test_a_phrase_is_taken_once_on_each_side():
    """Of the target's two `a b` one is taken, and the `a` of the other is what the source's second one shares."""
    pairs = [(["a", "b", "c", "a"], ["a", "b", "y", "a", "b"])]
    assert exact_matches(Dataset.from_pairs(pairs)).text().splitlines() == ["a ### a", "a b ### a b"]


def test_a_token_that_is_taken_is_not_shared_again():
    assert exact_matches(Dataset.from_pairs([(["a", "a"], ["a"])])).text() == "a ### a\n"
    one = exact_matches(Dataset.from_pairs([(["a", "b", "b"], ["x", "a", "b", "b"])])).text()
    assert one == "a b b ### a b b\n"


@given(st.lists(st.tuples(*2 * [st.lists(st.sampled_from("ab.'c"), min_size=1, max_size=6)]), max_size=4))
def test_shared_phrases_are_those_of_exact_matches(pairs):
    grammar = exact_matches(Dataset.from_pairs(pairs))
    assert shared_phrases(pairs) == {source for source, _ in map(grammar.alphabet.key, grammar.rules)}


def test_shared_phrases_may_have_tokens_that_no_rule_has():
    assert shared_phrases([(["see", "###", "NT_1"], ["look", "###", "NT_1"])]) == {("###", "NT_1")}
