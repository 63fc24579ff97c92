"""Resampling (R&R, section 4.1): which samples are kept, and the counts of those that are not.

Order matters for the counts only: a rejected sample is counted under the first reason that applies.
"""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from compgen.data.vocabulary import EOS_ID, SEP_ID, SPECIALS
from compgen.errors import ExhaustedError, UserError, real, whole
from compgen.runtime.backend import Ints
from compgen.runtime.pool import PrototypePool
from compgen.sampling.batching import Draw, Tokens

FILTERS = ("novel", "unique", "rare")

RARITY = 0.01  # the usual one
UNFINISHED, MALFORMED = "unfinished", "malformed"  # reasons why a draw is no example
MOST_BROKEN = 0.5  # of the draws; trained generators have less than a tenth

Kept = tuple[Draw, Tokens, Tokens]  # with its source and its target


def filter_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return the filters that are named one by one, or several in a string with commas between them.

    Raises:
        UserError: something is no string.
    """
    texts = [names] if isinstance(names, str) or not isinstance(names, Iterable) else [*names]
    for text in texts:
        if not isinstance(text, str):
            raise UserError(f"no filter {text!r:.40}: expected some of {', '.join(FILTERS)}")
    return tuple(name for text in texts for part in text.split(",") if (name := part.strip()))


@dataclass(frozen=True)
class FilterConfig:
    """Which filters a sample must pass.

    Attributes:
        names: of `novel` (source and target both unseen in training, as in the reference), `unique` (not drawn before
            in this run), `rare` (eq. 18, see `Rarity`); as `filter_names` takes them.
        novelty: the meaning of novel: `both` sides unseen, `source` unseen, or the `pair` unseen.
        rarity: epsilon of eq. 18: the largest share of distinct training examples that may hold a rare n-gram.
        ngram: length of the n-grams. With 1 only tokens that training has are possible, so rare means rare but seen;
            with 2 or more an n-gram that training never has is rare too.
        rare_tokens: ids; if there are any, a sample is rare if it holds one of them, whatever is rare in training.
        prototypes: `all`, or `rare`: only tuples of which one holds a rare token (n = 1) are drawn from. Almost all
            samples with a rare token are of such tuples, which may be one of a hundred.
        voting: what is kept are the votes on the targets of sources, so a draw that is not `rare` is passed on, too: it
            votes against those that are. It is counted as not rare all the same, and not as kept.
    """

    names: tuple[str, ...] = ()
    novelty: str = "both"
    rarity: float = RARITY
    ngram: int = 1
    rare_tokens: tuple[int, ...] = ()
    prototypes: str = "all"
    voting: bool = False

    def __post_init__(self) -> None:
        """Raise UserError for names and numbers that are not allowed, alone or together."""
        object.__setattr__(self, "names", filter_names(self.names))
        for name in self.names:
            if name not in FILTERS:
                raise UserError(f"no filter {name!r}: expected some of {', '.join(FILTERS)}")
        if self.novelty not in ("both", "source", "pair"):
            raise UserError(f"no novelty {self.novelty!r}: expected both, source or pair")
        if self.prototypes not in ("all", "rare"):
            raise UserError(f"no prototypes {self.prototypes!r}: expected all or rare")
        if self.prototypes == "rare" and ("rare" not in self.names or self.ngram != 1):
            raise UserError("rare prototypes hold rare tokens: add the filter rare, and leave out ngram")
        if not 0 < real(self.rarity) <= 1:
            raise UserError(
                f"rarity {self.rarity!r:.60}: expected a share of the training examples, above 0 and at most 1"
            )
        if (whole(self.ngram) or 0) < 1:
            raise UserError(f"ngram {self.ngram!r:.60}: expected a length, a whole number of 1 or more")
        self._check_used()

    def _check_used(self) -> None:
        """Raise UserError for what no filter uses, where it is not as by default."""
        if self.novelty != "both" and "novel" not in self.names:
            raise UserError(f"novelty {self.novelty} is for the filter novel: add novel")
        rare = {"rarity": self.rarity != RARITY, "ngram": self.ngram != 1, "rare tokens": bool(self.rare_tokens)}
        for what, given in rare.items():
            if given and "rare" not in self.names:
                raise UserError(f"{what} given, without the filter that uses it: add rare")
            if given and self.rare_tokens and what != "rare tokens":
                raise UserError(f"{what} given, and rare tokens, which say what is rare: leave one out")


@dataclass
class Counts:
    """The numbers of draws made, kept and rejected, by reason; `last` is `drawn` at the last one kept."""

    drawn: int = 0
    kept: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    last: int = 0

    @classmethod
    def of(cls, drawn: int, kept: int, rejected: dict[str, int], last: int) -> "Counts":
        """The counts that `to_dict` gave, with `last`."""
        return cls(drawn, kept, Counter(rejected), last)

    def to_dict(self) -> dict[str, Any]:
        """The counts, for JSON."""
        return {"drawn": self.drawn, "kept": self.kept, "rejected": dict(self.rejected)}

    def warnings(self) -> list[str]:
        """A warning, with what to do, if most draws are no examples: the others may then be wrong, too."""
        share = (self.rejected[UNFINISHED] + self.rejected[MALFORMED]) / max(1, self.drawn)
        if share <= MOST_BROKEN:
            return []
        return [f"{share:.1%} of the draws were unfinished or malformed: train the generator longer, or draw colder"]

    def __str__(self) -> str:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.rejected.items() if count)
        return f"{self.drawn:,} drawn, {self.kept:,} kept" + (f"; not kept: {reasons}" if reasons else "")


def halves(tokens: Tokens, targets: bool) -> tuple[Tokens, Tokens] | None:
    """Source and target of a sample, or None if it is malformed.

    It has one separator, something before it, and something after it if there are `targets`: else it is a sentence.
    """
    if tokens.count(SEP_ID) != 1:
        return None
    middle = tokens.index(SEP_ID)
    source, target = tokens[:middle], tokens[middle + 1 :]
    return (source, target) if source and bool(target) == targets else None


def _pairs(pool: PrototypePool) -> Iterator[tuple[Tokens, Tokens] | None]:
    """Source and target of each sequence of a pool, None of one that is malformed."""
    return (halves(tuple(row[: row.index(EOS_ID)]), pool.targets) for row in pool.tokens.tolist())


def ngrams(tokens: Sequence[int], n: int) -> set[Tokens]:
    """The n-grams of a sequence."""
    starts = range(min(n, len(tokens) + 1))  # from the last of these on, nothing is left
    return set(zip(*(tokens[k:] for k in starts), strict=False))


class Training:
    """The distinct training examples, as a generator's pool holds them.

    What only some filters look at is made when it is first asked for: a run for one sample ends before it would be.
    """

    def __init__(self, pool: PrototypePool) -> None:
        self.pool = pool
        self.has_targets = pool.targets  # else these are sentences

    @cached_property
    def examples(self) -> list[tuple[Tokens, Tokens]]:
        """Source and target of each."""
        return [pair for pair in _pairs(self.pool) if pair is not None]

    @cached_property
    def sources(self) -> set[Tokens]:
        """Their sources."""
        return {source for source, _ in self.examples}

    @cached_property
    def targets(self) -> set[Tokens]:
        """Their targets."""
        return {target for _, target in self.examples}

    @cached_property
    def pairs(self) -> set[tuple[Tokens, Tokens]]:
        """The examples, to look one up."""
        return set(self.examples)

    def sides(self) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """The sources and the targets of `examples` as arrays: all ids, one example after another, and lengths."""
        tokens = self.pool.tokens if self.pool.tokens.size else np.full((0, 1), EOS_ID)  # there may be none
        place = np.arange(tokens.shape[1])
        ends = (tokens == EOS_ID).argmax(axis=1)
        separators = (tokens == SEP_ID) & (place < ends[:, None])
        middles = separators.argmax(axis=1)
        good = (separators.sum(axis=1) == 1) & (middles > 0) & ((ends - middles > 1) == self.has_targets)
        tokens, ends, middles = tokens[good], ends[good], middles[good]
        before = place < middles[:, None]
        after = (place > middles[:, None]) & (place < ends[:, None])
        first, second = (tokens[held].astype(np.int64) for held in (before, after))
        return (first, middles), (second, ends - middles - 1)

    def knows(self, source: Tokens, target: Tokens, novelty: str) -> bool:
        """Whether an example is not new, in the sense of `FilterConfig.novelty`."""
        if novelty == "pair":
            return (source, target) in self.pairs
        return source in self.sources or (novelty == "both" and self.has_targets and target in self.targets)


class Rarity:
    """u(d) of equation 18: a sample has weight 1 if it holds an n-gram that is rare in training, else 0.

        u(d) = 1[min_t p(d^t) <= epsilon]

    p(w) is the share of distinct training examples whose source or target holds the n-gram w. The paper has tokens
    (n = 1) and < for <=.
    """

    def __init__(self, config: FilterConfig, training: Training) -> None:
        self.n, self.rare_tokens = config.ngram, frozenset(config.rare_tokens)
        self.common: set[Tokens] = set()
        if self.rare_tokens:  # these alone decide
            return
        held: Counter[Tokens] = Counter()
        for source, target in training.examples:
            held.update(ngrams(source, self.n) | ngrams(target, self.n))
        # 29 of 100 is 0.29 exactly, but 0.29 times 100 is less than 29.
        self.common = {gram for gram, count in held.items() if count / len(training.examples) > config.rarity}

    def u(self, source: Tokens, target: Tokens) -> bool:
        """Whether a sample is kept by equation 18."""
        if self.rare_tokens:
            return not self.rare_tokens.isdisjoint((*source, *target))
        return not (ngrams(source, self.n) | ngrams(target, self.n)) <= self.common


class Filter:
    """Judges draws: first each alone, which may be done anywhere, then in order, for `unique` and the counts."""

    def __init__(self, config: FilterConfig, training: Training) -> None:
        self.config, self.training = config, training
        self.counts = Counts()
        self.seen: set[bytes] = set()
        self.rarity = Rarity(config, training) if "rare" in config.names else None

    @property
    def unwanted(self) -> Container[Tokens]:
        """The sources that no sample may have: a row that has drawn one need not go on to its target."""
        return self.training.sources if "novel" in self.config.names and self.config.novelty != "pair" else ()

    def require_rare(self, vocabulary: int) -> None:
        """Raise ExhaustedError where rare tokens are asked for and no token of a vocabulary of some size is rare."""
        if self.rarity is None or self.rarity.n > 1:
            return
        if not any(self.rarity.u((token,), ()) for token in range(len(SPECIALS), vocabulary)):
            raise ExhaustedError(
                f"no token is rare: each is in more than {self.config.rarity:g} of the training examples: raise "
                "--rarity, or say by --rare-token what is rare"
            )

    def pool(self, pool: PrototypePool) -> PrototypePool:
        """What prototypes are drawn from: of a generator's pool, the tuples that `FilterConfig.prototypes` says.

        Raises:
            UserError: the generator has no prototypes, or none is rare.
        """
        if self.config.prototypes == "all" or self.rarity is None:
            return pool
        if not pool.prototypes:
            raise UserError("the generator has no prototypes of which one could be rare")
        rare = np.array([pair is not None and self.rarity.u(*pair) for pair in _pairs(pool)], dtype=bool)
        found = pool.holding(rare)
        if not found.total:
            raise UserError("no prototype is rare: draw from all of them")
        return found

    def keep(self, draws: Iterable[Draw]) -> Iterator[Kept]:
        """Yield the draws that pass, with source and target; count all others by reason."""
        return self.admit(map(self.judge, draws))

    def judge(self, draw: Draw) -> Kept | str:
        """Return a draw with its source and target, or the reason to reject it, as far as no other draw matters."""
        if draw.given_up:
            return "not novel"
        if not draw.finished:
            return UNFINISHED
        pair = halves(draw.tokens, self.training.has_targets)
        if pair is None:
            return MALFORMED
        if "novel" in self.config.names and self.training.knows(*pair, self.config.novelty):
            return "not novel"
        if self.rarity is not None and not self.config.voting and not self.rarity.u(*pair):
            return "not rare"
        return draw, *pair

    def admit(self, judged: Iterable[Kept | str]) -> Iterator[Kept]:
        """Yield what passes of judged draws, in order of address; count all others by reason.

        Of what votes, that which is not rare is counted so, and yielded.
        """
        unique = "unique" in self.config.names
        votes_alone = self.rarity if self.config.voting else None
        for verdict in judged:
            self.counts.drawn += 1
            if unique and not isinstance(verdict, str) and not self.remember(*verdict[1:]):
                verdict = "not unique"
            if isinstance(verdict, str):
                self.counts.rejected[verdict] += 1
                continue
            if votes_alone is not None and not votes_alone.u(*verdict[1:]):
                self.counts.rejected["not rare"] += 1
            else:
                self.counts.kept += 1
                self.counts.last = self.counts.drawn
            yield verdict

    def remember(self, source: Sequence[int], target: Sequence[int]) -> bool:
        """Remember a sample for `unique`; return whether it is new."""
        key = np.array((*source, SEP_ID, *target), dtype=np.int32).tobytes()
        if key in self.seen:
            return False
        self.seen.add(key)
        return True
