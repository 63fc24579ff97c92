"""The verbs in Python, as the package's docstring shows them."""

import ast
import dataclasses
import inspect
import itertools
import json
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

import compgen
from compgen.cli.main import app
from compgen.comparison.options import CompareOptions
from compgen.configuration import load_config, shipped
from compgen.csl.options import CslOptions
from compgen.data.compounds import Ngrams
from compgen.data.vocabulary import Vocabulary
from compgen.errors import ExhaustedError, Interrupted, Remark
from compgen.recombine.augmenter import RecombineOptions
from compgen.sampling.resampling import Counts
from compgen.trained.generator import SamplingOptions
from tests.cli.shell import said
from tests.export.tiny import exported

SIZES = ["network.hidden=16", "network.encoder_hidden=16", "network.embedding=8", "network.output=8"]
OPTIONS = {
    "network": {"hidden": 16, "encoder_hidden": 16, "embedding": 8, "output": 8, "attention": 8},
    "optimisation": {"steps": 200, "batch": 8},
    "held_out": 0.0,
    "neighborhood": {"cover": False, "delta": 0.1},
    "unknown_below": 10,
    "sampling": {"temperature": (1.0, 1.0)},
    "filters": ("unique",),
}


@pytest.fixture(scope="module")
def data():
    pairs = [
        ([verb, *late], [verb.upper(), *late]) for verb in ("walk", "run", "look", "hop") for late in ([], ["now"])
    ]
    return compgen.Dataset.from_pairs(pairs)


