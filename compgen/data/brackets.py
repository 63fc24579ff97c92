"""Brackets, whether they pair, and those that have a label."""

import re
from collections.abc import Collection

CLOSING = {")": "(", "]": "[", "}": "{"}


def balanced(text: str) -> bool:
    """Whether each bracket of a text has its counterpart, in the right order."""
    opened: list[str] = []
    for letter in text:
        if letter in CLOSING.values():
            opened.append(letter)
        elif letter in CLOSING and (not opened or opened.pop() != CLOSING[letter]):
            return False
    return not opened


_LABELLED = re.compile(r"[(\[{][^\W\d][^()\[\]{}]*")


def labelled(tokens: Collection[str]) -> set[str]:
    """Return the opening brackets with the label of what they enclose: `[SL:TASK` of `[SL:TASK buy milk ]`.

    There are such only where the closing bracket is a token, too.
    """
    closed = {opening for closing, opening in CLOSING.items() if closing in tokens}
    return {token for token in tokens if token[:1] in closed and _LABELLED.fullmatch(token)}
