"""Tests run beside other work: one thread each keeps numeric libraries from fighting over cores.

What others publish is looked for in COMPGEN_DATA, or else beside the project; tests that need it skip where it is not.
"""

import os
from pathlib import Path

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("COMPGEN_DATA", str(Path(__file__).parents[2] / "shared" / "data"))


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
