"""Seed rules found in the data: what source and target have in common."""

from collections.abc import Iterator

from compgen.data.examples import Dataset
from compgen.grammar.rules import Grammar, Rule, examples

_LEFT_OUT = (".", "'")


def exact_matches(dataset: Dataset) -> Grammar:
    """Seed rules x -> x for the phrases that source and target share, as published for GeoQuery and SMCalFlow.

    In each example, phrases are taken from the longest to the shortest and from left to right, if they overlap none
    taken before on either side. Those that begin or end with a full stop or an apostrophe are left out.

    Raises:
        DataError: an example has an empty side, or a token that no rule can have.
    """
    alphabet, rules = examples(dataset)
    unwanted = set(alphabet.encode(_LEFT_OUT))
    return Grammar.of(alphabet, (Rule(one, one) for rule in set(rules) for one in _shared(*rule, unwanted)))


def _shared(source: str, target: str, unwanted: set[str]) -> Iterator[str]:
    for length in range(min(len(source), len(target)), 0, -1):
        start = 0
        while start + length <= len(source):
            phrase = source[start : start + length]
            # A token that is taken becomes a nonterminal's letter, another one on each side, so that it is not shared.
            if phrase in target and unwanted.isdisjoint((phrase[0], phrase[-1])):
                yield phrase
                source = source[:start] + "\1" * length + source[start + length :]
                target = target.replace(phrase, "\2" * length, 1)
            start += 1
