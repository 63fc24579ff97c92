"""Scripts: each can be started, so that what documents name can be run."""

import os
import runpy
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compgen.configuration import load_config
from compgen.recombine.config import RecombineConfig
from tests.export.tiny import exported

SCRIPTS = Path(__file__).parents[1] / "scripts"
START = """
import runpy, sys, traceback
failed = False
for path in sys.argv[1:]:
    sys.path[0] = path.rpartition("/")[0]  # as where Python itself is given the file
    try:
        runpy.run_path(path, run_name="not main")
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] == "compgen":  # others are no part of every installation
            raise
    except Exception:
        failed = True
        print(path, traceback.format_exc())
sys.exit(failed)
"""


def test_all_import():
    files = sorted(str(path) for path in SCRIPTS.rglob("*.py"))
    assert len(files) > 30
    found = subprocess.run([sys.executable, "-c", START, *files], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]


def _experiment(name: str, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(SCRIPTS / "experiments")
    return runpy.run_path(str(SCRIPTS / "experiments" / f"{name}.py"), run_name="not main")


def test_every_generator_of_scan_has_a_configuration(monkeypatch):
    found = _experiment("scan", monkeypatch)
    for name, words in found["GENERATORS"].items():
        for config in {kind.config for kind in found["SPLITS"].values()}:
            made = load_config(RecombineConfig, config, [word for word in words if word != "--set"])
            assert made.prototypes == {"recomb1": 1, "recomb0": 0, "protovae": 1}.get(name, 2)


@pytest.mark.parametrize(
    "said", ["cgen: no sample was chosen, and nothing is written: 9 drawn", "cgen: no such bundle"]
)
def test_a_generator_whose_samples_are_all_filtered_out_gives_an_empty_file(said, tmp_path, monkeypatch):
    found = _experiment("scan", monkeypatch)

    def call(folder, *_):
        (folder / "log.txt").write_text(said)
        raise SystemExit("failed")

    monkeypatch.setitem(found["sample"].__globals__, "call", call)
    cell = found["Cell"]("jump", "recomb0", 0)
    if found["NOTHING"] in said:
        assert found["sample"](cell, tmp_path, tmp_path).read_text() == ""
    else:
        with pytest.raises(SystemExit):
            found["sample"](cell, tmp_path, tmp_path)


def test_variants_without_samples_train_their_baseline_once(tmp_path, monkeypatch):
    found, trained = _experiment("scan", monkeypatch), []

    def train(*words):
        trained.append(words)
        time.sleep(0.2)

    (tmp_path / "none.jsonl").touch()
    for name, fake in {
        "sample": lambda *_: tmp_path / "none.jsonl",
        "train": train,
        "call": lambda *_: '{"exact_match": 0.0, "f1": 0.5}',
    }.items():
        monkeypatch.setitem(found["sample"].__globals__, name, fake)
    cells = [found["Cell"]("jump", variant, 0) for variant in ("recomb0", "recomb1")]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda cell: cell.run(tmp_path, []), cells))
    assert rows[0] == rows[1] and len(trained) == 1


