"""Published data for tests, which skip where the files are absent, and what the published program makes of them."""

import os
from pathlib import Path

import pytest

import compgen
from compgen.configuration import load_config
from compgen.csl.charts import Parser
from compgen.csl.options import CslOptions
from compgen.csl.rules import Rule
from compgen.data import scan
from compgen.data.formats import read_dataset

GEOQUERY_TARGETS = Path(compgen.__file__).parent / "configs" / "csl_geoquery.cfg"
COGS_TARGETS = GEOQUERY_TARGETS.with_name("csl_cogs.cfg")

# Steps, rules by arity from 0 to 4, test pairs derived.
SPLITS = {
    "standard": (13, [101, 69, 63, 10, 6], 217),
    "template1": (16, [74, 69, 51, 7, 4], 230),
    "template2": (12, [87, 71, 45, 17, 6], 184),
    "template3": (16, [63, 62, 63, 9, 4], 199),
    "tmcd1": (12, [70, 49, 52, 9, 1], 153),
    "tmcd2": (14, [94, 59, 39, 7, 6], 129),
    "tmcd3": (11, [75, 46, 68, 14, 3], 138),
    "length": (15, [75, 36, 42, 3, 2], 96),
    "nqg_tmcd1": (12, [85, 66, 27, 4, 1], 179),
    "nqg_template1": (17, [100, 64, 42, 5, 8], 280),
}


def published(kind):
    """The published settings for a data set."""
    return load_config(CslOptions, f"csl_{kind}")


def _read(name, format):
    for suffix in ("", ".gz"):
        path = Path(os.environ["COMPGEN_DATA"]) / f"{name}{suffix}"
        if path.exists():
            return read_dataset(path, format)
    pytest.skip(f"{path} is not there: set COMPGEN_DATA to a folder that has it")


def geoquery(split, part):
    """One part of a split of GeoQuery in functional form."""
    return _read(f"geoquery/{split}.{part}.tsv", "tsv")


def cogs(part):
    """One part of COGS in the variable-free form."""
    return _read(f"cogs/{part}.tsv", "tsv")


def published_scan(split):
    """The parts of a split of SCAN: made, or, where no grammar makes them, read."""
    if split in scan.SPLITS:
        dataset = scan.SPLITS[split][0]()
        return {part: dataset.split(part) for part in ("train", "test")}
    return {part: _read(f"scan/tasks_{part}_{split}.txt", "scan") for part in ("train", "test")}


def coverage(grammar, dataset, unit_limit=1):
    """How many pairs of a dataset a grammar derives."""
    parser = Parser(grammar.rules, unit_limit)
    encode = grammar.alphabet.encode
    return sum(parser.derives(Rule(encode(source), encode(target))) for source, target in dataset.pairs())
