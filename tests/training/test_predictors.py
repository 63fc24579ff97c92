"""What a predictor is trained on: batches, mixtures, vocabulary, what watches; and what its checkpoint says."""

import json
import threading

import numpy as np
import pytest
import torch

from compgen.augmenters.registry import make as make_augmenter
from compgen.cli.evaluate import _say_learnt
from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.data.vocabulary import SPARES
from compgen.errors import DataError, Remark
from compgen.models.backend import TorchBackend
from compgen.runtime.predict import Recurrent, greedy
from compgen.trained.checkpoint import Checkpoint
from compgen.trained.predictor import Predictor
from compgen.training import predictors as predictor
from compgen.training.config import Seq2SeqConfig, TransformerConfig
from compgen.training.pairs import Fresh, PairExamples
from compgen.training.predictors import error_rate, train_predictor
from tests.export.tiny import make

TINY = [f"network.{name}=6" for name in ("hidden", "encoder_hidden", "embedding", "output", "attention")]
SHORT = ["optimisation.steps=3", "optimisation.batch=4"]
PAIRS = [(["walk"], ["W"]), (["run", "twice"], ["R", "R"]), (["walk"], ["W"]), (["look", "twice"], ["L", "L", "L"])]


def seq2seq(*more):
    return load_config(Seq2SeqConfig, "seq2seq_small", [*TINY, *SHORT, *more])


@pytest.fixture
def parts(monkeypatch):
    """What watches and what is trained on, as they are made: the arguments of each."""
    seen = []

    class Watched(PairExamples):
        def __init__(self, *arguments):
            super().__init__(*arguments)
            seen.append(arguments)

    monkeypatch.setattr(predictor, "PairExamples", Watched)
    return seen


def test_a_batch_is_as_long_as_its_longest_with_start_and_end():
    examples = PairExamples([([5, 6, 7], [8]), ([5], [8, 9, 10]), ([6] * 9, [8] * 9)], [], None, 4, 0)
    targets, sources = examples.collate(np.array([1, 0]))
    assert targets.tolist() == [[1, 8, 9, 10, 2], [1, 8, 2, 0, 0]]
    assert sources.tolist() == [[[5, 2, 0, 0]], [[5, 6, 7, 2]]]
    targets, sources = examples.collate(np.array([2]))
    assert targets.tolist() == [[1, *[8] * 9, 2]] and sources.tolist() == [[[*[6] * 9, 2]]]


