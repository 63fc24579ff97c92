"""The C++ runner's files appear whole, are written by one run at a time, and what it does not finish harms nothing."""

import array
import fcntl
import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from compgen.errors import UserError
from compgen.sampling import native
from tests.export.tiny import exported
from tests.sampling.grammars import exported_grammar

RECOMB2 = Path(__file__).parents[2] / "exported" / "recomb2"


@pytest.fixture
def runner():
    try:
        return native.runner()
    except UserError as error:
        pytest.skip(str(error))


def start(runner, out, *words, **options):
    """A run that draws until it is stopped."""
    many = "--draws" if "--raw" in words else "-n"
    command = [runner, exported(), many, str(2**60), "--workers", "1", "-o", out, *words]
    environment = native.environment()
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, **options)


def wait_for_samples(folder, process):
    """Until samples are on disk: in OUT.partial, or where no run goes on from them in a hidden file beside OUT."""
    for _ in range(500):
        for path in folder.iterdir():
            if (path.name.startswith(".") or path.suffix == ".partial") and path.stat().st_size > 10_000:
                return
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    raise AssertionError("nothing was written in 10 seconds")


def foreground():
    """As a shell starts it in the foreground: what is started in the background ignores Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_the_file_alone(tmp_path, runner, number, code):
    out = tmp_path / "out.jsonl"
    out.write_text("as it was\n")
    process = start(runner, out, preexec_fn=foreground)
    wait_for_samples(tmp_path, process)
    process.send_signal(number)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == code, said
    assert out.read_text() == "as it was\n"
    assert {path.name for path in tmp_path.iterdir()} == {"out.jsonl", "out.jsonl.partial", "out.jsonl.partial.json"}
    samples = [json.loads(line) for line in (tmp_path / "out.jsonl.partial").read_text().splitlines()]
    journal = json.loads((tmp_path / "out.jsonl.partial.json").read_text())
    assert journal["bytes"] == (tmp_path / "out.jsonl.partial").stat().st_size
    assert f"interrupted; {len(samples):,} samples are in {out}.partial, --resume goes on" in said
    assert len(samples) > 10 and samples[-1]["index"] < journal["next"]


@pytest.mark.parametrize(("name", "words"), [("out.jsonl.gz", ()), ("out.jsonl", ("--vote",))])
def test_what_has_no_place_to_go_on_from_is_written_when_interrupted(tmp_path, runner, name, words):
    out = tmp_path / name
    process = start(runner, out, *words, preexec_fn=foreground)
    if words:
        time.sleep(2)  # what is chosen among is in memory
    else:
        wait_for_samples(tmp_path, process)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 143, said
    assert {path.name for path in tmp_path.iterdir()} == {name, f"{name}.run.json"}
    content = gzip.decompress(out.read_bytes()) if name.endswith(".gz") else out.read_bytes()
    samples = [json.loads(line) for line in content.splitlines()]
    goes_on = int(said.split("--start ")[1].split()[0])
    assert f"interrupted; {len(samples):,} samples written, --start {goes_on} goes on" in said
    assert len(samples) > 10 and max(sample["index"] for sample in samples) < goes_on


def in_pipe(pipe):
    """How many bytes wait to be read."""
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def waiting_for_its_reader(runner, *words):
    """A run whose pipe is full, and how many bytes are in it."""
    process = start(runner, "-", *words, stdout=subprocess.PIPE, preexec_fn=foreground)
    before = -1
    while before < (before := in_pipe(process.stdout)) or before < 40_000:
        assert process.poll() is None
        time.sleep(0.3)
    return process, before


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("words", [(), ("--raw",)])
def test_a_signal_while_a_pipe_is_full_cuts_no_line(runner, number, code, words):
    process, before = waiting_for_its_reader(runner, *words)
    for _ in range(2):  # `timeout` sends its signal to the process and to its group
        process.send_signal(number)
        time.sleep(0.1)
    out, said = process.communicate(timeout=30)
    assert process.returncode == code, said
    lines = [json.loads(line) for line in out.splitlines()]
    assert out.endswith("\n") and len(out) >= before
    what, goes_on = "draws" if words else "samples", int(said.split("--start ")[1].split()[0])
    assert f"interrupted; {len(lines):,} {what} written, --start {goes_on} goes on\n" in said
    assert lines[-1]["index"] < goes_on


def test_a_later_signal_ends_a_run_that_cannot_write(runner):
    process, _ = waiting_for_its_reader(runner)
    process.send_signal(signal.SIGTERM)
    time.sleep(1.1)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=20) == -signal.SIGINT


def test_answers_are_written_whole_in_spite_of_a_signal(tmp_path, runner):
    """They are all there when the first is written."""
    (tmp_path / "in.txt").write_text("a b\n" * 3000)
    command = [runner, exported("predictor"), "--input", tmp_path / "in.txt"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, **pipes, text=True, env=native.environment())
    while in_pipe(process.stdout) < 40_000:
        assert process.poll() is None
        time.sleep(0.1)
    time.sleep(0.3)
    process.send_signal(signal.SIGTERM)
    time.sleep(0.3)
    out, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (0, "") and len(out.splitlines()) == 3000
    assert len({*out.splitlines()}) == 1 and json.loads(out.splitlines()[-1])["source"] == ["a", "b"]


@pytest.mark.parametrize("words", [(), ("--raw",)])
def test_a_signal_ends_a_run_that_waits_for_a_reader(tmp_path, runner, words):
    os.mkfifo(tmp_path / "pipe.jsonl")
    process = start(runner, tmp_path / "pipe.jsonl", *words)
    time.sleep(1)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert (process.returncode, said) == (143, "interrupted\n")


def test_draws_of_an_interrupted_run_are_written(tmp_path, runner):
    out = tmp_path / "out.jsonl"
    process = start(runner, out, "--raw", "--start", "7", preexec_fn=foreground)
    wait_for_samples(tmp_path, process)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 143, said
    draws = [json.loads(line)["index"] for line in out.read_text().splitlines()]
    assert draws == list(range(7, 7 + len(draws))) and len(draws) > 10
    assert said == f"interrupted; {len(draws):,} draws written, --start {7 + len(draws)} goes on\n"
    assert {path.name for path in tmp_path.iterdir()} == {"out.jsonl"}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("--help",), (RECOMB2, "--verify", "--step", "own")], ids=len)
def test_what_cannot_be_printed_is_told(runner, words):
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [runner, *words], stdout=full, stderr=subprocess.PIPE, env=native.environment(), check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"error: standard output: cannot be written: No space left on device\n"


def test_a_file_beyond_its_limit_of_size_is_told_and_leaves_nothing(tmp_path, runner):
    out = tmp_path / "out.jsonl.gz"
    process = start(runner, out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000)))
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 2 and said.endswith(f"error: {out}: cannot be written: File too large\n"), said
    assert not list(tmp_path.iterdir())


def test_closed_streams_are_not_taken_by_files(tmp_path, runner):
    command = [runner, exported_grammar(tmp_path), "--draws", "50"]  # ONNX Runtime fills them itself
    made = {}
    for closed in ((), (2,), (0, 1, 2)):
        out = tmp_path / f"{len(closed)}.jsonl"
        done = subprocess.run(
            [*command, "-o", out],
            stderr=subprocess.PIPE,
            env=native.environment(),
            preexec_fn=lambda: [os.close(stream) for stream in closed],  # noqa: B023
        )
        assert done.returncode == 0
        made[closed] = out.read_bytes()
    assert made[2,] == made[0, 1, 2] == made[()] != b""
    done = subprocess.run(
        command, stderr=subprocess.PIPE, text=True, env=native.environment(), preexec_fn=lambda: os.close(1)
    )
    assert done.returncode == 2 and done.stderr.startswith("error: standard output: cannot be written: ")


def test_a_packed_file_is_that_of_python(tmp_path, runner):
    """Without a name and a time inside; how well it is packed is the library's."""
    made = {}
    for name in ("a.jsonl.gz", "b.tsv.gz", "b.tsv", "c.tsv.gz"):
        command = [runner, exported(), "--draws", "3000", "-o", tmp_path / name]
        assert subprocess.run(command, env=native.environment()).returncode == 0
        made[name] = (tmp_path / name).read_bytes()
    out = tmp_path / "python.tsv.gz"
    python = [sys.executable, "-m", "compgen", "sample", exported(), "--draws", "3000", "-o", out]
    assert subprocess.run(python).returncode == 0
    theirs = out.read_bytes()
    assert made["b.tsv.gz"] == made["c.tsv.gz"] and made["b.tsv.gz"][:10] == theirs[:10]
    assert gzip.decompress(made["b.tsv.gz"]) == gzip.decompress(theirs) == made["b.tsv"]
    assert len(gzip.decompress(made["a.jsonl.gz"]).splitlines()) == len(made["b.tsv"].splitlines())


