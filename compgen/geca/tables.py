"""The tables of a corpus: all (template, fragment) rows, and the licences found in them.

    licences = {(group, fragment): group has two fragments or more}

Everything is a Polars frame of 64-bit integers. Rows are many: they are split by environment into partitions that can
be processed one after another, on disk if memory is short. Licences are few: on text one template in a hundred or fewer
has two fragments.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from pathlib import Path

import numpy as np
import polars as pl

from compgen.errors import UserError
from compgen.files import reading, writing
from compgen.geca.corpus import Corpus
from compgen.geca.enumeration import Enumerator
from compgen.geca.options import GecaOptions
from compgen.geca.realise import Sequences, few_entries, occurrences, realise, same
from compgen.geca.spans import Spans
from compgen.progress import Watch, unwatched

PARTITIONS = 256  # that rows on disk are split into; as many are read at a time as memory allows
FINDING = 110  # bytes that a token takes while spans of two tokens are found, with the examples: 23 million took 2.4 GB
LONGER = 20  # more for each further length: where the spans are, and their numbers, if most occur once
EXAMPLES = 1 << 18  # tokens of the examples that are enumerated together, about
ENTRY_BYTES = 80  # of a span in an example, where those of all are kept
ROW_BYTES = 40  # of a row in memory: columns of 8 bytes and some room
CHECKED = 1 << 18  # rows that are spelled out together
LEAST = 10_000  # rows that memory must hold
WAITING = 2  # times as many rows may wait for the disk as may be worked on
WORKING = 8  # sorting, joining and composing rows takes this many times their bytes
LICENCES = pl.Schema({"group": pl.UInt64, "fragment": pl.UInt64, "example": pl.UInt32, "support": pl.UInt32})


class CollisionError(Exception):
    """Two different templates or environments have the same hash."""


class MemoryNeededError(Exception):
    """A partition has more rows than memory may hold; `args[0]` of them."""


def read_again(path: Path) -> pl.DataFrame:
    """Return rows that were put on disk; raises UserError if they cannot be read."""
    with reading(path), path.open("rb") as stream:
        return pl.read_ipc(stream)


def put(rows: pl.DataFrame, path: Path) -> None:
    """Write rows for `read_again`. Both open the file: Polars takes no path that is not UTF-8."""
    with path.open("wb") as stream:
        rows.write_ipc(stream)


def met_again(frame: pl.DataFrame, column: str) -> pl.DataFrame:
    """Return the rows whose value in a column occurs more than once; a sort takes a fifth of `is_duplicated`'s time."""
    values = np.sort(frame[column].to_numpy())
    again = values[1:][values[1:] == values[:-1]]
    return frame.filter(pl.col(column).is_in(pl.Series(again).unique().implode()))


