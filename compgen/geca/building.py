"""Tables built, and examples composed from them, by one process, or by several that meet in a temporary folder.

    each process:   puts the rows of its examples where all can read them
                    finds the licences in its partitions of the rows
                    counts the fragments in its partitions of these
                    composes the first examples whose templates are in its partitions, by the licences of all
    this process:   takes the first of all these examples

The result is that of one process: what a template is made into depends on the template, and on the seed.
"""

import ctypes
import multiprocessing
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import polars as pl

from compgen.copies import copies
from compgen.errors import UserError
from compgen.geca.compose import MADE, Composer
from compgen.geca.corpus import Corpus
from compgen.geca.enumeration import Enumerator
from compgen.geca.options import GecaOptions
from compgen.geca.spans import Spans
from compgen.geca.tables import (
    LEAST,
    CollisionError,
    MemoryNeededError,
    Store,
    Tables,
    find_spans,
    memory_for,
    rows_held,
)
from compgen.processors import cores
from compgen.progress import Watch, unwatched

EACH = 1 << 23  # rows that make another process worth the seconds of its start
MOST = 16  # processes, unless a number is asked for
TRIED = 64  # examples from which the number of rows is estimated
TRIM_THRESHOLD, TOP_PAD, MMAP_THRESHOLD = -1, -2, -3  # parameters of mallopt
EXAMPLE_BYTES, TOKEN_BYTES = 1000, 30  # of a new example and each of its tokens: 1.7 million of 28 took 2.9 GB


@dataclass
class Share:
    """The work of one process, the only one or one of several."""

    corpus: Corpus
    spans: Spans
    options: GecaOptions
    most: int  # rows that it may hold in memory
    salt: int
    folder: Path | None = None  # where several processes exchange rows
    share: tuple[int, int] = (0, 1)  # its number from 0, and the number of shares

    def shares(self, processes: int) -> list["Share"]:
        """Return one share for each of several processes."""
        return [replace(self, share=(number, processes)) for number in range(processes)]

    def itself(self) -> "Share":
        """Return this share: what the process calls that is to do it."""
        keep_freed_memory()
        return self

    @cached_property
    def tables(self) -> Tables:
        """The tables of this share."""
        rows = self.folder and self.folder / "rows"
        return Tables(self.corpus, self.spans, self.options, self.most, self.salt, rows, self.share)

    @cached_property
    def fragments(self) -> Store:
        """The fragments in this share's partitions of the rows."""
        return Store("fragment", self.most, self.folder and self.folder / "fragments", self.share)

    def enumerate(self, watch: Watch = unwatched) -> bool:
        """Store the rows of its examples; return True, which tells the process that waits that they can be read."""
        self.tables.enumerate(watch)
        self.tables.store.meet()
        return True

    def find(self) -> tuple[pl.DataFrame, int, int]:
        """Return the licences in its partitions, and the numbers of pairs and templates there."""
        self.tables.find_licences(self.fragments)
        self.fragments.meet()
        return self.tables.licences, self.tables.pairs, self.tables.templates

    def count(self) -> int:
        """Return the number of distinct fragments in its partitions of them."""
        return self.fragments.distinct()

    def compose(self, licences: pl.DataFrame, count: int | None, seed: int, watch: Watch = unwatched) -> pl.DataFrame:
        """Return the first examples by the hosts in its partitions."""
        self.tables.licences = licences
        return first(self.tables, self.options, count, seed, watch)


def build(corpus: Corpus, options: GecaOptions, watch: Watch = unwatched, salt: int = 0) -> Tables:
    """Enumerate a corpus and find the licences, within the memory that options allow; try the hashes from `salt` on.

    Raises:
        UserError: the memory is too little for a corpus of this size, or for rows that must be worked on together.
    """
    keep_freed_memory()
    spans = find_spans(corpus, options)
    processes = _processes(corpus, spans, options)
    while True:
        try:
            if processes > 1:
                try:
                    return _together(corpus, spans, options, processes, watch, salt)
                except MemoryNeededError:  # for a partition that one process may hold
                    processes = 1
            with memory_for(corpus, spans, options.bytes) as most:
                alone = Share(corpus, spans, options, most, salt)
                return _filled(alone.tables, [alone], watch)
        except CollisionError:
            salt += 1


