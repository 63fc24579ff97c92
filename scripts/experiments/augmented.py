"""Predictors trained from scratch on original data and on what augmenters make of them: tasks by systems by seeds.

    COMPGEN_DATA=... python scripts/experiments/augmented.py funql-question funql-query --seeds 0 1 2 3 4 --jobs 2
    COMPGEN_DATA=... python scripts/experiments/augmented.py turn-left --part dev --systems bare substitute lexsym

A system is `bare`, or methods joined by +, each with as many examples (METHOD-NAME: with other options); `fresh METHOD`
draws new ones in each epoch. All predictors of a task have the same settings and the same updates, and the last weights
are tested. `--part dev` answers the development part instead of the test part: settings are to be chosen there, or on
`turn-left`, `opposite-right` and those made of training parts alone (`*-within`, `cogs-long`), whose test parts may be
looked at. --changes are of the predictor's settings. Prints a row for each task.

Results are added to `figures/augmented.jsonl` beside this script, with the commit that made them and hashes of the
settings and the data; what is there is not run again, wherever the folder of --out may be. A training that was
interrupted goes on.
"""

import argparse
import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from statistics import mean, stdev
from threading import Lock
from typing import Any

import polars as pl
import torch
from cells import call, settings, train
from csl import GEOQUERY, parts

from compgen.data.catalog import load
from compgen.data.examples import TRAIN, Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.data.splits import by_length, by_template
from compgen.data.splits import mcd as by_mcd
from compgen.data.variables import relative_targets

