"""Nodes of derivations whose targets other words of the source mean, too: what they derive is not exchanged.

A rule such as  NT_1 before tomorrow ### shift ( NT_1 = 1 ) , NT_1  was found in an example that has *days* twice in its
target, once for the word and once for *tomorrow*; put *weeks* there, and tomorrow is a week away.
"""

from collections.abc import Sequence

from compgen.csl.rules import Grammar
from compgen.lexsym.elsewhere import Elsewhere
from compgen.substitution.exchanges import Targets
from compgen.substitution.pieces import Classifier


def unclear(grammar: Grammar, derivations: Sequence[Sequence[int]], known: Targets) -> list[set[int]]:
    """The nodes, in each derivation, that are written more than once, one of their words being of another word as well.

    Args:
        grammar: its rules derive the examples.
        derivations: the rules of each, in preorder.
        known: the targets of all examples by their sources, as letters.
    """
    times = _times(grammar)
    if not any(count > 1 for some in times for count in some):
        return [set() for _ in derivations]
    words = {letter for letter, token in _letters(grammar).items() if any(map(str.isalnum, token))}
    elsewhere = Elsewhere((source, target) for source, some in known.items() for target in some)
    classifier = Classifier(grammar, "one")
    found: list[set[int]] = []
    for rules in derivations:
        below, sources, targets = classifier.derived(rules)
        source, several = {*sources[0]}, set[int]()
        for node, count in enumerate(_written([times[rule] for rule in rules], below)):
            symbols = words.intersection(targets[node]) if count > 1 else ()
            if any(elsewhere.means(source, frozenset(sources[node]), letter) for letter in symbols):
                several.add(node)
        found.append(several)
    return found


def _times(grammar: Grammar) -> list[list[int]]:
    """How often each rule writes each of its nonterminals."""
    return [[rule.target.count(chr(number + 1)) for number in range(rule.arity)] for rule in grammar.rules]


def _written(times: Sequence[Sequence[int]], below: Sequence[Sequence[int]]) -> list[int]:
    """How often each node of a derivation is written, if those below it are written so often by its own rule."""
    written = [1] * len(times)
    for node, (counts, children) in enumerate(zip(times, below, strict=True)):
        for count, child in zip(counts, children, strict=True):
            written[child] = written[node] * count
    return written


def _letters(grammar: Grammar) -> dict[str, str]:
    tokens = grammar.alphabet.tokens
    return dict(zip(grammar.alphabet.encode(tokens), tokens, strict=True))
