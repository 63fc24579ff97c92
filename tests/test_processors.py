import os
import platform
from pathlib import Path

import pytest

from compgen.processors import cores, of_amd


def test_threads_are_those_asked_for_or_the_cores_there_are(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores() == 3
    for nothing in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", nothing)
        assert cores() == len(os.sched_getaffinity(0))


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
