"""StemCorrupt and the choice of what to add (Samir and Silfverberg 2023, figure 4): inflection from a hundred words.

For each language a predictor learns from SIGMORPHON's 100 words of the low setting, and from 100 words and N of 10,000
synthetic ones, chosen by a strategy; it is tested on 1,000 words whose lemmas are in none of these. Losses are those of
the predictor of the 100 words. Predictors are never selected: the last weights are tested.

A cell is a language, a seed, a way of corrupting, a strategy and a number of words. A cell that has its `result.json`
is not run again; results are lines of OUT/results.jsonl, and tables are printed after every seed and number of words.

    python scripts/experiments/inflection.py --languages georgian spanish --sizes 2048
    python scripts/experiments/inflection.py --strategies random umt+loss --kinds plain harmonic

Tables: accuracy by strategy, mean over seeds, with the 95% interval of a bootstrap over test words; and what umt+loss
gains over random beside the paper's figures, where it names them.
"""

import argparse
import json
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from cells import call, train

from compgen.augmenters.selection import STRATEGIES
from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.data.templates import tags
from compgen.data.unimorph import split_tags
from compgen.evaluation.significance import Floats, paired
from compgen.files import atomic_path

LANGUAGES = ("georgian", "spanish", "turkish", "finnish", "arabic", "bengali", "navajo")
POOL, TEST = 10_000, 1_000
KINDS: dict[str, tuple[str, ...]] = {"plain": (), "harmonic": ("--candidates", "16")}
PREDICTOR = ("--config", "transformer_small", "--set", "network.invariant_tags=true", "--threads", "1")
PAPER = {"georgian": 4.8, "turkish": -1.9, "finnish": -0.9}  # what umt+loss gains over random, in points


@dataclass(frozen=True)
class Cell:
    """One predictor; without a strategy that of the hundred words alone."""

    language: str
    seed: int
    kind: str = "plain"
    strategy: str = ""
    size: int = 0

    def folder(self, out: Path) -> Path:
        """The folder of the cell's files."""
        name = f"{self.kind}.{self.strategy}.{self.size}" if self.strategy else "gold"
        return out / f"{self.language}-{self.seed}" / name

    def run(self, out: Path) -> dict[str, Any]:
        """Run the cell, or read its result if it has been run before; return the scores."""
        folder = self.folder(out)
        result = folder / "result.json"
        if not result.exists():
            folder.mkdir(parents=True, exist_ok=True)
            data, predictor = str(words(self.language, out)), folder / "predictor.pt"
            added = ["--augmented", str(self.chosen(out))] if self.strategy else []
            train(folder, predictor, "transformer", data, *PREDICTOR, *added, "--seed", str(self.seed))
            scores = call(folder, "evaluate", str(predictor), data, "--json", "--predictions",
                          str(folder / "test.jsonl"))  # fmt: skip
            row = vars(self) | {"exact": json.loads(scores)["exact_match"]}
            if self.strategy:
                counts = Counter(tags(load(str(self.chosen(out)))))
                row |= {"templates": len(counts), "most_frequent": counts.most_common(1)[0][1] / self.size}
            with atomic_path(result) as temporary:
                temporary.write_text(json.dumps(row) + "\n")
        return dict(json.loads(result.read_text()))

    def chosen(self, out: Path) -> Path:
        """Choose the synthetic words to add, unless that is done; return their file."""
        folder = self.folder(out)
        path = folder / "chosen.jsonl"
        if not path.exists():
            gold = Cell(self.language, self.seed).folder(out) / "predictor.pt"
            losses = ["--model", str(gold)] if STRATEGIES[self.strategy].sign else []
            call(folder, "select", str(pool(self, out)), "-n", str(self.size), "--by", self.strategy, *losses,
                 "--seed", str(self.seed), "-o", str(path))  # fmt: skip
        return path

    def right(self, out: Path) -> Floats:
        """Whether each test word is predicted right, (words): 1 or 0."""
        found = load(str(self.folder(out) / "test.jsonl")).pairs()
        wanted = load(str(words(self.language, out))).split("test").pairs()
        return np.array([float(f == w) for (_, f), (_, w) in zip(found, wanted, strict=True)])


def words(language: str, out: Path) -> Path:
    """Write the hundred words, and test words of other lemmas, drawn from all of SIGMORPHON's; return the file."""
    path = out / f"{language}.tsv"
    if not path.exists():
        whole = load(f"sigmorphon/{language}")
        gold = whole.split("train-low")
        seen = {tuple(split_tags(source)[0]) for source, _ in gold.pairs()}
        others = Dataset(whole.frame.unique(["source", "target"], maintain_order=True)).pairs()
        unseen = [pair for pair in others if tuple(split_tags(pair[0])[0]) not in seen]
        drawn = np.random.default_rng(0).permutation(len(unseen))[:TEST].tolist()
        test = Dataset.from_pairs([unseen[number] for number in drawn], "test")
        write_dataset(Dataset.from_pairs(gold.pairs()) + test, path)
    return path


