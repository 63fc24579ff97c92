"""Speed of drawing 100,000 pairs from CSL's grammars: processor seconds, medians of repeats with other seeds.

`arrays` is the time until all tokens are there as numbers, `dataset` until they are lists of strings in a data frame.
SCAN is drawn as deep as published (5 levels), GeoQuery from the standard split with its target grammar. What the
reference program took on another machine (2 cores of an AMD EPYC, shared) is beside it.

    COMPGEN_DATA=... OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 python scripts/bench/csl_sampling.py
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

from compgen.configuration import load_config
from compgen.csl.augmenter import Csl
from compgen.csl.options import CslOptions
from compgen.csl.trained import TrainedGrammar
from compgen.data import scan
from compgen.data.downloads import find
from compgen.data.formats import read_dataset
from compgen.errors import DataError

REFERENCE = {
    "SCAN jump, uniform": "1.8",
    "SCAN jump, learned": "8.6 with start",
    "GeoQuery, learned": "171 with start",
}


def grammars() -> dict[str, Callable[[], TrainedGrammar]]:
    """The grammars to draw from, by name; each is trained when it is called."""

    def of_scan(learned: bool) -> TrainedGrammar:
        config = load_config(CslOptions, "csl_scan")
        chosen = config if learned else config.model_copy(update={"training": None})
        return trained(Csl(chosen).fit(scan.SPLITS["jump"][0]().split("train")))

    def of_geoquery() -> TrainedGrammar:
        data = read_dataset(find("geoquery/standard.train.tsv", origin="the authors of CSL"))
        return trained(Csl(load_config(CslOptions, "csl_geoquery")).fit(data))

    return {
        "SCAN jump, uniform": lambda: of_scan(False),
        "SCAN jump, learned": lambda: of_scan(True),
        "GeoQuery, learned": of_geoquery,
    }


def trained(augmenter: Csl) -> TrainedGrammar:
    """The grammar that an augmenter has fitted."""
    assert augmenter.trained is not None
    return augmenter.trained


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    print("| grammar | arrays, s | dataset, s (least to most) | distinct | tokens a side | reference, s |")
    print("|---|---|---|---|---|---|")
    for name, make in grammars().items():
        try:
            grammar = make()
        except DataError as error:
            print(f"| {name} | not run: {error} |")
            continue
        arrays, frames = [], []
        for seed in range(options.repeats):
            began = time.process_time()
            for block in grammar.sampler().blocks(seed, 0, options.count):
                assert len(block.log_probs)
            arrays.append(time.process_time() - began)
            began = time.process_time()
            made = grammar.sampler().sample(options.count, seed)
            frames.append(time.process_time() - began)
        sides = [made.frame[side].list.len().mean() for side in ("source", "target")]
        spread = f"{median(frames):.2f} ({min(frames):.2f}-{max(frames):.2f})"
        lengths = " / ".join(f"{length:.1f}" for length in sides)
        print(f"| {name} | {median(arrays):.2f} | {spread} | {len(made.unique()):,} | {lengths} | {REFERENCE[name]} |",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
