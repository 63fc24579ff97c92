"""Signs set apart from words and from each other, so that parts can be exchanged; and close together again.

    SIEHT(Hund.rot,3.5)     SIEHT ( Hund . rot , 3.5 )      apart
                            SIEHT ￭( ￭Hund ￭. ￭rot ￭, ￭3.5 ￭)     marked

A word of letters, digits, `_` and combining marks stays whole, and so do a number with points (3.5), a variable ($0),
and a minus with its number where no other sign or word stands close before it but an opening bracket, a comma or an
operator: `f(-2)` has -2, `x-2` has x, - and 2. Any other character is a token; so is a letter, with its marks, of a
script that is written without spaces: Chinese, Japanese, Thai, Lao, Khmer, Burmese. The joiner ￭ (U+FFED, as in
OpenNMT's tokenizer) marks what stood close to the token before it; with it, what was set apart comes back exactly.
A bracket with a label, `[SL:TASK` of `[SL:TASK buy milk ]`, stays whole: methods see that it is a bracket.
"""

from collections.abc import Callable, Iterable

import polars as pl

from compgen.data.brackets import labelled
from compgen.data.examples import SIDES, Dataset
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError

JOINER = "\uffed"
_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
# In Polars' regular expressions, where \w has combining marks.
PIECE = rf"\d+(?:\.\d+)+|[{_UNSPACED}]\p{{M}}*|\$?[\w--[{_UNSPACED}]]+|(?s:.)"
_BEFORE_MINUS = frozenset("([{,;:=<>+*/|&!")


def apart(dataset: Dataset, *, marked: bool = False) -> Dataset:
    """Return a dataset whose tokens are words or signs; if `marked`, those that stood close have a joiner.

    Raises:
        DataError: a token has the joiner already, or a sign is one that data cannot have.
    """
    tokens = pl.concat([dataset.frame[side].explode().drop_nulls() for side in SIDES]).unique()
    mark = JOINER if marked else ""
    taken = next((token for token in tokens if marked and JOINER in token), None)
    if taken is not None:
        raise DataError(f"found {taken!r:.80}, which has the sign of what stood close ({JOINER}) already")
    made: dict[str, list[str]] = {}
    whole = labelled({*tokens})
    for token, found in zip(tokens, tokens.str.extract_all(PIECE).to_list(), strict=True):
        first, *others = [token] if token in whole else _whole_numbers(found) or [token]
        made[token] = [first, *(mark + piece for piece in others)]
        for piece in made[token]:
            if why := why_not_data(piece):
                raise DataError(f"found {token!r:.80}, of which {piece!r} would be a token, which {why}")
    return _with_sides(dataset, lambda side: [piece for token in side for piece in made[token]])


def together(dataset: Dataset) -> Dataset:
    """Return a dataset with marked tokens close to those before them: what was set apart, or predictions of it."""
    return _with_sides(dataset, _close)


def _close(tokens: Iterable[str]) -> list[str]:
    found: list[str] = []
    for token in tokens:
        piece = token.removeprefix(JOINER)
        if found and piece != token:
            found[-1] += piece
        elif piece or piece == token:  # an empty token stays
            found.append(piece)
    return found


def _whole_numbers(pieces: list[str]) -> list[str]:
    """Return pieces with a minus joined to its number, where it is one of a number."""
    found: list[str] = []
    for at, piece in enumerate(pieces):
        free = at < 2 or pieces[at - 2] in _BEFORE_MINUS
        if at and pieces[at - 1] == "-" and free and piece[0].isdecimal() and piece.replace(".", "").isdecimal():
            found[-1] += piece
        else:
            found.append(piece)
    return found


def _with_sides(dataset: Dataset, change: Callable[[list[str]], list[str]]) -> Dataset:
    return dataset.with_sides(**{side: [change(tokens) for tokens in dataset.frame[side].to_list()] for side in SIDES})
