"""What induction makes small: the size of rules, and how badly one side of a rule predicts the other.

The objective of a grammar is the sum over its rules of size and penalty (Qiu et al. 2022, section 3.1.4). The
reference program always counts all examples seen so far, as here; the paper would also estimate from a sample.
"""

from collections.abc import Iterable
from math import log2

from compgen.grammar.charts import Occurrences
from compgen.grammar.rules import Rule, nonterminals


class Objective:
    """The size and the penalty of rules."""

    def __init__(self, terminal_size: float, source_given_target: float, target_given_source: float) -> None:
        """With what a terminal counts, where a nonterminal counts 1, and with the weights of the two predictions."""
        self._terminal_size = terminal_size
        self._source_given_target, self._target_given_source = source_given_target, target_given_source
        self._count = 0
        self._sources, self._targets = Occurrences(), Occurrences()
        self._sizes: dict[Rule, float] = {}
        self._penalties: dict[Rule, float] = {}

    def add_examples(self, rules: Iterable[Rule]) -> None:
        """Count in more examples."""
        for rule in rules:
            self._sources.add(rule.source)
            self._targets.add(rule.target)
            self._count += 1
        self._penalties.clear()

    def size(self, rule: Rule) -> float:
        """The tokens of both sides, where terminals count `terminal_size` each, and nonterminals 1."""
        found = self._sizes.get(rule)
        if found is None:
            open_ = len(nonterminals(rule.source)) + len(nonterminals(rule.target))
            found = self._sizes[rule] = open_ + self._terminal_size * (rule.length - open_)
        return found

    def penalty(self, rule: Rule) -> float:
        """How badly the sides predict each other: the weighted negative logarithms of p(one | other), to base 2.

        p is estimated by the examples so far in which both sides occur, among those in which the other does. A rule
        of which no example has both sides has no penalty.
        """
        found = self._penalties.get(rule)
        if found is None:
            found = self._penalties[rule] = self._penalty(rule)
        return found

    def _penalty(self, rule: Rule) -> float:
        everywhere = (1 << self._count) - 1
        sources = self._sources.of(rule.source, everywhere)
        # How often the target occurs without the source matters only to what is predicted from it.
        targets = self._targets.of(rule.target, everywhere if self._source_given_target else sources)
        both = (sources & targets).bit_count()
        if not both:
            return 0.0
        surprise = self._target_given_source * log2(sources.bit_count() / both)
        if self._source_given_target:
            surprise += self._source_given_target * log2(targets.bit_count() / both)
        return surprise
