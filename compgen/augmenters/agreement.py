"""Whether exchanges agree with the data: an exchange that makes the source of another example should make its target.

Where a grammar or a lexicon is wrong, it does not. A class of exchanges that often disagree is left out. The share of
the others that agree says how far samples can be trusted.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

RIGHT = 0.9  # if a smaller share of the exchanges agrees, many samples will be wrong
TELLING = 20  # exchanges; the share of fewer says little


@dataclass(frozen=True)
class Agreement:
    """How many exchanges agree with the data.

    Attributes:
        counts: for each class, among the exchanges that make the source of another example, how many make its target,
            and how many there are.
        left_out: the classes that are left out, because too few of their exchanges agree.
    """

    counts: Mapping[Any, tuple[int, int]]
    left_out: Collection[Any]

    @classmethod
    def of(cls, outcomes: Iterable[tuple[Any, bool]], least: float) -> "Agreement":
        """Count exchanges, each given by its class and whether it agrees; leave out classes that agree too seldom.

        These are classes whose share is below `least` by more than two standard errors, sqrt(least (1 - least) / n).
        """
        every = Counter(outcomes)
        kinds = sorted({kind for kind, _ in every})
        counts = {kind: (every[kind, True], every[kind, True] + every[kind, False]) for kind in kinds}
        chance = 2 * math.sqrt(least * (1 - least))
        wrong = [kind for kind, (right, of) in counts.items() if right < least * of - chance * math.sqrt(of)]
        return cls(counts, wrong)

    @property
    def kept(self) -> tuple[int, int]:
        """How many exchanges agree, and how many there are, without the classes that are left out."""
        some = [counts for kind, counts in self.counts.items() if kind not in self.left_out]
        return sum(right for right, _ in some), sum(of for _, of in some)

    @property
    def share(self) -> float:
        """The share of the kept exchanges that agree; 1 if there are fewer than TELLING."""
        right, of = self.kept
        return right / of if of >= TELLING else 1.0

    @property
    def doubtful(self) -> bool:
        """Whether many of the samples will be wrong."""
        return self.share < RIGHT

    def in_words(self) -> str:
        """The counts of the kept exchanges, in words."""
        right, of = self.kept
        return f"{of:,} exchanges that make the source of another example, {right / max(1, of):.1%} make its target"

    def warnings(self, advice: str) -> list[str]:
        """What to say where many of the samples will be wrong; the advice ends with what is particular to a method."""
        if not self.doubtful:
            return []
        many = "many of the samples will be wrong; look at them, and try a stricter --agreement"
        return [f"of {self.in_words()}: {many}, {advice}"]
