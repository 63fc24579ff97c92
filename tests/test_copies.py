"""Copies of an object in other processes."""

import functools
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from compgen.copies import copies
from compgen.errors import UserError


class Sum:
    """Adds up numbers."""

    def __init__(self, first):
        self.total = first

    def add(self, number):
        """Add a number; return nothing."""
        self.total += number

    def ask(self):
        """Return the process and what it has added up."""
        return os.getpid(), self.total

    def wait(self):
        """Work for long."""
        time.sleep(600)
        return True


def makers(count):
    return [functools.partial(Sum, 10 * number) for number in range(count)]


def ask(team):
    team.call("ask")
    return team.results()


def test_each_copy_has_a_state_of_its_own():
    with copies(makers(3)) as team:
        for number in (1, 2):
            team.call("add", number)
        found = ask(team)
        team.call("add", 4)
        again = ask(team)
    assert [total for _, total in found] == [3, 13, 23]
    assert again == [(process, total + 4) for process, total in found]
    processes = {process for process, _ in found}
    assert len(processes) == 3
    assert os.getpid() not in processes
    assert not any(Path(f"/proc/{process}").exists() for process in processes)


def test_without_copies_nothing_is_asked():
    with copies([]) as team:
        assert ask(team) == []


def test_what_a_copy_raises_is_raised_here():
    with copies(makers(2)) as team:
        team.call("add")  # what?
        team.call("ask")
        with pytest.raises(TypeError, match="add"):
            team.results()


def test_a_copy_that_was_killed_is_said():
    with copies(makers(2)) as team:
        (first, _), _ = ask(team)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(UserError, match="perhaps for want of memory; OMP_NUM_THREADS=1 does without"):
            ask(team)


ENDED = """
import signal
from compgen.copies import copies

signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # as in a command
with copies([dict]) as team:
    team._processes[0].kill()
    team._processes[0].wait()
    team.call("clear")
"""


def test_a_copy_that_was_killed_is_said_in_commands_too():
    done = subprocess.run([sys.executable, "-c", ENDED], capture_output=True, text=True, check=False)
    assert "UserError: a process that works beside this one has ended, perhaps for want of memory" in done.stderr


def test_copies_are_ended_in_the_middle_of_their_work_when_the_block_raises():
    began = time.monotonic()
    with suppress(KeyboardInterrupt), copies(makers(1)) as team:
        ((process, _),) = ask(team)
        team.call("wait")
        raise KeyboardInterrupt
    assert not Path(f"/proc/{process}").exists()
    assert time.monotonic() - began < 300


def test_a_copy_ends_with_the_process_that_began_it():
    program = (
        "import os, signal; from compgen.copies import copies; from tests.test_copies import makers\n"
        "with copies(makers(1)) as team:\n"
        "    team.call('ask'); ((process, _),) = team.results(); team.call('wait')\n"
        "    print(process, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    place = Path(f"/proc/{int(done.stdout)}")
    for _ in range(600):
        if not place.exists() or "State:\tZ" in (place / "status").read_text():
            return
        time.sleep(0.1)
    pytest.fail("the copy works on")
