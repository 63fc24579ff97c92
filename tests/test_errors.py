import warnings
from pathlib import Path

import pytest

import compgen
from compgen.errors import BundleError, Remark, how_it_ended

QUESTIONS = Path(__file__).parents[1] / "docs/examples/questions.tsv"


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


def test_remarks_point_to_the_line_of_the_user(tmp_path):
    # Of a reader several calls below `load_dataset`, and of a function of the interface itself.
    (tmp_path / "q.csv").write_text("question,sql\na b,x y\n")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        data = compgen.load_dataset(tmp_path / "q.csv")
        compgen.augment(data, "resample", count=3)
        compgen.augment(compgen.load_dataset(QUESTIONS), "geca", count=100_000)
    assert [one.category for one in told] == [Remark, Remark]
    assert {one.filename for one in told} == {__file__}
