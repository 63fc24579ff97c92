import gzip
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from compgen.errors import DataError, UserError
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.measuring import measure, rescore
from compgen.lm.mixture import PSEUDO, Mixture, best_of, check_vocabularies, fitted, perplexity, tuned
from compgen.lm.scoring import Scores, require_one_vocabulary, score_all
from tests.lm.naive import Arpa

ASKED = ["the cat ran on the log", "a zebra sat", "a", "the dog saw the mat"]


@pytest.fixture(scope="module")
def models(text, arpa):
    """The trigram model, and one of the same words from other counts."""
    other = text.with_name("other.arpa")
    more = write_sentences([["the", "cat", "ran", "on", "the", "log"]] * 5, text.with_name("more.txt"))
    estimate([text, more], other, Estimation(order=2, fallback=True))
    return [arpa, other]


@pytest.fixture
def asked(tmp_path):
    return write_sentences((line.split() for line in ASKED), tmp_path / "asked.txt")


def scores_of(log10, known=None):
    log10 = np.array(log10, dtype=np.float32)
    known = np.zeros_like(log10, dtype=np.uint8) if known is None else np.array([known] * len(log10), dtype=np.uint8)
    return Scores(np.array([log10.shape[1]], dtype=np.uint32), log10, np.ones_like(known), known)


def test_a_mixture_is_the_sum_of_the_equation(models, asked):
    mixture = Mixture(tuple(models), np.array([[0.7, 0.3]]))
    expected = [
        np.log(0.7 * 10**first + 0.3 * 10**second)
        for line in ASKED
        for first, second in zip(*(Arpa(model).sentence(line.split()) for model in models), strict=True)
    ]
    found = perplexity(mixture, score_all(models, asked))
    assert found.including == pytest.approx(np.exp(-np.mean(expected)), rel=1e-5)
    assert (found.sentences, found.tokens, found.unknown) == (4, 19, 1)
    unknown = expected[8]  # the end of the first sentence is the 7th token, `a` the 8th, `zebra` the 9th
    assert found.excluding == pytest.approx(np.exp(-(np.sum(expected) - unknown) / 18), rel=1e-5)
    assert sum(map(np.sum, found.losses)) == pytest.approx(found.loss)


def test_scores_of_some_models_are_in_the_order_asked_for():
    assert scores_of([[-1, -2], [-3, -4], [-5, -6]]).of([2, 0]).log10.tolist() == [[-5, -6], [-1, -2]]


def test_weights_by_history_follow_what_the_first_model_knows(models, asked):
    scores = score_all(models, asked)
    weights = np.stack([np.array([1 / (count + 1), 1 - 1 / (count + 1)]) for count in range(9)])
    each = 10.0 ** scores.log10.astype(np.float64)
    first = 1 / (scores.known[0] + 1.0)
    assert Mixture(tuple(models), weights).log_probs(scores) == pytest.approx(
        np.log(first * each[0] + (1 - first) * each[1])
    )


def test_tuning_finds_the_most_probable_weights():
    random = np.random.default_rng(0)
    log10 = -3 * random.random((2, 400))
    scores = scores_of(log10)
    found = fitted([Path("a"), Path("b")], scores, by_history=False)
    likelihood = [Mixture((), np.array([[1 - v, v]])).log_probs(scores).sum() for v in np.linspace(0, 1, 1001)]
    assert found.log_probs(scores).sum() >= max(likelihood) - 1e-6
    assert best_of(["a", "b"], scores, [0.05, 0.1, 0.5]).weights[0, 1] == pytest.approx(
        min([0.05, 0.1, 0.5], key=lambda v: abs(v - found.weights[0, 1])), abs=1e-9
    )
    for probable, best in (([0.9, 0.1], 0.05), ([0.1, 0.9], 0.5)):
        scores = scores_of(np.log10([[p] * 9 for p in probable]))
        assert best_of(["a", "b"], scores, [0.1, 0.05, 0.5]).weights.tolist() == [[1 - best, best]]


def test_each_history_has_its_own_weights_and_rare_ones_the_weights_of_all():
    log10 = np.log10([[0.9] * 500 + [0.1] * 500, [0.1] * 500 + [0.9] * 500])
    mixture = fitted([Path("a"), Path("b")], scores_of(log10, [1] * 500 + [2] * 500), by_history=True)
    assert mixture.weights.shape == (9, 2)
    assert mixture.weights[1, 0] > 0.95 and mixture.weights[2, 1] > 0.95
    assert mixture.weights[5] == pytest.approx([0.5, 0.5], abs=1e-3)
    assert mixture.weights.sum(axis=1) == pytest.approx(np.ones(9))


