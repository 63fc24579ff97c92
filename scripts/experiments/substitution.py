"""How much of a test part `augment substitute` and `augment lexsym` make from the training part, without annotation.

    COMPGEN_DATA=... python scripts/experiments/substitution.py template template1 template2 template3 tmcd1 length
    COMPGEN_DATA=... python scripts/experiments/substitution.py template1 --method substitute -n 200000 classes=slot

Splits are of GeoQuery: `iid` and `template` of SUBS, with names written out, the others with placeholders. A row of the
test part is covered if its target is made, or its template: the target with names left blank. Each split has a process
of its own, whose time and memory are shown.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from compgen.augmenters.registry import make
from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset

DATA = Path(os.environ.get("COMPGEN_DATA", "."))
SUBS = {"iid": "geo-funql/question", "template": "geo-funql/query"}


def part(split: str, name: str) -> Dataset:
    """A part of a split."""
    return load(SUBS[split]).split(name) if split in SUBS else read_dataset(DATA / f"geoquery/{split}.{name}.tsv")


def template(target: list[str]) -> str:
    """A target with names left blank."""
    return re.sub(r"(\w+id) \( .*? \)", r"\1 ( X )", " ".join(target))


def value(text: str) -> Any:
    """An option's value: a number, or a word."""
    return int(text) if text.isdigit() else text


def measure(split: str, asked: argparse.Namespace) -> str:
    """Augment the training part of a split; return a row of the table."""
    began = time.monotonic()
    train, test = part(split, "train"), part(split, "test")
    options = dict(option.split("=", 1) for option in asked.options)
    method = make(asked.method, **{name: value(text) for name, text in options.items()}).fit(train)
    made = method.sample(asked.n)
    seconds, report = time.monotonic() - began, method.report()
    pairs = {(tuple(source), tuple(target)) for source, target in made.pairs()}
    targets = {target for _, target in pairs}
    templates = {template(list(target)) for target in targets}
    known = {tuple(source): target for source, target in train.pairs()}
    wrong = sum(tuple(source) in known and known[tuple(source)] != list(target) for source, target in pairs)
    rows = [(tuple(source), tuple(target)) for source, target in test.pairs()]
    figures = [
        split,
        report.get("classes", ""),
        f"{report.get('exchanges', ''):,}" if "exchanges" in report else "",
        f"{len(made):,}",
        wrong,
        f"{len(pairs & {*rows})} of {len({*rows})}",
        f"{sum(target in targets for _, target in rows)} of {len(rows)}",
        sum(template(list(target)) in templates for _, target in rows),
        f"{seconds:.1f}",
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    ]
    return " | ".join(map(str, ["", *figures, ""])).strip()


def main() -> None:
    """Measure each split in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("splits", nargs="+")
    parser.add_argument("options", nargs="*", default=[])
    parser.add_argument("--method", default="substitute")
    parser.add_argument("-n", type=int)
    asked = parser.parse_intermixed_args()
    asked.options = [one for one in asked.splits if "=" in one]
    asked.splits = [one for one in asked.splits if "=" not in one]
    if len(asked.splits) == 1:
        print(measure(asked.splits[0], asked), flush=True)
        return
    columns = ["split", "classes", "ways", "made", "contradicting", "test pairs", "targets", "templates", "s", "MiB"]
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for split in asked.splits:
        more = ["--method", asked.method, *([] if asked.n is None else ["-n", str(asked.n)])]
        subprocess.run([sys.executable, __file__, split, *asked.options, *more], check=True)


if __name__ == "__main__":
    main()
