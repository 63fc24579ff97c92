"""How many processors this process may use, as a batch system or a container may choose some of the machine's for it.

A container's share of their time (`cpu.max` of Linux) is not looked at: OMP_NUM_THREADS says how many to use there.
"""

import os
import platform
from contextlib import suppress
from pathlib import Path


def processors() -> int:
    """Return the number of processors that the system lets this process run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1  # macOS and Windows


def cores() -> int:
    """Return how many threads to use by default: OMP_NUM_THREADS, as in numeric libraries, or the usable processors."""
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return int(asked) if asked.isdecimal() and int(asked) else processors()


def of_amd() -> bool:
    """Return whether the processors are AMD's, as far as the system says."""
    maker = platform.processor()  # on Windows
    with suppress(OSError, StopIteration), Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as stream:
        maker = next(line for line in stream if line.startswith("vendor_id"))
    return "AuthenticAMD" in maker
