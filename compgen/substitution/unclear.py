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
    times = [[rule.target.count(chr(number + 1)) for number in range(rule.arity)] for rule in grammar.rules]
    if not any(count > 1 for some in times for count in some):
        return [set() for _ in derivations]
    words = {letter for letter, token in _letters(grammar).items() if any(map(str.isalnum, token))}
    elsewhere = Elsewhere((source, target) for source, some in known.items() for target in some)
    classifier = Classifier(grammar, "one")
    found: list[set[int]] = []
    for rules in derivations:
        below, sources, targets = classifier.derived(rules)
        written, here = [1] * len(rules), set[int]()
        for node, rule in enumerate(rules):
            for count, child in zip(times[rule], below[node], strict=True):
                written[child] = written[node] * count
            own = frozenset(sources[node])
            if written[node] > 1 and any(
                elsewhere.means({*sources[0]}, own, letter) for letter in words.intersection(targets[node])
            ):
                here.add(node)
        found.append(here)
    return found


def _letters(grammar: Grammar) -> dict[str, str]:
    tokens = grammar.alphabet.tokens
    return dict(zip(grammar.alphabet.encode(tokens), tokens, strict=True))
