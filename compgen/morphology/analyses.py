"""What StemCorrupt does to data (Samir and Silfverberg 2023): dependence of stems and affixes, tags, vowel harmony.

Theorem 1, proposition 1, figures 6 and 7, and section 5.1. Stems are found by alignment in samples too, where a drawn
letter may lengthen the stem by chance.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import BLANK
from compgen.errors import DataError, UserError
from compgen.morphology.alignment import SHORTEST, Aligned, words

GAP = "~"  # stands in an affix for each stretch of the stem
# Proposition 1 (iii) and (iv), which are one, as lemma and form have the same stem; (i); (ii).
PAIRS = (("stem", "form affix"), ("stem", "tags"), ("stem", "lemma affix"))
SIZES = (0, 128, 512, 2048, 10_000)  # of augmented data: none, and some of the paper's
PERMUTATIONS = 20
SEED = 0  # of the permutations; any number does
SATURATED = 0.95
HARMONY = {"turkish": ("eiöüî", "aıouâû"), "finnish": ("äöy", "aou")}  # front and back vowels


def parts(dataset: Dataset, shortest: int = SHORTEST) -> pl.DataFrame:
    """Cut each example of inflection into parts, one row each, all of them strings.

    Columns: `stem`, its stretches with GAP between them; `last`, its last cluster; `lemma affix` and `form affix`, the
    rest, with GAP for each stretch (which the paper lacks: it tells prefix from suffix); `suffix`, what follows the
    last stretch of the form; `tags`, joined by semicolons. Without a stem, the suffix is the whole form.
    """
    read = words(dataset)
    aligned = Aligned.of(read, shortest)
    lemma, form = _strings(aligned.names, aligned.lemma), _strings(aligned.names, aligned.form)
    begins, begins_in_form = _beginnings(aligned)
    last = aligned.in_lemma & (_from_the_end(aligned.in_lemma) == 1)
    after = _from_the_end(aligned.in_form) == 0
    stem = np.where(aligned.in_lemma, np.where(begins & (begins.cumsum(axis=1) > 1), GAP, "") + lemma, "")
    return pl.DataFrame(
        {
            "stem": _joined(stem),
            "last": _joined(np.where(last, lemma, "")),
            "lemma affix": _joined(np.where(aligned.in_lemma, np.where(begins, GAP, ""), lemma)),
            "form affix": _joined(np.where(aligned.in_form, np.where(begins_in_form, GAP, ""), form)),
            "suffix": _joined(np.where(after, form, "")),
            "tags": [";".join(word.tags) for word in read],
        }
    )


def _beginnings(aligned: Aligned) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return where stretches of the stem begin in each lemma and form."""
    begins = aligned.in_lemma.copy()
    begins[:, 1:] &= ~aligned.in_lemma[:, :-1] | (aligned.partner[:, 1:] != aligned.partner[:, :-1] + 1)
    in_form = np.zeros_like(aligned.in_form)
    rows, columns = np.nonzero(begins)
    in_form[rows, aligned.partner[rows, columns]] = True
    return begins, in_form


