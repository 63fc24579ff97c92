"""The augmenter: what must come before what, and what can be asked for."""

import numpy as np
import pytest

from compgen.csl.augmenter import Csl, seed_rules
from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError
from compgen.trained.generator import Generator
from tests.csl.data import published
from tests.csl.test_induction import SMALL

PAIRS = [("walk", "W"), ("run", "R"), ("walk twice", "W W"), ("run twice", "R R"), ("look", "L"), ("look twice", "L L")]
COMMANDS = Dataset.from_pairs((source.split(), target.split()) for source, target in PAIRS)


def csl(**changes):
    return Csl(published("scan").model_copy(update={"induction": SMALL, **changes}))


def test_without_training_any_rule_is_as_probable_as_another():
    fitted = csl(training=None).fit(COMMANDS)
    assert fitted.trained is not None and not fitted.trained.scores.rules.any()
    assert {" ".join(source) for source, _ in fitted.sample(60, seed=1).pairs()} >= {"walk twice", "run twice"}


def test_what_has_an_order():
    augmenter = csl()
    with pytest.raises(UserError, match="induce a grammar before"):
        augmenter.weigh(COMMANDS)
    with pytest.raises(UserError, match="fit the augmenter"):
        augmenter.sample(1)
    augmenter.induce(COMMANDS)
    with pytest.raises(UserError, match="fit the augmenter"):
        augmenter.sample(1)
    with pytest.raises(UserError, match="learn probabilities before"):
        csl(training=None).fit(COMMANDS).relearn(COMMANDS, COMMANDS)


@pytest.mark.parametrize(("count", "seed"), [(-1, 0), (1, -1), (1, 2**64)])
def test_numbers_that_cannot_be(count, seed):
    augmenter = csl(training=None).fit(COMMANDS)
    with pytest.raises(UserError, match=rf"csl: count {count}, seed {seed}: expected whole numbers"):
        augmenter.sample(count, seed)


def test_sample_i_of_a_seed_does_not_depend_on_how_many_are_asked_for():
    augmenter = csl(training=None).fit(COMMANDS)
    assert len(augmenter.sample(0)) == 0
    assert augmenter.sample(40, 3).pairs()[:7] == augmenter.sample(7, 3).pairs() != augmenter.sample(7, 4).pairs()
    assert len(augmenter.sample(1, 2**64 - 1)) == 1


def test_unlabelled_sources_that_have_no_parse_are_left_out():
    augmenter = csl()
    augmenter.induce(COMMANDS)
    augmenter.weigh(COMMANDS, 1)
    steps = []
    more = Dataset.from_pairs([(["run", "twice"], []), (["fly"], []), (["walk"], [])])
    assert augmenter.relearn(COMMANDS, more, 1, lambda step, _: steps.append(step)) == 2
    assert steps


def test_what_is_parsed_is_learned_from_beside_the_examples(monkeypatch):
    augmenter, seen = csl(), []
    augmenter.induce(COMMANDS)
    augmenter.weigh(COMMANDS, 1)
    monkeypatch.setattr(augmenter, "weigh", lambda dataset, *_: seen.append(dataset.pairs()))
    augmenter.relearn(COMMANDS, Dataset.from_pairs([(["walk"], []), (["fly"], [])]), 1)
    assert seen == [[*COMMANDS.pairs(), (["walk"], ["W"])]]


def test_unlabelled_sources_of_which_none_has_a_parse_are_warned_of(tmp_path):
    for text, warned in (("fly\nswim\n", True), ("fly\nwalk\n", False)):
        (tmp_path / "more.txt").write_text(text)
        augmenter = csl(unlabelled=str(tmp_path / "more.txt")).fit(COMMANDS)
        assert [warning.startswith("none of the 2 sources of --unlabelled") for warning in augmenter.warnings()] == (
            [True] if warned else []
        )


def test_a_target_that_the_target_grammar_does_not_derive_is_named(tmp_path):
    (tmp_path / "targets.cfg").write_text("ROOT => W\nROOT => W W\n")
    with pytest.raises(DataError, match="R"):
        csl(targets=str(tmp_path / "targets.cfg")).induce(COMMANDS)