def pool(cell: Cell, out: Path) -> Path:
    """Make the synthetic words to choose from, unless that is done; return their file."""
    folder = out / f"{cell.language}-{cell.seed}"
    path = folder / f"{cell.kind}.jsonl"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        call(folder, "augment", "stemcorrupt", str(words(cell.language, out)), "-n", str(POOL), *KINDS[cell.kind],
             "--seed", str(cell.seed), "-o", str(path))  # fmt: skip
    return path


def tables(cells: Sequence[Cell], out: Path) -> None:
    """Print accuracies in percent, and what umt+loss gains over random."""
    languages = list(dict.fromkeys(cell.language for cell in cells))
    print("\n| words added | " + " | ".join(languages) + " |\n|---|" + "---|" * len(languages))
    for name in dict.fromkeys((cell.size, cell.kind, cell.strategy) for cell in sorted(cells, key=lambda c: c.size)):
        size, kind, strategy = name
        shown = [_accuracy([c for c in cells if (c.language, c.size, c.kind, c.strategy) == (language, *name)], out)
                 for language in languages]  # fmt: skip
        print(f"| {size} {kind} {strategy} | ".replace("| 0 plain  |", "| none |") + " | ".join(shown) + " |")
    pairs = [(c, Cell(c.language, c.seed, c.kind, "random", c.size)) for c in cells if c.strategy == "umt+loss"]
    compared = [(a, b) for a, b in pairs if b in cells]
    for kind, size in dict.fromkeys((a.kind, a.size) for a, _ in compared):
        shown = []
        for language in languages:
            mine = [(a, b) for a, b in compared if (a.language, a.kind, a.size) == (language, kind, size)]
            shown.append(_gain(mine, out) + (f" [{PAPER[language]:+.1f}]" if language in PAPER else ""))
        print(f"| umt+loss less random, {size} {kind} | " + " | ".join(shown) + " |", flush=True)


def _accuracy(cells: Sequence[Cell], out: Path) -> str:
    if not cells:
        return ""
    right = np.mean([cell.right(out) for cell in cells], axis=0)
    found = paired(right, np.zeros_like(right))
    return f"{100 * right.mean():.1f} ({100 * found.low:.1f} to {100 * found.high:.1f}, n {len(cells)})"


def _gain(pairs: Sequence[tuple[Cell, Cell]], out: Path) -> str:
    if not pairs:
        return ""
    first, second = (np.mean([pair[side].right(out) for pair in pairs], axis=0) for side in (0, 1))
    found = paired(first, second)
    return f"{100 * found.mean:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


def main() -> None:
    """Run the grid, seed by seed and the largest numbers first, and print the tables after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=LANGUAGES)
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--sizes", nargs="+", type=int, default=[2048, 512, 128])
    parser.add_argument("--strategies", nargs="+", default=["random", "umt+loss"], choices=[*STRATEGIES, "all"])
    parser.add_argument("--kinds", nargs="+", default=["plain"], choices=list(KINDS))
    parser.add_argument("--out", type=Path, default=Path("runs/inflection"))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, one CPU thread each")
    options = parser.parse_args()
    strategies = list(STRATEGIES) if "all" in options.strategies else options.strategies
    options.out.mkdir(parents=True, exist_ok=True)
    for language in options.languages:
        words(language, options.out)
    done: list[Cell] = []
    with ThreadPoolExecutor(options.jobs) as workers:
        for seed in options.seeds:
            golds = [Cell(language, seed) for language in options.languages]
            list(workers.map(lambda cell: cell.run(options.out), golds))
            pools = [Cell(language, seed, kind) for language in options.languages for kind in options.kinds]
            list(workers.map(lambda cell: pool(cell, options.out), pools))
            done += golds
            for size in options.sizes:
                cells = [Cell(language, seed, kind, strategy, size) for strategy in strategies
                         for kind in options.kinds for language in options.languages]  # fmt: skip
                list(workers.map(lambda cell: cell.run(options.out), cells))
                done += cells
                with atomic_path(options.out / "results.jsonl") as temporary:
                    found = sorted(options.out.glob("*/*/result.json"))
                    temporary.write_text("".join(path.read_text() for path in found))
                tables(done, options.out)


if __name__ == "__main__":
    main()
