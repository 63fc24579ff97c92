import pytest

from compgen.errors import BundleError, how_it_ended


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (3, "lmplz ended with code 3"),
        (-6, "lmplz was ended by SIGABRT"),
        (-35, "lmplz was ended by signal 35"),
        (-9, "lmplz was ended by SIGKILL, perhaps for want of memory"),
    ],
)
def test_how_a_program_ended(code, said):
    assert how_it_ended("lmplz", code) == said


def test_no_message_steers_a_terminal():
    # The name of a field in a stranger's manifest.
    assert str(BundleError("\x1b]0;title\x07: extra\n\tinputs\x9b2J")) == " ]0;title : extra\n\tinputs 2J"
