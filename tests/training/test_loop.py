"""Training: resumed, interrupted, logged, and what cannot be trained."""

import json
import math
import os
import signal

import numpy as np
import pytest
import torch

from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.errors import CheckpointError, ConfigError, DataError, Interrupted, UserError
from compgen.recombine import training as generator
from compgen.recombine.training import train_generator
from compgen.trained.checkpoint import Checkpoint
from compgen.training import loop
from compgen.training import predictors as predictor
from compgen.training.config import Seq2SeqConfig
from compgen.training.pairs import PairExamples
from compgen.training.predictors import train_predictor
from tests.training.tiny import SHORT, TINY, generator_config, toy, weights

TIMES = {"seconds", "tokens_per_second"}


@pytest.mark.parametrize("schedule", ["linear", "plateau"])
def test_a_resumed_run_reaches_the_weights_of_an_uninterrupted_one(tmp_path, monkeypatch, schedule):
    config = generator_config(f"optimisation.schedule={schedule}", "optimisation.keep=best", "held_out=0.3")
    whole, _ = train_generator(toy(), config, tmp_path / "whole.pt", quiet=True)

    update, out = loop._Run.update, tmp_path / "cut.pt"

    def interrupted(run, rows):
        if run.step == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return update(run, rows)

    monkeypatch.setattr(loop._Run, "update", interrupted)
    with pytest.raises(Interrupted, match="after update 8 of 12"):
        train_generator(toy(), config, out, quiet=True)
    monkeypatch.setattr(loop._Run, "update", update)
    assert not out.exists() and out.with_name("cut.pt.partial").exists()
    torch.rand(3)  # a new process would not have the old one's random state either
    resumed, outcome = train_generator(toy(), config, out, resume=True, quiet=True)
    assert outcome.steps == 12
    assert not out.with_name("cut.pt.partial").exists()
    for name, expected in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[name], expected, err_msg=name)


