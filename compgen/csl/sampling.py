"""New pairs from a grammar (Qiu et al. 2022, sections 3.1.2 and 3.2): derivations drawn from the root down.

Which rule comes next depends on the rule above it and on which of that rule's nonterminals it fills: its slot. With a
target grammar, each nonterminal of a derivation has one of the names that the target grammar can give it, so that all
targets are well formed. (In the reference only more or less so: what one nonterminal has become does not narrow what
its siblings may be.)

Sample i of a seed is a function of the grammar, the weights, the seed and i alone, whatever else is asked for. A few
thousand derivations are drawn together, a level at a time: a node's random numbers are addressed by its sample, the
attempt, and its place in the derivation, counted level by level.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from pydantic import ConfigDict

from compgen.csl.choices import Choice, Ways
from compgen.csl.derivations import Level, sides
from compgen.csl.rules import Grammar
from compgen.csl.targets import TargetGrammar
from compgen.csl.weights import Floats, Weights, slots
from compgen.data.examples import TOKENS, TRAIN, Dataset
from compgen.data.ragged import Ints, lists, ranges
from compgen.data.random import nodes
from compgen.errors import ConfigError, DataError, ExhaustedError

LONGEST = 1000  # tokens on a side
BLOCK = 4096  # samples that are drawn together
_ATTEMPTS = 1000  # at one sample
_PATIENCE = 20  # attempts after which one sample makes all of its others, as they may all be in vain
_DEEPEST = 1000  # what `Depth.most` may be
_BEYOND = 5  # levels that a derivation may go deeper where it cannot end


@dataclass(frozen=True)
class Depth:
    """How deep derivations are; the root is at depth 0.

    Attributes:
        least: above this depth, rules have nonterminals.
        most: from this depth on, they have none, where any without fits. Where none does, derivations go up to five
            levels deeper, or are given up and begun again.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    least: int = 1
    most: int = 5

    def __post_init__(self) -> None:
        """Raise ConfigError for what no derivation can have."""
        if not 0 <= self.least <= self.most <= _DEEPEST:
            raise ConfigError(
                f"depth: found at least {self.least} and at most {self.most}, expected 0 <= least <= most <= {_DEEPEST}"
            )


