"""Training: a resumed run equals an uninterrupted one; checkpoints survive a round trip and refuse what is not one."""

import json
import os
import pickle
import random
import re
import runpy
import signal
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch

import compgen
from compgen.configuration import load_config, shipped
from compgen.csl.options import CslOptions
from compgen.data.examples import Dataset
from compgen.errors import CheckpointError, ConfigError, DataError, Interrupted, Remark, UserError
from compgen.recombine import training as generator
from compgen.recombine.config import RecombineConfig
from compgen.recombine.training import train_generator
from compgen.trained.checkpoint import Checkpoint, digest, write_sealed
from compgen.training import loop
from compgen.training import predictors as predictor
from compgen.training.config import PretrainedConfig, Seq2SeqConfig, TransformerConfig
from compgen.training.predictors import PairExamples, train_predictor

TINY = [
    "network.hidden=8",
    "network.encoder_hidden=6",
    "network.embedding=6",
    "network.output=6",
    "network.attention=5",
]
SHORT = ["optimisation.steps=12", "optimisation.batch=4"]


def toy() -> Dataset:
    verbs, times = ["walk", "run", "look", "hop"], {"": 1, "twice": 2, "thrice": 3}
    pairs = [([v, *([t] if t else [])], [v.upper()] * n) for v in verbs for t, n in times.items()]
    pairs += [(["please", *source], target) for source, target in pairs]
    return Dataset.from_pairs(pairs)


def generator_config(*more):
    return load_config(
        RecombineConfig, "recombine_small", [*TINY, *SHORT, "neighborhood.cover=false", "neighborhood.delta=0.1", *more]
    )


