"""CSL as a parser (Qiu et al. 2022, tables 2 and 7): a grammar induced, its probabilities learned, test sources parsed.

For each split: rules, processor seconds of induction, learning and parsing; of the test sources, the share that gets an
output (coverage), the share that gets the right one (accuracy), and the right ones of all outputs (precision), beside
the paper's. GeoQuery, COGS and SCAN's MCD splits are read from $COMPGEN_DATA; the other SCAN splits are made. COGS is
in the variable-free form and tested on gen, with a line for each category on standard error.

    python scripts/experiments/csl.py jump turn_left length mcd1 mcd2 mcd3 around_right
    python scripts/experiments/csl.py around_right mcd3 --scan-config csl_scan_companions
    python scripts/experiments/csl.py standard template1 template2 template3 tmcd1 tmcd2 tmcd3 length_geo
    python scripts/experiments/csl.py cogs
"""

import argparse
import os
import sys
import time
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path

import polars as pl

from compgen.configuration import load_config
from compgen.csl.augmenter import Csl
from compgen.csl.options import CslOptions
from compgen.csl.parsing import Accuracy, ViterbiParser
from compgen.data import scan
from compgen.data.downloads import VARIABLE
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.errors import UserError

PUBLISHED = ("jump", "turn_left", "length", "mcd1", "mcd2", "mcd3")
SCAN = (*PUBLISHED, "around_right", "opposite_right", "right", "jump_around_right")
GEOQUERY = ("standard", "template1", "template2", "template3", "tmcd1", "tmcd2", "tmcd3", "length_geo")
SPLITS = (*SCAN, *GEOQUERY, "cogs")
# Coverage and accuracy of CSL in the paper; template and TMCD are means over three splits.
PAPER = {
    "standard": "76.3, 74.3",
    "template": "61.0, 58.9 (mean)",
    "tmcd": "44.3, 39.9 (mean)",
    "length_geo": "29.0, 26.6",
    "cogs": "99.9, 99.5",
}
CONFIGS = Path(scan.__file__).parents[1] / "configs"


def folder() -> Path:
    """The folder of the published data sets."""
    if not (named := os.environ.get(VARIABLE)):
        raise UserError(f"no {VARIABLE} set: expected the folder of the data sets (cgen data list)")
    return Path(named)


def parts(split: str) -> tuple[Dataset, Dataset]:
    """Training and test examples."""
    if split in scan.SPLITS:
        whole = scan.SPLITS[split][0]()
        return whole.split("train"), whole.split("test")
    if split in SCAN:
        train, test = (next((folder() / "scan").glob(f"tasks_{part}_{split}.txt*"), None) for part in ("train", "test"))
    elif split == "cogs":
        train, test = (folder() / "cogs" / f"{part}.tsv" for part in ("train", "gen"))
    else:
        name = split.removesuffix("_geo")
        train, test = (folder() / "geoquery" / f"{name}.{part}.tsv" for part in ("train", "test"))
    if train is None or test is None:
        raise UserError(f"{split} is not in {folder()}: set COMPGEN_DATA to a folder that has it")
    return read_dataset(train), read_dataset(test)


def configured(split: str, scan_config: str) -> CslOptions:
    """The configuration for a split."""
    if split not in SCAN:
        return load_config(CslOptions, "csl_cogs" if split == "cogs" else "csl_geoquery")
    more = ["training.states=4"] if split in ("mcd1", "mcd3") and scan_config == "csl_scan" else []  # as published
    return load_config(CslOptions, scan_config, more)


def accuracy(split: str, test: Dataset, parser: ViterbiParser) -> Accuracy:
    """The accuracy on all test sources. For COGS, that of each category is printed, too."""
    if split != "cogs":
        return parser.evaluate(test)
    categories = (folder() / "cogs" / "gen.category.txt").read_text().split()
    parts = test.frame.with_columns(category=pl.Series(categories)).partition_by("category", as_dict=True)
    found = {str(category): parser.evaluate(Dataset(part)) for (category,), part in parts.items()}
    for category, one in found.items():
        print(f"{category}: coverage {one.coverage:.1%}, accuracy {one.accuracy:.1%}", file=sys.stderr)
    return Accuracy(*(sum(counts) for counts in zip(*map(astuple, found.values()), strict=True)))


def row(split: str, scan_config: str, seed: int) -> str:
    """A line of the table."""
    train, test = parts(split)
    augmenter = Csl(configured(split, scan_config))
    clock = [time.process_time()]
    grammar = augmenter.induce(train)
    clock.append(time.process_time())
    trained = augmenter.weigh(train, seed)
    clock.append(time.process_time())
    found = accuracy(split, test, trained.parser())
    clock.append(time.process_time())
    seconds = [f"{after - before:.1f}" for before, after in pairwise(clock)]
    shares = [f"{100 * share:.1f}" for share in (found.coverage, found.accuracy, found.precision)]
    paper = PAPER.get(split, PAPER.get(split.rstrip("123"), "100, 100" if split in PUBLISHED else ""))
    return " | ".join([split, f"{len(train):,}", f"{len(grammar.rules)}", *seconds, *shares, paper])


def main() -> None:
    """Print the table, split by split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("splits", nargs="*", default=SPLITS, metavar="SPLIT", help="by default all")
    parser.add_argument("--scan-config", default="csl_scan", help="configuration for SCAN, see `augment csl`")
    parser.add_argument("--seed", type=int, default=0, help="of learning")
    options = parser.parse_args()
    splits = options.splits
    if unknown := set(splits) - {*SPLITS}:
        raise SystemExit(f"no split {min(unknown)}: expected some of {', '.join(SPLITS)}")
    columns = (
        "split | training pairs | rules | induction, s | learning, s | parsing, s | coverage | accuracy | precision"
    )
    print(f"| {columns} | paper: coverage, accuracy |\n|{'---|' * 10}")
    for split in splits:
        print(f"| {row(split, options.scan_config, options.seed)} |", flush=True)


if __name__ == "__main__":
    main()
