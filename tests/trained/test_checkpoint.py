"""Checkpoints: written, read again, damaged."""

import errno
import io
import json
import os
import pickle
import random
import re
import resource
import runpy
import subprocess
import sys
import zipfile
from collections import Counter, OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch

import compgen
from compgen.api import export_bundle
from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.data.vocabulary import Vocabulary
from compgen.errors import BundleError, CheckpointError, Remark, UserError
from compgen.recombine.training import train_generator
from compgen.trained.architectures import architecture
from compgen.trained.checkpoint import Checkpoint, digest, write_sealed
from compgen.training.config import Seq2SeqConfig, TransformerConfig
from compgen.training.predictors import train_predictor
from tests.export.tiny import make
from tests.training.tiny import TINY, generator_config, toy, weights


@pytest.mark.skipif(torch.__version__.startswith("2.9"), reason="torch 2.9 imports its compiler by itself")
@pytest.mark.parametrize(
    "kind",
    [
        "recurrent",
        *(pytest.param(kind, marks=pytest.mark.long) for kind in ("transformer_small", "transformer_relative")),
    ],
)
def test_opening_a_checkpoint_does_not_import_the_compiler_of_torch(tmp_path, kind):
    vocabulary = Vocabulary.of([["a", "b"]])
    if kind == "recurrent":
        config = load_config(Seq2SeqConfig, "seq2seq_small", TINY).network
    else:
        config = load_config(TransformerConfig, kind).network
    network = architecture(kind.partition("_")[0]).build(config, len(vocabulary))
    settings = {"network": config.model_dump(mode="json")}
    Checkpoint("predictor", network, vocabulary, settings, 9, None, {}, {}).save(tmp_path / "p.pt")
    program = (
        "import sys; import compgen; compgen.Predictor.load(sys.argv[1]); "
        "assert not {'torch._dynamo', 'torch.fx.experimental.symbolic_shapes'} & {*sys.modules}"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "p.pt")], check=True)


def test_a_checkpoint_survives_a_round_trip(tmp_path):
    tmp_path = tmp_path / os.fsdecode(b"nu\xff")  # torch takes no such name
    made, _ = train_generator(toy(), generator_config(), tmp_path / "g.pt", quiet=True)
    read = Checkpoint.load(tmp_path / "g.pt")
    assert (read.kind, read.vocabulary, read.config, read.max_length) == (
        "generator", made.vocabulary, made.config, made.max_length,
    )  # fmt: skip
    for name, expected in weights(made).items():
        np.testing.assert_array_equal(weights(read)[name], expected)
    for name, expected in made.pool.arrays.items():
        np.testing.assert_array_equal(getattr(read.pool, name), expected)
    assert read.pool.targets and "targets" not in read.pool.arrays
    read.save(tmp_path / "again.pt")  # what was asked of the pool, and is kept in it, is no array
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
    elif how in ("kind", "sampling", "trained_on"):
        saved = torch.load(path, weights_only=True)
        meta = json.loads(saved["meta"])
        sealed(saved | {"meta": json.dumps(meta | {how: [meta[how]]})}, path)
    elif how == "words":
        saved = torch.load(path, weights_only=True)
        meta = json.loads(saved["meta"])
        sealed(saved | {"meta": json.dumps(meta | {"trained_on": {"words": ["x"]}})}, path)
    elif how == "shared":  # the numbers of the largest tensor are those of all
        saved = torch.load(path, weights_only=True)
        numbers = max((tensor.flatten() for tensor in saved["weights"].values()), key=len)
        for name, tensor in saved["weights"].items():
            saved["weights"][name] = numbers[: tensor.numel()].reshape(tensor.shape)
        sealed(saved, path)
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
        ("kind", r"does not fit together: kind \['predictor'\], expected a text"),
        ("sampling", r"does not fit together: sampling \[{}\], expected a table"),
        ("trained_on", r"does not fit together: trained_on \[{'data': .*, expected a table"),
        ("words", r"does not fit together: trained_on: words \['x'\], expected a text"),
        ("shared", r"does not fit together: weights of [0-9,]+ bytes are stored in [0-9,]+"),
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


@pytest.mark.parametrize(
    ("part", "value", "says"),
    [
        ("pool", {"starts": torch.full((1, 2), 99)}, "groups outside the 6 members"),
        ("pool", {"counts": torch.zeros((1, 2), dtype=torch.int64)}, "groups outside the 6 members"),
        ("pool", {"tokens": torch.full((6, 7), 2, dtype=torch.float32)}, "tokens is float32 of rank 2, expected int32"),
        ("sampling", {"temperature": [1e9, 0.0]}, "sampling.temperature 1000000000.0: expected"),
        ("sampling", {"temperature": None}, "sampling.temperature None, expected two numbers"),
    ],
)
def test_a_generator_that_cannot_be_sampled_is_refused(tmp_path, part, value, says):
    checkpoint = make()
    checkpoint.sampling |= value if part == "sampling" else {}
    checkpoint.save(tmp_path / "g.pt")
    content = torch.load(tmp_path / "g.pt", weights_only=True)
    sealed(content | {"pool": content["pool"] | (value if part == "pool" else {})}, tmp_path / "g.pt")
    with pytest.raises(CheckpointError, match=rf"g\.pt: .*{says}"):
        Checkpoint.load(tmp_path / "g.pt")


