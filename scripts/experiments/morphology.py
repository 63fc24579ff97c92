"""Few-shot morphological analysis (R&R, tables 2 to 11): a cell is a language, a number of hints, a seed and a method.

A cell trains a predictor of lemma and tags from forms on the split's 1,000 words and what the method adds to them, and
tests it on past, future and other forms. A cell that has its `result.json` is not run again, generators are shared by
the cells that need them, and each result is a line of OUT/SIZE/results.jsonl. All seeds of a method stand in one row
of the tables, which are printed with the paper's figures after every seed; so an interrupted grid has tables, too.

    python scripts/experiments/morphology.py --seeds 0 1
    python scripts/experiments/morphology.py --table 4 --size paper --seeds 0 1 2 3 4

The paper's tables: 2 (F1, and of unseen tags), 5 (exact match), 6 (latent edit vectors) and 9 to 11 (significance) with
8 hints, 3 and 4 with 4, 7 and 8 with 16. Predictors are never selected: the last weights are tested. Needs SIGMORPHON
2018 (`cgen data list` says where).
"""

import argparse
import csv
import json
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from random import Random
from statistics import mean, stdev
from typing import Any

import numpy as np
from cells import call, train

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.data.unimorph import split_tags
from compgen.evaluation.metrics import item_f1, score
from compgen.evaluation.significance import Floats, compare
from compgen.files import atomic_path

LANGUAGES = ("spanish", "swahili", "turkish")
PARTS = ("past", "future", "other")
SAMPLES = 180  # added to training (R&R, appendix B)
COPIES = 22  # of each rare word, in the row that adds nothing new (the reference)
GECA = ("--span", "5", "--spans", "2", "--novelty", "source")
LATENT = ["--set", "network.latent=2"]  # for methods with a "v"; other settings of the latent vector are the paper's
UNIT = "analysis-words"  # as the paper's tables count

METHODS = ("baseline", "recomb1+r", "geca+r", "baseline+r", "geca", "recomb0", "recomb0+r", "recomb1", "recomb2",
           "recomb2+r", "geca+recomb1+r", "recomb0v+r", "recomb1v+r", "recomb2v+r")  # fmt: skip
PLAIN = [method for method in METHODS if "v" not in method and method not in ("baseline+r", "geca+recomb1+r")]
# The paper's tables: hints, methods, and what is printed.
TABLES: dict[int, tuple[int, list[str], tuple[str, ...]]] = {
    2: (8, [*PLAIN, "baseline+r", "geca+recomb1+r"], ("f1", "f1 novel")),
    3: (4, PLAIN, ("exact",)),
    4: (4, PLAIN, ("f1",)),
    5: (8, PLAIN, ("exact",)),
    6: (8, ["recomb0v+r", "recomb1v+r", "recomb2v+r"], ("f1",)),
    7: (16, PLAIN, ("exact",)),
    8: (16, PLAIN, ("f1",)),
    9: (8, PLAIN, ("p",)),
    10: (8, PLAIN, ("p",)),
    11: (8, PLAIN, ("p",)),
}
OF_ONE_LANGUAGE = {9: "turkish", 10: "spanish", 11: "swahili"}
Rows = Sequence[dict[str, Any]]