def weights(checkpoint):
    return {name: tensor.numpy() for name, tensor in checkpoint.network.state_dict().items()}


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
    ("data", "change"),
    [
        ("toy", "optimisation.learning_rate=0.5"),
        ("toy", "network.write_dropout=0.9"),
        ("toy", "network.hidden=9"),
        ("other", "optimisation.batch=4"),  # as it was
    ],
)
def test_resuming_another_training_is_refused(tmp_path, monkeypatch, data, change):
    monkeypatch.setattr(Checkpoint, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train_generator(toy(), generator_config(), tmp_path / "a.pt", quiet=True)
    dataset = toy()
    if data == "other":  # of the same sizes
        dataset = Dataset.from_pairs(([*source[:-1], "skip"], target) for source, target in toy().pairs())
    with pytest.raises(CheckpointError, match="another configuration, data or seed"):
        train_generator(dataset, generator_config(change), tmp_path / "a.pt", resume=True, quiet=True)


def test_a_damaged_state_is_not_gone_on_from(tmp_path, monkeypatch):
    monkeypatch.setattr(Checkpoint, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        train_generator(toy(), generator_config(), tmp_path / "a.pt", quiet=True)
    state = torch.load(tmp_path / "a.pt.partial", weights_only=True)
    torch.save(state | {"step": 3}, tmp_path / "a.pt.partial")
    with pytest.raises(CheckpointError, match=r"a\.pt\.partial: damaged"):
        train_generator(toy(), generator_config(), tmp_path / "a.pt", resume=True, quiet=True)


def test_there_must_be_something_to_resume(tmp_path):
    with pytest.raises(CheckpointError, match="no such file: no training was interrupted; leave out --resume"):
        train_generator(toy(), generator_config(), tmp_path / "b.pt", resume=True, quiet=True)


def test_a_training_that_goes_astray_is_no_success(tmp_path):
    config = generator_config("optimisation.learning_rate=1e30", "optimisation.schedule=constant")
    with pytest.raises(UserError, match=r"the loss is .* by update 12; try a lower optimisation\.learning_rate"):
        train_generator(toy(), config, tmp_path / "a.pt", quiet=True)
    assert not (tmp_path / "a.pt").exists()
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


def test_a_checkpoint_survives_a_round_trip(tmp_path):
    made, _ = train_generator(toy(), generator_config(), tmp_path / "g.pt", quiet=True)
    read = Checkpoint.load(tmp_path / "g.pt")
    assert (read.kind, read.vocabulary, read.config, read.max_length) == (
        "generator", made.vocabulary, made.config, made.max_length,
    )  # fmt: skip
    for name, expected in weights(made).items():
        np.testing.assert_array_equal(weights(read)[name], expected)
    for name, expected in vars(made.pool).items():
        np.testing.assert_array_equal(getattr(read.pool, name), expected)
    first, second = (
        [(draw.tokens, draw.prototypes) for draw in compgen.Generator.load(tmp_path / "g.pt").draw(stop=20)]
        for _ in range(2)
    )
    assert first == second


def broken(path, how):
    content = path.read_bytes()
    if how == "cut":
        path.write_bytes(content[: len(content) // 2])
    elif how == "text":
        path.write_text("not a checkpoint")
    elif how == "tsv":
        path.write_text("a\tb\nc\td\n")
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "foreign":
        torch.save({"weights": {}}, path)
    elif how == "version":
        torch.save(torch.load(path, weights_only=True) | {"version": 99}, path)
    elif how == "digest":
        saved = torch.load(path, weights_only=True)
        saved["weights"]["embedding.weight"][0, 0] += 1
        torch.save(saved, path)
    elif how == "no digest":
        saved = torch.load(path, weights_only=True)
        del saved["digest"]
        torch.save(saved, path)
    elif how == "misfit":
        saved = torch.load(path, weights_only=True)
        saved["weights"].pop("embedding.weight")
        sealed(saved, path)
    elif how == "vast":
        saved = torch.load(path, weights_only=True)
        sealed(saved | {"meta": saved["meta"].replace('"hidden": 8', '"hidden": 65536')}, path)
    elif how == "impossible":
        saved = torch.load(path, weights_only=True)
        sealed(saved | {"meta": saved["meta"].replace('"hidden": 8', '"hidden": 1000000000')}, path)
    elif how == "long":
        saved = torch.load(path, weights_only=True)
        sealed(saved | {"meta": re.sub('"max_length": [0-9]+', '"max_length": 1000000000', saved["meta"])}, path)
    elif how == "spread":  # one number stands for 2^40
        saved = torch.load(path, weights_only=True)
        saved["weights"]["embedding.weight"] = torch.zeros(1).expand(2**40)
        torch.save(saved, path)
    elif how == "compressed":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
            packed.writestr("archive/data.pkl", bytes(2**20))
    elif how == "pickle":
        torch.save({"format": "compgen-checkpoint", "version": 1, "evil": Dataset}, path)
    elif how == "plain pickle":
        path.write_bytes(pickle.dumps(Dataset))
    elif how == "missing":
        path.unlink()


def sealed(content, path):
    """A file as somebody may write it who knows how, with the right digest."""
    write_sealed({key: value for key, value in content.items() if key not in ("version", "digest")}, path)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    path = tmp_path_factory.mktemp("small") / "p.pt"
    config = load_config(Seq2SeqConfig, "seq2seq_small", [*TINY[:-1], "optimisation.steps=1"])
    train_predictor(toy(), config, path, quiet=True)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("cut", "cut short"),
        ("text", "not a checkpoint"),
        ("tsv", "not a checkpoint"),
        ("empty", "not a checkpoint"),
        ("foreign", "not a compgen checkpoint"),
        ("version", "version 99, this compgen reads 1 to 2"),
        ("digest", "damaged: its content does not agree with its digest"),
        ("no digest", "damaged"),
        ("misfit", "does not fit together: weights 'embedding.weight' of sizes none"),
        ("vast", r"does not fit together: weights .* by its configuration \[128, 65542\]"),
        ("impossible", r"does not fit together: .*hidden"),
        ("long", "max_length 1000000000, expected 1 to"),
        ("spread", "not a checkpoint"),
        ("compressed", "not a checkpoint"),
        ("pickle", "not a checkpoint"),
        ("plain pickle", "not a checkpoint"),
        ("missing", "no such file"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_broken_checkpoints_are_refused_in_one_line(tmp_path, small, how, says):
    path = tmp_path / "p.pt"
    path.write_bytes(small)
    broken(path, how)
    with pytest.raises(CheckpointError, match=rf"p\.pt: .*{says}") as refused:
        Checkpoint.load(path)
    assert "\n" not in str(refused.value)


def test_damaged_checkpoints_are_refused_or_harmless(tmp_path):
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "damage.py"))
    path, original = tmp_path / "p.pt", script["network"]()
    original.save(path)
    content, found = path.read_bytes(), Counter()
    for number in range(60):
        way = script["WAYS"][number % len(script["WAYS"])]
        path.write_bytes(script["damaged"](content, way, random.Random(number)))
        found[script["outcome"](path, original)] += 1
    assert found.keys() == {"refused", "identical"} and found["refused"] >= 40, found


def test_a_checkpoint_of_before_there_was_a_digest_is_read_with_a_remark(tmp_path, small):
    path = tmp_path / "p.pt"
    path.write_bytes(small)
    expected = weights(Checkpoint.load(path))
    saved = torch.load(path, weights_only=True)
    del saved["digest"]
    torch.save(saved | {"version": 1}, path)
    with pytest.warns(Remark, match=r"p\.pt: it has no digest"):
        read = Checkpoint.load(path)
    np.testing.assert_equal(weights(read), expected)


def test_a_digest_is_of_names_types_sizes_and_values():
    numbers = torch.arange(6, dtype=torch.int32)
    trees = [
        {"a": numbers},
        {"b": numbers},
        {"a": numbers.reshape(2, 3)},
        {"a": numbers.reshape(2, 3).T},
        {"a": numbers.view(torch.float32)},
        {"a": [numbers]},
        {"a": numbers, "b": None},
        {"a": 1},
        {"a": 1.0},
        {"a": "1"},
        {"a": True},
        {},
    ]
    assert len({digest(tree) for tree in trees}) == len(trees)
    assert digest({"a": numbers.reshape(2, 3).T.contiguous()}) == digest(trees[3])


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
    with pytest.raises(UserError, match=r"p\.pt\.log\.jsonl: cannot be written"):
        train_generator(toy(), generator_config(), tmp_path / "file" / "p.pt", quiet=True)


def test_too_little_data_is_refused(tmp_path):
    with pytest.raises(DataError, match="too few for 2 prototypes"):
        train_generator(Dataset.from_pairs([(["a"], ["b"])]), generator_config(), tmp_path / "g.pt")
    config = load_config(Seq2SeqConfig, "seq2seq_small", ["p_aug=0.1"])
    with pytest.raises(DataError, match=r"p_aug says .* but no augmented data was given"):
        train_predictor(toy(), config, tmp_path / "p.pt")
    config = load_config(Seq2SeqConfig, "seq2seq_small", ["held_out_augmented=0.1"])
    with pytest.raises(DataError, match=r"held_out_augmented .* but no augmented data was given"):
        train_predictor(toy(), config, tmp_path / "p.pt")


def test_every_shipped_configuration_loads():
    assert {"recombine_scan", "seq2seq_scan", "rnnlm_scan"} <= set(shipped())
    for name in shipped():
        kinds = {"seq2seq": Seq2SeqConfig, "transformer": TransformerConfig, "t5": PretrainedConfig, "csl": CslOptions}
        load_config(kinds.get(name.split("_")[0], RecombineConfig), name)


@pytest.mark.parametrize(
    ("name", "overrides", "message"),
    [
        ("nowhere", [], "no configuration nowhere"),
        ("seq2seq_small", ["optimisation.bach=3"], r"optimisation\.bach: no such .* did you mean optimisation\.batch"),
        ("seq2seq_small", ["steps=10"], r"steps: no such setting; did you mean optimisation\.steps\?"),
        ("seq2seq_small", ["optimization.steps=10"], r"optimization: no such setting; did you mean optimisation\?"),
        ("seq2seq_small", ["zzz=10"], r"zzz: no such setting$"),
        ("seq2seq_small", ["optimisation.batch=zero"], "zero"),
        ("seq2seq_small", ["batch"], "expected KEY=VALUE"),
        ("seq2seq_small", ["held_out.x=1"], "held_out is a value"),
        ("seq2seq_small", ["network.memories=3"], r"network\.memories is 1 here, found 3"),
    ],
)
def test_wrong_configurations_are_named(name, overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config(Seq2SeqConfig, name, overrides)


def test_a_number_of_prototypes_that_is_no_number_is_refused():
    with pytest.raises(ConfigError, match="prototypes: found nan, expected a finite number"):
        generator_config("prototypes=nan")


def test_a_configuration_file_may_have_a_base(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('base = "seq2seq_small"\n[optimisation]\nbatch = 7\n')
    config = load_config(Seq2SeqConfig, str(path))
    assert config.optimisation.batch == 7
    assert config.network == load_config(Seq2SeqConfig, "seq2seq_small").network
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="not TOML"):
        load_config(Seq2SeqConfig, str(path))
    path.write_text(f'base = "{path}"\n')
    with pytest.raises(ConfigError, match="leads back"):
        load_config(Seq2SeqConfig, str(path))
