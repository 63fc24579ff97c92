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

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.examples import SCHEMA, TRAIN, Dataset
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import BLANK
from compgen.errors import DataError, ExhaustedError, UserError, check_draws
from compgen.morphology.alignment import SHORTEST, Aligned, Word, words
from compgen.morphology.pieces import Numbers, Pieces, Random, numbers, rectangle

STEMLESS = ("drop", "keep")
EXTRA = {"gold": pl.Int64, "edits": pl.Int64}
BLOCK = 4096  # candidates drawn at once: their arrays stay in a processor's cache
RARE, MANY = 1000, 1 << 24  # give up when fewer than 1 in RARE draws is new and more than MANY draws remain
PATIENCE = 32  # blocks without a new example after which to give up
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class StemCorrupt:
    """An augmenter that replaces characters of the stem, the same in lemma and form.

    Attributes, after `fit`:
        examples: how many distinct training examples take part.
        dropped: how many were left out because they have no stem.
    """

    def __init__(self, theta: float = 0.5, shortest: int = SHORTEST, stemless: str = "drop") -> None:
        """An augmenter by some options.

        Args:
            theta: the probability that a character of the stem is replaced. The character drawn may be the same again.
            shortest: code points of an aligned stretch that counts as part of the stem.
            stemless: what becomes of examples without a stem: `drop`, or `keep`. Kept, they are drawn like all others,
                and as nothing in them can be replaced, each is sampled as it is, once at most. So it is not new.

        Raises:
            UserError: an option is out of range.
        """
        if not 0 < theta <= 1:
            raise UserError(f"StemCorrupt: theta {theta:g}: expected a probability over 0, up to 1")
        if shortest < 1:
            raise UserError(f"StemCorrupt: shortest {shortest}: expected 1 character or more")
        if stemless not in STEMLESS:
            raise UserError(f"StemCorrupt: no choice {stemless!r} for examples without a stem: expected drop or keep")
        self.theta, self.shortest, self.stemless = theta, shortest, stemless
        self.examples = self.dropped = 0
        self._tables: _Tables | None = None

    def fit(self, dataset: Dataset) -> "StemCorrupt":
        """Align the distinct examples of inflection in a dataset.

        Raises:
            DataError: an example is not one of inflection (see `words`), or all are written with one character.
            ExhaustedError: there is no example, or none has a stem.
        """
        first: dict[Word, int] = {}
        for row, word in enumerate(words(dataset)):
            first.setdefault(word, row)
        distinct = sorted(first)  # so that the order of the rows does not matter
        aligned = Aligned.of(distinct, self.shortest)
        lengths = aligned.in_lemma.sum(axis=1)
        if not lengths.any():
            raise ExhaustedError(
                f"StemCorrupt can make nothing of these data: in {len(distinct):,} distinct examples no "
                f"{self.shortest} or more characters of the lemma stand together in the form"
            )
        rows = np.array([first[word] for word in distinct])
        self._tables = _tables(distinct, aligned, self.stemless == "keep", rows)
        self.examples = len(self._tables.row)
        self.dropped = len(distinct) - self.examples
        return self

    def sample(self, count: int, seed: int = 0) -> Dataset:
        """`count` new, distinct examples, in the split `train`.

        Besides source and target the frame has the columns `gold`, the row in the training data (of its first
        occurrence there) of the example that was corrupted, and `edits`, how many of its characters really changed.

        Sample i of a seed depends on the distinct training examples, the options and i alone: fewer samples are the
        first of more. Samples are as new and as distinct as their tokens, source and target together; two that a 64-bit
        hash cannot tell apart count as the same.

        Raises:
            UserError: `fit` was not called, or a number is out of range.
            ExhaustedError: there are not as many, or no new one in a long time; the message says why.
        """
        tables = self._tables
        if tables is None:
            raise UserError("fit the augmenter to a dataset before sampling from it")
        check_draws("StemCorrupt", count, seed)
        if not count:
            return Dataset(pl.DataFrame(schema={**SCHEMA, **EXTRA}))
        most = tables.most()
        if count > most:
            raise ExhaustedError(f"StemCorrupt: {self._these()} give at most {most:,} new ones, fewer than {count:,}")
        parts: list[_Samples] = []
        new, idle = np.zeros(0, dtype=np.int64), 0
        while len(new) < count:
            if idle >= PATIENCE:
                raise ExhaustedError(
                    f"StemCorrupt: found {len(new):,} of {count:,} new examples and no more in {idle * BLOCK:,} draws "
                    f"from {self._these()}; ask for fewer, or for a higher theta than {self.theta:g}"
                )
            # As many as it takes if as many of them are new as up to now; at first, if one in nine is not.
            drawn, found = (len(parts) * BLOCK, len(new)) if len(new) else (9, 8)
            blocks = -(-(count - len(new)) * drawn // found // BLOCK)
            if drawn > RARE * found and blocks * BLOCK > MANY:
                raise ExhaustedError(
                    f"StemCorrupt: found {len(new):,} new examples in {drawn:,} draws from {self._these()}: too rare "
                    f"for {count:,}; ask for fewer, or for a higher theta than {self.theta:g}"
                )
            blocks = min(blocks, max(PATIENCE, len(parts)))
            before = len(new)
            parts += [tables.draw(seed, len(parts) + number, self.theta) for number in range(blocks)]
            new = _first_of_each(np.concatenate([part.keys for part in parts]), tables.known)
            idle = 0 if len(new) > before else idle + blocks
        return tables.dataset(parts, new[:count])

    def _these(self) -> str:
        assert self._tables is not None
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

    def dataset(self, parts: list[_Samples], chosen: NDArray[np.int64]) -> Dataset:
        """Some samples of the blocks, by number, with the strings of their tokens."""
        bounds = np.searchsorted(chosen, BLOCK * np.arange(len(parts) + 1))
        picked = [(part, chosen[bounds[number] : bounds[number + 1]] - number * BLOCK)
                  for number, part in enumerate(parts)]  # fmt: skip
        columns = {
            "source": self.pieces.lists([part.source[rows] for part, rows in picked if len(rows)]),
            "target": self.pieces.lists([part.target[rows] for part, rows in picked if len(rows)]),
            "gold": self.row[np.concatenate([part.example[rows] for part, rows in picked])],
            "edits": np.concatenate([part.edits[rows] for part, rows in picked]),
        }
        return Dataset(pl.DataFrame(columns).select("source", "target", pl.lit(TRAIN).alias("split"), *EXTRA))


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
