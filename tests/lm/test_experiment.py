import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compgen.data.examples import Dataset
from compgen.errors import DataError, ExhaustedError, Remark, UserError
from compgen.files import beside
from compgen.geca.augmenter import Geca
from compgen.geca.options import GecaOptions
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.experiment import CLAIM, SCHEMES, experiment, outputs, sentences_of
from compgen.lm.mixture import Mixture, perplexity, tuned
from compgen.lm.report import summary
from compgen.lm.scoring import score_all

# Names and verbs of two kinds, each of which takes its own objects: what GECA can find out and n-grams cannot.
NAMES = [[f"{kind}{number}" for number in range(30)] for kind in ("fish", "bird")]
DOES = [["swims", "in", "the", "sea"], ["flies", "over", "the", "wood"]]


def sentences(count, seed):
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        kind, seen = random.integers(2), random.integers(2)
        name = NAMES[kind][random.integers(30)]
        made.append(["the", "old", name, *DOES[kind]] if seen else ["we", "saw", name, "that", *DOES[kind]])
    return made


def run(folder, training, scheme, **options):
    texts = [write_sentences(sentences(80, seed), folder / f"{seed}.txt") for seed in (1, 2)]
    data = Dataset.from_pairs((tokens, []) for tokens in training)
    return experiment(data, *texts, folder / "out", scheme, Estimation(order=3, fallback=True), **options), texts


def test_what_geca_finds_out_beats_the_control(tmp_path):
    wide = GecaOptions(spans=1, window=3, variants=20)
    scheme = replace(SCHEMES["worth"], kinds=(wide,), count=300)
    report, texts = run(tmp_path, sentences(60, 0), scheme, seeds=[0, 1])
    assert report.gain > 0 and report.against_control.bootstrap_p < 0.05
    assert report.verdict.startswith("Synthetic sentences help: ")
    told = summary(report)
    assert [trial["seed"] for trial in told["trials"]] == [0, 1]
    for trial in report.trials:
        assert trial.synthetic[0] > 0
        kept = Mixture.open(tmp_path / "out" / f"interpolated-{trial.seed}.json")
        again = perplexity(kept, score_all(kept.models, texts[1]))
        assert again.including == trial.mixture["test"].including
        chosen = tuned(kept.models, score_all(kept.models, texts[0]), scheme.by_history)  # not on what is measured
        assert np.allclose(chosen.weights, kept.weights)
    made = (tmp_path / "out" / "augmented-0-0.txt").read_text().splitlines()
    known = {" ".join(tokens) for tokens in sentences(60, 0)}
    resampled = (tmp_path / "out" / "control-0-0.txt").read_text().splitlines()
    assert len(made) == len(resampled) and not known & set(made) and set(resampled) <= known


def test_the_control_of_each_kind_has_as_many_sentences_as_that_kind(tmp_path):
    kinds = tuple(GecaOptions(spans=1, window=3, variants=variants) for variants in (1, 20))
    scheme = replace(SCHEMES["worth"], kinds=kinds, count=300)
    report, _ = run(tmp_path, sentences(60, 0), scheme, seeds=[0])
    few, many = report.trials[0].synthetic
    assert 0 < few < many
    for name, count in (("control-0-0", few), ("control-0-1", many), ("resampled-0", many)):
        assert len((tmp_path / "out" / f"{name}.txt").read_text().splitlines()) == count
    assert contents(tmp_path / "out").keys() == {path.name for path in outputs(tmp_path, scheme, [0])}


def test_what_is_rounded_otherwise_is_no_effect(tmp_path, monkeypatch):
    monkeypatch.setattr("compgen.lm.report.LEAST", 1.0)
    scheme = replace(SCHEMES["paper"], kinds=(GecaOptions(spans=1, window=3, variants=20),), count=300)
    report, _ = run(tmp_path, sentences(60, 0), scheme, seeds=[0])
    assert report.gain != 0 and report.verdict.startswith("No effect that can be told from chance")


def test_synthetic_sentences_that_are_resampled_ones_do_not_help(tmp_path, monkeypatch):
    """The control against itself: the verdict must not find a gain where there is none."""
    training = sentences(60, 0)

    def resample(_augmenter, _count, seed):
        random = np.random.default_rng([seed, 7])
        return [training[index] for index in random.integers(0, len(training), 300)]

    monkeypatch.setattr("compgen.lm.experiment.sentences_of", resample)
    kind = GecaOptions(spans=1, window=3, variants=1)
    report, _ = run(tmp_path, training, replace(SCHEMES["paper"], kinds=(kind,)), seeds=[0, 1, 2])
    assert abs(report.gain) < 0.01
    assert report.against_control.bootstrap_p > 0.001


