"""p(r | r_p, i), how probable rules are, factored by latent states (Qiu et al. 2022, section 3.1.2, appendix B.2).

A slot is a nonterminal i of a rule r_p, or the root. With S latent states,

    p(r | slot) = sum over s of p(s | slot) p(r | s)                                                 (Eq. 4)
    p(s | slot) = softmax(A[slot])[s],    p(r | s) = softmax(B[s])[r],    theta = (A, B)             (Eqs. 8, 9)
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
    """Return the slot of NT_1 of each rule, before those of NT_2 and so on. Slot 0 is the root."""
    return [*accumulate((rule.arity for rule in grammar.rules[:-1]), initial=1)][: len(grammar.rules)]


@dataclass(frozen=True, eq=False)
class Weights:
    """What a rule weighs in a slot, to within a factor: `states` (slots, S) times `rules` (S, rules).

    Both tables hold logarithms, so that the smallest weight differs from none.
    """

    states: Floats
    rules: Floats

    @classmethod
    def uniform(cls, grammar: Grammar) -> "Weights":
        """Return equal weights of all rules, with one state."""
        count, number = grammar.shape
        return cls(np.zeros((count, 1)), np.zeros((1, number)))

    def of(self, slot: Ints, rule: Ints) -> Floats:
        """Return the logarithm of the weight of each rule in its slot, (n)."""
        number = self.rules.shape[1]
        different, which = np.unique(slot * number + rule, return_inverse=True)
        found: Floats = logsumexp(self.states[different // number] + self.rules[:, different % number].T)[which]
        return found


@dataclass(frozen=True, eq=False)
class Scores:
    """Theta: A, `slots` (slots, S), and B, `rules` (S, rules)."""

    slots: Floats
    rules: Floats

    @classmethod
    def uniform(cls, grammar: Grammar) -> "Scores":
        """Return equal scores of all rules, with one state."""
        even = Weights.uniform(grammar)
        return cls(even.states, even.rules)

    def weights(
        self, temperature: float = 1.0, bias: float = 0.0, biased: int = 1, arities: Sequence[int] = ()
    ) -> Weights:
        """Return the probabilities of states and rules at a temperature (appendix C.6).

        Both tables are divided by the temperature, as in the reference; in the paper only B is. After that, `bias` is
        added to the scores of rules whose arity is `biased` or more, so that derivations get longer.

        Raises:
            UserError: the temperature is not above 0, or it or the bias makes scores infinite.
        """
        if not 0 < temperature < float("inf"):
            raise UserError(f"temperature {temperature:g}: expected a number above 0 for a grammar's rules")
        with np.errstate(over="ignore"):
            states, rules = self.slots / temperature, self.rules / temperature
        if not (np.isfinite(states).all() and np.isfinite(rules).all()):
            raise UserError(f"temperature {temperature:g}: found scores that it makes infinite, expected a higher one")
        if bias:
            with np.errstate(over="ignore"):
                rules = rules + bias * (np.asarray(arities) >= biased)
            if not np.isfinite(rules).all():
                raise UserError(f"drawing.bias {bias:g}: found scores that it makes infinite, expected one nearer to 0")
        return Weights(*(table - logsumexp(table)[:, None] for table in (states, rules)))

    def log_probs(self) -> Floats:
        """Return log p(rule | slot), (slots, rules)."""
        weights = self.weights()
        with np.errstate(divide="ignore"):
            found: Floats = np.log(np.exp(weights.states) @ np.exp(weights.rules))
        return found


def logsumexp(scores: Floats) -> Floats:
    """Return log of the sum of exp(scores) in each row, (n, m) to (n); -inf for a row of -inf."""
    most = scores.max(axis=1)
    with np.errstate(divide="ignore"):
        found: Floats = most + np.log(np.exp(scores - np.where(most > -np.inf, most, 0)[:, None]).sum(axis=1))
    return found
