"""A text, and a model of it by KenLM's programs."""

import pytest

from compgen.lm.estimation import Estimation, estimate, write_sentences

LINES = [
    "the cat sat on the mat",
    "the dog sat on the log",
    "a cat saw the dog",
    "a dog saw a cat and the cat ran",
    "the mat was on the log",
    "",
    "the dog ran and the cat sat",
]


@pytest.fixture(autouse=True, scope="session")
def _needs(kenlm):
    """All tests here need KenLM's programs."""


@pytest.fixture(scope="session")
def text(tmp_path_factory):
    return write_sentences((line.split() for line in LINES), tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="session")
def arpa(text):
    """A trigram model of the text, as ARPA."""
    out = text.with_name("model.arpa")
    estimate([text], out, Estimation(order=3, fallback=True))
    return out
