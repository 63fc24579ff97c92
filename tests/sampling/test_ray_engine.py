"""A Ray cluster gives what one process gives, also when it loses a worker, and says what it cannot do."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compgen.api import Generator
from compgen.errors import UserError
from compgen.sampling import ray_engine
from compgen.sampling.resampling import Counts

ray = pytest.importorskip("ray", reason="needs Ray, the extra [ray]")
BUNDLE = Path(__file__).parents[2] / "exported" / "recomb2"
FILTERS = ("unique", "rare")


@pytest.fixture(scope="module")
def cluster():
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture
def short_ranges(monkeypatch):
    monkeypatch.setattr(ray_engine, "RANGE", 400)


def stream(engine, counts, **options):
    return Generator.load(BUNDLE).stream(filters=FILTERS, engine=engine, counts=counts, **{"ngram": 2} | options)


def both(**options):
    found = []
    for engine in ("threads", "ray"):
        counts = Counts()
        found.append((list(stream(engine, counts, **options)), counts))
    return found


def parent(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


def working():
    """The worker processes of our cluster that are in the middle of a range: Ray names them by their task."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            busy = (entry / "cmdline").read_bytes().startswith(b"ray::judge_range")
            if busy and parent(parent(entry.name)) == os.getpid():
                found.append(int(entry.name))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return found


@pytest.mark.usefixtures("cluster", "short_ranges")
@pytest.mark.parametrize(
    "options",
    [{"draws": 1500, "start": 7}, pytest.param({"count": 100, "start": 7, "voting": True}, marks=pytest.mark.long)],
)
def test_samples_and_counts_are_those_of_one_process(options):
    here, there = both(**options)
    assert here == there
    assert here[0] and set(here[1].rejected) >= {"not unique", "not rare"}


@pytest.mark.long
@pytest.mark.usefixtures("cluster", "short_ranges")
def test_rare_prototypes_are_those_of_one_process():
    here, there = both(count=100, ngram=1, prototypes="rare")
    assert here == there and here[0]


@pytest.mark.usefixtures("cluster", "short_ranges")
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="finds the worker to kill in /proc")
def test_a_worker_that_is_killed_changes_nothing():
    expected, counts = list(stream("threads", (one := Counts()), draws=2000)), Counts()
    found, killed = [], 0
    for sample in stream("ray", counts, draws=2000):
        found.append(sample)
        if not killed and (busy := working()):
            killed = busy[0]
            os.kill(killed, signal.SIGKILL)
    assert killed and found == expected and counts == one


@pytest.mark.usefixtures("cluster")
def test_a_bundle_that_is_another_on_a_worker_is_refused(tmp_path):
    shutil.copytree(BUNDLE, tmp_path / "b")
    generator = Generator.load(tmp_path / "b")
    with (tmp_path / "b" / "manifest.json").open("a") as manifest:
        manifest.write("\n")
    with pytest.raises(UserError, match=r"on a worker .* not the same bundle"):
        list(generator.stream(draws=5, engine="ray"))
    shutil.rmtree(tmp_path / "b")
    with pytest.raises(UserError, match=r"on a worker .* no such bundle"):
        list(generator.stream(draws=6, seed=1, engine="ray"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--engine", "ray", "--beam", "2"), "no beam search"),
        (("--engine", "ray", "--provider", "cuda"), "leave out --provider"),
        (("--engine", "ray", "--runtime", "native"), "--engine"),
        (("--engine", "ray", "--temperature", "1e-9"), "expected 0 (greedy)"),
        (("--engine", "spark"), "expected threads or ray"),
    ],
)
def test_what_the_engine_cannot_do_is_told(options, says, tmp_path):
    done = compgen("-n", 1, "-o", tmp_path / "s.jsonl", *options)
    assert done.returncode == 2 and says in done.stderr and "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_a_cluster_that_is_not_there_is_told(tmp_path):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and nobody listens
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        done = compgen("-n", 1, "-o", tmp_path / "s.jsonl", "--engine", "ray", RAY_ADDRESS=address)
    assert done.returncode == 2 and f"RAY_ADDRESS={address}" in done.stderr and "Traceback" not in done.stderr


def test_an_address_without_a_port_is_told(tmp_path):
    done = compgen("-n", 1, "-o", tmp_path / "s.jsonl", "--engine", "ray", RAY_ADDRESS="10.0.0.5")
    assert done.returncode == 2 and "RAY_ADDRESS=10.0.0.5 cannot be used" in done.stderr, done.stderr


@pytest.mark.long
def test_the_command_starts_a_cluster_and_goes_on_where_threads_stopped(tmp_path):
    out, whole = tmp_path / "s.jsonl", tmp_path / "whole.jsonl"
    words = ("-n", 2500, "--filter", "unique")
    command = [sys.executable, "-m", "compgen", "sample", BUNDLE, *words, "-o", out, "--batch", 1, "--workers", 1]
    process = subprocess.Popen(list(map(str, command)), stderr=subprocess.DEVNULL)
    journal = tmp_path / "s.jsonl.partial.json"
    while process.poll() is None and not journal.exists():
        time.sleep(0.05)
    process.kill()
    process.wait()
    assert journal.exists()
    done = compgen(*words, "-o", out, "--resume", "--engine", "ray", "--workers", 2)
    said = [line for line in done.stderr.splitlines() if not line.startswith(("quality: ", "  ", "warning: "))]
    assert done.returncode == 0 and len(said) < 4, done.stderr  # nothing of Ray's own
    assert compgen(*words, "-o", whole).returncode == 0
    assert out.read_bytes() == whole.read_bytes()


def compgen(*words, **environment):
    command = [sys.executable, "-m", "compgen", "sample", str(BUNDLE), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=os.environ | environment)
