"""GECA by its definitions, in plain loops: what the tables must agree with, on data of a few short examples."""

from collections import Counter, defaultdict

BEGIN, SEPARATOR, END = "<s>", "##", "</s>"


def rows(examples, config):
    """All (template, fragment, environment) of distinct (source, target), as tuples."""
    counts = Counter()
    for example in examples:
        for side in example:
            for size in range(1, config.span + 1):
                counts.update(tuple(side[i : i + size]) for i in range(len(side) - size + 1))
    spans = {span for span, count in counts.items() if config.limit is None or count <= config.limit}
    found = set()
    for source, target in set(examples):
        if len(source) + len(target) > config.longest:
            continue
        whole = (BEGIN, *source, SEPARATOR, *target, END)
        for fragment, template in _cut(whole, (), spans, config, 0):
            found.add((template, fragment, environment(template, config.window)))
    return found


def _cut(sequence, fragment, spans, config, start):
    if len(fragment) == config.spans:
        return
    for place in range(start, len(sequence)):
        for size in range(1, config.span + 1):
            span = sequence[place : place + size]
            used = {token for one in fragment for token in one}
            if span not in spans or used & set(span):
                continue
            gap = len(fragment)
            template, before = replaced(sequence, span, gap), replaced(sequence[:place], span, gap)
            if template[: len(before) + 1] != (*before, gap):
                continue  # a part of it has been replaced already, with what stands to the left
            if config.mode == "published" and gap in before:
                continue  # not its first occurrence
            grown = (*fragment, span)
            yield grown, template
            yield from _cut(template, grown, spans, config, len(before) + 1)


def replaced(sequence, span, gap):
    """All occurrences of a span, from left to right, by a gap."""
    result, place = [], 0
    while place < len(sequence):
        if sequence[place : place + len(span)] == span:
            result.append(gap)
            place += len(span)
        else:
            result.append(sequence[place])
            place += 1
    return tuple(result)


def environment(template, window):
    if window is None:
        return template
    places = [place for place, token in enumerate(template) if isinstance(token, int)]
    return tuple(
        tuple(template[p] if 0 <= p < len(template) else None for p in range(place - window, place + window + 1))
        for place in places
    )


def composed(examples, config, novelty="both"):
    """All new examples that the data license."""
    table = rows(examples, config)
    fragments, environments = defaultdict(set), {}
    for template, fragment, around in table:
        fragments[template].add(fragment)
        environments[template] = around
    made = set()
    for host in fragments:
        taken = (
            _published(host, fragments, environments)
            if config.mode == "published"
            else _reference(host, fragments, environments)
        )
        for fragment in taken - fragments[host]:
            if all(set(fragment) & set(own) for own in fragments[host]):
                continue
            example = _filled(host, fragment)
            if example is not None and _new(example, examples, novelty):
                made.add(example)
    return made


def _published(host, fragments, environments):
    """Section 3's box: x = t1'/f1, w = t1/f1 with t1 not t1', y = t2/f2, t1 and t2 of one environment; z = t1'/f2."""
    taken = set()
    for shared in fragments[host]:
        for first in fragments:
            if first != host and shared in fragments[first]:
                for second in fragments:
                    if environments[second] == environments[first]:
                        taken |= fragments[second]
    return taken


def _reference(host, fragments, environments):
    """Algorithm 1: templates of two fragments or more, of which one is in a template of the host's environment."""
    taken = set()
    for like in fragments:
        if environments[like] == environments[host]:
            for shared in fragments[like]:
                for lender in fragments:
                    if lender != host and shared in fragments[lender] and len(fragments[lender]) > 1:
                        taken |= fragments[lender]
    return taken


def _filled(template, fragment):
    middle = template.index(SEPARATOR)
    sides = template[1:middle], template[middle + 1 : -1]
    if sides[1] and not all(any(isinstance(token, int) for token in side) for side in sides):
        return None
    return tuple(
        tuple(word for token in side for word in (fragment[token] if isinstance(token, int) else (token,)))
        for side in sides
    )


def _new(example, examples, novelty):
    if novelty == "pair":
        return example not in examples
    sources, targets = {source for source, _ in examples}, {target for _, target in examples}
    return example[0] not in sources and (novelty == "source" or not example[1] or example[1] not in targets)
