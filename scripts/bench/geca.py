"""GECA's processor seconds and peak memory, beside those of the reference's program, on the same data and settings.

    COMPGEN_DATA=... python scripts/bench/geca.py
    COMPGEN_DATA=... python scripts/bench/geca.py --cases scan growth

Each row is one `cgen augment geca`, start, reading and writing included; where it takes several processes, seconds are
those of all, and the peak is that of the largest. The reference's figures are its own process's, measured once on
another machine (2 cores of an AMD Zen 5 EPYC), with caps of 600 s and 16 GiB. COMPGEN_DATA holds cogs/, text2sql/ and
lm/eng/; SCAN needs nothing.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import log
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset, write_dataset

DATA = Path(os.environ.get("COMPGEN_DATA", "."))
ENGLISH = ("--span", "2", "--spans", "1", "--limit", "20", "--window", "2", "--variants", "1", "--longest", "98")


@dataclass(frozen=True)
class Case:
    """One row of the table: what is run, and what the reference took."""

    name: str
    data: str
    options: tuple[str, ...]
    reference: str


def scan(_folder: Path) -> Iterator[Case]:
    """SCAN, two spans of one token."""
    options = ("--longest", "38", "-n", "1000")
    yield Case("SCAN jump", "scan/jump", options, "556 s, 16,265 MiB, not ended")
    yield Case("SCAN around right", "scan/around_right", options, "2.8 h (its author, 2019)")


def geo(folder: Path) -> Iterator[Case]:
    """GeoQuery, up to three spans of up to four tokens."""
    for form, spans, reference in (("sql", "3", "608 s, 15,958 MiB, not ended"), ("logic", "2", "30 s, 515 MiB")):
        dataset = load(f"geo/{form}-query")
        path = folder / f"geo-{form}.tsv"
        write_dataset(Dataset.from_pairs((dataset.split("train") + dataset.split("dev")).pairs()), path)
        options = ("--span", "4", "--spans", spans, "--limit", "50", "--longest", "998", "-n", "2000")
        yield Case(f"GeoQuery {form}, query split, {spans} spans", str(path), options, reference)


def cogs(_folder: Path) -> Iterator[Case]:
    """COGS's training set, 24,155 pairs, spans of up to four tokens."""
    options = ("--span", "4", "--longest", "998", "-n", "1000")
    for spans, limit, reference in (
        ("1", "50", "42 s, 1,048 MiB"),
        ("1", "", "4,000 pairs: 402 s, 12,170 MiB, not ended"),
        ("2", "50", "16,000 pairs: 422 s, 4,021 MiB"),
        ("2", "", "-"),
    ):
        limited = ("--limit", limit) if limit else ()
        name = f"COGS, {spans} span{'s' * (spans == '2')}, " + (f"limit {limit}" if limit else "no limit")
        yield Case(name, "cogs/lf", (*options, "--spans", spans, *limited), reference)


def growth(folder: Path) -> Iterator[Case]:
    """English, val and test together (1.24 million tokens), and repeated with a fifth of the tokens redrawn."""
    references = {1.24: "88 s, 2,348 MiB"}
    for millions in (1.24, 5, 20):
        path = folder / f"english-{millions}.txt"
        # In another process: what this one holds would count in the peak of those that it starts.
        with ProcessPoolExecutor(1, get_context("spawn")) as pool:
            pool.submit(write_english, path, millions).result()
        reference = references.get(millions, "-")
        yield Case(f"English, {millions} million tokens", str(path), (*ENGLISH, "-n", "5000"), reference)


def write_english(path: Path, millions: float) -> None:
    """Write some millions of tokens of English, a sentence a line."""
    parts = [read_dataset(DATA / f"lm/eng/{part}.txt.gz") for part in ("val", "test")]
    sentences = [source for part in parts for source, _ in part.pairs()]
    words, ids = np.unique([word for sentence in sentences for word in sentence], return_inverse=True)
    ends = np.cumsum([len(sentence) for sentence in sentences])
    random = np.random.default_rng(0)
    written = 0
    with path.open("w", encoding="utf-8") as file:
        while written < round(millions * 1e6, -4):
            copy = np.where(random.random(len(ids)) < (0.2 if written else 0), random.permutation(ids), ids)
            for sentence in np.split(words[copy], ends[:-1]):
                file.write(" ".join(sentence) + "\n")
                written += len(sentence)
                if written >= millions * 1e6:
                    break


CASES = {"scan": scan, "geo": geo, "cogs": cogs, "growth": growth}


def main() -> None:
    """Run the cases and print a row after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--memory", default="6", help="GiB that GECA may use")
    arguments = parser.parse_args()
    print("| data | CPU s | peak MiB of a process | reference: CPU s, peak |\n|---|---|---|---|", flush=True)
    english: list[tuple[float, float]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.cases:
            for case in CASES[name](Path(folder)):
                seconds, peak = run(case, arguments.memory, Path(folder))
                print(f"| {case.name} | {seconds:.1f} | {peak:,.0f} | {case.reference} |", flush=True)
                if name == "growth":
                    english.append((float(case.name.split()[1]), seconds))
    if len(english) > 1:
        (small, fast), (large, slow) = english[0], english[-1]
        print(f"\nGrowth from {small} to {large} million tokens: n^{log(slow / fast) / log(large / small):.2f}")


def run(case: Case, memory: str, folder: Path) -> tuple[float, float]:
    """Processor seconds and peak memory, MiB, of one run."""
    out = folder / f"out{Path(case.data).suffix or '.tsv'}"
    command = (sys.executable, "-m", "compgen", "augment", "geca", case.data, *case.options, "-o", str(out))
    process = subprocess.Popen([*command, "--memory", memory], stderr=subprocess.PIPE)
    assert process.stderr is not None
    error = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{case.name}: {error.decode()}")
    print(error.decode().replace("\n", " "), file=sys.stderr)
    scale = 1 if sys.platform == "darwin" else 1024
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * scale / 2**20


if __name__ == "__main__":
    main()
