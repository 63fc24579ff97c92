"""Few-shot morphological analysis (R&R, tables 2 to 8): a cell is a language, a number of hints, a seed and a method.

A cell trains a predictor of lemma and tags from forms on the split's 1,000 words and what the method adds to them, and
tests it on past, future and other forms. A cell that has its `result.json` is not run again, generators are shared by
the cells that need them, and each result is a line of OUT/SIZE/results.jsonl. All seeds of a method stand in one row
of the table, which is printed with the paper's figures after every seed; so an interrupted grid has a table, too.

    python scripts/experiments/morphology.py --seeds 0 1
    python scripts/experiments/morphology.py --size paper --hints 4 8 16 --seeds 0 1 2 3 4 --method all

Predictors are never selected: the last weights are tested. Needs SIGMORPHON 2018 (`compgen data list` says where).
"""

import argparse
import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from random import Random
from statistics import mean, stdev

from cells import call, train

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.data.unimorph import rare_tags, split_tags
from compgen.evaluation.metrics import score
from compgen.files import atomic_path

LANGUAGES = ("spanish", "swahili", "turkish")
PARTS = ("past", "future", "other")
SAMPLES = 180  # added to training (R&R, appendix B)
COPIES = 22  # of each rare word, in the row that adds nothing new (the reference)
GECA = ("--span", "5", "--spans", "2", "--novelty", "source")
UNIT = "analysis-words"  # as the paper's tables count

# What the paper has, by hints, method and language: F1 of future and past together, and of other forms (table 2).
PAPER = {
    (8, "baseline"): ((0.66, 0.88), (0.75, 0.90), (0.69, 0.85)),
    (8, "baseline+r"): ((0.65, 0.88), (0.77, 0.90), (0.69, 0.84)),
    (8, "geca"): ((0.66, 0.88), (0.76, 0.90), (0.69, 0.87)),
    (8, "geca+r"): ((0.72, 0.88), (0.81, 0.89), (0.75, 0.85)),
    (8, "recomb0"): ((0.66, 0.88), (0.77, 0.90), (0.70, 0.87)),
    (8, "recomb0+r"): ((0.70, 0.86), (0.84, 0.90), (0.73, 0.85)),
    (8, "recomb1+r"): ((0.72, 0.87), (0.85, 0.90), (0.77, 0.87)),
    (8, "recomb2+r"): ((0.71, 0.87), (0.82, 0.90), (0.75, 0.86)),
    (8, "geca+recomb1+r"): ((0.74, 0.86), (0.85, 0.89), (0.79, 0.84)),
}
METHODS = ("baseline", "recomb1+r", "geca+r", "baseline+r", "geca", "recomb0", "recomb0+r", "recomb1", "recomb2",
           "recomb2+r", "geca+recomb1+r")  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One predictor."""

    language: str
    hints: int
    seed: int
    method: str

    @property
    def data(self) -> str:
        """The name of its split."""
        return f"{self.language}.hints-{self.hints}.seed-{self.seed}"

    def run(self, out: Path, size: str) -> dict[str, object]:
        """What it comes to; kept in its folder."""
        folder = out / f"{self.data}.{self.method}"
        result = folder / "result.json"
        if not result.exists():
            folder.mkdir(parents=True, exist_ok=True)
            split = load(str(out / "splits" / f"{self.data}.tsv"))
            write_dataset(split.swapped(), folder / "analysis.tsv")
            added = self.added(split.split("train"), out, folder)
            words = ["seq2seq", str(folder / "analysis.tsv"), "--config", config("seq2seq", size)]
            if len(added):
                write_dataset(added.swapped(), folder / "added.tsv")
                words += ["--augmented", str(folder / "added.tsv")]
            train(folder, folder / "predictor.pt", *words, "--seed", str(self.seed))
            row = vars(self) | {"size": size, "added": len(added)} | self.scores(split, folder)
            with atomic_path(result) as temporary:
                temporary.write_text(json.dumps(row) + "\n")
        return dict(json.loads(result.read_text()))

    def added(self, words: Dataset, out: Path, folder: Path) -> Dataset:
        """The examples of inflection that its method adds to the training words."""
        sources = self.method.removesuffix("+r").split("+")
        rare = rare_tags(words) if self.method.endswith("+r") else []
        if sources == ["baseline"]:
            copies = [pair for pair in words.pairs() if set(rare) & set(pair[0])]
            return Dataset.from_pairs(copies * COPIES)
        added = Dataset.from_pairs([])
        for source in sources:
            make = self.by_geca if source == "geca" else partial(self.sampled, source)
            added += make(out, rare, folder)
        return added

    def by_geca(self, out: Path, rare: Sequence[str], folder: Path) -> Dataset:
        """New words by GECA, those with a rare tag if there are rare tags given."""
        path = folder / "geca.tsv"
        data = str(out / "splits" / f"{self.data}.tsv")
        call(folder, "augment", "geca", data, *GECA, "--seed", str(self.seed), "-o", str(path))
        pairs = [pair for pair in load(str(path)).pairs() if not rare or set(rare) & set(pair[0])]
        return Dataset.from_pairs(Random(self.seed).sample(pairs, min(SAMPLES, len(pairs))))

    def sampled(self, kind: str, out: Path, rare: Sequence[str], folder: Path) -> Dataset:
        """Samples of a generator, which is there already."""
        path = folder / f"{kind}.jsonl"
        named = [word for tag in rare for word in ("--rare-token", tag)]
        filters = "novel,unique,rare" if rare else "novel,unique"
        call(
            folder, "sample", str(generator_path(self, kind, out)), "-n", str(SAMPLES), "--filter", filters, *named,
            "--novelty", "source", "--seed", str(self.seed), "--workers", "1", "-o", str(path),
        )  # fmt: skip
        return load(str(path))

    def scores(self, split: Dataset, folder: Path) -> dict[str, object]:
        """Exact match and F1 of each part, and of the words in it whose tags, in order, training does not have."""
        seen = {tuple(split_tags(source)[1]) for source, _ in split.split("train").pairs()}
        row: dict[str, object] = {}
        for part in PARTS:
            path = folder / f"{part}.jsonl"
            call(folder, "evaluate", str(folder / "predictor.pt"), str(folder / "analysis.tsv"), "--split", part,
                 "--predictions", str(path))  # fmt: skip
            predicted = [target for _, target in load(str(path)).pairs()]
            wanted = [source for source, _ in split.split(part).pairs()]
            rows = list(zip(predicted, wanted, strict=True))
            novel = [pair for pair in rows if tuple(split_tags(pair[1])[1]) not in seen]
            for name, pairs in ((part, rows), (f"{part} novel", novel)):
                if pairs:
                    found = score([p for p, _ in pairs], [w for _, w in pairs], unit=UNIT)
                    row |= {name: {"n": len(pairs), "exact": found.exact_match, "f1": found.f1}}
        return row


def generator_path(cell: Cell, kind: str, out: Path) -> Path:
    """Where a cell's generator is: one for all methods."""
    return out / "generators" / f"{cell.data}.{kind}.pt"


