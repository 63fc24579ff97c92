"""UNIFY: from two rules a and b, the rules c that together with b derive a (Qiu et al. 2022, appendix B.3).

Either c fills a nonterminal of b (c is the inner rule), or b fills a nonterminal of c (c is the outer rule). In the
first case only one nonterminal of b may be filled with something; the others must meet nonterminals of a. The rules of
the reference's search that restrict what is found are kept by `quirks`.

Sources are in normal form, and that settles most: once it is known where in a's source the inner rule begins and
ends, each nonterminal of b has its number in a, and what the targets must be follows.
"""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compgen.csl.rules import MOST, NONTERMINAL, Rule, is_nonterminal, nonterminals, normal

_FRESH = "\0"  # a nonterminal before it has its number; in masks, any nonterminal
_GAP = chr(MOST + 1)  # in masks, the nonterminal to be filled


@dataclass(frozen=True)
class Unification:
    """Which rules c are wanted.

    Attributes:
        max_nonterminals: at most so many in a rule.
        repeated_targets: a nonterminal may occur in a target more than once. That makes a grammar quasi-synchronous.
        bare_targets: a target may be a single nonterminal. A source never is: unit rules come from seed rules only.
        lexical_sources: a source has a token. Rules of nonterminals alone put anything beside anything.
        quirks: restrict as the reference does: b fills no nonterminal of c where its span is in a's source again; where
            its span is in a's target again, all of them are replaced; and of the nonterminals of b that are not
            filled, one that gets another number in a occurs in b's target only once. Without, one span of several may
            be replaced, and all of them too if `repeated_targets` allows it.
    """

    max_nonterminals: int = 4
    repeated_targets: bool = True
    bare_targets: bool = True
    lexical_sources: bool = False
    quirks: bool = True

    def unify(self, a: Rule, b: Rule) -> set[Rule]:
        """All rules c that give a by filling a nonterminal of b, or by having one of theirs filled with b."""
        mask = masked(a.source)
        found = set()
        for number, pattern in enumerate(_gapped(b.source), 1):
            head, _, tail = pattern.partition(_GAP)
            if len(a.source) >= len(b.source) and mask.startswith(head) and mask.endswith(tail):
                found |= self.inner(a, b, number, len(head), len(mask) - len(tail))
        inner = masked(b.source)
        start = mask.find(inner)
        while start >= 0:
            found |= self.outer(a, b, start)
            start = mask.find(inner, start + 1)
        return found

    def inner(self, a: Rule, b: Rule, number: int, start: int, stop: int) -> set[Rule]:
        """The rule, if any, that fills NT_number of b, where a's source before `start` and from `stop` on is b's."""
        source = a.source[start:stop]
        times = b.target.count(chr(number))
        length, left = divmod(len(a.target) - len(b.target) + times, times)
        if (
            is_nonterminal(source)
            or self._unlexical(source)
            or left
            or length < 1
            or (times > 1 and not self.repeated_targets)
        ):
            return set()
        at = b.target.index(chr(number))
        target = a.target[at : at + length]
        shift = len(nonterminals(source)) - 1
        later = range(number + 1, b.arity + 1) if shift else ()
        if self.quirks and any(b.target.count(chr(one)) > 1 for one in later):
            return set()
        if b.target.translate({number: target} | {one: one + shift for one in later}) != a.target:
            return set()
        if is_nonterminal(target) and not self.bare_targets:
            return set()
        if set(nonterminals(source)) != set(nonterminals(target)):
            return set()
        return {normal(source, target)}

    def outer(self, a: Rule, b: Rule, start: int) -> set[Rule]:
        """The rules with a nonterminal in the place of b's source, which but for numbers is a's source from `start`."""
        stop = start + len(b.source)
        source = a.source[:start] + _FRESH + a.source[stop:]
        if len(source) == 1 or self._unlexical(source) or (self.quirks and _count(a.source[start:stop], a.source) > 1):
            return set()
        kept = nonterminals(source)
        if len(kept) > self.max_nonterminals:
            return set()
        before = len(nonterminals(a.source[:start]))
        span = b.target.translate({one: one + before for one in range(1, b.arity + 1)}) if before else b.target
        if is_nonterminal(span) and not self.bare_targets:
            return set()
        return {
            normal(source, target)
            for target in self._replaced(a.target, span)
            if set(nonterminals(target)) == set(kept) and (self.bare_targets or not is_nonterminal(target))
        }

    def _unlexical(self, source: str) -> bool:
        """Whether a source is of nonterminals alone where it must not be."""
        return self.lexical_sources and len(nonterminals(source)) == len(source)

    def _replaced(self, target: str, span: str) -> list[str]:
        """A target with a fresh nonterminal in the place of a span."""
        places = [*_places(span, target)]
        if len(places) < 2:
            return [target.replace(span, _FRESH)] if places else []
        everywhere = [target.replace(span, _FRESH)] if self.repeated_targets else []
        if self.quirks:
            return everywhere if target.count(span) == len(places) else []
        return everywhere + [target[:place] + _FRESH + target[place + len(span) :] for place in places]


class Partners:
    """Rules b, to be found by what of a rule a's source they could make up, instead of trying each."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        self._inner: defaultdict[str, list[Rule]] = defaultdict(list)
        self._outer: defaultdict[str, list[tuple[Rule, int]]] = defaultdict(list)
        for rule in rules:
            self._inner[masked(rule.source)].append(rule)
            for number, pattern in enumerate(_gapped(rule.source), 1):
                self._outer[pattern].append((rule, number))

    def unify(self, options: Unification, a: Rule) -> Iterator[tuple[Rule, Rule]]:
        """All (b, c) with c from unifying a and a rule b other than a, possibly some twice."""
        mask = masked(a.source)
        for start in range(len(mask)):
            for stop in range(start + 1, len(mask) + 1):
                for b in self._inner.get(mask[start:stop], ()):
                    if b != a:
                        yield from ((b, c) for c in options.outer(a, b, start))
                for b, number in self._outer.get(mask[:start] + _GAP + mask[stop:], ()):
                    if b != a:
                        yield from ((b, c) for c in options.inner(a, b, number, start, stop))


@functools.lru_cache(1 << 16)
def masked(source: str) -> str:
    """A sequence with all its nonterminals alike."""
    return NONTERMINAL.sub(_FRESH, source)


@functools.lru_cache(1 << 16)
def _gapped(source: str) -> list[str]:
    """For each nonterminal, the masked sequence with a gap in its place."""
    mask = masked(source)
    places = _places(_FRESH, mask)
    return [mask[:place] + _GAP + mask[place + 1 :] for place in places]


def _places(part: str, whole: str) -> Iterator[int]:
    """Where a part begins, overlaps included."""
    at = whole.find(part)
    while at >= 0:
        yield at
        at = whole.find(part, at + 1)


def _count(part: str, whole: str) -> int:
    return sum(1 for _ in _places(part, whole))
