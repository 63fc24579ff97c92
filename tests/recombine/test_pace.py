"""How many updates there is time for: timed where minutes are given, and kept by a training that goes on."""

import pytest
import torch

from compgen.configuration import load_config
from compgen.errors import Interrupted
from compgen.models.network import Network
from compgen.recombine import pace, settings
from compgen.recombine.augmenter import RecombineOptions
from compgen.recombine.config import RecombineConfig
from compgen.recombine.training import train_generator
from compgen.training import loop
from tests.recombine.test_settings import COMMANDS, SIZES


def config(*more):
    return load_config(RecombineConfig, "auto", [*SIZES, *more])


def weights_are_equal(one, other):
    weights = other.network.state_dict()
    return all(torch.equal(value, weights[name]) for name, value in one.network.state_dict().items())


@pytest.fixture
def slow(monkeypatch):
    """A machine on which an update takes a tenth of a minute, and three updates are enough."""
    monkeypatch.setattr(pace, "FEWEST", 3)
    monkeypatch.setattr(pace, "_seconds", lambda *some: 6.0)


@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize(
    ("minutes", "steps", "says"),
    [
        (0.5, 5, "an update takes 6 s here, so that there is time for 5, not "),
        (0.1, 3, "so that 3, the fewest that can teach anything, take about 0.3 min, not 0.1: set optimisation.steps"),
    ],
)
def test_updates_are_as_many_as_there_is_time_for(tmp_path, capsys, minutes, steps, says):
    made, outcome = train_generator(COMMANDS, config(f"minutes={minutes}"), tmp_path / "g.pt")
    assert outcome.steps == made.config["optimisation"]["steps"] == steps
    assert says in capsys.readouterr().err and says in made.trained_on["settings"]


def test_a_number_of_updates_that_was_set_is_not_timed(tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "_seconds", None)
    _, outcome = train_generator(COMMANDS, config("minutes=0.1", "optimisation.steps=4"), tmp_path / "g.pt", quiet=True)
    assert outcome.steps == 4


def test_updates_that_are_not_timed_follow_from_the_data_and_the_minutes(tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "_seconds", None)
    monkeypatch.setattr(settings, "FEWEST", 3)
    asked = load_config(RecombineOptions, "auto", [*SIZES, "minutes=0.0001", "timed=false"])
    made, outcome = train_generator(COMMANDS, asked.config(), tmp_path / "g.pt", quiet=True)
    assert outcome.steps == settings.settings(COMMANDS, 0.0001)[0].optimisation.steps
    assert "timed" not in made.config and "an update takes" not in made.trained_on["settings"]


@pytest.mark.usefixtures("slow")
def test_a_training_goes_on_with_the_updates_that_it_began_with(tmp_path, monkeypatch):
    whole, _ = train_generator(COMMANDS, config("minutes=0.5"), tmp_path / "whole.pt", quiet=True)
    out, update = tmp_path / "g.pt", loop._Run.update

    def stopped(run, rows):
        update(run, rows)
        if run.step == 2:
            run.save()
            raise Interrupted("stopped")

    monkeypatch.setattr(loop._Run, "update", stopped)
    with pytest.raises(Interrupted):
        train_generator(COMMANDS, config("minutes=0.5"), out, quiet=True)
    monkeypatch.setattr(loop._Run, "update", update)
    monkeypatch.setattr(pace, "_seconds", None)  # nothing is timed again
    resumed, outcome = train_generator(COMMANDS, config("minutes=0.5"), out, resume=True, quiet=True)
    assert outcome.steps == 5 and weights_are_equal(whole, resumed)


def test_timing_leaves_the_network_and_random_numbers_as_they_are(tmp_path, monkeypatch):
    """Trainings of as many updates have the same weights, whether they were timed or not."""
    monkeypatch.setattr(pace, "FEWEST", 4)
    timed, _ = train_generator(COMMANDS, config("minutes=1e-9"), tmp_path / "a.pt", quiet=True)
    plain, _ = train_generator(COMMANDS, config("minutes=1e-9", "optimisation.steps=4"), tmp_path / "b.pt", quiet=True)
    assert timed.config == plain.config and weights_are_equal(timed, plain)


def test_updates_in_bfloat16_are_timed_in_bfloat16(tmp_path, monkeypatch):
    monkeypatch.setattr(pace, "FEWEST", 2)
    found, loss = [], Network.loss
    monkeypatch.setattr(Network, "loss", lambda *some: found.append(torch.is_autocast_enabled("cpu")) or loss(*some))
    asked = config("minutes=1e-9", "optimisation.precision=bfloat16", "held_out=0")
    train_generator(COMMANDS, asked, tmp_path / "a.pt", quiet=True)
    assert len(found) > 2 and all(found)
