"""Nodes of derivations with a target symbol that other words of the source mean, too: these are not exchanged.

A rule such as  NT_1 before tomorrow ### shift ( NT_1 = 1 ) , NT_1  was found in an example that has *days* twice in its
target, once for the word and once for *tomorrow*; put *weeks* there, and tomorrow is a week away.
"""

from collections.abc import Sequence

from compgen.csl.rules import Grammar
from compgen.lexsym.elsewhere import Elsewhere
from compgen.substitution.exchanges import Targets
from compgen.substitution.pieces import Classifier


def unclear(grammar: Grammar, derivations: Sequence[Sequence[int]], known: Targets) -> list[set[int]]:
    """The nodes of each derivation that are written more than once, and have a symbol that another word means, too.

    Args:
        grammar: its rules derive the examples.
        derivations: the rules of each, in preorder.
        known: the targets of all examples by their sources, as letters.
    """
    # How often each rule writes each of its nonterminals.
    times = [[rule.target.count(chr(number)) for number in range(1, rule.arity + 1)] for rule in grammar.rules]
    if not any(count > 1 for some in times for count in some):
        return [set() for _ in derivations]
    signs, classifier = grammar.alphabet.signs, Classifier(grammar, "one")
    elsewhere = Elsewhere((source, target) for source, some in known.items() for target in some)
    found: list[set[int]] = []
    for rules in derivations:
        below, sources, targets = classifier.derived(rules)
        source, several, written = {*sources[0]}, set[int](), [1] * len(rules)
        for node, rule in enumerate(rules):
            for count, child in zip(times[rule], below[node], strict=True):
                written[child] = written[node] * count
            symbols = {*targets[node]} - signs if written[node] > 1 else ()
            if any(elsewhere.means(source, frozenset(sources[node]), letter) for letter in symbols):
                several.add(node)
        found.append(several)
    return found
