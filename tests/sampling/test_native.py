"""The C++ runner gives what Python gives, and refuses what Python refuses."""

import gzip
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compgen.api import Predictor
from compgen.data.vocabulary import EOS_ID, SEP_ID
from compgen.errors import BundleError, UserError
from compgen.export import assemble
from compgen.export.bundle_writer import export
from compgen.export.verify import parity
from compgen.files import sha256
from compgen.recombine.compatible import compatible
from compgen.runtime.bundle import Bundle
from compgen.sampling import native
from tests.cli import shell
from tests.export.tiny import SEQUENCES, VOCABULARY, exported, make

LONG = pytest.mark.long
EXPORTED = Path(__file__).parents[2] / "exported"


def compgen(*words, **environment):
    return shell.compgen(*words, env=os.environ | {"COLUMNS": "200"} | environment)


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(("--draws", 600), marks=LONG),
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
        # All draws of a source vote, though only winners with the token are written.
        (
            "--draws",
            1500,
            "--vote",
            "--filter",
            "rare",
            "--rare-token",
            "I_TURN_LEFT",
            "--temperature",
            1,
            "--best",
            99,
        ),
        pytest.param(
            ("-n", 90, "--vote", "--filter", "novel,rare", "--ngram", 2, "--rarity", 0.02, "--temperature", 1),
            marks=LONG,
        ),
        ("--draws", 500, "--support", 0.02, "--best", 60),  # training examples say which pairs of tokens are new
        pytest.param(
            ("--draws", 900, "--filter", "rare", "--rare-token", "jump", "--rare-token", "I_TURN_LEFT"), marks=LONG
        ),
        pytest.param(("--draws", 400, "--filter", "novel,rare", "--prototypes", "rare"), marks=LONG),
        ("-n", 40, "--filter", "rare,unique", "--rare-token", "jump", "--prototypes", "rare", "--start", 5),
        ("--draws", 500, "--filter", "rare", "--ngram", 2, "--rarity", 0.02, "--seed", 2**64 - 1, "--best", 40),
    ],
)
def test_samples_and_records_are_those_of_python(tmp_path, words):
    for runtime in ("onnx", "native"):
        done = compgen(
            "sample", EXPORTED / "recomb2", "-o", tmp_path / f"{runtime}.jsonl", "--runtime", runtime, *words
        )
        assert done.returncode == 0, done.stderr
    ours, theirs = (
        [json.loads(line) for line in (tmp_path / f"{runtime}.jsonl").read_text().splitlines()]
        for runtime in ("native", "onnx")
    )
    assert ours
    probabilities = [sample.pop("log_prob") for sample in theirs]
    assert [sample.pop("log_prob") for sample in ours] == pytest.approx(probabilities, abs=2e-4)  # of 4 digits
    assert ours == theirs
    ours, theirs = (json.loads((tmp_path / f"{name}.jsonl.run.json").read_text()) for name in ("native", "onnx"))
    for differing in ("seconds", "quality", "bytes"):  # no quality in the runner; a probability's digits may be fewer
        ours.pop(differing, None), theirs.pop(differing)
    assert ours == theirs


@pytest.mark.usefixtures("built")
def test_sentences_are_those_of_python(tmp_path):
    sentences = [[*tokens[: tokens.index(SEP_ID)], SEP_ID] for tokens in SEQUENCES]
    pool = compatible(sentences, VOCABULARY, np.array([[0, 1, 2]], dtype=np.int32), "long-short", "max")
    replace(make(), pool=pool).save(tmp_path / "model.pt")
    export(tmp_path / "model.pt", tmp_path / "bundle", batches={7: 20}, quiet=True)
    kept = []
    for runtime in ("onnx", "native"):
        out = tmp_path / f"{runtime}.tsv"
        words = ("--draws", 400, "--filter", "novel", "--runtime", runtime, "-o", out)
        assert compgen("sample", tmp_path / "bundle", *words).returncode == 0
        kept.append(out.read_text())
    assert kept[0] == kept[1] and kept[0]
    assert all(line.partition("\t")[2] in ("", "\ttrain") for line in kept[0].splitlines())


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
    found, expected = (
        [json.loads(line) for line in (tmp_path / f"{name}.jsonl").read_text().splitlines()]
        for name in ("native", "onnx")
    )
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.pop("log_prob") == pytest.approx(theirs.pop("log_prob"), abs=2e-4)
    assert found == expected and found


