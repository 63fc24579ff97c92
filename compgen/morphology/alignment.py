"""The alignment of lemma and form, and the stem that they share (Samir and Silfverberg 2023, section 2).

A character is an extended grapheme cluster: a letter with its marks, a Bengali consonant with its vowel sign. The
tokens of a dataset are code points; a stem must not cut a cluster in two.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import regex
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.padding import padded
from compgen.data.ragged import Ints
from compgen.data.unimorph import BLANK, CAPITAL, parts
from compgen.errors import DataError, UserError

SHORTEST = 3  # code points of a stretch that counts as part of a stem
NONE = -1  # padding, and the partner of a cluster that is not aligned
_CELLS = 2**22  # of one table of alignments
_SIGN = rf"{regex.escape(CAPITAL)}(?=[\p{{Uppercase}}\p{{Nd}}])"  # one token with the capital or digit behind it
_CLUSTER = regex.compile(rf"(?:{_SIGN})?\X")
_TOKEN = regex.compile(rf"(?s)(?:{_SIGN})?.")


class Word(NamedTuple):
    """An example of inflection: lemma and form in grapheme clusters, and tags."""

    lemma: tuple[str, ...]
    form: tuple[str, ...]
    tags: tuple[str, ...]


def words(dataset: Dataset) -> list[Word]:
    """Return the examples of a dataset as words; raise DataError at the first that is not one of inflection."""
    return [_word(number, *pair) for number, pair in enumerate(dataset.pairs(), start=1)]


def _word(number: int, source: list[str], form: list[str]) -> Word:
    try:
        lemma, tags = parts(source, form)
    except DataError as error:
        raise DataError(f"example {number:,}: {error}") from None
    return Word(clusters(lemma), clusters(form), tuple(tags))


def clusters(tokens: Sequence[str]) -> tuple[str, ...]:
    """Join code points to extended grapheme clusters (Unicode's annex 29)."""
    return tuple(_CLUSTER.findall("".join(tokens)))


def letters(cluster: str) -> tuple[str, ...]:
    """Return the tokens of a cluster."""
    return tuple(_TOKEN.findall(cluster))


@dataclass(frozen=True)
class Aligned:
    """Words as numbers of clusters, aligned."""

    names: tuple[str, ...]  # all clusters, in the order of their code points; a cluster's number is its place
    lemma: Ints  # (words, longest lemma), padded with NONE
    form: Ints  # (words, longest form), padded with NONE
    partner: Ints  # (words, longest lemma): the place in the form of each cluster of the stem; else NONE

    @classmethod
    def of(cls, words: Sequence[Word], shortest: int = SHORTEST) -> "Aligned":
        """Find the stems: aligned equal stretches, of whole clusters, of `shortest` code points or more.

        Lengths are in code points, as the paper's must be: a Bengali word of six code points may have three clusters.
        A blank ends a stretch, so words of a phrase never run together.
        """
        if shortest < 1:
            raise UserError(f"the shortest stretch of a stem: found {shortest}, expected 1 code point or more")
        names = tuple(sorted({cluster for word in words for cluster in (*word.lemma, *word.form)}))
        numbers = {name: number for number, name in enumerate(names)}
        lemma, form = (padded([[numbers[name] for name in word[side]] for word in words], NONE) for side in (0, 1))
        partner = align(lemma, form)
        partner[lemma == numbers.get(BLANK, NONE)] = NONE
        points = np.array([len(letters(name)) for name in names] + [0])[lemma]  # the last is NONE's
        partner[~_in_stretches(partner, points, shortest)] = NONE
        return cls(names, lemma, form, partner)

    @property
    def in_lemma(self) -> NDArray[np.bool_]:
        """Which places of the lemmas belong to the stem, (words, longest lemma)."""
        stem: NDArray[np.bool_] = self.partner != NONE
        return stem

    @property
    def in_form(self) -> NDArray[np.bool_]:
        """Which places of the forms belong to the stem, (words, longest form)."""
        found = np.zeros(self.form.shape, dtype=bool)
        rows, columns = np.nonzero(self.in_lemma)
        found[rows, self.partner[rows, columns]] = True
        return found


def align(lemmas: Ints, forms: Ints) -> Ints:
    """Return for each cluster of each lemma the place of the equal cluster in its form, or NONE.

    The best alignment has the fewest edits (insertions, deletions and substitutions of a cluster); then the fewest
    stretches of equal clusters; then the most equal clusters; then the latest gaps, as suffixes are commoner than
    prefixes: looked at from the end, a gap comes before an equal cluster wherever both are best. The paper does not say
    how to align; this rule is ours.

    Args:
        lemmas, forms: numbers of clusters, (pairs, longest), padded with NONE.
    """
    some = max(1, _CELLS // ((lemmas.shape[1] + 1) * (forms.shape[1] + 1)))
    found = [_align(lemmas[first : first + some], forms[first : first + some]) for first in range(0, len(lemmas), some)]
    return np.concatenate(found) if found else np.full(lemmas.shape, NONE)


def _align(lemmas: Ints, forms: Ints) -> Ints:
    """`align` in one table, cell (i, pair, j) for the first i clusters of a lemma and the first j of its form."""
    size = lemmas.shape[1] + forms.shape[1] + 1
    # One number holds edits, stretches and substitutions, in this order of weight: each is below `size`. With equally
    # many edits, fewer substitutions mean more equal clusters.
    stretch, edit = size, size**2
    matched, other = _costs(lemmas, forms, stretch, edit)
    best = np.minimum(matched, other)
    row = best.shape[1] * best.shape[2]  # cells from one i to the next, in a table laid flat
    back = np.full(best.shape, row + 1)  # how far back the previous cell is if an edit ends here: a substitution,
    back[:, :, 1:][best[:, :, :-1] + edit == other[:, :, 1:]] = 1  # rather an insertion,
    back[1:][best[:-1] + edit == other[1:]] = row  # or rather a deletion
    back[0, :, 0] = 0
    goes_on, match_first = np.zeros(best.shape, dtype=bool), matched < other
    # The stretch did not begin with this match; where it might have as well, it did, so that the gap before it is late.
    goes_on[1:, :, 1:] = matched[:-1, :, :-1] < other[:-1, :, :-1] + stretch

    begin = np.arange(len(lemmas)) * best.shape[2]
    cell = begin + (lemmas != NONE).sum(axis=1) * row + (forms != NONE).sum(axis=1)
    in_match, matches = match_first.flat[cell], []
    while (cell != begin).any():  # from the end of each pair to its beginning
        matches.append(cell[in_match])
        before = cell - np.where(in_match, row + 1, back.flat[cell])
        in_match = np.where(in_match, goes_on.flat[cell], match_first.flat[before])
        cell = before
    partner = np.full(lemmas.shape, NONE)
    if matches:
        i, pair, j = np.unravel_index(np.concatenate(matches), best.shape)
        partner[pair, i - 1] = j - 1
    return partner


def _costs(lemmas: Ints, forms: Ints, stretch: int, edit: int) -> tuple[Ints, Ints]:
    """Return the least costs of aligning prefixes, (i, pair, j): those that end in a match, and in an edit."""
    shape = (lemmas.shape[1] + 1, len(lemmas), forms.shape[1] + 1)
    far = edit * (shape[0] + shape[2])  # more than any alignment costs
    number = np.int32 if 4 * far < 2**31 else np.int64  # half the memory takes half the time
    matched, other = np.full(shape, far, dtype=number), np.full(shape, far, dtype=number)
    insertions = edit * np.arange(shape[2], dtype=number)
    other[0] = insertions
    for i in range(1, shape[0]):
        above, best = matched[i - 1], np.minimum(matched[i - 1], other[i - 1])
        same = lemmas[:, i - 1, None] == forms
        matched[i, :, 1:] = np.where(same, np.minimum(above[:, :-1], other[i - 1, :, :-1] + stretch), far)
        reached = best + edit
        reached[:, 1:] = np.minimum(reached[:, 1:], best[:, :-1] + edit + 1)
        reached[:, 1:] = np.minimum(reached[:, 1:], matched[i, :, :-1] + edit)
        # Any number of insertions, without a loop over columns.
        other[i] = np.minimum.accumulate(reached - insertions, axis=1) + insertions
    return matched, other


def _in_stretches(partner: Ints, points: Ints, shortest: int) -> NDArray[np.bool_]:
    """Return which places belong to a stretch of `shortest` code points or more, interrupted on neither side."""
    matched = partner != NONE
    goes_on = np.zeros_like(matched)
    goes_on[:, 1:] = matched[:, :-1] & matched[:, 1:] & (partner[:, 1:] == partner[:, :-1] + 1)
    stretch = np.cumsum(matched & ~goes_on).reshape(matched.shape)
    lengths = np.bincount(stretch[matched], points[matched], minlength=stretch.max(initial=0) + 1)
    long: NDArray[np.bool_] = matched & (lengths[stretch] >= shortest)
    return long
