"""How a derivation continues: the rule that fills a slot, and the names of its nonterminals in a target grammar.

Weights are factored (see `weights`), so a choice is two: a latent state, by what can be used in it; then a way to use a
rule, by one search in cumulative shares. So no table of slots by rules is needed.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.csl.rules import Grammar
from compgen.csl.targets import ROOT, TargetGrammar
from compgen.csl.weights import Floats, Weights
from compgen.data.ragged import Ints
from compgen.errors import ConfigError


@dataclass(frozen=True, eq=False)
class Ways:
    """The ways to use rules: a name for the whole, and one for each nonterminal. Ways are sorted by the former.

    Names are numbers; ROOT is 0.

    Attributes:
        rule: (ways).
        below: (ways, largest arity) the names of the nonterminals, and then -1.
        starts, counts: (names) the slice of the ways with a name for the whole.
        share: (ways) 1 / the number of ways with the same rule and name.
    """

    rule: Ints
    below: Ints
    starts: Ints
    counts: Ints
    share: Floats

    @classmethod
    def of(cls, grammar: Grammar, targets: TargetGrammar | None) -> "Ways":
        """List the ways that a target grammar allows; without one, there is one name, ROOT, and one way for a rule."""
        found = _signatures(grammar, targets)
        known = {name for _, signature in found for name in signature}
        names = {name: number for number, name in enumerate([ROOT, *sorted(known - {ROOT})])}
        rows = sorted((names[one[0]], number, [names[name] for name in one[1:]]) for number, one in found)
        most = max((rule.arity for rule in grammar.rules), default=0)
        below = np.array([[*row, *[-1] * (most - len(row))] for _, _, row in rows], dtype=np.int64)
        whole, used = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2).T
        counts = np.bincount(whole, minlength=len(names))
        _, kind, alike = np.unique(whole * len(grammar.rules) + used, return_inverse=True, return_counts=True)
        return cls(used, below.reshape(len(rows), most), np.cumsum(counts) - counts, counts, 1 / alike[kind])


def _signatures(grammar: Grammar, targets: TargetGrammar | None) -> list[tuple[int, tuple[str, ...]]]:
    """Return the number of each rule with each of its signatures (see `Checker.signatures`)."""
    if targets is None:
        return [(number, (ROOT,) * (rule.arity + 1)) for number, rule in enumerate(grammar.rules)]
    checker = targets.checker(grammar.alphabet)
    return [(number, one) for number, rule in enumerate(grammar.rules) for one in checker.signatures(rule.target)]


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice among ways: of a latent state, given slot and name, and then of a way, given state and name.

    Attributes:
        states: (slots, S) the logarithms of the weights of states.
        mass: (names, S) the logarithm of the sum of the weights of a name's ways in a state.
        edges: the cumulative shares of the ways of each (name, state), those of the k-th pair between k and k + 1, so
            that one binary search for k + u finds a way.
        starts: (names, S) where the edges of each pair begin.
        ways: the `Ways`.
    """

    states: Floats
    mass: Floats
    edges: Floats
    starts: Ints
    ways: Ways

    @classmethod
    def of(cls, ways: Ways, weights: Weights, allowed: NDArray[np.bool_]) -> "Choice":
        """Prepare a choice among the `allowed` ways."""
        states, names = len(weights.rules), len(ways.counts)
        if states * names >= 2**20:  # see `data.random.nodes`
            raise ConfigError(
                f"found {states:,} latent states and {names:,} names of targets, expected a product below 2^20"
            )
        mass, edges = np.full((names, states), -np.inf), [np.empty(0)]
        for name in np.flatnonzero(ways.counts):
            mine = slice(ways.starts[name], ways.starts[name] + ways.counts[name])
            usable = np.log(ways.share[mine], out=np.full(ways.counts[name], -np.inf), where=allowed[mine])
            most, cumulative = _cumulative(weights.rules[:, ways.rule[mine]] + usable)  # (S), (S, ways of the name)
            total = cumulative[:, -1]
            mass[name] = most + np.log(total, out=np.zeros(states), where=total > 0)
            shares = cumulative / np.where(total > 0, total, 1)[:, None]
            edges.append((shares + name * states + np.arange(states)[:, None]).ravel())
        starts = states * ways.starts[:, None] + np.arange(states) * ways.counts[:, None]
        return cls(weights.states, mass, np.concatenate(edges), starts, ways)

    def draw(self, slot: Ints, name: Ints, uniforms: Floats) -> Ints:
        """Return a way for each slot and name, (n), by two random numbers each, (n, 2); -1 where none is allowed."""
        names = len(self.mass)
        different, which = np.unique(slot * names + name, return_inverse=True)  # far fewer than n
        most, cumulative = _cumulative(self.states[different // names] + self.mass[different % names])
        state = (cumulative[which] <= (uniforms[:, 0] * cumulative[which, -1])[:, None]).sum(axis=1)
        none = most[which] == -np.inf
        state[none] = 0
        place = np.searchsorted(self.edges, name * self.mass.shape[1] + state + uniforms[:, 1], side="right")
        way: Ints = np.where(none, -1, self.ways.starts[name] + place - self.starts[name, state])
        return way


def _cumulative(scores: Floats) -> tuple[Floats, Floats]:
    """Return each row's maximum, and its cumulative weights, where that maximum weighs 1: (n, m) to (n), (n, m)."""
    most = scores.max(axis=1)
    return most, np.cumsum(np.exp(scores - np.where(most > -np.inf, most, 0)[:, None]), axis=1)
