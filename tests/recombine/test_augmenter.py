"""The augmenter: samples as they come, or by vote."""

from collections import Counter

import pytest

from compgen.augmenters.registry import make
from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection
from compgen.errors import ConfigError, ExhaustedError, Interrupted, UserError
from compgen.recombine import augmenter as module
from compgen.recombine import training
from compgen.recombine.augmenter import Recombine
from compgen.sampling.resampling import Counts
from tests.augmenters.test_conformance import TINY

PAIRS = [([verb, way], [way.upper(), verb.upper()]) for verb in ("walk", "run", "look") for way in ("left", "right")]


@pytest.fixture(scope="module")
def fitted():
    return make("recombine", **TINY | {"filters": ("novel", "unique"), "vote": True}, draws_each=400).fit(
        Dataset.from_pairs(PAIRS)
    )


def test_a_vote_keeps_each_source_once_with_the_target_that_most_of_its_draws_have(fitted):
    voted = fitted.sample(10, seed=4).pairs()
    drawn = Counter(
        (tuple(one.source), tuple(one.target)) for one in fitted.generator.stream(seed=4, draws=4000)
    )  # the same draws, not chosen among
    known = {tuple(source) for source, _ in PAIRS}
    assert 0 < len(voted) == len({tuple(source) for source, _ in voted}) <= 10
    for source, target in voted:
        of_source = {ended: count for (begun, ended), count in drawn.items() if begun == tuple(source)}
        assert of_source[tuple(target)] == max(of_source.values()) and tuple(source) not in known


def test_sentences_are_made_of_sentences():
    lines = [f"{who} sees {what}".split() for who in ("she", "he", "Kim") for what in ("cats", "the dog", "Pat")]
    made = make("recombine", **TINY).fit(Dataset.from_pairs((line, []) for line in lines)).sample(5)
    assert len(made) == 5 and not any(target for _, target in made.pairs())
    assert not {tuple(source) for source, _ in made.pairs()} & {tuple(line) for line in lines}


def test_a_vote_makes_as_many_draws_as_it_is_told(fitted):
    fitted.sample(3, seed=1)
    assert fitted._counts.drawn == 1200


def test_a_vote_makes_fewer_draws_for_each_of_many_samples(fitted, monkeypatch):
    monkeypatch.setattr(module, "MOST_DRAWS", 30)
    usual, drawn = fitted.with_options(draws_each=None, filters=()), []
    for count in (3, 10):
        usual.sample(count, seed=1)
        drawn.append(usual._counts.drawn)
    assert drawn == [30, 10 * module.LEAST_VOTES]


def test_samples_that_are_not_voted_on_are_the_first_that_pass(fitted):
    plain = fitted.with_options(vote=False, draws_each=None)
    kept = map(plain.generator.sample_of, plain.generator.kept(60, seed=4, filters=("novel", "unique")))
    assert plain.sample(60, seed=4).pairs() == [(list(one.source), list(one.target)) for one in kept]
    few = fitted.with_options(vote=False, draws_each=2)
    assert len(few.sample(10, seed=4)) < 10 and few._counts.drawn == 20


def test_draws_that_are_broken_are_a_warning(fitted, monkeypatch):
    for broken in (0, 9):
        monkeypatch.setattr(fitted, "_counts", Counts(drawn=10, rejected=Counter(unfinished=broken)))
        said = "90.0% of the draws were unfinished or malformed" in " ".join(fitted.warnings())
        assert said == bool(broken)


def test_there_must_be_as_many_examples_as_a_row_of_training_has():
    two = Dataset.from_pairs(PAIRS[:2] * 3)
    assert Recombine.refuses(two) == "distinct examples: 2, expected 3 or more"
    assert Recombine.refuses(two + Dataset.from_pairs(PAIRS[2:3])) is None


def test_settings_that_are_given_are_not_those_found(monkeypatch):
    monkeypatch.setattr("compgen.recombine.settings.choosing", lambda *_: {"vote": True, "support": 0.1})
    few, pairs = {"optimisation": {"steps": 1}, "draws_each": 1}, Dataset.from_pairs(PAIRS)
    for given, expected in (({}, (True, 0.1)), ({"support": 0.3}, (True, 0.3)), ({"vote": False}, (False, None))):
        options = Recombine(**few, **given).fit(pairs).options
        assert (options.vote, options.support) == expected