@pytest.fixture(scope="module")
def augmenter(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("api") / "g.pt"
    options = load_config(RecombineOptions, "recombine_small", given=OPTIONS)
    return compgen.Recombine(options, beside=out.with_suffix("")).fit(data)


def test_an_augmenter_is_fitted_then_sampled(augmenter):
    samples = augmenter.sample(3, seed=1)
    assert len(samples) == 3
    assert samples == augmenter.sample(3, seed=1) != augmenter.sample(3, seed=2)
    with pytest.raises(compgen.UserError, match="fit the augmenter"):
        compgen.Recombine().sample(1)


def test_filters_and_rare_tokens_may_be_one_string(augmenter):
    generator, common = augmenter.generator, {"draws": 300, "seed": 3, "temperature": (1.0, 1.0)}
    listed = generator.sample(filters=("novel", "unique", "rare"), rare_tokens=("walk",), novelty="pair", **common)
    assert len(listed)
    assert generator.sample(filters="novel,unique,rare", rare_tokens="walk", novelty="pair", **common) == listed
    assert generator.sample(filters="unique", **common) == generator.sample(filters=("unique",), **common)
    assert compgen.Recombine(filters="novel,unique").options.filters == ("novel", "unique")
    with pytest.raises(compgen.UserError, match="no filter 'fresh'"):
        generator.sample(filters="novel,fresh", **common)
    with pytest.raises(compgen.UserError, match="filters"):
        compgen.Recombine(filters=3)


def test_a_method_is_called_by_its_name(data, tmp_path):
    made = compgen.augment(data, "concat", count=3, seed=1)
    assert made == compgen.Concat().fit(data, 1).sample(3, 1) and len(made) == 3
    (tmp_path / "x.tsv").write_text("a\tA\nb\tB\nc\tC\ttest\n")
    options = {"separator": "and"}
    made = compgen.augment(str(tmp_path / "x.tsv"), "concat", 2, **options)
    assert len(made) == 2 and "c" not in {token for source, _ in made for token in source}
    parts = compgen.load_dataset(str(tmp_path / "x.tsv"))
    assert compgen.augment(parts, "concat", 2, **options) == made
    with pytest.warns(Remark, match="4 examples of 5 asked for: 2 distinct examples"):  # c is not learned from
        assert len(compgen.augment(parts, "concat", 5, **options)) == 4
    every = compgen.augment(parts, "concat", 9, split=None, **options)
    assert "c" in {token for source, _ in every for token in source}
    with pytest.raises(compgen.UserError, match="no method 'geka'"):
        compgen.augment(data, "geka")
    for swapped in (data, str(tmp_path / "x.tsv")):
        with pytest.raises(compgen.UserError, match=r"found the method 'geca' first, .*: augment\(data, 'geca'\)"):
            compgen.augment("geca", swapped)
    with pytest.raises(
        compgen.UserError, match=r"concat: no option .spann.: expected one of count, seed, split, config, separator$"
    ):
        compgen.augment(data, "concat", spann=3)


def test_a_generator_answers_too(augmenter):
    generator = augmenter.generator
    assert compgen.predict(generator, ["walk now"]) == [" ".join(generator.answer([["walk", "now"]])[0])]
    assert compgen.predict(augmenter.checkpoint, [["swim"]], direct=True) == [[]]
    with pytest.raises(compgen.UserError, match="leave out beam"):
        compgen.predict(generator, ["walk"], beam=2)


def test_votes_are_held_in_python_too(augmenter):
    generator = compgen.Generator.load(augmenter.checkpoint)
    options = {"draws": 3000, "filters": ("novel",), "novelty": "pair", "seed": 4}
    everything = generator.sample(**options).pairs()
    voted = generator.sample(**options, vote=True).pairs()
    assert len({tuple(source) for source, _ in voted}) == len(voted) > 3
    assert all(pair in everything for pair in voted)
    assert generator.sample(**options, vote=True, best=2).pairs() == voted[:2]
    known = generator.sample(draws=3000, vote=True)
    assert 0 < len(generator.sample(draws=3000, vote=True, margin=2)) < len(known)
    with pytest.raises(compgen.UserError, match="must be won"):
        generator.sample(**options, margin=2)


def test_a_stream_counts_what_it_does(augmenter):
    generator, counts = compgen.Generator.load(augmenter.checkpoint), Counts()
    kept = list(generator.stream(draws=300, filters=("unique", "novel"), novelty="pair", counts=counts))
    assert counts.drawn == 300 == len(kept) + counts.rejected.total()
    assert counts.rejected["not unique"] + counts.rejected["not novel"] > 0
    assert [one.index for one in kept] == sorted(one.index for one in kept)
    assert list(generator.stream(count=0)) == []
    with pytest.raises(compgen.UserError, match="how many"):
        next(generator.stream())


@pytest.mark.parametrize(
    "options",
    [
        {"count": -1},
        {"draws": -1},
        {"seed": 2**64},
        {"start": -5},
        {"batch": -3},
        {"batch": 0},
        {"workers": -1},
        {"workers": 100_000},
        {"beam": 0},
        {"best": -1},
        {"support": float("nan")},
        {"temperature": 0.5},
        {"temperature": (0.5,)},
    ],
)
def test_impossible_numbers_are_refused(augmenter, options):
    generator = compgen.Generator.load(augmenter.checkpoint)
    with pytest.raises(compgen.UserError, match="expected"):
        generator.sample(**({"count": 2} | options))


def test_a_stream_goes_on_from_its_counts(augmenter):
    def what(one):  # a log-probability moves by a rounding with the size of the batch
        return dataclasses.replace(one, log_prob=round(one.log_prob, 4))

    generator = augmenter.generator
    options = {"start": 3, "filters": ("unique",), "temperature": (1.0, 1.0)}
    counts = Counts()
    whole = list(generator.stream(draws=400, counts=counts, **options))
    assert len(whole) > 9 and counts.rejected["not unique"]
    for size in (1, 5, len(whole)):
        part = Counts()
        stream = generator.stream(draws=400, counts=part, **options)
        before = list(itertools.islice(stream, size))
        stream.close()
        earlier = [(one.source, one.target) for one in before]
        after = list(generator.stream(draws=400, counts=part, earlier=earlier, **options))
        assert [*map(what, before + after)] == [*map(what, whole)] and part == counts
        assert not list(generator.stream(len(whole), counts=part, **options))  # all are there


def test_patience_lasts_over_an_interruption(augmenter):
    nearly = Counts(drawn=20_040, kept=1, last=50)
    with pytest.raises(ExhaustedError, match="20,050 drawn"):
        list(augmenter.generator.stream(5, filters=("rare",), ngram=99, counts=nearly))


def test_a_predictor_predicts_and_is_scored(data, tmp_path):
    steps = ["optimisation.steps=400", "optimisation.batch=8", "optimisation.learning_rate=0.01", "held_out=0.0"]
    sizes = [*SIZES, "network.attention=16", "network.embedding_dropout=0.0", "network.output_dropout=0.0"]
    torch.manual_seed(5)
    expected = torch.rand(3).tolist()
    torch.manual_seed(5)
    compgen.train_predictor(data, "seq2seq_small", tmp_path / "p.pt", [*sizes, *steps], quiet=True)
    assert torch.rand(3).tolist() == expected  # the caller's random numbers are its own
    predictor = compgen.Predictor.load(tmp_path / "p.pt")
    assert predictor.evaluate(data).exact_match > 0.8
    wrong = compgen.Dataset.from_pairs([(source, ["WRONG"]) for source, _ in data.pairs()], "test")
    assert predictor.evaluate(data + wrong).exact_match == 0  # of several splits, the test
    assert 0.4 < predictor.evaluate(data + wrong, split=None).exact_match <= 0.5
    assert predictor.evaluate(data + wrong, split="train").exact_match > 0.8
    learnt = compgen.train_predictor(
        data + wrong, "seq2seq_small", tmp_path / "q.pt", [*sizes, "optimisation.steps=2"], quiet=True
    )
    assert learnt["examples"] == len(data)
    other = wrong + compgen.Dataset.from_pairs(data.pairs(), "dev")
    with pytest.raises(compgen.UserError, match="no examples in split 'train'"):
        compgen.train_predictor(other, "seq2seq_small", tmp_path / "q.pt", quiet=True)
    assert predictor.predict([["walk", "now"]], beam=3) == predictor.predict([["walk", "now"]])
    model, as_text = tmp_path / "p.pt", ["walk now", ["walk", "now"]]
    assert (
        compgen.predict(model, as_text) == ["WALK now", ["WALK", "now"]] == compgen.predict(predictor, as_text, beam=2)
    )
    with pytest.raises(compgen.UserError, match="expected a list"):
        compgen.predict(model, "walk now")
    with pytest.raises(compgen.UserError, match="found the source 'walk now', a string, expected a list of tokens"):
        predictor.predict(["walk now"], unknown=True)
    assert predictor.remarks([["walk", "now", "x"]]) == ["1 source token is unknown to it: x"]
    assert (
        "2 source tokens are unknown to it, most of them (a header line," in predictor.remarks([["x", "y", "now"]])[0]
    )
    ((best, score), (_, less)) = predictor.best([["walk", "now"]], 2)[0]
    assert best == ["WALK", "now"] and 0 > score > less
    with pytest.raises(compgen.UserError, match="best 0"):
        predictor.best([["walk"]], 0)
    with pytest.raises(compgen.UserError, match=r"unknown token 'swim': .*; unknown=True answers all the same"):
        predictor.predict([["swim"]])
    assert len(predictor.predict([["swim", "now"]], unknown=True)) == 1
    assert "<unk>" not in predictor.predict([["swim", "now"]], unknown=True)[0]
    compgen.export_bundle(tmp_path / "p.pt", tmp_path / "bundle", batches={8: 20}, quiet=True)
    shipped = compgen.Predictor.load(tmp_path / "bundle")
    sources = [source for source, _ in data.pairs()]
    assert shipped.predict(sources) == predictor.predict(sources)
    with pytest.raises(compgen.UserError, match="holds a predictor, expected a generator"):
        compgen.Generator.load(tmp_path / "bundle")
    predictor.vocabulary = Vocabulary.of([["walk", ",", "now"]])
    assert predictor.remarks([["walk,", "walk", "x,"]]) == [
        "2 source tokens are unknown to it, 1 with known words and signs (set them apart: "
        "`cgen data write SOURCES --signs apart -o OUT`): walk,, x,"
    ]


@pytest.mark.long
def test_a_predictor_that_copies_copies_words_it_never_saw(tmp_path):
    names = [f"name{number}" for number in range(12)]
    pairs = [(["go", "to", a, "from", b], ["TO", a, "FROM", b]) for a in names for b in names]
    settings = ["network.copying=true", "network.token_dropout=0.2", "network.write_dropout=0.0", "held_out=0.0"]
    settings += ["network.attention=32", "network.embedding_dropout=0.0", "network.output_dropout=0.0"]
    settings += [*SIZES, "optimisation.steps=300", "optimisation.batch=32", "optimisation.learning_rate=0.01"]
    train = compgen.Dataset.from_pairs(pairs)
    compgen.train_predictor(train, "seq2seq_small", tmp_path / "p.pt", settings, quiet=True)
    asked = [["go", "to", "utah", "from", "name3"], ["go", "to", "ohio", "from", "utah"]]
    expected = [["TO", "utah", "FROM", "name3"], ["TO", "ohio", "FROM", "utah"]]
    assert compgen.Predictor.load(tmp_path / "p.pt").predict(asked, unknown=True) == expected
    compgen.export_bundle(tmp_path / "p.pt", tmp_path / "bundle", batches={8: 20}, quiet=True)
    assert compgen.Predictor.load(tmp_path / "bundle").predict(asked, unknown=True) == expected


def test_names_are_those_of_the_package():
    rooms = {path.name for path in Path(compgen.__file__).parent.iterdir()}
    for name in compgen.__all__:
        assert getattr(compgen, name)
        assert name not in rooms  # importing a room would hide the name
    assert set(compgen.__all__) <= set(dir(compgen))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        compgen.nothing  # noqa: B018


@pytest.fixture(scope="module")
def predictor(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("api") / "p.pt"
    compgen.train_predictor(
        data, "seq2seq_small", out, [*SIZES, "optimisation.steps=2"], seed=np.int64(3), quiet=True, augmented=data
    )
    return compgen.Predictor.load(out)


def test_of_a_file_of_augmented_examples_with_splits_train_alone_is_learnt_from(data, tmp_path):
    more = data + compgen.Dataset(data.frame.head(1).with_columns(split=pl.lit("test")))
    compgen.write_dataset(more, tmp_path / "more.tsv")
    quick = [*SIZES, "optimisation.steps=1"]
    for augmented, count in ((tmp_path / "more.tsv", len(data)), (more, len(more))):
        done = compgen.train_predictor(data, "seq2seq_small", tmp_path / "p.pt", quick, quiet=True, augmented=augmented)
        assert done["augmented_examples"] == count


def test_made_examples_are_measured_against_the_training_split_alone(data):
    made = compgen.Dataset(data.frame.head(3).with_columns(source=pl.concat_list(pl.lit("do"), "source")))
    both = data + compgen.Dataset(made.frame.with_columns(split=pl.lit("test")))
    assert compgen.measure_quality(made, both) == compgen.measure_quality(made, data)
    assert compgen.measure_quality(both, data) == compgen.measure_quality(data, data)
    assert compgen.measure_quality(made, both, train_split=None) != compgen.measure_quality(made, data)


def test_sources_of_unknown_words_are_a_remark(predictor):
    with pytest.warns(Remark, match="2 source tokens are unknown"):
        compgen.predict(predictor, ["zzz", "qqq"])


@pytest.mark.parametrize("beam", [1, 3])
def test_no_more_sources_than_a_batch_are_answered_at_once(predictor, monkeypatch, beam):
    opened, decoder = [], type(predictor.decoder)
    begin = decoder.open
    monkeypatch.setattr(decoder, "open", lambda self, rows: opened.append(len(rows)) or begin(self, rows))
    predictor.best([["walk"], ["run"], ["look"]], beam, batch=2)
    assert sorted(opened) == [1, 2]


def test_sources_may_come_from_an_iterator_and_may_be_empty(predictor):
    asked = [["walk"], ["run", "now"]]
    expected = predictor.predict(asked)
    assert predictor.predict(source for source in asked) == expected
    assert compgen.predict(predictor, (" ".join(source) for source in asked)) == [" ".join(one) for one in expected]
    assert compgen.predict(predictor, ["walk", "", []])[1:] == ["", []]
    committee = compgen.Committee([predictor, predictor])
    assert committee.predict(iter(asked)) == expected
    with pytest.raises(compgen.UserError, match="each a string"):
        predictor.predict([[["walk"], ["WALK"]]])
    with pytest.raises(compgen.UserError, match=r"found str 'a\.pt', expected predictors"):
        compgen.Committee(["a.pt", "b.pt"])


@pytest.mark.parametrize("wrong", [1.5, "5", True])
def test_numbers_are_whole_before_anything_is_drawn(augmenter, wrong):
    with pytest.raises(compgen.UserError, match="expected a number from 0"):
        augmenter.generator.sample(wrong)
    with pytest.raises(compgen.UserError, match="expected whole numbers"):
        augmenter.sample(wrong)


def test_numbers_may_be_numpys(data, augmenter):
    assert augmenter.sample(np.int64(3), seed=np.int32(1)) == augmenter.sample(3, seed=1)
    with pytest.raises(compgen.UserError, match="seed None: expected whole numbers"):
        compgen.train_predictor(data, "seq2seq_small", "p.pt", seed=None)


def test_data_are_named_by_strings_and_paths_or_refused(data, predictor, tmp_path):
    compgen.write_dataset(data, tmp_path / "d.tsv")
    assert compgen.load_dataset(tmp_path / "d.tsv") == data
    made = compgen.augment(tmp_path / "d.tsv", "resample", 3)
    assert made == compgen.augment(str(tmp_path / "d.tsv"), "resample", 3) == compgen.augment(data, "resample", 3)
    assert compgen.check(tmp_path / "d.tsv") is not None
    assert predictor.evaluate(tmp_path / "d.tsv") == predictor.evaluate(data)
    assert compgen.measure_quality(made, tmp_path / "d.tsv").made == 3
    for call in (
        lambda: compgen.augment([(["a"], ["b"])], "resample"),
        lambda: compgen.check(None),
        lambda: compgen.train_predictor([], "seq2seq_small", tmp_path / "p.pt"),
        lambda: compgen.train_predictor(data, "seq2seq_small", tmp_path / "p.pt", augmented=[data]),
        lambda: predictor.evaluate([(["a"], ["b"])]),
        lambda: compgen.compare([], tmp_path / "c"),
    ):
        with pytest.raises(compgen.UserError, match=r"found (list|NoneType), expected a Dataset"):
            call()


def test_a_split_that_is_not_there_is_told_even_of_one(data, predictor):
    with pytest.raises(compgen.UserError, match="no examples in split 'tain'; available splits: train"):
        compgen.augment(data, "resample", 3, split="tain")
    with pytest.raises(compgen.UserError, match="no examples in split 'dev'"):
        predictor.evaluate(data, split="dev")


@pytest.mark.parametrize(("pairs", "says"), [([], "no examples"), ([(["a"], [])], "sentences, without targets")])
def test_nothing_to_score_by_is_told(predictor, pairs, says):
    with pytest.raises(compgen.UserError, match=says):
        predictor.evaluate(compgen.Dataset.from_pairs(pairs))


def test_fewer_than_asked_for_is_a_remark(data):
    with pytest.warns(Remark, match=r"geca: \d+ examples? of 5,000 asked for"):
        compgen.augment(data[:7], "geca", 5_000)


def test_a_method_takes_its_options_from_a_configuration(data, tmp_path):
    published = compgen.Csl(config="csl_geoquery", uniform=True).options
    assert published == load_config(CslOptions, "csl_geoquery", given={"uniform": True})
    own = tmp_path / "own.toml"
    own.write_text('separator = "and"')
    for config in (own, str(own)):
        made = compgen.augment(data, "concat", 3, config=config)
        assert made == compgen.augment(data, "concat", 3, separator="and") != compgen.augment(data, "concat", 3)
    with pytest.raises(compgen.UserError, match=r"no configuration csl_geoquary: .*; did you mean csl_geoquery\?"):
        compgen.augment(data, "csl", config="csl_geoquary")
    with pytest.raises(compgen.UserError, match=r"csl: no option 'confg': did you mean config\?"):
        compgen.augment(data, "csl", confg="csl_geoquery")
    with pytest.raises(compgen.UserError, match="as a whole or by name, not both"):
        compgen.Csl(published, config="csl_geoquery")


def test_what_a_method_warns_of_is_a_remark():
    orders = ("{0} -> {1}", "{0} twice -> {1} {1}", "{0} left -> T {1}", "{0} left twice -> T {1} T {1}")
    lines = [order.format(*verb) for verb in ("wW", "jJ", "rR") for order in orders]
    data = compgen.Dataset.from_pairs([[side.split() for side in line.split(" -> ")] for line in lines])
    with pytest.warns(Remark, match="geca: most of the examples have a source with another target: --window 0"):
        compgen.augment(data, "geca", window=0)


def test_ctrl_c_is_no_error_that_a_loop_goes_on_after():
    assert not issubclass(Interrupted, Exception)


def test_data_are_split_as_on_the_command_line(data):
    parts = compgen.split(data, "template", test=0.5, dev=1, seed=3)
    assert parts.frame["source"].equals(data.frame["source"]) and parts.splits["dev"] == 1
    done = compgen.split(data, "length", train=0.25, side="target")
    assert done.splits["train"] == round(0.25 * len(data))
    longest = done.split("train").frame["target"].list.len().max()
    assert longest <= done.split("test").frame["target"].list.len().min()
    for by, options, says in (
        ("chance", {}, "no rule 'chance': expected one of random, template, length, tmcd, mcd"),
        ("random", {"side": "source"}, "no option 'side' of random"),
        ("length", {"train": 1, "test": 1}, "give train or test"),
        ("tmcd", {"divergence": 2.0}, "divergence 2.0: expected a number from 0 to 1"),
        (["random"], {}, "no rule"),
        ("template", {"side": "split"}, "side 'split': expected source or target"),
        ("tmcd", {"inventory": Ngrams}, r"inventory .*: expected Trees\(\) or Ngrams"),
        ("tmcd", {"least": "2"}, "least '2': expected a whole number"),
        ("random", {"train": -1}, "train -1: expected a number of examples"),
        ("random", {"test": True}, "test True: expected"),
        ("random", {"dev": "2"}, "dev '2': expected"),
        ("random", {"train": float("nan")}, "train nan: expected"),
        ("random", {"dataset": 3}, "no option 'dataset' of random: expected some of train, test, dev, seed$"),
        ("length", {"seed": -1}, "seed -1: expected whole numbers"),
    ):
        with pytest.raises(compgen.UserError, match=says):
            compgen.split(data, by, **options)


def test_a_split_takes_numpys_numbers_and_remarks_on_what_training_knows(data):
    assert compgen.split(data, seed=np.int64(3), test=np.float64(0.5)) == compgen.split(data, seed=3, test=0.5)
    assert len({tuple(compgen.split(data, "random", seed=seed).frame["split"]) for seed in range(9)}) > 3
    with pytest.warns(Remark, match="test examples are in train, too") as told:
        compgen.split(data + data + data, "random", seed=1)
    assert told[0].filename == __file__


def test_examples_are_selected_in_python(data, predictor):
    some = data.unique()
    chosen = compgen.select(some, 5, "highloss", model=predictor, split=None)
    losses = predictor.losses(some)
    worst = sorted(losses, reverse=True)[:5]
    assert sorted(predictor.losses(chosen), reverse=True) == pytest.approx(worst, abs=1e-4)
    assert len(compgen.select(some, 4, "umt", template="length", split=None)) == 4
    drawn = [compgen.select(some, 3, "random", seed=seed, split=None) for seed in (0, 0, 1, 2, 3)]
    assert drawn[0] == drawn[1] and any(other != drawn[0] for other in drawn[2:])
    for options, says in (
        ({"by": "highloss"}, "highloss needs a model"),
        ({"by": "random", "model": predictor}, "random uses no losses"),
        ({"by": "random", "template": "length"}, "random uses no templates"),
        ({"by": "umt", "template": "colour"}, "no template 'colour': expected one of tags, shape, length, template"),
        ({"by": "umt", "template": "template"}, "expected a `template` with every example"),
        ({"by": "highloss", "model": compgen.Generator.load("recomb2")}, "expected a predictor"),
        ({"seed": None}, "seed None: expected whole numbers"),
        ({"by": ["umt"]}, "no strategy"),
    ):
        with pytest.raises(compgen.UserError, match=says):
            compgen.select(some, 3, split=None, **options)


def test_repetitions_in_a_selection_are_a_remark_with_what_leaves_them_out(tmp_path):
    data, mended = tmp_path / "d.tsv", tmp_path / "m.tsv"
    data.write_text("a b\tA B\n" * 6 + "c d\tC D\ne f\tE F\ng h\tG H\n")
    with pytest.warns(Remark, match=r"^3 of 4 selected examples are distinct, and 4 of 9 candidates: "):
        assert len(compgen.select(data, 4, "umt")) == 4
    assert said("check", data, "--fix", mended, "--keep-targets")[0] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(compgen.select(mended, 4, "umt").unique()) == 4


def test_names_are_masked_and_put_back(tmp_path):
    pairs = [(["rivers", "in", "texas"], ["river", "texas"]), (["rivers", "in", "ohio"], ["river", "ohio"])]
    data = compgen.Dataset.from_pairs(pairs)
    masked = compgen.mask(data, prefix="state")
    assert masked[0].source == ["rivers", "in", "state0"] and masked[1].target == ["river", "state0"]
    assert compgen.unmask(masked, masked).frame.equals(data.frame)
    often = compgen.Dataset.from_pairs([(["all", "x", str(number)], ["x"]) for number in range(8)])
    assert compgen.mask(often, most=1.0)[0].source == ["all", "name0", "0"]
    with pytest.raises(compgen.UserError, match="found no names"):
        compgen.mask(often)
    with pytest.raises(compgen.UserError, match="most 25: expected a share"):
        compgen.mask(often, most=25)
    for listed in ({("in", "ohio"): "place"}, {"in ohio": "place"}):
        named = compgen.mask(data, listed)
        assert [example.source for example in named] == [["rivers", "in", "texas"], ["rivers", "place0"]]
    (tmp_path / "names.txt").write_text("texas\tstate\nohio\n")
    assert compgen.mask(data, tmp_path / "names.txt")[0].source == ["rivers", "in", "state0"]
    assert compgen.mask(data, ["ohio", ("texas",)])[0].source == ["rivers", "in", "name0"]
    for wrong, says in (
        ({"": "c"}, "found the name ''"),
        ({5: "c"}, "found the name 5"),
        ({"ohio": 5}, "found 5 for placeholders"),
        (7, "found 7, expected names"),
    ):
        with pytest.raises(compgen.UserError, match=says):
            compgen.mask(data, wrong)


def test_predicted_lines_are_unmasked(tmp_path):
    pairs = [(["rivers", "in", "texas"], ["river", "texas"]), (["rivers", "in", "ohio"], ["river", "ohio"])]
    masked = compgen.mask(compgen.Dataset.from_pairs(pairs))
    (tmp_path / "p.txt").write_text("river name0\nriver name1\n")
    more = compgen.Dataset.from_pairs([(["a", "texas", "ohio"], ["texas", "ohio"])])
    masked = compgen.mask(compgen.Dataset.from_pairs(pairs) + more, ["texas", "ohio"])
    (tmp_path / "p.txt").write_text("river name0\nriver name1\n\n")
    with pytest.warns(Remark, match="1 placeholders without a name were left as they are") as told:
        back = compgen.unmask(tmp_path / "p.txt", masked)
    assert [example.target for example in back] == [["river", "texas"], ["river", "name1"], []]
    assert told[0].filename == __file__


def test_answers_are_scored_whether_they_are_given_or_a_models(data, predictor):
    some = data
    answers = predictor.predict([source for source, _ in some.pairs()])
    assert compgen.evaluate(predictor, some) == compgen.evaluate(answers, some) == predictor.evaluate(some)
    right = [" ".join(target) for _, target in some.pairs()]
    assert compgen.evaluate(right, some).exact_match == 1
    assert compgen.evaluate(["nothing like it", *right[1:]], some).exact_match == 1 - 1 / len(some)
    for wrong, says in (
        (right[1:], "found 7 answers, and 8 examples"),
        ([], "found 0 answers, and 8 examples"),
        ([None] * 8, "found the answer None"),
        (5, "found int, expected a model"),
    ):
        with pytest.raises(compgen.UserError, match=says):
            compgen.evaluate(wrong, some)
    with pytest.raises(compgen.UserError, match="take no beam"):
        compgen.evaluate(right, some, beam=3)
    with pytest.raises(compgen.UserError, match="found an example without a target"):
        compgen.evaluate([""] * 2, compgen.Dataset.from_pairs([(["a"], []), (["b"], [])]))
    two = compgen.Dataset.from_pairs([(["a"], ["x"]), (["a"], ["y"])])
    with pytest.warns(Remark, match="1 sources have several targets, .* 1 of 2 examples can be right"):
        assert compgen.evaluate(["x", "x"], two).exact_match == 0.5


def test_mistakes_are_told_as_such(data, predictor, tmp_path):
    (tmp_path / "d.csv").write_text("a,b,source,target\n1,2,3,4\n")
    table, frame = tmp_path / "d.csv", data.frame
    for call, says in (
        (lambda: compgen.load_dataset(frame), "found DataFrame, expected the name of a file"),
        (lambda: compgen.load_dataset(data.pairs()), "found list, expected the name of a file"),
        (lambda: compgen.load_dataset(table, source=0), "found the column 0, expected its name"),
        (lambda: compgen.write_dataset(frame, tmp_path / "o.tsv"), "found DataFrame, expected a Dataset"),
        (lambda: compgen.check(table, source="c"), "expected 'c', as --source says"),
        (lambda: compgen.check(data, source="a"), "columns are named of a file"),
        (lambda: compgen.train_predictor(data, {"a": 1}, tmp_path / "p.pt"), "configuration {'a': 1}: expected a name"),
        (lambda: compgen.train_predictor(data, tmp_path / "x.toml", tmp_path / "p.pt"), "no configuration .*x.toml"),
        (lambda: compgen.predict(predictor, [float("nan")]), "found the source nan, expected a string or a list"),
        (lambda: compgen.predict(predictor, 5), "sources 5: found int, expected a list of sources"),
        (lambda: compgen.predict(predictor, "a b"), "sources 'a b': found a string, expected a list of sources"),
        (lambda: compgen.predict(predictor, [None]), "found the source None, expected a string or a list"),
        (lambda: compgen.predict([predictor, predictor], ["a"]), "found list, .*; several predictors form a Committee"),
        (lambda: compgen.predict(None, ["a"]), "found NoneType, expected an opened model or its path$"),
        (lambda: compgen.train_predictor(data, "seq2seq_small", "p.pt", fresh="geca"), "fresh: found 'geca', expected"),
        (lambda: compgen.compare(data, tmp_path, CompareOptions(), seeds=3), "as a whole or by name, not both"),
        (lambda: compgen.compare(data, tmp_path, {"seeds": 3}), "found {'seeds': 3}, expected CompareOptions"),
    ):
        with pytest.raises(compgen.UserError, match=says):
            call()


def test_files_are_rewritten_and_columns_named(tmp_path):
    (tmp_path / "d.csv").write_text("a,b,source,target\n1,2,3,4\n1,,5,6\n")
    compgen.write_dataset(str(tmp_path / "d.csv"), tmp_path / "o.tsv")
    assert compgen.load_dataset(tmp_path / "o.tsv").pairs() == [(["3"], ["4"]), (["5"], ["6"])]
    assert compgen.check(tmp_path / "d.csv") == []
    assert compgen.check(tmp_path / "d.csv", source="a", target="b")[0].what == "an empty side"


def test_tokens_that_were_not_split_are_found():
    whole = [(["walk twice"], ["W", "W"]), (["run"], ["R", ""]), (["walk", "twice"], ["W", "W"])]
    found, *_ = compgen.check(compgen.Dataset.from_pairs(whole))
    assert found[:3] == ("warning", "a token that is empty or has a space in it", [1, 2])
    assert not [one for one in compgen.check(compgen.Dataset.from_pairs(whole[2:])) if one.severity == "warning"]


def test_a_dataset_without_examples_is_an_error(data):
    found = compgen.check(data[:0])
    assert [(one.severity, one.what) for one in found] == [("error", "no examples")]


@pytest.mark.parametrize("name", ["seed", "start"])
def test_a_stream_has_a_seed_and_a_start(augmenter, name):
    with pytest.raises(compgen.UserError, match=f"{name} None: expected a number from 0"):
        augmenter.generator.sample(5, **{name: None})
    with pytest.raises(compgen.UserError, match=f"{name} None: expected a number from 0"):
        next(augmenter.generator.draw(**{name: None}))


def test_overlap_and_divergence_are_those_of_the_commands(tmp_path):
    path, more = tmp_path / "parts.tsv", compgen.Dataset.from_pairs([(["run", "twice"], ["RUN", "RUN"])])
    path.write_text("run\tRUN\nwalk twice\tWALK WALK\nrun twice\tRUN RUN\ttest\nrun now\tRUN\tdev\n")
    parts = compgen.load_dataset(path)
    test, train = parts.split("test"), parts.split("train")
    done = CliRunner().invoke(app, ["data", "overlap", str(path), "--json"])
    found = compgen.measure_overlap(path)
    assert json.loads(done.stdout).items() >= found.to_dict().items() and found.shared_examples == 0
    assert found == compgen.measure_overlap(test, train)
    assert compgen.measure_overlap(parts, train + more).example_overlap == 1
    done = CliRunner().invoke(app, ["data", "divergence", str(path), "--split", "test", "--json"])
    apart = compgen.measure_divergence(parts)
    assert json.loads(done.stdout).items() >= dataclasses.asdict(apart).items() and apart.unseen_compounds == 1
    assert compgen.measure_divergence(test, path, inventory=Ngrams("target", 2)).test_atoms < apart.test_atoms
    assert compgen.measure_overlap(parts, split=None).examples == 4
    for wrong in (lambda: compgen.measure_overlap(train), lambda: compgen.measure_divergence(parts, split="train")):
        with pytest.raises(
            compgen.UserError, match="test data would be compared with themselves: give training data, or"
        ):
            wrong()


@pytest.mark.parametrize("wrong", ["tree", Ngrams, 0, {}])
def test_what_is_no_inventory_is_refused(wrong):
    parts = compgen.Dataset.from_pairs([(["a", "b"], ["A"])])
    with pytest.raises(compgen.UserError, match=r"^inventory .*: expected Trees\(\) or Ngrams\(\) of compgen.data"):
        compgen.measure_divergence(parts, parts, inventory=wrong)


@pytest.mark.parametrize("kind", ["generator", "predictor"])
def test_what_was_opened_from_a_bundle_can_be_pickled(kind):
    opened = {"generator": compgen.Generator, "predictor": compgen.Predictor}[kind].load(exported(kind))
    again = pickle.loads(pickle.dumps(opened))
    if kind == "generator":
        assert again.sample(draws=50) == opened.sample(draws=50)
    else:
        assert again.predict([["a", "b"]]) == opened.predict([["a", "b"]])


def test_names_are_told_to_type_checkers():
    tree = ast.parse(Path(compgen.__file__).read_text())
    (told,) = (one for one in tree.body if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING")
    names = {alias.asname: one.module for one in told.body for alias in one.names if alias.asname == alias.name}
    assert names == compgen._HOMES | dict.fromkeys(compgen._MODULES, "compgen")


TYPED = """
import compgen
from compgen import Generator

reveal_type(compgen.load_dataset("x.tsv").split("train"))
reveal_type(Generator.load("x").threaded)
reveal_type(compgen.predict("x", ["a"])[0])
reveal_type(compgen.predict("x", [["a"]])[0])
reveal_type(compgen.export_bundle("x", "y"))
compgen.nothing
"""


@pytest.mark.long
def test_type_checkers_know_the_names(tmp_path):
    api = pytest.importorskip("mypy.api")
    (tmp_path / "typed.py").write_text(TYPED + "".join(f"compgen.{name}\n" for name in compgen.__all__))
    options = ["--follow-imports=silent", f"--cache-dir={tmp_path}", "--config-file="]
    said, errors, _ = api.run([*options, str(tmp_path / "typed.py")])
    dataset, flag, text, tokens, made, *others = (line.partition(": ")[2] for line in said.splitlines()[:-1])
    assert dataset.endswith('"compgen.data.examples.Dataset"') and flag.endswith('bool"')
    assert text.endswith('str"') and tokens.endswith(('"list[str]"', '"builtins.list[builtins.str]"'))
    assert made.endswith('"compgen.runtime.manifest.Manifest"')
    assert others == ['error: Module has no attribute "nothing"  [attr-defined]'], said + errors


def test_modules_are_imported_when_they_are_named():
    script = "import compgen; compgen.errors.Interrupted; assert compgen.lm.estimate"
    subprocess.run([sys.executable, "-c", script], check=True)


def drawing():
    return compgen.Generator.load(exported())


MISSPELT = [
    (lambda data: drawing().sample(3, filter="novel"), "sample: no option 'filter': did you mean filters?"),
    (lambda data: drawing().sample(n=3), "sample: no option 'n': expected one of count, seed, vote"),
    (lambda data: drawing().stream(3, sed=1), "stream: no option 'sed': did you mean seed?"),
    (lambda data: compgen.export_bundle("x.pt", "x", samples=1), "no option 'samples': expected one of batches, torch"),
    (lambda data: compgen.train_predictor(data, "seq2seq_small", "x.pt", sed=1), "'sed': did you mean seed?"),
    (lambda data: compgen.train_predictor(data, "seq2seq_small", "x.pt", augment=data), "did you mean augmented?"),
    (lambda data: compgen.train_generator(data, "auto", "x.pt", minutes=1), "by overrides=['NAME=VALUE']"),
    (lambda data: compgen.train_pretrained(data, "m", "t5", "x", sed=1), "train_pretrained: no option 'sed'"),
    (lambda data: compgen.augment(data, "geca", n=5), "'n': expected one of count, seed, split, config, span"),
    (lambda data: compgen.train_predictor(data, "seq2seq_small", "x.pt", "optimisation.steps=2"),
     "overrides 'optimisation.steps=2': found a string, expected a list: ['optimisation.steps=2']"),
    (lambda data: compgen.train_predictor(data, "transformer_small", "x.pt"), "or say architecture='transformer'"),
    (lambda data: compgen.train_predictor(data, "seq2seq_small", "x.pt", architecture="transformer"),
     "or say architecture='recurrent'"),
    (lambda data: compgen.train_predictor(data, "seq2seq_small", "x.pt", architecture="seq2seq"),
     "architecture 'seq2seq': expected recurrent or transformer"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "says"), MISSPELT)
def test_what_is_misspelt_is_a_users_error(data, call, says):
    with pytest.raises(compgen.UserError, match=re.escape(says)):
        call(data)


def test_methods_of_a_comparison_may_be_one_string():
    assert load_config(CompareOptions, None, given={"methods": "geca,csl"}).methods == ("geca,csl",)  # as `--methods`


def test_the_docstring_of_sample_names_its_options():
    for name in inspect.signature(SamplingOptions).parameters.keys() - {"voting"}:
        assert re.search(rf"\b{name}\b", compgen.Generator.sample.__doc__)


def test_docstrings_of_trainings_name_configurations():
    for verb, some in (("generator", "recombine_small"), ("predictor", "seq2seq_small"), ("pretrained", "t5_small")):
        assert some in getattr(compgen, f"train_{verb}").__doc__ and some in shipped()


def test_signs_are_set_apart_and_put_back():
    glued = compgen.Dataset.from_pairs([(["who", "runs"], ["runs(x,1)"])])
    apart = compgen.signs(glued, "apart")
    assert apart[0].target == ["runs", "(", "x", ",", "1", ")"]
    assert compgen.signs(compgen.signs(glued, "marked"), "joined") == glued
    with pytest.warns(Remark, match="nothing is joined"):
        assert compgen.signs(apart, "joined") == apart
    with pytest.raises(compgen.UserError, match="no form 'close' of signs: expected apart, marked or joined"):
        compgen.signs(glued, "close")


def few():
    return compgen.Dataset.from_pairs([(["a", "b"], ["A", "B"]), (["b", "c"], ["B", "C"]), (["c"], ["C"])])


@pytest.mark.parametrize(
    ("call", "done"),
    [
        (lambda out: compgen.load_dataset(out), "read"),
        (lambda out: compgen.check(f"{out}.tsv"), "read"),
        (lambda out: compgen.Generator.load(out), "read"),
        (lambda out: compgen.export_bundle(out, "bundle"), "read"),
        (lambda out: compgen.export_bundle("gone.pt", out), "written"),
        (lambda out: compgen.write_dataset(few(), out), "written"),
        (lambda out: compgen.train_generator(few(), "recombine_small", f"{out}.pt"), "written"),
        (lambda out: compgen.train_predictor(few(), "seq2seq_small", f"{out[:240]}.pt"), "written"),
        (lambda out: compgen.Csl(uniform=True).fit(few()).save(f"{out}.grammar"), "written"),
    ],
)
def test_a_name_that_no_file_can_have_is_an_error_before_any_work(tmp_path, monkeypatch, call, done):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(compgen.UserError, match=f"cannot be {done}: File name too long"):
        call("x" * 300)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("method", [None, 3, compgen.Geca, ["geca"]])
def test_a_method_that_is_no_name_is_told_like_a_misspelt_one(method):
    data = compgen.Dataset.from_pairs([(["a"], ["b"])])
    with pytest.raises(compgen.UserError, match=r"no method .*: expected one of recombine, geca"):
        compgen.augment(data, method)