@pytest.mark.parametrize(
    ("kind", "changes", "pool", "says"),
    [
        ("predictor", {}, True, "a predictor with prototypes"),
        ("generator", {}, False, "a generator without prototypes"),
        ("predictor", {"memories": 2}, False, "a predictor of 2 memories, expected 1"),
    ],
)
def test_what_is_of_another_kind_than_it_says_is_refused(tmp_path, kind, changes, pool, says):
    checkpoint = make("generator" if pool else "predictor", **changes)
    checkpoint.kind = kind
    checkpoint.save(tmp_path / "m.pt")
    with pytest.raises(CheckpointError, match=rf"m\.pt: .*{says}"):
        Checkpoint.load(tmp_path / "m.pt")


def test_tensors_whose_numbers_lie_in_those_of_others_take_no_memory(tmp_path):
    """Each of 200 records of 64 bytes is said to go on for four megabytes."""

    class Numbers:
        def __init__(self, key):
            self.key = key

    class Wide:
        def __init__(self, key):
            self.key = key

        def __reduce__(self):
            size, stride = 2**20, 1  # the tuples of constants would be one for all tensors, which torch never writes
            return torch._utils._rebuild_tensor_v2, (Numbers(self.key), 0, (size,), (stride,), False, OrderedDict())

    class Pickler(pickle.Pickler):
        def persistent_id(self, one):
            return ("storage", torch.FloatStorage, one.key, "cpu", 2**20) if isinstance(one, Numbers) else None

    packed, path = io.BytesIO(), tmp_path / "p.pt"
    Pickler(packed, 2).dump({"weights": {key: Wide(key) for key in map(str, range(200))}})
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", packed.getvalue())
        archive.writestr("archive/byteorder", "little")
        for key in range(200):
            archive.writestr(f"archive/data/{key}", bytes(64))
        archive.writestr("archive/more", bytes(2**22))
        archive.writestr("archive/version", "3\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match="not a checkpoint") as refused:
        Checkpoint.load(path)
    assert str(refused.value.__cause__) == "overlapping"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**17  # KiB


@pytest.mark.parametrize(
    ("pickled", "says"),
    [
        # Of 26 tuples each holds the one before it twice; the last is a key, or no function, as a message would say.
        (b"}" + b")q\x00" + b"".join(b"h%ch%c\x86q%c" % (n, n, n + 1) for n in range(26)) + b"K\x01s.", "values again"),
        (b")q\x00" + b"".join(b"h%ch%c\x86q%c" % (n, n, n + 1) for n in range(26)) + b")R.", "values again"),
        # The text's place is the list's by then.
        (b"X\x01\x00\x00\x00aq\x000]q\x00" + b"h\x000" * 13 + b"h\x00.", "values again"),
        (b"cbuiltins\nbytearray\nq\x00J\x00\x00\x00\x20\x85R.", "names builtins bytearray"),  # half a gigabyte
    ],
    ids=["hashed", "printed", "place", "bytearray"],
)
def test_a_pickle_that_keeps_the_reader_busy_or_takes_memory_is_not_read(tmp_path, pickled, says):
    with zipfile.ZipFile(tmp_path / "p.pt", "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02" + pickled)
        archive.writestr("archive/byteorder", "little")
        archive.writestr("archive/version", "3\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError, match="not a checkpoint") as refused:
        Checkpoint.load(tmp_path / "p.pt")
    assert says in str(refused.value.__cause__)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 2**17  # KiB


def test_a_file_that_may_not_be_read_is_not_called_damaged(tmp_path, small, monkeypatch):
    (tmp_path / "p.pt").write_bytes(small)

    def refused(path, *_arguments):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(zipfile, "ZipFile", refused)
    with pytest.raises(CheckpointError, match=r"p\.pt: cannot be read: Permission denied$"):
        Checkpoint.load(tmp_path / "p.pt")


def test_want_of_memory_is_not_the_file_s_fault(tmp_path, small, monkeypatch):
    (tmp_path / "p.pt").write_bytes(small)

    def full(*_arguments, **_options):
        raise RuntimeError("unable to mmap 3602581 bytes from file <p.pt>: Cannot allocate memory (12)")

    monkeypatch.setattr(torch, "load", full)
    with pytest.raises(RuntimeError, match="Cannot allocate memory"):
        Checkpoint.load(tmp_path / "p.pt")


def test_a_file_that_speaks_of_memory_is_damaged_all_the_same(tmp_path, small, monkeypatch):
    (tmp_path / "p.pt").write_bytes(small)

    def strange(*_arguments, **_options):
        raise pickle.UnpicklingError("Unsupported global: GLOBAL os.Cannot allocate memory")

    monkeypatch.setattr(torch, "load", strange)
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        Checkpoint.load(tmp_path / "p.pt")


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


def test_a_checkpoint_that_cannot_be_written_is_said_in_a_line(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(UserError, match=r"a\.pt: cannot be written: File too large"):
            write_sealed({"weights": torch.zeros(10_000)}, tmp_path / "a.pt")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())


def test_what_an_interrupted_training_left_is_no_model(tmp_path):
    kept = tmp_path / "p.pt.partial"
    kept.write_bytes(b"PK")
    says = r"p\.pt\.partial: an interrupted training, .* --resume goes on with it, and writes .*p\.pt"
    load, draws = compgen.Predictor.load, compgen.Generator.load
    for open_it in (Checkpoint.load, load, draws, lambda path: export_bundle(path, tmp_path / "b")):
        with pytest.raises(CheckpointError, match=says + "$"):
            open_it(kept)
    (tmp_path / "p.pt").touch()
    with pytest.raises(CheckpointError, match=says + "; .* is of another one, which was finished$"):
        load(kept)
    samples = tmp_path / "samples.jsonl.partial"
    samples.touch()
    with pytest.raises(BundleError, match="a file, expected a model"):
        draws(samples)