def test_a_test_text_that_was_learnt_is_no_answer(tmp_path):
    scheme = replace(SCHEMES["paper"], kinds=(GecaOptions(spans=1, window=3, variants=20),), count=300)
    report, _ = run(tmp_path, sentences(60, 0) + sentences(80, 2), scheme, seeds=[0])
    assert report.verdict.startswith("No answer: all sentences of the test text are in the training text")
    assert report.decisive.startswith("Would be decided by")


def test_a_template_has_as_few_variants_as_give_the_count():
    data = Dataset.from_pairs((tokens, []) for tokens in sentences(60, 0))
    kind = GecaOptions(spans=1, window=3, variants=20)
    augmenter = Geca(kind).fit(data)

    def drawn(count, variants):
        return [source for source, _ in augmenter.with_options(variants=variants).sample(count, 0).pairs()]

    fewest, few, most = (len(drawn(None, variants)) for variants in (1, 2, 20))
    assert fewest < few < most
    for count, variants in ((fewest, 1), (few, 2), (10**6, 20)):
        assert sentences_of(augmenter, count, 0) == drawn(count, variants)


def test_models_that_would_know_other_words_or_a_bad_word_are_refused(tmp_path):
    """A word that one model leaves out, another may know; and lines are none of the user's file, whose blanks go."""
    texts = [write_sentences(sentences(80, seed), tmp_path / f"{seed}.txt") for seed in (1, 2)]
    for bad, prune, message in (
        ([], (1, 1), r"^prune \(1, 1\): expected 0 for 1-grams"),
        ([["the", "<s>"]], (), r"^the training text, sentence 61: found <s>"),
    ):
        data = Dataset.from_pairs((tokens, []) for tokens in [*sentences(60, 0), *bad])
        with pytest.raises(UserError, match=message):
            experiment(data, *texts, tmp_path / "out", SCHEMES["paper"], Estimation(prune=prune))


def test_a_text_that_is_the_training_text_is_said_to_be_it(tmp_path):
    said, data = [], Dataset.from_pairs((tokens, []) for tokens in sentences(60, 1)[:9])
    texts = [write_sentences(sentences(60, seed)[:9], tmp_path / f"{seed}.txt") for seed in (1, 2)]
    with pytest.raises(DataError, match=r"^the training text: too small or too regular"):
        experiment(data, *texts, tmp_path / "out", SCHEMES["paper"], watch=said.append)
    assert said[0] == f"warning: {texts[0]}: all sentences of the validation text are in the training text: give others"
    assert not any("test text" in line for line in said)


def test_what_cannot_be_is_said(tmp_path):
    with pytest.raises(ExhaustedError, match="GECA"):
        run(tmp_path, [["one", "two"], ["three", "four", "five"]] * 2, SCHEMES["paper"])
    data = Dataset.from_pairs((tokens, []) for tokens in sentences(60, 0))
    with pytest.raises(DataError, match=r"gone\.txt: No such file"):
        experiment(data, tmp_path / "1.txt", tmp_path / "gone.txt", tmp_path / "x", SCHEMES["paper"])
    assert not (tmp_path / "x").exists()
    with pytest.raises(UserError, match="found pairs"):
        experiment(Dataset.from_pairs([(["a"], ["b"])]), tmp_path, tmp_path, tmp_path / "x", SCHEMES["paper"])
    one, two = tmp_path / "one.txt", tmp_path / "two.txt"
    one.write_text("a\n")
    two.write_text("a\nb\n")
    with pytest.raises(DataError, match=r"one\.txt: found 1 sentence, expected 2 or more"):
        experiment(data, two, one, tmp_path / "x", SCHEMES["paper"])
    (tmp_path / "copy.txt").write_bytes(two.read_bytes())
    with pytest.raises(UserError, match=r"copy\.txt: found a copy of the validation text \S+two\.txt: .* be fitted to"):
        experiment(data, two, tmp_path / "copy.txt", tmp_path / "x", SCHEMES["paper"])
    with pytest.raises(UserError, match="the validation text is read by each model"):
        experiment(data, Path("-"), two, tmp_path / "x", SCHEMES["paper"])
    for seeds in ([2**64], [0, 0], []):
        with pytest.raises(UserError, match=r"expected different whole numbers from 0 on, less than 2\^64"):
            experiment(data, two, two, tmp_path / "x", SCHEMES["paper"], seeds=seeds)
    assert not (tmp_path / "x").exists()