@pytest.mark.parametrize(
    ("data", "change", "differs"),
    [
        ("toy", "optimisation.learning_rate=0.5", r": optimisation.learning_rate was [0-9.]+, is 0.5; give the same"),
        ("toy", "network.write_dropout=0.9", r": network.write_dropout was [0-9.]+, is 0.9; give the same"),
        ("toy", "network.hidden=9", r": network.hidden was [0-9]+, is 9; give the same"),
        ("other", "optimisation.batch=4", r"differs: the training data \(or the base model\); give"),  # as it was
    ],
)
def test_resuming_another_training_is_refused(tmp_path, monkeypatch, data, change, differs):
    monkeypatch.setattr(Checkpoint, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train_generator(toy(), generator_config(), tmp_path / "a.pt", quiet=True)
    dataset = toy()
    if data == "other":  # of the same sizes
        dataset = Dataset.from_pairs(([*source[:-1], "skip"], target) for source, target in toy().pairs())
    with pytest.raises(CheckpointError, match=differs):
        train_generator(dataset, generator_config(change), tmp_path / "a.pt", resume=True, quiet=True)


def test_a_last_update_that_diverges_is_told(tmp_path):
    config = generator_config("optimisation.steps=1", "optimisation.learning_rate=1e30")
    with pytest.raises(UserError, match=r"diverged: the loss is (nan|inf) by update 1; try a lower .* than 1e\+30"):
        train_generator(toy(), config, tmp_path / "a.pt", quiet=True)
    assert not (tmp_path / "a.pt").exists()


def test_an_interrupted_training_is_not_overwritten_without_a_word(tmp_path, monkeypatch, capsys):
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train_generator(toy(), generator_config(), tmp_path / "a.pt", quiet=True)
    state = (tmp_path / "a.pt.partial").read_bytes()
    train_generator(toy(), generator_config(), tmp_path / "a.pt", quiet=True)
    assert (tmp_path / "a.pt.partial.old").read_bytes() == state
    assert not (tmp_path / "a.pt.partial").exists()
    assert f"its state is now {tmp_path}/a.pt.partial.old (--resume" in capsys.readouterr().err


def test_two_trainings_do_not_write_one_output(tmp_path, monkeypatch, capsys):
    update, out = loop._Run.update, tmp_path / "a.pt"

    def with_another(run, rows):
        if run.step == 7:
            run.save()
            state = run.partial.read_bytes()
            with monkeypatch.context() as patch:
                patch.setattr(loop._Run, "update", update)
                for resume in (False, True):
                    with pytest.raises(UserError, match=r"a\.pt\.log\.jsonl: another run is writing it"):
                        train_generator(toy(), generator_config(), out, seed=2, resume=resume, quiet=True)
            assert run.partial.read_bytes() == state
        return update(run, rows)

    monkeypatch.setattr(loop._Run, "update", with_another)
    train_generator(toy(), generator_config(), out, quiet=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pt", "a.pt.log.jsonl"]
    assert not capsys.readouterr().err
    train_generator(toy(), generator_config(), out, quiet=True)  # which the first no longer keeps away


def test_a_damaged_state_is_not_gone_on_from(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train_generator(toy(), generator_config(), tmp_path / "a.pt", quiet=True)
    path = tmp_path / "a.pt.partial"
    whole, state = path.read_bytes(), torch.load(path, weights_only=True)
    torch.save(state | {"step": 3}, path)
    for cut, wanted in ((None, "damaged"), (whole[: len(whole) // 2], "not a checkpoint, or cut short"), (b"", "not")):
        if cut is not None:
            path.write_bytes(cut)
        anew = "; without --resume the training begins anew"
        with pytest.raises(CheckpointError, match=rf"a\.pt\.partial: {wanted}.*{anew}$"):
            train_generator(toy(), generator_config(), tmp_path / "a.pt", resume=True, quiet=True)
    with pytest.raises(KeyboardInterrupt):
        train_generator(toy(), generator_config(), tmp_path / "a.pt", quiet=True)
    assert path.stat().st_size > len(whole) // 2


def test_a_resumed_training_has_the_log_and_the_loss_of_a_whole_one(tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "LOG_EVERY", 4)
    config = generator_config("optimisation.keep=last", "held_out=0.3")
    _, expected = train_generator(toy(), config, tmp_path / "whole.pt", quiet=True)
    write, saves = loop.write_sealed, []

    def killed(state, path):
        if state["step"] == 6:
            raise KeyboardInterrupt
        write(state, path)
        saves.append(state["step"])

    monkeypatch.setattr(loop, "SAVE_EVERY", 0.0)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "write_sealed", killed)
        with pytest.raises(KeyboardInterrupt):
            train_generator(toy(), config, tmp_path / "cut.pt", quiet=True)
    assert saves[-1] == 5
    with (tmp_path / "cut.pt.log.jsonl").open("a") as stream:  # of updates that are made again, the last cut short
        stream.write('{"step": 8, "loss": 1.0}\n{"step": 9, "lo')
    _, outcome = train_generator(toy(), config, tmp_path / "cut.pt", resume=True, quiet=True)
    assert outcome.train_loss == expected.train_loss
    logs = [(tmp_path / f"{name}.pt.log.jsonl").read_text().splitlines() for name in ("cut", "whole")]
    timeless = [
        [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
        for lines in logs
    ]
    assert timeless[0] == timeless[1] and len(timeless[0]) == 3


def test_tokens_before_an_interruption_do_not_count_as_speed(tmp_path, monkeypatch):
    config, out, update = generator_config("optimisation.keep=last", "held_out=0"), tmp_path / "a.pt", loop._Run.update
    clock, tokens = iter(range(10**6)), []  # a second passes each time that it is asked for

    def counted(run, rows):
        update(run, rows)
        tokens.append(run.tokens)
        if len(tokens) == 11:
            run.save()
            raise Interrupted("stopped")

    monkeypatch.setattr(loop.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(loop._Run, "update", counted)
    with pytest.raises(Interrupted):
        train_generator(toy(), config, out, quiet=True)
    train_generator(toy(), config, out, resume=True, quiet=True)
    line = json.loads((tmp_path / "a.pt.log.jsonl").read_text())
    assert line["step"] == 12 and line["tokens_per_second"] <= tokens[11] - tokens[10]


def test_a_state_of_an_earlier_version_is_gone_on_from(tmp_path, monkeypatch):
    config, write, newer = generator_config("optimisation.keep=last"), loop.write_sealed, ("losses", "tokens", "first")

    def written_then(state, path):
        write({key: value for key, value in state.items() if key not in newer}, path)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(loop, "write_sealed", written_then)
        with pytest.raises(KeyboardInterrupt):
            train_generator(toy(), config, tmp_path / "a.pt", quiet=True)
    _, outcome = train_generator(toy(), config, tmp_path / "a.pt", resume=True, quiet=True)
    assert outcome.steps == 12


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(CheckpointError, match="no such file: no training was interrupted; leave out --resume"):
        train_generator(toy(), generator_config(), tmp_path / "b.pt", resume=True, quiet=True)


def test_a_training_that_goes_astray_is_no_success(tmp_path):
    config = generator_config("optimisation.learning_rate=1e30", "optimisation.schedule=constant")
    with pytest.raises(UserError, match=r"the loss is .* by update 12; try a lower optimisation\.learning_rate"):
        train_generator(toy(), config, tmp_path / "a.pt", quiet=True)
    assert not [*tmp_path.iterdir()]  # no log without a line, either
    with pytest.raises(ConfigError, match=r"optimisation\.learning_rate: .*finite"):
        generator_config("optimisation.learning_rate=inf")


@pytest.mark.parametrize("where", ["score", "save"])
def test_a_training_that_stops_after_its_last_update_can_be_resumed(tmp_path, monkeypatch, where):
    config, stop = generator_config("optimisation.keep=last", "held_out=0.3"), True
    whole, expected = train_generator(toy(), config, tmp_path / "whole.pt", quiet=True)
    place = (generator, "per_token_loss") if where == "score" else (Checkpoint, "save")
    proper = getattr(*place)

    def interrupted(*arguments):
        if stop:
            raise KeyboardInterrupt
        return proper(*arguments)

    monkeypatch.setattr(*place, interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_generator(toy(), config, tmp_path / "cut.pt", quiet=True)
    stop = False
    resumed, outcome = train_generator(toy(), config, tmp_path / "cut.pt", resume=True, quiet=True)
    assert (outcome.steps, outcome.train_loss, outcome.held_out) == (12, expected.train_loss, expected.held_out)
    for name, values in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[name], values, err_msg=name)
    assert not (tmp_path / "cut.pt.partial").exists()


@pytest.mark.parametrize("name", ["folder.pt", "model"])
def test_a_checkpoint_cannot_have_any_name(tmp_path, name):
    (tmp_path / "folder.pt").mkdir()
    with pytest.raises(UserError, match=r"ends in \.pt"):
        train_generator(toy(), generator_config(), tmp_path / name, quiet=True)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.pt"]


def test_training_learns_and_logs(tmp_path):
    config = load_config(
        Seq2SeqConfig, "seq2seq_small", [*TINY[:-1], "optimisation.steps=150", "optimisation.batch=8", "held_out=0.0"]
    )
    _, outcome = train_predictor(toy(), config, tmp_path / "p.pt", quiet=True)
    lines = [json.loads(line) for line in (tmp_path / "p.pt.log.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert losses[-1] < 0.7 * losses[0]
    assert outcome.train_loss == pytest.approx(losses[-1], abs=1e-4)


def test_something_must_be_left_to_train_on(tmp_path):
    with pytest.raises(DataError, match=r"held_out = 0\.999 leaves none"):
        train_generator(toy(), generator_config("held_out=0.999"), tmp_path / "g.pt", quiet=True)


def test_a_mixture_without_augmented_examples_is_the_originals():
    rows = np.concatenate(PairExamples([([5], [8])] * 9, [([6], [9])] * 7, 0.0, 4, 0).plan(0))
    assert sorted(rows.tolist()) == list(range(9))


def test_mixture_draws_augmented_examples_at_their_rate():
    original = [([5], [8])] * 90
    augmented = [([6], [9])] * 7
    examples = PairExamples(original, augmented, 0.25, 10, 0)
    rows = np.concatenate(examples.plan(3))
    assert (rows < 90).sum() == 90 and (rows >= 90).sum() == 30
    assert np.bincount(rows[rows >= 90]).max() == 5  # 30 draws of 7, cycled
    union = np.concatenate(PairExamples(original, augmented, None, 10, 0).plan(3))
    assert sorted(union.tolist()) == list(range(97))
    assert np.concatenate(examples.plan(4)).tolist() != rows.tolist()


def test_augmented_examples_that_are_held_out_watch_training_and_are_not_trained_on(tmp_path, monkeypatch):
    """Those held out have a token each that no other example has: what is scored, and what is trained on, shows it."""
    more = Dataset.from_pairs([(["walk", f"x{place}"], ["WALK", f"X{place}"]) for place in range(40)])
    seen = []

    class Watched(PairExamples):
        def __init__(self, original, augmented, *arguments):
            super().__init__(original, augmented, *arguments)
            seen.append((original, augmented))

    monkeypatch.setattr(predictor, "PairExamples", Watched)
    config = load_config(Seq2SeqConfig, "seq2seq_small", [*TINY, *SHORT, "held_out=0", "held_out_augmented=0.25"])
    checkpoint, outcome = train_predictor(toy(), config, tmp_path / "p.pt", augmented=more, quiet=True)
    (watched, nothing), (original, augmented) = seen
    assert len(original) == len(toy()) and nothing == []
    assert 3 < len(watched) < 20 and len(watched) + len(augmented) == 40
    assert not {tuple(source) for source, _ in watched} & {tuple(source) for source, _ in augmented}
    assert outcome.held_out is not None and 0 <= outcome.held_out <= 1
    assert checkpoint.trained_on["augmented_examples"] == 40
    config = load_config(Seq2SeqConfig, "seq2seq_small", [*TINY, *SHORT, "held_out_augmented=0.999"])
    one = Dataset.from_pairs([(["a"], ["b"])])
    with pytest.raises(DataError, match="leaves none of 1 to train on"):
        train_predictor(toy(), config, tmp_path / "p.pt", augmented=one, quiet=True)


def test_a_place_that_cannot_be_written_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"p\.pt\.partial: cannot be written"):
        train_generator(toy(), generator_config(), tmp_path / "file" / "p.pt", quiet=True)


def test_too_little_data_is_refused(tmp_path):
    with pytest.raises(DataError, match="found 1 example, expected 3 or more"):
        train_generator(Dataset.from_pairs([(["a"], ["b"])]), generator_config(), tmp_path / "g.pt")
    config = load_config(Seq2SeqConfig, "seq2seq_small", ["p_aug=0.1"])
    for augmented in (None, Dataset.from_pairs([])):
        with pytest.raises(DataError, match=r"p_aug says .* but no augmented data was given"):
            train_predictor(toy(), config, tmp_path / "p.pt", augmented=augmented)
    config = load_config(Seq2SeqConfig, "seq2seq_small", ["held_out_augmented=0.1"])
    with pytest.raises(DataError, match=r"held_out_augmented .* but no augmented data was given"):
        train_predictor(toy(), config, tmp_path / "p.pt")


@pytest.mark.parametrize("feed", [True, False])
def test_products_may_be_in_bfloat16(tmp_path, feed):
    changes = [f"network.feed={feed}".lower(), "network.embedding_dropout=0"]
    changes += ["optimisation.steps=40", "optimisation.learning_rate=0.01"]
    trained = []
    for precision in ("float32", "bfloat16"):
        config = load_config(Seq2SeqConfig, "seq2seq_small", [*TINY, *changes, f"optimisation.precision={precision}"])
        trained.append(train_predictor(toy(), config, tmp_path / f"{precision}.pt", quiet=True))
    (exact, outcome), (rounded, other) = trained
    for name, weight in weights(rounded).items():
        assert weight.dtype == weights(exact)[name].dtype, name
    assert any((weights(exact)[name] != weight).any() for name, weight in weights(rounded).items())
    assert other.train_loss == pytest.approx(outcome.train_loss, rel=0.1)


@pytest.mark.parametrize(("line", "step"), [(b'{"step": 3}\n', 3), (b'{"step": 3}', math.inf), (b'{"st\n', math.inf)])
def test_a_line_of_the_log_counts_when_it_is_whole(line, step):
    assert loop._step(line) == step
