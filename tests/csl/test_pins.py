"""A literal grammar, and literal samples by seed.

Whoever changes these literals changes what users get for a seed, and must say so where a version's changes are told.
"""

from compgen.csl.augmenter import Csl
from compgen.data.examples import Dataset
from tests.csl.data import published
from tests.csl.test_induction import SMALL

PAIRS = ["walk ### W", "run ### R", "walk twice ### W W", "run twice ### R R", "walk and run ### W R", "look ### L"]
PAIRS += ["look and look ### L L", "jump ### J"]


def test_csl():
    dataset = Dataset.from_pairs([tuple(side.split() for side in line.split(" ### ")) for line in PAIRS])
    csl = Csl(published("scan").model_copy(update={"induction": SMALL})).fit(dataset, seed=0)
    assert csl.grammar.text().splitlines() == [
        "NT_1 and NT_2 ### NT_1 NT_2",
        "NT_1 twice ### NT_1 NT_1",
        "jump ### J",
        "look ### L",
        "run ### R",
        "walk ### W",
    ]
    assert [" ### ".join(map(" ".join, pair)) for pair in csl.sample(6, seed=2).pairs()] == [
        "walk and walk ### W W",
        "run twice ### R R",
        "look and walk ### L W",
        "walk twice ### W W",
        "look twice ### L L",
        "walk and walk ### W W",
    ]
