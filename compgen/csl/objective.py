"""The objective of induction: small rules whose sides predict each other (Qiu et al. 2022, section 3.1.4).

    L_D(G) = sum over rules NT -> <alpha, beta> of |alpha| + |beta| - c_D(alpha, beta)       (Eq. 6)
    c_D(alpha, beta) = k_alpha ln p(alpha | beta) + k_beta ln p(beta | alpha)                (Eq. 7)

We follow the reference program: logarithms are to base 2, and p is estimated from all examples added so far. The paper
takes natural logarithms. The sum itself is never needed: induction compares rules by how much a change lowers it
(`csl.induction`).
"""

from collections.abc import Iterable
from math import log2

from compgen.csl.occurrences import Occurrences
from compgen.csl.rules import Rule, nonterminals


class Objective:
    """The terms of L_D(G): |alpha| + |beta| is `size`, -c_D(alpha, beta) is `penalty`."""

    def __init__(self, terminal_size: float, source_given_target: float, target_given_source: float) -> None:
        """Set the size of a terminal, where a nonterminal counts 1, k_alpha and k_beta."""
        self._terminal_size = terminal_size
        self._source_given_target, self._target_given_source = source_given_target, target_given_source
        self._examples = 0
        self._sources, self._targets = Occurrences(), Occurrences()
        self._sizes: dict[Rule, float] = {}
        self._penalties: dict[Rule, float] = {}
        self._counts: dict[Rule, tuple[int, int, int, int]] = {}  # the number of examples looked at, and see `_count`

    def add_examples(self, rules: Iterable[Rule]) -> None:
        """Add examples to D."""
        for rule in rules:
            self._sources.add(rule.source)
            self._targets.add(rule.target)
            self._examples += 1
        self._penalties.clear()

    def size(self, rule: Rule) -> float:
        """Return |alpha| + |beta|."""
        found = self._sizes.get(rule)
        if found is None:
            open_ = len(nonterminals(rule.source)) + len(nonterminals(rule.target))
            found = self._sizes[rule] = open_ + self._terminal_size * (rule.length - open_)
        return found

    def penalty(self, rule: Rule) -> float:
        """Return -c_D(alpha, beta), 0 where no example contains both sides.

        p(beta | alpha) is the share of the examples in which both sides occur among those in which alpha does.
        """
        found = self._penalties.get(rule)
        if found is None:
            sources, targets, both = self._count(rule)
            found = 0.0
            if both:
                found = self._target_given_source * log2(sources / both)
                found += self._source_given_target * log2(targets / both)
            self._penalties[rule] = found
        return found

    def _count(self, rule: Rule) -> tuple[int, int, int]:
        """Return in how many examples alpha occurs, beta, and both; only examples new since the last call are read."""
        seen, source, target, both = self._counts.get(rule, (0, 0, 0, 0))
        later = (1 << self._examples) - (1 << seen)
        sources = self._sources.of(rule.source, later)
        # Without k_alpha, targets count only in examples whose source fits.
        targets = self._targets.of(rule.target, later if self._source_given_target else sources)
        source, target = source + sources.bit_count(), target + targets.bit_count()
        both += (sources & targets).bit_count()
        self._counts[rule] = self._examples, source, target, both
        return source, target, both
