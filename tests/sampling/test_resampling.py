"""What is kept, and the counts of what is not."""

from collections import Counter

import numpy as np
import pytest

from compgen.errors import ExhaustedError, UserError
from compgen.runtime.pool import PrototypePool
from compgen.sampling.batching import Draw
from compgen.sampling.resampling import MALFORMED, Counts, Filter, FilterConfig, Rarity, Training, ngrams


def training():
    # 40 examples: token 5 is common, 7 (with target 9) stands in one.
    rows = [[5, 3, 8, 2, 0], [5, 6, 3, 8, 2], [7, 3, 9, 2, 0]]
    rows += [[5] * n + [3] + [8] * n + [2] for n in range(2, 39)]
    table = np.zeros((40, 80), dtype=np.int32)
    for i, row in enumerate(rows):
        table[i, : len(row)] = row
    return Training(no_prototypes(table))


def no_prototypes(tokens):
    nothing = np.empty((1, 0), dtype=np.int64)
    return PrototypePool(np.asarray(tokens, dtype=np.int32), np.empty(0, dtype=np.int32), nothing, nothing)


def judge(samples, **config):
    judged = Filter(FilterConfig(**config), training())
    draws = [Draw(i, tuple(t), True, -1.0, ()) for i, t in enumerate(samples)]
    kept = [(source, target) for _, source, target in judged.keep(draws)]
    return kept, judged.counts


def test_malformed_samples_are_never_kept():
    kept, counts = judge([(5, 8), (5, 3), (3, 8), (5, 3, 8, 3, 8), (), (6, 3, 8)])
    assert kept == [((6,), (8,))]
    assert (counts.drawn, counts.kept, dict(counts.rejected)) == (6, 1, {"malformed": 5})
    unfinished = Filter(FilterConfig(), training())
    assert not list(unfinished.keep([Draw(0, (6, 3, 8), False, -1.0, ())]))
    assert unfinished.counts.rejected == {"unfinished": 1}


@pytest.mark.parametrize("targets", [True, False])
def test_sides_are_those_of_the_well_formed_examples(targets):
    pairs, sentences = [[5, 3, 8, 2, 0, 0], [6, 7, 3, 8, 9, 2]], [[5, 3, 2, 0, 0, 0], [6, 7, 3, 2, 0, 0]]
    neither = [[3, 2, 0, 0, 0, 0], [5, 8, 2, 0, 0, 0], [5, 3, 3, 2, 0, 0], [2, 0, 0, 0, 0, 0]]
    more = [*pairs, [3, 8, 2, 0, 0, 0], [5, 3, 8, 3, 8, 2]] if targets else []
    known = Training(no_prototypes(neither + sentences + more))
    found = []
    for ids, lengths in known.sides():
        found.append([tuple(part) for part in np.split(ids, np.cumsum(lengths)[:-1])])
        assert len(ids) == lengths.sum()
    assert list(zip(*found, strict=True)) == known.examples
    assert known.examples == ([((5,), (8,)), ((6, 7), (8, 9))] if targets else [((5,), ()), ((6, 7), ())])


@pytest.mark.parametrize(
    ("novelty", "kept"),
    [("both", [(6, 3, 9, 9)]), ("source", [(6, 3, 9, 9), (6, 3, 8)]), ("pair", [(6, 3, 9, 9), (6, 3, 8), (5, 3, 9)])],
)
def test_novelty(novelty, kept):
    got, counts = judge([(6, 3, 9, 9), (6, 3, 8), (5, 3, 9), (5, 3, 8)], names=("novel",), novelty=novelty)
    assert [(*source, 3, *target) for source, target in got] == kept
    assert counts.rejected == {"not novel": 4 - len(kept)}


def test_rare_is_refused_where_no_token_can_be():
    def asked(vocabulary, **config):
        return Filter(FilterConfig(("rare",), **config), training()).require_rare(vocabulary)

    asked(10, rarity=0.03)  # 6, 7 and 9 are in one of 40
    with pytest.raises(ExhaustedError, match=r"no token is rare: each is in more than 0.01 of .* raise --rarity, or"):
        asked(10)
    asked(11)  # 10 is in no example of the pool
    asked(10, ngram=2)
    asked(10, rare_tokens=(5,))
    Filter(FilterConfig(), training()).require_rare(10)


def test_prototypes_of_which_none_is_rare_are_refused():
    pool = PrototypePool(
        np.array([[5, 3, 8, 2]], dtype=np.int32), np.zeros(1, dtype=np.int32), *np.array([[[0]], [[1]]])
    )
    with pytest.raises(UserError, match="no prototype is rare: draw from all of them"):
        Filter(FilterConfig(("rare",), rare_tokens=(7,), prototypes="rare"), training()).pool(pool)


