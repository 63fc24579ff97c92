"""Signs that uniform samples of a grammar make no sense, though nobody knows which are right.

Two numbers tell, on the training examples that they were tried on (GeoQuery, Scholar, SCAN, COGS; the limits were made
for these). Samples of grammars that had understood little had more *odd* sources than these data have themselves. But
new pairs of tokens are also what a good grammar is for: SCAN's and COGS's make many. In those, nearly all examples
share all of their rules with others; in questions, few do. Samples by learned probabilities are not judged: those of
GeoQuery's programs are odd, too, and predictors gain from them.
"""

from collections import Counter
from collections.abc import Sequence
from itertools import chain, pairwise

import polars as pl

from compgen.csl.forests import forests, lowest
from compgen.csl.rules import Grammar
from compgen.data.examples import Dataset

ODD = 0.2  # the least share of odd sources; it was 0.38 to 0.93 where samples made no sense
ODDER = 1.5  # and times the data's own share: it was 2.0 to 5.3 there, and 1.0 or less for other questions
OWN = 0.15  # the least share of examples with a rule of their own: 0.27 to 0.89 there, to 0.06 for SCAN and COGS
_LOOKED_AT = 1_000  # samples
END = ""  # of a source; no token is empty


def odd(made: pl.Series, data: Dataset) -> tuple[float, float]:
    """The shares of odd sources, among those made and among the data's own.

    A source is odd if two or more of its pairs of neighbouring tokens are in no source of the data or, if it is one of
    these, in no other, though other sources have both tokens. The ends of a source count as tokens.
    """
    known = data.frame["source"].unique().to_list()
    pairs, tokens = (Counter(chain.from_iterable(map(of, known))) for of in (_pairs, frozenset))
    tokens[END] = len(known)
    new = [sum(pair not in pairs for pair in _pairs(source)) for source in made.head(_LOOKED_AT).to_list()]
    own = [
        sum(pairs[pair] == 1 and min(tokens[token] for token in pair) > 1 for pair in _pairs(source))
        for source in known
    ]
    return _several(new), _several(own)


def _pairs(source: Sequence[str]) -> set[tuple[str, str]]:
    return {*pairwise((END, *source, END))}


def _several(counts: Sequence[int]) -> float:
    """The share of counts that are more than one."""
    return sum(count > 1 for count in counts) / max(1, len(counts))


def with_own_rules(grammar: Grammar, data: Dataset) -> float:
    """The share of distinct examples whose lowest derivation has a rule that is in that of no other."""
    found = forests(grammar, dict.fromkeys(grammar.alphabet.examples(data)))
    best = lowest(found)
    rules = [{*best[root]} for root in found.roots if root >= 0]
    times = Counter(chain.from_iterable(rules))
    return sum(any(times[rule] == 1 for rule in some) for some in rules) / max(1, len(rules))
