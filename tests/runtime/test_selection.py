"""Which samples are chosen."""

from compgen.runtime.output import Sample
from compgen.runtime.selection import elect


def samples(*found):
    return [
        Sample(i, source.split(), target.split(), log_prob, ()) for i, (source, target, log_prob) in enumerate(found)
    ]


FOUND = samples(
    ("a", "X", -1.0), ("b", "Y", -2.0), ("b", "Y", -3.0), ("a", "Z", -4.0), ("a", "Z", -5.0), ("c", "W", -0.5)
)


def test_the_most_probable_come_first():
    assert [one.index for one in elect(FOUND, 3, vote=False)] == [5, 0, 1]
    assert len(elect(FOUND, None, vote=False)) == 6


def test_votes_outrank_probability_and_a_source_keeps_one_target():
    chosen = elect(FOUND, None, vote=True)
    assert [(one.source, one.target) for one in chosen] == [(["b"], ["Y"]), (["a"], ["Z"]), (["c"], ["W"])]
    assert [one.log_prob for one in chosen] == [-2.0, -4.0, -0.5]
    assert len(elect(FOUND, 2, vote=True)) == 2