def test_a_killed_run_leaves_the_file_alone_and_claims_nothing(tmp_path, runner):
    out = tmp_path / "out.jsonl"
    out.write_text("as it was\n")
    process = start(runner, out)
    wait_for_samples(tmp_path, process)
    process.kill()
    process.communicate()
    assert out.read_text() == "as it was\n"
    again = [runner, exported(), "--draws", "400", "-o", out]
    assert subprocess.run(again, env=native.environment()).returncode == 0
    assert len(out.read_text().splitlines()) > 3


def test_a_second_run_to_the_same_file_is_refused(tmp_path, runner):
    (tmp_path / "far").mkdir()
    out = tmp_path / "far" / "out.jsonl"
    link = tmp_path / "link.jsonl"
    link.symlink_to(out)
    process = start(runner, out)
    try:
        wait_for_samples(out.parent, process)
        second = [runner, exported(), "--draws", "20", "-o", link]
        python = [sys.executable, "-m", "compgen", "sample", exported(), "--draws", "20", "-o", link]
        for command in (second, python):
            done = subprocess.run(command, capture_output=True, text=True, env=native.environment())
            assert done.returncode == 2, done.stderr
            assert f"{out}.partial: another run is writing it" in done.stderr
    finally:
        process.kill()
        process.communicate()


