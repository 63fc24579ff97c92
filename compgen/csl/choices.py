"""How a derivation goes on: which rule fills a slot, and what its nonterminals are in a target grammar.

Weights are factored (`weights`), so a choice is two: of a latent state, by what may be used in it, and of a way to use
a rule, by one search in cumulative shares. No table of slots by rules is made.
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
    """The ways to use a rule: with a name for the whole, and one for each nonterminal; in the order of the first.

    Names are numbers, ROOT is 0. Those of name n are `counts[n]` from `starts[n]` on. `below` (ways, most nonterminals)
    are the names of the nonterminals, and -1.
    """

    rule: Ints
    below: Ints
    starts: Ints
    counts: Ints
    share: Floats  # one of so many ways to use its rule with its name

    @classmethod
    def of(cls, grammar: Grammar, arities: Ints, targets: TargetGrammar | None) -> "Ways":
        checker = None if targets is None else targets.checker(grammar.alphabet)
        found: list[tuple[int, tuple[str, ...]]] = []
        for number, rule in enumerate(grammar.rules):
            plain = {(ROOT,) * (rule.arity + 1)}
            found += [(number, one) for one in (plain if checker is None else checker.signatures(rule.target))]
        known = {name for _, signature in found for name in signature}
        names = {name: number for number, name in enumerate([ROOT, *sorted(known - {ROOT})])}
        rows = sorted((names[one[0]], number, [names[name] for name in one[1:]]) for number, one in found)
        most = int(arities.max(initial=0))
        below = np.array([[*row, *[-1] * (most - len(row))] for _, _, row in rows], dtype=np.int64)
        whole, used = np.array([row[:2] for row in rows], dtype=np.int64).reshape(-1, 2).T
        counts = np.bincount(whole, minlength=len(names))
        _, kind, alike = np.unique(whole * len(arities) + used, return_inverse=True, return_counts=True)
        return cls(used, below.reshape(len(rows), most), np.cumsum(counts) - counts, counts, 1 / alike[kind])


@dataclass(frozen=True, eq=False)
class Choice:
    """A choice among ways: first of a latent state, given slot and name, then of a way, given state and name.

    Attributes:
        states: (slots, S), the logarithms of the weights of states.
        mass: (names, S), the logarithm of what all ways with a name weigh in a state.
        edges: for each name and state its ways' cumulative shares, from k to k + 1 in the k-th, so that one search
            finds a way by k and a random number.
        starts: (names, S), where each begins.
        ways: the `Ways`.
    """

    states: Floats
    mass: Floats
    edges: Floats
    starts: Ints
    ways: Ways

    @classmethod
    def of(cls, ways: Ways, weights: Weights, allowed: NDArray[np.bool_]) -> "Choice":
        states, names = len(weights.rules), len(ways.counts)
        if states * names >= 2**20:  # see `data.random.nodes`
            raise ConfigError(
                f"found {states:,} latent states and {names:,} names of targets, expected a product below 2^20"
            )
        mass, edges = np.full((names, states), -np.inf), [np.empty(0)]
        for name in np.flatnonzero(ways.counts):
            mine = slice(ways.starts[name], ways.starts[name] + ways.counts[name])
            usable = np.log(ways.share[mine], out=np.full(ways.counts[name], -np.inf), where=allowed[mine])
            most, cumulative = _cumulative(weights.rules[:, ways.rule[mine]] + usable)
            total = cumulative[:, -1]
            mass[name] = most + np.log(total, out=np.zeros(states), where=total > 0)
            shares = cumulative / np.where(total > 0, total, 1)[:, None]
            edges.append((shares + name * states + np.arange(states)[:, None]).ravel())
        starts = states * ways.starts[:, None] + np.arange(states) * ways.counts[:, None]
        return cls(weights.states, mass, np.concatenate(edges), starts, ways)

    def draw(self, slot: Ints, name: Ints, uniforms: Floats) -> Ints:
        """A way for each slot and name, by two random numbers each (n, 2); -1 where none is allowed."""
        names = len(self.mass)
        different, which = np.unique(slot * names + name, return_inverse=True)  # far fewer than there are nodes
        most, cumulative = _cumulative(self.states[different // names] + self.mass[different % names])
        state = (cumulative[which] <= (uniforms[:, 0] * cumulative[which, -1])[:, None]).sum(axis=1)
        none = most[which] == -np.inf
        state[none] = 0
        place = np.searchsorted(self.edges, name * self.mass.shape[1] + state + uniforms[:, 1], side="right")
        way: Ints = np.where(none, -1, self.ways.starts[name] + place - self.starts[name, state])
        return way


def _cumulative(scores: Floats) -> tuple[Floats, Floats]:
    """The highest logarithm of each row, and what its weights sum up to from the left, where that one weighs 1."""
    most = scores.max(axis=1)
    return most, np.cumsum(np.exp(scores - np.where(most > -np.inf, most, 0)[:, None]), axis=1)
