"""A file of samples that one program began, the other goes on with: in the end it is what either writes at once."""

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compgen.sampling import native
from compgen.sampling.partial import SAVE_EVERY
from tests.cli.shell import compgen
from tests.sampling.grammars import exported_grammar

pytestmark = pytest.mark.usefixtures("built")

RECOMB2 = Path(__file__).parents[2] / "exported" / "recomb2"
NOVEL = ("--filter", "novel,unique", "--novelty", "pair")
RARE = ("--filter", "rare", "--rarity", 0.5)
PYTHON, RUNNER = "python", "native"
LONG = pytest.mark.long


@pytest.fixture(scope="module")
def grammar(tmp_path_factory):
    return exported_grammar(tmp_path_factory.mktemp("grammar"))


def command(program, bundle, out, *words, slow=False):
    """By the graph the runner computes to the last bit what Python does; a row at a time it can be met at work."""
    grammar = (bundle / "rules.txt").exists()
    if program == PYTHON:
        asked = [sys.executable, "-m", "compgen", "sample", bundle, *words, "-o", out]
    else:
        asked = [native.runner(), bundle, *words, "-o", out, *(() if grammar else ("--step", "graph"))]
    if slow:
        asked += ["--batch", 1, *(() if grammar else ("--workers", 1))]
    return [str(word) for word in asked]


def run(*asked):
    words = command(*asked)
    if asked[0] == PYTHON:
        return compgen(*words[3:])
    return subprocess.run(words, capture_output=True, text=True, timeout=300, env=native.environment())


def partial(out):
    return out.with_name(out.name + ".partial")


def journal(out):
    return out.with_name(out.name + ".partial.json")


def until(process, true):
    deadline = time.monotonic() + 120
    while not true():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()
        time.sleep(0.001)


def broken_off(asked, out, size, number):
    """Run until OUT.partial has so many bytes more, and then end it, by SIGKILL at the next point to resume from."""
    saved = journal(out).read_text() if journal(out).exists() else None
    size += json.loads(saved)["bytes"] if saved else 0
    left = partial(out).stat().st_size if partial(out).exists() else 0  # until what was not saved is cut off
    asked = command(*asked, slow=True)
    process = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True, env=native.environment())
    until(process, lambda: partial(out).exists() and left != partial(out).stat().st_size > size)
    if number == signal.SIGKILL:
        process.send_signal(signal.SIGSTOP)
        time.sleep(SAVE_EVERY + 0.1)
        process.send_signal(signal.SIGCONT)
        until(process, lambda: journal(out).exists() and journal(out).read_text() != saved)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), said
    assert number == signal.SIGKILL or f"samples are in {partial(out)}, --resume goes on" in said
    assert not out.exists()


def record(out):
    found = json.loads(Path(f"{out}.run.json").read_text())
    return {name: value for name, value in found.items() if name not in ("seconds", "quality")}


@pytest.mark.parametrize(
    ("kind", "name", "words", "first"),
    [
        ("network", "s.jsonl", ("--draws", 1500), RUNNER),
        pytest.param("network", "s.jsonl", ("-n", 600, "--seed", 3, "--start", 11, *NOVEL), PYTHON, marks=LONG),
        pytest.param(
            "network", "s.tsv", ("-n", 900, "--seed", 2**64 - 1, "--temperature", "1,0.4", *NOVEL), RUNNER, marks=LONG
        ),
        pytest.param("grammar", "s.jsonl", ("--draws", 200_000, "--temperature", 0.7), PYTHON, marks=LONG),
        pytest.param("grammar", "s.jsonl", ("--draws", 200_000, "--start", 2**40, *NOVEL[:2]), RUNNER, marks=LONG),
    ],
)
def test_two_programs_take_turns_at_one_file(tmp_path, grammar, kind, name, words, first):
    bundle, whole, out = RECOMB2 if kind == "network" else grammar, tmp_path / "whole" / name, tmp_path / name
    done = run(PYTHON, bundle, whole, *words)
    assert done.returncode == 0, done.stderr
    programs = [first, PYTHON if first == RUNNER else RUNNER]
    turns = [(500, signal.SIGTERM), (9_000, signal.SIGKILL), (500, signal.SIGINT)]
    if "novel,unique" in words and kind == "grammar":
        turns = [(500, signal.SIGTERM), (500, signal.SIGKILL)]  # of a small grammar there is little that is new
    for turn, (size, number) in enumerate(turns):
        more = ("--resume",) if turn else ()
        broken_off((programs[turn % 2], bundle, out, *words, *more), out, size, number)
        with partial(out).open("a") as stream:
            stream.write('{"source":["turn')  # what was written after the point to resume from
    done = run(programs[len(turns) % 2], bundle, out, *words, "--resume")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == whole.read_bytes() != b""
    assert record(out) == record(whole)
    assert {path.name for path in tmp_path.iterdir()} == {"whole", name, f"{name}.run.json"}


