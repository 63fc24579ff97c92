"""Speed of CSL's induction on COGS (variable-free form): seconds and memory, by the numbers of pairs and of processes.

Seed rules and the target grammar are our own. Parts of the data get 8 steps, as published and as the reference was
measured; all pairs as many as change anything. Processor seconds are those of all processes. The peak of a row is that
of the first process so far: rows grow.

    COMPGEN_DATA=... OMP_NUM_THREADS=1 python scripts/bench/csl.py --processes 1 2
"""

import argparse
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


def processor_seconds() -> float:
    """Of this process and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1])
    numbers = parser.parse_args().processes
    train = load("cogs/variable-free").split("train")
    targets = TargetGrammar.read(Path(compgen.__file__).parent / "configs" / "csl_cogs.cfg")
    published = load_config(CslOptions, "csl_cogs").induction
    began = time.process_time()
    seeds = inflections(train)
    print(f"{len(seeds.rules)} seed rules: {time.process_time() - began:.1f} CPU s\n")
    print("| training pairs | processes | steps | rules | CPU s | s | peak MiB |\n|---|---|---|---|---|---|---|")
    # Every 24th pair makes 1,007, every 6th 4,026; the reference was measured on a thousand and four thousand.
    for every, most, limit in ((24, 1000, 8), (6, 4000, 8), (1, len(train), 20)):
        some = Dataset(train.frame.gather_every(every).head(most))
        for number in numbers:
            used, began = processor_seconds(), time.monotonic()
            grammar, steps = induce(some, replace(published, steps=limit), seeds, targets, processes=number)
            used, clock = processor_seconds() - used, time.monotonic() - began
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            found = f"{len(some):,} | {number} | {len(steps)} | {len(grammar.rules)}"
            print(f"| {found} | {used:.1f} | {clock:.1f} | {peak:,} |", flush=True)


if __name__ == "__main__":
    main()
