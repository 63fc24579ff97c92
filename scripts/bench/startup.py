"""Seconds to the first sample, and peak memory, of `cgen sample` and of the C++ runner, on bundles and checkpoints.

    python scripts/bench/startup.py recomb2 generator.pt

The first sample is a run of `-n 1` from the start of the process to its end; medians over repeats. Memory is the
largest resident set of a run that draws many samples with all cores, filters novel and unique included.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compgen.errors import UserError
from compgen.runtime.bundle import resolve
from compgen.sampling import native

REPEATS = 7


def run(command: list[str]) -> tuple[float, float]:
    """Seconds that a command takes, and the MiB it had at its most."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=native.environment())
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(command)} failed")
    return time.perf_counter() - began, usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", help="bundles, and checkpoints (.pt), which the C++ runner does not open")
    parser.add_argument("--draws", type=int, default=200_000)
    options = parser.parse_args()
    programs: dict[str, list[str]] = {}
    for name in options.models:
        model = name if name.endswith(".pt") else str(resolve(Path(name)))
        programs[f"`cgen sample {name}`"] = [sys.executable, "-m", "compgen", "sample", model]
        if not name.endswith(".pt"):
            try:
                programs[f"`compgen-sample {name}` (C++)"] = [str(native.runner()), model]
            except UserError as error:
                print(f"{error}\n")
    print("| program | first sample, s | peak MiB |\n|---|---|---|")
    for name, command in programs.items():
        seconds = statistics.median(run([*command, "-n", "1"])[0] for _ in range(REPEATS))
        with tempfile.TemporaryDirectory() as folder:
            many = ["--draws", str(options.draws), "--filter", "novel,unique", "-o", str(Path(folder) / "out.jsonl")]
            _, memory = run([*command, *many])
        print(f"| {name} | {seconds:.2f} | {memory:,.0f} |", flush=True)


if __name__ == "__main__":
    main()
