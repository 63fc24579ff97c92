import itertools
import math
from collections import Counter

import pytest

from compgen.data.compounds import Ngrams, Trees, measure, usual_inventory
from compgen.data.examples import Dataset
from compgen.errors import DataError


def targets(*texts):
    return Dataset.from_pairs([(["x"], text.split()) for text in texts])


def sources(*texts):
    return Dataset.from_pairs([(text.split(), []) for text in texts])


def test_a_trees_compounds_are_functions_with_the_heads_of_their_arguments():
    data = targets("answer ( most ( state , next_to_2 ( state ) , m0 ) )")
    assert Trees().compounds(data) == [
        Counter(
            [
                ("answer", 1, 0, "most"),
                ("most", 3, 0, "state"),
                ("most", 3, 1, "next_to_2"),
                ("most", 3, 2, "m0"),
                ("next_to_2", 1, 0, "state"),
            ]
        )
    ]
    assert Trees(arity=False).atoms(data) == [Counter(["answer", "most", "state", "next_to_2", "state", "m0"])]
    assert Trees().atoms(data) == [
        Counter([("answer", 1), ("most", 3), ("state", 0), ("next_to_2", 1), ("state", 0), ("m0", 0)])
    ]


def test_trees_may_have_labels_no_names_no_arguments_and_no_brackets():
    labels, nameless, no_argument, bare = targets(
        "eat ( agent = * dog , theme = bone ( nmod . in = box ) )", "all ( ( a , b ) , c )", "now ( )", "jump"
    ).pairs()
    compounds = Trees().compounds(Dataset.from_pairs([labels, nameless, no_argument, bare]))
    assert set(compounds[0]) == {
        ("eat", 2, 0, "agent = * dog"),
        ("eat", 2, 1, "theme = bone"),
        ("bone", 1, 0, "nmod . in = box"),
    }
    assert set(compounds[1]) == {("", 2, 0, "a"), ("", 2, 1, "b"), ("all", 2, 0, ""), ("all", 2, 1, "c")}
    assert compounds[2:] == [Counter(), Counter()]
    assert Trees().atoms(Dataset.from_pairs([no_argument, bare])) == [Counter([("now", 0)]), Counter([("jump", 0)])]


def test_brackets_with_labels_are_functions():
    data = targets("[IN:REMIND [SL:TASK call [SL:WHO mom ] ] [SL:DATE at ( 5 ) ] ]", "[IN:SKIP ]")
    assert [{*bag} for bag in Trees().compounds(data)] == [
        {
            ("[IN:REMIND", 1, 0, "[SL:TASK [SL:DATE"),
            ("[SL:TASK", 1, 0, "call [SL:WHO"),
            ("[SL:WHO", 1, 0, "mom"),
            ("[SL:DATE", 1, 0, "at"),
            ("at", 1, 0, "5"),
        },
        set(),
    ]
    assert Trees().atoms(data)[1] == Counter([("[IN:SKIP", 0)])
    assert usual_inventory(data) == Trees()
    with pytest.raises(DataError, match=r"open brackets at the end: 1, .* in the target '\[a \[b c \]'"):
        Trees().atoms(targets("[a [b c ]"))


def test_an_argument_that_is_brackets_alone_is_one():
    data = targets("f ( ( a ) )")
    assert Trees().compounds(data) == [Counter([("f", 1, 0, ""), ("", 1, 0, "a")])]
    assert Trees().atoms(data) == [Counter([("f", 1), ("a", 0)])]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("f ( a ) )", r"found a closing bracket, expected an opening one before it in the target 'f \( a \) \)'"),
        (") f (", "found a closing bracket"),
        ("f ( g ( a )", "open brackets at the end: 1"),
    ],
)
def test_brackets_that_do_not_match_are_refused(target, message):
    for find in (Trees().atoms, Trees().compounds):
        with pytest.raises(DataError, match=message):
            find(targets("f ( a )", target))


