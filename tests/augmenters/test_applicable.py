from importlib.metadata import EntryPoint

import pytest

from compgen.augmenters import registry
from compgen.augmenters.applicable import applicable, kinds_of
from compgen.augmenters.base import PAIRS, SENTENCES, WORDS
from compgen.augmenters.registry import find, summaries
from compgen.augmenters.resample import Resample
from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection
from compgen.errors import DataError, ExhaustedError

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
def test_a_method_that_does_not_apply_refuses_the_data_and_no_other_does_for_its_kind(dataset):
    """Recombine and csl train for long: what they take is compared with `takes` alone."""
    found = applicable(dataset)
    assert list(found) == list(summaries())
    for name in ("geca", "stemcorrupt", "concat", "resample"):
        try:
            find(name)().fit(dataset)
        except DataError as error:
            refused = str(error)
        except ExhaustedError:  # the data are of the right kind, but too few
            refused = None
        else:
            refused = None
        assert (found[name] is None) == (refused is None), (name, found[name], refused)
    for name in ("recombine", "csl"):
        assert (found[name] is None) == bool(find(name).takes & kinds_of(dataset)[0])


def test_reasons_are_a_few_words():
    assert applicable(SENTENCE)["csl"] == "takes pairs; these are sentences, without targets"
    assert applicable(PAIR)["stemcorrupt"] == (
        "takes words; example 1 is a pair, but no word of inflection (letters and tags)"
    )


def test_what_needs_torch_says_so_where_there_is_none(monkeypatch):
    monkeypatch.setattr("compgen.augmenters.applicable.find_spec", lambda name: None)
    assert applicable(PAIR)["recombine"] == "needs torch: pip install 'compgen[train]'"
    assert applicable(PAIR)["geca"] is None


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
