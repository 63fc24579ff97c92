"""The C++ runner gives what Python gives, byte for byte, and refuses what Python refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compgen.errors import UserError
from compgen.export.bundle_writer import export
from compgen.runtime import native
from tests.export.tiny import make

EXPORTED = Path(__file__).parents[2] / "exported"


def compgen(*words, **environment):
    command = [sys.executable, "-m", "compgen", *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, env=os.environ | {"COLUMNS": "200"} | environment
    )


@pytest.fixture
def built():
    try:
        return native.runner()
    except UserError as error:
        pytest.skip(str(error))


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "words",
    [
        ("--draws", 600),
        (
            "-n",
            30,
            "--filter",
            "novel,unique,rare",
            "--novelty",
            "source",
            "--start",
            2**40,
            "--temperature",
            "0.7,0.3",
        ),
        ("--draws", 3000, "--filter", "novel", "--vote", "--margin", 1, "--support", 0.01, "--best", 9, "--batch", 7),
        ("--draws", 500, "--filter", "rare", "--ngram", 2, "--rarity", 0.02, "--seed", 2**64 - 1, "--best", 40),
    ],
)
def test_samples_and_records_are_those_of_python(tmp_path, words):
    for runtime in ("onnx", "native"):
        done = compgen(
            "sample", EXPORTED / "recomb2", "-o", tmp_path / f"{runtime}.jsonl", "--runtime", runtime, *words
        )
        assert done.returncode == 0, done.stderr
    ours, theirs = ((tmp_path / f"{runtime}.jsonl").read_text() for runtime in ("native", "onnx"))
    assert ours == theirs and ours
    ours, theirs = (json.loads((tmp_path / f"{name}.jsonl.run.json").read_text()) for name in ("native", "onnx"))
    for differing in ("seconds", "compgen", "model"):
        ours.pop(differing, None), theirs.pop(differing)
    assert ours == theirs


@pytest.mark.usefixtures("built")
def test_an_int8_bundle_gives_what_it_gives_in_python(tmp_path):
    make(hidden=64).save(tmp_path / "model.pt")
    export(tmp_path / "model.pt", tmp_path / "bundle", batches={7: 20}, int8=True, quiet=True)
    for runtime, batch in (("onnx", 64), ("native", 1)):
        out = tmp_path / f"{runtime}.jsonl"
        done = compgen(
            "sample", tmp_path / "bundle", "-o", out, "--runtime", runtime, "--draws", 2000, "--batch", batch
        )
        assert done.returncode == 0, done.stderr
    lines = (tmp_path / "native.jsonl").read_text()
    assert lines == (tmp_path / "onnx.jsonl").read_text() and lines


@pytest.mark.usefixtures("built")
def test_lines_for_tsv_and_for_standard_output(tmp_path):
    compgen("sample", "recomb2", "-n", 20, "-o", tmp_path / "native.tsv", "--runtime", "native")
    compgen("sample", "recomb2", "-n", 20, "-o", tmp_path / "onnx.tsv")
    assert (tmp_path / "native.tsv").read_text() == (tmp_path / "onnx.tsv").read_text()
    out = [compgen("sample", "recomb2", "-n", 20, "--runtime", runtime).stdout for runtime in ("native", "onnx")]
    assert out[0] == out[1] and out[0].count("\n") == 20


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("recomb2", "-n", 5, "--beam", 2), "--beam"),
        (("recomb2", "-n", 5, "--provider", "cuda"), "--provider"),
        (("recomb2", "-n", 5, "-o", "out.csv"), ".jsonl"),
        (("recomb2", "-n", 5, "--temperature", "1e-9"), "temperature"),
        (("nowhere", "-n", 5), "nowhere"),
        (("recomb2",), "-n"),
    ],
)
def test_what_cannot_be_done_is_one_message_and_exit_code_2(words, message):
    done = compgen("sample", *words, "--runtime", "native")
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr


@pytest.mark.usefixtures("built")
def test_an_impossible_filter_stops_with_counts():
    # No source of the pool is longer than these n-grams, so nothing is rare.
    done = compgen("sample", "recomb2", "-n", 5, "--filter", "rare", "--ngram", 1000, "--runtime", "native")
    assert done.returncode == 2 and "20,000 drawn, 0 kept" in done.stderr


@pytest.mark.usefixtures("built")
def test_a_full_disk_is_told():
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with Path("/dev/full").open("w") as full:
        words = [sys.executable, "-m", "compgen", "sample", "recomb2", "-n", "2000", "--runtime", "native"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, timeout=300)
    assert done.returncode == 2 and "standard output: cannot be written" in done.stderr


def test_a_missing_runner_is_told():
    done = compgen("sample", "recomb2", "-n", 1, "--runtime", "native", COMPGEN_RUNNER="/nowhere/runner")
    assert done.returncode == 2 and "make cpp" in done.stderr
