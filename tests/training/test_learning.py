"""A training that learns nothing says so."""

import random

import pytest
import torch

from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.trained.checkpoint import Checkpoint
from compgen.training import loop, predictors
from compgen.training.config import Seq2SeqConfig
from compgen.training.learning import trouble
from compgen.training.predictors import train_predictor
from tests.training.tiny import TINY, toy


def config(*more):
    settings = [*TINY, "network.embedding_dropout=0", "network.output_dropout=0", "optimisation.batch=16"]
    return load_config(Seq2SeqConfig, "seq2seq_small", [*settings, "held_out=0", "optimisation.warmup=0", *more])


def unrelated():
    """Sources that say nothing of their targets."""
    draw = random.Random(0)
    pairs = [(draw.choices("abcdef", k=3), draw.choices("UVW", k=2)) for _ in range(4000)]
    return Dataset.from_pairs(pairs)


@pytest.mark.parametrize(
    ("data", "settings", "message"),
    [
        (toy, ["optimisation.steps=200"], "after 200 updates, "),  # it learns, but not all of it yet
        (toy, ["optimisation.steps=200", "optimisation.learning_rate=1e-12"], "the loss does not fall: "),
        (unrelated, ["optimisation.steps=200"], "what is read makes no difference yet: "),
        (unrelated, ["optimisation.steps=50"], ""),  # too early to tell
    ],
)
def test_what_learns_nothing_is_said_and_written(tmp_path, capsys, data, settings, message):
    checkpoint, outcome = train_predictor(data(), config(*settings), tmp_path / "p.pt")
    assert outcome.trouble.startswith(message) and bool(outcome.trouble) == bool(message)
    assert checkpoint.trained_on.get("warning", "") == outcome.trouble
    early = message.startswith(("the loss", "what is read"))  # is said when it is known; the rest at the end
    assert (f"warning: after 200 updates {message}" in capsys.readouterr().err) == early


def test_what_is_not_known_by_heart_at_the_end_is_said():
    pairs, rows = [([5], [6]), ([6], [7]), ([7], [8]), ([8], [9])], []

    class Half(torch.nn.Module):
        def predicts(self, _targets, sources):
            rows.extend(sources.tolist())
            return sources[:, 0, 0] < 7

    said = predictors._unlearnt(Half(), pairs, 100, "cpu")
    assert said.startswith("after 100 updates, 50.0% of the training examples that were looked at (4) are answered")
    assert len(rows) == 4 and predictors._unlearnt(Half(), pairs, 99, "cpu") == ""
    assert predictors._unlearnt(Half(), pairs[:2], 100, "cpu") == ""


def test_it_is_said_after_a_minute_and_not_at_the_end_alone(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(loop, "AFTER", 0.0)
    train_predictor(unrelated(), config("optimisation.steps=300"), tmp_path / "p.pt")
    said = capsys.readouterr().err
    assert said.count("warning: after 100 updates what is read makes no difference yet") == 1
    assert said.count("warning: ") == 1


def test_it_is_written_too_by_a_run_that_was_killed_when_it_was_said(tmp_path, monkeypatch):
    settings, out = config("optimisation.steps=120", "optimisation.learning_rate=1e-12"), tmp_path / "p.pt"
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train_predictor(toy(), settings, out, quiet=True)
    checkpoint, outcome = train_predictor(toy(), settings, out, quiet=True, resume=True)
    assert outcome.trouble.startswith("the loss does not fall: ")
    assert checkpoint.trained_on["warning"] == outcome.trouble


def test_looking_changes_nothing(tmp_path, monkeypatch):
    found = []
    for after in (0.0, 1e9):
        monkeypatch.setattr(loop, "AFTER", after)
        settings = config("optimisation.steps=150", "network.output_dropout=0.5")
        checkpoint, _ = train_predictor(toy(), settings, tmp_path / f"{after}.pt", quiet=True)
        found.append(checkpoint.network.state_dict())
    for name, tensor in found[0].items():
        assert torch.equal(tensor, found[1][name]), name


def test_a_network_that_reads_nothing_is_asked_for_its_loss_alone():
    sequences, nothing = torch.ones(9, 3, dtype=torch.int64), torch.ones(9, 0, 4, dtype=torch.int64)
    assert trouble(torch.nn.Module(), sequences, nothing, 3.0, 1.0, 0.1) == ""