def test_a_sequences_compounds_are_ngrams():
    data = Dataset.from_pairs([(["a", "b", "a", "b"], ["A"])])
    assert Ngrams(longest=3).compounds(data) == [
        Counter({("a", "b"): 2, ("b", "a"): 1, ("a", "b", "a"): 1, ("b", "a", "b"): 1})
    ]
    assert Ngrams(longest=2).compounds(data) == [Counter({("a", "b"): 2, ("b", "a"): 1})]
    assert Ngrams().atoms(data) == [Counter("abab")]
    assert (Ngrams("target").atoms(data), Ngrams("target").compounds(data)) == ([Counter("A")], [Counter()])
    with pytest.raises(DataError, match="expected 2 or more"):
        Ngrams(longest=1)


def test_brackets_of_most_distinct_targets_choose_the_inventory():
    assert usual_inventory(targets("a b", "f ( a )", "f ( b )")) == Trees()
    assert usual_inventory(targets("f ( a )", "f ( b )", "a )")) == Trees()
    assert usual_inventory(targets("a b", "f ( a )", "f ( a )")) == Ngrams("source", 3)
    assert usual_inventory(targets("a b", "a )", ") (")) == Ngrams("source", 3)
    assert usual_inventory(targets()) == Ngrams("source", 3)
    assert usual_inventory(targets("a b", "f(a)")) == Ngrams("source", 3)


def test_divergence_is_one_less_the_chernoff_coefficient():
    train, test = sources("a a a b"), sources("b", "b c c")
    # Shared is b alone: a quarter of the training tokens, half of the test tokens.
    assert math.isclose(measure(train, test, Ngrams()).atoms, 1 - 0.125**0.5)
    assert measure(train, sources("c d"), Ngrams()).atoms == 1
    assert abs(measure(train, train + train, Ngrams()).compounds) < 1e-12
    found = measure(sources("a b a"), sources("b a c"), Ngrams(longest=2))
    assert (found.test_atoms, found.unseen_atoms, found.test_compounds, found.unseen_compounds) == (3, 1, 2, 1)
    assert math.isclose(found.compounds, 1 - 0.5**0.1 * 0.5**0.9)
    rarer = measure(sources("a b a"), sources("b a c c"), Ngrams(longest=2))  # half of training, a third of the test
    assert math.isclose(rarer.compounds, 1 - (1 / 2) ** 0.1 * (1 / 3) ** 0.9)


def test_divergence_of_equal_frequencies_is_never_below_zero():
    for sizes in itertools.product(range(1, 5), repeat=3):
        data = Dataset.from_pairs([(list("a" * sizes[0] + "b" * sizes[1] + "c" * sizes[2]), ["x"])])
        found = measure(data, data, Ngrams())
        assert f"{found.atoms:.4f} {found.compounds:.4f}" == "0.0000 0.0000"


def test_divergence_of_nothing_is_refused():
    some, none = sources("a b"), sources("a")
    with pytest.raises(DataError, match="nothing to compare in the test part"):
        measure(some, none, Ngrams())
    with pytest.raises(DataError, match="nothing to compare in the training part"):
        measure(none, some, Ngrams())


@pytest.mark.parametrize(
    ("split", "parts", "expected"),
    [
        ("standard", ["test"], 0.027),
        ("template1", ["dev", "test"], 0.085),
        ("template2", ["dev", "test"], 0.109),
        ("template3", ["dev", "test"], 0.103),
        ("length", ["dev", "test"], 0.170),
        ("tmcd1", ["dev", "test"], 0.133),
        ("tmcd2", ["dev", "test"], 0.238),
        ("tmcd3", ["dev", "test"], 0.152),
        ("nqg_tmcd1", ["test"], 0.190),
    ],
)
def test_the_published_splits_of_geoquery_have_their_divergence(geoquery, split, parts, expected):
    train = geoquery(f"{split}.train")
    test = sum((geoquery(f"{split}.{part}") for part in parts[1:]), geoquery(f"{split}.{parts[0]}"))
    assert abs(measure(train, test, Trees()).compounds - expected) <= 0.0005