@pytest.fixture(scope="module")
def left(tmp_path_factory):
    """What the runner leaves when it is ended, and the options it was asked for."""
    out, words = tmp_path_factory.mktemp("left") / "s.jsonl", ("-n", 2000, "--seed", 3, "--filter", "unique")
    broken_off((RUNNER, RECOMB2, out, *words), out, 1, signal.SIGTERM)
    return out, words


def alter(edit):
    """A change of the journal."""

    def altered(out):
        state = json.loads(journal(out).read_text())
        journal(out).write_text(json.dumps(edit(state) or state))

    return altered


def replaced(path, text):
    return lambda out: path(out).write_text(text)


def folder_for(path):
    def change(out):
        path(out).unlink()
        path(out).mkdir()

    return change


def nested(depth):
    return [nested(depth - 1)] if depth else []


ALTERED = "s.jsonl.partial: not what s.jsonl.partial.json says of it: one of them was altered: leave out --resume"
OTHER = ("-n", 9, "--seed", 3, "--filter", "unique,novel", "--rarity", 0.5, "--temperature", "1")


@pytest.mark.parametrize(
    ("change", "words", "message"),
    [
        (None, ("-n", 9, "--seed", 4), "-n was 2000, is 9; seed was 3, is 4; filters was ['unique'], is []"),
        (None, ("-n", 9, "--seed", 3, "--filter", "unique,novel,unique,novel,unique,novel"), "['unique', 'novel', "),
        (alter(lambda state: state["options"].update(draws="x" * 50)), None, f"draws was '{'x' * 39}, is None"),
        (alter(lambda state: state["options"].update(model=None)), None, "model was None"),
        (alter(lambda state: state["options"].update(rare_tokens=["don't", "\\"])), None, "tokens was [\"don't\", '"),
        (alter(lambda state: state["options"].update(rarity=1e15)), None, "rarity was 1000000000000000.0, is 0.01"),
        (alter(lambda state: state["counts"].update(more=1)), None, "not a journal of sampling"),
        (alter(lambda state: state["counts"].pop("last") and None), None, "not a journal of sampling"),
        (alter(lambda state: state.pop("seconds") and None), None, "not a journal of sampling"),
        (alter(lambda state: state.pop("check") and None), None, "not a journal of sampling"),
        (alter(lambda state: state.update(seconds="1")), None, "not a journal of sampling"),
        (alter(lambda state: state.update(seconds=1e300)), None, "not a journal of sampling"),
        (alter(lambda state: state.update(seconds=float("nan"))), None, "not a journal of sampling"),
        (alter(lambda state: state.update(bytes=-1)), None, "not a journal of sampling"),
        (alter(lambda state: state.update(bytes=True)), None, "not a journal of sampling"),
        (alter(lambda state: state.update(bytes=2**63)), None, "not a journal of sampling"),
        (alter(lambda state: state["counts"].update(kept=1.5)), None, "not a journal of sampling"),
        (alter(lambda state: state["counts"].update(rejected=[])), None, "not a journal of sampling"),
        (alter(lambda state: state["options"].update(draws=nested(70))), None, "not a journal of sampling"),
        (alter(lambda state: state["options"].update(start=False)), None, "start was False, is 0"),
        (alter(lambda state: [state]), None, "not a journal of sampling"),
        (replaced(journal, '{"options": '), None, "not a journal of sampling"),
        (replaced(journal, "[" * 100_000), None, "not a journal of sampling"),
        (folder_for(journal), None, "not a journal of sampling"),
        (replaced(partial, "x" * 100), None, "s.jsonl.partial: 100 bytes, expected "),
        (replaced(partial, "x" * 10**6), None, ALTERED),
        (lambda out: partial(out).write_bytes(partial(out).read_bytes().replace(b"walk", b"look", 1)), None, ALTERED),
        (alter(lambda state: state["counts"].update(drawn=state["counts"]["drawn"] + 1)), None, ALTERED),
        (alter(lambda state: state["counts"].update(last=0)), None, ALTERED),
        (alter(lambda state: state["counts"]["rejected"].update(other=0)), None, ALTERED),
        (alter(lambda state: state.update(step="graph" if state["step"] == "own" else "own")), None, ALTERED),
        (alter(lambda state: state.update(bytes=state["bytes"] - 1)), None, ALTERED),
    ],
)
def test_what_cannot_be_gone_on_with_is_told_in_the_same_words(tmp_path, left, change, words, message):
    for file in left[0].parent.iterdir():
        shutil.copy(file, tmp_path)
    out = tmp_path / "s.jsonl"
    if change is not None:
        change(out)
    files = contents(tmp_path)
    said = []
    for program in (PYTHON, RUNNER):
        done = run(program, RECOMB2, out, *(words or left[1]), "--resume")
        assert done.returncode == 2, done.stderr
        said.append(re.sub(r"^(cgen|error): |\s+$", "", done.stderr))
        assert contents(tmp_path) == files  # a refusal changes nothing
    assert said[0] == said[1] and message in said[0]


