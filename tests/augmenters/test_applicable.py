from contextlib import suppress
from importlib.metadata import EntryPoint

import pytest

from compgen.augmenters import registry
from compgen.augmenters.applicable import applicable, kinds_of, remarks
from compgen.augmenters.base import PAIRS, SENTENCES, WORDS
from compgen.augmenters.registry import find, summaries
from compgen.augmenters.resample import Resample
from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection
from compgen.errors import DataError, UserError

PAIR = Dataset.from_pairs([(["jump", "twice"], ["I_JUMP", "I_JUMP"]), (["walk"], ["I_WALK"])])
SENTENCE = Dataset.from_pairs([(["the", "cat"], []), (["sat"], [])])
WORD = Dataset.from_pairs([inflection(("gehen", "gehst", ("V", "2"))), inflection(("sehen", "sieht", ("V", "3")))])
MIXED = PAIR + SENTENCE


@pytest.mark.parametrize(
    ("dataset", "kinds"),
    [(PAIR, {PAIRS}), (SENTENCE, {SENTENCES}), (WORD, {PAIRS, WORDS}), (MIXED, set()), (Dataset.from_pairs([]), set())],
)
def test_data_are_of_the_kinds_that_methods_take(dataset, kinds):
    assert kinds_of(dataset)[0] == kinds


@pytest.mark.parametrize("dataset", [PAIR, SENTENCE, WORD, MIXED], ids=["pairs", "sentences", "words", "mixed"])
def test_a_method_applies_to_few_data_if_it_makes_an_example_of_them(dataset):
    """Recombine trains for long, and is asked how many examples it needs."""
    found = applicable(dataset)
    assert list(found) == list(summaries())
    for name in ("geca", "substitute", "lexsym", "stemcorrupt", "concat", "resample"):
        with suppress(UserError):
            assert (len(find(name)().fit(dataset).sample(1)), found[name]) == (1, None)
            continue
        assert found[name] is not None, name
    assert found["recombine"] is not None


def test_no_method_but_controls_applies_to_one_example_however_often_it_is_given():
    pair = Dataset.from_pairs(3 * [(["jump", "twice"], ["I_JUMP", "I_JUMP"])])
    assert [name for name, why in applicable(pair).items() if why is None] == ["concat", "resample"]


def test_a_method_is_not_tried_where_that_takes_long(monkeypatch):
    tried = []
    for name in summaries():
        monkeypatch.setattr(find(name), "attempt", classmethod(lambda kind, data: tried.append((kind.name, len(data)))))
    many = [([f"w{number}"], [f"T{number}"]) for number in range(600)]
    applicable(Dataset.from_pairs(2 * many))
    assert tried == [("geca", 600), ("lexsym", 600)]
    applicable(Dataset.from_pairs([(["a"] * 101, ["A"] * 100)]))
    assert len(tried) == 2


def test_what_was_not_tried_is_said_and_what_takes_long():
    def said(*pairs):
        data = Dataset.from_pairs(pairs)
        return remarks(data, applicable(data))

    few = [(["jump", "twice"], ["J", "J"]), (["walk"], ["W"]), (["walk", "twice"], ["W", "W"]), (["jump"], ["J"])]
    assert said(*few) == []
    (one,) = said(*[([f"w{number}"], [f"T{number}"]) for number in range(200)])
    assert one == "Not tried, as that takes longer: substitute. It may make nothing of these data."
    long = [(["a"] * 600, ["A"] * (600 + number)) for number in range(3)]
    untried, slow = said(*long)
    assert untried.startswith("Not tried, as that takes longer: csl, substitute, lexsym.")  # GECA refuses them
    assert slow.startswith("The longest example has 1,202 tokens, source and target together. The time and memory of ")
    assert "recombine, substitute, lexsym grow with the square" in slow
    assert len(said(*few, (["a"] * 200, ["A"] * 100))) == 1
    assert remarks(Dataset.from_pairs(long), {"concat": None, "csl": "why"}) == []


def test_recombine_asks_for_three_examples_however_long():
    says = "distinct examples: 2, expected 3 or more"
    assert applicable(Dataset.from_pairs([(["a"] * 300, ["A"]), (["b"] * 300, ["B"])] * 2))["recombine"] == says


def test_reasons_are_a_few_words():
    assert applicable(SENTENCE)["csl"] == "takes pairs; these are sentences, without targets"
    assert applicable(PAIR)["stemcorrupt"] == (
        "takes words; example 1 is a pair, but no word of inflection (letters and tags)"
    )


def test_what_needs_torch_says_so_where_there_is_none(monkeypatch):
    monkeypatch.setattr("compgen.augmenters.applicable.find_spec", lambda name: None)
    assert applicable(PAIR)["recombine"] == "needs torch: pip install 'compgen[train]'"
    assert applicable(PAIR)["concat"] is None


class Again(Resample):
    """A method of another package."""

    name = "again"
    takes = frozenset({SENTENCES})


def test_methods_of_other_packages_are_asked_too(monkeypatch):
    points = [
        EntryPoint("again", f"{__name__}:Again", registry.GROUP),
        EntryPoint("broken", "compgen.augmenters.nowhere:Nothing", registry.GROUP),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: points)
    found = applicable(PAIR)
    assert found["again"].startswith("takes sentences; example 1 is a pair")
    assert applicable(SENTENCE)["again"] is None
    assert "broken" in found["broken"]


def test_tokens_that_rules_cannot_have_keep_out_those_methods_alone_that_write_rules():
    pairs = [([verb, *rest], [verb.upper(), *rest]) for verb in ("jump", "walk", "run") for rest in ([], ["x"], ["y"])]
    dataset = Dataset.from_pairs([*2 * [(["x"], ["x"])], *pairs, (["jump", "###"], ["JUMP", "NT_1"])])
    found = applicable(dataset)
    for name in ("csl", "substitute"):
        assert found[name] == "example 12: found the token '###', expected one without spaces that is not ###"
        with pytest.raises(DataError, match="example 12: found the token"):
            find(name)().fit(dataset)
    assert [found[name] for name in ("recombine", "geca", "lexsym", "concat", "resample")] == 5 * [None]
    find("lexsym")().fit(dataset).sample()
