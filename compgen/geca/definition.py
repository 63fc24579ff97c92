"""GECA as the paper defines it, in plain loops over all pairs: for reading, and for tests on a few short examples.

`compgen.geca.tables` and `compgen.geca.compose` compute the same by joins over hashes. A test holds the two equal on
random corpora. Words as in Andreas (2020), section 3:

- A *fragment* is one or more spans of tokens that are cut out of an example; what is left is a *template*, with a
  numbered gap for each span (equations 1 and 2). All occurrences of a span are cut out together.
- The *environment* of a fragment is its template, or a window of tokens around each gap (equation 3).
- Two fragments that occur in one environment may take each other's place elsewhere.

An example (source, target) is one sequence `<s> source ## target </s>`. A gap in a template is an integer.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from compgen.geca.corpus import usual_longest
from compgen.geca.options import GecaOptions

BEGIN, SEPARATOR, END = "<s>", "##", "</s>"

Example = tuple[tuple[str, ...], tuple[str, ...]]
Span = tuple[str, ...]
Fragment = tuple[Span, ...]
Template = tuple[str | int, ...]
Environment = tuple[object, ...]


def rows(examples: Iterable[Example], options: GecaOptions) -> set[tuple[Template, Fragment, Environment]]:
    """Every way to cut a fragment out of an example, with what is left and the fragment's environment."""
    distinct = set(examples)
    counts = Counter(span for example in examples for side in example for span in _spans(side, options.span))
    eligible = {span for span, count in counts.items() if options.limit is None or count <= options.limit}
    lengths = np.array([len(source) + len(target) for source, target in distinct], dtype=np.int64)
    longest = usual_longest(lengths) if options.longest is None else options.longest
    found = set()
    for source, target in distinct:
        if len(source) + len(target) <= longest:
            whole: Template = (BEGIN, *source, SEPARATOR, *target, END)
            for fragment, template in _cut(whole, (), eligible, options, 0):
                found.add((template, fragment, environment(template, options.window)))
    return found


def _spans(side: tuple[str, ...], longest: int) -> Iterator[Span]:
    for size in range(1, longest + 1):
        for start in range(len(side) - size + 1):
            yield side[start : start + size]


def _cut(
    sequence: Template, fragment: Fragment, eligible: set[Span], options: GecaOptions, start: int
) -> Iterator[tuple[Fragment, Template]]:
    """Cut further spans out of a sequence, from a place on; those in `fragment` have been cut out."""
    if len(fragment) == options.spans:
        return
    used = {token for span in fragment for token in span}
    for place in range(start, len(sequence)):
        for size in range(1, options.span + 1):
            span = sequence[place : place + size]
            if span not in eligible or used & set(span):
                continue
            gap = len(fragment)
            template, before = replaced(sequence, span, gap), replaced(sequence[:place], span, gap)
            if template[: len(before) + 1] != (*before, gap):
                continue  # part of this occurrence was cut out together with tokens on its left
            if options.mode == "published" and gap in before:
                continue  # gaps are numbered by first occurrence; `reference` meets other numberings, too
            grown = (*fragment, span)
            yield grown, template  # type: ignore[misc]
            yield from _cut(template, grown, eligible, options, len(before) + 1)  # type: ignore[arg-type]


def replaced(sequence: Template, span: Template, gap: int) -> Template:
    """The sequence with a gap in place of every occurrence of a span, from left to right."""
    result: list[str | int] = []
    place = 0
    while place < len(sequence):
        if sequence[place : place + len(span)] == span:
            result.append(gap)
            place += len(span)
        else:
            result.append(sequence[place])
            place += 1
    return tuple(result)


def environment(template: Template, window: int | None) -> Environment:
    """The template itself, or the tokens within a window around each of its gaps, in order (equation 3 has their set).

    Beyond the ends of a template there is None. In the authors' program a window that begins before the template is
    empty; no published run has such a window.
    """
    if window is None:
        return template
    gaps = [place for place, token in enumerate(template) if isinstance(token, int)]
    return tuple(
        tuple(template[p] if 0 <= p < len(template) else None for p in range(gap - window, gap + window + 1))
        for gap in gaps
    )


def composed(examples: Iterable[Example], options: GecaOptions) -> set[Example]:
    """All new examples that the data license, whatever `variants` says."""
    known = set(examples)
    fragments: dict[Template, set[Fragment]] = defaultdict(set)
    environments: dict[Template, Environment] = {}
    for template, fragment, around in rows(examples, options):
        fragments[template].add(fragment)
        environments[template] = around
    licensed = _published if options.mode == "published" else _reference
    made = set()
    for host, own in fragments.items():
        for fragment in licensed(host, fragments, environments) - own:
            if all(set(fragment) & set(other) for other in own):
                continue  # it keeps a span of each fragment that the host has: left out in both modes
            example = _filled(host, fragment)
            if example is not None and _is_new(example, known, options.novelty):
                made.add(example)
    return made


def _published(
    host: Template, fragments: Mapping[Template, set[Fragment]], environments: Mapping[Template, Environment]
) -> set[Fragment]:
    """The box of section 3: what a host may take.

    If the host has f1, another template t1 has f1 too, and t2 with f2 has the environment of t1, then the host may have
    f2 in place of f1.
    """
    return {
        taken
        for first in fragments
        if first != host and fragments[host] & fragments[first]
        for second in fragments
        if environments[second] == environments[first]
        for taken in fragments[second]
    }


def _reference(
    host: Template, fragments: Mapping[Template, set[Fragment]], environments: Mapping[Template, Environment]
) -> set[Fragment]:
    """Algorithm 1 as the authors' program runs it: what a host may take.

    All fragments of a template that has two or more, if one of them occurs in a template with the host's environment.
    """
    return {
        taken
        for like in fragments
        if environments[like] == environments[host]
        for lender in fragments
        if lender != host and len(fragments[lender]) > 1 and fragments[like] & fragments[lender]
        for taken in fragments[lender]
    }


def _filled(template: Template, fragment: Fragment) -> Example | None:
    """The example that a template and a fragment make; None if on pairs one side has no gap."""
    middle = template.index(SEPARATOR)
    source, target = template[1:middle], template[middle + 1 : -1]
    if target and not all(any(isinstance(token, int) for token in side) for side in (source, target)):
        return None
    return _words(source, fragment), _words(target, fragment)


def _words(side: Template, fragment: Fragment) -> tuple[str, ...]:
    return tuple(word for token in side for word in (fragment[token] if isinstance(token, int) else (token,)))


def _is_new(example: Example, known: set[Example], novelty: str) -> bool:
    if novelty == "pair":
        return example not in known
    sources, targets = {source for source, _ in known}, {target for _, target in known}
    return example[0] not in sources and (novelty == "source" or not example[1] or example[1] not in targets)