@dataclass(frozen=True)
class Drawing:
    """How derivations are drawn.

    Attributes:
        depth: how deep they are.
        longest: tokens on a side; longer samples are given up and drawn again. (The reference has no such limit, and
            makes samples of thousands of tokens by uniform weights.)
        temperature, bias, biased: see `Scores.weights`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    depth: Depth = Depth()
    longest: int = LONGEST
    temperature: float = 1.0
    bias: float = 0.0
    biased: int = 1

    def __post_init__(self) -> None:
        """Raise ConfigError for what no pair can be drawn by."""
        if not (self.longest >= 1 and 0 < self.temperature < math.inf and math.isfinite(self.bias)):
            raise ConfigError(
                f"drawing: found {self}, expected longest >= 1, a temperature above 0 and a bias that is a number"
            )


@dataclass(frozen=True, eq=False)
class Block:
    """Samples one after the other, from number `start` on.

    Attributes:
        numbers: the tokens of the sources, all in one, and of the targets, as numbers in the alphabet.
        lengths: of the sources, and of the targets.
        log_probs: of derivations, log p(rule | slot) of all their rules together.
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
        """Draw derivations within `depth`; restrict targets to `targets` if given.

        Args:
            grammar: its rules; those that no well-formed target can contain are ignored.
            depth: the least and the most levels of a derivation.
            weights: of each rule in each slot; uniform if None. Where a rule cannot be used, its weight goes to the
                other rules in proportion. A rule's weight is divided among the ways to name its nonterminals.
            targets: a grammar of well-formed targets.
            longest: the most tokens on a side, see `Drawing`.

        Raises:
            DataError: the grammar has no rules.
            ExhaustedError: no derivation ends in time.
            ValueError: the weights are not this grammar's, or some are no weights.
        """
        if not grammar.rules:
            raise DataError("found a grammar without rules, expected some to draw from")
        weights = Weights.uniform(grammar) if weights is None else weights
        weights.check(grammar)
        self.alphabet, self.depth, self.longest, self._weights = grammar.alphabet, depth, longest, weights
        self._source, self._target = sides(grammar)
        self._arities = np.array([rule.arity for rule in grammar.rules], dtype=np.int64)
        self._slots = np.array(slots(grammar), dtype=np.int64)
        self._ways = Ways.of(grammar, self._arities, targets)
        arities = self._arities[self._ways.rule]
        self._any, self._inner, self._final = (
            Choice.of(self._ways, weights, allowed) for allowed in (arities >= 0, arities > 0, arities == 0)
        )
        self._require_end()

    def sample(self, number: int, seed: int = 0, start: int = 0) -> Dataset:
        """The samples from `start` on, so many of them, in order; one may be like another.

        Raises:
            ExhaustedError: for one sample a thousand attempts led to where no rule can be used, or became too long.
        """
        words = pl.Series(self.alphabet.tokens, dtype=pl.String)
        columns: tuple[list[pl.Series], list[pl.Series]] = ([], [])
        log_probs: list[Floats] = []
        for block in self.blocks(seed, start, start + number):
            log_probs.append(block.log_probs)
            for column, numbers, lengths in zip(columns, block.numbers, block.lengths, strict=True):
                column.append(lists(words, numbers, lengths))
        source, target = (pl.concat(column) if column else pl.Series([], dtype=TOKENS) for column in columns)
        drawn = {
            "index": np.arange(start, start + number, dtype=np.int64),
            "log_prob": np.concatenate([np.zeros(0), *log_probs]),
        }
        return Dataset(pl.DataFrame({"source": source, "target": target, **drawn}).with_columns(split=pl.lit(TRAIN)))

    def blocks(self, seed: int, start: int, stop: int, rows: int = BLOCK) -> Iterator[Block]:
        """The samples from `start` to before `stop`, at most `rows` at a time; raises as `sample`."""
        for first in range(start, stop, rows):
            try:
                yield self.block(seed, first, min(first + rows, stop))
            except _ExhaustedAtError as error:
                if error.sample > first:  # those before it can be had
                    yield self.block(seed, first, error.sample)
                raise

    def block(self, seed: int, start: int, stop: int) -> Block:
        """The samples from `start` to before `stop`, all at a time; raises as `sample`."""
        pending = np.arange(start, stop, dtype=np.int64)
        order: list[Ints] = []
        numbers: tuple[list[Ints], list[Ints]] = ([], [])
        lengths: tuple[list[Ints], list[Ints]] = ([], [])
        scores: list[Floats] = []
        for attempt in range(_ATTEMPTS):
            if attempt == _PATIENCE:
                self._require_success(seed, int(pending[0]))
            levels, score, alive = self._derive(seed, pending, np.full(len(pending), attempt))
            roots = np.flatnonzero(alive)
            for side, found, length in zip((self._source, self._target), numbers, lengths, strict=True):
                tokens, counts = side.write(levels, roots)
                found.append(tokens)
                length.append(counts)
            order.append(pending[roots])
            scores.append(score[roots])
            pending = pending[~alive]
            if not len(pending):
                break
        else:
            raise self._exhausted(int(pending[0]))
        place = np.argsort(np.concatenate(order))
        both = [_reordered(np.concatenate(n), np.concatenate(k), place) for n, k in zip(numbers, lengths, strict=True)]
        return Block(start, (both[0][0], both[1][0]), (both[0][1], both[1][1]), np.concatenate(scores)[place])

    def _require_success(self, seed: int, sample: int) -> None:
        """Raise ExhaustedError if no attempt at a sample comes to an end."""
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
        """Derivations of some samples, their log-probabilities, and which of them came to an end."""
        count = len(samples)
        alive, scores, used = np.ones(count, dtype=bool), np.zeros(count), np.zeros(count, dtype=np.int64)
        sizes = np.zeros((2, count), dtype=np.int64)
        # The nodes of a level: of which sample, in which slot, with which name, how often in the target; and those of
        # `Level`.
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
            left = np.zeros((2, count), dtype=np.int64)  # nonterminals, of which each becomes a token at least
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
            # Samples that are too long are not counted on: they would be past counting soon.
            times = np.minimum(times[parent] * self._target.times[above, number], self.longest + 1)
        alive[sample] = False
        return levels, scores, alive

    def _choose(self, depth: int, slot: Ints, name: Ints, uniforms: Floats) -> Ints:
        """Which way goes on at each node; -1 where there is none."""
        if depth < self.depth.least:
            return self._inner.draw(slot, name, uniforms)
        if depth < self.depth.most:
            return self._any.draw(slot, name, uniforms)
        way = self._final.draw(slot, name, uniforms)
        stuck = np.flatnonzero(way < 0)
        way[stuck] = self._any.draw(slot[stuck], name[stuck], uniforms[stuck])
        return way

    def _require_end(self) -> None:
        """Raise ExhaustedError if no derivation ends within the depth, whatever rules weigh."""
        arities, names = self._arities[self._ways.rule], self._ways.counts
        name = np.repeat(np.arange(len(names)), names)
        final = np.zeros(len(names), dtype=bool)
        final[name[arities == 0]] = True
        ends = np.zeros(len(names) + 1, dtype=bool)
        ends[-1] = True  # where there is no nonterminal
        for depth in reversed(range(self.depth.most + _BEYOND + 1)):
            allowed = (arities > 0) | (depth >= self.depth.least)
            if depth >= self.depth.most:
                allowed &= (arities == 0) | ~final[name]
            whole = name[allowed & ends[self._ways.below].all(axis=1)]
            ends[:-1] = False
            ends[whole] = True
        if not ends[0]:
            raise ExhaustedError(
                f"the grammar has no derivation with {self.depth.least} to about {self.depth.most} levels: "
                f"{int((self._arities == 0).sum())} of its {len(self._arities)} rules have no nonterminals, and can "
                "end a derivation; "
                + ("lower drawing.depth.least, or " if self.depth.least else "")
                + "give more examples, or other seed rules and targets"
            )


class _ExhaustedAtError(ExhaustedError):
    """Raised when every attempt at a sample leaves the limits of depth and length."""

    def __init__(self, sample: int, message: str) -> None:
        super().__init__(message)
        self.sample = sample


def _counted(sample: Ints, values: Ints, count: int) -> Ints:
    """The sum of some nodes' values for each sample."""
    return np.bincount(sample, values, minlength=count).astype(np.int64)


def _reordered(tokens: Ints, lengths: Ints, order: Ints) -> tuple[Ints, Ints]:
    """Ragged rows in another order."""
    starts = np.cumsum(lengths) - lengths
    return tokens[ranges(starts[order], lengths[order])[1]], lengths[order]
