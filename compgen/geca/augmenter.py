"""GECA behind the interface of all augmenters: `fit` builds the tables, `sample` composes."""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import numpy as np
import polars as pl

from compgen.data.examples import SCHEMA, TRAIN, Dataset
from compgen.data.ragged import lists, ranges
from compgen.errors import ExhaustedError, UserError, check_draws
from compgen.geca.compose import BOTH_SIDES, Composed, Composer, Drawing
from compgen.geca.corpus import BEGIN, END, SEPARATOR, Corpus
from compgen.geca.tables import CollisionError, Config, Tables, build

EXAMPLE_BYTES, TOKEN_BYTES = 1000, 30  # of an example that is drawn: 1.7 million of 28 tokens took 2.9 GB
EXTRA = {"template": pl.UInt64, "fragment": pl.UInt64}


class Geca:
    """Good-enough compositional data augmentation (Andreas 2020)."""

    def __init__(self, config: Config | None = None, drawing: Drawing | None = None, memory: int = 2**32) -> None:
        """An augmenter by some options, within a number of bytes of memory. Results do not depend on `memory`."""
        self.config, self.drawing, self.memory = config or Config(), drawing or Drawing(), memory
        self.tables: Tables | None = None

    def fit(self, dataset: Dataset, watch: Callable[[float], None] | None = None) -> "Geca":
        """Find the fragments and templates of all examples of a dataset; `watch` hears how much is done, up to 1.

        Raises:
            DataError: there is no example, or some are pairs and others sentences.
            UserError: the memory is too little, or there are too many different spans.
            ExhaustedError: the options yield no example from these data; the message says which of them.
        """
        self.tables = build(Corpus.of(dataset, self.config.longest), self.config, self.memory, watch)
        check_licensed(self.tables)
        return self

    def sample(
        self,
        count: int | None = None,
        seed: int = 0,
        drawing: Drawing | None = None,
        watch: Callable[[float], None] | None = None,
    ) -> Dataset:
        """Up to `count` new, distinct examples, or all; fewer where data and options license no more.

        They are drawn by the augmenter's options, or by other ones for this once (`drawing`).
        Besides source and target the frame has the columns `template` and `fragment`, which name what each example
        was made of. The examples and their order depend on the data (not on their order), the options and the seed.
        `watch` hears which share of the templates has been gone through, until there are enough examples.

        Raises:
            UserError: `fit` was not called, a number is negative, or the examples need more than the memory.
            ExhaustedError: there is not one.
        """
        if self.tables is None:
            raise UserError("fit the augmenter to a dataset before sampling from it")
        check_draws("GECA", count, seed)
        drawing = drawing or self.drawing
        while True:
            try:
                return dataset_of(self.tables, first(self.tables, drawing, count, seed, self.memory, watch), count)
            except CollisionError:  # of environments that are read for the first time
                old = self.tables.enumerator
                self.tables = build(old.corpus, self.config, self.memory, salt=old.salt + 1)


Row = tuple[tuple[int, int], bytes, int, int]  # key and rank, tokens, template, fragment


def first(
    tables: Tables,
    drawing: Drawing,
    count: int | None,
    seed: int,
    memory: int,
    watch: Callable[[float], None] | None = None,
) -> list[Row]:
    """The first `count` distinct examples by the hosts that the tables' store holds; `watch` as for `Geca.sample`.

    Raises:
        UserError: they need more than `memory` bytes.
    """
    composer = Composer(tables, drawing, seed)

    def parts() -> Iterator[Iterator[Row]]:
        done = 0
        for frame in tables.store.partitions():

            def hear(share: float, before: int = done, here: int = frame.height) -> None:
                if watch is not None:
                    watch((before + share * here) / tables.pairs)

            yield _rows(composer.compose(frame, hear))
            done += frame.height

    return merged(parts(), count, memory)


