"""What substitution makes: exchanges of pieces, all of them or drawn, without those that are not wanted.

for each exchange: write the derivation's source and target
    keep it if it is new, passes the filters, and no other had its source
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count as count_from
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from compgen.augmenters.drawing import BLOCK, MANY, until_exhausted
from compgen.csl.derivations import Side, sides
from compgen.csl.rules import FIRST
from compgen.data.ragged import Ints
from compgen.data.random import SamplePurpose, words
from compgen.progress import Watch, unwatched
from compgen.substitution.options import SubstituteOptions
from compgen.substitution.pieces import Classifier, Table
from compgen.substitution.trees import Trees

BLOCKS = 10  # blocks of samples on which agreement is counted
# A pair that is expected so often is missing by chance with a probability of e^-20. Pairs that are missing in training
# are in 8 of 4,281 test targets of GeoQuery and Scholar, and in none of 21,000 of COGS.
STRAY = 20
_NAME = "\0"
Found = tuple[str, int, list[int]]  # target, row of the host, and pieces
Made = tuple[Ints, Trees, Ints]  # rows of hosts, derivations, and pieces in each (samples, exchanges)
Targets = Mapping[str, Collection[str]]  # by source


@dataclass(frozen=True, eq=False)
class Exchanges:
    """Exchanges of the pieces of a table.

    Attributes:
        options: how many exchanges a sample has, and what is left out.
        classifier: of the table's pieces.
        table: places and pieces.
        rows: in DATA, of the table's derivations.
        known: the targets of DATA by their sources, as letters; a source may have several.
        left_out: how many samples were, by the reason.
    """

    options: SubstituteOptions
    classifier: Classifier
    table: Table
    rows: Ints
    known: Targets
    left_out: Counter[str] = field(default_factory=Counter)

    def found(self, count: int | None, seed: int, watch: Watch = unwatched) -> dict[str, Found]:
        """New examples by their source, in letters."""
        found: dict[str, Found] = {}
        self.left_out.clear()
        rounds, few = self.options.rounds, self.table.total if self._few(self.options.rounds) else 0
        for block in until_exhausted(self._blocks(seed, rounds), found, count, watch, few):
            for made in block:
                self._add(found, made, count)
        return found

    def _add(self, found: dict[str, Found], made: Made, count: int | None) -> None:
        """Add what is wanted, until there are `count`."""
        rows, trees, pieces = made
        short = self._short(trees)
        written = zip(*self.written(trees.take(np.flatnonzero(short))), strict=True)
        for place, is_short in enumerate(short.tolist()):
            if len(found) == count:
                return
            if not is_short:
                self.left_out[self._too_long] += 1
                continue
            source, target = next(written)
            if not self._wanted(source, target):
                continue
            if source not in found:
                found[source] = target, int(rows[place]), pieces[place].tolist()
            elif found[source][0] != target:
                self.left_out["the source was made with another target before"] += 1

    def _short(self, trees: Trees) -> NDArray[np.bool_]:
        """Which derivations are short enough to be written; no example of the data is longer.

        Where rules repeat a nonterminal, as  NT_1 twice ### NT_1 NT_1,  a few exchanges can make millions of tokens.
        """
        source, target = self._sides
        if not (target.times > 1).any():
            return np.ones(len(trees.count), dtype=bool)
        known = max(len(side) for source, targets in self.known.items() for side in (source, *targets))
        return trees.lengths(source, target) <= max(self.options.longest, known)

    @property
    def _too_long(self) -> str:
        return f"more than {self.options.longest:,} tokens on a side"

    def outcomes(self, seed: int) -> set[tuple[int, str, str]]:
        """Of some exchanges of one piece (BLOCKS), those that make the source of another example.

        Each is the class of its piece, the source, and the target it makes.
        """
        kinds = self.table.pieces["class"].to_numpy()
        own = dict(zip(self.rows.tolist(), self.written(self.table.trees)[0], strict=True))
        return {
            (kind, source, target)
            for block in islice(self._blocks(seed, 1), BLOCKS)
            for rows, trees, pieces in block
            for kind, row, source, target in zip(
                kinds[pieces[:, 0]].tolist(), rows.tolist(), *self.written(trees), strict=True
            )
            if source in self.known and source != own[row]
        }

    def _few(self, rounds: int) -> bool:
        """Whether there are so few exchanges, or none, that all are made, in random order, instead of drawn."""
        return rounds == 1 and self.table.total <= MANY

    def _blocks(self, seed: int, rounds: int) -> Iterator[list[Made]]:
        """Blocks of up to BLOCK samples, each with 1 to `rounds` exchanges."""
        return self._every(seed) if self._few(rounds) else self._samples(seed, rounds)

    def _every(self, seed: int) -> Iterator[list[Made]]:
        """All exchanges of one piece: each is drawn without replacement, as probable as its piece is (see `Table`)."""
        every = self.table.every()
        random = (words(seed, np.arange(len(every)), SamplePurpose.SUBSTITUTIONS, 1)[:, 0] + 0.5) * 2.0**-32
        order = np.argsort(-np.log(random) / every["probability"].to_numpy(), kind="stable")
        for block in every[order].iter_slices(BLOCK):
            hosts, pieces = (block[column].to_numpy().astype(np.int64) for column in ("host", "piece"))
            rows = self.rows[self.table.hosts["tree"].to_numpy()[hosts]]
            yield [(rows, self.table.exchange(hosts, pieces), pieces[:, None])]

    def _samples(self, seed: int, rounds: int) -> Iterator[list[Made]]:
        """Samples 0, 1, ..., by their number of exchanges, without those for which there is no piece of a class."""
        changeable = np.flatnonzero(self.table.trees.count > 1)
        for start in count_from(0, BLOCK):
            random = words(seed, np.arange(start, start + BLOCK), SamplePurpose.SUBSTITUTIONS, 2 + 4 * rounds)
            numbers = random.astype(np.float64) * 2.0**-32
            host = changeable[(numbers[:, 0] * len(changeable)).astype(np.int64)]
            times = 1 + (numbers[:, 1] * rounds).astype(np.int64)
            trees, sample, used = self.table.trees.take(host), np.arange(BLOCK), np.zeros((BLOCK, 0), dtype=np.int64)
            block: list[Made] = []
            for turn in range(rounds):
                trees, some, pieces = self.table.draw(trees, numbers[sample, 2 + 4 * turn : 6 + 4 * turn])
                sample, used = sample[some], np.column_stack([used[some], pieces])
                done = times[sample] == turn + 1
                block.append((self.rows[host[sample[done]]], trees.take(np.flatnonzero(done)), used[done]))
                trees, sample, used = trees.take(np.flatnonzero(~done)), sample[~done], used[~done]
            yield block

    def _wanted(self, source: str, target: str) -> bool:
        """Whether an example is new, and passes the filters; else it is counted by the reason, unless it is known."""
        options, why = self.options, ""
        if source in self.known:
            if target in self.known[source]:
                return False
            why = "the source is in the data with another target"
        elif max(len(source), len(target)) > options.longest:
            why = self._too_long
        elif any(p not in self._joined and self._stray(*p) for p in _pairs(self._outline(source, target))):
            why = "tokens of the target stand together that never do in the data"
        elif options.seen_heads and not self.classifier.heads(target)[0] <= self._heads:
            why = "a predicate under one that it never is under in the data"
        elif options.bigrams is not None and len({*_pairs(source)} - self._bigrams) > options.bigrams:
            why = f"more than {options.bigrams} pairs of neighbours that the data lack"
        if why:
            self.left_out[why] += 1
        return not why

    @cached_property
    def _sides(self) -> tuple[Side, Side]:
        return sides(self.classifier.grammar)

    def written(self, trees: Trees) -> tuple[list[str], list[str]]:
        """The sources and the targets of derivations, as letters."""
        source, target = trees.write(*self._sides)
        return _text(source), _text(target)

    @cached_property
    def _bigrams(self) -> set[tuple[str, str]]:
        return {pair for source in self.known for pair in _pairs(source)}

    def odd(self, sources: Collection[str]) -> float:
        """The share of sources that have more than one pair of neighbouring tokens that the data lack."""
        new = (len({*pairwise(source)} - self._bigrams) for source in sources)
        return sum(count > 1 for count in new) / max(1, len(sources))

    @cached_property
    def _outlines(self) -> list[str]:
        """The outlines of the data."""
        return [self._outline(source, target) for source, some in self.known.items() for target in some]

    @cached_property
    def _joined(self) -> set[tuple[str, str]]:
        """Which two tokens stand together in the outlines of the data; an end counts as a token."""
        return {pair for outline in self._outlines for pair in _pairs(outline)}

    @cached_property
    def _often(self) -> tuple[Counter[str], int]:
        """How often each token is in the outlines of the data, where an end counts as a token; and how often any is.

        That is how often it has a token behind it, and before it: each outline ends where it begins.
        """
        often = Counter("".join(f" {outline}" for outline in self._outlines))
        return often, often.total()

    def _outline(self, source: str, target: str) -> str:
        """A target with one letter for all its words that are in the source, too: its names."""
        names = {*source} - self.classifier.grammar.alphabet.signs
        return "".join(_NAME if token in names else token for token in target)

    def _stray(self, first: str, second: str) -> bool:
        """Whether two tokens that never stand together in outlines of the data show a malformed target.

        Two signs do. Where targets have brackets, and so are no natural language, two tokens do so that would stand
        together STRAY times or more if the order of tokens were random. (Commands as targets have such gaps that
        are no fault: in the training part of a split of NACS *right* is never behind *around*, its test asks for that.)
        """
        often, every = self._often
        expected = often[first] * often[second] / every
        signs = self.classifier.grammar.alphabet.signs
        return {first, second} <= signs or (self.classifier.bracketed and expected >= STRAY)

    @cached_property
    def _heads(self) -> set[tuple[str, str]]:
        return {pair for some in self.known.values() for target in some for pair in self.classifier.heads(target)[0]}


def _pairs(side: str) -> Iterator[tuple[str, str]]:
    """Each two neighbours, the ends of the side among them."""
    return pairwise(f" {side} ")


def _text(written: tuple[Ints, Ints]) -> list[str]:
    """Sequences, given as numbers of tokens one after the other and lengths, as letters."""
    letters = (written[0] + FIRST).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    ends = np.cumsum(written[1])
    return [letters[start:end] for start, end in zip((ends - written[1]).tolist(), ends.tolist(), strict=True)]
