"""New pairs from a grammar (Qiu et al. 2022, sections 3.1.2 and 3.2): derivations drawn from the root down.

Which rule comes next depends on the rule above it and on which of that rule's nonterminals it fills: its slot. With a
target grammar, each nonterminal of a derivation has the names that the target grammar can give it, so that targets are
well formed; in the reference only more or less so, as what one nonterminal has become does not narrow what its siblings
may be.

Sample i of a seed is a function of the grammar, the weights, the seed and i alone, whatever else is asked for: all its
random numbers come from a counter-based generator.
"""

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, count

import numpy as np
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.errors import ConfigError, DataError, ExhaustedError
from compgen.grammar.rules import Grammar, template
from compgen.grammar.targets import ROOT, TargetGrammar

Weights = NDArray[np.float64]
Names = frozenset[str]  # of the target grammar

_BLOCK = 1024  # samples whose random numbers are made together
_ATTEMPTS = 1000  # at one sample
_BEYOND = 5  # levels that a derivation may go deeper where it cannot end


@dataclass(frozen=True)
class Depth:
    """How deep derivations are; the root is at depth 0.

    Attributes:
        least: above this depth, rules have nonterminals.
        most: from this depth on, they have none, where any without fits. Where none does, derivations go up to five
            levels deeper, or are given up and begun again.
    """

    least: int = 1
    most: int = 5

    def __post_init__(self) -> None:
        """Raise ConfigError for what no derivation can have."""
        if not 0 <= self.least <= self.most:
            raise ConfigError(
                f"depth: found at least {self.least} and at most {self.most}, expected 0 <= least <= most"
            )


# As published for each data set.
DEPTHS = {"scan": Depth(1, 5), "cogs": Depth(1, 20), "geoquery": Depth(1, 20), "smcalflow": Depth(1, 10)}


def slots(grammar: Grammar) -> list[int]:
    """The first slot of each rule: that of NT_1, behind which come those of NT_2 and so on. Slot 0 is the root."""
    return [*accumulate((rule.arity for rule in grammar.rules[:-1]), initial=1)][: len(grammar.rules)]


