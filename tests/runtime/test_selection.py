"""Which samples are chosen."""

from compgen.runtime.output import Sample
from compgen.runtime.selection import elect, most_probable


def samples(*found):
    return [
        Sample(i, source.split(), target.split(), log_prob, ()) for i, (source, target, log_prob) in enumerate(found)
    ]


FOUND = samples(
    ("a", "X", -1.0), ("b", "Y", -2.0), ("b", "Y", -3.0), ("a", "Z", -4.0), ("a", "Z", -5.0), ("c", "W", -0.5)
)


def test_the_most_probable_come_first():
    assert [one.index for one in most_probable(FOUND)][:3] == [5, 0, 1]
    assert len(most_probable(FOUND)) == 6


def test_a_source_keeps_the_target_of_most_draws_and_clear_decisions_come_first():
    chosen = elect([*FOUND, *samples(("a", "X", -6.0))])  # b 2 to 0; c 1 to 0; a 2 to 2, where X is more probable
    assert [(one.source, one.target) for one in chosen] == [(["b"], ["Y"]), (["c"], ["W"]), (["a"], ["X"])]
    assert [one.log_prob for one in chosen] == [-2.0, -0.5, -1.0]
    assert elect(FOUND)[1].target == ["Z"]  # 2 to 1, as clear as c and with more votes, though less probable than X


def test_of_equal_votes_the_more_probable_target_wins():
    assert elect(samples(("a", "X", -2.0), ("a", "Y", -1.0)))[0].target == ["Y"]


def test_a_margin_leaves_out_what_is_not_won_by_so_many_draws():
    votes = samples(*[("a", "X", -1.0)] * 4, ("a", "Y", -1.0), *[("b", "X", -1.0)] * 2, ("c", "Z", -1.0))  # by 3, 2, 1
    assert [[one.source[0] for one in elect(votes, margin)] for margin in (1, 2, 3, 4)] == [
        ["a", "b", "c"],
        ["a", "b"],
        ["a"],
        [],
    ]