def test_learning_begins_from_seed_0_unless_one_says_otherwise():
    augmenter = csl()
    augmenter.induce(COMMANDS)
    found = [augmenter.weigh(COMMANDS, *seed).scores.rules for seed in ((), (0,), (1,))]
    np.testing.assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


def test_seed_rules_are_what_sides_share_or_else_words_that_go_together():
    words = [("two red", "2 RED"), ("red", "RED"), ("two", "2"), ("blue", "BLUE"), ("two blue", "2 BLUE")]
    apart = Dataset.from_pairs([(source.split(), target.split()) for source, target in words])
    shared = Dataset.from_pairs([(["in", place], ["loc", "(", place, ")"]) for place in ("ohio", "utah")])
    for dataset, named, other in ((apart, "companions", "names"), (shared, "names", "matches")):
        found = seed_rules("auto", dataset).text()
        assert found == seed_rules(named, dataset).text() != seed_rules(other, dataset).text()
    assert not seed_rules("matches", apart).rules  # which is why
    augmenter = Csl(seed_rules="auto", uniform=True)
    augmenter.fit(apart, 0)
    assert augmenter.facts()["seed_rules"] == len(seed_rules("companions", apart).rules) == 3


def test_misspelt_seed_rules_are_told_with_those_there_are():
    with pytest.raises(UserError, match=r"nmaes: no such file, and none of matches, names, companions"):
        seed_rules("nmaes", Dataset.from_pairs([(["a"], ["b"])]))


def test_drawing_shows_how_far_it_is():
    shares = []
    made = csl(training=None).fit(COMMANDS)
    made.sample(10_000, watch=lambda stage, share, _: shares.append((stage, share)))
    assert shares == [("sample", 0.4096), ("sample", 0.8192), ("sample", 1.0)]


def test_a_sample_is_explained_by_its_rules_and_by_examples_that_have_them():
    fitted = csl(training=None).fit(COMMANDS)
    sample = {"source": ["run", "twice"], "target": ["R", "R"]}
    said = [(one.label, " ".join(t for t, _ in one.source), " ".join(t for t, _ in one.target))
            for one in fitted.explain(sample)]  # fmt: skip
    assert said == [
        ("rule", "NT_1 twice", "NT_1 NT_1"),
        ("from", "walk twice", "W W"),
        ("rule", "run", "R"),
        ("from", "run", "R"),
    ]
    fitted.fit(COMMANDS.split("train") + Dataset.from_pairs([(["fly"], ["F"])]))
    rule, example = fitted.explain({"source": ["fly"], "target": ["F"]})  # by the new data
    assert (rule.label, example.label) == ("rule", "from") and rule.source == example.source == [("fly", -1)]
    with pytest.raises(UserError, match="'run twice': the grammar does not derive this"):
        fitted.explain(sample | {"target": ["R"]})
    for source in (["hop"], ["run", "NT_1"]):
        with pytest.raises(UserError, match="does not derive"):
            fitted.explain(sample | {"source": source})


def test_a_grammar_is_saved_and_draws_the_same(tmp_path):
    fitted, out = csl(training=None), tmp_path / "g.grammar"
    with pytest.raises(UserError, match="by fit, before it is saved"):
        fitted.save(out)
    fitted.fit(COMMANDS)
    with pytest.raises(UserError, match=r"a file that ends in \.grammar"):
        fitted.save(tmp_path / "g.pt")
    assert fitted.save(out, copying=True, data="commands") == {"data": "commands", "examples": 6} | fitted.facts()
    generator = Generator.load(out)
    assert generator.answer([["run", "twice"]]) == [["R", "R"]] and generator.model.trained.copying
    drawn = [(sample.source, sample.target) for sample in generator.sample(draws=9, seed=3)]
    assert drawn == [tuple(pair) for pair in fitted.sample(9, 3).pairs()]
