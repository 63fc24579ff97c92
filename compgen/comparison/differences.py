"""What two sequences have in common, token by token, for people to look at."""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from compgen.comparison.result import Changed, Origin, Shown

LONGEST = 500  # tokens of a text that are compared
MOST = 400  # characters of a text that are shown
CONTEXT = 6  # tokens kept before and after what differs, where a text is too long to be shown whole


class Piece(NamedTuple):
    """Tokens in a row. `kind` is `same`, `new` (differs), `gone` (was replaced) or `cut` (notes what is left out)."""

    text: str
    kind: str


Pieces = list[Piece]
Sides = tuple[list[str], list[str]]  # tokens of a source and a target


@dataclass(frozen=True)
class Pair:
    """A source and a target in pieces; `label` says what the example is."""

    label: str
    source: Pieces
    target: Pieces


def beside(shown: Shown) -> tuple[Pair, list[Pair]]:
    """An example and what it was made from, in pieces.

    The origin most like the example is what it is measured by: the example's tokens that this origin lacks are `new`,
    the origin's own are `gone`. In other origins, the tokens that gave those new ones are `new`.
    """
    example = (_tokens(shown.source), _tokens(shown.target))
    origins = [(_tokens(one.source), _tokens(one.target)) for one in shown.made_from]
    if not origins:
        return Pair("", *(_pieces(side, [False] * len(side), "new") for side in example)), []
    nearest = max(range(len(origins)), key=lambda number: _likeness(origins[number], example))
    unlike = [_unlike(origins[nearest][side], example[side]) for side in (0, 1)]
    new = [marks for _, marks in unlike]

    def origin(number: int, one: Origin) -> Pair:
        sides = origins[number]
        if number == nearest:
            return Pair(one.label, *(_pieces(sides[side], unlike[side][0], "gone") for side in (0, 1)))
        given = (_given(sides[side], example[side], new[side]) for side in (0, 1))
        return Pair(one.label, *(_pieces(side, marks, "new") for side, marks in zip(sides, given, strict=True)))

    made = Pair("", *(_pieces(example[side], new[side], "new") for side in (0, 1)))
    return made, [origin(number, one) for number, one in enumerate(shown.made_from)]


def judged(changed: Changed) -> tuple[Pieces, Pieces, Pieces]:
    """The expected target and the two answers in pieces: answers' wrong tokens, and those that an answer lacks."""
    expected, *answers = map(_tokens, (changed.expected, changed.bare, changed.chosen))
    unlike = [_unlike(expected, answer) for answer in answers]
    lacking = [any(marks) for marks in zip(*(marks for marks, _ in unlike), strict=True)]
    bare, chosen = (_pieces(answer, marks, "new") for answer, (_, marks) in zip(answers, unlike, strict=True))
    return _pieces(expected, lacking, "new"), bare, chosen


def plain(text: str) -> Pieces:
    """A text without any marks, cut if it is long."""
    tokens = _tokens(text)
    return _pieces(tokens, [False] * len(tokens), "new")


def _tokens(text: str) -> list[str]:
    tokens = text.split()
    return tokens if len(tokens) <= LONGEST else [*tokens[:LONGEST], "…"]


def _likeness(first: Sides, second: Sides) -> float:
    return Levenshtein.normalized_similarity([*first[0], *first[1]], [*second[0], *second[1]])


def _unlike(first: list[str], second: list[str]) -> tuple[list[bool], list[bool]]:
    """For each token of two sequences, whether the best alignment leaves it without an equal."""
    marks = [True] * len(first), [True] * len(second)
    for step in Levenshtein.opcodes(first, second):
        if step.tag == "equal":
            for side, start, end in ((0, step.src_start, step.src_end), (1, step.dest_start, step.dest_end)):
                marks[side][start:end] = [False] * (end - start)
    return marks


def _given(origin: list[str], example: list[str], new: list[bool]) -> list[bool]:
    """For each token of an origin, whether one of the example's runs of new tokens may be from there.

    Of each run the longest part that stands in the origin counts, unless it is signs alone, such as brackets.
    """
    marks = [False] * len(origin)
    for is_new, group in groupby(zip(example, new, strict=True), key=lambda one: one[1]):
        run = [token for token, _ in group]
        found = SequenceMatcher(None, origin, run, autojunk=False).find_longest_match() if is_new else None
        if found and any(letter.isalnum() for token in run[found.b : found.b + found.size] for letter in token):
            marks[found.a : found.a + found.size] = [True] * found.size
    return marks


def _pieces(tokens: list[str], marks: list[bool], kind: str) -> Pieces:
    """Runs of marked tokens, as `kind`, and of others, cut to MOST characters."""
    long = sum(map(len, tokens)) + len(tokens) > MOST
    made: Pieces = []
    for marked, group in groupby(zip(tokens, marks, strict=True), key=lambda one: one[1]):
        run = [token for token, _ in group]
        if long and not marked and len(run) > 2 * CONTEXT + 1 and any(marks):
            left = len(run) - 2 * CONTEXT
            middle = Piece(f"[… {left:,} tokens …]", "cut")
            made += [Piece(" ".join(run[:CONTEXT]), "same"), middle, Piece(" ".join(run[-CONTEXT:]), "same")]
        else:
            made.append(Piece(" ".join(run), kind if marked else "same"))
    return list(_cut(made))


def _cut(pieces: Pieces) -> Iterator[Piece]:
    """The pieces up to MOST characters, and a note of how many characters are left out."""
    left = MOST
    for number, piece in enumerate(pieces):
        if len(piece.text) > left:
            more = sum(len(one.text) + 1 for one in pieces[number:]) - 1 - left
            yield Piece(piece.text[:left], piece.kind)
            yield Piece(f"[… {more:,} characters more]", "cut")
            return
        left -= len(piece.text)
        yield piece
