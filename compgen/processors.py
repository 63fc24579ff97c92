"""How many processors this process may use: a batch system or a container may choose some of the machine's for it."""

import math
import os
import platform
from contextlib import suppress
from pathlib import Path


def processors() -> int:
    """Return the number of processors that the system lets this process run on, or less if their time is limited."""
    if not hasattr(os, "sched_getaffinity"):  # macOS and Windows
        return os.cpu_count() or 1
    return math.ceil(min(len(os.sched_getaffinity(0)), limit_of_time(Path("/"))))


def limit_of_time(root: Path) -> float:
    """Return the limit that Linux sets on the time of this process's control group, in processors; or infinity.

    Containers are given such a limit (`docker run --cpus 2`). A group has its own, and those of groups around it.
    `root` holds `proc` and `sys`.
    """
    groups = root / "sys/fs/cgroup"
    least = math.inf
    with suppress(OSError, ValueError):
        for line in (root / "proc/self/cgroup").read_text("utf-8", errors="surrogateescape").splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and "cpu" not in controllers.split(","):
                continue
            folder = groups / "cpu" if controllers else groups  # version 1 and 2 of control groups
            parts = [part for part in path.split("/") if part]
            for depth in range(len(parts) + 1):
                least = min(least, _limit_of_group(folder.joinpath(*parts[:depth])))
    return least


def _limit_of_group(folder: Path) -> float:
    """Return the limit in a group's own files, its quota of processor time divided by the period; or infinity."""
    with suppress(OSError, ValueError):
        if (folder / "cpu.max").exists():
            quota, period = (folder / "cpu.max").read_text("utf-8").split()  # the quota may be `max`
        else:
            quota, period = ((folder / f"cpu.cfs_{name}_us").read_text("utf-8") for name in ("quota", "period"))
        if int(quota) > 0 and int(period) > 0:  # -1: no limit
            return int(quota) / int(period)
    return math.inf


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
