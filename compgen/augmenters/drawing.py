"""How exchanges are made: all of them if they are few, else drawn in blocks until hardly any is new."""

from collections import deque

BLOCK = 4096  # samples drawn at once
MANY = 1_000_000  # exchanges; if there are more, they are drawn
_PATIENCE, _SELDOM = 10, 0.001


class Novelty:
    """What the last blocks gave: they are exhausted if in ten of them fewer than one sample in a thousand is new."""

    def __init__(self) -> None:
        self._news = deque[int](maxlen=_PATIENCE)

    def exhausted(self, new: int) -> bool:
        """Whether that is so, now that another block gave `new` ones."""
        self._news.append(new)
        return len(self._news) == _PATIENCE and sum(self._news) < _SELDOM * _PATIENCE * BLOCK