def test_targets_of_like_length_share_a_batch():
    pairs = [([5], [8] * (1 + number // 10)) for number in range(40)]
    plan = PairExamples(pairs, [], None, 10, 3).plan(0)
    assert sorted(np.concatenate(plan).tolist()) == list(range(40))
    assert all(np.ptp(rows // 10) <= 1 for rows in plan)
    again, other = (np.concatenate(PairExamples(pairs, [], None, 10, seed).plan(0)).tolist() for seed in (3, 4))
    assert again == np.concatenate(plan).tolist() != other


@pytest.mark.parametrize(("p_aug", "drawn"), [(0.5, 12), (0.25, 4), (0.1, 1), (0.01, 1), (0.0, 0), (0.75, 36)])
def test_a_mixture_takes_every_original_and_cycles_through_what_is_added(p_aug, drawn):
    rows = np.concatenate(PairExamples([([5], [8])] * 12, [([6], [9])] * 5, p_aug, 4, 1).plan(2))
    assert sorted(rows[rows < 12].tolist()) == list(range(12))
    counts = np.bincount(rows[rows >= 12] - 12, minlength=5)
    assert counts.sum() == drawn and np.ptp(counts) <= 1


@pytest.mark.parametrize(("setting", "kept"), [("true", 3), ("false", 4)])
def test_repeated_pairs_count_once_or_as_often_as_they_are_there(tmp_path, parts, setting, kept):
    options = seq2seq(f"deduplicate={setting}", "held_out=0")
    checkpoint, outcome = train_predictor(
        Dataset.from_pairs(PAIRS), options, tmp_path / "p.pt", name="four", quiet=True
    )
    ((original, added, p_aug, batch, seed),) = parts
    assert (len(original), added, p_aug, batch, seed) == (kept, [], None, 4, 0)
    assert outcome.held_out is None
    said = checkpoint.trained_on
    assert (said["data"], said["examples"], said["augmented_examples"], said["updates"]) == ("four", kept, 0, 3)
    assert said["held_out_error_rate"] is None and said["seed"] == 0
    assert said["train_loss_nats_per_token"] == pytest.approx(outcome.train_loss, abs=1e-5)
    assert checkpoint.max_length == 2 * 3 + 1
    assert Checkpoint.load(tmp_path / "p.pt").trained_on == said
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.pt", "p.pt.log.jsonl"]


def test_it_is_recorded_what_was_learnt_of_words(tmp_path):
    words = Dataset.from_pairs([(["g", "o", "PST"], ["w"]), (["b", "e", "PST"], ["w"])])
    swapped = Dataset.from_pairs((target, source) for source, target in words.pairs())
    for data, task in ((words, "inflection"), (swapped, "analysis"), (Dataset.from_pairs(PAIRS), None)):
        checkpoint, _ = train_predictor(data, seq2seq(), tmp_path / "p.pt", quiet=True)
        assert checkpoint.trained_on.get("words") == task


def test_a_score_on_the_training_examples_is_remarked_on(tmp_path, capsys):
    train_predictor(Dataset.from_pairs(PAIRS), seq2seq(), tmp_path / "p.pt", quiet=True)
    learnt, again = Predictor.load(tmp_path / "p.pt"), Dataset.from_pairs([*reversed(PAIRS)], "test")
    assert learnt.learnt_from(again) and not learnt.learnt_from(Dataset.from_pairs(PAIRS[:2]))
    with pytest.warns(Remark, match="these are the examples it was trained on"):
        learnt.evaluate(again)
    _say_learnt([("p.pt", learnt)], "pairs.tsv", again)
    assert "warning: p.pt: pairs.tsv: these are the examples it was trained on" in capsys.readouterr().err
    _say_learnt([("p.pt", learnt)], "pairs.tsv", Dataset.from_pairs(PAIRS[:2]))
    assert not capsys.readouterr().err


def test_trainings_in_threads_learn_what_they_do_alone(tmp_path):
    def trained(out, seed):
        train_predictor(
            Dataset.from_pairs(PAIRS), seq2seq("optimisation.steps=20"), tmp_path / out, seed=seed, quiet=True
        )

    threads = [threading.Thread(target=trained, args=(f"thread{seed}.pt", seed)) for seed in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for seed in (0, 1):
        trained(f"alone{seed}.pt", seed)
        one, other = (Checkpoint.load(tmp_path / f"{way}{seed}.pt").network for way in ("thread", "alone"))
        for weights, same in zip(one.parameters(), other.parameters(), strict=True):
            assert torch.equal(weights, same)


@pytest.mark.parametrize("without_gradients", [torch.no_grad, torch.inference_mode])
def test_it_trains_where_the_caller_has_turned_gradients_off(tmp_path, without_gradients):
    with without_gradients():
        _, outcome = train_predictor(Dataset.from_pairs(PAIRS), seq2seq(), tmp_path / "p.pt", quiet=True)
        assert not torch.is_grad_enabled()
    assert outcome.steps == 3


def test_outputs_may_be_as_long_as_one_says(tmp_path):
    checkpoint, _ = train_predictor(Dataset.from_pairs(PAIRS), seq2seq("max_length=4"), tmp_path / "p.pt", quiet=True)
    assert checkpoint.max_length == 4
    longer = Dataset.from_pairs([(["walk"], ["W"] * 9)])
    checkpoint, _ = train_predictor(
        Dataset.from_pairs(PAIRS), seq2seq(), tmp_path / "p.pt", augmented=longer, quiet=True
    )
    assert checkpoint.max_length == 2 * 9 + 1


def test_a_share_is_held_out_and_scored(tmp_path, parts):
    many = Dataset.from_pairs([([f"w{n}"], [f"W{n}"]) for n in range(60)])
    _, outcome = train_predictor(many, seq2seq("held_out=0.25"), tmp_path / "p.pt", seed=5, quiet=True)
    (watched, none, _, size, _), (original, added, *_) = parts
    assert none == added == [] and size == 256
    assert 6 < len(watched) < 27 and len(watched) + len(original) == 60
    assert not {tuple(source) for source, _ in watched} & {tuple(source) for source, _ in original}
    assert outcome.held_out is not None
    with pytest.raises(DataError, match=r"1 examples leave nothing to train on: held_out = 0.999 takes all"):
        train_predictor(Dataset.from_pairs(PAIRS[:1]), seq2seq("held_out=0.999"), tmp_path / "q.pt", quiet=True)


def numbered(letter, count=40):
    return Dataset.from_pairs([([f"{letter}{n}"], [f"{letter.upper()}{n}"]) for n in range(count)])


def test_augmented_examples_are_mixed_held_out_and_known_as_asked(tmp_path, parts):
    options = seq2seq("p_aug=0.25", "held_out=0.25", "held_out_augmented=0.25")
    checkpoint, _ = train_predictor(numbered("w"), options, tmp_path / "p.pt", augmented=numbered("a"), quiet=True)
    (watched, *_), (original, added, p_aug, *_) = parts
    assert p_aug == 0.25 and 20 < len(original) < 40 and 20 < len(added) < 40
    assert len(watched) + len(original) + len(added) == 80
    assert all(checkpoint.vocabulary.knows([f"{letter}{n}"]) for letter in "wWaA" for n in range(40))


def test_the_seed_decides_the_first_weights(tmp_path):
    options = seq2seq("optimisation.steps=1", "optimisation.learning_rate=1e-12")
    first, again, other = (
        train_predictor(Dataset.from_pairs(PAIRS), options, tmp_path / "p.pt", seed=seed, quiet=True)[0].network
        for seed in (1, 1, 2)
    )
    weights = [torch.cat([p.flatten() for p in net.parameters()]) for net in (first, again, other)]
    assert torch.equal(weights[0], weights[1]) and not torch.allclose(weights[0], weights[2], atol=1e-6)


def test_a_training_is_another_with_other_augmented_examples(tmp_path, monkeypatch):
    def caught(*_, identity, **__):
        raise RuntimeError(json.dumps(identity))

    monkeypatch.setattr(predictor, "train", caught)
    concat = make_augmenter("concat").fit(numbered("w"))
    found = set()
    sources, targets = (numbered("a").frame[side].to_list() for side in ("source", "target"))
    other = Dataset.from_pairs(zip(sources, reversed(targets), strict=True))  # of the same tokens
    for more in ({}, {"augmented": numbered("a")}, {"augmented": other}, {"fresh": Fresh(concat)}):
        with pytest.raises(RuntimeError) as stopped:
            train_predictor(numbered("w"), seq2seq(), tmp_path / "p.pt", quiet=True, **more)
        found.add(str(stopped.value))
    assert len(found) == 4 and sum('"augment": "concat"' in identity for identity in found) == 1


@pytest.mark.parametrize("copying", [True, False])
def test_only_who_copies_has_words_to_spare_and_takes_them_for_unknown(tmp_path, copying):
    options = seq2seq(f"network.copying={str(copying).lower()}", "network.token_dropout=0")
    checkpoint, _ = train_predictor(Dataset.from_pairs(PAIRS), options, tmp_path / "p.pt", quiet=True)
    words, shown = checkpoint.vocabulary.tokens, checkpoint.network.shown.tolist()
    assert [token in words for token in SPARES] == [copying] * len(SPARES)
    assert {words[place] for place, token in enumerate(shown) if token != place} == (set(SPARES) if copying else set())


def test_a_transformer_knows_tags(tmp_path):
    words = Dataset.from_pairs([([*"ab", "N", "PL"], [*"abs"]), ([*"cd", "N", "SG"], [*"cd"])])
    options = load_config(TransformerConfig, "transformer_small", ["optimisation.steps=2", "held_out=0"])
    checkpoint, _ = train_predictor(words, options, tmp_path / "p.pt", quiet=True)
    tags = {checkpoint.vocabulary.tokens[place] for place in torch.nonzero(checkpoint.network.tags)[:, 0].tolist()}
    assert tags == {"N", "PL", "SG"}


def test_the_error_rate_is_what_greedy_decoding_gets_wrong():
    checkpoint = make("predictor")
    torch.manual_seed(2)
    for parameter in checkpoint.network.parameters():
        parameter.data = 0.9 * torch.randn_like(parameter)
    sources = [[5, 6, 7], [8], [9, 9, 10, 11, 5], [6, 5], [7, 7, 7, 7]]
    answers = [answer for answer, _ in greedy(Recurrent(TorchBackend(checkpoint.network)), sources, 9)]
    right = [answer if len(answer) < 9 else [] for answer in answers]
    ended = [bool(answer) for answer in right]
    assert 1 < sum(ended) < 5
    pairs = list(zip(sources, right, strict=True))
    for batch in (1, 2, 256):
        rate = error_rate(checkpoint.network, PairExamples(pairs, [], None, batch, 0), "cpu")
        assert rate == pytest.approx(1 - sum(ended) / 5)
