"""The main job on SCAN jump, by the command line: train, export, sample, train on the samples, before and after.

    python scripts/demo.py --out runs/demo

At last a comparison on the example questions of the documentation, tested on longer ones than training has, ends in a
report.

The printed lines are the commands; each can be run by hand. The baseline predictor trains beside the generator, one
core each. What is done already is not done again, so an interrupted demo goes on where it stopped.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

DATA = "scan/jump"
GENERATOR = ["--config", "recombine_small", "--set", "optimisation.steps=2500"]
PREDICTOR = ["--set", "optimisation.steps=2500"]
QUESTIONS = Path(__file__).parents[1] / "docs" / "examples" / "questions.tsv"
COMPARED = ["--by", "length", "--methods", "geca,csl", "--minutes", "6"]
FILTERS = ["--filter", "novel,rare", "--draws", "150000", "--vote", "--best", "1000"]


def start(threads: int, *words: str) -> subprocess.Popen[bytes]:
    """Start one command of `cgen`."""
    print("\n$ cgen", *words, flush=True)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    return subprocess.Popen([sys.executable, "-m", "compgen", *words], env=environment)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command, and stop with its exit code if it failed."""
    if process.wait():
        raise SystemExit(process.returncode)


def main() -> None:
    """Run the steps that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    generator, bundle, samples = out / "recomb2.pt", out / "recomb2", out / "samples.jsonl"
    before, after = out / "baseline.pt", out / "augmented.pt"

    running = []
    for path, words in (
        (generator, ["train", "recombine", DATA, "-o", str(generator), *GENERATOR]),
        (before, ["train", "seq2seq", DATA, "-o", str(before), *PREDICTOR]),
    ):
        if not path.exists():
            resume = ["--resume"] if path.with_name(path.name + ".partial").exists() else []
            running.append(start(1, *words, *resume))
    for process in running:
        finish(process)
    if not bundle.exists():
        finish(start(2, "export", str(generator), "-o", str(bundle)))
    if not samples.exists():
        finish(start(2, "sample", str(bundle), *FILTERS, "-o", str(samples)))
    if not after.exists():
        resume = ["--resume"] if after.with_name(after.name + ".partial").exists() else []
        words = ["train", "seq2seq", DATA, "--augmented", str(samples), "-o", str(after), *PREDICTOR]
        finish(start(1, *words, *resume))
    finish(start(2, "evaluate", str(before), str(after), DATA))
    report = out / "questions"
    finish(start(1, "compare", str(QUESTIONS), *COMPARED, "-o", str(report)))
    print(f"\n{time.monotonic() - began:.0f} seconds; everything is in {out}; open {report / 'report.html'}")


if __name__ == "__main__":
    main()
