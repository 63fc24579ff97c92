"""How many processors this process may use: its share of the machine, in a container or a batch system's job, too."""

import os


def processors() -> int:
    """Return the number of processors that the system lets this process run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS and Windows


def cores() -> int:
    """Return how many threads to use by default: OMP_NUM_THREADS, as in numeric libraries, or the usable processors."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else processors()
