import os

from compgen.processors import cores


def test_threads_are_those_asked_for_or_the_cores_there_are(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert cores() == 3
    for nothing in ("", "0", "many"):
        monkeypatch.setenv("OMP_NUM_THREADS", nothing)
        assert cores() == len(os.sched_getaffinity(0))
