"""Augmented examples that are drawn anew in each epoch."""

import json
import os
import signal

import numpy as np
import pytest
import torch

from compgen.augmenters.registry import make
from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.data.vocabulary import Vocabulary
from compgen.errors import CheckpointError, Interrupted, UserError
from compgen.training import loop
from compgen.training.config import Seq2SeqConfig
from compgen.training.pairs import Fresh, FreshExamples, PairExamples
from compgen.training.predictors import _known, train_predictor
from tests.training.tiny import TINY, toy, weights

ORIGINAL = [([5, 6], [7]), ([6], [7, 8]), ([5], [8])]


def numbered(count, epoch):
    """Pairs that say in which epoch they were drawn, and which of them they are."""
    return [([100 + epoch, 200 + place], [9] * (1 + place % 3)) for place in range(count)]


class ByParity(torch.nn.Module):
    """A network whose loss a token is one number for sources with an even number, and another for odd ones."""

    def __init__(self, even, odd):
        super().__init__()
        self.even, self.odd, self.weight = even, odd, torch.nn.Parameter(torch.zeros(1))

    def loss(self, sequences, memories):
        self.modes = {*getattr(self, "modes", ()), self.training}
        loss = torch.where(memories[:, 0, 1:2] % 2 == 0, self.even, self.odd)
        return loss.expand(-1, sequences.shape[1] - 1) * (sequences[:, 1:] != 0)


def held(examples):
    return [tuple(row[:2]) for row in examples.sources[examples.original :].tolist()]


def test_each_epoch_has_examples_of_its_own_and_all_originals():
    examples = FreshExamples(ORIGINAL, numbered, 0.5, 2, seed=1)
    for epoch in (0, 1, 5):
        rows = np.concatenate(examples.plan(epoch))
        assert {*held(examples)} == {(100 + epoch, 200 + place) for place in range(3)}
        assert sorted(rows.tolist()) == list(range(6))
        assert len(examples.plan(epoch)) == len(examples.plan(0))


def test_each_epoch_has_batches_and_augmented_examples_of_its_own():
    alone = PairExamples(ORIGINAL * 20, [], None, 4, seed=1)
    first, again, other = (np.concatenate(alone.plan(epoch)).tolist() for epoch in (0, 0, 1))
    assert first == again != other and sorted(first) == sorted(other)
    examples = PairExamples(ORIGINAL, numbered(30, 0), 0.5, 2, seed=1)
    drawn = [{*np.concatenate(examples.plan(epoch)).tolist()} - {0, 1, 2} for epoch in range(9)]
    assert {len(rows) for rows in drawn} == {3} and len(set.union(*drawn)) > 12
    made = [fresh().draw(5, seed, epoch) for seed, epoch in ((1, 0), (1, 0), (1, 1), (2, 0))]
    assert made[0] == made[1] and made[0] not in made[2:]


def test_few_fresh_examples_are_repeated_and_many_are_drawn():
    few = FreshExamples(ORIGINAL, lambda count, epoch: numbered(1, epoch), 0.5, 2, seed=1)
    assert np.bincount(np.concatenate(few.plan(3))).tolist() == [1, 1, 1, 3]
    many = FreshExamples(ORIGINAL, numbered, 0.9, 2, seed=1)
    assert many.needed == 27 and len(np.concatenate(many.plan(1))) == 30


def test_hard_examples_are_those_with_a_high_loss():
    network = ByParity(10.0, 1e-6).train()
    examples = FreshExamples(ORIGINAL, numbered, 0.8, 4, seed=1, network=network)
    examples.plan(0)
    assert held(examples) == [(100, 200 + place) for place in range(12)]  # nothing is known yet
    examples.plan(1)
    assert all(number % 2 == 0 for _, number in held(examples)) and network.training
    chosen = examples.chosen
    assert list(chosen) == [1] and len({*chosen[1]}) == 12 and max(chosen[1]) >= 24  # of four times as many
    examples.chosen = {2: [5, 6]}  # as after an interruption
    examples.plan(2)
    assert held(examples) == [(102, 205), (102, 206)]


def test_hard_examples_are_drawn_by_their_loss_a_token():
    def shares(network):
        """Of even ones and of long ones among 300 that are kept of 1,200."""
        examples = FreshExamples(ORIGINAL * 100, numbered, 0.5, 64, seed=1, network=network)
        examples.plan(1)
        places = np.array(examples.chosen[1])
        assert len(places) == 300
        return np.mean(places % 2 == 0), np.mean(places % 3 == 2)

    even, long = shares(ByParity(3.0, 1.0))
    assert 0.6 < even < 0.85 and 0.25 < long < 0.35  # three times as often at first, whatever their length
    assert 0.4 < shares(ByParity(1.0, 1.0))[0] < 0.6


