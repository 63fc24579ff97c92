import math
import os
import platform
from pathlib import Path

import pytest

from compgen.processors import cores, limit_of_time, of_amd, processors


def test_threads_are_those_asked_for_or_the_cores_there_are(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores() == 3
    for nothing in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", nothing)
        assert cores() == processors() <= len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 1.5),
        ("0::/\n", {"cpu.max": "max 100000\n"}, math.inf),
        (
            "0::/a/b\n",
            {"a/cpu.max": "200000 100000\n", "a/b/cpu.max": "max 100000\n"},
            2,
        ),  # a group is bound by its parents
        ("0::/host/path\n", {"cpu.max": "300000 100000\n"}, 3),  # a container that sees its own group as the root
        ("4:cpu,cpuacct:/a\n0::/\n", {"cpu/a/cpu.cfs_quota_us": "50000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, 0.5),
        ("4:cpu,cpuacct:/\n", {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, math.inf),
        ("5:cpuset:/a\n", {"cpu/a/cpu.cfs_quota_us": "5\n", "cpu/a/cpu.cfs_period_us": "10\n"}, math.inf),
        ("0::/\n", {"cpu.max": "many\n"}, math.inf),
        ("nothing known\n", {}, math.inf),
    ],
)
def test_a_containers_share_of_time_is_a_limit(tmp_path, monkeypatch, group, files, expected):
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(group)
    for name, text in files.items():
        (tmp_path / "sys/fs/cgroup" / Path(name).parent).mkdir(parents=True, exist_ok=True)
        (tmp_path / "sys/fs/cgroup" / name).write_text(text)
    assert limit_of_time(tmp_path) == expected
    monkeypatch.setattr("compgen.processors.limit_of_time", lambda _: expected)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert processors() == (8 if expected == math.inf else math.ceil(expected))


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel name\t: AMD EPYC\n", True),
        ("processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Xeon, no AuthenticAMD\n", False),
        ("processor\t: 0\nBogoMIPS\t: 50.00\n", False),  # ARM's have no such line
    ],
)
def test_the_maker_is_the_one_that_linux_names(tmp_path, monkeypatch, told, expected):
    (tmp_path / "cpuinfo").write_text(told)
    monkeypatch.setattr("compgen.processors.Path", lambda _: tmp_path / "cpuinfo")
    monkeypatch.setattr(platform, "processor", lambda: "")
    assert of_amd() == expected


def test_the_maker_is_the_one_that_windows_names(monkeypatch):
    monkeypatch.setattr("compgen.processors.Path", lambda _: Path("no such folder/cpuinfo"))
    for told, expected in (("AMD64 Family 25, AuthenticAMD", True), ("Intel64 Family 6, GenuineIntel", False)):
        monkeypatch.setattr(platform, "processor", lambda told=told: told)
        assert of_amd() == expected
