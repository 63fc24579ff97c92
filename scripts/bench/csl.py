"""Speed of CSL's induction on COGS (variable-free form): processor seconds and memory, by the number of training pairs.

Seed rules and the target grammar are our own. Parts of the data get 8 steps, as published and as the reference was
measured; all pairs as many as change anything. The peak of a row is that of the process so far: rows grow.

    COMPGEN_DATA=... OMP_NUM_THREADS=1 python scripts/bench/csl.py
"""

import resource
import time
from dataclasses import replace
from pathlib import Path

import compgen
from compgen.configuration import load_config
from compgen.csl.induction import induce
from compgen.csl.options import CslOptions
from compgen.csl.seeds import inflections
from compgen.csl.targets import TargetGrammar
from compgen.data.catalog import load
from compgen.data.examples import Dataset


def main() -> None:
    """Print the table."""
    train = load("cogs/variable-free").split("train")
    targets = TargetGrammar.read(Path(compgen.__file__).parent / "configs" / "csl_cogs.cfg")
    published = load_config(CslOptions, "csl_cogs").induction
    began = time.process_time()
    seeds = inflections(train)
    print(f"{len(seeds.rules)} seed rules: {time.process_time() - began:.1f} CPU s\n")
    print("| training pairs | steps | rules | CPU s | peak MiB |\n|---|---|---|---|---|")
    # Every 24th pair makes 1,007, every 6th 4,026; the reference was measured on a thousand and four thousand.
    for every, most, limit in ((24, 1000, 8), (6, 4000, 8), (1, len(train), 20)):
        some = Dataset(train.frame.gather_every(every).head(most))
        began = time.process_time()
        grammar, steps = induce(some, replace(published, steps=limit), seeds, targets)
        seconds = time.process_time() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        print(f"| {len(some):,} | {len(steps)} | {len(grammar.rules)} | {seconds:.1f} | {peak:,} |", flush=True)


if __name__ == "__main__":
    main()
