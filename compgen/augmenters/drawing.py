"""How exchanges are made: all of them if they are few, else drawn in blocks until hardly any is new."""

from collections import deque
from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

from compgen.progress import Watch

BLOCK = 4096  # samples drawn at once
MANY = 1_000_000  # exchanges; if there are more, they are drawn
_PATIENCE, _SELDOM = 10, 0.001
T = TypeVar("T")


def until_exhausted(blocks: Iterable[T], made: Sized, count: int | None, watch: Watch, few: int = 0) -> Iterator[T]:
    """Yield blocks, from which new samples are added to `made`, until it has `count` or hardly any is new any more.

    That is if in ten blocks fewer than one sample in a thousand is.

    Args:
        blocks: of samples.
        made: the new samples.
        count: how many are wanted; all if None.
        watch: hears how far this is.
        few: how many there are, if blocks are of all exchanges, which are gone through; 0 if they are drawn.
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
