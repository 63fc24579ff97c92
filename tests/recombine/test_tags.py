import numpy as np
import pytest

from compgen.recombine.tags import REFERENCE, TagRule, tag_neighbors

NAMES = ["V", "PST", "PRS", "FUT", "SG", "PL"]
WORDS = [
    ("abc", "V PST SG"),
    ("abd", "V PST SG"),
    ("xyz", "V PST SG"),
    ("abc", "V PST PL"),
    ("abc", "V PRS SG"),
    ("abc", "V FUT PL"),
    ("qqq", "V PRS PL"),
]


def table():
    return np.array([[name in tags.split() for name in NAMES] for _, tags in WORDS])


def neighbors(rule, firsts=4, seconds=4, pool=None):
    return list(tag_neighbors(table(), [lemma for lemma, _ in WORDS], pool or len(WORDS), firsts, seconds, rule))


def test_first_prototypes_have_the_nearest_tags_and_then_the_nearest_lemmas():
    found = neighbors(TagRule())[0]
    assert found.firsts == [1, 2, 3, 4]  # abd before xyz, of the same tags; abc V PST PL before abc V PRS SG, by place


def test_second_prototypes_share_the_words_tags_or_else_are_near_the_first():
    found = neighbors(TagRule(), 3, 2)[0]
    assert found.firsts == [1, 2, 3]
    assert found.seconds == [[2, 3], [1, 3], [1, 2]]
    assert not any(found.fallen)


def test_the_reference_sorts_by_likeness_of_lemmas_and_bars_the_words_own_tags_by_turns():
    even, odd = neighbors(REFERENCE, 4, 1)[:2]
    assert even.firsts == [3, 4, 6, 5]
    assert odd.firsts[:2] == [2, 0]
    # A second has other tags than word and first, and those that the first lacks: PST and SG, where no third has both.
    assert even.fallen == [False, False, True, True]
    assert even.seconds[0] == [4] and even.seconds[2] == [3]


def test_only_training_words_are_prototypes():
    found = neighbors(TagRule(), pool=3)
    assert all(set(one.firsts) <= {0, 1, 2} for one in found)
    assert len(found) == len(WORDS)


@pytest.mark.parametrize("rule", [TagRule(), REFERENCE])
def test_no_word_is_its_own_prototype(rule):
    for word, found in enumerate(neighbors(rule)):
        assert word not in found.firsts
        for first, seconds in zip(found.firsts, found.seconds, strict=True):
            assert not {word, first} & set(seconds)


def test_likeness_of_lemmas_is_jaccards_of_each_pair_alone():
    """`abcdefg` has all letters of `ab` in common with it, and `ab` all that there are."""
    tags = np.ones((4, 1), dtype=bool)
    (found, *_) = tag_neighbors(tags, ["ab", "abcdefg", "ab", "xb"], 4, 3, 1, TagRule())
    assert found.firsts == [2, 3, 1]
    (found, *_) = tag_neighbors(tags, ["aab", "ab", "aabb", "aabc"], 4, 3, 1, TagRule())
    assert found.firsts == [2, 3, 1]  # 3/4, 3/4, 2/3: letters count as often as they are there


def test_a_second_that_covers_has_other_tags_than_the_word():
    """A B C covers what the first, A, lacks of the word A B; another word A B, which is nearer, may not be taken."""
    held = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=bool)
    found = list(tag_neighbors(held, ["k", "a", "b", "c", "d"], 5, 4, 1, REFERENCE))[1]
    seconds = dict(zip(found.firsts, found.seconds, strict=True))
    assert seconds[2] == [0]


def test_a_second_of_the_words_own_tags_comes_before_one_that_is_nearer_to_the_first():
    held = np.array([[1, 1], [1, 1], [1, 0], [1, 0]], dtype=bool)
    found = next(tag_neighbors(held, ["k", "a", "b", "c"], 4, 3, 1, TagRule()))
    assert dict(zip(found.firsts, found.seconds, strict=True)) == {1: [2], 2: [1], 3: [1]}
