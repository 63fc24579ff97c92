"""Composition: draws what each template may take, and fills it in (Andreas 2020, section 3 and algorithm 1).

A host is a template that takes fragments. `definition.composed` has the definition; this is the same with draws:

    for host in templates, in the order of hash(template, seed):
        candidates = {fragment: number of groups that hold it and some evidence(host)} - fragments(host)
        draw them without replacement, weighted by that number; yield the first `variants` that are new

The evidence is the licensed fragments of the host or, in the mode `reference`, of its environment. Hosts with the same
evidence have the same candidates, and groups with the same fragments give the same licences: both are computed once.
All draws are hashes of template, fragment and seed, so samples depend neither on the order of the data nor on
partitions.
"""

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.ragged import Ints, ranges, runs
from compgen.geca.arrays import BASE, Hashes, mix
from compgen.geca.enumeration import Packing
from compgen.geca.options import GecaOptions
from compgen.geca.realise import Known, Sequences, realise
from compgen.geca.tables import Tables

HOSTS = 1 << 15  # processed together, at most
CANDIDATES = 1 << 21  # of the hosts processed together, about
ASKED = 1 << 10  # candidates of a host that are tried together, at most
COMPARED = 1 << 20  # pairs of a candidate and a fragment that are compared together
BOTH_SIDES = 3
# A new example: the order of its host, what it is made of, and its tokens with markers (int32).
MADE = pl.Schema({"key": pl.UInt64, "template": pl.UInt64, "fragment": pl.UInt64, "tokens": pl.Binary})