class Sampler:
    """Draws pairs from a grammar."""

    def __init__(
        self,
        grammar: Grammar,
        depth: Depth,
        weights: Weights | None = None,
        targets: TargetGrammar | None = None,
        quirks: bool = False,
    ) -> None:
        """With derivations so deep, and, if there are `targets`, with well-formed targets.

        Args:
            grammar: its rules, of which those are left out that have no part in a well-formed target.
            depth: how deep derivations are.
            weights: (slots, rules), of each rule in each slot (see `slots`): probabilities, of which those of rules
                that cannot be used somewhere are shared out among the others. All alike if None.
            targets: a grammar of targets.
            quirks: do as the reference: a nonterminal may have any of the names that it can have by its rule and what
                the whole may be, so that not all targets are well formed. Otherwise one of the ways to name the
                nonterminals of a rule is drawn, all alike, and each has one name.

        Raises:
            DataError: the grammar has no rules, or no derivation in it ends.
            ConfigError: no derivation is so deep. Weights that leave none, and `quirks`, show in `sample` only.
            ValueError: the weights have another shape, or some are negative or not finite.
        """
        if not grammar.rules:
            raise DataError("found a grammar without rules, expected some to draw from")
        shape = 1 + sum(rule.arity for rule in grammar.rules), len(grammar.rules)
        if weights is None:
            weights = np.ones(shape)
        if weights.shape != shape or not (np.isfinite(weights).all() and (weights >= 0).all()):
            raise ValueError(f"found weights of shape {weights.shape}, expected {shape}, none negative, all finite")
        self._alphabet, self._depth, self._weights, self._quirks = grammar.alphabet, depth, weights, quirks
        self._sides = [tuple(map(template, rule)) for rule in grammar.rules]
        self._arities = [rule.arity for rule in grammar.rules]
        self._slots = slots(grammar)
        self._signatures: list[list[tuple[str, ...]]]
        if targets is None:
            self._signatures = [[(ROOT,) * (arity + 1)] for arity in self._arities]
        else:
            checker = targets.checker(grammar.alphabet)
            self._signatures = [sorted(checker.signatures(rule.target)) for rule in grammar.rules]
        if not quirks:
            self._check_depth()
        self._choices: dict[tuple[int, int, Names], tuple[list[int], list[float]]] = {}
        self._below: dict[tuple[int, Names], list[list[Names]]] = {}

    def _check_depth(self) -> None:
        """Raise DataError unless some derivation ends, ConfigError unless one does so where it should."""
        signatures = {signature for some in self._signatures for signature in some}
        heights: dict[str, int] = {}  # of the flattest derivation of each name
        while more := {whole for whole, *below in signatures if heights.keys() >= {*below}} - heights.keys():
            height = max(heights.values(), default=-1) + 1
            heights |= dict.fromkeys(more, height)
        if ROOT not in heights:
            if all(self._arities):
                raise DataError("found nonterminals in all rules, expected rules without: derivations end there")
            raise DataError(
                "found no derivation of a well-formed target that ends, expected rules that give one together"
            )
        deepest = self._depth.most + _BEYOND
        names = {name for name, height in heights.items() if height <= deepest - self._depth.least}
        for _ in range(self._depth.least):
            names = {whole for whole, *below in signatures if below and names.issuperset(below)}
        if ROOT not in names:
            raise ConfigError(
                f"depth: found at least {self._depth.least}, at most {self._depth.most}, and {deepest} for what cannot "
                f"end before; expected what a derivation of these rules can have: the flattest is {heights[ROOT]} deep"
            )

    def sample(self, number: int, seed: int = 0, start: int = 0) -> Dataset:
        """The samples from `start` on, so many of them, in order; one may be like another.

        Raises:
            ExhaustedError: for one sample a thousand attempts led to where no rule can be used.
        """
        return Dataset.from_pairs(self._pairs(number, seed, start))

    def _pairs(self, number: int, seed: int, start: int) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
        decode = self._alphabet.decode
        uniforms = _Uniforms(seed, -1)
        for index in range(start, start + number):
            if index // _BLOCK != uniforms.block:
                uniforms = _Uniforms(seed, index // _BLOCK)
            source, target = self._one(index, uniforms.of(index % _BLOCK))
            yield decode(source), decode(target)

    def _one(self, index: int, uniforms: Iterator[float]) -> tuple[str, str]:
        for _ in range(_ATTEMPTS):
            derived = self._derive(0, 0, frozenset([ROOT]), uniforms)
            if derived is not None:
                return derived
        raise ExhaustedError(
            f"sample {index}: in {_ATTEMPTS:,} attempts found no derivation at least {self._depth.least} and about "
            f"{self._depth.most} deep; expected rules that fit where one must go on, and where it must end"
        )

    def _derive(self, slot: int, depth: int, names: Names, uniforms: Iterator[float]) -> tuple[str, str] | None:
        """The source and target of a derivation that fills a slot; None if one of its slots cannot be filled."""
        phase = -1 if depth < self._depth.least else int(depth >= self._depth.most)
        rules, cumulative = self._choice(slot, phase, names)
        if not rules or depth > self._depth.most + _BEYOND:
            return None
        rule = rules[bisect(cumulative, next(uniforms) * cumulative[-1])]
        ways = self._names_below(rule, names)
        way = ways[int(next(uniforms) * len(ways))] if len(ways) > 1 else ways[0]
        parts = []
        for number, below in enumerate(way):
            part = self._derive(self._slots[rule] + number, depth + 1, below, uniforms)
            if part is None:
                return None
            parts.append(part)
        source, target = self._sides[rule]
        if not parts:
            return source, target
        sources, targets = zip(*parts, strict=True)
        return source.format(*sources), target.format(*targets)

    def _choice(self, slot: int, phase: int, names: Names) -> tuple[list[int], list[float]]:
        """The rules that can be used, and their cumulative weights.

        In phase -1 these are rules with nonterminals, in phase 1 those without if there are any, and else both.
        """
        found = self._choices.get((slot, phase, names))
        if found is None:
            weights = self._weights[slot].tolist()
            rules = [
                rule
                for rule, signatures in enumerate(self._signatures)
                if weights[rule] and any(signature[0] in names for signature in signatures)
            ]
            if phase < 0:
                rules = [rule for rule in rules if self._arities[rule]]
            elif phase > 0:
                rules = [rule for rule in rules if not self._arities[rule]] or rules
            found = self._choices[slot, phase, names] = rules, [*accumulate(weights[rule] for rule in rules)]
        return found

    def _names_below(self, rule: int, names: Names) -> list[list[Names]]:
        """The ways to name the nonterminals of a rule if the whole has one of some names."""
        found = self._below.get((rule, names))
        if found is None:
            fitting = [signature[1:] for signature in self._signatures[rule] if signature[0] in names]
            if self._quirks:
                found = [[frozenset(some) for some in zip(*fitting, strict=True)]]
            else:
                found = [[frozenset([name]) for name in some] for some in fitting]
            self._below[rule, names] = found
        return found


class _Uniforms:
    """The random numbers between 0 and 1 of a block of samples."""

    def __init__(self, seed: int, block: int) -> None:
        self._seed, self.block = seed % 2**64, block
        self._steps: list[list[float]] = []

    def of(self, sample: int) -> Iterator[float]:
        """Those of one sample, one after the other."""
        for step in count():
            if step == len(self._steps):
                philox = np.random.Philox(key=self._seed, counter=[0, step, self.block, 0])
                self._steps.append(np.random.Generator(philox).random(_BLOCK).tolist())
            yield self._steps[step][sample]
