"""A long sampling run may end in any way at any time: what comes out in the end is what one run would have written."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from compgen.cli import sample as sample_module
from tests.cli.shell import compgen, refused, started

EXPORTED = Path(__file__).parents[2] / "exported"
WORDS = ("sample", "recomb2", "-n", 1500, "--seed", 3, "--start", 11, "--filter", "unique")
ENOUGH = 300  # samples, for some of those that follow to repeat one
ENDLESS = ("sample", "recomb2", "-n", 10**9, *WORDS[4:])


@contextmanager
def running(out, *words):
    """A run to `out`, slow enough to be met at work, once it has left something to go on from."""
    command = [sys.executable, "-m", "compgen", *map(str, words), "-o", str(out), "--batch", "1", "--workers", "1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None and saved(out) < ENOUGH:
            time.sleep(0.02)
        assert process.poll() is None, process.stderr.read()
        yield process
    finally:
        process.kill()
        process.communicate()


def saved(out):
    """How many samples the journal speaks of."""
    return json.loads(journal(out).read_text())["counts"]["kept"] if journal(out).exists() else 0


def partial(out):
    return out.with_name(out.name + ".partial")


def journal(out):
    return out.with_name(out.name + ".partial.json")


def names(folder):
    return {path.name for path in folder.iterdir()}


def record(out):
    found = json.loads(Path(f"{out}.run.json").read_text())
    del found["seconds"]
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The files of a run without interruption."""
    folder = tmp_path_factory.mktemp("whole")
    for name in ("s.jsonl", "s.tsv"):
        done = compgen(*WORDS, "-o", folder / name)
        assert done.returncode == 0, done.stderr
        assert names(folder) >= {name, f"{name}.run.json"} and not partial(folder / name).exists()
    return folder


@pytest.mark.parametrize(
    ("name", "end", "code"),
    [
        ("s.tsv", signal.SIGKILL, -9),
        pytest.param("s.jsonl", signal.SIGTERM, 143, marks=pytest.mark.long),
        pytest.param("s.jsonl", signal.SIGKILL, -9, marks=pytest.mark.long),
    ],
)
def test_a_run_that_is_ended_goes_on_to_the_same_file(whole, tmp_path, name, end, code):
    out = tmp_path / name
    with running(out, *WORDS) as process:
        process.send_signal(end)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == code
    assert names(tmp_path) >= {f"{name}.partial", f"{name}.partial.json"} and not out.exists()
    if end == signal.SIGTERM:
        assert "--resume goes on" in errors
        assert json.loads(journal(out).read_text())["bytes"] == partial(out).stat().st_size  # nothing drawn was lost
    with partial(out).open("a") as stream:
        stream.write('{"source":["turn')  # a line that was cut as it was written
    done = compgen(*WORDS, "-o", out, "--resume")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == (whole / name).read_bytes()
    assert record(out) == record(whole / name)
    assert names(tmp_path) == {name, f"{name}.run.json"}


def test_a_run_goes_on_with_its_own_options_only(whole, tmp_path):
    out = tmp_path / "s.jsonl"
    with running(out, *ENDLESS):
        refused(compgen(*ENDLESS, "-o", out), "another run is writing it")
        refused(compgen(*ENDLESS, "-o", out, "--resume"), "another run is writing it")
    left, samples = journal(out).read_text(), partial(out).read_text()
    other = ("sample", "recomb2", "-n", 9, "--seed", 3, "--start", 12, "--filter", "unique,novel")
    refused(
        compgen(*other, "-o", out, "--resume"),
        "-n was 1000000000, is 9",
        "start was 11, is 12",
        "filters was ['unique'], is ['unique', 'novel']",
    )
    wrong = ("sample", "recomb2", "-n", 9, "--filter", "rare", "--rare-token", "dax")
    refused(compgen(*wrong, "-o", out), "dax")
    assert (journal(out).read_text(), partial(out).read_text()) == (left, samples)  # a refusal changes nothing
    partial(out).write_text("x" + samples[1:])
    refused(compgen(*ENDLESS, "-o", out, "--resume"), "s.jsonl.partial: not what s.jsonl.partial.json says of it")
    partial(out).write_text(samples[:100])
    refused(compgen(*ENDLESS, "-o", out, "--resume"), "100 bytes", "cut short or altered")
    journal(out).write_text("{}")
    refused(compgen(*ENDLESS, "-o", out, "--resume"), "not a journal")
    # Without --resume nothing of it matters.
    assert compgen(*WORDS, "-o", out).returncode == 0
    assert out.read_bytes() == (whole / "s.jsonl").read_bytes()
    assert names(tmp_path) == {"s.jsonl", "s.jsonl.run.json"}