def contents(folder):
    return {path.name: path.read_bytes() if path.is_file() else None for path in folder.iterdir()}


@pytest.mark.parametrize("more", [("--vote",), ("--support", 0.1), ("--best", 3), None])
def test_what_has_no_place_to_go_on_from_is_told(tmp_path, more):
    out = tmp_path / ("s.jsonl" if more else "s.jsonl.gz")
    said = [run(program, RECOMB2, out, "--draws", 5, "--resume", *(more or ())) for program in (PYTHON, RUNNER)]
    assert [done.returncode for done in said] == [2, 2]
    assert all("--resume is for samples that are written to a file as they are drawn" in done.stderr for done in said)
    assert not list(tmp_path.iterdir())


def test_what_is_finished_stays_whichever_program_wrote_it(tmp_path):
    for number, first in enumerate((PYTHON, RUNNER)):
        out = tmp_path / f"{number}.jsonl"
        assert run(first, RECOMB2, out, "--draws", 50, "--resume").returncode == 0  # there is nothing to go on from
        made = out.read_bytes()
        journal = out.with_name(out.name + ".partial.json")
        for program in (PYTHON, RUNNER):
            journal.write_text("of a run that was killed at its very end")
            done = run(program, RECOMB2, out, "--draws", 50, "--resume")
            assert done.returncode == 0 and f"{out} is finished: nothing to continue" in done.stderr
            assert not journal.exists()
            done = run(program, RECOMB2, out, "--draws", 60, "--filter", "novel", "--resume")
            assert done.returncode == 2 and f"{out}: it was made with another --filter, --draws: leave" in done.stderr
        assert out.read_bytes() == made
        for broken in ('{"model": "re', '{"more": NaN}', "[]", '[["model", 1]]', '\ufeff{"model": 1}'):
            Path(f"{out}.run.json").write_text(broken)
            for program in (PYTHON, RUNNER):
                done = run(program, RECOMB2, out, "--draws", 50, "--resume")
                assert done.returncode == 2 and f"{out}.run.json: not a record of sampling" in done.stderr
    assert (tmp_path / "0.jsonl").read_bytes() == (tmp_path / "1.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("program", "words", "message"),
    [
        (PYTHON, (*RARE, "--prototypes", "rare"), "no prototypes of which one could be rare"),
        (PYTHON, ("--temperature", "1,0.5"), "one temperature, found 1 and 0.5"),
        (PYTHON, ("--beam", 2), "leave out beam"),
        (PYTHON, ("--engine", "ray", "--beam", 2), "no beam search"),
        (RUNNER, (*RARE, "--prototypes", "rare"), "no prototypes of which one could be rare"),
        (RUNNER, ("--temperature", "1,0.5"), "one temperature, found 1 and 0.5"),
        (RUNNER, ("--temperature", 0), "a temperature above 0, found 0"),
    ],
)
def test_a_command_that_is_refused_drops_no_interrupted_run(tmp_path, grammar, program, words, message):
    out = tmp_path / "s.jsonl"
    partial(out).write_text("samples")
    journal(out).write_text("of which this tells")
    files = contents(tmp_path)
    done = run(program, grammar, out, "--draws", 5, *words)
    assert done.returncode == 2 and message in done.stderr and contents(tmp_path) == files


