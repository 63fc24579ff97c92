"""Progress: a bar on a terminal, but for workers, and lines elsewhere."""

import io
import multiprocessing
import sys

import pytest

from compgen import progress
from compgen.progress import Progress, rate


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("worker", [False, True])
def test_workers_write_lines_on_a_terminal(monkeypatch, worker):
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    monkeypatch.setattr(multiprocessing, "parent_process", lambda: object() if worker else None)
    with Progress("train a.pt", 4) as bar:
        bar.update(2, "loss 1.0")
    assert (sys.stderr.getvalue() == "train a.pt: 2/4 loss 1.0 0 s, 0 s left\n") == worker


@pytest.mark.parametrize("name", ["[red]x.tsv", "[/]"])
def test_brackets_in_a_name_are_shown_as_they_are(monkeypatch, name):
    monkeypatch.setattr(sys, "stderr", Terminal())
    with Progress(f"train {name}", 4) as bar:
        bar.update(2, f"{name} read")
    assert f"train {name} " in sys.stderr.getvalue() and f" {name} read" in sys.stderr.getvalue()


def test_work_without_a_known_end_has_no_time_left(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    with progress.stages() as watch:
        watch("induce", None, "7 rules")
        watch("induce", None, "9 rules")
        watch("learn", 0.5, "loss 1.0")
    assert capsys.readouterr().err.splitlines() == [
        "induce, steps: 1 7 rules 0 s",
        "induce, steps: 2 9 rules 0 s",
        "learn, %: 50/100 loss 1.0 0 s, 0 s left",
    ]


def test_before_anything_is_done_no_time_left_is_guessed(monkeypatch, capsys):
    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    with Progress("sample", 9, done=4) as bar:
        bar.update(4, "0 kept")
        bar.update(5, "1 kept")
    assert capsys.readouterr().err == "sample: 4/9 0 kept 0 s\nsample: 5/9 1 kept 0 s, 0 s left\n"


@pytest.mark.parametrize(
    ("count", "seconds", "said"), [(2, 9.7, "0.21"), (0, 3, "0"), (96, 10, "9.6"), (99_996, 10, "10,000")]
)
def test_what_is_slow_is_not_said_to_stand_still(count, seconds, said):
    assert rate(count, seconds) == said