@pytest.mark.parametrize(("count", "same"), [(300, True), (5, False)])
def test_seeds_that_made_the_same_sentences_are_said_to_be_one_result(count, same, tmp_path):
    scheme = replace(SCHEMES["paper"], kinds=(GecaOptions(spans=1, window=3, variants=20),), count=count)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report, _ = run(tmp_path, sentences(20, 0), scheme, seeds=[0, 3])
    said = [str(one.message) for one in caught if one.category is Remark]
    made = report.trials[0].synthetic[0]
    assert len(said) == same and (made < count) == same
    assert not same or f"seeds 0, 3 made the same {made} synthetic sentences: their augmented rows are one" in said[0]


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_folder_is_for_one_run(tmp_path):
    """A mixture names its models: those of another run must not take their place."""
    scheme = replace(SCHEMES["paper"], kinds=(GecaOptions(spans=1, window=3, variants=20),), count=300)
    training, out = sentences(60, 0), tmp_path / "out"
    out.mkdir()
    beside(out / CLAIM).touch()  # of a run that was killed before it claimed the folder
    run(tmp_path, training, scheme, seeds=[0])
    made = contents(out)
    for data, options, found in (
        (training, {"seeds": [1]}, r"seeds was \[0\], is \[1\]"),
        (sentences(60, 9), {"seeds": [0]}, "the training sentences differ"),
        (training, {"seeds": [0], "window": 2}, r"window was \[3\], is \[2\]"),
    ):
        kinds = tuple(kind.model_copy(update={"window": options.pop("window", 3)}) for kind in scheme.kinds)
        with pytest.raises(UserError, match=rf"out: holds another run \({found}\): choose another folder or delete it"):
            run(tmp_path, data, replace(scheme, kinds=kinds), **options)
        assert contents(out) == made
    for name in ("augmented-0-0.bin", "interpolated-0.json"):  # as if the run had been killed
        (out / name).unlink()
    run(tmp_path, training, scheme, seeds=[0])
    assert contents(out) == made
    claim = json.loads((out / CLAIM).read_text())
    (out / CLAIM).write_text(json.dumps(claim | {"compgen": "0.0"}))
    with pytest.raises(UserError, match=r"compgen was '0\.0', is '"):  # what was found by two versions is no comparison
        run(tmp_path, training, scheme, seeds=[0])
    (out / CLAIM).unlink()
    with pytest.raises(UserError, match=r"of the same run, found augmented-0-0\.bin and \d more: choose another"):
        run(tmp_path, training, scheme, seeds=[0])
    (out / CLAIM).write_text("of another program")
    with pytest.raises(UserError, match=r"run\.json: does not say of which run its folder is: choose another"):
        run(tmp_path, training, scheme, seeds=[0])


def test_a_run_that_fails_leaves_a_new_folder_to_others(tmp_path):
    few = [["one", "two"], ["three", "four", "five"]] * 2
    (tmp_path / "out").mkdir()
    with pytest.raises(ExhaustedError, match="GECA"):
        run(tmp_path, few, SCHEMES["paper"])
    assert contents(tmp_path / "out") == {}


def test_models_that_fell_back_on_fixed_discounts_are_named(tmp_path):
    wide = GecaOptions(spans=1, window=3, variants=20)
    scheme = replace(SCHEMES["worth"], kinds=(wide,), count=300)
    report, _ = run(tmp_path, sentences(60, 0), scheme, seeds=[3])
    names = ["base", "resampled-3", "augmented-3-0", "control-3-0"]
    assert list(report.fallbacks) == names and summary(report)["fallback_orders"] == report.fallbacks
    for name in names:  # the texts are kept, so that each model can be estimated again
        texts = [tmp_path / "out" / "training.txt", *([] if name == "base" else [tmp_path / "out" / f"{name}.txt"])]
        again = estimate(texts, tmp_path / "again.bin", Estimation(order=3, fallback=True))
        assert report.fallbacks[name] == again["fallback_orders"]
    assert any(report.fallbacks.values()) and "fixed (KenLM's --discount_fallback) for " in report.fallback
    assert replace(report, fallbacks={"base": []}).fallback == "Discounts: all estimated."
    some = replace(report, fallbacks={"base": [], "a": [3], "b": [1, 3], "c": [3]}).fallback
    assert "3-grams of a, c; 1-grams, 3-grams of b; all others estimated" in some


def test_a_partner_of_other_words_is_refused_before_any_work(tmp_path):
    training = sentences(60, 0)
    other = write_sentences([*training, ["zebra"]], tmp_path / "other.txt")
    estimate([other], tmp_path / "other.bin", Estimation(order=2, fallback=True))
    with pytest.raises(UserError, match=r"the training text knows \d+ words, .*other\.bin \d+ or others"):
        run(tmp_path, training, SCHEMES["paper"], partners=[tmp_path / "other.bin"])
    assert not (tmp_path / "out").exists()


def test_what_is_read_is_not_overwritten(tmp_path):
    data = Dataset.from_pairs((tokens, []) for tokens in sentences(60, 0))
    text = tmp_path / "text.txt"
    text.write_text("a\nb\n")
    for path in outputs(tmp_path, SCHEMES["worth"], [7]):
        path.write_text("a\nb\n")
        with pytest.raises(UserError, match="it is read, too"):
            experiment(data, text, path, tmp_path, SCHEMES["worth"], seeds=[7])
        assert path.read_text() == "a\nb\n"
