"""Brackets, and whether they pair."""

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
