"""Grammars by their definitions, on tuples of tokens in which a nonterminal is an int: what fast code must match."""

from functools import cache

from compgen.grammar.rules import Grammar


def read(*lines):
    """The rules that some lines in normal form say, in order, and their alphabet."""
    grammar = Grammar.parse(lines)
    rules = {grammar.alphabet.text(rule): rule for rule in grammar.rules}
    return grammar.alphabet, [rules[line] for line in lines]


def tokens(alphabet, letters):
    return tuple(int(token[3:]) if token.startswith("NT_") else token for token in alphabet.decode(letters))


def fill(side, arguments):
    """A side with its nonterminals replaced: by number."""
    return tuple(token for one in side for token in (arguments[one] if isinstance(one, int) else (one,)))


def segmentations(side, span):
    """All {nonterminal: tokens} with which a source is a span."""
    if not side:
        return [{}] if not span else []
    if isinstance(side[0], int):
        return [
            {side[0]: span[:cut], **rest}
            for cut in range(1, len(span) + 1)
            for rest in segmentations(side[1:], span[cut:])
        ]
    return segmentations(side[1:], span[1:]) if span[:1] == side[:1] else []


def targets(rules, source, units=2, longest=9):
    """All targets of up to so many tokens that rules derive from a source, which may hold nonterminals."""

    def short(found):
        return {target for target in found if len(target) <= longest}  # what is made of a long one is no shorter

    @cache
    def stacked(span, left):
        found = set(plain(span))
        if left:
            below = stacked(span, left - 1)
            found |= {fill(target, {1: one}) for rule, target in rules if rule == (1,) for one in below}
        return short(found)

    @cache
    def plain(span):
        if len(span) == 1 and isinstance(span[0], int):
            return {span}
        found = set()
        for side, target in rules:
            if side == (1,):
                continue
            for parts in segmentations(side, span):
                found |= short({fill(target, chosen) for chosen in choices(parts)})
        return found

    def choices(parts):
        chosen = [{}]
        for number, part in parts.items():
            extra = units + (len(part) == 1 and isinstance(part[0], int))
            chosen = [{**one, number: target} for one in chosen for target in stacked(part, extra)]
        return chosen

    return stacked(tuple(source), units + (len(source) == 1 and isinstance(source[0], int)))


def occurs(pattern, sequence):
    """Whether a pattern, by trying all places, matches some part of a sequence."""
    return bool(pattern) and any(
        segmentations(tuple(number if isinstance(one, int) else one for number, one in enumerate(pattern)), part)
        for start in range(len(sequence))
        for part in (sequence[start:stop] for stop in range(start + 1, len(sequence) + 1))
    )