@pytest.mark.parametrize("training", [True, False])
def test_losses_are_those_without_dropout_and_the_network_stays_as_it_was(training):
    network = ByParity(1.0, 1.0).train(training)
    FreshExamples(ORIGINAL, numbered, 0.5, 2, seed=1, network=network).plan(1)
    assert network.modes == {False} and network.training is training


def config(*more):
    sizes = ["optimisation.steps=12", "optimisation.batch=8", "optimisation.learning_rate=0.1", "held_out=0.2", *more]
    return load_config(Seq2SeqConfig, "seq2seq_small", [*TINY[:-1], *sizes])


def fresh(hard=False, dataset=None):
    """Of `concat` there are hundreds of examples, so that what is kept of them depends on the weights."""
    return Fresh(make("concat").fit(toy() if dataset is None else dataset), hard)


@pytest.fixture
def data():
    """All but some commands, which `lexsym` can make."""
    return Dataset.from_pairs(pair for pair in toy().pairs() if pair[0] not in (["please", "hop", "twice"], ["run"]))


@pytest.mark.parametrize("hard", [False, True])
def test_a_resumed_training_draws_the_same_again(tmp_path, monkeypatch, data, hard):
    def train(out, **options):
        return train_predictor(data, config(), out, fresh=fresh(hard, data), quiet=True, **options)

    whole, _ = train(tmp_path / "whole.pt")
    update = loop._Run.update

    def interrupted(run, rows):
        if run.step == run.per_epoch + 1:  # within an epoch, whose examples were chosen by earlier weights
            os.kill(os.getpid(), signal.SIGINT)
        return update(run, rows)

    monkeypatch.setattr(loop._Run, "update", interrupted)
    with pytest.raises(Interrupted, match=r"after update \d of 12"):
        train(tmp_path / "cut.pt")
    monkeypatch.setattr(loop._Run, "update", update)
    with pytest.raises(CheckpointError, match="hard was"):
        train_predictor(data, config(), tmp_path / "cut.pt", fresh=fresh(not hard, data), resume=True, quiet=True)
    chosen, choose = [], FreshExamples._choose
    monkeypatch.setattr(FreshExamples, "_choose", lambda *given: chosen.append(given[-1]) or choose(*given))
    resumed, _ = train(tmp_path / "cut.pt", resume=True)
    assert chosen == ([0, 2, 3] if hard else [])  # in the epoch that was interrupted, what had been chosen is taken
    for name, expected in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[name], expected, err_msg=name)
    assert resumed.trained_on["fresh"]["augment"] == "concat" and resumed.trained_on["fresh"]["hard"] == hard
    json.dumps(resumed.trained_on)


def test_a_training_draws_anew_in_each_epoch(tmp_path, monkeypatch, data):
    epochs, draw = [], Fresh.draw
    monkeypatch.setattr(Fresh, "draw", lambda *given: epochs.append(given[-1]) or draw(*given))
    train_predictor(data, config(), tmp_path / "p.pt", fresh=fresh(dataset=data), quiet=True)
    assert {*epochs} >= {0, 1, 2}


def test_samples_with_unknown_tokens_are_left_out(tmp_path, data):
    some = Dataset.from_pairs([(["a"], ["A"]), (["b"], ["A"]), (["a"], ["B"])])
    assert _known(some, Vocabulary.of([["a"], ["A"]])) == [([6], [5])]

    lexicon = tmp_path / "lexicon.tsv"
    lexicon.write_text("t\twalk\tWALK\nt\trun\tRUN\nt\tskip\tSKIP\n")
    method = make("lexsym", lexicon=str(lexicon)).fit(data)
    checkpoint, _ = train_predictor(data, config(), tmp_path / "p.pt", fresh=Fresh(method), quiet=True)
    assert "skip" in checkpoint.vocabulary  # it is among the first


def test_either_given_or_drawn(tmp_path, data):
    with pytest.raises(UserError, match="augmented examples are given, or drawn anew in each epoch: not both"):
        train_predictor(data, config(), tmp_path / "p.pt", fresh=fresh(), augmented=data, quiet=True)


def test_no_share_of_fresh_examples_is_told(tmp_path, data):
    with pytest.raises(UserError, match="p_aug is 0, so no examples would be drawn anew: leave them out, or set"):
        train_predictor(data, config("p_aug=0"), tmp_path / "p.pt", fresh=fresh(), quiet=True)
