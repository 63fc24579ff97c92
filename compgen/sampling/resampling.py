"""What a sample must be to be kept, and the counts of those that were not (R&R, section 4.1).

Order matters for the counts only: a sample is counted under the first reason it falls to.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import EOS_ID, SEP_ID
from compgen.errors import UserError
from compgen.sampling.batching import Draw, Tokens

FILTERS = ("novel", "unique", "rare")

Kept = tuple[Draw, Tokens, Tokens]  # with its source and its target


@dataclass(frozen=True)
class FilterConfig:
    """Which filters a sample must pass.

    Attributes:
        names: of `novel` (source and target both unseen in training, as the reference has it), `unique` (not drawn
            before in this run), `rare` (eq. 18: holds an n-gram that is rare in training).
        novelty: what novel means: `both` sides unseen, `source` unseen, or the `pair` unseen.
        rarity: eq. 18's epsilon: the largest share of distinct training examples that may hold a rare n-gram.
        ngram: length of the n-grams. With 1 only tokens that training has are possible, so rare means rare but seen;
            with 2 or more an n-gram that training never has is rare too.
        rare_tokens: if there are any, rare is what holds one of these tokens (ids), whatever is rare in training.
    """

    names: tuple[str, ...] = ()
    novelty: str = "both"
    rarity: float = 0.01
    ngram: int = 1
    rare_tokens: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise UserError for a name that is no filter."""
        for name in self.names:
            if name not in FILTERS:
                raise UserError(f"no filter {name!r}: expected some of {', '.join(FILTERS)}")
        if self.novelty not in ("both", "source", "pair"):
            raise UserError(f"no novelty {self.novelty!r}: expected both, source or pair")
        if self.rare_tokens and "rare" not in self.names:
            raise UserError("tokens that are rare were named: add the filter rare")
        if self.rare_tokens and self.ngram != 1:
            raise UserError(f"tokens that are rare were named: n-grams of {self.ngram} have no part then")
        if not 0 < self.rarity <= 1 or self.ngram < 1:
            raise UserError(f"rarity {self.rarity} must be in (0, 1] and ngram {self.ngram} at least 1")


@dataclass
class Counts:
    """How many draws were made and what became of them; `last` is what `drawn` was when the last one was kept."""

    drawn: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    last: int = 0

    @classmethod
    def of(cls, drawn: int, kept: int, rejected: dict[str, int], last: int) -> "Counts":
        """Counts from what `to_dict` gives, and `last`."""
        return cls(drawn, kept, Counter(rejected), last)

    def to_dict(self) -> dict[str, Any]:
        """The counts, for JSON."""
        return {"drawn": self.drawn, "kept": self.kept, "rejected": dict(self.rejected)}

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items() if count)
        return f"{self.drawn:,} drawn, {self.kept:,} kept" + (f"; not kept: {reasons}" if reasons else "")


def halves(tokens: Tokens) -> tuple[Tokens, Tokens] | None:
    """Source and target of a sample, or None if it is not two non-empty halves around one separator."""
    if tokens.count(SEP_ID) != 1:
        return None
    middle = tokens.index(SEP_ID)
    source, target = tokens[:middle], tokens[middle + 1 :]
    return (source, target) if source and target else None


def ngrams(tokens: Sequence[int], n: int) -> set[Tokens]:
    """The n-grams of a sequence."""
    return set(zip(*(tokens[k:] for k in range(n)), strict=False))


class Training:
    """The distinct training examples, as a generator's pool holds them: what is known and what is rare."""

    def __init__(self, pool_tokens: NDArray[np.int32]) -> None:
        self.examples = []
        for row in pool_tokens.tolist():
            pair = halves(tuple(row[: row.index(EOS_ID)]))
            if pair is not None:
                self.examples.append(pair)
        self.sources = {source for source, _ in self.examples}
        self.targets = {target for _, target in self.examples}
        self.pairs = set(self.examples)
        self.largest = int(pool_tokens.max(initial=0))  # token

    def common(self, n: int, rarity: float) -> set[Tokens]:
        """n-grams (of sources or targets) that more than a share `rarity` of the examples hold."""
        count: Counter[Tokens] = Counter()
        for source, target in self.examples:
            count.update(ngrams(source, n) | ngrams(target, n))
        return {ngram for ngram, held in count.items() if held > rarity * len(self.examples)}

    def knows(self, source: Tokens, target: Tokens, novelty: str) -> bool:
        """Whether an example is not new, in the sense of `FilterConfig.novelty`."""
        if novelty == "pair":
            return (source, target) in self.pairs
        return source in self.sources or (novelty == "both" and target in self.targets)


class Filter:
    """Judges draws: each alone, as may be done anywhere, then one after another, as `unique` and the counts need it."""

    def __init__(self, config: FilterConfig, training: Training) -> None:
        self.config, self.training = config, training
        self.counts = Counts()
        self.seen: set[bytes] = set()
        self.common: set[Tokens] = set()
        if config.rare_tokens:
            self.common.update((token,) for token in range(training.largest + 1) if token not in config.rare_tokens)
        elif "rare" in config.names:
            self.common = training.common(config.ngram, config.rarity)

    @property
    def unwanted(self) -> Container[Tokens]:
        """Sources that no sample may have: a row that has drawn one need not go on to its target."""
        return self.training.sources if "novel" in self.config.names and self.config.novelty != "pair" else ()

    def keep(self, draws: Iterable[Draw]) -> Iterator[Kept]:
        """The draws that pass, with their source and target; all others are counted by reason."""
        return self.admit(map(self.judge, draws))

    def judge(self, draw: Draw) -> Kept | str:
        """A draw with its source and target, or the reason why it is not kept, as far as no other draw matters."""
        if draw.given_up:
            return "not novel"
        if not draw.finished:
            return "unfinished"
        pair = halves(draw.tokens)
        if pair is None:
            return "malformed"
        return self._reason(*pair) or (draw, *pair)

    def admit(self, judged: Iterable[Kept | str]) -> Iterator[Kept]:
        """What passes of draws that `judge` has judged, in order of address; all others are counted by reason."""
        unique = "unique" in self.config.names
        for verdict in judged:
            self.counts.drawn += 1
            if unique and not isinstance(verdict, str) and not self.remember(*verdict[1:]):
                verdict = "not unique"
            if isinstance(verdict, str):
                self.counts.rejected[verdict] += 1
            else:
                self.counts.kept += 1
                self.counts.last = self.counts.drawn
                yield verdict

    def remember(self, source: Sequence[int], target: Sequence[int]) -> bool:
        """Let `unique` know a sample; false if it knew it already."""
        key = np.array((*source, SEP_ID, *target), dtype=np.int32).tobytes()
        if key in self.seen:
            return False
        self.seen.add(key)
        return True

    def _reason(self, source: Tokens, target: Tokens) -> str:
        names = self.config.names
        if "novel" in names and self.training.knows(source, target, self.config.novelty):
            return "not novel"
        if "rare" in names:
            n = self.config.ngram
            if not (ngrams(source, n) | ngrams(target, n)) - self.common:
                return "not rare"
        return ""