@pytest.mark.usefixtures("built")
def test_the_graph_decodes_a_row_alone_as_among_others():
    """To the last bit, or a run in parts would not be that in one."""
    bundle = Bundle.load("recomb2")
    found = [native.raw(bundle, 0, 0, 60, (0.4, 0.0), {"--step": "graph", "--batch": batch}) for batch in (1, 7)]
    assert found[0] == found[1]


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("int8", [False, True])
def test_every_instruction_set_gives_the_same_samples(tmp_path, int8):
    bundle = EXPORTED / "recomb2"
    if int8:
        make(hidden=64).save(tmp_path / "model.pt")
        bundle = tmp_path / "bundle"
        export(tmp_path / "model.pt", bundle, batches={7: 20}, int8=True, quiet=True)

    def drawn(name):
        environment = native.environment() | {"COMPGEN_INSTRUCTIONS": name}
        command = [native.runner(), bundle, "--raw", "--step", "own", "--draws", "800"]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return done.returncode, done.stderr, lines, [line.pop("log_prob") for line in lines]

    code, said, *_ = drawn("abacus")
    assert code == 2 and said.startswith("error: COMPGEN_INSTRUCTIONS=abacus: expected one of ")
    names = said.split("one of ")[1].partition(", which")[0].split(", ")
    assert names[-1] == "portable"
    _, _, lines, scores = drawn("")  # the best
    assert len(lines) == 800
    for name in names:
        code, said, found, differing = drawn(name)
        assert (code, said, found) == (0, "", lines)
        assert differing == (scores if name == names[0] else pytest.approx(scores, abs=1e-3))


@pytest.mark.usefixtures("built")
def test_lines_for_tsv_and_for_standard_output(tmp_path):
    compgen("sample", "recomb2", "-n", 20, "-o", tmp_path / "native.tsv", "--runtime", "native")
    compgen("sample", "recomb2", "-n", 20, "-o", tmp_path / "onnx.tsv")
    assert (tmp_path / "native.tsv").read_text() == (tmp_path / "onnx.tsv").read_text()
    out = [compgen("sample", "recomb2", "-n", 20, "--runtime", runtime).stdout for runtime in ("native", "onnx")]
    first, second = ([json.loads(line)["target"] for line in text.splitlines()] for text in out)
    assert first == second and len(first) == 20


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("shift", [pytest.param(-150.0, marks=LONG), 150.0])
def test_gates_far_outside_the_range_of_exponentials_are_closed_or_open(shift):
    checkpoint = make(hidden=32)
    checkpoint.network.lstm.bias_ih_l0.data[::3] += shift
    rows = parity(checkpoint, {25: 60}, script=False, native=True, quiet=True)
    assert {row.runtime for row in rows} >= {"native", "native graph"}


@pytest.mark.usefixtures("built")
def test_weights_that_are_no_numbers_are_refused(tmp_path):
    checkpoint = make()
    bundle = assemble.assemble(checkpoint, tmp_path)
    weights = load_file(tmp_path / "step.safetensors")
    weights["combine_bias"][0] = float("nan")
    save_file(weights, tmp_path / "step.safetensors")
    assemble.seal(tmp_path, bundle.manifest)
    bundle = replace(bundle, identity=sha256(tmp_path / "manifest.json"))
    with pytest.raises(UserError, match="combine_bias has numbers that are not finite"):
        native.raw(bundle, 0, 0, 10, (1.0, 1.0), {})