@pytest.mark.parametrize("program", [PYTHON, RUNNER])
def test_a_folder_in_the_place_of_a_file_is_told_before_anything_is_drawn(tmp_path, program):
    (tmp_path / "s.jsonl").mkdir()
    done = run(program, RECOMB2, tmp_path / "s.jsonl", "--draws", 5)
    assert done.returncode == 2 and "s.jsonl: cannot be written: Is a directory" in done.stderr
    assert contents(tmp_path) == {"s.jsonl": None}


@pytest.mark.parametrize("first", [PYTHON, RUNNER])
def test_what_was_cut_short_since_it_was_finished_is_told_in_the_same_words(tmp_path, first):
    out, kept = tmp_path / "s.jsonl", Path(f"{tmp_path}/s.jsonl.run.json")
    assert run(first, RECOMB2, out, "--draws", 50).returncode == 0
    made, record = out.read_bytes(), json.loads(kept.read_text())
    assert record["bytes"] == len(made) > 1_000

    def said():
        done = [run(program, RECOMB2, out, "--draws", 50, "--resume") for program in (PYTHON, RUNNER)]
        words = {(one.returncode, re.sub(r"^(cgen|error): |\s+$", "", one.stderr)) for one in done}
        assert len(words) == 1, words
        return words.pop()

    for part in (made[:-1], made + b"\n"):
        out.write_bytes(part)
        wanted = f"{out}: {len(part):,} bytes, expected {len(made):,}: cut short or altered: leave out --resume to"
        assert said() == (2, f"{wanted} make it anew")
        assert out.read_bytes() == part
    for wrong in (True, -1, 2**62 + 1, None, "1"):
        kept.write_text(json.dumps(record | {"bytes": wrong}))
        assert said() == (2, f"{kept}: not a record of sampling: leave out --resume to make {out} anew")
    record.pop("bytes")  # as in records of older versions
    kept.write_text(json.dumps(record))
    assert said() == (0, f"{out} is finished: nothing to continue")
    for program in (PYTHON, RUNNER):
        out.unlink()
        assert run(program, RECOMB2, out, "--draws", 50, "--resume").returncode == 0
        assert out.read_bytes() == made


@LONG
def test_a_run_goes_on_by_the_step_that_it_began_with(tmp_path):
    """Our step's probabilities differ in the last digit; what Python began has those of the graph."""
    words = ("--draws", 3000, "--seed", 8)
    asked = [native.runner(), RECOMB2, *map(str, words), "-o"]

    def sample(out, *more):
        done = subprocess.run([*asked, out, *more], capture_output=True, text=True, env=native.environment())
        assert done.returncode == 0, done.stderr
        return out.read_bytes()

    by = {step: sample(tmp_path / f"{step}.jsonl", "--step", step) for step in ("own", "graph")}
    assert by["own"] != by["graph"]
    out = tmp_path / "s.jsonl"
    for step in ("own", "graph"):
        begun = [*asked, out, "--step", step, "--batch", "1", "--workers", "1"]
        process = subprocess.Popen(begun, stderr=subprocess.DEVNULL, env=native.environment())
        until(process, lambda: partial(out).exists() and partial(out).stat().st_size > 0)
        process.terminate()
        process.wait(timeout=60)
        assert json.loads(journal(out).read_text())["step"] == step
        assert sample(out, "--resume") == by[step]
        out.unlink(), Path(f"{out}.run.json").unlink()


@LONG
def test_a_runner_that_is_started_by_cgen_goes_on(tmp_path, grammar):
    words = ("--draws", 150_000)
    assert run(PYTHON, grammar, tmp_path / "whole.jsonl", *words).returncode == 0
    out = tmp_path / "s.jsonl"
    broken_off((RUNNER, grammar, out, *words), out, 1, signal.SIGTERM)
    done = run(PYTHON, grammar, out, *words, "--resume", "--runtime", "native")
    assert done.returncode == 0, done.stderr
    assert out.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
