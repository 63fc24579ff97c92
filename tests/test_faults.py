"""Faults injected into commands, in short: `make campaign` injects all of them."""

import errno
import os
import re
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

from compgen.comparison import planning
from tests.export.tiny import exported

SCRIPTS = Path(__file__).parents[1] / "scripts"


@pytest.fixture
def shim(tmp_path, monkeypatch):
    """The module, the library, and its state."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from injection import shim

    if shim.compiler() is None:
        pytest.skip("no C compiler (cc)")
    return shim, shim.build(tmp_path), shim.Shim(tmp_path / "state")


def preloaded(shim, *words, **more):
    """Run a program with the library."""
    module, library, state = shim
    environment = os.environ | {module.PRELOAD: str(library), module.STATE: str(library.with_name("state"))} | more
    done = subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, check=False)
    state.off()
    return done


def campaign(*words):
    done = subprocess.run(
        [sys.executable, SCRIPTS / "faults.py", *words], capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode == 2 and done.stderr.startswith("faults cannot be injected"):
        pytest.skip(done.stderr.strip())
    return done


def test_what_plans_the_comparisons_is_called_as_the_usual_plan(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from injection import jobs

    assert len(signature(jobs._poorest_plan).parameters) == len(signature(planning.make_plan).parameters)


def test_one_call_fails_in_one_folder(shim, tmp_path):
    module, _, state = shim
    (tmp_path / "watched").mkdir()
    code = "; ".join(
        f"print(open({str(tmp_path / name)!r}, 'w').write('x'))" for name in ("other", "watched/a", "watched/b", "last")
    )
    state.arm(tmp_path / "watched", module.COUNT)
    assert preloaded(shim, sys.executable, "-c", code).stdout == "1\n" * 4
    assert {name: count for name, count in state.counts().items() if count} == {"all": 4, "open": 2, "write": 2}
    state.arm(tmp_path / "watched", module.FAIL, module.KINDS.index("open"), 2, errno.EACCES)
    done = preloaded(shim, sys.executable, "-c", code)
    assert done.stdout == "1\n" * 2 and "PermissionError" in done.stderr and state.hits() == 1
    state.arm(tmp_path / "watched", module.KILL, module.ANY, 3)
    assert preloaded(shim, sys.executable, "-c", code).returncode == -9


@pytest.mark.parametrize(
    "body",
    ["FILE* out = fopen(to, \"w\"); fwrite(text, 1, 100, out); fwrite(text, 1, 100, out); fclose(out);",
     "int out = open(to, O_CREAT | O_WRONLY, 0600); write(out, text, 100); write(out, text, 100);"],
)  # fmt: skip
def test_a_write_that_is_killed_is_made_by_half(shim, tmp_path, body):
    module, _, state = shim
    (tmp_path / "watched").mkdir()
    heads = "".join(f"#include <{name}.h>\n" for name in ("fcntl", "stdio", "unistd"))
    (tmp_path / "twice.c").write_text(
        heads + "int main(int n, char** words) { char* to = words[n - 1]; char text[100] = {1}; " + body + " }"
    )
    subprocess.run([module.compiler(), "-o", tmp_path / "twice", tmp_path / "twice.c"], check=True)
    state.arm(tmp_path / "watched", module.KILL, module.KINDS.index("write"), 2)
    done = preloaded(shim, tmp_path / "twice", tmp_path / "watched" / "out")
    assert done.returncode == -9 and (tmp_path / "watched" / "out").stat().st_size == 150


def test_what_a_careless_program_leaves_is_found():
    done = campaign("--of", "a careless program")
    assert done.returncode == 1
    assert "a careless program, write 2: EIO: half-written: file" in done.stderr
    assert "a careless program, all 4: kill: half-written: file" in done.stderr


def test_files_and_folders_are_whole_whatever_call_fails():
    done = campaign("--of", "data write of a folder,select", "--most", "1", "--over")
    assert done.returncode == 0, done.stderr
    figures = done.stdout.splitlines()[-1].split("|")
    assert int(figures[3]) > 30, done.stdout


@pytest.mark.parametrize("at", [300, 500, 700])
def test_the_runner_says_that_memory_is_short_from_its_beginning(shim, built, tmp_path, at):
    module, _, state = shim
    state.arm(tmp_path / "watched", module.FAIL, module.KINDS.index("malloc"), at, errno.ENOMEM)
    done = preloaded(shim, built, tmp_path, "--draws", "3", "-o", tmp_path / "out.jsonl", **{module.MEMORY: "1"})
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert done.stderr.startswith("error: not enough memory"), done.stderr


@pytest.mark.parametrize("at", [1, 3])
def test_sources_that_the_runner_can_read_in_part_are_not_answered_in_part(shim, built, tmp_path, at):
    module, _, state = shim
    (tmp_path / "watched").mkdir()
    (tmp_path / "watched" / "in.txt").write_text("a b\n" * 10_000)
    state.arm(tmp_path / "watched", module.FAIL, module.KINDS.index("read"), at, errno.EIO)
    done = preloaded(shim, built, exported(), "--direct", "--input", tmp_path / "watched" / "in.txt")
    says = f"error: {tmp_path}/watched/in.txt: cannot be read to its end\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", says) and state.hits() == 1


def test_no_code_reads_a_clock_that_can_be_set():
    """So that one that jumps changes nothing; only a comparison's list of steps has the order of their files' times."""
    root = SCRIPTS.parent
    asks = re.compile(r"\btime\.time(_ns)?\b|\bfrom time import|datetime|system_clock|gettimeofday|CLOCK_REALTIME")
    files = [*(root / "compgen").rglob("*.py"), *(root / "cpp_runner" / "src").iterdir()]
    files += (root / "compgen" / "lm" / "native").iterdir()
    assert len(files) > 200
    assert not [path.name for path in files if path.is_file() and asks.search(path.read_text("utf-8"))]
