"""Literal examples by seed.

Whoever changes these literals changes what users get for a seed, and must say so where a version's changes are told.
"""

import pytest

from compgen.augmenters.concat import Concat
from compgen.data.examples import Dataset
from compgen.geca.augmenter import Geca

SENTENCES = ["she picks the wug up in Fresno", "Pat picks cats up", "Pat puts cats down", "she puts the dax down"]
SENTENCES += ["Pat picks the dax up"]
PAIRS = ["walk once -> WALK", "walk twice -> WALK WALK", "run once -> RUN", "run twice -> RUN RUN", "jump once -> JUMP"]
PAIRS += ["look thrice -> LOOK LOOK LOOK", "look twice -> LOOK LOOK", "run thrice -> RUN RUN RUN"]
BY_PAIRS = ["look once -> LOOK", "walk thrice -> WALK WALK RUN", "walk thrice -> WALK WALK LOOK"]
BY_PAIRS += ["jump twice -> JUMP JUMP", "jump thrice -> JUMP JUMP JUMP", "walk thrice -> WALK WALK WALK"]
BY_SENTENCES = {
    "published": [
        "Pat picks cats down",
        "she puts cats down",
        "she puts the wug down",
        "she picks cats up",
        "she picks the dax down",
        "Pat puts the dax down",
    ],
    "reference": [
        "she puts cats down",
        "she picks cats up in Fresno",
        "she picks the dax up in Fresno",
        "she puts the dax up",
        "Pat picks the dax down",
        "Pat puts the dax down",
    ],
}


def pairs():
    return Dataset.from_pairs([tuple(side.split() for side in line.split(" -> ")) for line in PAIRS])


def lines(dataset):
    return [" -> ".join(" ".join(side) for side in pair if side) for pair in dataset.pairs()]


@pytest.mark.parametrize("mode", ["published", "reference"])
def test_geca_on_pairs(mode):
    assert lines(Geca(mode=mode, span=3, spans=2).fit(pairs()).sample(6, seed=1)) == BY_PAIRS


@pytest.mark.parametrize("mode", BY_SENTENCES)
def test_geca_on_sentences_with_a_window(mode):
    sentences = Dataset.from_pairs([(line.split(), []) for line in SENTENCES])
    made = Geca(mode=mode, span=2, spans=2, window=1).fit(sentences).sample(6, seed=3)
    assert lines(made) == BY_SENTENCES[mode]


def test_concat():
    assert lines(Concat().fit(pairs()).sample(5, seed=2)) == [
        "run thrice | jump once -> RUN RUN RUN | JUMP",
        "run thrice | run once -> RUN RUN RUN | RUN",
        "walk once | walk twice -> WALK | WALK WALK",
        "run thrice | run twice -> RUN RUN RUN | RUN RUN",
        "jump once | walk twice -> JUMP | WALK WALK",
    ]