def test_sources_that_nothing_voted_on_are_a_warning(fitted, monkeypatch):
    sources = {tuple(source) for source, _ in fitted.sample(50, seed=4).pairs()}
    drawn = Counter(tuple(one.source) for one in fitted.generator.stream(seed=4, draws=20000))
    once = sum(drawn[source] == 1 for source in sources) / len(sources)
    assert 0 < once < 1
    monkeypatch.setattr(module, "MOST_ALONE", once + 0.01)
    assert "were drawn once" not in " ".join(fitted.warnings())
    monkeypatch.setattr(module, "MOST_ALONE", once - 0.01)
    assert f"{once:.0%} of the sources were drawn once, so that nothing voted" in " ".join(fitted.warnings())


def test_no_sample_is_an_error_with_counts():
    with pytest.raises(ExhaustedError, match=r"no sample is kept: 2 drawn, 0 kept; not kept: "):
        make("recombine", **TINY | {"vote": True, "filters": ("novel",), "sampling": {"temperature": (0.0, 0.0)}}).fit(
            Dataset.from_pairs(PAIRS)
        ).with_options(draws_each=1).sample(2)


def test_what_is_drawn_may_change_without_training(fitted):
    as_they_come = fitted.with_options(vote=False, draws_each=None)
    assert len(as_they_come.sample(10, seed=4)) == 10 and fitted.options.vote
    with pytest.raises(ConfigError, match="support is for votes: leave out --support, or --no-vote"):
        fitted.with_options(vote=False, support=0.1)
    supported = fitted.with_options(vote=None, support=0.0)  # which is a vote, too
    assert supported.sample(10, seed=4) == fitted.sample(10, seed=4)
    with pytest.raises(ExhaustedError, match="no sample is kept"):
        fitted.with_options(support=1.0).sample(10, seed=4)


def test_prototypes_that_are_none_are_refused(fitted):
    for wrong in ("5 37", ["a"], [0.5], [True], [99]):
        with pytest.raises(UserError, match="expected the row of an example given to fit"):
            fitted.explain({"prototypes": wrong})
    with pytest.raises(UserError, match="made from no prototypes"):
        fitted.explain({"prototypes": []})


def test_ctrl_c_while_drawing_names_the_trained_generator(fitted, monkeypatch, tmp_path):
    def interrupt(*_):
        raise KeyboardInterrupt

    drawing = fitted.with_options(vote=True)
    monkeypatch.setattr(drawing, "_elected", interrupt)
    with pytest.raises(KeyboardInterrupt):
        drawing.sample(3)
    drawing.beside = tmp_path / "more.jsonl"
    with pytest.raises(Interrupted, match=r"interrupted; cgen sample .*more\.jsonl\.pt draws from the generator"):
        drawing.sample(3)


def test_a_fit_finds_settings_anew_and_keeps_what_was_changed():
    few = {"optimisation": {"steps": 1}, "draws_each": 1}
    pairs = Dataset.from_pairs(PAIRS)
    words = Dataset.from_pairs(
        inflection((stem, f"{stem}s", ("N", "PL"))) for stem in ("cat", "rat", "bat", "dog", "hog", "log", "cot", "rot")
    )
    fresh = Recombine(**few).fit(words)
    again = Recombine(**few).fit(pairs).fit(words)
    assert again.options == fresh.options
    assert again.options != Recombine(**few).fit(pairs).options
    for changed in (
        Recombine(**few).with_options(vote=False).fit(words),
        Recombine(**few).fit(pairs).with_options(vote=False).fit(words),
    ):
        assert changed.options == fresh.options.model_copy(update={"vote": False})


def test_an_interrupted_training_that_is_not_kept_is_not_said_to_go_on(monkeypatch, tmp_path):
    def interrupt(*_, **__):
        raise Interrupted("stopped after update 3 of 9; --resume goes on", 15)

    monkeypatch.setattr(training, "train_generator", interrupt)
    data = Dataset.from_pairs(PAIRS)
    with pytest.raises(Interrupted, match=r"^stopped after update 3 of 9; nothing is kept, as beside") as found:
        Recombine().fit(data)
    assert found.value.number == 15
    with pytest.raises(Interrupted, match="--resume goes on"):
        Recombine(beside=tmp_path / "more.jsonl").fit(data)
    with pytest.raises(UserError, match="resume goes on with a training kept beside a file: give beside"):
        Recombine(resume=True).fit(data)