def test_resume_begins_what_is_not_there_and_leaves_what_is_finished(tmp_path):
    few = ("sample", "recomb2", "--draws", 50)
    for name, more in (("a.jsonl", ["--resume"]), ("b.jsonl", [])):
        assert compgen(*few, "-o", tmp_path / name, *more).returncode == 0
    made = (tmp_path / "a.jsonl").read_bytes()
    assert made == (tmp_path / "b.jsonl").read_bytes()
    again = compgen(*few, "-o", tmp_path / "a.jsonl", "--resume")
    assert again.returncode == 0 and "is finished" in again.stderr
    elsewhere = ("sample", EXPORTED / "recomb2", *few[2:], "-o", tmp_path / "a.jsonl", "--resume")
    assert "is finished" in compgen(*elsewhere).stderr  # the same model by another name
    refused(compgen("sample", "recomb2", "--draws", 9, "-o", tmp_path / "a.jsonl", "--resume"), "another --draws: ")
    record = tmp_path / "a.jsonl.run.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"identity": "of a model retrained since"}))
    refused(compgen(*few, "-o", tmp_path / "a.jsonl", "--resume"), "made with another model: ")
    assert (tmp_path / "a.jsonl").read_bytes() == made
    (tmp_path / "a.jsonl.run.json").write_text('{"model": "re')
    refused(compgen(*few, "-o", tmp_path / "a.jsonl", "--resume"), "a.jsonl.run.json: not a record of sampling")
    assert (tmp_path / "a.jsonl").read_bytes() == made


def test_standard_output_is_utf_8_whatever_the_locale():
    words = ("sample", "recomb2", "--draws", 20)
    plain = dict(os.environ, LC_ALL="C", PYTHONCOERCECLOCALE="0", PYTHONUTF8="0", PYTHONIOENCODING="utf-16")
    assert started(*words, env=plain).stdout == compgen(*words).stdout


def test_a_link_that_is_sampled_to_stays_one(tmp_path):
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    (tmp_path / "real.jsonl").write_text("old")
    (tmp_path / "real.jsonl").chmod(0o600)
    assert compgen("sample", "recomb2", "--draws", 20, "-o", tmp_path / "link.jsonl").returncode == 0
    assert (tmp_path / "link.jsonl").is_symlink() and len((tmp_path / "real.jsonl").read_text()) > 10
    assert (tmp_path / "real.jsonl").stat().st_mode & 0o777 == 0o600
    assert names(tmp_path) == {"link.jsonl", "real.jsonl", "link.jsonl.run.json"}


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("-o", "s.jsonl.gz"),
        ("-o", "s.jsonl", "--vote"),
        ("-o", "s.jsonl", "--best", "3"),
        ("-o", "s.jsonl", "--support", "0.1"),
        ("-o", "s.jsonl.gz", "--runtime", "native"),
    ],
)
def test_what_resume_cannot_do_is_told(words, tmp_path):
    refused(compgen("sample", EXPORTED / "recomb2", "--draws", 5, "--resume", *words, cwd=tmp_path), "--resume")
    assert not names(tmp_path)


def test_rare_tokens_are_named_or_told_from_counts(tmp_path):
    out = tmp_path / "s.jsonl"
    assert (
        compgen("sample", "recomb2", "--draws", 200, "--filter", "rare", "--rare-token", "jump", "-o", out).returncode
        == 0
    )
    sources = [json.loads(line)["source"] for line in out.read_text().splitlines()]
    assert sources and all("jump" in source for source in sources)
    refused(compgen("sample", "recomb2", "--draws", 5, "--rare-token", "jump"), "--filter rare")
    refused(
        compgen("sample", "recomb2", "--draws", 5, "--filter", "rare", "--rare-token", "leap"), "unknown token 'leap'"
    )
    both = ("--filter", "rare", "--rare-token", "jump", "--rarity", 0.1)
    refused(compgen("sample", "recomb2", "--draws", 5, *both), "leave out --rarity")


