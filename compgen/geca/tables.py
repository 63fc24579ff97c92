"""The tables of a corpus: which fragments may take each other's place, and the rows they are read from.

Everything is a Polars frame of 64-bit integers. The rows, one a (template, fragment), are many; they are split by
environment into partitions that can be worked on one after another, and go to disk when they are too many for the
memory that is allowed. What is learned from them, the licences, is small: on text one template in a hundred or fewer
has two fragments.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from compgen.data.ragged import Ints
from compgen.errors import UserError
from compgen.files import writing
from compgen.geca.arrays import Hashes
from compgen.geca.corpus import Corpus
from compgen.geca.enumeration import Enumerator, Rows
from compgen.geca.options import GecaOptions
from compgen.geca.realise import Sequences, occurrences, realise, same
from compgen.geca.spans import Spans

PARTITIONS = 256  # files that a spilled table is split into; as many are read at a time as memory allows
EXAMPLES = 1 << 18  # tokens of the examples that are enumerated together
ROW_BYTES = 40  # of a row in memory, columns of 8 bytes and some room
CHECKED = 1 << 18  # rows that are spelled out together
LEAST = 10_000  # rows in memory with which it is worth beginning
WORKING = 8  # times the bytes of the rows at hand: what sorting, joining and composing them takes beside


class CollisionError(Exception):
    """Two different templates or environments have the same hash."""


class Store:
    """The rows, in memory or, past a number of them, on disk."""

    def __init__(self, key: str, most: int, folder: Path | None = None, share: tuple[int, int] = (0, 1)) -> None:
        """Rows are split by a hash, the column `key`; up to `most` of them are held in memory at a time.

        With a `folder` they go there, and come from there, together with the rows of others: this store is number
        `share[0]` of `share[1]`, takes its own rows, and gives the rows of its share of the partitions.
        """
        self.key, self.most, self.folder, self.share = key, most, folder, share
        self.waiting: list[pl.DataFrame] = []
        self.held = self.files = 0
        self.temporary: tempfile.TemporaryDirectory[str] | None = None

    def add(self, frame: pl.DataFrame) -> None:
        """Take some rows."""
        self.waiting.append(frame)
        self.held += frame.height
        if self.held > self.most:
            self.spill()

    def spill(self) -> None:
        """Write the rows that are in memory to disk."""
        if self.folder is None:
            self.temporary = tempfile.TemporaryDirectory(prefix="compgen-geca-")
            self.folder = Path(self.temporary.name)
        with writing(self.folder):
            self._write(self.folder)
        self.waiting, self.held, self.files = [], 0, self.files + 1

    def _write(self, folder: Path) -> None:
        if self.waiting:
            every = pl.concat(self.waiting).with_columns(part=pl.col(self.key) % PARTITIONS)
            for (number,), rows in every.partition_by("part", include_key=False, as_dict=True).items():
                rows.write_ipc(folder / f"{number}-{self.share[0]}-{self.files}-{rows.height}.arrow")

    def partitions(self) -> Iterator[pl.DataFrame]:
        """All rows, a number of partitions at a time; rows with the same key come together.

        Raises:
            MemoryNeededError: a partition alone is more than the rows that may be held.
        """
        if self.folder is None:
            if self.waiting:
                self.waiting = [pl.concat(self.waiting)]
                yield self.waiting[0]
            return
        if self.waiting:
            self.spill()
        together: list[Path] = []
        size = 0
        for number in range(self.share[0], PARTITIONS, self.share[1]):
            files = sorted(self.folder.glob(f"{number}-*.arrow"))
            rows = sum(int(path.stem.rpartition("-")[2]) for path in files)
            if rows > self.most:
                raise MemoryNeededError(rows)
            if size + rows > self.most:
                yield pl.concat(map(pl.read_ipc, together))
                together, size = [], 0
            together, size = together + files, size + rows
        if together:
            yield pl.concat(map(pl.read_ipc, together))


class MemoryNeededError(Exception):
    """Rows that must be held together are more than may be held; `args[0]` of them."""


@dataclass(frozen=True)
class Tables:
    """What GECA knows of a corpus.

    Attributes:
        options, enumerator, store: what they were made with, and the rows.
        licences: `group`, `fragment`, `example`, `support`: groups of at least two fragments, which may take each
            other's place. A group is a template or (mode `published`) an environment; `support` is how many templates
            of the group have the fragment, and `example` has it in one of them.
        pairs, templates, fragments: how many (template, fragment), distinct templates and distinct fragments there are.
    """

    options: GecaOptions
    enumerator: Enumerator
    store: Store
    licences: pl.DataFrame
    pairs: int
    templates: int
    fragments: int

    def examples(self) -> list[Ints]:
        """The examples to be recombined, in batches of EXAMPLES tokens or so."""
        corpus = self.enumerator.corpus
        tokens = np.cumsum(corpus.lengths[corpus.short])
        bounds = np.searchsorted(tokens, np.arange(EXAMPLES, tokens[-1] if len(tokens) else 0, EXAMPLES))
        return [part for part in np.split(corpus.short, bounds) if len(part)]

    @property
    def key(self) -> str:
        """The column that holds a row's environment."""
        return self.store.key

    @property
    def group(self) -> str:
        """The column that a licence's group comes from."""
        return "template" if self.options.mode == "reference" else self.key

    @property
    def host(self) -> str:
        """The column whose rows' fragments are what a template offers to be replaced."""
        return self.key if self.options.mode == "reference" else "template"


