"""R&R on SCAN (table 1 of the paper): each cell trains a generator, samples it, trains a predictor, evaluates on test.

A cell is a folder under --out with its checkpoints, samples and `result.json`; a cell that has its result is not run
again, so an interrupted grid goes on where it stopped. Everything goes through the `compgen` command, so every step
can be repeated by hand from the printed lines. Predictors are never selected: the last weights are tested.

    python scripts/experiments/scan.py --splits jump around_right --seeds 0 1 2
    python scripts/experiments/scan.py --splits jump --seeds 0 --variant nocopy
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from compgen.data.catalog import load
from compgen.data.scan import interpret
from compgen.errors import DataError

SPLITS = {"jump": "recombine_small", "around_right": "recombine_small_around_right"}  # and their configurations
# Samples are new on both sides, and on jump hold a token that few distinct training examples hold (on around right
# every token is frequent). None of this names the word or the phrase that is tested.
SAMPLING = {
    "jump": ["--filter", "novel,rare", "--draws", "150000", "--vote", "--best", "1000"],
    "around_right": ["--filter", "novel", "--draws", "300000", "--vote", "--best", "300"],
}
# Few augmented examples are drawn more often than their number (p_aug), as in the paper.
MIXTURE = {"jump": [], "around_right": ["--set", "p_aug=0.1"]}
VARIANTS = {
    "baseline": None,
    "recomb2": [],
    "recomb1": ["--set", "prototypes=1"],
    "nocopy": ["--set", "network.copying=false", "--set", "network.token_dropout=0.0", "--set", "unknown_below=0"],
}


@dataclass(frozen=True)
class Cell:
    """One run of one variant on one split with one seed."""

    split: str
    variant: str
    seed: int

    def run(self, out: Path, extra: list[str]) -> dict[str, float]:
        """Train, sample, train, evaluate; the result is also written to the cell's folder."""
        folder = out / f"{self.split}-{self.variant}-{self.seed}"
        result = folder / "result.json"
        if result.exists():
            return dict(json.loads(result.read_text()))
        folder.mkdir(parents=True, exist_ok=True)
        data, seed = f"scan/{self.split}", ["--seed", str(self.seed)]
        began = time.monotonic()
        row: dict[str, float] = {}
        augmented: list[str] = []
        settings = VARIANTS[self.variant]
        if settings is not None:
            generator, samples = folder / "generator.pt", folder / "samples.jsonl"
            if not generator.exists():
                resume = ["--resume"] if generator.with_name("generator.pt.partial").exists() else []
                config = ["--config", SPLITS[self.split], *settings]
                call(folder, "train", "recombine", data, "-o", str(generator), *config, *seed, *resume)
            row["generator_seconds"] = time.monotonic() - began
            if not samples.exists():
                call(folder, "sample", str(generator), "-o", str(samples), *SAMPLING[self.split], *seed, check=False)
            row |= sample_quality(samples) if samples.exists() else {"samples": 0}
            augmented = ["--augmented", str(samples), *MIXTURE[self.split]] if samples.exists() else []
        predictor = folder / "predictor.pt"
        if not predictor.exists():
            resume = ["--resume"] if predictor.with_name("predictor.pt.partial").exists() else []
            call(folder, "train", "seq2seq", data, "-o", str(predictor), *augmented, *extra, *seed, *resume)
        scored = json.loads(call(folder, "evaluate", str(predictor), data, "--json"))
        row |= {"exact_match": scored["exact_match"], "f1": scored["f1"], "seconds": time.monotonic() - began}
        result.write_text(json.dumps(row, indent=1) + "\n")
        return row


def call(folder: Path, *words: str, check: bool = True) -> str:
    """Run one compgen command, its talk going to the cell's log; returns what it printed."""
    print("compgen", *words, file=sys.stderr, flush=True)
    environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    with (folder / "log.txt").open("a") as log:
        command = [sys.executable, "-m", "compgen", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, check=False)
    if check and done.returncode:
        raise SystemExit(f"compgen {' '.join(words)} failed; see {folder / 'log.txt'}")
    return done.stdout


def sample_quality(path: Path) -> dict[str, float]:
    """How many samples are commands of SCAN, and how many of those are answered rightly (for the record only)."""
    pairs = load(str(path)).pairs()
    commands = right = 0
    for source, target in pairs:
        try:
            right += interpret(source) == target
            commands += 1
        except DataError:
            continue
    return {"samples": len(pairs), "samples_commands": commands, "samples_right": right}


def main() -> None:
    """Run the grid, cells side by side, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--splits", nargs="+", default=list(SPLITS), choices=list(SPLITS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--variant", nargs="+", default=["baseline", "recomb2"], choices=list(VARIANTS))
    parser.add_argument("--out", type=Path, default=Path("runs/scan"))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, one CPU thread each")
    parser.add_argument("--predictor", nargs="*", default=[], help="further options of `compgen train seq2seq`")
    options = parser.parse_args()
    cells = [Cell(s, v, seed) for seed in options.seeds for s in options.splits for v in options.variant]
    with ThreadPoolExecutor(options.jobs) as pool:
        rows = dict(zip(cells, pool.map(lambda cell: cell.run(options.out, options.predictor), cells), strict=True))
    print("| split | variant | seeds | exact match | each | samples right / commands / all | minutes a seed |")
    print("|---|---|---|---|---|---|---|")
    for split in options.splits:
        for variant in options.variant:
            got = [rows[Cell(split, variant, seed)] for seed in options.seeds]
            exact = [row["exact_match"] for row in got]
            spread = f" ± {stdev(exact):.3f}" if len(exact) > 1 else ""
            quality = ", ".join(
                f"{row.get('samples_right', 0)} / {row.get('samples_commands', 0)} / {row['samples']}"
                for row in got
                if "samples" in row
            )
            minutes = mean(row["seconds"] for row in got) / 60
            each = " ".join(f"{value:.4f}" for value in exact)
            print(
                f"| {split} | {variant} | {len(got)} | {mean(exact):.3f}{spread} | {each} | {quality} | {minutes:.1f} |"
            )


if __name__ == "__main__":
    main()
