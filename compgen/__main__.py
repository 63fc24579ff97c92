"""The command `cgen`, which is also `compgen` and `python -m compgen`."""

import atexit
import gc
import os
import sys
from typing import NoReturn

# Polars' allocator is to keep freed memory for two seconds, and to have one arena for every two cores. As Polars sets
# it, it returns pages to the system after half a second. New pages must be filled with zeros, which takes a tenth of
# the time of work on large tables.
os.environ.setdefault("_RJEM_MALLOC_CONF", f"dirty_decay_ms:2000,narenas:{max(1, (os.cpu_count() or 1) // 2)}")

# PyTorch's threads (GNU OpenMP) spin while they wait for each other. If other programs keep the cores busy, each wait
# lasts a time slice. With this setting, threads sleep after about 0.1 ms of spinning; if nothing else runs, that takes
# hardly longer (docs/speed.md).
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")

# Python looks for garbage after every 700 new objects, and once more at its end. Imports make many thousands of objects
# that all stay: looking through them takes a third of the time of a short command.
gc.set_threshold(100_000)
atexit.register(gc.freeze)


def main() -> NoReturn:
    """Run the command. Ctrl-C ends it quietly during the imports, too."""
    try:
        from compgen.cli.main import run

        run()
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