def test_a_saved_mixture_is_opened_from_anywhere(models, asked, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    mixture = Mixture(tuple(models), np.array([[0.25, 0.75]]))
    (tmp_path / "deep").mkdir()
    mixture.save(tmp_path / "deep" / "mix.json")
    assert not json.loads((tmp_path / "deep" / "mix.json").read_text())["models"][0].startswith("/")
    monkeypatch.chdir("/")
    again = Mixture.open(tmp_path / "deep" / "mix.json")
    expected = perplexity(mixture, score_all(models, asked))
    assert perplexity(again, score_all(again.models, asked)).including == expected.including
    (tmp_path / "short").symlink_to(tmp_path / "deep" / "down", target_is_directory=True)
    mixture = Mixture.open(tmp_path / "deep" / "mix.json")
    (tmp_path / "deep" / "down").mkdir()
    mixture.save(tmp_path / "short" / "mix.json")
    (tmp_path / "link.json").symlink_to(tmp_path / "deep" / "down" / "mix.json")
    for path in (tmp_path / "short" / "mix.json", tmp_path / "deep" / "down" / "mix.json", tmp_path / "link.json"):
        assert all(model.exists() for model in Mixture.open(path).models)


def test_mixed_vocabularies_are_refused(models, tmp_path):
    check_vocabularies(models)
    with pytest.raises(UserError, match="mixed vocabularies: a knows 1 words, b 1 or others"):
        require_one_vocabulary([("a", {"the"}), ("b", {"cat"})])
    text = write_sentences([["the", "zebra", "ran"]], tmp_path / "x.txt")
    estimate([text], tmp_path / "x.arpa", Estimation(order=2, fallback=True))
    mixed, other = r"mixed vocabularies: .*model.arpa knows 12 words, .*x.arpa 3", [*models, tmp_path / "x.arpa"]
    with pytest.raises(UserError, match=mixed):
        check_vocabularies(other)
    with pytest.raises(UserError, match=mixed):
        tuned(other, score_all(other, text))
    for use in (measure, lambda *words: list(rescore(*words))):
        with pytest.raises(UserError, match=mixed):
            use(Mixture(tuple(other), np.full((1, 3), 1 / 3)), text)


def test_nothing_cannot_be_measured(models, tmp_path):
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match="found no sentence"):
        measure(Mixture.open(models[0]), tmp_path / "empty.txt")
    none = score_all(models, tmp_path / "empty.txt")
    for find in (lambda *given: fitted(*given, False, "x.txt"), lambda *given: best_of(*given, [0.5], "x.txt")):
        with pytest.raises(DataError, match=r"^x\.txt: found no sentence to tune weights on"):
            find(models, none)
    with pytest.raises(UserError, match="found scores by 1 models, expected those of the 2"):
        tuned([Path("a"), Path("b")], scores_of([[-1.0, -2.0]]))
    with pytest.raises(UserError, match="found none to mix"):
        tuned([], score_all([], tmp_path / "empty.txt"))
    with pytest.raises(UserError, match="two models"):
        best_of(["a"], scores_of([[-1.0]]), [1.0])


def test_what_is_impossible_for_all_models_has_no_best_weights(tmp_path):
    log10 = np.array([[-1, -np.inf, -1, -1, -900], [-1, -1, -2, -np.inf, -901]], dtype=np.float32)
    two, models = np.array([2, 3], dtype=np.uint32), [Path("a"), Path("b")]
    possible = replace(scores_of(log10), lengths=two)
    for by_history in (False, True):
        assert fitted(models, possible, by_history).weights[0].tolist() == pytest.approx([0.7, 0.3], abs=0.2)
    assert best_of(models, possible, [0.0, 0.5, 1.0]).weights[0].tolist() == [0.5, 0.5]
    with pytest.raises(DataError, match=r"^x\.txt: impossible with each of these weights: give one between 0 and 1"):
        best_of(models, possible, [0.0, 1.0], "x.txt")
    log10[0, 3] = -np.inf
    for find in (lambda *given: fitted(*given, False, "x.txt"), lambda *given: best_of(*given, [0.5], "x.txt")):
        with pytest.raises(DataError, match=r"^x\.txt, sentence 2, token 2 of 3, .*: impossible for all models"):
            find(models, replace(possible, log10=log10))
    with pytest.raises(UserError, match="expected numbers from 0 on that sum to one"):
        Mixture((Path("a"), Path("b")), np.full((1, 2), np.nan)).save(tmp_path / "mix.json")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "token", "place"),
    [
        ("x.txt", "one\n\ntwo three\n", 3, "line 3: the word 'three', token 2 of 3"),
        ("x.txt", "one\n\ntwo three\n", 4, "line 3: the end of the sentence, token 3 of 3"),
        ("x.jsonl", '{"source": "one"}\n{"source": "two three"}\n', 3, "sentence 2: the word 'three', token 2 of 3"),
    ],
)
def test_a_word_that_is_impossible_is_named(name, content, token, place, tmp_path):
    (tmp_path / name).write_text(content)
    log10 = np.full((1, 5), -1, dtype=np.float32)
    log10[0, token] = -np.inf
    scores = replace(scores_of(log10), lengths=np.array([2, 3], dtype=np.uint32))
    with pytest.raises(DataError, match=f"^{re.escape(str(tmp_path / name))}, {place}: impossible for all models"):
        fitted([Path("a")], scores, False, tmp_path / name)


