"""How probable rules are: p(rule | slot), factored by latent states (Qiu et al. 2022, section 3.1.2).

A slot is a nonterminal of a rule, or the root. With S latent states,

    p(rule | slot) = sum over s of softmax(A[slot])[s] softmax(B[s])[rule].
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from compgen.csl.rules import Grammar
from compgen.data.ragged import Ints
from compgen.errors import UserError

Floats = NDArray[np.float64]


def slots(grammar: Grammar) -> list[int]:
    """The first slot of each rule: that of NT_1, behind which come those of NT_2 and so on. Slot 0 is the root."""
    return [*accumulate((rule.arity for rule in grammar.rules[:-1]), initial=1)][: len(grammar.rules)]


@dataclass(frozen=True, eq=False)
class Weights:
    """What a rule weighs in a slot, `states` (slots, S) times `rules` (S, rules): probabilities, or in proportion.

    Both tables hold logarithms, so that what weighs next to nothing can be told from nothing.
    """

    states: Floats
    rules: Floats

    @classmethod
    def uniform(cls, grammar: Grammar) -> "Weights":
        """All rules alike everywhere."""
        count = 1 + sum(rule.arity for rule in grammar.rules)
        return cls(np.zeros((count, 1)), np.zeros((1, len(grammar.rules))))

    def check(self, grammar: Grammar) -> None:
        """Raise ValueError if these are not a grammar's, or some are no weights."""
        wanted = 1 + sum(rule.arity for rule in grammar.rules), len(grammar.rules)
        found = len(self.states), self.rules.shape[1]
        if found != wanted or self.states.shape[1] != len(self.rules):
            raise ValueError(f"found weights of shape {found}, expected {wanted}")
        if not all((table < np.inf).all() for table in (self.states, self.rules)):
            raise ValueError("found logarithms of weights that are no numbers, or infinite")

    def of(self, slot: Ints, rule: Ints) -> Floats:
        """The logarithm of what each rule weighs in each slot, (n)."""
        number = self.rules.shape[1]
        different, which = np.unique(slot * number + rule, return_inverse=True)
        found: Floats = logsumexp(self.states[different // number] + self.rules[:, different % number].T)[which]
        return found


@dataclass(frozen=True, eq=False)
class Scores:
    """What is learned: A, `slots` (slots, S), and B, `rules` (S, rules), before the softmax."""

    slots: Floats
    rules: Floats

    @classmethod
    def uniform(cls, grammar: Grammar) -> "Scores":
        """All rules alike everywhere, with one state."""
        even = Weights.uniform(grammar)
        return cls(even.states, even.rules)

    def weights(
        self, temperature: float = 1.0, bias: float = 0.0, biased: int = 1, arities: Sequence[int] = ()
    ) -> Weights:
        """Probabilities to draw by.

        Both tables are divided by the temperature, as in the reference (in the paper only B is), and then `bias` is
        added to the scores of rules with at least `biased` nonterminals, of which `arities` tells: so derivations are
        longer.

        Raises:
            UserError: a temperature that is not above 0, or so little that scores divided by it are no numbers.
        """
        if not 0 < temperature < float("inf"):
            raise UserError(f"temperature {temperature:g}: expected a number above 0 for a grammar's rules")
        with np.errstate(over="ignore"):
            states, rules = self.slots / temperature, self.rules / temperature
        if not (np.isfinite(states).all() and np.isfinite(rules).all()):
            raise UserError(f"temperature {temperature:g}: found scores that it makes infinite, expected a higher one")
        if bias:
            rules = rules + bias * (np.asarray(arities) >= biased)
        return Weights(_log_softmax(states), _log_softmax(rules))

    def log_probs(self) -> Floats:
        """log p(rule | slot), (slots, rules)."""
        weights = self.weights()
        with np.errstate(divide="ignore"):
            found: Floats = np.log(np.exp(weights.states) @ np.exp(weights.rules))
        return found


def logsumexp(scores: Floats) -> Floats:
    """log of the sum of exp(scores) in each row, (n, m) to (n); all of a row may be -inf, which is then its sum."""
    most = scores.max(axis=1)
    with np.errstate(divide="ignore"):
        found: Floats = most + np.log(np.exp(scores - np.where(most > -np.inf, most, 0)[:, None]).sum(axis=1))
    return found


def _log_softmax(scores: Floats) -> Floats:
    return scores - logsumexp(scores)[:, None]