def test_unique_keeps_the_first_of_each():
    kept, counts = judge([(6, 3, 8), (6, 3, 8), (6, 3, 9)], names=("unique",))
    assert len(kept) == 2 and counts.rejected == {"not unique": 1}


def test_unique_tells_apart_where_a_source_ends_and_large_numbers():
    different = [(5, 6, 3, 7), (5, 3, 6, 7), (261, 6, 3, 7), (5, 6, 3, 65_543)]  # as 5 and 7 to 8 and to 16 bits
    assert len(judge(different, names=("unique",))[0]) == 4


def test_known_sources_are_unwanted_unless_their_targets_may_be_new():
    known = training()
    config = {novelty: FilterConfig(("novel",), novelty=novelty) for novelty in ("both", "source", "pair")}
    unwanted = {novelty: Filter(one, known).unwanted for novelty, one in config.items()}
    assert unwanted == {"both": known.sources, "source": known.sources, "pair": ()}
    assert Filter(FilterConfig(("unique",)), known).unwanted == ()


def test_of_sentences_the_target_is_empty():
    filters = FilterConfig(("novel", "unique", "rare"), rarity=0.5)
    judged = Filter(filters, Training(no_prototypes([[5, 6, 3, 2, 0], [5, 7, 3, 2, 0], [5, 3, 2, 0, 0]])))
    drawn = [(5, 6, 3), (6, 7, 3), (6, 7, 3), (5, 5, 3), (5, 3, 6), (3,), (5, 7)]  # the third is drawn again
    kept = [(source, target) for _, source, target in judged.keep(Draw(0, one, True, -1.0, ()) for one in drawn)]
    assert kept == [((6, 7), ())]
    assert judged.counts.rejected == {"not novel": 1, "not unique": 1, "not rare": 1, MALFORMED: 3}


@pytest.mark.parametrize(("share", "rare"), [(0.28, False), (0.29, True)])
def test_a_share_that_is_reached_exactly_is_not_exceeded(share, rare):
    assert 0.29 * 100 < 29
    rows = [[5 if at < 29 else 6, 10 + at, 3, 8, 2] for at in range(100)]
    common = Rarity(FilterConfig(("rare",), rarity=share), Training(no_prototypes(rows))).common
    assert ((5,) not in common) == rare and (6,) in common and (10,) not in common


def test_rare_is_by_share_of_distinct_examples():
    samples = [(5, 3, 8), (7, 5, 3, 8), (5, 3, 9)]
    assert [s for s, _ in judge(samples, names=("rare",), rarity=0.05)[0]] == [(7, 5), (5,)]
    assert not judge(samples, names=("rare",), rarity=0.01)[0]  # one example of 40 is more than 1%
    # Of bigrams, those that training never has are rare too.
    assert [s for s, _ in judge([(5, 5, 3, 8, 8), (6, 5, 3, 8)], names=("rare",), ngram=2)[0]] == [(6, 5)]


def test_what_is_not_rare_votes_without_being_a_sample():
    samples = [(5, 3, 8), (7, 5, 3, 8), (5, 3, 9), (3, 8)]
    kept, counts = judge(samples, names=("rare",), rare_tokens=(7, 9), voting=True)
    assert [source for source, _ in kept] == [(5,), (7, 5), (5,)]
    assert (counts.kept, counts.last, counts.rejected) == (2, 3, {"not rare": 1, "malformed": 1})
    assert judge(samples, names=("rare",), rare_tokens=(7, 9))[1] == counts


def test_rare_tokens_can_be_named():
    samples = [(5, 3, 8), (7, 5, 3, 8), (5, 3, 9)]
    assert [s for s, _ in judge(samples, names=("rare",), rare_tokens=(7,))[0]] == [(7, 5)]
    assert len(judge(samples, names=("rare",), rare_tokens=(7, 9))[0]) == 2
    # Token 10 is in no example of the pool, as where `max_tokens` cut it off: nobody named it.
    assert judge([(10, 3, 8)], names=("rare",), rare_tokens=(7,))[0] == []
    assert FilterConfig("novel").names == ("novel",)
    assert FilterConfig("novel, unique").names == FilterConfig(["novel,unique"]).names == ("novel", "unique")


def test_options_without_the_filter_that_uses_them_are_refused():
    for unused in ({"novelty": "pair"}, {"rarity": 0.5}, {"ngram": 2}, {"rare_tokens": (7,)}):
        with pytest.raises(UserError, match="filter"):
            FilterConfig(("unique",), **unused)
    for beside in ({"ngram": 2}, {"rarity": 0.5}):
        with pytest.raises(UserError, match="leave one out"):
            FilterConfig(("rare",), rare_tokens=(7,), **beside)


