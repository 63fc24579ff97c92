"""Gives each reader of the C++ programs inputs without end, by libFuzzer, under address and undefined sanitizers.

    python scripts/fuzz.py                                  # ten seconds a reader
    python scripts/fuzz.py --seconds 600 --of bundle,binary
    python scripts/fuzz.py --build                          # build/fuzz and build/fuzz-lm, which needs clang

A reader takes an input, or refuses it by its one kind of error. All else fails this test: another exception, a
sanitizer's report, ten seconds, a gigabyte, or an answer that is not what it must be (cpp_runner/fuzz). What fails is
kept in build/fuzz/faults; `build/fuzz/fuzz READER FILE` reads it again. What was found goes to
cpp_runner/fuzz/found/READER, which the tests read.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RUNNER = ["json", "arrays", "pool", "graph", "rules", "targets", "text", "sources", "gzip", "line", "run", "bundle"]
MODELS = ["mixture", "sentences", "binary", "arpa"]
LONGEST, MEMORY = 10, 1024  # seconds and megabytes for an input
LARGEST = {"bundle": 16384, "graph": 4096, "binary": 8192, "arpa": 4096, "arrays": 4096}  # bytes of an input; else MOST
MOST = 1024
SANITIZERS = {
    "ASAN_OPTIONS": "quarantine_size_mb=16:malloc_context_size=1:allocator_may_return_null=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}
FIGURES = {"inputs": r"number_of_executed_units: (\d+)", "a second": r"average_exec_per_sec: +(\d+)"}


def build(folder: Path, jobs: int) -> None:
    """Build `fuzz` for the runner's readers, and for those of language models where KenLM's sources can be had."""
    compiler = ["-DCMAKE_CXX_COMPILER=clang++", "-DCMAKE_C_COMPILER=clang", "-DCOMPGEN_FUZZ=ON"]
    runner = ["-DCMAKE_DISABLE_FIND_PACKAGE_Torch=ON", *compiler]
    subprocess.run([ROOT / "cpp_runner" / "fetch_headers.sh"], check=True)
    _make(ROOT / "cpp_runner", folder, jobs, runner)
    build_models(folder.with_name(folder.name + "-lm"), jobs, compiler)


def build_models(folder: Path, jobs: int, options: list[str]) -> None:
    """Build the programs of cpp_runner/fuzz/lm with the sources that `cgen lm install` takes."""
    from compgen.lm import install

    with tempfile.TemporaryDirectory() as name:
        sources = folder / "sources"
        if not sources.exists():
            shutil.copytree(install._sources(Path(name)), sources)
            shutil.copytree(install._json(Path(name)), folder / "json")
    options = [f"-DKENLM={sources}", f"-DJSON={folder / 'json'}", *options]
    _make(ROOT / "cpp_runner" / "fuzz" / "lm", folder, jobs, options)


def _make(source: Path, folder: Path, jobs: int, options: list[str]) -> None:
    target = "fuzz" if "-DCOMPGEN_FUZZ=ON" in options else "replay"
    subprocess.run(["cmake", "-S", source, "-B", folder, *options], check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", folder, "-j", str(jobs), "--target", target], check=True)


def program_of(reader: str, folder: Path) -> Path:
    """The program that has a reader."""
    return (folder.with_name(folder.name + "-lm") if reader in MODELS else folder) / "fuzz"


def fuzz(reader: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run a reader for so long, or until it fails; figures of the run."""
    corpus, faults, log = folder / "corpus" / reader, folder / "faults", folder / f"{reader}.log"
    corpus.mkdir(parents=True, exist_ok=True)
    faults.mkdir(exist_ok=True)
    command = [program_of(reader, folder), reader, f"-seed={options.seed}", "-print_final_stats=1"]
    command += [f"-max_total_time={options.seconds}", f"-runs={options.inputs or -1}", "-reload=0"]
    command += [f"-timeout={LONGEST}", f"-rss_limit_mb={MEMORY}", f"-max_len={LARGEST.get(reader, MOST)}"]
    command += [f"-artifact_prefix={faults}/{reader}-", corpus, folder / "seeds" / reader]
    began = time.monotonic()
    with log.open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=out, env=os.environ | SANITIZERS, check=False)
    said = log.read_text("utf-8", "replace")
    found: dict[str, Any] = {"reader": reader, "seed": options.seed, "seconds": round(time.monotonic() - began)}
    for name, pattern in FIGURES.items():
        places = re.findall(pattern, said)
        found[name] = int(places[-1]) if places else 0
    found["corpus"] = sum(1 for _ in corpus.iterdir())
    what = re.search(r"does not hold: .*|runtime error: .*|ERROR: .*|what\(\): .*", said)
    found["fault"] = (what[0] if what else f"exit code {done.returncode}") if done.returncode else ""
    return found


def main() -> None:
    """Build, make seeds, run readers one after another."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--build", action="store_true", help="build and make seeds first")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--of", default=",".join(RUNNER + MODELS), help="readers, with commas between them")
    parser.add_argument("--seconds", type=int, default=10, help="for each reader")
    parser.add_argument("--inputs", type=int, default=0, help="for each reader; by default as many as the time allows")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, help="where figures go, a line a reader, behind those that are there")
    options = parser.parse_args()
    if options.build:
        if shutil.which("clang++") is None:
            sys.exit("no clang++: on Debian, apt-get install clang libclang-rt-14-dev llvm")
        build(options.folder, options.jobs)
        subprocess.run([sys.executable, ROOT / "scripts" / "fuzz_seeds.py", options.folder / "seeds"], check=True)
    failed = False
    for reader in options.of.split(","):
        if not program_of(reader, options.folder).exists():
            print(f"{reader}: no {program_of(reader, options.folder)}: --build makes it", flush=True)
            continue
        found = fuzz(reader, options.folder, options)
        failed = failed or bool(found["fault"])
        print(json.dumps(found), flush=True)
        if options.out:
            with options.out.open("a") as out:
                out.write(json.dumps(found) + "\n")
    sys.exit(failed)


if __name__ == "__main__":
    main()