DATA = Path(os.environ.get("COMPGEN_DATA", "."))
DEV = "dev"
NAME = re.compile(r'id \( [^)]*\)|" [^"]* "')  # in GeoQuery's programs
COLUMN = re.compile(r"([A-Z_]+)(alias\d+)(?:(\.)(\w+))?")  # CITYalias0.CITY_NAME
MAKING, WRITING = Lock(), Lock()
COMMIT = subprocess.run(
    ["git", "describe", "--always", "--dirty"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
).stdout.strip()
FIGURES = Path(__file__).with_name("figures") / "augmented.jsonl"
METHODS = ("resample", "geca", "csl", "lexsym", "substitute")


@dataclass(frozen=True)
class Kind:
    """The settings for the tasks of a data set.

    Predictors are those of comparisons, except for the number of updates and SCAN's dropout.

    Attributes:
        count: synthetic examples of each method.
        predictor: its settings.
        options: of methods, where defaults do not do; METHOD-NAME is the method with other options.
        pools: how many examples a method makes if not all are taken: then all lengths are taken alike.
    """

    count: int
    predictor: tuple[str, ...]
    options: dict[str, tuple[str, ...]]
    pools: dict[str, int] = field(default_factory=dict)


HALF = settings(p_aug=0.5)  # of what is trained on is synthetic
_COMPANIONS = ("--config", "grammar_scan_companions")
_GEO = settings(
    optimisation__steps=6000,
    held_out=0.0,
    network__copying="true",
    network__token_dropout=0.02,
    network__embedding_dropout=0.5,
    network__output_dropout=0.5,
)
_WIDE = ("--classes", "slot", "--rounds", "3", "--bigrams", "1", "-n", "100000")
# As SpanSub has it: spans of at most three words, two rounds, classes of the first and the last word.
_SPANS = ("--classes", "types", "--span", "3", "--rounds", "2")
_SCAN = Kind(
    30_000,
    settings(
        optimisation__steps=6000,
        held_out=0.0,
        network__embedding_dropout=0.0,
        network__output_dropout=0.0,
    ),
    {
        "csl": ("--config", "csl_scan_companions"),
        "substitute": (*_COMPANIONS, *_SPANS),
        "geca": ("--longest", "60"),
    },
)
KINDS = {
    "geo": Kind(
        30_000,
        _GEO,
        {
            "substitute": ("--classes", "slot", "--rounds", "2"),
            # More exchanges and more samples, whose sources may be odd in one place: they have the templates of three
            # quarters of funql-query-within's questions, where `substitute` has those of two thirds.
            "substitute-wide": _WIDE,
        },
    ),
    # The published splits, which have no names to copy; a predictor as `csl_predictors.py` has it.
    "geoquery": Kind(
        30_000,
        settings(
            optimisation__steps=3000,
            held_out=0.0,
            network__embedding_dropout=0.5,
            network__output_dropout=0.5,
        ),
        {"csl": ("--config", "csl_geoquery"), "substitute-wide": _WIDE},
    ),
    # Programs in which slots have next to nothing to exchange; two grammars make what one of them does not.
    "logic": Kind(30_000, _GEO, {"substitute-companions": _COMPANIONS}),
    # Spans as Andreas (2020) has them for SQL.
    "sql": Kind(2_000, _GEO, {"geca": ("--span", "4", "--spans", "3", "--limit", "50")}),
    "scan": _SCAN,
    # A grammar that has *left* and *right* alone, to put one for the other in one of two places.
    "phrases": replace(_SCAN, options={"substitute": ("--config", "grammar_scan", *_SPANS)}),
    "cogs": Kind(
        100_000,
        settings(optimisation__steps=10_000, held_out=0.0, network__copying="true", network__token_dropout=0.02),
        {
            "csl": ("--config", "csl_cogs", "--set", "drawing.temperature=2", "--set", "drawing.bias=0"),
            # By types and by predicates more than half of the targets have `) (`, which no training example has; rounds
            # are for depth.
            "substitute": ("--config", "grammar_cogs", "--classes", "slot", "--rounds", "20"),
            # Nested up to twelve times deeper than training, by short parts: sentences that are long and simple.
            "substitute-deeper": (
                *("--config", "grammar_cogs", "--classes", "slot"),
                *("--chains", "insert", "--span", "5", "--rounds", "12"),
            ),
            "geca": ("--longest", "60"),
        },
        {"csl": 500_000, "substitute": 300_000},
    ),
}


def known(name: str, test: str = "test") -> Callable[[], Dataset]:
    """A known data set: its training part, one to test on, and the development part if it has one."""

    def read() -> Dataset:
        found = load(name)
        parts = [found.split(TRAIN)] + [
            Dataset(found.split(part).frame.with_columns(split=pl.lit(new)))
            for part, new in ((DEV, DEV), (test, "test"))
            if part in found.splits
        ]
        return parts[0] + parts[1] if len(parts) == 2 else parts[0] + parts[1] + parts[2]

    return read


def together(name: str) -> Callable[[], Dataset]:
    """A known data set with the development part among what is trained on, as published."""

    def read() -> Dataset:
        found = load(name)
        return Dataset(found.frame.with_columns(split=pl.col("split").replace({DEV: TRAIN})))

    return read


def longest(name: str, share: float) -> Callable[[], Dataset]:
    """A known data set's training part alone, its longest examples to test on."""

    def read() -> Dataset:
        part = load(name).split(TRAIN)
        return by_length(part, round((1 - share) * len(part)))

    return read


def published(split: str) -> Callable[[], Dataset]:
    """A published split of GeoQuery, which has a file for each part."""

    def read() -> Dataset:
        train_part, test = parts(split)
        return train_part + Dataset(test.frame.with_columns(split=pl.lit("test")))

    return read


def development(split: str) -> Callable[[], Dataset]:
    """Such a split's training part, and its development part to test on."""

    def read() -> Dataset:
        dev = read_dataset(DATA / "geoquery" / f"{split.removesuffix('_geo')}.dev.tsv")
        return parts(split)[0] + Dataset(dev.frame.with_columns(split=pl.lit("test")))

    return read


def within(name: str, seed: int = 1) -> Callable[[], Dataset]:
    """GeoQuery's training part alone, a quarter of its templates, names left blank, to test on."""

    def read() -> Dataset:
        part = (published(name)() if name in GEOQUERY else load(name)).split(TRAIN)
        blank = [NAME.sub("X", " ".join(target)).split() for target in part.frame["target"].to_list()]
        found = by_template(Dataset(part.frame.with_columns(target=pl.Series(blank))), 3 * len(part) // 4, seed=seed)
        return Dataset(part.frame.with_columns(split=found.frame["split"]))

    return read


def names_apart(read: Callable[[], Dataset]) -> Callable[[], Dataset]:
    """A data set whose SQL has tables, aliases and columns as tokens of their own. Exact match is as it would be."""

    def apart(target: list[str]) -> list[str]:
        found = [(COLUMN.fullmatch(token), token) for token in target]
        return [part for match, token in found for part in (filter(None, match.groups()) if match else [token])]

    def changed() -> Dataset:
        frame = read().frame
        return Dataset(frame.with_columns(target=pl.Series([apart(one) for one in frame["target"].to_list()])))

    return changed


def by_distance(read: Callable[[], Dataset]) -> Callable[[], Dataset]:
    """A data set with its variables as distances. Exact match is as it would be with named ones."""
    return lambda: relative_targets(read())[0]


def mcd(number: int) -> Callable[[], Dataset]:
    """A split of SCAN by maximum compound divergence."""

    def read() -> Dataset:
        files = {TRAIN: f"train_mcd{number}.txt.gz", DEV: f"val_mcd{number}.txt", "test": f"test_mcd{number}.txt"}
        parts = [
            Dataset(read_dataset(DATA / "scan" / f"tasks_{file}", "scan").frame.with_columns(split=pl.lit(part)))
            for part, file in files.items()
        ]
        return parts[0] + parts[1] + parts[2]

    return read


def mcd_within(number: int) -> Callable[[], Dataset]:
    """The training part of such a split alone, split likewise."""
    return lambda: by_mcd(mcd(number)().split(TRAIN), train=4600, test=1000, seed=1)


TASKS: dict[str, tuple[str, Callable[[], Dataset]]] = {
    "funql-question": ("geo", known("geo-funql/question")),
    "funql-query": ("geo", known("geo-funql/query")),
    "logic-query": ("logic", by_distance(together("geo/logic-query"))),
    "sql-query": ("sql", together("geo/sql-query")),
    "jump": ("scan", known("scan/jump")),
    "around-right": ("phrases", known("scan/around_right")),
    "mcd1": ("scan", mcd(1)),
    "mcd2": ("scan", mcd(2)),
    "mcd3": ("scan", mcd(3)),
    "cogs": ("cogs", known("cogs/variable-free", "gen")),
    # For development: their test parts may be looked at.
    "turn-left": ("scan", known("scan/turn_left")),
    "opposite-right": ("phrases", known("scan/opposite_right")),
    "mcd-within": ("scan", mcd_within(1)),
    "funql-question-within": ("geo", within("geo-funql/question")),
    "funql-query-within": ("geo", within("geo-funql/query")),
    **{f"funql-query-within-{seed}": ("geo", within("geo-funql/query", seed)) for seed in (2, 3, 4)},
    "sql-query-within": ("sql", within("geo/sql-query")),
    "sql-names-within": ("sql", names_apart(within("geo/sql-query"))),
    **{split: ("geoquery", published(split)) for split in GEOQUERY},
    **{f"{split}-dev": ("geoquery", development(split)) for split in GEOQUERY if split != "standard"},
    **{f"{split}-within": ("geoquery", within(split)) for split in ("template1", "tmcd1")},
    "logic-query-within": ("logic", by_distance(within("geo/logic-query"))),
    "cogs-long": ("cogs", longest("cogs/variable-free", 0.05)),
}


@dataclass(frozen=True)
class Cell:
    """A predictor of a task, trained on what a system makes."""

    task: str
    system: str
    seed: int
    part: str
    changes: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """How its task is treated."""
        return KINDS[TASKS[self.task][0]]

    @property
    def settings(self) -> str:
        """A hash of the settings in this script that the cell depends on."""
        kind, methods = self.kind, [] if self.system == "bare" else self.system.removeprefix("fresh ").split("+")
        own = [(method, kind.count, kind.options.get(method), kind.pools.get(method)) for method in methods]
        return sha256(repr((kind.predictor, own)).encode()).hexdigest()[:8]

    def run(self, out: Path, figures: Path) -> float:
        """Return exact match in percent: read from `figures`, or else measured and added there."""
        key: dict[str, Any] = vars(self) | {"changes": list(self.changes), "settings": self.settings}
        key["data"] = sha256(data_of(self.task, out).read_bytes()).hexdigest()[:8]
        known = (json.loads(line) for line in figures.read_text("utf-8").splitlines()) if figures.exists() else ()
        found = next((one for one in known if key.items() <= one.items()), None)
        if found is None:
            found = key | self.measured(out)
            with WRITING, figures.open("a", encoding="utf-8") as file:
                file.write(json.dumps(found) + "\n")
        return 100 * float(found["exact"])

    def measured(self, out: Path) -> dict[str, object]:
        """Train and evaluate a predictor; return the result."""
        name = "-".join([*self.system.split(), *self.changes, self.settings, str(self.seed)])
        folder, began = out / self.task / name, time.monotonic()
        folder.mkdir(parents=True, exist_ok=True)
        kind, data, predictor = self.kind, data_of(self.task, out), folder / "predictor.pt"
        more = self.added(out, kind, data)
        changes = [word for change in self.changes for word in ("--set", change)]
        seed = ("--threads", "1", "--seed", str(self.seed))
        train(folder, predictor, "seq2seq", str(data), *kind.predictor, *more, *changes, *seed)
        found = json.loads(call(folder, "evaluate", str(predictor), str(data), "--split", self.part, "--json"))
        device = "cuda" if torch.cuda.is_available() else "cpu"  # where both trained and answered
        minutes = round((time.monotonic() - began) / 60, 1)
        return {"exact": found["exact_match"], "minutes": minutes, "commit": COMMIT, "device": device}

    def added(self, out: Path, kind: Kind, data: Path) -> tuple[str, ...]:
        """The options that give the predictor more than the original data."""
        fresh, _, method = self.system.partition("fresh ")
        if method and not fresh:
            words = kind.options.get(method, ())
            pairs = [(words[at].removeprefix("--"), words[at + 1]) for at in range(0, len(words), 2)]
            config = [word for name, value in pairs if name == "config" for word in ("--augment-config", value)]
            values = (value if name == "set" else f"{name}={value}" for name, value in pairs if name != "config")
            sets = [word for value in values for word in ("--augment-set", value)]
            return ("--augment", method, *config, *sets, *HALF)
        if self.system == "bare":
            return ()
        made = [self.made(out, kind, data, method) for method in self.system.split("+")]
        if len(made) == 1:
            return ("--augmented", str(made[0]), *HALF)
        whole = out / self.task / f"{self.system}-{self.settings}-{self.seed}.tsv"
        if not whole.exists():
            write_dataset(Dataset.from_pairs(pair for file in made for pair in load(str(file)).pairs()), whole)
        return ("--augmented", str(whole), *HALF)

    def made(self, out: Path, kind: Kind, data: Path, method: str) -> Path:
        """Make the examples of a method, unless that is done; return their file."""
        pool, options = kind.pools.get(method), kind.options.get(method, ())
        how = sha256(repr((kind.count, pool, options)).encode()).hexdigest()[:8]  # so that no file of others is taken
        file = out / self.task / f"{method}-{how}-{self.seed}.tsv"
        with MAKING:  # two cells may need the same
            if not file.exists():
                made = file if pool is None else file.with_name(f"pool-{file.name}")
                count = () if "-n" in options else ("-n", str(pool or kind.count))
                asked = (*count, "--seed", str(self.seed), "-o", str(made))
                call(out / self.task, "augment", method.partition("-")[0], str(data), *asked, *options)
                if made != file:
                    chosen = ("-n", str(kind.count), "--by", "umt", "--template", "length", "-o", str(file))
                    call(out / self.task, "select", str(made), *chosen)
        return file


def data_of(task: str, out: Path) -> Path:
    """Write all parts of a task to one file, unless that is done; return it."""
    path = out / f"{task}.jsonl"
    if not path.exists():
        out.mkdir(parents=True, exist_ok=True)
        write_dataset(TASKS[task][1](), path)
    return path


def spread(values: list[float]) -> str:
    """Mean and standard deviation."""
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def main() -> None:
    """Print the table, task by task."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="+", choices=TASKS)
    parser.add_argument("--systems", nargs="+", default=["bare", *METHODS, "lexsym+substitute", "csl+substitute"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--part", choices=(DEV, "test"), default="test")
    parser.add_argument("--out", type=Path, default=Path("runs/augmented"))
    parser.add_argument("--figures", type=Path, default=FIGURES, help="the results of cells")
    parser.add_argument("--changes", nargs="+", default=[], metavar="KEY=VALUE")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time, one CPU thread each")
    asked = parser.parse_args()
    print(f"| {asked.part} part | {' | '.join(asked.systems)} |\n|{'---|' * (1 + len(asked.systems))}", flush=True)
    for task in asked.tasks:
        data_of(task, asked.out)
        cells = [
            Cell(task, system, seed, asked.part, tuple(asked.changes))
            for seed in asked.seeds
            for system in asked.systems
        ]
        with ThreadPoolExecutor(asked.jobs) as workers:
            found = dict(zip(cells, workers.map(lambda cell: cell.run(asked.out, asked.figures), cells), strict=True))
        by_system = {system: [found[cell] for cell in cells if cell.system == system] for system in asked.systems}
        print(f"| {task} | {' | '.join(spread(values) for values in by_system.values())} |", flush=True)


if __name__ == "__main__":
    main()
