"""Literal samples by seed, of methods that draw training examples and exchanges by address.

Whoever changes these literals changes what users get for a seed, and must say so where a version's changes are told.
"""

import pytest

from compgen.augmenters.registry import make
from tests.substitution.test_exchanges import LINES, RULES
from tests.substitution.toy import dataset

VERBS = [f"w{n}" for n in range(10)]
COMMANDS = ("walk once -> WALK", "walk twice -> WALK WALK", "run once -> RUN", "jump once -> JUMP")


def made(name, *lines, count=4, **options):
    fitted = make(name, **options).fit(dataset(*lines))
    return [" ".join(source) for source, _ in fitted.sample(count, seed=2).pairs()]


def test_resample():
    assert made("resample", *COMMANDS) == ["walk twice", "walk once", "run once", "jump once"]


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        ("permute", ["skip twice", "jump twice", "hop once", "run twice"]),
        ("substitute", ["hop once", "jump twice", "skip once", "hop twice"]),
    ],
)
def test_lexsym_of_few_exchanges(move, expected, tmp_path):
    path = tmp_path / "lexicon.tsv"
    path.write_text("".join(f"t\t{verb}\t{verb.upper()}\n" for verb in ("walk", "run", "jump", "hop", "skip")))
    assert made("lexsym", *COMMANDS, lexicon=str(path), move=move, agreement=0) == expected


def test_lexsym_of_more_exchanges_than_can_be_listed(tmp_path):
    path = tmp_path / "lexicon.tsv"
    path.write_text("".join(f"t\t{verb}\t{verb.upper()}\n" for verb in VERBS))
    line = " ".join(VERBS)
    assert made("lexsym", f"{line} -> {line.upper()}", lexicon=str(path), agreement=0, count=2) == [
        "w8 w6 w3 w7 w1 w9 w0 w5 w4 w2",
        "w5 w3 w0 w6 w8 w4 w9 w2 w7 w1",
    ]


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [
        (1, ["largest of number", "largest of rivers in utah", "number of number", "largest of ohio"]),
        (3, ["number of rivers in number", "largest of ohio", "largest of rivers in utah"]),
    ],
)
def test_substitute(rounds, expected, tmp_path):
    path = tmp_path / "grammar.rules"
    path.write_text(RULES)
    options = {"grammar": str(path), "classes": "one", "rounds": rounds, "agreement": 0}
    assert made("substitute", *LINES, count=len(expected), **options) == expected