class Store:
    """Rows in memory or, past a number of them, on disk."""

    def __init__(self, key: str, most: int, folder: Path | None = None, share: tuple[int, int] = (0, 1)) -> None:
        """Partition rows by the column `key`, a hash, and work on up to `most` rows in memory; more go to disk.

        With `share` (i, n), store i of n writes its rows to a common `folder` and reads every n-th partition there.
        """
        self.key, self.most, self.folder, self.share = key, most, folder, share
        self.waiting: list[pl.DataFrame] = []
        self.held = self.files = 0
        self.temporary: tempfile.TemporaryDirectory[str] | None = None

    def add(self, frame: pl.DataFrame) -> None:
        """Take some rows."""
        self.waiting.append(frame)
        self.held += frame.height
        if self.held > WAITING * self.most:
            self.spill()

    def spill(self) -> None:
        """Write the rows in memory to disk."""
        if self.folder is None:
            self.temporary = tempfile.TemporaryDirectory(prefix="compgen-geca-")
            self.folder = Path(self.temporary.name)
        if self.waiting:
            every = pl.concat(self.waiting).with_columns(part=pl.col(self.key) % PARTITIONS)
            with writing(self.folder):
                self.folder.mkdir(parents=True, exist_ok=True)
                for (number,), rows in every.partition_by("part", include_key=False, as_dict=True).items():
                    put(rows, self.folder / f"{number}-{self.share[0]}-{self.files}-{rows.height}.arrow")
        self.waiting, self.held, self.files = [], 0, self.files + 1

    def meet(self) -> None:
        """Put the rows where other shares read them, if there are others."""
        if self.share != (0, 1):
            self.spill()

    def partitions(self) -> Iterator[pl.DataFrame]:
        """Yield all rows, as many partitions at a time as memory may hold."""
        if self.folder is None and self.held <= self.most:
            if self.waiting:
                self.waiting = [pl.concat(self.waiting)]
                yield self.waiting[0]
            return
        if self.waiting:
            self.spill()
        assert self.folder is not None
        there: dict[int, list[Path]] = {}
        for path in sorted(self.folder.glob("*-*-*-*.arrow")):
            there.setdefault(int(path.name.partition("-")[0]), []).append(path)
        together: list[Path] = []
        size = 0
        for number in range(self.share[0], PARTITIONS, self.share[1]):
            files = there.get(number, [])
            rows = sum(int(path.stem.rpartition("-")[2]) for path in files)
            if rows > self.most:
                raise MemoryNeededError(rows)
            if size + rows > self.most:
                yield pl.concat(map(read_again, together))
                together, size = [], 0
            together, size = together + files, size + rows
        if together:
            yield pl.concat(map(read_again, together))

    def distinct(self) -> int:
        """Return how many different values the key has, in the partitions of this share."""
        return sum(frame[self.key].n_unique() for frame in self.partitions())