@pytest.mark.parametrize("runtime", ["onnx", "native"])
@pytest.mark.parametrize(
    ("choice", "said"),
    [
        (("--filter", "rare", "--ngram", 1000), "kept, and nothing is written: 5 drawn, 0 kept"),
        (("--filter", "rare", "--ngram", 1000, "--vote"), "kept, and nothing is written: 5 drawn, 0 kept"),
        (("--vote", "--margin", 99), "chosen, and nothing is written: 5 drawn, 5 kept"),
    ],
)
def test_where_nothing_is_kept_or_chosen_what_was_there_stays(tmp_path, runtime, choice, said, request):
    if runtime == "native":
        request.getfixturevalue("built")
    out = tmp_path / "s.jsonl"
    out.write_text("before\n")
    words = ("--draws", 5, "--runtime", runtime, "-o", out)
    refused(compgen("sample", "recomb2", *words, *choice), f"no sample was {said}")
    assert [*tmp_path.iterdir()] == [out] and out.read_text() == "before\n"


@pytest.mark.parametrize("runtime", ["onnx", "native"])
def test_rare_prototypes_waste_fewer_draws(tmp_path, runtime, request):
    if runtime == "native":
        request.getfixturevalue("built")
    words = ("sample", "recomb2", "-n", 10, "--filter", "novel,rare", "--runtime", runtime)
    told = []
    for which in ("all", "rare"):
        out = tmp_path / f"{which}.jsonl"
        done = compgen(*words, "--prototypes", which, "-o", out)
        assert done.returncode == 0, done.stderr
        told.append("--prototypes rare draws only where a prototype is rare" in done.stderr)
        counts = json.loads((tmp_path / f"{which}.jsonl.run.json").read_text())["counts"]
        assert counts["kept"] == 10 and (counts["drawn"] > 200) == (which == "all")
        assert all("jump" in json.loads(line)["source"] for line in out.read_text().splitlines())
    assert told == [True, False]
    refused(compgen(*words[:4], "--prototypes", "rare", *words[6:]), "--prototypes is for the filter rare")


@pytest.mark.parametrize("runtime", ["onnx", "native"])
def test_where_no_token_is_rare_nothing_is_drawn(tmp_path, runtime, request):
    if runtime == "native":
        request.getfixturevalue("built")
    words = ("sample", "recomb2", "-n", 5, "--filter", "rare", "--rarity", 1e-9, "--runtime", runtime)
    for more in ((), ("--prototypes", "rare")):
        done = compgen(*words, *more, "-o", tmp_path / "s.jsonl")
        message = "no token is rare: each is in more than 1e-09 of the training examples: raise --rarity, or say by "
        refused(done, message + "--rare-token what is rare\n")
        assert "drawn" not in done.stderr and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("runtime", ["onnx", "native"])
def test_fewer_samples_than_asked_for_are_a_warning_also_where_draws_are_limited(tmp_path, runtime, request):
    if runtime == "native":
        request.getfixturevalue("built")
    words = ("sample", "recomb2", "-n", 9, "--draws", 5, "--runtime", runtime)
    why = "all 5 draws of --draws are made"
    for out in ("-", tmp_path / "s.jsonl", tmp_path / "s.tsv.gz"):
        done = compgen(*words, "-o", out)
        assert done.returncode == 0, done.stderr
        assert f"warning: {why}; 5 samples are in {out}, fewer than asked for" in " ".join(done.stderr.split())
    if runtime == "onnx":
        refused(compgen(*words, "-o", tmp_path / "strict.jsonl", "--strict"), why, "is not written")


def test_what_the_native_runtime_does_not_measure_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPGEN_RUNNER", "/bin/true")
    says = "the native runtime measures no quality: `cgen data quality s.jsonl --train DATA` does"
    words = ("sample", "recomb2", "-n", 5, "--runtime", "native")
    assert says in " ".join(compgen(*words, "-o", "s.jsonl", cwd=tmp_path).stderr.split())
    assert "quality" not in compgen(*words, cwd=tmp_path).stderr