class Composer:
    """Draws new examples from tables."""

    def __init__(self, tables: Tables, options: GecaOptions, seed: int) -> None:
        """Draw by `options`, which may differ from those of the tables in what concerns drawing."""
        self.tables, self.variants = tables, options.variants
        self.known = Known(tables.enumerator.corpus, options.novelty)
        self.seed = mix(np.array([seed], dtype=np.uint64) + BASE)  # an array, which overflows without a warning
        self.members, self.classes = _classes(tables)
        self.licensed = tables.licences.select("fragment").unique()
        self.last = None if options.reach is None else self._last(options.reach)

    def compose(self, frame: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield new examples (MADE) by the hosts in some partitions, in the order of their keys; they may repeat."""
        rows, evidence = self.hosts(frame)
        hosts = self._keyed(rows.group_by("template").agg(pl.col(self.tables.host).first().alias("host")))
        for part in _ascending(hosts["key"].to_numpy()):
            yield from self._block(hosts[part], rows, evidence)

    def hosts(self, frame: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return the rows of all hosts, and the evidence: `host`, `fragment`, and `without`, a group not to count.

        In the mode `published` with windows, another template than the host must show that a fragment occurs in an
        environment; so a host that is the only one there is no evidence.
        """
        tables = self.tables
        linked = frame.join(self.licensed, on="fragment", how="semi")
        rows = linked
        if tables.key != "template":
            rows = frame.join(linked.select(tables.host).unique(), on=tables.host, how="semi")
        if tables.enumerator.corpus.paired:  # a new pair must differ from its host's example on both sides
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
        """Return `last`, the `reach`-th smallest key of the templates that have a fragment, where there are so many."""
        last = pl.DataFrame(schema={"fragment": pl.UInt64, "key": pl.List(pl.UInt64)})
        for frame in self.tables.store.partitions():
            linked = self._keyed(frame.join(self.licensed, on="fragment", how="semi"))
            keys = pl.concat([last.explode("key"), linked.select("fragment", "key")])
            last = keys.group_by("fragment").agg(pl.col("key").bottom_k(reach))
        return last.filter(pl.col("key").list.len() == reach).select("fragment", last=pl.col("key").list.max())

    def _keyed(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add the order of the hosts, `key`."""
        return frame.with_columns(key=pl.Series(mix(frame["template"].to_numpy() ^ self.seed)))

    def _block(self, hosts: pl.DataFrame, rows: pl.DataFrame, evidence: pl.DataFrame) -> Iterator[pl.DataFrame]:
        """Yield new examples (MADE) by some hosts, given by `template`, `host` and `key`."""
        rows = rows.join(hosts.select("template"), on="template", how="semi").sort("template", "example")
        self.tables.check(rows, self.tables.key)
        own = _Own(rows, self.tables.enumerator.packing)
        evidence = evidence.join(hosts.select("host").unique(), on="host", how="semi")
        signatures = evidence.sort("fragment").group_by("host").agg("fragment", "without")
        kinds = signatures.select("fragment", "without").unique().with_row_index("kind")
        signatures = signatures.join(kinds, on=["fragment", "without"], nulls_equal=True)
        # The classes of groups that hold each kind of evidence.
        groups = kinds.explode("fragment", "without").join(self.members, on="fragment")
        groups = groups.filter(pl.col("without").is_null() | (pl.col("without") != pl.col("class")))
        groups = groups.select("kind", "class").unique()
        sizes = groups.join(self.classes, on="class").group_by("kind").agg(pl.col("size").sum())
        hosts = hosts.join(signatures.select("host", "kind"), on="host").join(sizes, on="kind").sort("key")
        # A host may have as many candidates as there are hosts, so they are listed for some hosts at a time.
        part = (hosts["size"].cum_sum() - 1) // CANDIDATES
        for some in hosts.with_columns(part=part).partition_by("part", maintain_order=True):
            lent = groups.join(some.select("kind").unique(), on="kind", how="semi")
            lent = lent.join(self.classes.drop("size"), on="class").join(self.members, on="class")
            yield self._draw(some, own, lent.group_by("kind", "fragment").agg(pl.col("weight").sum()))

    def _draw(self, hosts: pl.DataFrame, own: "_Own", candidates: pl.DataFrame) -> pl.DataFrame:
        """Return new examples by some hosts, in order, from the candidates of each kind: `kind`, `fragment`, `weight`.

        In the mode `reference` a host gets `variants` draws with repetition, of which it keeps what is new.
        """
        pool = hosts.select("template", "key", "kind").with_row_index("place").join(candidates, on="kind")
        pool = pool.join(own.rows.select("template", "fragment"), on=["template", "fragment"], how="anti")
        # The order of exponential variates of rate w is a draw without replacement in proportion to w.
        uniform = mix(pool["template"].to_numpy() ^ mix(pool["fragment"].to_numpy() ^ self.seed)) / 2.0**64
        delay = -np.log1p(-np.minimum(uniform, 1 - 2.0**-53)) / pool["weight"].to_numpy()
        pool = pool.with_columns(delay=delay).sort("place", "delay", "fragment")
        if self.tables.options.mode == "reference":
            pool = pool.filter(own.differs(pool["template"].to_numpy(), pool["fragment"].to_numpy()))
            pool = pool[self._drawn(pool["template"].to_numpy(), pool["weight"].to_numpy())]
        template, fragment = pool["template"].to_numpy(), pool["fragment"].to_numpy()
        taken = self._first_good(template, fragment, own)
        if not len(taken):
            return pl.DataFrame(schema=MADE)
        made = self._fill(own, template[taken], fragment[taken])
        buffer, size = made.tokens.tobytes(), made.tokens.itemsize
        texts = [buffer[size * start : size * stop] for start, stop in pairwise(made.starts.tolist())]
        return pool[taken].select("key", "template", "fragment", tokens=pl.Series(texts, dtype=pl.Binary))

    def _drawn(self, template: Hashes, weight: NDArray[np.uint32]) -> Ints:
        """Return which candidates, given in the order in which they are first met, `variants` draws meet.

        Each stands in the list drawn from as often as its weight. A draw repeats one already met with the probability
        of the share that its copies have in what is left of the list.
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

    def _first_good(self, template: Hashes, fragment: Hashes, own: "_Own") -> Ints:
        """Return the first `variants` of each template's candidates that pass; candidates are together by template.

        Templates are tried together: one candidate of each, then two more, four more, and so on.
        """
        place, count = runs(template)
        stop = place + count
        wanting = np.full(len(place), self.variants)
        found: list[Ints] = [np.zeros(0, dtype=np.int64)]
        asked = 1
        while len(live := np.flatnonzero((wanting > 0) & (place < stop))):
            count = np.minimum(np.maximum(wanting[live], asked), stop[live] - place[live])
            owner, index = ranges(place[live], count)
            good = self._passes(template[index], fragment[index], own)
            rank = np.cumsum(good) - 1
            before = np.append(0, np.cumsum(good))[np.cumsum(count) - count]
            take = good & (rank - before[owner] < wanting[live][owner])
            found.append(index[take])
            wanting[live] -= np.bincount(owner[take], minlength=len(live))
            place[live] += count
            asked = min(2 * asked, ASKED)
        return np.sort(np.concatenate(found))

    def _passes(self, template: Hashes, fragment: Hashes, own: "_Own") -> NDArray[np.bool_]:
        """Return which candidates are new examples and do not keep a span of each fragment of their template."""
        good = own.differs(template, fragment)
        tested = np.flatnonzero(good)
        if len(tested):
            good[tested] = ~self.known.holds(self._fill(own, template[tested], fragment[tested]))
        return good

    def _fill(self, own: "_Own", template: Hashes, fragment: Hashes) -> Sequences:
        """Fill each template, as the first example that has it shows it, with a fragment."""
        part = own.rows[np.searchsorted(own.template, template)]
        example = part["example"].to_numpy().astype(np.int64)
        return realise(self.tables.enumerator, example, part["fragment"].to_numpy(), fragment)


class _Own:
    """The rows of some templates, and how many of each template's fragments hold which span."""

    def __init__(self, rows: pl.DataFrame, packing: Packing) -> None:
        """`rows` are in the order of their templates."""
        self.rows, self.packing = rows, packing
        self.template, self.fragment = rows["template"].to_numpy(), rows["fragment"].to_numpy()
        self.first, self.count = runs(self.template)
        owner = np.repeat(np.arange(len(self.first)), self.count)
        self.held, self.times = np.unique(self._key(owner, packing.unpack(self.fragment)), return_counts=True)

    def _key(self, owner: Ints, spans: Ints) -> Hashes:
        """Combine a template (by its place) and a span into one number without loss: both are below 2^32."""
        key: Hashes = (owner.astype(np.uint64)[:, None] << np.uint64(32)) | spans.astype(np.uint64)
        return key

    def differs(self, template: Hashes, fragment: Hashes) -> NDArray[np.bool_]:
        """Return which candidates are kept: those that do not share a span with every fragment of their template.

            differs(template, fragment) = not all(set(fragment) & set(own) for own in fragments_of[template])

        Both modes leave the others out, as the authors' program does; the paper's box keeps them. They would repeat
        half of what the template already had; on GeoQuery's logical forms other templates yield all of them as well.
        """
        owner = np.searchsorted(self.template[self.first], template)
        spans = self.packing.unpack(fragment)
        key = self._key(owner, spans)
        place = np.minimum(np.searchsorted(self.held, key), len(self.held) - 1)
        times = np.where((self.held[place] == key) & (spans > 0), self.times[place], 0)
        # One span that all fragments hold decides, and so do spans that are too few to be in all of them.
        result: NDArray[np.bool_] = times.max(axis=1) < self.count[owner]
        unclear = np.flatnonzero(result & (times.sum(axis=1) >= self.count[owner]))
        total = np.cumsum(self.count[owner[unclear]])
        bounds = np.searchsorted(total, np.arange(COMPARED, total[-1] if len(total) else 0, COMPARED))
        for part in filter(len, np.split(unclear, bounds)):
            result[part] = self._compared(owner[part], spans[part])
        return result

    def _compared(self, owner: Ints, theirs: Ints) -> NDArray[np.bool_]:
        """`differs` by looking at each fragment of the template."""
        candidate, row = ranges(self.first[owner], self.count[owner])
        ours = self.packing.unpack(self.fragment[row])
        shares = ((ours[:, :, None] == theirs[candidate][:, None, :]) & (ours[:, :, None] > 0)).any(axis=(1, 2))
        alike: NDArray[np.bool_] = np.logical_and.reduceat(shares, np.cumsum(self.count[owner]) - self.count[owner])
        return ~alike


def _classes(tables: Tables) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Unite groups with the same fragments to classes: (`class`, `fragment`), and (`class`, `weight`, `size`).

    `weight` is the number of groups in a class, `size` that of its fragments. In the mode `published` with windows each
    group is a class, as evidence names groups that are not to count.
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
    """Yield positions in the order of their keys, few at first, for these may be enough."""
    size, rest = 1 << 10, np.arange(len(keys))
    while len(rest) > size:
        part = np.argpartition(keys[rest], size)
        chosen = rest[part[:size]]
        yield chosen[np.argsort(keys[chosen])]
        rest = rest[part[size:]]
        size = min(4 * size, HOSTS)
    yield rest[np.argsort(keys[rest])]