@pytest.mark.parametrize(
    ("script", "words", "says"),
    [
        ("faults.py", ["--kinds", "write,unknown"], "--kinds unknown: expected open, read, write"),
        ("faults.py", ["--modes", "kil"], "--modes kil: expected error, kill"),
        ("bench/lm.py", ["model.bin"], "TEXT is missing: give MODEL and TEXT, or neither"),
    ],
)
def test_wrong_options_of_scripts_are_refused(script, words, says):
    command = [sys.executable, SCRIPTS / script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2 and says in done.stderr


def test_results_of_other_settings_are_not_taken_for_those_of_these(tmp_path, monkeypatch):
    require_same = _experiment("cells", monkeypatch)["require_same"]
    for _ in range(2):
        require_same(tmp_path / "predictor.txt", ["--set", "network.hidden=64"])
    with pytest.raises(SystemExit, match=r"other predictor options .--set network.hidden=64.: give another folder"):
        require_same(tmp_path / "predictor.txt", [])
    (tmp_path / "seed.txt").write_text("0\n")
    monkeypatch.setattr(sys, "argv", ["demo.py", "--out", str(tmp_path), "--seed", "1"])
    with pytest.raises(SystemExit, match="holds a demo with --seed 0: give another --out"):
        runpy.run_path(str(SCRIPTS / "demo.py"), run_name="__main__")


def test_comparisons_with_other_options_are_not_taken_for_these(tmp_path, monkeypatch):
    found = _experiment("comparisons", monkeypatch)
    monkeypatch.setitem(found["main"].__globals__, "row", lambda *_: "")
    (tmp_path / "turkish").mkdir()
    (tmp_path / "turkish" / "compare.json").write_text("{}")
    (tmp_path / "turkish.parquet").touch()
    monkeypatch.setattr(sys, "argv", ["comparisons.py", str(tmp_path), "--tasks", "turkish"])
    found["main"]()
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--", "--minutes", "20"])
    with pytest.raises(SystemExit, match=r"holds results with other turkish options .none.: give another folder"):
        found["main"]()


def test_examples_of_two_methods_with_other_options_are_not_taken_for_these(tmp_path, monkeypatch):
    found = _experiment("augmented", monkeypatch)
    cell, kinds = found["Cell"]("jump", "geca+lexsym", 0, "test"), found["Cell"].added.__globals__["KINDS"]
    (tmp_path / "one.tsv").write_text("a\tb\n")
    monkeypatch.setattr(found["Cell"], "made", lambda *_: tmp_path / "one.tsv")
    files = [cell.added(tmp_path, cell.kind, tmp_path)[1]]
    monkeypatch.setitem(kinds, "scan", replace(cell.kind, count=5))
    files.append(cell.added(tmp_path, cell.kind, tmp_path)[1])
    assert files[0] != files[1]


def test_options_of_scans_predictor_can_be_given(tmp_path, monkeypatch):
    found = _experiment("scan", monkeypatch)

    def keep(_, words):
        raise SystemExit(words)

    monkeypatch.setitem(found["main"].__globals__, "require_same", keep)
    words = ["--set", "network.hidden=64", "--set", "p_aug=0.1"]
    monkeypatch.setattr(sys, "argv", ["scan.py", "--out", str(tmp_path), "--predictor", *words])
    with pytest.raises(SystemExit) as ended:
        found["main"]()
    assert ended.value.code == words


def test_mutants_that_are_tried_again_leave_their_report(tmp_path, monkeypatch, capsys):
    report = tmp_path / "mutants.jsonl"
    report.touch()
    monkeypatch.setattr(sys, "argv", ["mutants.py", "--retry", str(report), "--report", str(report)])
    with pytest.raises(SystemExit, match="2"):
        runpy.run_path(str(SCRIPTS / "mutants.py"), run_name="__main__")
    assert "mutants.jsonl would be overwritten: give another --report" in capsys.readouterr().err


def test_a_cluster_run_that_fails_ends(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    found = runpy.run_path(str(SCRIPTS / "load.py"), run_name="not main")

    class Failing:
        process = None

        def __init__(self, command):
            self.fails = "ray" in command

        def wait(self):
            if self.fails:
                raise SystemExit("failed")

    monkeypatch.setitem(found["cluster"].__globals__, "Watched", Failing)
    before = threading.enumerate()
    with pytest.raises(SystemExit, match="failed"):
        found["cluster"](tmp_path, 1.0)
    assert threading.enumerate() == before


def test_memory_of_a_run_is_that_of_all_its_processes(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS)
    resident = runpy.run_path(str(SCRIPTS / "load.py"), run_name="not main")["resident"]
    before = resident(os.getpid())
    large = [sys.executable, "-c", "held = b'1' * 2**26; print(flush=True); input()"]
    with subprocess.Popen(large, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        assert resident(os.getpid()) > before + 64
        process.communicate("\n")


@pytest.mark.parametrize("size", ["small", "paper"])
def test_every_generator_of_words_has_a_configuration(size, monkeypatch):
    found = _experiment("morphology", monkeypatch)
    for kind in ("recomb0", "recomb1", "recomb2", "recomb0v", "recomb1v", "recomb2v"):
        words = [word for word in found["settings"](kind) if word != "--set"]
        made = load_config(RecombineConfig, found["config"]("recombine", size), words)
        assert (made.prototypes, made.network.latent > 0) == (int(kind[6]), kind.endswith("v"))


def test_scripts_make_small_bundles_outside_of_tests(monkeypatch):
    monkeypatch.delenv("COMPGEN_TESTS")
    assert (exported.__wrapped__("predictor", hidden=4) / "manifest.json").is_file()


def test_the_runner_is_configured_again_where_that_failed(tmp_path):
    shutil.copy(SCRIPTS.parent / "cpp_runner" / "build.sh", tmp_path)
    said, folder = tmp_path / "said", tmp_path / "built"
    programs = {
        "fetch_headers.sh": "",
        "c++": "",
        "cmake": f"""
            mkdir -p {folder}
            echo "$1" >>{said}
            [ "$1" = -S ] || exit 0
            [ -e {folder}/CMakeCache.txt ] && touch {folder}/cmake_install.cmake && exit 0
            touch {folder}/CMakeCache.txt
            exit 1""",
    }
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [tmp_path / "build.sh", folder, sys.executable, "compgen-training"]
    codes = [subprocess.run(command, env=environment, check=False).returncode for _ in range(3)]
    assert codes == [1, 0, 0]
    assert said.read_text().split() == ["-S", "-S", "--build", "--build"]