def rare_tags(words: Dataset, least: int = 2, most: int = 20) -> list[str]:
    """Return the tags in `least` to `most` examples of inflection; the defaults are those of R&R's reference."""
    held = Counter(tag for source, _ in words.pairs() for tag in set(split_tags(source)[1]))
    rare = sorted(tag for tag, count in held.items() if least <= count <= most and tag[0].isupper())
    if not rare:
        sys.exit(f"no tag is rare: each is in fewer than {least} of {len(words):,} words or in more than {most}")
    return rare


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

    def run(self, out: Path, size: str) -> dict[str, Any]:
        """Run the cell, or read its result if it has been run before; return the scores."""
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
        """New words by GECA; if rare tags are given, only words that have one."""
        path = folder / "geca.tsv"
        data = str(out / "splits" / f"{self.data}.tsv")
        call(folder, "augment", "geca", data, *GECA, "--seed", str(self.seed), "-o", str(path))
        pairs = [pair for pair in load(str(path)).pairs() if not rare or set(rare) & set(pair[0])]
        return Dataset.from_pairs(Random(self.seed).sample(pairs, min(SAMPLES, len(pairs))))

    def sampled(self, kind: str, out: Path, rare: Sequence[str], folder: Path) -> Dataset:
        """Samples of a generator that is trained."""
        path = folder / f"{kind}.jsonl"
        named = [word for tag in rare for word in ("--rare-token", tag)]
        filters = "novel,unique,rare" if rare else "novel,unique"
        call(
            folder, "sample", str(generator_path(self, kind, out)), "-n", str(SAMPLES), "--filter", filters, *named,
            "--novelty", "source", "--seed", str(self.seed), "--workers", "1", "-o", str(path),
        )  # fmt: skip
        return load(str(path))

    def item_scores(self, out: Path) -> Floats:
        """F1 of each past and future form, for tests of significance."""
        split = load(str(out / "splits" / f"{self.data}.tsv"))
        found = []
        for part in PARTS[:2]:
            predicted = load(str(out / f"{self.data}.{self.method}" / f"{part}.jsonl")).pairs()
            wanted = split.split(part).pairs()
            found += [item_f1(p, w, UNIT) for (_, p), (w, _) in zip(predicted, wanted, strict=True)]
        return np.array(found)

    def scores(self, split: Dataset, folder: Path) -> dict[str, Any]:
        """Exact match and F1 of each part, and of the words in it whose tags, in order, training does not have."""
        seen = {tuple(split_tags(source)[1]) for source, _ in split.split("train").pairs()}
        row: dict[str, Any] = {}
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
    """The path of a cell's generator, which all methods that need it share."""
    return out / "generators" / f"{cell.data}.{kind}.pt"


def make_generator(cell: Cell, kind: str, out: Path, size: str) -> None:
    """Train a generator, unless that is done."""
    path = generator_path(cell, kind, out)
    folder = path.parent
    folder.mkdir(parents=True, exist_ok=True)
    data = str(out / "splits" / f"{cell.data}.tsv")
    words = ("--config", config("recombine", size), *settings(kind), "--seed", str(cell.seed))
    train(folder, path, "recombine", data, *words)


def settings(kind: str) -> list[str]:
    """The options that a kind of generator is trained with, in addition to its configuration."""
    n = kind.removeprefix("recomb").removesuffix("v")
    found = ["--set", f"prototypes={n}"] + (LATENT if kind.endswith("v") else [])
    return found + ["--set", "network.initial=zeros", "--set", "network.feed=false"] * (n == "0")


def config(kind: str, size: str) -> str:
    """The shipped configuration of a size."""
    return f"{kind}_morphology" + ("_small" if size == "small" else "")


def tables(cells: Sequence[Cell], rows: Rows, measures: Sequence[str], out: Path) -> None:
    """Print tables of some measures, with the paper's figures."""
    for measure in measures:
        if measure == "p":
            significance(cells, out)
        else:
            table(cells, rows, measure)


def table(cells: Sequence[Cell], rows: Rows, measure: str) -> None:
    """Print a measure by method and language: of future and past forms, then of others; means, spreads, the paper's."""
    languages = sorted({cell.language for cell in cells})
    name, novel = measure.split()[0], measure.endswith("novel")
    hard, easy = ([part + " novel" * novel for part in parts] for parts in (PARTS[:2], PARTS[2:]))
    for hints in sorted({cell.hints for cell in cells}):
        print(
            f"\n| {measure}, {hints} hints | " + " | ".join(f"{la}: FUT+PST, OTHER | paper" for la in languages) + " |"
        )
        print("|---|" + "---|---|" * len(languages))
        for method in dict.fromkeys(cell.method for cell in cells):
            shown = []
            for language in languages:
                mine = [r for r in rows if (r["language"], r["hints"], r["method"]) == (language, hints, method)]
                figures = [[mean(r[part][name] for part in parts) for r in mine if all(part in r for part in parts)]
                           for parts in (hard, easy)]  # fmt: skip
                shown += [
                    ", ".join(map(_spread, figures)) + f" (n {len(mine)})",
                    _paper(hints, measure, method, language),
                ]
            print(f"| {method} | " + " | ".join(shown) + " |", flush=True)