def build(
    corpus: Corpus, options: GecaOptions, memory: int, watch: Callable[[float], None] | None = None, salt: int = 0
) -> Tables:
    """Enumerate a corpus and find the licences, within a number of bytes of memory.

    `watch` is called with the share of the tokens that have been gone through. `salt` is that of the first hash tried.

    Raises:
        UserError: the memory is too little (the message says what is needed), or there are too many spans.
    """
    spans = Spans.of(corpus, options.span, options.limit)
    while True:
        try:
            with memory_for(corpus, spans, memory) as most:
                tables = start(corpus, spans, options, most, salt)
                enumerate_rows(tables, tables.examples(), watch)
                return find_licences(tables)
        except CollisionError:
            salt += 1


@contextmanager
def memory_for(corpus: Corpus, spans: Spans, memory: int) -> Iterator[int]:
    """How many rows may be held in memory.

    Raises:
        UserError: too few for what is done meanwhile; the message says how much memory is needed.
    """
    fixed = corpus.tokens.nbytes * 8 + sum(place.nbytes for place in spans.at) + 2**27
    most = (memory - fixed) // (ROW_BYTES * WORKING)
    try:
        if most < LEAST:
            raise MemoryNeededError(LEAST)
        yield most
    except MemoryNeededError as error:
        needed = np.ceil((fixed + error.args[0] * ROW_BYTES * WORKING) / 2**30 * 100) / 100
        raise UserError(
            f"GECA: {memory / 2**30:.2f} GiB of memory is too little here: expected {needed:.2f} GiB or more"
        ) from error


def start(
    corpus: Corpus,
    spans: Spans,
    options: GecaOptions,
    most: int,
    salt: int = 0,
    folder: Path | None = None,
    share: tuple[int, int] = (0, 1),
) -> Tables:
    """Tables without rows; `folder` and `share` as for `Store`."""
    store = Store("template" if options.window is None else "environment", most, folder, share)
    enumerator = Enumerator(corpus, spans, options.spans, options.window, options.mode == "reference", salt)
    return Tables(options, enumerator, store, LICENCES.clear(), 0, 0, 0)


def enumerate_rows(tables: Tables, batches: list[Ints], watch: Callable[[float], None] | None = None) -> None:
    """Put the rows of some examples into the store."""
    for number, examples in enumerate(batches, start=1):
        for rows in tables.enumerator.rows(examples):
            tables.store.add(frame_of(rows, tables.options))
        if watch is not None:
            watch(number / len(batches))


def find_licences(tables: Tables) -> Tables:
    """The tables with the licences and the counts of what is in the store."""
    licences = tables.licences
    pairs = templates = 0
    seen = Store("fragment", tables.store.most)
    for frame in tables.store.partitions():
        pairs += frame.height
        templates += frame["template"].n_unique()
        seen.add(frame.select(pl.col("fragment").unique()))
        licences = pl.concat([licences, _licences(tables, frame)])
    fragments = sum(frame["fragment"].n_unique() for frame in seen.partitions())
    return replace(tables, licences=licences, pairs=pairs, templates=templates, fragments=fragments)


LICENCES = pl.DataFrame(schema={"group": pl.UInt64, "fragment": pl.UInt64, "example": pl.UInt32, "support": pl.UInt32})


def frame_of(rows: Rows, options: GecaOptions) -> pl.DataFrame:
    """Rows as a frame; `environment` is left out where it is the template."""
    columns = {"template": rows.template, "fragment": rows.fragment, "example": rows.example.astype(np.uint32)}
    if options.window is not None:
        columns["environment"] = rows.environment
    return pl.DataFrame(columns | {"sides": rows.sides})


def _licences(tables: Tables, frame: pl.DataFrame) -> pl.DataFrame:
    """The groups of at least two fragments among the rows of some partitions."""
    group = tables.group
    several = frame.filter(pl.col(group).is_duplicated())
    check_templates(tables, several)
    if group != "template":
        check_environments(tables, several)
    return (
        several.group_by(pl.col(group).alias("group"), "fragment")
        .agg(pl.col("example").min(), pl.len().alias("support"))
        .filter(pl.len().over("group") > 1)
        .select(LICENCES.columns)
    )


def check_templates(tables: Tables, frame: pl.DataFrame) -> None:
    """Raise CollisionError unless rows with equal hashes of the template have equal templates."""
    _check(frame, "template", lambda rows: realise(tables.enumerator, *_what(rows)))


def check_environments(tables: Tables, frame: pl.DataFrame) -> None:
    """Raise CollisionError unless rows with equal hashes of the environment have equal environments."""
    _check(frame, tables.key, lambda rows: _around(tables.enumerator, *_what(rows)))


def _check(frame: pl.DataFrame, key: str, realised: Callable[[pl.DataFrame], Sequences]) -> None:
    """Compare what the rows of each value of `key` stand for with what its first row does."""
    rows = frame.filter(pl.col(key).is_duplicated()).sort(key)
    for start in range(0, rows.height, CHECKED):  # the first row of a part is compared with the last part's last
        part = rows[max(0, start - 1) : start + CHECKED]
        sequences = realised(part)
        keys = part[key].to_numpy()
        index = np.flatnonzero(keys[1:] == keys[:-1])
        if not same(sequences.take(index), sequences.take(index + 1)).all():
            raise CollisionError


def _what(rows: pl.DataFrame) -> tuple[Ints, Hashes]:
    return rows["example"].to_numpy().astype(np.int64), rows["fragment"].to_numpy()


def _around(enumerator: Enumerator, example: Ints, fragment: Hashes) -> Sequences:
    """The environments of some rows, gap after gap."""
    gaps = occurrences(enumerator, example, fragment)
    around = enumerator.windows(example, gaps, np.arange(len(gaps.row)))
    return Sequences(around.ravel(), np.append(gaps.firsts, len(gaps.row)) * around.shape[1])
