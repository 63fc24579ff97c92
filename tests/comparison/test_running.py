"""How the time of a comparison is kept."""

import pytest

from compgen.comparison.findings import _overtime
from compgen.comparison.running import ELAPSED, Running, _left
from compgen.comparison.steps import Step
from compgen.errors import UserError


class Stopped:
    """Workers that are stopped in their first step."""

    count = 1

    def run(self, *_):
        raise KeyboardInterrupt


def test_time_before_an_interruption_counts(tmp_path):
    now = [100.0]
    running = Running(folder=tmp_path, seconds=60, workers=Stopped(), say=print, clock=lambda: now[0])
    running.elapsed()
    now[0] = 112.5
    with pytest.raises(KeyboardInterrupt):
        running.run([])
    assert (tmp_path / ELAPSED).read_text() == "12.5\n"
    assert Running(folder=tmp_path, seconds=60, workers=Stopped(), say=print, clock=lambda: 7.0).elapsed() == 12.5


@pytest.mark.parametrize("content", ["", "[" * 100_000])
def test_a_file_that_is_empty_after_a_machine_failed_or_nested_without_end_is_named(tmp_path, content):
    for name in (ELAPSED, "plan.json", "steps/speed.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    running = Running(folder=tmp_path, seconds=60, workers=Stopped(), say=print)
    for read, name in (
        (running.elapsed, ELAPSED),
        (lambda: running.decided("plan", dict), "plan.json"),
        (lambda: running.found(Step("speed", "speed", {})), "speed.json"),
    ):
        with pytest.raises(UserError, match=f"{name}: damaged: delete it, and the same command makes it again"):
            read()


@pytest.mark.parametrize(("seconds", "said"), [(360, 0), (390, 0), (400, 1)])
def test_a_comparison_that_took_longer_than_it_was_allowed_says_so(seconds, said):
    remarks = _overtime(seconds, 6)
    assert len(remarks) == said
    assert all(remark.startswith("It took 7 minutes of the 6 allowed: ") for remark in remarks)


@pytest.mark.parametrize(
    ("seconds", "says"),
    [
        (-130, "2 minutes over time"),
        (-1, "no time left"),
        (20, "less than a minute left"),
        (65, "1 minute left"),
        (150, "2 minutes left"),
    ],
)
def test_the_time_left_is_told_in_words(seconds, says):
    assert _left(seconds) == says
