"""Composition: what each template may take, drawn and filled in (GECA, section 3 and algorithm 1).

A template that takes fragments is a host. What it may take follows from its evidence, the licensed fragments that it
(or, by the mode `reference`, its environment) has; hosts with the same evidence have the same candidates, and groups
with the same fragments give the same licences, so both are worked out once. A candidate counts as often as groups
license it, as in the reference.

Hosts come in an order, and candidates are drawn by keys, that are hashes of what they are and of the seed: nothing
depends on the order of the data, on partitions or on what else is composed.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges, runs
from compgen.geca.arrays import BASE, Hashes, mix
from compgen.geca.enumeration import Packing
from compgen.geca.options import GecaOptions
from compgen.geca.realise import Known, Sequences, realise
from compgen.geca.tables import Tables, check_environments, check_templates

HOSTS = 1 << 15  # worked on together, at most
CANDIDATES = 1 << 21  # of hosts that are worked on together, about
ASKED = 1 << 10  # candidates of a host that are tried together, at most
COMPARED = 1 << 20  # pairs of a candidate and a fragment that are compared together
BOTH_SIDES = 3


@dataclass(frozen=True)
class Composed:
    """New examples, in the order of their keys, which may repeat.

    Attributes:
        key: by which hosts are ordered.
        template, fragment: what each was made of.
        sequences: their tokens.
    """

    key: Hashes
    template: Hashes
    fragment: Hashes
    sequences: Sequences


class _Own:
    """The rows of some templates, and how many of each template's fragments hold which span."""

    def __init__(self, rows: pl.DataFrame, packing: Packing) -> None:
        """`rows` are in the order of their templates."""
        self.rows, self.packing = rows, packing
        self.template = rows["template"].to_numpy()
        self.first, self.count = runs(self.template)
        owner = np.repeat(np.arange(len(self.first)), self.count)
        held = pl.Series(self._key(owner, packing.unpack(rows["fragment"].to_numpy())).ravel()).value_counts(sort=False)
        held = held.sort(held.columns[0])
        self.held, self.times = (held[name].to_numpy() for name in held.columns)

    def _key(self, owner: Ints, spans: Ints) -> Hashes:
        """One number for a template (by its place) and a span, exact: there are less than 2^32 of each."""
        key: Hashes = (owner.astype(np.uint64)[:, None] << np.uint64(32)) | spans.astype(np.uint64)
        return key

    def differs(self, template: Hashes, fragment: Hashes) -> NDArray[np.bool_]:
        """Which candidates are kept: False if a candidate shares a span with every fragment of its template.

        Both modes leave these out, as the authors' program does; the paper's boxed rule keeps them. They would repeat
        half of what the template already had; on GeoQuery's logical forms other templates yield all of them as well.

            differs(template, fragment) = not all(set(fragment) & set(own) for own in fragments_of[template])
        """
        owner = np.searchsorted(self.template[self.first], template)
        spans = self.packing.unpack(fragment)
        key = self._key(owner, spans)
        place = np.minimum(np.searchsorted(self.held, key), len(self.held) - 1)
        times = np.where((self.held[place] == key) & (spans > 0), self.times[place], 0)
        # One span that all fragments hold decides, and so do spans that are too few to be in all of them.
        result: NDArray[np.bool_] = times.max(axis=1) < self.count[owner]
        unclear = np.flatnonzero(result & (times.sum(axis=1) >= self.count[owner]))
        for part in _portions(unclear, self.count[owner[unclear]]):
            result[part] = self._compared(owner[part], spans[part])
        return result

    def _compared(self, owner: Ints, theirs: Ints) -> NDArray[np.bool_]:
        """The same, found by looking at each fragment of the template."""
        candidate, row = ranges(self.first[owner], self.count[owner])
        ours = self.packing.unpack(self.rows["fragment"].to_numpy()[row])
        shares = ((ours[:, :, None] == theirs[candidate][:, None, :]) & (ours[:, :, None] > 0)).any(axis=(1, 2))
        alike: NDArray[np.bool_] = np.logical_and.reduceat(shares, np.cumsum(self.count[owner]) - self.count[owner])
        return ~alike