def test_the_runner_is_refused_where_python_writes(tmp_path, runner):
    out = tmp_path / "out.jsonl"
    program = (
        "import sys, time\n"
        "from pathlib import Path\n"
        "from compgen.sampling.partial import partial_file\n"
        "with partial_file(Path(sys.argv[1]), {'start': 0}):\n"
        "    print('ready', flush=True)\n"
        "    time.sleep(60)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    holder = subprocess.Popen([sys.executable, "-c", program, out], stdout=subprocess.PIPE, text=True, env=environment)
    try:
        assert holder.stdout.readline() == "ready\n"
        command = [runner, exported(), "--draws", "20", "-o", out]
        done = subprocess.run(command, capture_output=True, text=True, env=native.environment())
        assert done.returncode == 2 and "another run is writing it" in done.stderr
        assert not out.exists()
    finally:
        holder.kill()
        holder.communicate()


def test_nothing_is_written_through_a_link_that_was_planted(tmp_path, runner):
    """Neither under a name made of the process's number, nor where the lock is."""
    victim = tmp_path / "victim"
    victim.write_text("as it was")
    out = tmp_path / "out.jsonl"
    command = [runner, exported(), "--draws", "20", "-o", out]

    def plant():
        for name in (f".{os.getpid()}.out.jsonl", f".out.jsonl.{os.getpid()}"):
            (tmp_path / name).symlink_to(victim)

    done = subprocess.run(command, capture_output=True, text=True, env=native.environment(), preexec_fn=plant)
    assert done.returncode == 0 and victim.read_text() == "as it was"
    out.unlink()
    (tmp_path / "out.jsonl.partial").symlink_to(victim)
    done = subprocess.run(command, capture_output=True, text=True, env=native.environment())
    assert done.returncode == 2 and "cannot be written" in done.stderr
    assert victim.read_text() == "as it was" and not out.exists()


def test_names_on_the_way_are_never_the_same(tmp_path, runner):
    names = set()
    for number in range(2):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = start(runner, folder / "out.jsonl.gz")
        wait_for_samples(folder, process)
        (name,) = [path.name for path in folder.iterdir() if path.name.startswith(".")]
        assert str(process.pid) not in name and name.endswith(".out.jsonl.gz") and len(name) == 1 + 32 + 13
        names.add(name)
        process.kill()
        process.communicate()
    assert len(names) == 2


def test_a_run_that_is_done_leaves_the_file_and_its_record_alone_behind(tmp_path, runner):
    out = tmp_path / "new" / "out.tsv"
    done = subprocess.run([runner, exported(), "--draws", "50", "-o", out], env=native.environment())
    assert done.returncode == 0
    assert {path.name for path in out.parent.iterdir()} == {"out.tsv", "out.tsv.run.json"}


@pytest.mark.parametrize("words", [(), ("--vote",)])
def test_a_run_that_begins_forgets_the_one_before_if_it_writes_there(tmp_path, runner, words):
    left = {"out.jsonl.partial": "of another run\n", "out.jsonl.partial.json": "{}"}
    for name, text in left.items():
        (tmp_path / name).write_text(text)
    command = [runner, exported(), "--draws", "50", *words, "-o", tmp_path / "out.jsonl"]
    assert subprocess.run(command, env=native.environment()).returncode == 0
    found = {path.name: path.read_text() for path in tmp_path.iterdir() if "partial" in path.name}
    assert found == (left if words else {})


@pytest.mark.parametrize("kind", ["generator", "predictor"])
def test_a_file_that_cannot_be_written_is_told_before_the_work(tmp_path, runner, kind):
    (tmp_path / "file").write_text("x")
    words = ["--draws", "20"] if kind == "generator" else ["--input", "-"]
    command = [runner, exported(kind), *words, "-o", tmp_path / "file" / "out.jsonl"]
    done = subprocess.run(command, capture_output=True, text=True, input="a b\n", env=native.environment())
    assert done.returncode == 2 and "cannot be written" in done.stderr and done.stderr.count("\n") == 1


def test_a_reader_that_goes_away_ends_the_run_quietly(runner):
    """141 in a shell: the signal that every filter dies of."""
    process = start(
        runner, "-", stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    )
    assert process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=30) == -signal.SIGPIPE
    process.stderr.close()
