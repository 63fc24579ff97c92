"""How exchanges are made: all of them if they are few, else drawn in blocks until hardly any sample is new."""

from collections import deque
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from compgen.progress import Watch

BLOCK = 4096  # samples drawn at once
MANY = 1_000_000  # if there are more exchanges than this, some are drawn
_PATIENCE, _SELDOM = 10, 0.001  # drawing ends when the share of new samples in so many blocks is below this
T = TypeVar("T")


def until_exhausted(blocks: Iterable[T], made: Sized, count: int | None, watch: Watch, few: int = 0) -> Iterator[T]:
    """Yield blocks of samples, whose new ones the caller adds to `made`, until it has enough or few are new.

    Few are new if it is fewer than one in a thousand of the samples in the last ten blocks.

    Args:
        blocks: the samples, in blocks of BLOCK.
        made: the new samples so far.
        count: how many are wanted; None for all that there are.
        watch: is told the progress.
        few: the number of all exchanges if `blocks` goes through them, each once; 0 if they are drawn.
    """
    news = deque[int](maxlen=_PATIENCE)
    for block in blocks:
        before = len(made)
        yield block
        news.append(len(made) - before)
        seldom = len(news) == _PATIENCE and sum(news) < _SELDOM * _PATIENCE * BLOCK
        if len(made) == count or (seldom and not few):
            return
        watch("exchange", len(made) / (count or few or 1), "")
