"""Tests run beside other work: one thread each keeps numeric libraries from fighting over cores.

What others publish is looked for in COMPGEN_DATA, or else beside the project; tests that need it skip where it is not.
"""

import collections
import os
import tempfile
from pathlib import Path

import hypothesis
import pytest

# Times depend on what else the machine does, and tests assert none.
hypothesis.settings.register_profile("compgen", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("compgen")

os.environ.setdefault("OMP_NUM_THREADS", "1")
# What several test processes need is made once, in a folder that goes with the first of them.
if "COMPGEN_TESTS" not in os.environ:
    _shared = tempfile.TemporaryDirectory(prefix="compgen-tests-")
    os.environ["COMPGEN_TESTS"] = _shared.name
os.environ.setdefault("COMPGEN_DATA", str(Path(__file__).parents[2] / "shared" / "data"))


def pytest_terminal_summary(terminalreporter):
    """Say in a line each why tests were skipped, and how many."""
    reasons = collections.Counter(
        report.longrepr[2].removeprefix("Skipped: ").split(", expected")[0].split(": build it")[0]
        for report in terminalreporter.stats.get("skipped", [])
    )
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")


@pytest.fixture(scope="session")
def built():
    """The C++ runner is there (`make runner` builds it), or the test is skipped."""
    from compgen.errors import UserError
    from compgen.sampling import native

    try:
        return native.runner()
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def has_runner():
    """Whether the C++ runner is there, for tests that have more to show with it."""
    from compgen.errors import UserError
    from compgen.sampling import native

    try:
        return bool(native.runner())
    except UserError:
        return False


@pytest.fixture(scope="session")
def kenlm():
    """KenLM's programs are there (`make lm` builds them), or the test is skipped."""
    from compgen.errors import UserError
    from compgen.lm.install import PROGRAMS, program

    try:
        for name in PROGRAMS:
            program(name)
    except UserError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def oldest():
    """The environment of the oldest versions allowed is there (`make oldest` makes it), or the test is skipped."""
    folder = Path(__file__).parents[1] / "build" / "oldest"
    if not (folder / "ready").exists():
        pytest.skip("the oldest versions allowed are not here (`make oldest` fetches them)")
    return folder
