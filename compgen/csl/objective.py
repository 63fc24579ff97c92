"""What induction makes small: the size of rules, and how badly one side of a rule predicts the other.

The objective of a grammar is the sum over its rules of size and penalty (Qiu et al. 2022, section 3.1.4). The
reference program always counts all examples seen so far, as here; the paper would also estimate from a sample.
"""

from collections.abc import Iterable
from math import log2

from compgen.csl.charts import Occurrences
from compgen.csl.rules import Rule, nonterminals


class Objective:
    """The size and the penalty of rules."""

    def __init__(self, terminal_size: float, source_given_target: float, target_given_source: float) -> None:
        """With what a terminal counts, where a nonterminal counts 1, and with the weights of the two predictions."""
        self._terminal_size = terminal_size
        self._source_given_target, self._target_given_source = source_given_target, target_given_source
        self._examples = 0
        self._sources, self._targets = Occurrences(), Occurrences()
        self._sizes: dict[Rule, float] = {}
        self._penalties: dict[Rule, float] = {}
        self._counts: dict[Rule, tuple[int, int, int, int]] = {}  # of how many examples, and of these

    def add_examples(self, rules: Iterable[Rule]) -> None:
        """Count in more examples."""
        for rule in rules:
            self._sources.add(rule.source)
            self._targets.add(rule.target)
            self._examples += 1
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
        sources, targets, both = self._count(rule)
        if not both:
            return 0.0
        return self._target_given_source * log2(sources / both) + self._source_given_target * log2(targets / both)

    def _count(self, rule: Rule) -> tuple[int, int, int]:
        """In how many examples the source occurs, the target, and both. None is looked at twice."""
        seen, source, target, both = self._counts.get(rule, (0, 0, 0, 0))
        later = (1 << self._examples) - (1 << seen)
        sources = self._sources.of(rule.source, later)
        # How often a target occurs without the source matters only where the source is predicted.
        targets = self._targets.of(rule.target, later if self._source_given_target else sources)
        source, target = source + sources.bit_count(), target + targets.bit_count()
        both += (sources & targets).bit_count()
        self._counts[rule] = self._examples, source, target, both
        return source, target, both
