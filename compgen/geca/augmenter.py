"""GECA as an augmenter: `fit` builds the tables, `sample` composes."""

import heapq
import itertools
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from compgen.augmenters.base import PAIRS, SENTENCES, Augmenter, HandedOver, Shown
from compgen.data.examples import SCHEMA, Dataset
from compgen.data.ragged import lists, ranges
from compgen.errors import ExhaustedError, Remark, UserError
from compgen.geca.compose import BOTH_SIDES, Composed, Composer
from compgen.geca.corpus import BEGIN, END, SEPARATOR, Corpus
from compgen.geca.options import GecaOptions
from compgen.geca.tables import PARTITIONS, CollisionError, Tables, build
from compgen.progress import Watch

if TYPE_CHECKING:
    from compgen.geca.shards import Job

EXAMPLE_BYTES, TOKEN_BYTES = 1000, 30  # of an example that is drawn: 1.7 million of 28 tokens took 2.9 GB


class Geca(Augmenter[GecaOptions]):
    """Put fragments of examples where others stood that share an environment with them (Andreas 2020).

    Examples are pairs, or sentences (pairs with an empty target). The data decide how many there can be. Samples have
    the columns `template` and `fragment`, which name what each was made of; they are hashes, so they are text.
    """

    name = "geca"
    options_type = GecaOptions
    takes = frozenset({PAIRS, SENTENCES})
    columns: ClassVar[dict[str, Any]] = {"template": pl.String, "fragment": pl.String}
    example = """compgen augment geca scan/jump --longest 38 -n 1000 -o more.tsv

        compgen augment geca sentences.txt --span 2 --spans 1 --limit 20 --window 2 --variants 1 -o more.txt"""

    tables: Tables | None = None
    _job: "Job | None" = None
    _used: list[int]  # distinct templates and fragments of the last samples

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002
        """Find the fragments and templates of all examples of a dataset."""
        options = self.options
        if (options.engine == "ray" and options.shard is not None) or (options.engine == "local" and options.workers):
            raise UserError("--workers is for --engine ray, and --shard for --engine local")
        if options.engine == "ray" or options.shard is not None:
            _share("1/1" if options.shard is None else options.shard)
            return  # workers learn
        corpus = Corpus.of(dataset, options.longest)
        self.tables = build(corpus, options, options.bytes, lambda share: watch("fragments and templates", share, ""))
        check_licensed(self.tables)

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:
        """Up to `count` new, distinct examples, or all; fewer where data and options license no more."""
        if self.tables is None:
            return self._by_shards(count, seed)
        while True:
            try:
                rows = first(
                    self.tables, self.options, count, seed, lambda share: watch("new examples: templates", share, "")
                )
                self._used = [len({row[place] for row in rows}) for place in (2, 3)]
                return frame_of(self.tables, rows, count)
            except CollisionError:  # of environments that are read for the first time
                old = self.tables.enumerator
                self.tables = build(old.corpus, self.options, self.options.bytes, salt=old.salt + 1)

    def _by_shards(self, count: int | None, seed: int) -> pl.DataFrame:
        from compgen.geca.shards import Job, run_on_ray

        if self.beside is None or str(self.beside) == "-" or self.dataset is None:
            raise UserError("shares meet in a folder beside OUT: give the name of a file")
        number, shards = _share(self.options.shard or "1/1")
        self._job = Job(self.dataset, self.options, count, seed, Path(f"{self.beside}.shards"), shards)
        if self.options.engine == "ray":
            return run_on_ray(self._job, self.options.workers)
        return self._one_share(self._job, number)

    def _one_share(self, job: "Job", number: int) -> pl.DataFrame:
        from compgen.geca.shards import run_shard

        said: list[object] = []

        def watch(step: str, missing: dict[int, str]) -> None:
            if said[-1:] != [(step, missing)]:
                said.append((step, missing))
                names = ", ".join(
                    f"{other + 1}/{job.shards}" + (f" (to be started again; it gave up: {reason})" if reason else "")
                    for other, reason in missing.items()
                )
                warnings.warn(f"waiting for the {step} of share {names}", Remark, stacklevel=2)

        found = run_shard(job, number, watch)
        if found is None:
            raise HandedOver(f"share {self.options.shard} is done; share 1 writes {self.beside}")
        return found

    def close(self) -> None:
        """Delete the folder in which shares met: the examples are written."""
        if self._job is not None:
            self._job.close()

    def facts(self) -> dict[str, Any]:
        """How much was looked at, and if fewer examples were made than asked for, why."""
        facts: dict[str, Any] = {}
        if self.tables is not None:
            tables = self.tables
            facts = {"pairs": tables.pairs, "templates": tables.templates, "fragments": tables.fragments}
            facts["left_out_as_too_long"] = tables.enumerator.corpus.skipped
        asked, made = self._report.get("asked"), self._report.get("made", 0)
        if asked is not None and made < asked:
            facts["why"] = "with these options the data license no more"
        return facts

    def described(self) -> str:
        """The report in words, for people."""
        said = super().described()
        if self.tables is None:
            return said
        report, (templates, fragments) = self.report(), self._used
        said += f"; of {templates:,} templates and {fragments:,} fragments; {report['pairs']:,} pairs of "
        said += f"{report['templates']:,} templates and {report['fragments']:,} fragments looked at"
        skipped = report["left_out_as_too_long"]
        return said + (f", {skipped:,} examples left out as longer than {self.options.longest}" if skipped else "")

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """The three training examples that license a sample (section 3, figure 1)."""
        from compgen.geca.licence import licence

        assert self.tables is not None
        return licence(Composer(self.tables, self.options, 0), *(int(sample[name], 16) for name in self.columns))


