"""Which samples are chosen."""

from compgen.runtime.output import Sample
from compgen.runtime.selection import elect, most_probable, of_each_length


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


def test_every_target_length_has_its_share_and_what_is_missing_goes_to_the_best():
    ranked = samples(*((f"s{i}", target, -i) for i, target in enumerate(["X", "Y", "Z", "X X", "Y Y", "X X X", "W"])))
    chosen = of_each_length(ranked, 4, [1] * 4 + [2] * 2 + [3] * 2)
    assert [one.index for one in chosen] == [0, 1, 3, 5]
    # No sample has four tokens: their half of the places goes to the first ones left, whatever their length.
    assert [one.index for one in of_each_length(ranked, 4, [2, 2, 4, 4])] == [0, 1, 3, 4]
    assert [one.index for one in of_each_length(ranked, 3, [1] * 5 + [2] * 3)] == [0, 1, 3]  # 1.9 and 1.1 places
    assert len(of_each_length(ranked, 50, [1, 2])) == len(ranked)
    assert of_each_length([], 3, [1]) == []
