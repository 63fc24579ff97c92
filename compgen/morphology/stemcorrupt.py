"""StemCorrupt: inflections of made-up stems (Samir and Silfverberg 2023, section 2).

The stem that lemma and form share is found by alignment, and some of its characters are replaced by random ones of the
language's alphabet, the same in lemma and form. What is left, affixes and tags, stays.

Where the paper leaves room, or we leave it:

- Characters are grapheme clusters, and the alignment is ours: see `compgen.morphology.alignment`.
- The alphabet is that of the training examples given, where the program of Anastasopoulos and Neubig, whose figure the
  paper shows, adds that of the development set. Hyphens and apostrophes belong to it, as in many orthographies they are
  letters; the blank does not.
- Every character of a stem may be replaced, where that program leaves the first and the last of a long stretch alone.
- The example to corrupt is drawn anew for each sample, each alike, where that program goes through all in turn.
- Samples are new and distinct, which the paper does not ask for.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import Field

from compgen.augmenters.base import HOST, WORDS, Augmenter, Options
from compgen.data.examples import TOKENS, Dataset
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import BLANK
from compgen.errors import DataError, ExhaustedError
from compgen.morphology.alignment import SHORTEST, Aligned, Word, words
from compgen.morphology.harmony import Tier
from compgen.morphology.pieces import Numbers, Pieces, Random, numbers, rectangle
from compgen.progress import Watch

BLOCK = 4096  # candidates drawn at once: their arrays stay in a processor's cache
RARE, MANY = 1000, 1 << 24  # give up when fewer than 1 in RARE draws is new and more than MANY draws remain
PATIENCE = 32  # blocks without a new example after which to give up
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class StemCorruptOptions(Options):
    """How much of a stem is replaced, and which samples are kept."""

    theta: float = Field(
        0.5,
        gt=0,
        le=1,
        description="The probability that a character of the stem is replaced, up to 1. The character drawn may be the "
        "same again.",
    )
    shortest: int = Field(
        SHORTEST,
        ge=1,
        description="Characters (code points) of a stretch of lemma and form that counts as stem.",
    )
    stemless: Literal["drop", "keep"] = Field(
        "drop",
        description="Examples without a stem: drop, or keep them among the samples as they are (so they are not new).",
    )
    candidates: int = Field(
        1,
        ge=1,
        description="Make K times as many and keep those whose vowels go together as in DATA, for languages with vowel "
        "harmony; 16 does.",
        json_schema_extra={"metavar": "K"},
    )


class StemCorrupt(Augmenter[StemCorruptOptions]):
    """Replace characters of the stem, the same in lemma and form (Samir and Silfverberg 2023).

    Examples are of inflection: a source is the letters of a lemma and its tags, a target the letters of a form.
    Samples have the columns `host`, the row in the training data of the example that was corrupted (of its first
    occurrence), and `edits`, how many of its characters really changed. With `candidates`, see `morphology.harmony`.

    Attributes, after `fit`:
        examples: how many distinct training examples take part.
        dropped: how many were left out because they have no stem.
    """

    name = "stemcorrupt"
    options_type = StemCorruptOptions
    takes = frozenset({WORDS})
    columns: ClassVar[dict[str, Any]] = {HOST: pl.Int64, "edits": pl.Int64}
    usual = 10_000
    example = "compgen augment stemcorrupt sigmorphon/turkish --split train-low -n 10000 -o more.tsv"

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002
        """Align the distinct examples of inflection in a dataset.

        Raises:
            DataError: an example is not one of inflection (see `words`), or all are written with one character.
            ExhaustedError: none has a stem.
        """
        options, first = self.options, dict[Word, int]()
        for row, word in enumerate(words(dataset)):
            first.setdefault(word, row)
        distinct = sorted(first)  # so that the order of the rows does not matter
        aligned = Aligned.of(distinct, options.shortest)
        lengths = aligned.in_lemma.sum(axis=1)
        if not lengths.any():
            raise ExhaustedError(
                f"StemCorrupt can make nothing of these data: in {len(distinct):,} distinct examples no "
                f"{options.shortest} or more characters of the lemma stand together in the form"
            )
        rows = np.array([first[word] for word in distinct])
        self._tables = _tables(distinct, aligned, options.stemless == "keep", rows)
        self.examples = len(self._tables.row)
        self.dropped = len(distinct) - self.examples
        self._tier = Tier.of(dataset) if options.candidates > 1 else None

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:  # noqa: ARG002
        """`count` new, distinct examples; with `candidates`, those of so many whose vowels agree best.

        Sample i of a seed depends on the distinct training examples, the options and i alone: fewer samples are the
        first of more (but not with `candidates`). Two that a 64-bit hash cannot tell apart count as the same.

        Raises:
            ExhaustedError: there are not as many, or no new one in a long time; the message says why.
        """
        count, candidates = self.usual if count is None else count, self.options.candidates
        if self._tier is None:
            return self._distinct(count, seed)
        try:
            pool = self._distinct(count * candidates, seed)
        except ExhaustedError as error:
            raise ExhaustedError(f"{error}; or ask for fewer candidates than {candidates} a sample") from error
        return self._tier.choose(pool, count, seed)

    def facts(self) -> dict[str, Any]:
        """How many training examples took part, and how many had no stem."""
        return {"examples": self.examples, "dropped": self.dropped}

    def described(self) -> str:
        """The report in words, for people."""
        left_out = f"; {self.dropped:,} dropped for want of a stem"
        if self.dropped and self.options.shortest > 1:
            left_out += " (a lower --shortest may keep some)"
        return f"{super().described()} of {self.examples:,} training examples{left_out}"

    def _distinct(self, count: int, seed: int) -> pl.DataFrame:
        """`count` new, distinct examples."""
        tables, theta = self._tables, self.options.theta
        most = tables.most()
        if count > most:
            raise ExhaustedError(f"StemCorrupt: {self._these()} give at most {most:,} new ones, fewer than {count:,}")
        parts: list[_Samples] = []
        new, idle = np.zeros(0, dtype=np.int64), 0
        while len(new) < count:
            if idle >= PATIENCE:
                raise ExhaustedError(
                    f"StemCorrupt: found {len(new):,} of {count:,} new examples and no more in {idle * BLOCK:,} draws "
                    f"from {self._these()}; ask for fewer, or for a higher theta than {theta:g}"
                )
            # As many as it takes if as many of them are new as up to now; at first, if one in nine is not.
            drawn, found = (len(parts) * BLOCK, len(new)) if len(new) else (9, 8)
            blocks = -(-(count - len(new)) * drawn // found // BLOCK)
            if drawn > RARE * found and blocks * BLOCK > MANY:
                raise ExhaustedError(
                    f"StemCorrupt: found {len(new):,} new examples in {drawn:,} draws from {self._these()}: too rare "
                    f"for {count:,}; ask for fewer, or for a higher theta than {theta:g}"
                )
            blocks = min(blocks, max(PATIENCE, len(parts)))
            before = len(new)
            parts += [tables.draw(seed, len(parts) + number, theta) for number in range(blocks)]
            new = _first_of_each(np.concatenate([part.keys for part in parts]), tables.known)
            idle = 0 if len(new) > before else idle + blocks
        return tables.frame(parts, new[:count])

    def _these(self) -> str:
        lengths = self._tables.length
        return (
            f"{self.examples:,} examples with stems of {lengths.min()} to {lengths.max()} characters and an alphabet "
            f"of {len(self._tables.alphabet):,}"
        )


def _first_of_each(keys: Random, known: Random) -> NDArray[np.int64]:
    """Where, in order, each key stands for the first time that is not a known one."""
    first = pl.Series(np.concatenate([known, keys])).is_first_distinct().to_numpy()
    return np.flatnonzero(first[len(known) :])


def uniform(random: Random, alphabet: NDArray[np.int64]) -> NDArray[np.int64]:
    """The characters that replace others: each of the alphabet alike.

    Args:
        random: a random number below 2^32 for each.
        alphabet: numbers of clusters. That their count does not divide 2^32 shifts probabilities by less than 2^-32.
    """
    drawn: NDArray[np.int64] = alphabet[(random * np.uint64(len(alphabet))) >> _HALF]
    return drawn


@dataclass(frozen=True)
class _Samples:
    """A block of samples, new or not.

    Attributes:
        source, target: their clusters and tags by number, filled up with 0, (BLOCK, most of an example).
        example: the number of the example that each was made from.
        edits: how many of its clusters changed.
        keys: a number for each that those of equal tokens have in common, and hardly any others.
    """

    source: Numbers
    target: Numbers
    example: NDArray[np.int64]
    edits: NDArray[np.int64]
    keys: Random


@dataclass(frozen=True)
class _Tables:
    """What samples are made from.

    Attributes:
        pieces: clusters and tags.
        source, target: those of each example that takes part, filled up with 0, (examples, most of one).
        row: its row in the training data.
        start, length: where its stem begins in the next three, and how long it is.
        stem, in_source, in_target: clusters of all stems, one stem after another, and their places.
        alphabet: the clusters to draw from.
        known: keys of the training examples that samples must differ from.
    """

    pieces: Pieces
    source: Numbers
    target: Numbers
    row: NDArray[np.int64]
    start: NDArray[np.int64]
    length: NDArray[np.int64]
    stem: NDArray[np.int64]
    in_source: NDArray[np.int64]
    in_target: NDArray[np.int64]
    alphabet: NDArray[np.int64]
    known: Random

    def most(self) -> int:
        """No more samples than this are new and distinct: the ways to fill each stem, but for the one that it has."""
        size = len(self.alphabet)
        return sum(size**length - 1 if length else 1 for length in self.length.tolist())

    def draw(self, seed: int, block: int, theta: float) -> _Samples:
        """The candidates of a block of addresses, which has a stream of random numbers to itself."""
        bits = stream(Purpose.CORRUPTION, seed, block).bit_generator
        example = ((bits.random_raw(BLOCK) >> _HALF) * np.uint64(len(self.row)) >> _HALF).astype(np.int64)
        length = self.length[example]
        ends = np.cumsum(length)
        random = bits.random_raw(ends[-1])  # for the characters of all their stems, one after another
        replaced = np.flatnonzero((random & _LOW) < np.uint64(np.ceil(theta * 2**32)))
        # Of which sample each of these is, and which of `stem`.
        sample = np.repeat(np.arange(BLOCK), length)[replaced]
        character = replaced + (self.start[example] + length - ends)[sample]
        drawn = uniform(random[replaced] >> _HALF, self.alphabet)
        edits = np.bincount(sample[drawn != self.stem[character]], minlength=BLOCK)
        source, target = self.source.take(example, axis=0), self.target.take(example, axis=0)
        source[sample, self.in_source[character]] = drawn
        target[sample, self.in_target[character]] = drawn
        return _Samples(source, target, example, edits, self.pieces.keys(source, target))

    def frame(self, parts: list[_Samples], chosen: NDArray[np.int64]) -> pl.DataFrame:
        """Some samples of the blocks, by number, with the strings of their tokens."""
        if not len(chosen):
            return pl.DataFrame(schema={"source": TOKENS, "target": TOKENS, **StemCorrupt.columns})
        bounds = np.searchsorted(chosen, BLOCK * np.arange(len(parts) + 1))
        picked = [
            (part, chosen[bounds[number] : bounds[number + 1]] - number * BLOCK) for number, part in enumerate(parts)
        ]
        columns = {
            "source": self.pieces.lists([part.source[rows] for part, rows in picked if len(rows)]),
            "target": self.pieces.lists([part.target[rows] for part, rows in picked if len(rows)]),
            HOST: self.row[np.concatenate([part.example[rows] for part, rows in picked])],
            "edits": np.concatenate([part.edits[rows] for part, rows in picked]),
        }
        return pl.DataFrame(columns)


def _tables(distinct: list[Word], aligned: Aligned, keep: bool, row: NDArray[np.int64]) -> _Tables:
    """The tables of distinct examples that stand in these rows of the training data."""
    alphabet = np.array([number for number, name in enumerate(aligned.names, start=1) if name != BLANK])
    if len(alphabet) < 2:
        raise DataError(
            f"StemCorrupt: lemmas and forms are written with {len(alphabet)} character: expected an alphabet of two or "
            "more, as otherwise nothing can change"
        )
    tags = sorted({tag for word in distinct for tag in word.tags})
    pieces = Pieces.of([*map(tuple, aligned.names), *((tag,) for tag in tags)])
    number = numbers([*aligned.names, *tags])
    source = rectangle([[number[name] for name in (*word.lemma, *word.tags)] for word in distinct], len(number))
    target = rectangle([[number[name] for name in word.form] for word in distinct], len(number))
    keys = pieces.keys(source, target)
    part = aligned.in_lemma.any(axis=1) | keep
    length = aligned.in_lemma[part].sum(axis=1)
    words, in_source = np.nonzero(aligned.in_lemma[part])
    return _Tables(
        pieces=pieces,
        source=source[part],
        target=target[part],
        row=row[part],
        start=np.cumsum(length) - length,
        length=length,
        stem=aligned.lemma[part][words, in_source] + 1,
        in_source=in_source,
        in_target=aligned.partner[part][words, in_source],
        alphabet=alphabet,
        # Those without a stem that are kept can only be sampled as they are.
        known=keys[~part | aligned.in_lemma.any(axis=1)],
    )