def _share(text: str) -> tuple[int, int]:
    """The option `shard`, I/N, as a number from 0 and how many shares there are."""
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count <= PARTITIONS:
        raise UserError(f"--shard {text or repr(text)}: expected I/N with I from 1 to N, up to {PARTITIONS}: say 2/4")
    return number - 1, count


Row = tuple[tuple[int, int], bytes, int, int]  # key and rank, tokens, template, fragment


def first(
    tables: Tables, options: GecaOptions, count: int | None, seed: int, watch: Callable[[float], None] | None = None
) -> list[Row]:
    """The first `count` distinct examples by the hosts that the tables' store holds.

    `watch` is called with the share of the hosts that is done.

    Raises:
        UserError: the examples need more memory than the options allow.
    """
    composer = Composer(tables, options, seed)

    def parts() -> Iterator[Iterator[Row]]:
        done = 0
        for frame in tables.store.partitions():

            def hear(share: float, before: int = done, here: int = frame.height) -> None:
                if watch is not None:
                    watch((before + share * here) / tables.pairs)

            yield _rows(composer.compose(frame, hear))
            done += frame.height

    return merged(parts(), count, options.bytes)


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


def frame_of(tables: Tables, rows: list[Row], count: int | None) -> pl.DataFrame:
    """Composed examples as a frame; template and fragment are written in hexadecimal.

    Raises:
        ExhaustedError: there is none, though `count` is not 0.
    """
    if not rows and count != 0:
        raise ExhaustedError(f"GECA makes no new example of these data: {_why_none(tables)}")
    words = tables.enumerator.corpus.words
    tokens = np.frombuffer(b"".join(row[1] for row in rows), dtype=np.int32).astype(np.int64)
    begin, middle, end = (np.flatnonzero(tokens == marker) for marker in (BEGIN, SEPARATOR, END))
    columns: dict[str, Any] = {
        side: lists(words, tokens[ranges(after + 1, before - after - 1)[1]], before - after - 1)
        for side, after, before in (("source", begin, middle), ("target", middle, end))
    }
    columns |= {"template": [f"{row[2]:016x}" for row in rows], "fragment": [f"{row[3]:016x}" for row in rows]}
    return pl.DataFrame(columns, schema={side: SCHEMA[side] for side in ("source", "target")} | Geca.columns)


def check_licensed(tables: Tables) -> None:
    """Raise ExhaustedError, which says why, if no fragment may take another's place."""
    if tables.licences.is_empty():
        raise ExhaustedError(f"GECA can make nothing of these data: {_why(tables)}")


def _why(tables: Tables) -> str:
    """Which options leave no licence."""
    corpus, options = tables.enumerator.corpus, tables.options
    if not len(corpus.short):
        shortest = int(corpus.lengths.min())
        return f"all {len(corpus):,} examples are longer than {options.longest} tokens (the shortest has {shortest})"
    if not len(tables.enumerator.spans):
        return f"no span of up to {options.span} tokens stands at most {options.limit} times"
    skipped = f", {corpus.skipped:,} examples longer than {options.longest} tokens left out" if corpus.skipped else ""
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
                f"with fragments of {tables.options.spans} spans at most, none has one on each side, source and target"
            )
    return "what the templates may take gives only examples that are known, or made of spans that stood there before"
