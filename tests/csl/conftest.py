"""Data and rules that several tests use."""

import pytest

from compgen.csl.rules import Grammar

SCAN_RULES = """\
NT_1 after NT_2 ### NT_2 NT_1
NT_1 and NT_2 ### NT_1 NT_2
NT_1 around left ### I_TURN_LEFT NT_1 I_TURN_LEFT NT_1 I_TURN_LEFT NT_1 I_TURN_LEFT NT_1
NT_1 around right ### I_TURN_RIGHT NT_1 I_TURN_RIGHT NT_1 I_TURN_RIGHT NT_1 I_TURN_RIGHT NT_1
NT_1 left ### I_TURN_LEFT NT_1
NT_1 opposite left ### I_TURN_LEFT I_TURN_LEFT NT_1
NT_1 opposite right ### I_TURN_RIGHT I_TURN_RIGHT NT_1
NT_1 right ### I_TURN_RIGHT NT_1
NT_1 thrice ### NT_1 NT_1 NT_1
NT_1 twice ### NT_1 NT_1
jump ### I_JUMP
look ### I_LOOK
run ### I_RUN
turn around left ### I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT I_TURN_LEFT
turn around right ### I_TURN_RIGHT I_TURN_RIGHT I_TURN_RIGHT I_TURN_RIGHT
turn left ### I_TURN_LEFT
turn opposite left ### I_TURN_LEFT I_TURN_LEFT
turn opposite right ### I_TURN_RIGHT I_TURN_RIGHT
turn right ### I_TURN_RIGHT
walk ### I_WALK
"""


@pytest.fixture(scope="session")
def scan_grammar() -> Grammar:
    """The grammar that the published program induces from SCAN."""
    return Grammar.parse(SCAN_RULES.splitlines())
