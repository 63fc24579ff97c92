"""CSL as a parser (Qiu et al. 2022, tables 2 and 7): a grammar induced, its probabilities learned, test sources parsed.

For each split: rules, processor seconds of induction, learning and parsing; of the test sources, the share that gets an
output (coverage), the share that gets the right one (accuracy), and the right ones of all outputs (precision), beside
the paper's. GeoQuery's and SCAN's MCD splits are read from $COMPGEN_DATA; the other SCAN splits are made.

    python scripts/experiments/csl.py jump turn_left length mcd1 mcd2 mcd3 around_right
    python scripts/experiments/csl.py standard template1 template2 template3 tmcd1 tmcd2 tmcd3 length_geo
"""

import argparse
import os
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from compgen.data import scan
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.errors import UserError
from compgen.grammar.augmenter import Settings
from compgen.grammar.induction import induce
from compgen.grammar.model import learn
from compgen.grammar.parsing import ViterbiParser
from compgen.grammar.seeds import exact_matches
from compgen.grammar.targets import TargetGrammar

SCAN = ("jump", "turn_left", "length", "mcd1", "mcd2", "mcd3", "around_right")
GEOQUERY = ("standard", "template1", "template2", "template3", "tmcd1", "tmcd2", "tmcd3", "length_geo")
# Coverage and accuracy of CSL in the paper; template and TMCD are means over three splits.
PAPER = {
    "standard": "76.3, 74.3",
    "template": "61.0, 58.9 (mean)",
    "tmcd": "44.3, 39.9 (mean)",
    "length_geo": "29.0, 26.6",
}


def parts(split: str) -> tuple[Dataset, Dataset]:
    """Training and test examples."""
    if split in scan.SPLITS:
        whole = scan.SPLITS[split][0]()
        return whole.split("train"), whole.split("test")
    folder = Path(os.environ.get("COMPGEN_DATA", Path(__file__).parents[3] / "shared" / "data"))
    if split in SCAN:
        train, test = (next((folder / "scan").glob(f"tasks_{part}_{split}.txt*"), None) for part in ("train", "test"))
    else:
        name = split.removesuffix("_geo")
        train, test = (folder / "geoquery" / f"{name}.{part}.tsv" for part in ("train", "test"))
    if train is None or test is None:
        raise UserError(f"{split} is not in {folder}: set COMPGEN_DATA to a folder that has it")
    return read_dataset(train), read_dataset(test)


def row(split: str) -> str:
    """A line of the table."""
    train, test = parts(split)
    if split in SCAN:
        settings, seeds, targets = Settings.of("scan"), None, None
    else:
        settings, seeds = Settings.of("geoquery"), exact_matches(train)
        targets = TargetGrammar.read(Path(scan.__file__).parents[1] / "configs" / "csl_geoquery.cfg")
    training = settings.training
    assert training is not None
    if split in ("mcd1", "mcd3"):
        training = replace(training, states=4)  # as published
    clock = [time.process_time()]
    grammar, _ = induce(train, settings.options, seeds, targets)
    clock.append(time.process_time())
    scores, _ = learn(grammar, grammar.alphabet.examples(train), training)
    clock.append(time.process_time())
    found = ViterbiParser(grammar, scores.log_probs(), training.unit_limit, targets).evaluate(test)
    clock.append(time.process_time())
    seconds = [f"{after - before:.1f}" for before, after in pairwise(clock)]
    shares = [f"{100 * share:.1f}" for share in (found.coverage, found.accuracy, found.precision)]
    paper = PAPER.get(split, PAPER.get(split.rstrip("123"), "100, 100" if split != "around_right" else ""))
    return " | ".join([split, f"{len(train):,}", f"{len(grammar.rules)}", *seconds, *shares, paper])


def main() -> None:
    """Print the table, split by split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("splits", nargs="*", default=[*SCAN, *GEOQUERY], metavar="SPLIT", help="by default all")
    splits = parser.parse_args().splits
    if unknown := set(splits) - {*SCAN, *GEOQUERY}:
        raise SystemExit(f"no split {min(unknown)}: expected some of {', '.join([*SCAN, *GEOQUERY])}")
    columns = (
        "split | training pairs | rules | induction, s | learning, s | parsing, s | coverage | accuracy | precision"
    )
    print(f"| {columns} | paper: coverage, accuracy |\n|{'---|' * 10}")
    for split in splits:
        print(f"| {row(split)} |", flush=True)


if __name__ == "__main__":
    main()