def significance(cells: Sequence[Cell], out: Path) -> None:
    """Print paired t-tests of all pairs of methods, F1 of past and future forms: over items, and over seeds' means."""
    for language, hints in sorted({(cell.language, cell.hints) for cell in cells}):
        mine = [cell for cell in cells if (cell.language, cell.hints) == (language, hints)]
        scores = {method: [cell.item_scores(out) for cell in mine if cell.method == method]
                  for method in dict.fromkeys(cell.method for cell in mine)}  # fmt: skip
        if len(scores) < 2:
            continue
        print(f"\n| {language}, {hints} hints | F1 an item | p, items | by Bonferroni | p, seeds | paper: p, items |")
        print("|---|---|---|---|---|---|")
        for one in compare(scores):
            by_seed = "" if one.seeds_p is None else f"{one.seeds_p:.2g}"
            print(
                f"| {one.second} less {one.first} | {one.mean:+.4f} | {one.items_p:.2g} | {one.corrected_p:.2g} | "
                f"{by_seed} | {_paper_p(language, hints, one.first, one.second)} |", flush=True
            )  # fmt: skip


@cache
def _published(name: str) -> list[dict[str, str]]:
    """The rows of a file with the paper's figures, which is in this script's folder."""
    with (Path(__file__).parent / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def _paper(hints: int, measure: str, method: str, language: str) -> str:
    for row in _published("paper_morphology.tsv"):
        if (row["hints"], row["measure"], row["method"]) == (str(hints), measure, method):
            return ", ".join(row[f"{language} {part}"] or "-" for part in ("hard", "other"))
    return ""


def _paper_p(language: str, hints: int, *methods: str) -> str:
    for row in [] if hints != 8 else _published("paper_significance.tsv"):
        if row["language"] == language and {row["method"], row["other method"]} == set(methods):
            return f"{float(row['p']):.2g}"
    return ""


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "-"
    return f"{mean(values):.3f}" + (f" ± {stdev(values):.3f}" if len(values) > 1 else "")


def main() -> None:
    """Run the grid, seed by seed, and print the tables after each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=int, choices=list(TABLES), help="hints, methods and measures of the paper's")
    parser.add_argument("--languages", nargs="+", default=list(LANGUAGES), choices=LANGUAGES)
    parser.add_argument("--hints", nargs="+", type=int, default=[8], choices=[4, 8, 16])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1], choices=range(5))
    parser.add_argument("--method", nargs="+", default=list(METHODS[:3]), choices=[*METHODS, "all"])
    parser.add_argument("--size", default="small", choices=["small", "paper"], help="paper: 1,024 units, for a GPU")
    parser.add_argument("--out", type=Path, default=Path("runs/morphology"))
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time, one CPU thread each")
    options = parser.parse_args()
    methods = list(METHODS) if "all" in options.method else options.method
    counts, measures, languages = options.hints, ("f1", "exact", "p"), options.languages
    if options.table:
        hints, methods, measures = TABLES[options.table]
        counts = [hints]
        languages = [OF_ONE_LANGUAGE[options.table]] if options.table in OF_ONE_LANGUAGE else languages
    out = options.out / options.size  # nothing of one size is taken for the other
    splits = out / "splits"
    splits.mkdir(parents=True, exist_ok=True)
    for language in languages:
        if not all((splits / f"{language}.hints-{count}.seed-4.tsv").exists() for count in counts):
            asked = [word for count in counts for word in ("--hints", str(count))]
            call(splits, "data", "split", "few-shot", f"sigmorphon/{language}", *asked, "-o", str(splits))
    done: list[Cell] = []
    rows: list[dict[str, Any]] = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for seed in options.seeds:
            cells = [Cell(la, count, seed, method) for count in counts for method in methods for la in languages]
            kinds = sorted({(c, k) for c in cells for k in c.method.split("+") if k.startswith("recomb")}, key=str)
            made = {generator_path(c, k, out): (c, k) for c, k in kinds}
            list(pool.map(lambda one: make_generator(*one, out, options.size), made.values()))
            rows += pool.map(lambda cell: cell.run(out, options.size), cells)
            done += cells
            with atomic_path(out / "results.jsonl") as temporary:
                temporary.write_text("".join(path.read_text() for path in sorted(out.glob("*/result.json"))))
            tables(done, rows, measures, out)


if __name__ == "__main__":
    main()
