"""Seconds and memory that finding the neighborhoods takes, on all cores.

    python scripts/bench/neighborhoods.py

The product's own SCAN, distinct training examples, with the configurations that ship.
"""

import resource
import time

from compgen.configuration import load_config
from compgen.data.catalog import load
from compgen.data.vocabulary import Vocabulary
from compgen.recombine.config import RecombineConfig
from compgen.recombine.neighborhoods import build
from compgen.recombine.training import as_sequences

CASES = (
    ("scan/jump", "recombine_small"),
    ("scan/jump", "recombine_scan"),
    ("scan/around_right", "recombine_small_around_right"),
    ("scan/around_right", "recombine_scan_around_right"),
)


def main() -> None:
    """Print a table; memory is the highest that the process, everything included, has had so far."""
    print("| data | configuration | examples | rows | seconds | GiB |\n|---|---|---|---|---|---|")
    for name, config in CASES:
        dataset = load(name).split("train")
        vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
        sequences = as_sequences(dataset, vocabulary)
        began = time.perf_counter()
        chosen = load_config(RecombineConfig, config)
        rows = build(sequences, vocabulary, chosen.prototypes, chosen.neighborhood, 0)
        seconds = time.perf_counter() - began
        highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"| {name} | {config} | {len(sequences):,} | {len(rows):,} | {seconds:.1f} | {highest:.2f} |", flush=True)


if __name__ == "__main__":
    main()