class Tables:
    """The rows and licences of a corpus.

    A licence is a fragment in a group of two fragments or more, which may replace one another there. A group is a
    template or, in the mode `published`, an environment.

    Attributes:
        key: the column of a row's environment.
        group: the column of a licence's group.
        host: the column that decides what a template may take: all rows that agree in it are its evidence.
        licences: `group`, `fragment`, `support` (how many templates of the group have the fragment), and `example`,
            the first that does.
        pairs, templates, fragments: numbers of rows, distinct templates and distinct fragments.
        processes: how many built them.
    """

    def __init__(
        self,
        corpus: Corpus,
        spans: Spans,
        options: GecaOptions,
        most: int,
        salt: int = 0,
        folder: Path | None = None,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        """Begin without rows. `salt` is passed to the enumerator; `most`, `folder` and `share` to the store."""
        reference = options.mode == "reference"
        self.options = options
        self.key = "template" if options.window is None else "environment"
        self.group, self.host = ("template", self.key) if reference else (self.key, "template")
        self.store = Store(self.key, most, folder, share)
        self.enumerator = Enumerator(corpus, spans, options.spans, options.window, reference, salt)
        self.licences = pl.DataFrame(schema=LICENCES)
        self.pairs = self.templates = self.fragments = 0
        self.processes = 1

    def enumerate(self, watch: Watch = unwatched) -> None:
        """Store the rows of the examples to recombine, those of the store's share."""
        corpus, (first, shares) = self.enumerator.corpus, self.store.share
        short = corpus.short[first::shares]
        tokens = np.cumsum(corpus.lengths[short])
        bounds = np.searchsorted(tokens, np.arange(EXAMPLES, tokens[-1] if len(tokens) else 0, EXAMPLES))
        batches = [part for part in np.split(short, bounds) if len(part)]
        for number, examples in enumerate(batches, start=1):
            for rows in self.enumerator.rows(examples):
                self.store.add(rows)
            watch("fragments and templates", number / len(batches), "")

    def find_licences(self, seen: Store | None = None) -> None:
        """Find the licences in the stored rows, and count; put the fragments into `seen`, where they can be counted."""
        for frame in self.store.partitions():
            self.pairs += frame.height
            if seen is not None:
                seen.add(frame.select(pl.col("fragment").unique()))
            several = met_again(frame, self.group)
            # Where groups are templates, nearly all rows have one of their own, and need not be looked at again.
            single, left = (frame.height - several.height, several) if self.group == "template" else (0, frame)
            self.templates += single + left["template"].n_unique()
            self.check(several, self.group, met=True)
            licences = (
                several.group_by(pl.col(self.group).alias("group"), "fragment")
                .agg(pl.col("example").min(), pl.len().alias("support"))
                .filter(pl.len().over("group") > 1)
            )
            self.licences = pl.concat([self.licences, licences.select(LICENCES.names())])

    def check(self, frame: pl.DataFrame, key: str, met: bool = False) -> None:
        """Raise CollisionError unless rows with equal hashes have equal templates, and equal environments if `key`.

        With `met`, it is known that each row has the same `key` as some other row.
        """
        for column in {"template", key}:
            known = met and column == key
            rows = (frame if known else met_again(frame, column)).sort(column)
            for start in range(0, rows.height, CHECKED):
                # The first row of a part is compared with the last part's last.
                part = rows[max(0, start - 1) : start + CHECKED]
                sequences, keys = self._spelled(part, column), part[column].to_numpy()
                index = np.flatnonzero(keys[1:] == keys[:-1])
                if not same(sequences.take(index), sequences.take(index + 1)).all():
                    raise CollisionError

    def _spelled(self, rows: pl.DataFrame, column: str) -> Sequences:
        """Return the template of each row, or its environment, gap after gap."""
        example, fragment = rows["example"].to_numpy().astype(np.int64), rows["fragment"].to_numpy()
        if column == "template":
            return realise(self.enumerator, example, fragment)
        gaps = occurrences(self.enumerator, example, fragment)
        around = self.enumerator.windows(example, gaps, np.arange(len(gaps.row)))
        return Sequences(around.ravel(), np.append(gaps.firsts, len(gaps.row)) * around.shape[1])


def rows_held(corpus: Corpus, spans: Spans, memory: int) -> int:
    """Return how many rows fit into a number of bytes, beside the corpus; 0 or less if even that does not fit."""
    return (memory - _fixed(corpus, spans)) // (ROW_BYTES * WORKING)


def _fixed(corpus: Corpus, spans: Spans) -> int:
    """Return the bytes that are needed whatever the number of rows."""
    kept = ENTRY_BYTES * few_entries(corpus, spans)
    found = sum(at.nbytes for at in spans.at) + spans.example.nbytes + spans.lengths.nbytes
    return corpus.tokens.nbytes * 8 + found + kept + 2**27


@contextmanager
def memory_for(corpus: Corpus, spans: Spans, memory: int) -> Iterator[int]:
    """Yield how many rows memory may hold; if that proves too few, raise a UserError with the memory needed."""
    fixed = _fixed(corpus, spans)
    most = rows_held(corpus, spans, memory)
    try:
        if most < LEAST:
            raise MemoryNeededError(LEAST)
        yield most
    except MemoryNeededError as error:
        raise _too_little(memory, fixed + error.args[0] * ROW_BYTES * WORKING) from error


def find_spans(corpus: Corpus, options: GecaOptions) -> Spans:
    """Find the spans of a corpus; first raise UserError if that takes more memory than the options allow."""
    longer = max(0, min(options.span, int(corpus.lengths.max())) - 2)
    needed = (FINDING + LONGER * longer) * len(corpus.tokens)
    if options.bytes < needed:
        raise _too_little(options.bytes, needed)
    return Spans.of(corpus, options.span, options.limit)


def _too_little(memory: int, needed: int) -> UserError:
    """Return the error that says how much memory is needed, both in bytes."""
    least = ceil(needed / 2**30 * 100) / 100
    return UserError(f"GECA: {memory / 2**30:.2f} GiB of memory is too little here: expected {least:.2f} GiB or more")
