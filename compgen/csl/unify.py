"""UNIFY (Qiu et al. 2022, figure 4 and appendix B.3).

    UNIFY(a, b) = {c : b o c => a, or c o b => a}

b o c => a says that rule b, one of whose nonterminals is expanded by rule c, is rule a. So c is either the inner rule,
which fills a nonterminal of b, or the outer rule, one of whose nonterminals b fills. In the first case only one
nonterminal of b may be filled with material; the others must meet nonterminals of a.

Sources are in normal form. So the place of the inner rule in the source of a settles the numbers of b's nonterminals in
a, and from them what the targets must be.
"""

import functools
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator

from pydantic import BaseModel, ConfigDict, Field

from compgen.csl.rules import MOST, NONTERMINAL, Rule, is_nonterminal, nonterminals, normal

_FRESH = "\0"  # a nonterminal without a number yet; in masks, any nonterminal
_GAP = chr(MOST + 1)  # in masks, the nonterminal to be filled


class Unification(BaseModel):
    """The conditions on rules c."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    max_nonterminals: int = Field(
        4,
        ge=1,
        le=MOST,
        description="The most nonterminals that a new outer rule has; a new inner one has no more than the rule it is "
        "cut from.",
    )
    repeated_targets: bool = Field(
        True,
        description="Let a nonterminal occur in a target more than once, which makes a grammar quasi-synchronous.",
    )
    bare_targets: bool = Field(
        True,
        description="Let a target be a single nonterminal. A source never is: unit rules are seed rules only.",
    )
    lexical_sources: bool = Field(
        False,
        description="Require a token in each source; not published. Rules of nonterminals alone put anything beside "
        "anything.",
    )
    quirks: bool = Field(
        True,
        description="Search as restricted as the reference's. A span of the source of a that occurs there again is "
        "not replaced; of one that occurs again in the target, all occurrences are; and a nonterminal of b that is "
        "not filled, but has another number in a, occurs in the target of b only once. Otherwise one occurrence of "
        "several may be replaced, and all of them if repeated_targets allows that.",
    )

    def unify(self, a: Rule, b: Rule) -> set[Rule]:
        """Return UNIFY(a, b)."""
        mask = masked(a.source)
        found = {c for start in _places(masked(b.source), mask) for c in self.outer(a, b, start)}
        for number, pattern in enumerate(_gapped(b.source), 1):
            head, _, tail = pattern.partition(_GAP)
            if len(a.source) >= len(b.source) and mask.startswith(head) and mask.endswith(tail):
                found |= self.inner(a, b, number, len(head), len(mask) - len(tail))
        return found

    def inner(self, a: Rule, b: Rule, number: int, start: int, stop: int) -> set[Rule]:
        """Return the c, one or none, that fills NT_number of b: a.source[start:stop] and what b leaves of a.target.

        Outside of the slice, the sources of a and b must be equal but for numbers.
        """
        source = a.source[start:stop]
        if not self._admits(source):
            return set()
        times = b.target.count(chr(number))
        length, left = divmod(len(a.target) - len(b.target) + times, times)
        if left or length < 1 or (times > 1 and not self.repeated_targets):
            return set()
        at = b.target.index(chr(number))
        target = a.target[at : at + length]
        shift = len(nonterminals(source)) - 1
        later = range(number + 1, b.arity + 1) if shift else ()
        if self.quirks and any(b.target.count(chr(one)) > 1 for one in later):
            return set()
        if b.target.translate({number: target} | {one: one + shift for one in later}) != a.target:
            return set()
        return {normal(source, target)} if self._agree(source, target) else set()

    def outer(self, a: Rule, b: Rule, start: int) -> set[Rule]:
        """Return the c with a nonterminal instead of b; a.source[start:] begins with b.source but for numbers."""
        stop = start + len(b.source)
        source = a.source[:start] + _FRESH + a.source[stop:]
        if not self._admits(source) or len(nonterminals(source)) > self.max_nonterminals:
            return set()
        if self.quirks and len([*_places(a.source[start:stop], a.source)]) > 1:
            return set()
        before = len(nonterminals(a.source[:start]))
        span = b.target.translate({one: one + before for one in range(1, b.arity + 1)}) if before else b.target
        if is_nonterminal(span) and not self.bare_targets:
            return set()
        return {normal(source, target) for target in self._replaced(a.target, span) if self._agree(source, target)}

    def _admits(self, source: str) -> bool:
        """Whether a new rule may have a source."""
        return not is_nonterminal(source) and not (self.lexical_sources and len(nonterminals(source)) == len(source))

    def _agree(self, source: str, target: str) -> bool:
        """Whether a new rule with a source may have a target."""
        bare = is_nonterminal(target) and not self.bare_targets
        return not bare and set(nonterminals(source)) == set(nonterminals(target))

    def _replaced(self, target: str, span: str) -> list[str]:
        """Return a target with a fresh nonterminal instead of a span, at one place or at all."""
        places = [*_places(span, target)]
        if len(places) < 2:
            return [target.replace(span, _FRESH)] if places else []
        everywhere = [target.replace(span, _FRESH)] if self.repeated_targets else []
        if self.quirks:
            return everywhere if target.count(span) == len(places) else []
        return everywhere + [target[:place] + _FRESH + target[place + len(span) :] for place in places]


class Partners:
    """Rules b, indexed by the part of the source of a that they match, so that not each of them must be tried.

    Only slices of a are looked up that are as long as some b, or leave as much before and behind as some b has around a
    gap: a source of thousands of tokens has millions of others.
    """

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._inner: defaultdict[str, list[Rule]] = defaultdict(list)
        self._outer: defaultdict[str, list[tuple[Rule, int]]] = defaultdict(list)
        behind: defaultdict[int, set[int]] = defaultdict(set)
        for rule in rules:
            self._inner[masked(rule.source)].append(rule)
            for number, pattern in enumerate(_gapped(rule.source), 1):
                self._outer[pattern].append((rule, number))
                before = pattern.index(_GAP)
                behind[before].add(len(pattern) - 1 - before)
        self._lengths = sorted({*map(len, self._inner)})
        self._behind = {before: sorted(sizes) for before, sizes in behind.items()}  # what is behind a gap, ascending

    def unify(self, options: Unification, a: Rule) -> Iterator[tuple[Rule, Rule]]:
        """Yield all (b, c) with c in UNIFY(a, b), possibly some twice; UNIFY(a, a) is empty."""
        mask = masked(a.source)
        size = len(mask)
        for start in range(size):
            for length in self._lengths[: bisect_right(self._lengths, size - start)]:
                for b in self._inner.get(mask[start : start + length], ()):
                    yield from ((b, c) for c in options.outer(a, b, start))
            sizes = self._behind.get(start, [])
            for behind in sizes[: bisect_left(sizes, size - start)]:
                stop = size - behind
                for b, number in self._outer.get(mask[:start] + _GAP + mask[stop:], ()):
                    yield from ((b, c) for c in options.inner(a, b, number, start, stop))


@functools.lru_cache(1 << 16)
def masked(source: str) -> str:
    """Return a sequence with all nonterminals alike."""
    return NONTERMINAL.sub(_FRESH, source)


@functools.lru_cache(1 << 16)
def _gapped(source: str) -> list[str]:
    """Return, for each nonterminal, the masked sequence with a gap in its place."""
    mask = masked(source)
    return [mask[:place] + _GAP + mask[place + 1 :] for place in _places(_FRESH, mask)]


def _places(part: str, whole: str) -> Iterator[int]:
    """Yield where a part begins, overlaps included."""
    at = whole.find(part)
    while at >= 0:
        yield at
        at = whole.find(part, at + 1)