def _from_the_end(mask: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Count the set places of a row from each to the end."""
    return mask[:, ::-1].cumsum(axis=1)[:, ::-1]


def _strings(names: Sequence[str], numbers: NDArray[np.int64]) -> NDArray[np.object_]:
    """Return clusters by their numbers, in the same shape; empty for NONE."""
    return np.array([*names, ""], dtype=object)[numbers]


def _joined(rows: NDArray[np.object_]) -> list[str]:
    return ["".join(row) for row in rows.tolist()]


@dataclass(frozen=True)
class Dependence:
    """The dependence of two variables.

    `adjusted` is (bits - chance) / (lesser entropy - chance): 0 for independence, 1 if one determines the other. It is
    None if chance is SATURATED or more of the lesser entropy, as when nearly every value occurs once: then the examples
    say nothing about dependence.
    """

    bits: float  # empirical mutual information (plug-in)
    chance: float  # its mean if one variable is permuted
    adjusted: float | None


def dependence(first: Sequence[str], second: Sequence[str]) -> Dependence:
    """Estimate the dependence of two variables observed together (proposition 1), with PERMUTATIONS permutations.

    The plug-in estimate is far too high unless observations are many more than values: 100 different stems in 100
    examples determine anything. So read `adjusted`, or ask about the last character of a stem, which has few values.
    """
    if len(first) != len(second) or not len(first):
        raise UserError(f"dependence of {len(first):,} and {len(second):,} observations: expected as many, and some")
    one, other = (np.unique(values, return_inverse=True)[1] for values in (first, second))
    entropies, size = [_entropy(one), _entropy(other)], len(other)
    bits = max(0.0, sum(entropies) - _entropy(one * size + other))
    random = stream(Purpose.PERMUTATIONS, SEED)
    permuted = [_entropy(one * size + random.permutation(other)) for _ in range(PERMUTATIONS)]
    chance = max(0.0, sum(entropies) - float(np.mean(permuted)))
    room = min(entropies) - chance
    return Dependence(bits, chance, (bits - chance) / room if room > (1 - SATURATED) * min(entropies) else None)


def _entropy(values: NDArray[np.int64]) -> float:
    """Return the entropy, in bits, of the shares of distinct values."""
    shares = np.unique(values, return_counts=True)[1] / len(values)
    return float(-(shares * np.log2(shares)).sum())


@dataclass(frozen=True)
class Harmony:
    """Forms with a vowel out of harmony: `violations` of the `judged` ones."""

    violations: int
    judged: int


def harmony(found: pl.DataFrame, language: str) -> Harmony:
    """Count forms whose suffix has a front vowel after a stem whose last vowel is back, or the reverse (section 5.1).

    A form (a row of `parts`) is judged if its stem and its suffix, up to the next blank, have front or back vowels;
    Finnish e and i are neutral. Regular exceptions count as violations (Turkish -ken, -ki, -yor, -leyin; loans; Finnish
    compounds whose last part is neutral), so compare with the share in attested words. The paper's remark 2 speaks of
    the stem's first vowel; where they differ, the last one decides.
    """
    if language not in HARMONY:
        raise UserError(f"vowel harmony of {language!r}: expected {' or '.join(HARMONY)}")
    front, back = HARMONY[language]
    last = pl.col("stem").str.extract(f"([{front}{back}])[^{front}{back}]*$")
    suffix = pl.col("suffix").str.split(BLANK).list.first()
    has_front, has_back = suffix.str.contains(f"[{front}]"), suffix.str.contains(f"[{back}]")
    judged = last.is_not_null() & (has_front | has_back)
    out = judged & pl.when(last.is_in(list(front))).then(has_back).otherwise(has_front)
    violations, count = found.select(out.sum().alias("violations"), judged.sum().alias("judged")).row(0)
    return Harmony(int(violations), int(count))


def commonest_tags(found: pl.DataFrame) -> tuple[str, float]:
    """Return the commonest combination of tags (of several, the first by name) and its share (figure 6)."""
    tags, count = found.group_by("tags").len().sort(["len", "tags"], descending=[True, False]).row(0)
    return str(tags), int(count) / found.height


def correlations(samples: Dataset, loss: str) -> dict[str, float | None]:
    """Return Pearson correlations of losses with edits, stem lengths and form lengths, in clusters (figure 7).

    The paper's edits are the Levenshtein distance of the form from the attested one; ours are the clusters that
    changed, which is no less. None if all values are the same.

    Args:
        samples: of StemCorrupt, with a column of losses.
        loss: the name of that column.

    Raises:
        DataError: an example has no finite number in one of the two columns.
    """
    for column in ("edits", loss):
        values = samples.frame.get_column(column, default=pl.Series([""]))
        if not values.dtype.is_numeric() or values.null_count() or not values.is_finite().all():
            raise DataError(f"correlations need a number in the column {column!r} for each example")
    read = words(samples)
    losses = samples.frame[loss].to_numpy()
    columns = {
        "edits": samples.frame["edits"].to_numpy(),
        "stem length": Aligned.of(read).in_lemma.sum(axis=1),
        "form length": np.array([len(word.form) for word in read]),
    }
    return {name: _pearson(values, losses) for name, values in columns.items()}


def _pearson(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    # The standard deviation of equal numbers may be rounded to more than 0.
    if len(first) < 2 or np.ptp(first) == 0 or np.ptp(second) == 0:
        return None
    return float(np.corrcoef(first, second)[0, 1])


@dataclass(frozen=True)
class Stems:
    """What attested examples and some augmented ones show together."""

    augmented: int  # examples among them
    examples: int
    stemless: int  # examples without a stem; the dependences leave them out, as theorem 1 does
    stems: int  # distinct ones
    tags: str  # the commonest combination
    tags_share: float
    dependences: dict[tuple[str, str], Dependence]  # by two columns of `parts`
    harmony: Harmony | None  # if a language was named


def stems(
    gold: Dataset,
    augmented: Dataset | None = None,
    sizes: Sequence[int] = (),
    shortest: int = SHORTEST,
    language: str | None = None,
) -> list[Stems]:
    """Analyse attested examples with the first k augmented ones added, for each k in `sizes` that there are.

    Without `sizes`, k is each of SIZES that there are, and all.
    """
    if not len(gold):
        raise DataError("stems: found no example, expected some")
    if min(sizes, default=0) < 0:
        raise UserError(f"stems: a size of {min(sizes)}: expected 0 or more")
    most = 0 if augmented is None else len(augmented)
    wanted = sorted({size for size in sizes or (*SIZES, most) if size <= most})
    everything = gold if augmented is None else gold + Dataset(augmented.frame.head(max(wanted, default=0)))
    found = parts(everything, shortest)
    return [_stems(found.head(len(gold) + size), size, language) for size in wanted]


def _stems(found: pl.DataFrame, augmented: int, language: str | None) -> Stems:
    with_stem = found.filter(pl.col("stem") != "")
    tags, share = commonest_tags(found)
    pairs = [*PAIRS, *(("last", second) for _, second in PAIRS)] if with_stem.height else []
    return Stems(
        augmented=augmented,
        examples=found.height,
        stemless=found.height - with_stem.height,
        stems=with_stem["stem"].n_unique(),
        tags=tags,
        tags_share=share,
        dependences={(a, b): dependence(with_stem[a].to_list(), with_stem[b].to_list()) for a, b in pairs},
        harmony=None if language is None else harmony(found, language),
    )
