"""The quality of made examples, measured against the training data that they were made from.

Whether a new example is right is not known here. What can be measured without that is measured: form, contradictions,
novelty, diversity, and how far the distribution of tokens moves. A figure beyond its limit in LIMITS is a warning.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from rapidfuzz.distance import Levenshtein

from compgen.data.brackets import balanced
from compgen.data.examples import SIDES, Dataset
from compgen.data.ragged import Ints, ranges
from compgen.data.random import Purpose, Stream, stream
from compgen.data.templates import BLANK, shapes
from compgen.errors import DataError

Derives = Callable[[Sequence[Sequence[str]]], Sequence[bool]]  # whether a grammar derives each of some targets

NGRAMS = (1, 2, 3)
ROWS = 2000  # pairs of examples compared, and targets parsed, at most: a share is then exact to about two points
CELLS = 4 * 10**9  # of the tables of edit distances: pairs of a thousand tokens and less are all compared
PROVENANCE = {  # columns that say what an example was made from; in words, of one
    "host": "host",
    "first": "first example",
    "second": "second example",
    "prototypes": "prototype",
    "template": "template",
    "fragment": "fragment",
}
BEGIN, END, MARKERS = 0, 1, 2  # the ends of a side, among its tokens
_BASE = 2**21  # different tokens: a trigram then fits in 64 bits. With more tokens, a few n-grams are confused

LIMITS = {
    # Training data themselves have a few; one example in ten that is broken teaches the form wrongly.
    "unbalanced": 0.10,  # more than the share in training
    "underivable": 0.10,  # more than the share in training
    # A learned generator contradicts itself now and then, which training survives; two in a hundred are a pattern.
    "contradicting": 0.02,  # more than the share in training
    # From here on most of the file are repetitions, which give some examples more weight.
    "repeated": 0.5,
    # A generator draws a training example now and then; a file of little else is the training data again.
    "copied": 0.9,
    # Methods make examples of the tokens of training; other data, or other spaces around signs, have few of them.
    "foreign": 0.5,
}


@dataclass(frozen=True)
class Side:
    """Sources or targets, made and in training.

    Attributes:
        length, training_length: mean number of tokens.
        divergence: the Jensen-Shannon divergence of the distributions of tokens, in bits: 0 alike, 1 disjoint.
        new: for n = 1, 2, 3 the share of the made n-grams that training lacks; the ends of a side count as tokens if
            n is 2 or more.
        new_types: the same, each different n-gram counted once.
    """

    length: float
    training_length: float
    divergence: float
    new: tuple[float, ...]
    new_types: tuple[float, ...]


@dataclass(frozen=True)
class Quality:
    """The quality of made examples. Shares are of the made examples with repetitions, unless stated otherwise.

    Attributes:
        asked: how many were asked for; None if that is not known.
        made, distinct: the number of examples, and of different ones.
        copies: how many of the made examples are training examples.
        balanced: the share of targets (of sentences: sources) whose brackets () [] {} are balanced.
        derivable: the share of different targets, of at most ROWS, that a grammar of targets derives; None without one.
        contradicting: the share whose source has another target in training.
        ambiguous: the share whose source has several targets among those made.
        training_balanced, training_derivable, training_ambiguous: the same shares of the training examples.
        templates: how many different targets there are, with tokens that the source has, too, left blank.
        new_templates: how many of these training lacks.
        distance: the mean of lev(a, b) / max(|a|, |b|), in tokens, over pairs of examples drawn at random:
            ROWS of them, or fewer if examples are long (CELLS).
        training_distance: the same for training examples.
        source, target: see `Side`; no target for sentences.
        used: for each column that says what an example was made from, how many different values it has.
    """

    asked: int | None
    made: int
    distinct: int
    copies: int
    balanced: float
    training_balanced: float
    derivable: float | None
    training_derivable: float | None
    contradicting: float
    ambiguous: float
    training_ambiguous: float
    templates: int
    new_templates: int
    distance: float
    training_distance: float
    source: Side
    target: Side | None
    used: dict[str, int]

    def to_dict(self) -> dict[str, Any]:
        """All figures, for JSON: shares and means to four digits, without those that do not apply."""
        return {name: _rounded(value) for name, value in asdict(self).items() if value is not None}

    def in_words(self) -> list[str]:
        """A few lines for people."""
        made = f"{self.distinct:,} distinct, {self.copies:,} in training"
        if min(self.balanced, self.training_balanced) < 1:
            made += f"; balanced brackets {self.balanced:.1%} (training {self.training_balanced:.1%})"
        if self.derivable is not None:
            made += f"; derivable targets {self.derivable:.1%} (training {self.training_derivable:.1%})"
        if self.target is not None:
            made += f"; sources with another target in training {self.contradicting:.1%}, here {self.ambiguous:.1%}"
        sides = {"source": self.source} | ({} if self.target is None else {"target": self.target})
        fresh = "; ".join(
            f"{name} bigrams {side.new[1]:.1%}, trigrams {side.new[2]:.1%}" for name, side in sides.items()
        )
        lengths = ", ".join(f"{name} {side.length:.1f} ({side.training_length:.1f})" for name, side in sides.items())
        moved = ", ".join(f"{name} {side.divergence:.3f}" for name, side in sides.items())
        lines = [
            f"quality: {made}",
            f"  new: {fresh}; {self.new_templates:,} of {self.templates:,} templates",
            f"  compared with training (in brackets): length {lengths}; distance of two examples {self.distance:.2f} "
            f"({self.training_distance:.2f}); divergence of tokens {moved}",
        ]
        if self.used:
            lines.append(
                "  made from: "
                + ", ".join(f"{count:,} {PROVENANCE[name]}{'s' * (count != 1)}" for name, count in self.used.items())
            )
        return lines

    def warnings(self) -> list[str]:
        """What is wrong by LIMITS: a sentence for each warning, with advice."""
        found = []
        if self.asked is not None and self.made < self.asked:
            found.append(f"{self.made:,} of {self.asked:,} examples: ask for fewer")
        found += self._of_form()
        for share, where, advice in (
            (self.contradicting, "training", "do not train on these"),
            (
                self.ambiguous,
                "the same file",
                "keep one target of each source (`cgen check FILE --fix OUT`; for samples, `cgen sample --vote`)",
            ),
        ):
            if share - self.training_ambiguous > LIMITS["contradicting"]:
                found.append(f"{share:.1%} of the examples have a source with another target in {where}: {advice}")
        copied = self.made and self.copies / self.made > LIMITS["copied"]
        if copied and "host" in self.used:  # `resample` copies hosts on purpose, and repeats them
            return found
        if self.made and 1 - self.distinct / self.made > LIMITS["repeated"]:
            found.append(
                f"{self.distinct:,} of {self.made:,} examples are distinct: ask for fewer, or drop repetitions (`cgen "
                "check FILE --fix OUT --keep-targets`; for samples, `cgen sample --filter unique`)"
            )
        if copied:
            found.append(
                f"{self.copies:,} of {self.made:,} examples are training examples, from which nothing new is learned: "
                "try another method (`cgen check` says which apply)"
            )
        return found

    def _of_form(self) -> list[str]:
        """Warnings by LIMITS about the form of single examples."""
        found = []
        foreign = max(self.source.new[0], 0 if self.target is None else self.target.new[0])
        if foreign > LIMITS["foreign"]:
            found.append(
                f"{foreign:.0%} of the tokens of a side are in no training example: were they made from these data, "
                "with the same spaces around signs?"
            )
        if self.training_balanced - self.balanced > LIMITS["unbalanced"]:
            found.append(
                f"brackets are balanced in {self.balanced:.1%} of the examples, in training in "
                f"{self.training_balanced:.1%}: train the generator longer, lower the temperature, or leave these out"
            )
        if (self.training_derivable or 0) - (self.derivable or 0) > LIMITS["underivable"]:
            found.append(
                f"the grammar derives {self.derivable:.1%} of the targets, in training {self.training_derivable:.1%}: "
                "leave out the others"
            )
        return found


def quality(made: Dataset, training: Dataset, asked: int | None = None, derives: Derives | None = None) -> Quality:
    """Measure made examples against the training examples.

    100,000 examples take about two seconds. What compares pairs of examples looks at ROWS of them, the same ones each
    time, and at fewer if they are long.

    Args:
        made: the examples; repetitions count.
        training: what they were made from; a repeated example counts once.
        asked: how many were asked for, if that is known.
        derives: whether a grammar of targets derives each of some targets.

    Raises:
        DataError: there are no examples, or pairs on one side and sentences on the other.
    """
    if not len(made) or not len(training):
        raise DataError("found no examples, expected some on both sides to compare")
    paired, training_paired = (bool((some.frame["target"].list.len() > 0).any()) for some in (made, training))
    if paired != training_paired:
        kinds = [("sentences", "pairs")[one] for one in (paired, training_paired)]
        raise DataError(f"{kinds[0]} cannot be measured against {kinds[1]}: give the examples that they were made from")
    ours, theirs = _keys(made.frame), _keys(training.frame)
    if not theirs.is_unique().all():
        training = Dataset(training.frame.unique(SIDES, keep="first", maintain_order=True))
        theirs = _keys(training.frame)
    copies = ours.join(theirs, on=list(SIDES), how="semi").height
    known = ours.join(theirs, on="source", how="semi").height
    form = SIDES[paired]
    patterns, old_patterns = (shapes(some).unique() for some in (made.unique(), training))
    derivable, training_derivable = (_derivable(some, derives) if paired else None for some in (made, training))
    return Quality(
        asked=asked,
        made=ours.height,
        distinct=ours.n_unique(),
        copies=copies,
        balanced=_balanced(ours[form]),
        training_balanced=_balanced(theirs[form]),
        derivable=derivable,
        training_derivable=training_derivable,
        contradicting=_share(known - copies, ours.height) if paired else 0.0,
        ambiguous=ambiguous(ours) if paired else 0.0,
        training_ambiguous=ambiguous(theirs) if paired else 0.0,
        templates=len(patterns),
        new_templates=len(patterns) - int(patterns.is_in(old_patterns.implode()).sum()),
        distance=_distance(made.frame, stream(Purpose.QUALITY, 0, 0)),
        training_distance=_distance(training.frame, stream(Purpose.QUALITY, 0, 1)),
        source=_side(made.frame["source"], training.frame["source"]),
        target=_side(made.frame["target"], training.frame["target"]) if paired else None,
        used=_used(made.frame),
    )


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    """Source and target as text, with BLANK, which no token has, between tokens."""
    return frame.select(pl.col(side).list.join(BLANK) for side in SIDES)


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def ambiguous(keys: pl.DataFrame) -> float:
    """The share of examples whose source has several targets."""
    targets = keys.group_by("source").agg(number=pl.col("target").n_unique(), rows=pl.len())
    return _share(int(targets.filter(pl.col("number") > 1)["rows"].sum()), keys.height)


def _balanced(texts: pl.Series) -> float:
    """The share of texts whose brackets are balanced. Each distinct sequence of brackets is checked once."""
    bracketed = texts.filter(texts.str.contains(r"[()\[\]{}]"))
    rows = bracketed.str.replace_all(r"[^()\[\]{}]+", "").value_counts(name="rows")
    return _share(len(texts) - sum(n for text, n in rows.iter_rows() if not balanced(text)), len(texts))


def _derivable(dataset: Dataset, derives: Derives | None) -> float | None:
    if derives is None:
        return None
    targets = dataset.frame.select("target").unique(maintain_order=True)
    chosen = stream(Purpose.QUALITY, 0, 2).permutation(targets.height)[:ROWS]
    return float(np.mean(derives(targets["target"].gather(np.sort(chosen)).to_list()))) if len(chosen) else 1.0


def _distance(frame: pl.DataFrame, rng: Stream) -> float:
    """The mean normalised edit distance, in tokens, of the two examples of each drawn pair."""
    if frame.height < 2:
        return 0.0
    first = rng.integers(0, frame.height, ROWS)
    second = (first + rng.integers(1, frame.height, ROWS)) % frame.height  # another row
    lengths = frame.select(pl.sum_horizontal(pl.col(SIDES).list.len().cast(pl.Int64))).to_series().to_numpy() + 1
    cells = np.cumsum(lengths[first] * lengths[second])
    compared = 1 + np.count_nonzero(cells[1:] <= CELLS)  # of long examples, fewer
    columns = (frame[side].gather(rows[:compared]).to_list() for rows in (first, second) for side in SIDES)
    found = [
        Levenshtein.normalized_distance([*s, BLANK, *t], [*other_s, BLANK, *other_t])
        for s, t, other_s, other_t in zip(*columns, strict=True)
    ]
    return float(np.mean(found))


def _used(frame: pl.DataFrame) -> dict[str, int]:
    """The number of different values in each column that says what examples were made from."""
    columns = {name: frame[name] for name in PROVENANCE if name in frame.columns}
    values = {n: column.explode() if isinstance(column.dtype, pl.List) else column for n, column in columns.items()}
    return {name: column.drop_nulls().n_unique() for name, column in values.items() if column.count()}


def _side(made: pl.Series, training: pl.Series) -> Side:
    ours, theirs = _coded([made, training])
    new, new_types = zip(*(_new(_ngrams(ours, n), _ngrams(theirs, n)) for n in NGRAMS), strict=True)
    length, usual = (float(np.mean(side.list.len().to_numpy())) for side in (made, training))
    return Side(length, usual, _divergence(_ngrams(ours, 1), _ngrams(theirs, 1)), new, new_types)


def _coded(sides: Sequence[pl.Series]) -> list[Ints]:
    """The rows of each series in one array, each as BEGIN, its tokens as numbers from MARKERS on, END."""
    tokens = [side.explode().drop_nulls() for side in sides]
    numbers = pl.concat(tokens).cast(pl.Categorical).to_physical().to_numpy().astype(np.int64)
    coded = []
    for side, own in zip(sides, np.split(numbers, np.cumsum([*map(len, tokens)])[:-1]), strict=True):
        lengths = side.list.len().to_numpy().astype(np.int64)
        stops = np.cumsum(lengths + MARKERS)
        codes = np.full(int(stops[-1]), BEGIN, dtype=np.int64)
        codes[stops - 1] = END
        codes[ranges(stops - 1 - lengths, lengths)[1]] = own + MARKERS
        coded.append(codes)
    return coded


def _ngrams(codes: Ints, n: int) -> pl.Series:
    """Each n-gram within a row as one number with its tokens as digits. A row's ends count as tokens if n > 1."""
    if n == 1:
        return pl.Series(codes[codes >= MARKERS])
    if len(codes) < n:
        return pl.Series([], dtype=pl.Int64)
    first, *others = (codes[place : len(codes) - n + 1 + place] for place in range(n))
    grams, last, within = first, first, np.full(len(first), fill_value=True)
    for following in others:
        within &= last != END
        grams, last = grams * _BASE + following, following
    return pl.Series(grams[within])


def _new(grams: pl.Series, known: pl.Series) -> tuple[float, float]:
    """The share of n-grams that are not known: of all, and of distinct ones."""
    counts = pl.DataFrame({"gram": grams}).group_by("gram").len()
    new = counts.join(pl.DataFrame({"gram": known}), on="gram", how="anti")
    return _share(int(new["len"].sum()), len(grams)), _share(new.height, counts.height)


def _divergence(ours: pl.Series, theirs: pl.Series) -> float:
    """The Jensen-Shannon divergence of two samples of non-negative integers, in bits."""
    size = 1 + max((int(some.max()) for some in (ours, theirs) if len(some)), default=0)  # type: ignore[arg-type]
    p, q = (np.bincount(some.to_numpy(), minlength=size) / max(1, len(some)) for some in (ours, theirs))
    middle = (p + q) / 2
    parts = [np.sum(one[one > 0] * np.log2(one[one > 0] / middle[one > 0])) for one in (p, q)]
    return float(sum(parts) / 2)


def _rounded(value: Any) -> Any:
    """A tree of figures, rounded for a file."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    if isinstance(value, tuple):
        return [_rounded(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value
