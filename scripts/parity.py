"""Do all runtimes draw the same samples? 10,000 addresses, batches of 1, 64 and 1,000, in float64 and float32.

    python scripts/parity.py runs/demo/recomb2.pt

Every runtime is compared, sequence by sequence, with PyTorch in float64. A difference in float64, or one in float32
that is not a draw within 1e-5 of a boundary, ends the script with an error.
"""

import argparse
from pathlib import Path

from rich.console import Console

from compgen.cli.export import parity_table
from compgen.export.verify import parity


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 64, 1000])
    parser.add_argument("--native", action="store_true", help="compare the C++ runner too, which `make cpp` builds")
    options = parser.parse_args()
    rows = parity(options.checkpoint, dict.fromkeys(options.batches, options.samples), native=options.native)
    Console(width=120).print(parity_table(rows))


if __name__ == "__main__":
    main()