@pytest.mark.usefixtures("built")
def test_a_signal_ends_a_predictor_that_waits_for_its_sources():
    command = [native.runner(), exported("predictor"), "--input", "-"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=native.environment(),
        # As a shell starts it in the foreground: what is started in the background ignores this signal, and so did we.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == -signal.SIGINT


@pytest.mark.usefixtures("built")
def test_a_wrong_weight_is_a_difference(monkeypatch):
    right = assemble.step_weights
    monkeypatch.setattr(
        assemble,
        "step_weights",
        lambda network: {**right(network), "combine_bias": -9 * right(network)["combine_bias"]},
    )
    with pytest.raises(BundleError, match="native"):
        parity(make(), {25: 60}, script=False, native=True, quiet=True)


@pytest.mark.usefixtures("built")
def test_a_predictor_answers_lines(tmp_path):
    bundle = exported("predictor")
    (tmp_path / "in.tsv").write_text("a b c\tignored\nb\ng g a b\n")
    command = [native.runner(), bundle, "--input", tmp_path / "in.tsv", "-o", tmp_path / "out.tsv"]
    done = subprocess.run(command, capture_output=True, text=True, env=native.environment())
    assert done.returncode == 0, done.stderr
    sources = [["a", "b", "c"], ["b"], ["g", "g", "a", "b"]]
    expected = Predictor.load(bundle).predict(sources)
    found = [[part.split() for part in line.split("\t")] for line in (tmp_path / "out.tsv").read_text().splitlines()]
    assert found == [list(pair) for pair in zip(sources, expected, strict=True)]


@pytest.mark.usefixtures("built")
def test_sources_may_be_packed_and_come_from_standard_input(tmp_path):
    lines = b"a b c\nb\n" * 3000
    packed = gzip.compress(lines[:12_000]) + gzip.compress(lines[12_000:])  # as `cat a.gz b.gz` gives

    def answers(content, name="-"):
        (tmp_path / "in.gz").write_bytes(content)
        command = [native.runner(), exported("predictor"), "--input", name, "-o", tmp_path / "out.tsv"]
        done = subprocess.run(command, input=content, capture_output=True, env=native.environment())
        return done.returncode, done.stderr.decode(), done.returncode == 0 and (tmp_path / "out.tsv").read_text()

    plain = answers(lines)
    assert plain[0] == 0 and len(plain[2].splitlines()) == 6000
    assert answers(packed) == plain == answers(packed, tmp_path / "in.gz")
    for content, message in (
        (packed[:-9], "the compressed file is cut short: found no end of its gzip data"),
        (packed[:40] + b"\xff" * 40 + packed[80:], "found damaged data, expected a gzip file"),
        (packed + b"more", "found damaged data, expected a gzip file"),
    ):
        code, said, _ = answers(content, tmp_path / "in.gz")
        assert code == 2 and f"{tmp_path}/in.gz: {message}" in said and said.count("\n") == 1


@pytest.mark.usefixtures("built")
def test_links_and_pipes_are_written_through(tmp_path):
    command = [native.runner(), exported("generator"), "--draws", "50", "-o"]

    def run(name):
        done = subprocess.run([*command, name], capture_output=True, text=True, cwd=tmp_path, env=native.environment())
        assert done.returncode == 0, done.stderr

    run("plain.tsv")
    made = (tmp_path / "plain.tsv").read_text()
    (tmp_path / "old.tsv").write_text("old")
    (tmp_path / "old.tsv").chmod(0o600)
    (tmp_path / "link.tsv").symlink_to("old.tsv")
    run("link.tsv")
    assert (tmp_path / "link.tsv").is_symlink() and (tmp_path / "old.tsv").read_text() == made
    assert (tmp_path / "old.tsv").stat().st_mode & 0o777 == 0o600
    (tmp_path / "far").mkdir()
    (tmp_path / "ahead.tsv").symlink_to("far/new.tsv")
    run("ahead.tsv")
    assert (tmp_path / "ahead.tsv").is_symlink() and (tmp_path / "far" / "new.tsv").read_text() == made
    os.mkfifo(tmp_path / "pipe.tsv")
    with subprocess.Popen(["cat", "pipe.tsv"], stdout=subprocess.PIPE, text=True, cwd=tmp_path) as reader:
        run("pipe.tsv")
        assert reader.communicate(timeout=60)[0] == made
    assert (tmp_path / "pipe.tsv").is_fifo()
    files = {"plain.tsv", "old.tsv", "link.tsv", "ahead.tsv", "far", "pipe.tsv"}
    records = {"plain.tsv.run.json", "link.tsv.run.json", "ahead.tsv.run.json"}
    assert {path.name for path in tmp_path.iterdir()} == files | records


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("kind", "words", "message"),
    [
        ("predictor", (), "--input"),
        ("predictor", ("--input", "in.txt", "--seed", "3"), "no use for --seed"),
        ("predictor", ("--input", "in.txt"), "line 2: token 'zebra'"),
        ("predictor", ("--input", "nowhere.txt"), "nowhere.txt: no such file"),
        ("generator", ("--input", "in.txt", "-n", "5"), "holds a generator, expected a predictor"),
        ("generator", ("--raw", "-n", "5"), "--raw"),
        ("generator", ("-n", "5", "--batch", "0"), "--batch"),
        ("generator", ("-n", str(2**62)), "-n"),
    ],
)
def test_options_that_do_not_fit_the_bundle_are_errors(tmp_path, kind, words, message):
    (tmp_path / "in.txt").write_text("a b\nzebra\n")
    command = [native.runner(), exported(kind), *words]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=native.environment())
    assert done.returncode == 2 and message in done.stderr, done.stderr


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("recomb2", "-n", 5, "--beam", 2), "--beam"),
        (("recomb2", "-n", 5, "--provider", "cuda"), "--provider"),
        (("recomb2", "-n", 5, "--engine", "ray"), "--engine"),
        (("recomb2", "-n", 5, "-o", "out.csv"), ".jsonl"),
        (("recomb2", "-n", 5, "--temperature", "1e-9"), "temperature"),
        (("recomb2", "-n", 5, "--temperature", "1e12"), "temperature"),
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