def keep_freed_memory() -> None:
    """Let this process keep up to 256 MiB of what arrays have freed for the next arrays, where its C library can.

    New pages must be filled with zeros, which took a tenth of the time of large tables. Arrays of 32 MiB or more, of
    which a long text has a few, are given back at once.
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # a C library that is not GNU's
        return
    for parameter, value in ((MMAP_THRESHOLD, 2**25), (TRIM_THRESHOLD, 2**28), (TOP_PAD, 2**26)):
        mallopt(parameter, value)


def _together(corpus: Corpus, spans: Spans, options: GecaOptions, processes: int, watch: Watch, salt: int) -> Tables:
    """Build tables by several processes; those that are returned read the rows of all."""
    folder = tempfile.TemporaryDirectory(prefix="compgen-geca-")
    most = rows_held(corpus, spans, options.bytes // processes)
    whole = Share(corpus, spans, options, most, salt, Path(folder.name))
    tables = _filled(whole.tables, whole.shares(processes), watch)
    tables.processes, tables.store.temporary = processes, folder
    return tables


def _filled(tables: Tables, shares: list[Share], watch: Watch) -> Tables:
    """Return tables with the licences and counts of all shares; this process does the first share."""
    own, *others = shares
    with copies([one.itself for one in others]) as team:
        team.call("enumerate")
        own.enumerate(watch)
        team.results()
        team.call("find")
        found = [own.find(), *team.results()]
        team.call("count")
        fragments = [own.count(), *team.results()]
    tables.licences = pl.concat([licences for licences, _, _ in found])
    tables.pairs, tables.templates = (sum(one[place] for one in found) for place in (1, 2))
    tables.fragments = sum(fragments)
    return tables


def made_of(
    tables: Tables, options: GecaOptions, count: int | None, seed: int, watch: Watch = unwatched
) -> pl.DataFrame:
    """Return the first `count` distinct examples (MADE) of tables, by as many processes as built them."""
    if tables.processes == 1:
        return first(tables, options, count, seed, watch)
    old, folder = tables.enumerator, tables.store.folder
    assert folder is not None
    whole = Share(old.corpus, old.spans, options, tables.store.most, old.salt, folder.parent)
    own, *others = whole.shares(tables.processes)
    own.tables.pairs = tables.pairs // tables.processes
    with copies([one.itself for one in others]) as team:
        team.call("compose", tables.licences, count, seed)
        made = [own.compose(tables.licences, count, seed, watch), *team.results()]
    return merged(([some] for some in made), count, options.bytes)


def _processes(corpus: Corpus, spans: Spans, options: GecaOptions) -> int:
    """How many processes to use: as many as are asked for, or as many as there are cores, rows and memory for.

    Raises:
        UserError: several are asked for, with an option that only one process can honour.
    """
    if options.workers is not None and options.workers > 1 and options.reach is not None:
        raise UserError("GECA: --reach looks at all templates of a fragment, which takes one process: leave one out")
    if options.workers is not None or options.reach is not None or multiprocessing.parent_process() is not None:
        return options.workers or 1
    most = min(cores(), MOST)
    while most > 1 and rows_held(corpus, spans, options.bytes // most) < 100 * LEAST:
        most -= 1
    if most == 1:
        return 1
    some = corpus.short[:: max(1, len(corpus.short) // TRIED)]
    enumerator = Enumerator(corpus, spans, options.spans, options.window, options.mode == "reference", 0)
    rows = sum(part.height for part in enumerator.rows(some)) * len(corpus.short) // max(1, len(some))
    return max(1, min(most, rows // EACH))


def first(tables: Tables, options: GecaOptions, count: int | None, seed: int, watch: Watch = unwatched) -> pl.DataFrame:
    """Return the first `count` distinct examples (MADE) by the hosts in the tables' store."""
    composer = Composer(tables, options, seed)
    stage, total = "new examples: templates", max(1, tables.pairs)

    def parts() -> Iterator[Iterator[pl.DataFrame]]:
        done = 0
        for frame in tables.store.partitions():
            yield watched(frame, done)
            done += frame.height

    def watched(frame: pl.DataFrame, done: int) -> Iterator[pl.DataFrame]:
        for made in composer.compose(frame):
            yield made
            if len(made):  # keys are uniform, and hosts come in their order
                watch(stage, (done + frame.height * made["key"][-1] / 2**64) / total, "")
        watch(stage, (done + frame.height) / total, "")

    return merged(parts(), count, options.bytes)


def merged(parts: Iterable[Iterable[pl.DataFrame]], count: int | None, memory: int) -> pl.DataFrame:
    """Return the first `count` distinct examples of several parts, each in order, without reading more than needed."""
    rows = pl.DataFrame(schema=MADE)
    for part in parts:
        new: list[pl.DataFrame] = []
        for block in part:
            new.append(block)
            enough = count is not None and sum(map(len, new)) >= count
            if enough or sum(_bytes(some).sum() for some in (rows, *new)) > memory:
                new = [_distinct(new, count)]
                held = _bytes(pl.concat([rows, *new])).cum_sum()
                if (held > memory).any():
                    raise UserError(
                        f"GECA: {int((held <= memory).sum()) + 1:,} examples, and they are not all, take the "
                        f"{memory / 2**30:.2f} GiB of memory: ask for fewer (-n, --variants), or allow more memory"
                    )
                if len(new[0]) == count:
                    break
        rows = _distinct([rows, *new], count)
    return rows


def _distinct(frames: list[pl.DataFrame], count: int | None) -> pl.DataFrame:
    """Return the first `count` distinct examples in the order of their hosts."""
    every = pl.concat(frames).sort("key", maintain_order=True)
    return every.unique("tokens", keep="first", maintain_order=True).head(len(every) if count is None else count)


def _bytes(rows: pl.DataFrame) -> pl.Series:
    """Estimate the memory that each example takes until it is written."""
    return EXAMPLE_BYTES + TOKEN_BYTES * rows["tokens"].bin.size().cast(pl.Int64) // 4
