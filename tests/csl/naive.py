"""Grammars by their definitions, on tuples of tokens in which a nonterminal is an int: what fast code must match."""

from functools import cache
from math import log2

from compgen.csl.charts import Parser
from compgen.csl.occurrences import occurs as fast_occurs
from compgen.csl.rules import Grammar, is_nonterminal


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


def step(alphabet, grammar, seeds, examples, options):
    """The grammar after one step, with everything looked up anew and all pairs tried."""
    gone, come = set(), set()
    for rule in grammar - seeds:
        if Parser(grammar - {rule}).derives(rule):
            gone.add(rule)
            continue
        candidates = {new for other in grammar - {rule} for new in options.unify(rule, other)} - {rule}
        tried = []
        for new in candidates:
            holders = sorted(
                (one for one in grammar if both_occur(new, one)),
                key=lambda one: (one.length, alphabet.decode(one.target), alphabet.decode(one.source)),
            )
            others = {one for one in holders[:10] if one not in seeds and options.unify(one, new) & grammar}
            removed = others | {rule}
            gain = sum(size(one, options) for one in removed) - size(new, options)
            tried.append((gain, removed, new))
        tried.sort(key=lambda one: (-one[0], alphabet.key(one[2])))
        best, chosen = 0, None
        for gain, removed, new in tried:
            if options.quirks and gain <= best:
                break
            full = gain + sum(penalty(one, examples, options) for one in removed) - penalty(new, examples, options)
            if full > best:
                best, chosen = full, (removed, new)
        if chosen:
            gone |= chosen[0]
            come.add(chosen[1])
    return (grammar | come) - gone


def both_occur(pattern, rule):
    return fast_occurs(pattern.source, rule.source) and fast_occurs(pattern.target, rule.target)


def size(rule, options):
    return sum(1 if is_nonterminal(letter) else options.terminal_size for letter in rule.source + rule.target)


def penalty(rule, examples, options):
    sources = sum(fast_occurs(rule.source, one.source) for one in examples)
    targets = sum(fast_occurs(rule.target, one.target) for one in examples)
    both = sum(both_occur(rule, one) for one in examples)
    if not both:
        return 0
    return options.target_given_source * log2(sources / both) + options.source_given_target * log2(targets / both)