def test_a_runner_is_found_where_it_was_built_or_else_installed(tmp_path, monkeypatch):
    monkeypatch.delenv("COMPGEN_RUNNER", raising=False)
    places = [tmp_path / name / native.PROGRAM for name in ("built", "scripts", "path")]
    monkeypatch.setattr(native, "BUILT", places[0])
    monkeypatch.setattr(native.sysconfig, "get_path", lambda _: str(places[1].parent))
    monkeypatch.setenv("PATH", str(places[2].parent))
    with pytest.raises(UserError, match=r"built/compgen-sample, \S+/scripts/compgen-sample or on PATH: build it with"):
        native.runner()
    for place in reversed(places):
        place.parent.mkdir()
        place.touch()
        if place != places[2]:
            assert native.runner() == places[places.index(place) + 1]  # what cannot be run is none
        place.chmod(0o755)
        assert native.runner() == place


def test_a_missing_runner_is_told():
    done = compgen("sample", "recomb2", "-n", 1, "--runtime", "native", COMPGEN_RUNNER="/nowhere/runner")
    assert done.returncode == 2 and "make runner" in done.stderr


@pytest.mark.usefixtures("built")
def test_the_table_of_parity_has_a_row_a_batch_and_tells_what_differs(tmp_path):
    script = runpy.run_path(str(Path(__file__).parents[2] / "scripts" / "parity.py"))
    for kind, rows in (("latent", 2), ("transformer", 8)):
        (tmp_path / kind).mkdir()
        found = list(script["KINDS"][kind](tmp_path / kind, {1: 9, 64: 30}))
        assert [(row.batch, row.samples, row.differing) for row in found] == [(1, 9, 0), (64, 30, 0)] * (rows // 2)
    expected, other = [(5, 6, EOS_ID), (7, EOS_ID)], [(5, 6, EOS_ID), (8, EOS_ID)]
    for far, explained in ((1e-6, 1), (1e-4, 0)):
        (row,) = script["compared"]("x", expected, lambda *_: other, {1: 2}, lambda *_, far=far: far)
        assert (row.samples, row.tokens, row.differing, row.explained, row.largest) == (2, 5, 1, explained, far)
