"""Packed forests: which derivation is taken, and which example has a rule first."""

from compgen.csl.forests import Forests, first_uses, lowest


def test_the_lowest_derivation_is_taken_then_that_of_fewest_nodes():
    forests = Forests(
        rule=[7, 8, 5, 6, 9],
        height=[0, 0, 1, 2, 1],
        below=[(), (), (0,), (2,), (0, 1)],
        members=[(0,), (1,), (2,), (3, 4, 0)],
        roots=[3],
    )
    assert lowest(forests) == [[7], [8], [5, 7], [7]]
    forests.members[3] = (3, 4)
    assert lowest(forests)[3] == [9, 7, 8]
    forests.members[3] = (4, 2)
    assert lowest(forests)[3] == [5, 7]


def test_a_derivation_is_as_high_as_the_highest_below_it():
    forests = Forests(
        rule=[7, 5, 6, 9],
        height=[0, 1, 2, 1],
        below=[(), (0,), (0, 1), (0, 0, 0, 0)],
        members=[(0,), (1,), (2, 3)],
        roots=[2],
    )
    assert lowest(forests)[2] == [9, 7, 7, 7, 7]  # not [6, 7, 5, 7], which has fewer nodes


def test_the_first_example_that_has_a_rule_anywhere_in_its_forest():
    forests = Forests(
        rule=[7, 8, 5, 6],
        height=[0, 0, 1, 1],
        below=[(), (), (0,), (1,)],
        members=[(0,), (1,), (2,), (3, 2)],
        roots=[-1, 2, 3, 0],  # the first is not derived
    )
    assert first_uses(forests) == {5: 1, 7: 1, 6: 2, 8: 2}
