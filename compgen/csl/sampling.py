"""Samples of a grammar (Qiu et al. 2022, sections 3.1.2 and 3.2): derivations drawn from the root down.

The next rule depends on its slot: the rule above it, and the nonterminal of that rule which it fills. With a target
grammar, each nonterminal of a derivation has one of the names that the target grammar can give it, so that all targets
are well formed. (In the reference not all are: the name of one nonterminal does not restrict its siblings.)

Sample i of a seed is a function of the grammar, the weights, the seed and i alone, whatever else is drawn. A few
thousand derivations are drawn together, a level at a time: the address of a node's random numbers is its sample, the
attempt, and its place in the derivation, counted level by level.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from compgen.csl.choices import Choice, Ways
from compgen.csl.derivations import Level, sides
from compgen.csl.rules import Grammar
from compgen.csl.targets import TargetGrammar
from compgen.csl.weights import Floats, Weights, slots
from compgen.data.examples import TOKENS, TRAIN, Dataset
from compgen.data.ragged import Ints, lists, ranges
from compgen.data.random import nodes
from compgen.errors import DataError, ExhaustedError
from compgen.runtime.manifest import DEEPEST, LONGEST_SIDE

LONGEST = 1000  # tokens on a side
BLOCK = 4096  # samples that are drawn together
_ATTEMPTS = 1000  # for one sample
_PATIENCE = 20  # attempts after which all others of one sample are made at once, as they may all fail
_BEYOND = 5  # levels below `Depth.most`, for derivations that cannot end there


class Depth(BaseModel):
    """The depth of derivations; the root is at depth 0."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    least: int = Field(1, ge=0, le=DEEPEST, description="Above this depth, draw only rules with nonterminals.")
    most: int = Field(
        5,
        ge=0,
        le=DEEPEST,
        description="From this depth on, draw only rules without nonterminals where one fits. Where none fits, the "
        "derivation may be up to five levels deeper, or the attempt fails.",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.least > self.most:
            raise ValueError("least <= most")
        return self


class Drawing(BaseModel):
    """How derivations are drawn."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    depth: Depth = Depth()
    longest: int = Field(
        LONGEST,
        ge=1,
        le=LONGEST_SIDE,
        description="The most tokens on a side; longer samples are drawn again. (The reference has no such limit, and "
        "with uniform weights makes samples of thousands of tokens.)",
    )
    temperature: float = Field(1.0, gt=0, description="Divide the scores of states and rules by this.")
    bias: float = Field(
        0.0,
        description="Add this to the scores of rules with `biased` nonterminals or more, so that derivations get "
        "longer.",
    )
    biased: int = Field(1, description="The least number of nonterminals of a rule to whose score `bias` is added.")


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive samples, from number `start` on; N of them.

    Attributes:
        numbers: the tokens of all sources, one after the other, and of all targets, as numbers in the alphabet.
        lengths: (N) of the sources, and of the targets.
        log_probs: (N) log p(z): the sum of log p(rule | slot) over the rules of each derivation.
    """

    start: int
    numbers: tuple[Ints, Ints]
    lengths: tuple[Ints, Ints]
    log_probs: Floats


class Sampler:
    """Draws pairs from a grammar."""

    def __init__(
        self,
        grammar: Grammar,
        depth: Depth,
        weights: Weights | None = None,
        targets: TargetGrammar | None = None,
        longest: int = LONGEST,
    ) -> None:
        """Prepare to draw derivations within `depth`, with well-formed targets if `targets` are given.

        Args:
            grammar: its rules; those that no well-formed target can contain are ignored.
            depth: the least and the most levels of a derivation.
            weights: of each rule in each slot; uniform if None. The weight of a rule that cannot be used goes to the
                others in proportion. A rule's weight is divided equally among the ways to name its nonterminals.
            targets: a grammar of well-formed targets.
            longest: the most tokens on a side.

        Raises:
            DataError: the grammar has no rules.
            ExhaustedError: no derivation ends within the depth.
        """
        if not grammar.rules:
            raise DataError("found a grammar without rules, expected some to draw from")
        weights = Weights.uniform(grammar) if weights is None else weights
        self.alphabet, self.depth, self.longest, self._weights = grammar.alphabet, depth, longest, weights
        self._source, self._target = sides(grammar)
        self._arities = np.array([rule.arity for rule in grammar.rules], dtype=np.int64)
        self._slots = np.array(slots(grammar), dtype=np.int64)
        self._ways = Ways.of(grammar, targets)
        arities = self._arities[self._ways.rule]
        self._any, self._inner, self._final = (
            Choice.of(self._ways, weights, allowed) for allowed in (arities >= 0, arities > 0, arities == 0)
        )
        self._require_end()

    def sample(
        self, number: int, seed: int = 0, start: int = 0, watch: Callable[[int], None] = lambda _: None
    ) -> Dataset:
        """Return samples `start` to `start` + `number` - 1; they may repeat. `watch` hears how many there are.

        Raises:
            ExhaustedError: all of a thousand attempts at one sample failed or were too long.
        """
        words = pl.Series(self.alphabet.tokens, dtype=pl.String)
        columns: tuple[list[pl.Series], list[pl.Series]] = ([], [])
        log_probs: list[Floats] = []
        for block in self.blocks(seed, start, start + number):
            log_probs.append(block.log_probs)
            watch(sum(map(len, log_probs)))
            for column, numbers, lengths in zip(columns, block.numbers, block.lengths, strict=True):
                column.append(lists(words, numbers, lengths))
        source, target = (pl.concat(column) if column else pl.Series([], dtype=TOKENS) for column in columns)
        drawn = {
            "index": np.arange(start, start + number, dtype=np.int64),
            "log_prob": np.concatenate([np.zeros(0), *log_probs]),
        }
        return Dataset(pl.DataFrame({"source": source, "target": target, **drawn}).with_columns(split=pl.lit(TRAIN)))

    def blocks(self, seed: int, start: int, stop: int, rows: int = BLOCK) -> Iterator[Block]:
        """Yield samples `start` to `stop` - 1, at most `rows` at a time; raises as `sample`."""
        for first in range(start, stop, rows):
            try:
                yield self.block(seed, first, min(first + rows, stop))
            except _ExhaustedAtError as error:
                if error.sample > first:  # those before it can be had
                    yield self.block(seed, first, error.sample)
                raise

    def block(self, seed: int, start: int, stop: int) -> Block:
        """Draw samples `start` to `stop` - 1 together; raises as `sample`."""
        pending = np.arange(start, stop, dtype=np.int64)
        order: list[Ints] = []
        written: tuple[list[tuple[Ints, Ints]], list[tuple[Ints, Ints]]] = ([], [])
        scores: list[Floats] = []
        for attempt in range(_ATTEMPTS):
            if attempt == _PATIENCE:
                self._require_success(seed, int(pending[0]))
            levels, score, alive = self._derive(seed, pending, np.full(len(pending), attempt))
            roots = np.flatnonzero(alive)
            for side, found in zip((self._source, self._target), written, strict=True):
                found.append(side.write(levels, roots))
            order.append(pending[roots])
            scores.append(score[roots])
            pending = pending[~alive]
            if not len(pending):
                break
        else:
            raise self._exhausted(int(pending[0]))
        place = np.argsort(np.concatenate(order))
        numbers, lengths = zip(*(_reordered(found, place) for found in written), strict=True)
        return Block(start, numbers, lengths, np.concatenate(scores)[place])

    def _require_success(self, seed: int, sample: int) -> None:
        """Raise ExhaustedError if all attempts at a sample fail."""
        attempts = np.arange(_ATTEMPTS)
        if not self._derive(seed, np.full(_ATTEMPTS, sample), attempts)[2].any():
            raise self._exhausted(sample)

    def _exhausted(self, sample: int) -> "_ExhaustedAtError":
        return _ExhaustedAtError(
            sample,
            f"sample {sample}: none of {_ATTEMPTS:,} attempts gave a derivation with {self.depth.least} to about "
            f"{self.depth.most} levels and at most {self.longest:,} tokens a side; raise drawing.longest "
            "or drawing.depth.most, or lower drawing.depth.least",
        )

    def _derive(self, seed: int, samples: Ints, attempts: Ints) -> tuple[list[Level], Floats, NDArray[np.bool_]]:
        """Draw derivations of samples; return their nodes, their log p(z), and which of them ended within the limits.

        level = the root of each sample
        while level has nodes:
            for each node: draw a way to use a rule, given the node's slot and name
            level = the nonterminals of the drawn rules, each with its slot and its name by the drawn way
        """
        count = len(samples)
        alive, scores, used = np.ones(count, dtype=bool), np.zeros(count), np.zeros(count, dtype=np.int64)
        sizes = np.zeros((2, count), dtype=np.int64)  # tokens so far, of the source and of the target
        # Of each node of a level: its sample, slot, name, times in the target, parent, and number below the parent.
        sample, none = np.arange(count), np.zeros(count, dtype=np.int64)
        slot, name, times, parent, number = none, none, none + 1, none, none
        levels: list[Level] = []
        for depth in range(self.depth.most + _BEYOND + 1):
            mine = np.bincount(sample, minlength=count)
            order = used[sample] + np.arange(len(sample)) - (np.cumsum(mine) - mine)[sample]
            used += mine
            way = self._choose(depth, slot, name, nodes(seed, samples[sample], order, attempts[sample]))
            alive[sample[way < 0]] = False
            rule = self._ways.rule[way]
            scores += np.bincount(sample, self._weights.of(slot, rule), minlength=count)
            left = np.zeros((2, count), dtype=np.int64)  # nonterminals, each of which becomes at least one token
            for place, (side, often) in enumerate(((self._source, np.ones_like(times)), (self._target, times))):
                sizes[place] += _counted(sample, side.terminals[rule] * often, count)
                left[place] = _counted(sample, (side.counts - side.terminals)[rule] * often, count)
            alive &= (sizes + left <= self.longest).all(axis=0)
            arity = np.where(alive[sample], self._arities[rule], 0)
            levels.append(Level(rule, parent, number, np.cumsum(arity) - arity))
            parent, number = ranges(np.zeros(len(arity), dtype=np.int64), arity)
            if not len(parent):
                return levels, scores, alive
            above = rule[parent]
            sample, slot = sample[parent], self._slots[above] + number
            name = self._ways.below[way[parent], number]
            # Capped, because the number may double at each level and overflow; the sample is too long anyway.
            times = np.minimum(times[parent] * self._target.times[above, number], self.longest + 1)
        alive[sample] = False
        return levels, scores, alive

    def _choose(self, depth: int, slot: Ints, name: Ints, uniforms: Floats) -> Ints:
        """Draw a way for each node of a level, (n); -1 where there is none."""
        if depth < self.depth.least:
            return self._inner.draw(slot, name, uniforms)
        if depth < self.depth.most:
            return self._any.draw(slot, name, uniforms)
        way = self._final.draw(slot, name, uniforms)
        stuck = np.flatnonzero(way < 0)
        way[stuck] = self._any.draw(slot[stuck], name[stuck], uniforms[stuck])
        return way

    def _require_end(self) -> None:
        """Raise ExhaustedError if no derivation ends within the depth, whatever the weights.

        ends(name, depth) = some way with the name, allowed at this depth, whose nonterminals all end at depth + 1
        """
        arities, counts = self._arities[self._ways.rule], self._ways.counts
        name = np.repeat(np.arange(len(counts)), counts)  # (ways)
        final = np.zeros(len(counts), dtype=bool)
        final[name[arities == 0]] = True
        ends = np.zeros(len(counts) + 1, dtype=bool)
        ends[-1] = True  # `Ways.below` is -1 where a rule has fewer nonterminals
        for depth in reversed(range(self.depth.most + _BEYOND + 1)):
            allowed = (arities > 0) | (depth >= self.depth.least)
            if depth >= self.depth.most:
                allowed &= (arities == 0) | ~final[name]
            whole = name[allowed & ends[self._ways.below].all(axis=1)]
            ends[:-1] = False
            ends[whole] = True
        if not ends[0] and self.depth.least and not (self._arities > 0).any():
            raise ExhaustedError(
                "nothing to recombine: every rule of the grammar is a whole example: induction found no part that "
                "examples share; give more examples, or seed rules (--seed-rules)"
            )
        if not ends[0]:
            raise ExhaustedError(
                f"the grammar has no derivation with {self.depth.least} to about {self.depth.most} levels (rules "
                f"without nonterminals, which can end one: {int((self._arities == 0).sum())} of {len(self._arities)}): "
                + ("lower drawing.depth.least, or " if self.depth.least else "")
                + "give more examples, or other seed rules and targets"
            )


class _ExhaustedAtError(ExhaustedError):
    """Raised when all attempts at a sample fail."""

    def __init__(self, sample: int, message: str) -> None:
        super().__init__(message)
        self.sample = sample


def _counted(sample: Ints, values: Ints, count: int) -> Ints:
    """Return the sum of the values of each sample's nodes, (n) to (count)."""
    return np.bincount(sample, values, minlength=count).astype(np.int64)


def _reordered(parts: Sequence[tuple[Ints, Ints]], order: Ints) -> tuple[Ints, Ints]:
    """Join ragged rows (values, lengths) and put them in another order."""
    values, lengths = (np.concatenate(some) for some in zip(*parts, strict=True))
    starts = np.cumsum(lengths) - lengths
    return values[ranges(starts[order], lengths[order])[1]], lengths[order]
