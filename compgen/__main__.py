"""The command `cgen`, which is also `compgen` and `python -m compgen`."""

import atexit
import gc
import os
import sys
from typing import NoReturn

# Polars' allocator keeps what is freed for two seconds, for the next tables and the threads of two cores. As Polars
# sets it, it gives pages back to the system after half a second, and takes new ones, which must be filled with zeros:
# a tenth of large tables' time.
os.environ.setdefault("_RJEM_MALLOC_CONF", f"dirty_decay_ms:2000,narenas:{max(1, (os.cpu_count() or 1) // 2)}")

# PyTorch's threads (GNU OpenMP) spin while they wait for each other. Beside other programs that keep the cores busy,
# that lasts a time slice each time. After so many turns (about 0.1 ms) they now sleep, which takes hardly longer
# where nothing else runs (docs/speed.md).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

# Python looks for garbage each time that there are 700 objects more, and once more at its end. Imports make many
# thousands of objects, which stay: looking through them takes a third of the time of a short command.
gc.set_threshold(100_000)
atexit.register(gc.freeze)


def main() -> NoReturn:
    """Run the command; Ctrl-C while it is being imported ends it quietly, too."""
    try:
        from compgen.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