def merged(parts: Iterable[Iterable[Row]], count: int | None, memory: int) -> list[Row]:
    """The first `count` distinct examples among those of several parts, each in order; no part is read further.

    Raises:
        UserError: the examples need more than `memory` bytes.
    """
    rows: list[Row] = []
    for part in parts:
        held = sum(map(_bytes, rows))
        new: dict[bytes, Row] = {}
        for row in part:
            if new.setdefault(row[1], row) is row:
                held += _bytes(row)
            if held > memory:
                raise UserError(
                    f"GECA: {len(rows) + len(new):,} examples, and they are not all, take the {memory / 2**30:.2f} GiB "
                    "of memory: ask for fewer (-n, --variants), or allow more memory"
                )
            if count is not None and len(new) >= count:
                break
        distinct: dict[bytes, Row] = {}
        for row in heapq.merge(rows, new.values()):
            distinct.setdefault(row[1], row)
        rows = list(distinct.values())[:count]
    return rows


def _bytes(row: Row) -> int:
    """About the most memory that an example takes until it is written."""
    return EXAMPLE_BYTES + TOKEN_BYTES * len(row[1]) // 4


def _rows(composed: Iterable[Composed]) -> Iterator[Row]:
    """Examples one by one."""
    rank = itertools.count()
    for part in composed:
        columns = zip(part.key.tolist(), part.template.tolist(), part.fragment.tolist(), strict=True)
        starts = part.sequences.starts.tolist()
        for (key, template, fragment), (start, stop) in zip(columns, pairwise(starts), strict=True):
            yield (key, next(rank)), part.sequences.tokens[start:stop].tobytes(), template, fragment


def dataset_of(tables: Tables, rows: list[Row], count: int | None) -> Dataset:
    """Composed examples as a dataset.

    Raises:
        ExhaustedError: there is none, though `count` is not 0.
    """
    if not rows and count != 0:
        raise ExhaustedError(f"GECA makes no new example of these data: {_why_none(tables)}")
    words = tables.enumerator.corpus.words
    tokens = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.int32).astype(np.int64)
    begin, middle, end = (np.flatnonzero(tokens == marker) for marker in (BEGIN, SEPARATOR, END))
    columns = {
        side: lists(words, tokens[ranges(after + 1, before - after - 1)[1]], before - after - 1)
        for side, after, before in (("source", begin, middle), ("target", middle, end))
    }
    template, fragment = ([row[place] for row in rows] for place in (2, 3))
    extra = {"split": [TRAIN] * len(rows), "template": template, "fragment": fragment}
    return Dataset(pl.DataFrame(columns | extra, schema={**SCHEMA, **EXTRA}))


def check_licensed(tables: Tables) -> None:
    """Raise ExhaustedError, which says why, if no fragment may take another's place."""
    if tables.licences.is_empty():
        raise ExhaustedError(f"GECA can make nothing of these data: {_why(tables)}")


def _why(tables: Tables) -> str:
    """Which options leave no licence."""
    corpus, config = tables.enumerator.corpus, tables.config
    if not len(corpus.short):
        shortest = int(corpus.lengths.min())
        return f"all {len(corpus):,} examples are longer than {config.longest} tokens (the shortest has {shortest})"
    if not len(tables.enumerator.spans):
        return f"no span of up to {config.span} tokens stands at most {config.limit} times"
    skipped = f", {corpus.skipped:,} examples longer than {config.longest} tokens left out" if corpus.skipped else ""
    return (
        f"no {'template' if tables.group == 'template' else 'environment'} has two fragments{skipped}; longer or more "
        "spans, a higher frequency limit or a smaller window may find some"
    )


def _why_none(tables: Tables) -> str:
    """Why templates with licences make no example."""
    if tables.enumerator.corpus.paired:
        sides = (frame["sides"] == BOTH_SIDES for frame in tables.store.partitions())
        if not any(side.any() for side in sides):
            return (
                f"with fragments of {tables.config.spans} spans at most, none has one on each side, source and target"
            )
    return "what the templates may take gives only examples that are known, or made of spans that stood there before"
