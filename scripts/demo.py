"""The main job on SCAN jump, by the command line: train, export, sample, train on the samples, before and after.

    python scripts/demo.py --out runs/demo

The printed lines are the commands; each can be run by hand. The two predictors differ in what they learn from alone,
and train side by side. What is done already is not done again, so an interrupted demo goes on where it stopped.

Sizes and rates are for few minutes, and were chosen where another verb is held out (`docs/notebook.md`).
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

DATA = "scan/jump"
SMALL = ["--set", "network.hidden=128", "--set", "network.encoder_hidden=64"]
LONG = ["--set", "optimisation.steps=4000", "--set", "optimisation.learning_rate=0.004"]
GENERATOR = ["--config", "recombine_small", *SMALL, *LONG]
PREDICTOR = [*SMALL, "--set", "optimisation.steps=3000", "--set", "optimisation.learning_rate=0.003"]
FILTERS = ["--filter", "novel,rare", "--prototypes", "rare", "--draws", "5000", "--vote", "--best", "1000"]


def start(threads: int, *words: str) -> subprocess.Popen[bytes]:
    """Start one command of `cgen`."""
    print("\n$ cgen", *words, flush=True)
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    return subprocess.Popen([sys.executable, "-m", "compgen", *words], env=environment)


def finish(process: subprocess.Popen[bytes]) -> None:
    """Wait for a command, and stop with its exit code if it failed."""
    if process.wait():
        raise SystemExit(process.returncode)


def train(models: dict[Path, list[str]]) -> None:
    """Train what is not there yet, side by side on two cores, from where it was interrupted."""
    running = []
    for out, words in models.items():
        if not out.exists():
            resume = ["--resume"] if out.with_name(out.name + ".partial").exists() else []
            running.append(start(2 // len(models), "train", *words, "-o", str(out), *resume))
    for process in running:
        finish(process)


def main() -> None:
    """Run the steps that are not done yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/demo"))
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    out: Path = options.out
    out.mkdir(parents=True, exist_ok=True)
    kept = out / "seed.txt"
    if kept.exists() and (of := kept.read_text().strip()) != str(options.seed):
        raise SystemExit(f"{out}: holds a demo with --seed {of}: give another --out")
    kept.write_text(f"{options.seed}\n")
    began, seed = time.monotonic(), ["--seed", str(options.seed)]
    generator, bundle, samples = out / "recomb2.pt", out / "recomb2", out / "samples.jsonl"
    before, after = out / "baseline.pt", out / "augmented.pt"

    train({generator: ["recombine", DATA, *GENERATOR, *seed]})
    if not bundle.exists():
        finish(start(2, "export", str(generator), "-o", str(bundle)))
    if not samples.exists():
        finish(start(2, "sample", str(bundle), *FILTERS, *seed, "-o", str(samples)))
    train(
        {
            before: ["seq2seq", DATA, *PREDICTOR, *seed],
            after: ["seq2seq", DATA, "--augmented", str(samples), *PREDICTOR, *seed],
        }
    )
    finish(start(2, "evaluate", str(before), str(after), DATA))
    print(f"\n{time.monotonic() - began:.0f} seconds; everything is in {out}")


if __name__ == "__main__":
    main()