def make_generator(cell: Cell, kind: str, out: Path, size: str) -> None:
    """Train a generator unless it is there."""
    path = generator_path(cell, kind, out)
    folder = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    n = kind.removeprefix("recomb")
    more = ["--set", f"prototypes={n}"]
    if n == "0":
        more += ["--set", "network.initial=zeros", "--set", "network.feed=false"]
    data = str(out / "splits" / f"{cell.data}.tsv")
    train(folder, path, "recombine", data, "--config", config("recombine", size), *more, "--seed", str(cell.seed))


def config(kind: str, size: str) -> str:
    """The shipped configuration of a size."""
    return f"{kind}_morphology" + ("_small" if size == "small" else "")


def table(rows: Sequence[dict[str, object]], hints: int, methods: Sequence[str], languages: Sequence[str]) -> None:
    """Print F1 by method and language: future and past, other; the mean over seeds, its spread, and the paper's."""
    print(f"\n| {hints} hints | " + " | ".join(f"{language}: FUT+PST, OTHER | paper" for language in languages) + " |")
    print("|---|" + "---|---|" * len(languages))
    for method in methods:
        cells = []
        for language in languages:
            mine = [r for r in rows if (r["language"], r["hints"], r["method"]) == (language, hints, method)]
            if mine:
                hard = [(_f1(r, "past") + _f1(r, "future")) / 2 for r in mine]
                cells += [f"{_spread(hard)}, {_spread([_f1(r, 'other') for r in mine])} (n {len(mine)})"]
            else:
                cells += [""]
            paper = PAPER.get((hints, method))
            cells += [
                f"{paper[LANGUAGES.index(language)][0]:.2f}, {paper[LANGUAGES.index(language)][1]:.2f}" if paper else ""
            ]
        if any(cells[::2]):
            print(f"| {method} | " + " | ".join(cells) + " |", flush=True)


def _f1(row: dict[str, object], part: str) -> float:
    found = row[part]
    assert isinstance(found, dict)
    return float(found["f1"])


def _spread(values: Sequence[float]) -> str:
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def main() -> None:
    """Run the grid, seed by seed, and print the table after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=LANGUAGES)
    parser.add_argument("--hints", nargs="+", type=int, default=[8], choices=[4, 8, 16])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], choices=range(5))
    parser.add_argument("--method", nargs="+", default=list(METHODS[:3]), choices=[*METHODS, "all"])
    parser.add_argument("--size", default="small", choices=["small", "paper"], help="paper: 1,024 units, for a GPU")
    parser.add_argument("--out", type=Path, default=Path("runs/morphology"))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, one CPU thread each")
    options = parser.parse_args()
    methods = list(METHODS) if "all" in options.method else options.method
    out = options.out / options.size  # nothing of one size is taken for the other
    splits = out / "splits"
    splits.mkdir(parents=True, exist_ok=True)
    for language in options.languages:
        if not all((splits / f"{language}.hints-{count}.seed-4.tsv").exists() for count in options.hints):
            asked = [word for count in options.hints for word in ("--hints", str(count))]
            call(splits, "data", "split", "few-shot", f"sigmorphon/{language}", *asked, "-o", str(splits))
    rows: list[dict[str, object]] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for hints in options.hints:
            for seed in options.seeds:
                cells = [Cell(la, hints, seed, method) for method in methods for la in options.languages]
                kinds = sorted({(c, k) for c in cells for k in c.method.split("+") if k.startswith("recomb")}, key=str)
                made = {generator_path(c, k, out): (c, k) for c, k in kinds}
                list(pool.map(lambda one: make_generator(*one, out, options.size), made.values()))
                rows += pool.map(lambda cell: cell.run(out, options.size), cells)
                with atomic_path(out / "results.jsonl") as temporary:
                    temporary.write_text("".join(path.read_text() for path in sorted(out.glob("*/result.json"))))
                table(rows, hints, methods, options.languages)


if __name__ == "__main__":
    main()