class Composer:
    """Draws new examples from tables."""

    def __init__(self, tables: Tables, options: GecaOptions, seed: int) -> None:
        """By some options, in an order that the seed gives.

        With `reach` a fragment is evidence for those templates that come first in the order of hosts.

        In the mode `reference` candidates are drawn before it is known which of them are new: a template gets
        `variants` draws, of which one may repeat another, and keeps what is good among them.
        """
        self.tables, self.variants = tables, options.variants
        self.known = Known(tables.enumerator.corpus, options.novelty)
        self.seed = mix(np.array([seed], dtype=np.uint64) + BASE)  # one number, as an array: it may overflow silently
        self.members, self.classes = _classes(tables)
        self.licensed = tables.licences.select("fragment").unique()
        self.last = None if options.reach is None else self._last(options.reach)

    def compose(self, frame: pl.DataFrame, watch: Callable[[float], None] | None = None) -> Iterator[Composed]:
        """New examples by the hosts among the rows of some partitions, in the order of the hosts' keys.

        `watch` hears which share of the hosts is done.
        """
        rows, evidence = self.hosts(frame)
        hosts = self._keyed(rows.group_by("template").agg(pl.col(self.tables.host).first().alias("host")))
        done = 0
        for part in _ascending(hosts["key"].to_numpy()):
            for count, composed in self._block(hosts[part], rows, evidence):
                if composed is not None:
                    yield composed
                if watch is not None:
                    watch((done + count) / hosts.height)
            done += len(part)
        if watch is not None:
            watch(1.0)

    def hosts(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """The rows of all hosts, and the evidence: `host`, `fragment`, `without`, a group that it is not to count for.

        By the mode `published`, where environments are windows, the example that shows a fragment in an environment
        is another template than the host; a host that is the only one there is no evidence.
        """
        tables = self.tables
        linked = frame.join(self.licensed, on="fragment", how="semi")
        rows = linked
        if tables.key != "template":
            rows = frame.join(linked.select(tables.host).unique(), on=tables.host, how="semi")
        if tables.enumerator.corpus.paired:
            # A new example must differ on both sides from the one that lends its template.
            rows = rows.filter(pl.col("sides") == BOTH_SIDES)
        if self.last is not None:
            reached = self._keyed(linked).join(self.last, on="fragment", how="left")
            linked = reached.filter(pl.col("last").is_null() | (pl.col("key") <= pl.col("last")))
        if tables.host == tables.key:
            evidence = linked.select(pl.col(tables.host).alias("host"), "fragment").unique()
            return rows, evidence.with_columns(without=pl.lit(None, dtype=pl.UInt64))
        alone = tables.licences.filter(pl.col("support") == 1).select("group", "fragment", without="group")
        evidence = linked.join(alone, left_on=[tables.key, "fragment"], right_on=["group", "fragment"], how="left")
        return rows, evidence.select(pl.col("template").alias("host"), "fragment", "without")

    def _last(self, reach: int) -> pl.DataFrame:
        """The key, `last`, of the last template that each fragment with more than `reach` of them is evidence for."""
        last = pl.DataFrame(schema={"fragment": pl.UInt64, "key": pl.List(pl.UInt64)})
        for frame in self.tables.store.partitions():
            linked = self._keyed(frame.join(self.licensed, on="fragment", how="semi"))
            keys = pl.concat([last.explode("key"), linked.select("fragment", "key")])
            last = keys.group_by("fragment").agg(pl.col("key").bottom_k(reach))
        last = last.filter(pl.col("key").list.len() == reach)
        return last.select("fragment", last=pl.col("key").list.max())

    def _keyed(self, frame: pl.DataFrame) -> pl.DataFrame:
        return frame.with_columns(key=pl.Series(mix(frame["template"].to_numpy() ^ self.seed)))

    def _block(
        self, hosts: pl.DataFrame, rows: pl.DataFrame, evidence: pl.DataFrame
    ) -> Iterator[tuple[int, Composed | None]]:
        """How many hosts are done, and new examples, by some hosts: `template`, `host`, `key`."""
        rows = rows.join(hosts.select("template"), on="template", how="semi").sort("template", "example")
        check_templates(self.tables, rows)
        if self.tables.key != "template":
            check_environments(self.tables, rows)
        own = _Own(rows, self.tables.enumerator.packing)
        evidence = evidence.join(hosts.select("host").unique(), on="host", how="semi")
        signatures = evidence.sort("fragment").group_by("host").agg("fragment", "without")
        kinds = signatures.select("fragment", "without").unique().with_row_index("kind")
        signatures = signatures.join(kinds, on=["fragment", "without"], nulls_equal=True)
        groups = self._groups(kinds.explode("fragment", "without"))
        sizes = groups.join(self.classes, on="class").group_by("kind").agg(pl.col("size").sum())
        hosts = hosts.join(signatures.select("host", "kind"), on="host").join(sizes, on="kind").sort("key")
        # Candidates are spelled out for as many hosts as memory allows: there may be as many for each as hosts.
        part = (hosts["size"].cum_sum() - 1) // CANDIDATES
        done = 0
        for some in hosts.with_columns(part=part).partition_by("part", maintain_order=True):
            candidates = self._candidates(groups.join(some.select("kind").unique(), on="kind", how="semi"))
            done += some.height
            yield done, self._draw(some, own, candidates)

    def _groups(self, evidence: pl.DataFrame) -> pl.DataFrame:
        """The groups, by class, that each kind of evidence is in: `kind`, `class`."""
        groups = evidence.join(self.members, on="fragment")
        groups = groups.filter(pl.col("without").is_null() | (pl.col("without") != pl.col("class")))
        return groups.select("kind", "class").unique()

    def _candidates(self, groups: pl.DataFrame) -> pl.DataFrame:
        """What the groups of each kind license: `kind`, `fragment`, `weight`, the number of groups that do."""
        lent = groups.join(self.classes.drop("size"), on="class").join(self.members, on="class")
        return lent.group_by("kind", "fragment").agg(pl.col("weight").sum())

    def _draw(self, hosts: pl.DataFrame, own: _Own, candidates: pl.DataFrame) -> Composed | None:
        """New examples, if there are any, by some hosts, which are in the order of their keys."""
        pool = hosts.select("template", "key", "kind").with_row_index("place").join(candidates, on="kind")
        pool = pool.join(own.rows.select("template", "fragment"), on=["template", "fragment"], how="anti")
        # Smallest of exponential variates of rate w: draws without replacement in proportion to w.
        uniform = mix(pool["template"].to_numpy() ^ mix(pool["fragment"].to_numpy() ^ self.seed)) / 2.0**64
        delay = -np.log1p(-np.minimum(uniform, 1 - 2.0**-53)) / pool["weight"].to_numpy()
        pool = pool.with_columns(delay=delay).sort("place", "delay", "fragment")
        key, template, fragment, weight = (pool[name].to_numpy() for name in ("key", "template", "fragment", "weight"))
        if self.tables.options.mode == "reference":
            good = np.flatnonzero(own.differs(template, fragment))
            good = good[self._drawn(template[good], weight[good])]
            key, template, fragment = key[good], template[good], fragment[good]
        taken = self._first_good(template, fragment, own)
        if not len(taken):
            return None
        sequences = self._fill(own, template[taken], fragment[taken])
        return Composed(key[taken], template[taken], fragment[taken], sequences)

    def _drawn(self, template: Hashes, weight: NDArray[np.uint32]) -> Ints:
        """Which candidates are met in `variants` draws from a list that holds each as often as its weight.

        Candidates are in the order in which they are first met. A draw repeats one already met with the
        probability of the share that its copies have in what is left of the list.
        """
        first, count = runs(template)
        total = np.add.reduceat(weight, first).astype(np.float64) if len(first) else np.zeros(0)
        sums = np.append(0.0, np.cumsum(weight, dtype=np.float64))
        met = np.minimum(1, count)
        for draw in range(1, min(self.variants, int(total.max(initial=1)))):
            if (met == count).all():
                break
            left = np.maximum(total - draw, 1e-9)
            share = (sums[first + met] - sums[first] - draw) / left
            uniform = mix(template[first] ^ mix(self.seed + np.uint64(draw))).astype(np.float64) / 2.0**64
            met += (uniform >= share) & (met < count)
        return ranges(first, met)[1]

    def _first_good(self, template: Hashes, fragment: Hashes, own: _Own) -> Ints:
        """Of the candidates, which are together by template, the first `variants` of each that pass."""
        next_, count = runs(template)
        stop = next_ + count
        wanting = np.full(len(next_), self.variants)
        found: list[Ints] = []
        asked = 1
        while True:
            live = np.flatnonzero((wanting > 0) & (next_ < stop))
            if not len(live):
                break
            count = np.minimum(np.maximum(wanting[live], asked), stop[live] - next_[live])
            owner, index = ranges(next_[live], count)
            good = self._passes(template[index], fragment[index], own)
            rank = np.cumsum(good) - 1
            before = np.append(0, np.cumsum(good))[np.cumsum(count) - count]
            take = good & (rank - before[owner] < wanting[live][owner])
            found.append(index[take])
            wanting[live] -= np.bincount(owner[take], minlength=len(live))
            next_[live] += count
            asked = min(2 * asked, ASKED)
        return np.sort(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def _passes(self, template: Hashes, fragment: Hashes, own: _Own) -> NDArray[np.bool_]:
        """Which candidates are new examples and do not keep a span of each fragment that their template has."""
        good = own.differs(template, fragment)
        tested = np.flatnonzero(good)
        if len(tested):
            good[tested] = ~self.known.holds(self._fill(own, template[tested], fragment[tested]))
        return good

    def _fill(self, own: _Own, template: Hashes, fragment: Hashes) -> Sequences:
        """New examples: each template, as the first example that has it shows it, with a fragment."""
        part = own.rows[np.searchsorted(own.template, template)]
        example = part["example"].to_numpy().astype(np.int64)
        return realise(self.tables.enumerator, example, part["fragment"].to_numpy(), fragment)


def _portions(index: Ints, size: Ints) -> list[Ints]:
    """An index in parts whose sizes sum to COMPARED or so."""
    total = np.cumsum(size)
    bounds = np.searchsorted(total, np.arange(COMPARED, total[-1] if len(total) else 0, COMPARED))
    return [part for part in np.split(index, bounds) if len(part)]


def _classes(tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Groups with the same fragments as one: `class`, `fragment`; and `class`, how many groups and fragments it has.

    The second frame's columns are `class`, `weight` and `size`. By the mode `published` with windows a group must be
    known by name, and each is a class.
    """
    licences = tables.licences.select("group", "fragment")
    if tables.host != tables.key:
        members = licences.rename({"group": "class"})
        sizes = members.group_by("class").agg(pl.len().cast(pl.Int64).alias("size"))
        return members, sizes.with_columns(weight=pl.lit(1, dtype=pl.UInt32))
    sets = licences.sort("fragment").group_by("group").agg("fragment").group_by("fragment").len("weight")
    sets = sets.with_row_index("class").with_columns(pl.col("class").cast(pl.UInt64))
    sizes = sets.select("class", "weight", pl.col("fragment").list.len().cast(pl.Int64).alias("size"))
    return sets.select("class", "fragment").explode("fragment"), sizes


def _ascending(keys: Hashes) -> Iterator[Ints]:
    """Positions in the order of their keys, some at a time; few at first, for they may be enough."""
    size, rest = 1 << 10, np.arange(len(keys))
    while len(rest) > size:
        part = np.argpartition(keys[rest], size)
        chosen = rest[part[:size]]
        yield chosen[np.argsort(keys[chosen])]
        rest = rest[part[size:]]
        size = min(4 * size, HOSTS)
    yield rest[np.argsort(keys[rest])]