def test_a_generator_answers_by_itself():
    done = compgen("evaluate", "recomb2", "scan/jump", "--direct", "--limit", 40, "--json")
    assert done.returncode == 0, done.stderr
    scores = json.loads(done.stdout)
    assert scores["direct"] and scores["examples"] == 40 and scores["exact_match"] > 0.2  # by guessing: none
    refused(compgen("evaluate", "recomb2", "scan/jump", "--direct", "--beam", 3), "leave out --beam")
    refused(compgen("evaluate", "recomb2", "scan/jump", "--limit", 3), "expected a predictor")
    both = ("--otherwise", "none.pt", "--limit", 3)
    refused(compgen("evaluate", "recomb2", "scan/jump", "--direct", *both), "none.pt: no such file")


def test_no_answer_is_never_a_right_one(tmp_path):
    (tmp_path / "s.txt").write_text("frob\njump\n")
    refused(compgen("evaluate", "recomb2", tmp_path / "s.txt", "--direct"), "found an example without a target")


def test_what_a_generator_cannot_read_it_does_not_answer(tmp_path):
    data = tmp_path / "of_a_name_that_together_with_what_was_asked_is_longer_than_a_line.tsv"
    data.write_text("jump twice\tI_JUMP I_JUMP\nhop twice\tI_HOP I_HOP\n", encoding="utf-8")
    done = compgen("evaluate", "recomb2", data, "--direct")
    assert done.returncode == 0 and "recomb2: 1 answered" in done.stderr, done.stderr
    assert f"data:{data}|split:train|direct:True|exact:whole-sequence|f1:micro,multiset" in done.stdout.splitlines()


def test_strict_refuses_what_contradicts_itself_and_resume_without_it_keeps_it(tmp_path):
    out = tmp_path / "s.jsonl"
    words = ("sample", "recomb2", "-n", 60, "--temperature", 1.5, "-o", out)
    done = refused(compgen(*words, "--strict"), "another target in training", f"{out} is not written")
    assert "quality: " in done.stderr and names(tmp_path) == {"s.jsonl.partial", "s.jsonl.partial.json"}
    assert compgen(*words, "--resume").returncode == 0
    assert record(out)["quality"]["made"] == 60 and names(tmp_path) == {"s.jsonl", "s.jsonl.run.json"}
    packed = tmp_path / "s.tsv.gz"
    refused(compgen(*words[:-1], packed, "--strict"), "another target in training", f"{packed} is not written")
    assert not packed.exists()
    refused(compgen(*words[:-1], "-", "--strict"), "--strict is for samples in a file")


def test_quality_of_many_samples_is_that_of_some_from_everywhere(monkeypatch):
    monkeypatch.setattr(sample_module, "MEASURED", 10)
    assert sample_module._thinned(map(str, range(20))) == ([str(at) for at in range(20)], 1)
    for count in (21, 79, 1000):
        lines, stride = sample_module._thinned(map(str, range(count)))
        assert lines == [str(at) for at in range(0, count, stride)] and 10 <= len(lines) <= 20
    assert sample_module._thinned([]) == ([], 1)


def test_votes_on_sources_that_were_drawn_once_are_a_warning(tmp_path):
    """Of few draws most sources come once; of many, training's commands come again and again."""
    few = compgen("sample", "recomb2", "-n", 20, "--vote", "-o", tmp_path / "few.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "few.jsonl").read_text().splitlines()]
    once = sum(row["votes"][1] == 1 for row in rows)
    assert once > len(rows) / 2 and few.returncode == 0
    assert f"{once} of {len(rows)} sources were drawn once" in few.stderr and "(--draws in place of -n)" in few.stderr
    clear = compgen("sample", "recomb2", "--draws", 300, "--vote", "--margin", 2, "-o", tmp_path / "clear.jsonl")
    assert clear.returncode == 0 and "drawn once" not in clear.stderr and (tmp_path / "clear.jsonl").read_text()
