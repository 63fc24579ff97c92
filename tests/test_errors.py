import pytest

from compgen.errors import how_it_ended


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
