"""Literal words by seed.

Whoever changes these literals changes what users get for a seed, and must say so where a version's changes are told.
"""

from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection
from compgen.morphology.stemcorrupt import StemCorrupt


def words(*rows):
    return Dataset.from_pairs(inflection((lemma, form, tuple(tags.split()))) for lemma, form, tags in rows)


def lines(dataset):
    return [f"{' '.join(source)} -> {' '.join(target)}" for source, target in dataset.pairs()]


def test_stemcorrupt():
    german = words(
        ("schlafen", "geschlafen", "V PTCP"), ("laufen", "gelaufen", "V PTCP"), ("kaufen", "kaufte", "V PST")
    )
    assert lines(StemCorrupt().fit(german).sample(6, seed=2)) == [
        "a a c f e e V PTCP -> g e a a c f e e",
        "l g n f e n V PST -> l g n f t e",
        "s c a e a f u f V PTCP -> g e s c a e a f u f",
        "l k u f e n V PTCP -> g e l k u f e n",
        "l a c f e n V PTCP -> g e l a c f e n",
        "s c k k a s e l V PTCP -> g e s c k k a s e l",
    ]


def test_stemcorrupt_in_harmony():
    turkish = words(("evler", "evlerde", "N LOC"), ("okul", "okulda", "N LOC"), ("göz", "gözde", "N LOC"))
    turkish += words(("kitap", "kitapta", "N LOC"))
    assert lines(StemCorrupt(shortest=2, candidates=16).fit(turkish).sample(6, seed=2)) == [
        "g i e N LOC -> g i e d e",
        "o k u o N LOC -> o k u o d a",
        "g k g l N LOC -> g k g l d a",
        "e v g l v N LOC -> e v g l v d e",
        "k i a a i N LOC -> k i a a i t a",
        "u k z u N LOC -> u k z u d a",
    ]
