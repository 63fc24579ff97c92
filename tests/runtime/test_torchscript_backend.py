"""TorchScript, on the user's word alone."""

import warnings

import pytest

from compgen import Generator
from compgen.errors import UserError
from tests.export.tiny import exported


def test_it_draws_what_others_draw_and_says_nothing_of_its_age():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        generator = Generator.load(exported(), runtime="torchscript", trust_code=True)
    expected = [draw.tokens for draw in Generator.load(exported()).draw(2, 0, 60)]
    assert [draw.tokens for draw in generator.draw(2, 0, 60)] == expected and len(set(expected)) > 20


def test_it_is_not_opened_without_that_word():
    with pytest.raises(UserError, match=r"TorchScript is code, which loading runs.*--trust-code"):
        Generator.load(exported(), runtime="torchscript")
    with pytest.raises(UserError, match="for the runtime torchscript alone"):
        Generator.load(exported(), trust_code=True)
