"""Samples in Python: their columns, and the limits of numbers."""

import polars as pl
import pytest

import compgen
from compgen.api import Generator, Predictor
from compgen.errors import Remark, UserError
from compgen.trained.generator import SamplingOptions
from compgen.trained.limits import ADDRESSES, LIMITS
from tests.export.tiny import exported

COLUMNS = {
    "source": pl.List(pl.String),
    "target": pl.List(pl.String),
    "split": pl.String,
    "method": pl.String,
    "index": pl.Int64,
    "log_prob": pl.Float64,
    "prototypes": pl.List(pl.Int64),
}


def test_samples_keep_where_they_come_from():
    generator = Generator.load(exported())
    found = generator.sample(draws=200, seed=3, temperature=(1.0, 1.0)).frame
    assert dict(found.schema) == COLUMNS
    drawn = {draw.index: draw for draw in generator.draw(3, 0, 200, temperature=(1.0, 1.0))}
    decode = generator.vocabulary.decode
    assert found.height > 10 and set(found["method"]) == {"recombine"}
    for row in found.iter_rows(named=True):
        draw = drawn[row["index"]]
        assert row["prototypes"] == list(draw.prototypes)
        assert row["log_prob"] == pytest.approx(draw.log_prob, abs=1e-4)
        assert [*row["source"], "→", *row["target"]] == decode(draw.tokens)


def test_the_stream_of_seed_0_from_its_beginning_is_drawn_unless_another_is_asked_for():
    generator = Generator.load(exported())
    usual = generator.sample(draws=100, temperature=(1.0, 1.0)).frame
    assert usual.equals(generator.sample(draws=100, seed=0, start=0, temperature=(1.0, 1.0)).frame)


def test_a_bundle_of_a_generator_is_no_predictor():
    with pytest.raises(UserError, match="expected a predictor"):
        Predictor.load(exported())


def test_chosen_samples_keep_it_too():
    generator = Generator.load(exported())
    asked = {"draws": 300, "seed": 3, "temperature": (1.0, 1.0)}
    every = generator.sample(**asked).frame
    best = generator.sample(**asked, best=5).frame
    assert dict(best.schema) == COLUMNS
    assert best.equals(every.sort("log_prob", descending=True, maintain_order=True).head(5))
    voted = generator.sample(**asked, vote=True).frame
    assert voted["source"].n_unique() == voted.height == every["source"].n_unique()


def test_a_vote_counts_draws_without_the_rare_token_that_winners_must_hold():
    generator = Generator.load(exported())
    asked = {"draws": 3000, "seed": 3, "temperature": (1.0, 1.0)}
    voted, rare = (
        generator.sample(**asked, **options, vote=True).frame
        for options in ({}, {"filters": "rare", "rare_tokens": "e"})
    )
    assert rare.equals(voted.filter(pl.concat_list("source", "target").list.contains("e")))
    slips = generator.sample(**asked, filters="rare", rare_tokens="e").frame
    assert 0 < rare.height < slips["source"].n_unique()  # of which some are outvoted


def test_progress_and_ctrl_c_are_looked_at_every_few_draws():
    seen = []
    kept = Generator.load(exported()).kept(draws=100, watch=lambda counts: seen.append(counts.drawn))
    assert len(list(kept)) and seen == [0, 32, 64, 96]


def test_no_samples_have_the_columns():
    assert dict(Generator.load(exported()).sample(0).frame.schema) == COLUMNS


@pytest.mark.parametrize("name", ["start", "draws", "seed", "beam", "batch", "workers"])
def test_numbers_have_the_limits_of_the_command_line(name):
    generator = Generator.load(exported())
    least, most = LIMITS[name]
    for number in (least - 1, most + 1):
        with pytest.raises(UserError, match=rf"{name} {number}: expected a number from {least:,} to {most:,}"):
            generator.stream(1, **{name: number})


def test_options_that_exclude_each_other_are_refused_as_on_the_command_line():
    generator = Generator.load(exported())
    for wrong in ({"beam": 2, "workers": 2}, {"novelty": "pair"}, {"rarity": 0.5}, {"ngram": 2}):
        with pytest.raises(UserError, match=r"leave out workers or beam|the filter"):
            generator.sample(1, **wrong)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"best": "3"}, "best '3': expected a whole number of 0 or more"),
        ({"best": 2.5}, r"best 2\.5: expected"),
        ({"vote": True, "margin": "x"}, "margin 'x': expected a whole number of 0 or more"),
        ({"support": "a"}, "support 'a': expected a share of the samples, 0 or more"),
        ({"filters": "rare", "rarity": "x"}, "rarity 'x': expected a share of the training examples"),
        ({"filters": "rare", "ngram": 1.5}, r"ngram 1\.5: expected a length, a whole number"),
        ({"filters": "rare", "rare_tokens": 5}, "rare_tokens 5: expected tokens, each a string"),
        ({"filters": "rare", "rare_tokens": [5]}, r"rare_tokens \[5\]: expected tokens, each a string"),
    ],
)
def test_what_is_no_number_or_token_where_one_is_expected_is_refused(asked, says):
    with pytest.raises(UserError, match=says):
        compgen.Generator.load(exported()).sample(draws=5, **asked)


@pytest.mark.parametrize("wrong", [1.0, (1.0,), "ab", (None, 1.0), (10**400, 1.0)])
def test_a_temperature_is_two_numbers(wrong):
    with pytest.raises(UserError, match="expected two numbers, of the two halves"):
        SamplingOptions(temperature=wrong)


def test_the_last_address_can_be_drawn():
    generator = Generator.load(exported())
    assert [draw.index for draw in generator.draw(0, ADDRESSES - 1, ADDRESSES + 1)] == [ADDRESSES - 1, ADDRESSES]


def test_examples_are_those_of_the_pool_in_tokens():
    generator = Generator.load(exported())
    decode, found = generator.vocabulary.decode, generator.examples()
    assert found == compgen.Dataset.from_pairs((decode(a), decode(b)) for a, b in generator.training.examples)
    assert len(found) == len(generator.pool.tokens)


def test_examples_that_a_generator_has_learned_from_are_counted_whatever_their_order():
    generator = Generator.load("recomb2")
    learnt, new = generator.examples().pairs()[:3], (["walk", "never"], ["seen"])
    assert generator.memory(compgen.Dataset.from_pairs([new, (["walk"], ["I_JUMP"])])) == []
    says = "all examples are among those it was trained on: the score on these measures memory"
    assert generator.memory(compgen.Dataset.from_pairs(reversed(learnt))) == [says]
    with pytest.warns(Remark, match="^3 of 4 examples are among those it was trained on") as said:
        compgen.evaluate(generator, compgen.Dataset.from_pairs([new, *learnt]))
    assert said[0].filename == __file__


def test_workers_find_a_bundle_that_was_named_from_another_folder(monkeypatch):
    folder = exported()
    monkeypatch.chdir(folder.parent)
    model = Generator.load(folder.name).model
    monkeypatch.chdir("/")
    assert model.bundle is not None and (model.bundle / "manifest.json").is_file()