def test_scores_of_sentences_and_tokens_are_kept(models, asked, tmp_path):
    mixture = Mixture(tuple(models), np.array([[0.5, 0.5]]))
    found = measure(mixture, asked, threads=2, sentences=tmp_path / "s.tsv", tokens=tmp_path / "t.parquet")
    assert found.including == pytest.approx(perplexity(mixture, score_all(models, asked)).including)
    rows = [line.split("\t") for line in (tmp_path / "s.tsv").read_text().splitlines()]
    assert rows[0] == ["tokens", "unknown", "loss"]
    assert [row[:2] for row in rows[1:]] == [["7", "0"], ["4", "1"], ["2", "0"], ["6", "0"]]
    frame = pl.read_parquet(tmp_path / "t.parquet")
    assert frame["sentence"].to_list() == [0] * 7 + [1] * 4 + [2] * 2 + [3] * 6
    assert frame["position"].to_list() == [*range(7), *range(4), *range(2), *range(6)]
    losses = frame.group_by("sentence", maintain_order=True).agg(-pl.col("log10").sum() * np.log(10))["log10"]
    assert losses.to_list() == pytest.approx([float(row[2]) for row in rows[1:]], rel=1e-5)
    measure(mixture, asked, sentences=tmp_path / "s.tsv.gz", tokens=tmp_path / "t.tsv.gz")
    text = pl.read_csv(gzip.decompress((tmp_path / "t.tsv.gz").read_bytes()), separator="\t")
    assert text.columns == frame.columns
    assert text["log10"].to_list() == pytest.approx(frame["log10"].to_list(), abs=1e-6)
    assert text.drop("log10").rows() == frame.drop("log10").rows()
    assert gzip.decompress((tmp_path / "s.tsv.gz").read_bytes()) == (tmp_path / "s.tsv").read_bytes()


def test_what_is_read_is_not_overwritten(models, asked, tmp_path):
    text, mixture = tmp_path / "text.txt", tmp_path / "mix"
    text.write_bytes(asked.read_bytes())
    Mixture(tuple(models), np.array([[0.5, 0.5]])).save(mixture)
    for write in (
        lambda: estimate([asked, text], text, Estimation(order=2, fallback=True)),
        lambda: measure(mixture, text, sentences=text),
        lambda: measure(mixture, text, tokens=mixture),
        lambda: Mixture((text,), np.ones((1, 1))).save(text),
    ):
        with pytest.raises(UserError, match="it is read, too"):
            write()
    assert text.read_bytes() == asked.read_bytes() and len(Mixture.open(mixture).models) == 2


def test_a_history_of_few_tokens_is_smoothed_towards_the_weights_of_all():
    """Where the weights of all are not alike: of 600 tokens the first model is right, of 200 the second."""
    right, wrong = np.log10([0.9] * 800), np.log10([0.1] * 800)
    first = np.arange(800) < 600
    log10 = np.where(np.stack([first, ~first]), right, wrong)
    known = np.where(np.arange(800) < 798, 1, 3)
    scores = scores_of(log10, known.tolist())
    overall = fitted([Path("a"), Path("b")], scores, by_history=False).weights[0]
    assert overall[0] > 0.7
    mixture = fitted([Path("a"), Path("b")], scores, by_history=True)
    assert mixture.weights[5] == pytest.approx(overall, abs=1e-4)  # of which there is no token
    # Two tokens, for both of which the second model is right, are pulled towards the weights of all.
    weights = overall
    each = 10.0 ** log10[:, 798:]
    for _ in range(2000):
        joint = weights[:, None] * each
        counts = (joint / joint.sum(axis=0)).sum(axis=1) + PSEUDO * overall
        weights = counts / counts.sum()
    assert mixture.weights[3] == pytest.approx(weights, abs=1e-4)
    assert abs(mixture.weights[3] - 0.5).max() > 0.05


def test_histories_are_those_of_the_first_model():
    log10 = np.log10([[0.9] * 500 + [0.1] * 500, [0.1] * 500 + [0.9] * 500]).astype(np.float32)
    known = np.array([[1] * 500 + [2] * 500, [4] * 1000], dtype=np.uint8)
    scores = Scores(np.array([1000], dtype=np.uint32), log10, np.ones_like(known), known)
    mixture = fitted([Path("a"), Path("b")], scores, by_history=True)
    assert mixture.weights[1, 0] > 0.95 and mixture.weights[2, 1] > 0.95
    assert np.exp(mixture.log_probs(scores)) == pytest.approx((mixture.weights[known[0]].T * 10.0**log10).sum(axis=0))
