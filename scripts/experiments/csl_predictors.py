"""Predictors trained from scratch with CSL's samples (Qiu et al. 2022, table 1), and the same without them.

For each split a grammar is trained, sampled, and a predictor learns from the training data and the samples; then from
the training data alone. Predictors are never selected: the last weights are tested. A cell that has its `result.json`
is not run again. All splits of SCAN have one configuration, and those of GeoQuery another.

    python scripts/experiments/csl_predictors.py length turn_left jump mcd1 mcd2 mcd3 around_right
    python scripts/experiments/csl_predictors.py standard template1 tmcd1 length_geo --seeds 0 1

Each line: exact match with samples, and without; the paper's T5-Base with and without; test examples among the samples.
"""

import argparse
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from cells import call, settings, train
from csl import SCAN, SPLITS, parts

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.files import atomic_path


@dataclass(frozen=True)
class Kind:
    """The settings for all splits of a data set."""

    grammar: tuple[str, ...]
    sampling: tuple[str, ...]
    predictor: tuple[str, ...]
    p_aug: str


# Samples of SCAN are distinct, as what is rare has to be learned as well. They are enough to do without dropout. Those
# of COGS are from a flat distribution, as some of its words are in one training sentence only.
KINDS = {
    "scan": Kind(
        ("--config", "csl_scan_companions"),
        ("--draws", "1000000", "--filter", "unique"),
        settings(optimisation__steps=16000, network__embedding_dropout=0.0, network__output_dropout=0.0),
        "0.8",
    ),
    "geoquery": Kind(
        ("--config", "csl_geoquery"),
        ("--draws", "100000"),
        settings(optimisation__steps=3000, network__embedding_dropout=0.5, network__output_dropout=0.5),
        "0.5",
    ),
    "cogs": Kind(
        ("--config", "csl_cogs"),
        ("--draws", "500000", "--temperature", "2", "--filter", "unique"),
        settings(
            optimisation__steps=10000,
            network__copying="true",
            network__token_dropout=0.02,
            network__write_dropout=0.5,
        ),
        "0.8",
    ),
}
# T5-Base with CSL's samples, and without; template and TMCD are means over three splits.
PAPER = {
    "jump": "99.7, 99.5", "turn_left": "100, 62.0", "length": "99.2, 14.4", "mcd": "99.4, 15.4",
    "standard": "93.3, 92.9", "template": "89.3, 84.8", "tmcd": "74.9, 69.2", "length_geo": "67.8, 41.8",
    "cogs": "99.5, 89.8",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A predictor: with samples, or without."""

    split: str
    augmented: bool
    seed: int

    def run(self, out: Path) -> dict[str, float]:
        """Run the cell, or read its result if it has been run before; return the scores."""
        folder = out / f"{self.split}-{'csl' if self.augmented else 'none'}-{self.seed}"
        result = folder / "result.json"
        if not result.exists():
            folder.mkdir(parents=True, exist_ok=True)
            kind, data, predictor = kind_of(self.split), str(data_of(self.split, out)), folder / "predictor.pt"
            row: dict[str, float] = {}
            words: tuple[str, ...] = ()
            if self.augmented:
                samples = self.samples(folder, kind, data)
                words = ("--augmented", str(samples), "--set", f"p_aug={kind.p_aug}")
                row["among_samples"] = shared(data, samples)
            train(folder, predictor, "seq2seq", data, *kind.predictor, *words, "--threads", "1", "--seed",
                  str(self.seed))  # fmt: skip
            row["exact"] = json.loads(call(folder, "evaluate", str(predictor), data, "--json"))["exact_match"]
            with atomic_path(result) as temporary:
                temporary.write_text(json.dumps(vars(self) | row) + "\n")
        return dict(json.loads(result.read_text()))

    def samples(self, folder: Path, kind: Kind, data: str) -> Path:
        """Train a grammar and sample it, unless that is done; return the file of samples."""
        grammar, samples, seed = folder / "csl.grammar", folder / "samples.tsv", str(self.seed)
        if not samples.exists():
            call(folder, "train", "csl", data, *kind.grammar, "--seed", seed, "-o", str(grammar))
            call(folder, "sample", str(grammar), *kind.sampling, "--seed", seed, "-o", str(samples))
        return samples


def kind_of(split: str) -> Kind:
    """The settings for a split."""
    return KINDS["scan" if split in SCAN else "cogs" if split == "cogs" else "geoquery"]


def data_of(split: str, out: Path) -> Path:
    """The split's training and test examples, in one file."""
    path = out / f"{split}.jsonl"
    if not path.exists():
        train_part, test = parts(split)
        out.mkdir(parents=True, exist_ok=True)
        write_dataset(Dataset.from_pairs(train_part.pairs()) + Dataset.from_pairs(test.pairs(), "test"), path)
    return path


def shared(data: str, samples: Path) -> float:
    """The share of test examples that are among the samples."""
    drawn = {str(pair) for pair in load(str(samples)).pairs()}
    test = load(data).split("test").pairs()
    return sum(str(pair) in drawn for pair in test) / len(test)


def main() -> None:
    """Print the table, split by split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("splits", nargs="*", default=[*SPLITS], metavar="SPLIT", help="by default all")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--without", action=argparse.BooleanOptionalAction, default=True, help="also without samples")
    parser.add_argument("--out", type=Path, default=Path("runs/csl"))
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, one CPU thread each")
    options = parser.parse_args()
    if unknown := set(options.splits) - {*SPLITS}:
        raise SystemExit(f"no split {min(unknown)}: expected some of {', '.join(SPLITS)}")
    print("| split | with samples | without | T5 with, without | test among samples |\n|---|---|---|---|---|")
    for split in options.splits:
        data_of(split, options.out)
        ways = (True, False) if options.without else (True,)
        cells = [Cell(split, way, seed) for seed in options.seeds for way in ways]
        with ThreadPoolExecutor(options.jobs) as workers:
            rows = list(workers.map(lambda cell: cell.run(options.out), cells))
        both = [[100 * row["exact"] for row in rows if row["augmented"] == way] for way in (True, False)]
        among = mean(row["among_samples"] for row in rows if row["augmented"])
        paper = PAPER.get(split, PAPER.get(split.rstrip("123"), ""))
        print(f"| {split} | {spread(both[0])} | {spread(both[1])} | {paper} | {100 * among:.0f} |", flush=True)


def spread(values: list[float]) -> str:
    """Mean, standard deviation and number."""
    if len(values) < 2:
        return f"{values[0]:.1f} (n 1)" if values else ""
    return f"{mean(values):.1f} ± {stdev(values):.1f} (n {len(values)})"


if __name__ == "__main__":
    main()
