"""GECA as an augmenter: `fit` builds the tables, `sample` composes."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl

from compgen.augmenters.base import PAIRS, SENTENCES, Augmenter, HandedOver, Shown, counted
from compgen.data.examples import SCHEMA, SIDES, Dataset
from compgen.data.ragged import lists, ranges
from compgen.errors import ExhaustedError, UserError
from compgen.geca.building import build, made_of
from compgen.geca.compose import BOTH_SIDES, Composer
from compgen.geca.corpus import BEGIN, END, SEPARATOR, Corpus, all_longer, usual_longest
from compgen.geca.options import GecaOptions
from compgen.geca.tables import PARTITIONS, CollisionError, Tables
from compgen.progress import Watch

if TYPE_CHECKING:
    from compgen.geca.shards import Job

CONTRADICTING = 0.5  # the share of samples whose source has several targets from which on a narrow window is the cause


class Geca(Augmenter[GecaOptions]):
    """Replace fragments of examples by others that share an environment with them (Andreas 2020).

    Examples are pairs, or sentences (pairs with an empty target). The data limit how many new ones are possible.
    Samples have the columns `template` and `fragment`: hexadecimal hashes of what each sample was made from.
    """

    name = "geca"
    options_type = GecaOptions
    takes = frozenset({PAIRS, SENTENCES})
    moment = 20_000
    columns: ClassVar[dict[str, Any]] = {"template": pl.String, "fragment": pl.String}
    example = """cgen augment geca scan/jump --longest 38 -n 1000 -o more.tsv

        cgen augment geca sentences.txt --span 2 --spans 1 --limit 20 --window 2 --variants 1 -o more.txt"""

    tables: Tables | None = None
    _job: "Job | None" = None
    _used: list[int]  # distinct templates and fragments of the last samples

    @classmethod
    def refuses(cls, dataset: Dataset) -> str | None:
        """Examples that are all left out as too long unless options say otherwise."""
        lengths = dataset.frame.select(pl.sum_horizontal(pl.col(SIDES).list.len())).to_series().to_numpy()
        longest = usual_longest(lengths)
        return all_longer(lengths, longest) if lengths.min() > longest else None

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:  # noqa: ARG002
        """Find the fragments and templates of all examples of a dataset."""
        options = self.options
        if options.shard is not None and (options.engine == "ray" or options.workers):
            raise UserError("--shard is done by one process: leave out --engine ray and --workers")
        if options.engine == "ray" or options.shard is not None:
            _share(options.shard)
            return  # workers learn
        self.tables = build(Corpus.of(dataset, options.longest), options, watch)
        check_licensed(self.tables)

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:
        """Return up to `count` new, distinct examples, or all."""
        if self.tables is None:
            return self._by_shards(count, seed)
        while True:
            try:
                made = made_of(self.tables, self.options, count, seed, watch)
                self._used = [made[column].n_unique() for column in self.columns]
                return spelled(self.tables, made, count)
            except CollisionError:  # of environments that are spelled out for the first time
                old = self.tables.enumerator
                self.tables = build(old.corpus, self.options, salt=old.salt + 1)

    def _by_shards(self, count: int | None, seed: int) -> pl.DataFrame:
        from compgen.geca.shards import Job, run_on_ray, run_shard

        if self.beside is None or str(self.beside) == "-" or self.dataset is None:
            raise UserError("shares meet in a folder beside OUT: give the name of a file")
        number, shards = _share(self.options.shard)
        self._job = Job(self.dataset, self.options, count, seed, Path(f"{self.beside}.shards"), shards)
        if self.options.engine == "ray":
            return run_on_ray(self._job, self.options.workers)
        found = run_shard(self._job, number)
        if found is None:
            raise HandedOver(f"share {self.options.shard} is done; share 1 writes {self.beside}")
        return found

    def close(self) -> None:
        """Delete the folder in which shares met."""
        if self._job is not None:
            self._job.close()

    def facts(self) -> dict[str, Any]:
        """Return the sizes of the tables."""
        if self.tables is None:
            return {}
        tables = self.tables
        facts = {"pairs": tables.pairs, "templates": tables.templates, "fragments": tables.fragments}
        return facts | {"left_out_as_too_long": tables.enumerator.corpus.skipped}

    def no_more(self) -> str:
        """Return why fewer examples were made than asked for."""
        return "with these options the data license no more"

    def warnings(self) -> list[str]:
        """That a window is so narrow that most samples contradict others."""
        from compgen.evaluation.quality import ambiguous

        window = self.options.window
        if window is None or self._made.is_empty() or ambiguous(self._made) <= CONTRADICTING:
            return []
        return [
            f"most of the examples have a source with another target: --window {window} may be too narrow to tell "
            "where a fragment fits; try a larger one, or none, which compares whole templates"
        ]

    def in_words(self) -> str:
        """Return the report in words, for people."""
        said = super().in_words()
        if self.tables is None:
            return said
        report, (templates, fragments) = self.report(), self._used
        said += f"; made from {counted(templates, 'template')} and {counted(fragments, 'fragment')}; searched "
        said += f"{report['pairs']:,} pairs of {counted(report['templates'], 'template')} and "
        said += counted(report["fragments"], "fragment")
        skipped = report["left_out_as_too_long"]
        if skipped:
            longest = self.tables.enumerator.corpus.longest
            said += f", {counted(skipped, 'example')} left out as longer than {longest:,} tokens"
        return said

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """Return the three training examples that license a sample (section 3, figure 1)."""
        from compgen.geca.licence import licence

        if self.tables is None:
            raise UserError("geca: fit it before asking what its samples are made from")
        self.require_row(sample, *self.columns)
        hashes = [sample[name] for name in self.columns]
        options = self.options.model_copy(update={"reach": None})  # which templates it leaves out depends on the seed
        try:
            return licence(Composer(self.tables, options, 0), *(int(one, 16) for one in hashes))
        except (OverflowError, TypeError, ValueError):  # not hashes, or nothing licenses it
            raise UserError(f"geca: found {hashes!s:.60}, expected a sample of what it was fitted to") from None


def _share(text: str | None) -> tuple[int, int]:
    """Parse the option `shard`, I/N, to a number from 0 and the number of shares."""
    found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", "1/1" if text is None else text)
    number, count = map(int, found.groups()) if found else (0, 0)
    if not 1 <= number <= count <= PARTITIONS:
        said = f"{text or repr(text):.40}"
        raise UserError(f"--shard {said}: expected I/N with I from 1 to N, up to {PARTITIONS}: say 2/4")
    return number - 1, count


def spelled(tables: Tables, made: pl.DataFrame, count: int | None) -> pl.DataFrame:
    """Return composed examples with their words; raise ExhaustedError if there are none, though some are asked for."""
    if made.is_empty() and count != 0:
        raise ExhaustedError(f"GECA makes no new example of these data: {_why_none(tables)}")
    tokens = np.frombuffer(b"".join(made["tokens"]), dtype=np.int32).astype(np.int64)
    begin, middle, end = (np.flatnonzero(tokens == marker) for marker in (BEGIN, SEPARATOR, END))
    columns: dict[str, Any] = {
        side: lists(
            tables.enumerator.corpus.words, tokens[ranges(after + 1, before - after - 1)[1]], before - after - 1
        )
        for side, after, before in (("source", begin, middle), ("target", middle, end))
    }
    columns |= {column: [f"{number:016x}" for number in made[column]] for column in Geca.columns}
    return pl.DataFrame(columns, schema={side: SCHEMA[side] for side in columns if side in SCHEMA} | Geca.columns)


def check_licensed(tables: Tables) -> None:
    """Raise ExhaustedError, which says why, if no fragment may replace another."""
    if len(tables.licences):
        return
    corpus, options = tables.enumerator.corpus, tables.options
    why = (
        f"no {'template' if tables.group == 'template' else 'environment'} has two fragments; longer or more spans "
        "(--span, --spans), a higher frequency limit (--limit) or a smaller window (--window) may find some"
    )
    if corpus.skipped:
        why = (
            f"{corpus.skipped:,} of {len(corpus):,} examples are left out as longer than {corpus.longest:,} tokens "
            f"(raise --longest: the longest has {int(corpus.lengths.max()):,}); of the others {why}"
        )
    if not len(corpus.short):
        why = all_longer(corpus.lengths, corpus.longest)
    elif not len(tables.enumerator.spans):
        why = f"no span of up to {options.span} tokens occurs at most {options.limit} times"
    raise ExhaustedError(f"GECA can make nothing of these data: {why}")


def _why_none(tables: Tables) -> str:
    """Return why templates with licences make no example."""
    frames = tables.store.partitions()
    if tables.enumerator.corpus.paired and not any((frame["sides"] == BOTH_SIDES).any() for frame in frames):
        return f"with fragments of {tables.options.spans} spans at most, none has one on each side, source and target"
    return (
        "every licensed exchange gives a known example, or keeps a span that each fragment of its template has; "
        "longer or more spans (--span, --spans) may allow others"
    )