def drawn_from(pool, **config):
    return Filter(FilterConfig(("rare",), prototypes="rare", **config), Training(pool)).pool(pool)


def test_rare_prototypes_are_those_that_the_filter_keeps():
    tokens = np.array([[5, 3, 8, 2], [7, 3, 8, 2], [5, 3, 9, 2], [3, 5, 7, 2]], dtype=np.int32)  # the last is malformed
    one_block = (np.arange(4, dtype=np.int32), np.array([[0, 0]]), np.array([[4, 4]]))
    pool = PrototypePool(tokens, *one_block)
    assert drawn_from(pool, rare_tokens=(7,)).total == 7  # of 16 tuples those with row 1
    assert drawn_from(pool, rarity=1 / 3).total == 16 - 4  # 7 and 9 are rare, in one of three each
    with pytest.raises(UserError, match="no prototype is rare"):
        drawn_from(pool, rarity=0.01)
    with pytest.raises(UserError, match="no prototypes of which one"):
        drawn_from(no_prototypes(tokens), rare_tokens=(7,))
    assert Filter(FilterConfig(("rare",)), Training(pool)).pool(pool) is pool


def test_unknown_names_are_refused():
    for names, wrong, said in (
        ("fresh", {}, "no filter 'fresh'"),
        (None, {}, "no filter None: expected some of novel, unique, rare"),
        (["novel", 5], {}, "no filter 5"),
        ("rare", {"prototypes": "some"}, "no prototypes 'some'"),
        ("novel", {"prototypes": "rare"}, "add the filter rare"),
        ("rare", {"prototypes": "rare", "ngram": 2}, "leave out ngram"),
        ("novel", {"novelty": "none"}, "no novelty 'none'"),
        ("rare", {"rarity": 0.0}, "rarity 0.0: expected a share"),
        ("rare", {"ngram": 0}, "ngram 0: expected a length"),
    ):
        with pytest.raises(UserError, match=said):
            FilterConfig(names, **wrong)


def test_a_share_that_is_just_reached_is_rare():
    """Token 7 stands in one of 40 examples: in no more than the share of 1 in 40, and rare means at most that."""
    assert judge([(7, 5, 3, 8)], names=("rare",), rarity=1 / 40)[0]
    assert not judge([(7, 5, 3, 8)], names=("rare",), rarity=1 / 40 - 1e-9)[0]


def test_counts_say_at_which_draw_the_last_one_was_kept():
    counts = judge([(5, 3, 8), (6, 3, 9, 9), (5, 3, 8), (6, 6, 3, 9, 8), (5, 3, 8), (5, 3, 8)], names=("novel",))[1]
    assert (counts.drawn, counts.kept, counts.last) == (6, 2, 4)


def test_no_sample_has_an_n_gram_longer_than_itself():
    assert ngrams((5, 6), 2) == {(5, 6)} and ngrams((5, 6), 10**15) == ngrams((), 1) == set()


def test_u_is_equation_18():
    """u(d) = 1[min_t p(d_t) <= epsilon], p the share of training examples that hold a token."""
    known = training()
    share = {
        token: sum(token in (*source, *target) for source, target in known.examples) / len(known.examples)
        for token in (5, 6, 7, 8, 9)
    }
    for epsilon in (0.01, 1 / 40, 0.5, 1.0):
        rarity = Rarity(FilterConfig(("rare",), rarity=epsilon), known)
        for source, target in (((5,), (8,)), ((5, 6), (8,)), ((7,), (9, 8)), ((6, 7), (5, 8))):
            assert rarity.u(source, target) == (min(share[token] for token in source + target) <= epsilon)


def test_counts_in_words():
    rejected = Counter({"not novel": 1200, "not rare": 0, "malformed": 3})
    assert str(Counts(drawn=2000, kept=797, rejected=rejected)) == (
        "2,000 drawn, 797 kept; not kept: 1,200 not novel, 3 malformed"
    )
    assert str(Counts(drawn=5, kept=5)) == "5 drawn, 5 kept"


def test_many_broken_draws_ask_for_a_warning():
    assert Counts(drawn=10, kept=5, rejected=Counter(unfinished=3, malformed=2)).warnings() == []
    (warning,) = Counts(drawn=10, kept=4, rejected=Counter(unfinished=3, malformed=3)).warnings()
    assert "60.0% of the draws were unfinished or malformed" in warning
    assert Counts().warnings() == []
