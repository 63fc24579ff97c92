"""Which samples are chosen."""

import pytest

from compgen.data.padding import padded
from compgen.sampling.batching import Draw
from compgen.sampling.choice import Choice, elect, most_probable, supported
from compgen.sampling.resampling import Filter, FilterConfig, Training
from tests.sampling.test_resampling import no_prototypes


def samples(*found):
    """Kept draws; words stand for ids."""
    return [
        (Draw(i, (), True, log_prob, ()), tuple(source.split()), tuple(target.split()))
        for i, (source, target, log_prob) in enumerate(found)
    ]


def elected(*arguments):
    return [(" ".join(source), " ".join(target), draw.log_prob) for (draw, source, target), _ in elect(*arguments)]


FOUND = samples(
    ("a", "X", -1.0), ("b", "Y", -2.0), ("b", "Y", -3.0), ("a", "Z", -4.0), ("a", "Z", -5.0), ("c", "W", -0.5)
)


def test_the_most_probable_come_first():
    assert [draw.index for draw, _, _ in most_probable(FOUND)][:3] == [5, 0, 1]
    assert len(most_probable(FOUND)) == 6


def test_a_source_keeps_the_target_of_most_draws_and_clear_decisions_come_first():
    chosen = elected([*FOUND, *samples(("a", "X", -6.0))])  # b 2 to 0; c 1 to 0; a 2 to 2, where X is more probable
    assert chosen == [("b", "Y", -2.0), ("c", "W", -0.5), ("a", "X", -1.0)]
    assert [votes for _, votes in elect(FOUND)] == [(2, 2), (2, 3), (1, 1)]
    assert elected(FOUND)[1][1] == "Z"  # 2 to 1, as clear as c and with more votes, though less probable than X


def test_of_equal_votes_the_more_probable_target_wins():
    assert elected(samples(("a", "X", -2.0), ("a", "Y", -1.0))) == [("a", "Y", -1.0)]


def test_a_margin_leaves_out_what_is_not_won_by_so_many_draws():
    votes = samples(*[("a", "X", -1.0)] * 4, ("a", "Y", -1.0), *[("b", "X", -1.0)] * 2, ("c", "Z", -1.0))  # by 3, 2, 1
    assert [[source for source, _, _ in elected(votes, margin)] for margin in (1, 2, 3, 4)] == [
        ["a", "b", "c"],
        ["a", "b"],
        ["a"],
        [],
    ]


def test_new_neighbours_must_be_shared_by_many_samples():
    known = [("walk", "left"), ("run", "right"), ("walk",)]
    found = [("walk", "right")] * 6 + [("run", "left")] * 3 + [("walk", "left", "walk")]
    assert supported(found, known, 0.3) == [True] * 9 + [False]
    assert supported(found, known, 0.31) == [True] * 6 + [False] * 4
    assert all(supported(found, known, 0.1))
    hundred = [("walk", "right")] * 93 + [("run", "left")] * 7
    assert 0.07 * 100 > 7 and all(supported(hundred, known, 0.07))
    # A source may end where none did; one without any new pair has nothing to be supported.
    assert supported([("run",), ("walk",)], known, 1) == [False, True]


def test_a_vote_on_new_pairs_looks_at_known_ones_too():
    """Until the vote is over: only then is it known which pair a source has."""
    voted = Choice(vote=True).drawing(FilterConfig(("novel", "rare"), "pair"))
    assert (voted.names, voted.novelty) == (("rare",), "both")
    voted = Choice(vote=True).drawing(FilterConfig(("novel", "rare"), "both"))
    assert (voted.names, voted.novelty) == (("novel", "rare"), "source")
    assert Choice().drawing(FilterConfig(("novel",), "pair")).names == ("novel",)


@pytest.mark.parametrize("names", [("rare",), ("novel", "rare")])
def test_all_draws_of_a_source_vote_and_the_winner_must_be_rare(names):
    """A slip with a rare token does not win because only slips were counted."""
    walk, twice, jump, said_walk, said_jump = range(5, 10)
    rows = [[*[walk] * k, twice, 3, *[said_walk] * 2 * k, 2] for k in range(2, 150)] + [[jump, 3, said_jump, 2]]
    training = Training(no_prototypes(padded(rows)))
    config, choice = FilterConfig(names), Choice(vote=True)
    drawn = [(walk, twice, 3, said_walk)] * 5 + [(walk, twice, 3, said_jump, said_jump)] * 2
    drawn += [(walk, jump, 3, said_walk, said_jump)] * 2 + [(walk, jump, 3, said_walk)]  # all are rare
    drawn += [(twice, walk, 3, said_jump, said_jump)]  # nothing votes against it
    judge = Filter(choice.drawing(config), training)
    kept = list(judge.keep(Draw(i, tokens, True, -1.0 - i, ()) for i, tokens in enumerate(drawn)))
    chosen = [(source, target, votes) for (_, source, target), votes in choice.of(kept, config, training)]
    assert chosen == [
        ((walk, jump), (said_walk, said_jump), (2, 3)),
        ((twice, walk), (said_jump, said_jump), (1, 1)),
    ]
    # Samples are those that are rare, whatever votes beside them.
    assert (len(kept), judge.counts.kept, judge.counts.last) == (11, 6, 11)
    assert str(judge.counts) == "11 drawn, 6 kept; not kept: 5 not rare"


@pytest.mark.parametrize(("novelty", "sources"), [("both", [7]), ("source", [6, 7]), ("pair", [5, 6, 7])])
def test_winners_must_be_new(novelty, sources):
    training = Training(no_prototypes(padded([[5, 3, 8, 2], [4, 3, 8, 2]])))
    votes = [((4,), (8,)), ((5,), (9,)), ((6,), (8,)), ((7,), (9,))]  # known; with a new target; a new source; all new
    some = [(Draw(i, (), True, -1.0 - i, ()), *pair) for i, pair in enumerate(votes)]
    found = Choice(vote=True).of(some, FilterConfig(("novel",), novelty), training)
    assert [source for (_, (source,), _), _ in found] == sources


def test_of_what_is_supported_the_best_are_taken():
    training = Training(no_prototypes(padded([[5, 6, 3, 8, 2], [6, 7, 3, 8, 2]])))
    sources = [(5, 6, 7), *[(5, 7)] * 3, (7, 5), (6, 7)]  # 6 7 and 5 6 are known; 5 7 is in three of six; 7 5 in one
    some = [(Draw(i, (), True, -1.0 - i, ()), source, (8,)) for i, source in enumerate(sources)]
    found = {best: Choice(support=0.5, best=best).of(some, FilterConfig(), training) for best in (None, 0, 2)}
    assert [[draw.index for (draw, _, _), _ in chosen] for chosen in found.values()] == [[0, 1, 2, 3, 5], [], [0, 1]]


@pytest.mark.parametrize(
    ("choice", "made"),
    [
        (Choice(), False),
        (Choice(best=0), True),
        (Choice(best=3), True),
        (Choice(vote=True), True),
        (Choice(support=0.1), True),
    ],
)
def test_samples_are_collected_only_if_there_is_something_to_choose(choice, made):
    assert choice.made == made
