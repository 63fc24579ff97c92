"""When exchanges are enough, or no more are to be had."""

from itertools import repeat

import pytest

from compgen.augmenters.drawing import BLOCK, until_exhausted
from compgen.progress import unwatched


def taken(blocks, wanted, few=0, watch=unwatched):
    """How many blocks are taken, if each is a number of new samples."""
    made, number = [], 0
    for number, new in enumerate(until_exhausted(blocks, made, wanted, watch, few), start=1):  # noqa: B007
        made += range(new)
    return number


def test_no_block_is_asked_for_when_there_are_as_many_as_wanted():
    assert taken(repeat(5, 9), 15) == 3
    assert taken([BLOCK], None) == 1


def test_drawing_ends_when_ten_blocks_in_a_row_gave_hardly_anything_new():
    assert taken((BLOCK if number < 7 else 0 for number in range(50)), None) == 7 + 10
    seldom = BLOCK // 1000  # fewer than one in a thousand; one more is not
    assert taken(repeat(seldom, 50), None) == 10
    assert taken(repeat(seldom + 1, 50), None) == 50


def test_exchanges_that_are_few_are_all_gone_through():
    assert taken(repeat(0, 30), None, few=30 * BLOCK) == 30


@pytest.mark.parametrize(
    ("wanted", "few", "shares"),
    [(20, 0, [0.25, 0.5, 0.75]), (20, 50, [0.25, 0.5, 0.75]), (None, 50, [0.1, 0.2, 0.3, 0.4])],
)
def test_watch_hears_the_share_of_what_is_wanted_or_there(wanted, few, shares):
    heard = []
    taken(repeat(5, 4), wanted, few, lambda _stage, share, _note: heard.append(share))
    assert heard == shares
