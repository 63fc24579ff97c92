"""StemCorrupt: inflections of made-up stems (Samir and Silfverberg 2023, section 2).

    for each sample: copy a random example; replace each character of its stem with probability theta
                     by a random one of the alphabet, the same in lemma and form

What the paper leaves open, and how this differs from the program of Anastasopoulos and Neubig, whose figure it shows:

- Characters are grapheme clusters, and the alignment is ours (`compgen.morphology.alignment`).
- The alphabet is that of the training examples; the program adds the development set. Hyphens and apostrophes belong to
  it, as they are letters in many orthographies; the space does not.
- Every character of a stem may be replaced; the program keeps the first and last of a long stretch.
- Examples are drawn at random; the program takes them in turn.
- Samples are new and distinct, which the paper does not require.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import polars as pl
from pydantic import Field

from compgen.augmenters.base import HOST, WORDS, Augmenter, Options
from compgen.data.examples import TOKENS, Dataset
from compgen.data.ragged import Ints
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import BLANK
from compgen.errors import DataError, ExhaustedError
from compgen.morphology.alignment import SHORTEST, Aligned, Word, letters, words
from compgen.morphology.harmony import Tier
from compgen.morphology.pieces import Numbers, Pieces, Random, numbers, rectangle
from compgen.progress import Watch

BLOCK = 4096  # samples drawn at once: their arrays fit a processor's cache
RARE, MANY = 1000, 1 << 24  # abort when fewer than 1 in RARE draws is new and more than MANY remain
PATIENCE = 32  # abort after so many blocks without a new example
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class StemCorruptOptions(Options):
    """How much of a stem is replaced, and which samples are kept."""

    theta: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Replace each character of the stem (a letter with its marks) with this probability, above 0 "
        "and at most 1. The new character may happen to be the same.",
    )
    shortest: int = Field(
        SHORTEST,
        ge=1,
        description="Count a stretch that lemma and form share as stem if it has at least this many code points; "
        "marks of letters count.",
    )
    stemless: Literal["drop", "keep"] = Field(
        "drop",
        description="Drop examples without a stem, or keep them among the samples unchanged (so they are not new).",
    )
    candidates: int = Field(
        1,
        ge=1,
        description="For languages with vowel harmony: make K times as many samples and keep those whose vowels "
        "combine as in DATA. Try 16.",
        json_schema_extra={"metavar": "K"},
    )


class StemCorrupt(Augmenter[StemCorruptOptions]):
    """Replace characters of the stem, the same in lemma and form (Samir and Silfverberg 2023).

    Examples are of inflection: a source is the letters of a lemma and its tags, a target the letters of a form.
    Samples have the columns `host`, the row of the corrupted training example (its first occurrence), and `edits`, the
    number of characters that changed.

    Attributes, after `fit`:
        examples: how many distinct training examples take part.
        dropped: how many have no stem.
        why: there were fewer samples than asked for, last time; else it is empty.
    """

    name = "stemcorrupt"
    options_type = StemCorruptOptions
    takes = frozenset({WORDS})
    columns: ClassVar[dict[str, Any]] = {HOST: pl.Int64, "edits": pl.Int64}
    usual = 10_000
    moment = 10_000
    why = ""
    example = "cgen augment stemcorrupt sigmorphon/turkish --split train-low -n 10000 -o more.tsv"

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002
        """Align the distinct examples of a dataset."""
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
                + (": a lower --shortest may find some" if options.shortest > 1 else "")
            )
        rows = np.array([first[word] for word in distinct])
        self._tables = _tables(distinct, aligned, options.stemless == "keep", rows)
        self.examples = len(self._tables.row)
        self.dropped = len(distinct) - self.examples
        self._tier = Tier.of(dataset) if options.candidates > 1 else None

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:  # noqa: ARG002
        """Return `count` new, distinct examples; with `candidates`, selected by harmony. If there are fewer, all found.

        Without `candidates`, fewer samples are the first of more. Samples of equal 64-bit hash count as the same.
        """
        assert count is not None, "`usual` says how many"
        candidates = self.options.candidates
        if self._tier is None:
            return self._distinct(count, seed)
        pool = self._distinct(count * candidates, seed)
        if self.why:
            raise ExhaustedError(f"StemCorrupt: {self.why}; or ask for fewer candidates than {candidates} a sample")
        return self._tier.choose(pool, count, seed)

    def facts(self) -> dict[str, Any]:
        """Return how many training examples took part, and how many had no stem."""
        return {"examples": self.examples, "dropped": self.dropped}

    def no_more(self) -> str:
        """Return why there are fewer samples than asked for."""
        return self.why

    def in_words(self) -> str:
        """Return the report in words, for people."""
        left_out = f"; {self.dropped:,} dropped for want of a stem"
        if self.dropped and self.options.shortest > 1:
            left_out += " (a lower --shortest may keep some)"
        return f"{super().in_words()}; made from {self.examples:,} training examples{left_out}"

    def _distinct(self, count: int, seed: int) -> pl.DataFrame:
        """Draw blocks until `count` examples are new and distinct, or no more are found; then `why` says so."""
        tables, theta, self.why = self._tables, self.options.theta, ""
        most = tables.most()
        if count > max(most, self.usual):  # finding all of them would take long
            raise ExhaustedError(f"StemCorrupt: {self._these()} give at most {most:,} new ones, fewer than {count:,}")
        if count > most:
            self.why, count = f"{self._these()} give at most {most:,} new ones", most
        parts: list[_Samples] = []
        new, idle = np.zeros(0, dtype=np.int64), 0
        while len(new) < count:
            if idle >= PATIENCE:
                self.why = (
                    f"found {len(new):,} of {count:,} new examples and no more in {idle * BLOCK:,} draws from "
                    f"{self._these()}: {self._rest()}"
                )
                if not len(new):
                    raise ExhaustedError(f"StemCorrupt: {self.why}")
                break
            # Blocks needed if the share of new samples stays as it is; at first, 8 in 9.
            drawn, found = (len(parts) * BLOCK, len(new)) if len(new) else (9, 8)
            blocks = -(-(count - len(new)) * drawn // found // BLOCK)
            if drawn > RARE * found and blocks * BLOCK > MANY:
                raise ExhaustedError(
                    f"StemCorrupt: found {len(new):,} new examples in {drawn:,} draws from {self._these()}: too rare "
                    f"for {count:,}; ask for fewer: {self._rest()}"
                )
            blocks = min(blocks, max(PATIENCE, len(parts)))
            before = len(new)
            parts += [tables.draw(seed, len(parts) + number, theta) for number in range(blocks)]
            new = _first_of_each(np.concatenate([part.keys for part in parts]), tables.known)
            idle = 0 if len(new) > before else idle + blocks
        return tables.frame(parts, new[:count])

    def _rest(self) -> str:
        """Return what is known of those that were not found: they may not exist, or be rare at a low theta."""
        theta = self.options.theta
        return "there may be no others" + (f", or a higher theta than {theta:g} finds them" if theta < 1 else "")

    def _these(self) -> str:
        lengths = self._tables.length
        return (
            f"{self.examples:,} examples with stems of {lengths.min()} to {lengths.max()} characters and an alphabet "
            f"of {len(self._tables.alphabet):,}"
        )


def _first_of_each(keys: Random, known: Random) -> Ints:
    """Return the first positions of the distinct keys that are not known."""
    first = pl.Series(np.concatenate([known, keys])).is_first_distinct().to_numpy()
    return np.flatnonzero(first[len(known) :])


def uniform(random: Random, alphabet: Ints) -> Ints:
    """Draw characters uniformly (up to 2^-32), given random numbers below 2^32."""
    drawn: Ints = alphabet[(random * np.uint64(len(alphabet))) >> _HALF]
    return drawn


@dataclass(frozen=True)
class _Samples:
    """A block of samples, new or not."""

    source: Numbers  # of pieces, (BLOCK, longest), padded with 0
    target: Numbers
    example: Ints  # that each was made from
    edits: Ints  # clusters that changed
    keys: Random  # hashes of their tokens


@dataclass(frozen=True)
class _Tables:
    """What samples are made from."""

    pieces: Pieces
    source: Numbers  # pieces of each example that takes part, (examples, longest), padded with 0
    target: Numbers
    row: Ints  # of each example in the training data
    start: Ints  # where its stem begins in the next three
    length: Ints
    stem: Ints  # clusters of all stems, one stem after another
    in_source: Ints  # their places in the source
    in_target: Ints
    alphabet: Ints  # the clusters to draw from
    known: Random  # keys of the training examples that samples must differ from

    def most(self) -> int:
        """Return a bound of the new, distinct samples: the ways to fill each stem, without its own."""
        size = len(self.alphabet)
        return sum(size**length - 1 if length else 1 for length in self.length.tolist())

    def draw(self, seed: int, block: int, theta: float) -> _Samples:
        """Draw a block of samples from its own stream of random numbers."""
        bits = stream(Purpose.CORRUPTION, seed, block).bit_generator
        example = ((bits.random_raw(BLOCK) >> _HALF) * np.uint64(len(self.row)) >> _HALF).astype(np.int64)
        length = self.length[example]
        ends = np.cumsum(length)
        random = bits.random_raw(ends[-1])  # for the characters of their stems, one stem after another
        replaced = np.flatnonzero((random & _LOW) < np.uint64(np.ceil(theta * 2**32)))
        # The sample of each replaced character, and its index in `stem`.
        sample = np.repeat(np.arange(BLOCK), length)[replaced]
        character = replaced + (self.start[example] + length - ends)[sample]
        drawn = uniform(random[replaced] >> _HALF, self.alphabet)
        edits = np.bincount(sample[drawn != self.stem[character]], minlength=BLOCK)
        source, target = self.source.take(example, axis=0), self.target.take(example, axis=0)
        source[sample, self.in_source[character]] = drawn
        target[sample, self.in_target[character]] = drawn
        return _Samples(source, target, example, edits, self.pieces.keys(source, target))

    def frame(self, parts: list[_Samples], chosen: Ints) -> pl.DataFrame:
        """Return the chosen samples of all blocks, spelled."""
        if not len(chosen):
            return pl.DataFrame(schema={"source": TOKENS, "target": TOKENS, **StemCorrupt.columns})
        bounds = np.searchsorted(chosen, BLOCK * np.arange(len(parts) + 1))
        rows = np.split(chosen % BLOCK, bounds[1:-1])
        picked = [(part, some) for part, some in zip(parts, rows, strict=True) if len(some)]
        columns = {
            "source": self.pieces.lists([part.source[some] for part, some in picked]),
            "target": self.pieces.lists([part.target[some] for part, some in picked]),
            HOST: self.row[np.concatenate([part.example[some] for part, some in picked])],
            "edits": np.concatenate([part.edits[some] for part, some in picked]),
        }
        return pl.DataFrame(columns)


def _tables(distinct: list[Word], aligned: Aligned, keep: bool, row: Ints) -> _Tables:
    """Build the tables of distinct examples, given their rows in the training data; `keep` those without a stem."""
    alphabet = np.array([number for number, name in enumerate(aligned.names, start=1) if name != BLANK])
    if len(alphabet) < 2:
        raise DataError(
            f"StemCorrupt: lemmas and forms are written with {len(alphabet)} character: expected an alphabet of two or "
            "more, as otherwise nothing can change"
        )
    tags = sorted({tag for word in distinct for tag in word.tags})
    pieces = Pieces.of([*map(letters, aligned.names), *((tag,) for tag in tags)])
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
        # Kept examples without a stem can only be sampled as they are.
        known=keys[~part | aligned.in_lemma.any(axis=1)],
    )
