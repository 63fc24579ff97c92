"""Seed rules found in the data: phrases that sides share, inflected forms, and words that go together."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby

import numpy as np

from compgen.csl.rules import FIRST, Alphabet, Grammar, Rule, codes, examples
from compgen.data.brackets import CLOSING, labelled
from compgen.data.examples import Dataset
from compgen.data.ragged import ranges

_LEFT_OUT = (".", "'")
_Terms = Counter[tuple[str, str, str]]  # function, phrase, and all of the term
_NEARLY = 0.9  # of the terms of a function have a phrase in them and no other term, if it is there for phrases
_ROUNDS = 10  # of expectation maximisation; the best translations no longer change after the first few
_ALIKE = 0.3  # the share of common letters of two forms of a word (thought, think: a third); other words have fewer


def exact_matches(dataset: Dataset) -> Grammar:
    """Seed rules x -> x for the phrases that source and target share, as published for GeoQuery and SMCalFlow.

    In each example, phrases are taken from the longest to the shortest and from left to right, unless they overlap one
    taken before on either side, or begin or end with a full stop or an apostrophe. Raises DataError as `examples`.
    """
    alphabet, rules = examples(dataset)
    unwanted = set(alphabet.encode(_LEFT_OUT))
    return Grammar.of(alphabet, (Rule(one, one) for rule in set(rules) for one in _shared(*rule, unwanted)))


def shared_phrases(pairs: Iterable[tuple[Sequence[str], Sequence[str]]]) -> set[tuple[str, ...]]:
    """The phrases of `exact_matches`, where tokens may be any."""
    letters: dict[str, str] = {}
    unwanted = {letters.setdefault(token, chr(FIRST + place)) for place, token in enumerate(_LEFT_OUT)}
    found = set[str]()
    for pair in pairs:
        source, target = (
            "".join([letters.setdefault(one, chr(FIRST + len(letters))) for one in side]) for side in pair
        )
        found.update(_shared(source, target, unwanted))
    tokens = {letter: token for token, letter in letters.items()}
    return {tuple([tokens[letter] for letter in phrase]) for phrase in found}


def _shared(source: str, target: str, unwanted: set[str]) -> Iterator[str]:
    common = set(source) & set(target)
    runs = groupby(source, common.__contains__)
    longest = max((sum(1 for _ in run) for shared, run in runs if shared), default=0)
    for length in range(min(longest, len(target)), 0, -1):
        start = 0
        while start + length <= len(source):
            phrase = source[start : start + length]
            # What is taken is overwritten, differently on each side, so that it is not shared again.
            if phrase in target and unwanted.isdisjoint((phrase[0], phrase[-1])):
                yield phrase
                source = source[:start] + "\1" * length + source[start + length :]
                target = target.replace(phrase, "\2" * length, 1)
            start += 1


def names(dataset: Dataset) -> Grammar:
    """Seed rules x -> f ( x ) for phrases that sides share, where f is a function that is there for such phrases.

    So `texas` means `stateid ( texas )` and `boston` means `cityid ( boston , _ )`; other phrases mean themselves, as
    in `exact_matches`. The label of a bracket is a function: `buy milk` means `[SL:TASK buy milk ]`. A function is
    there for phrases if nearly all its terms have one and no term inside, and if these phrases stand there rather than
    elsewhere. Raises DataError as `examples`.

    This is not in the paper, whose names are placeholders. With names in terms of their own, the rules for whole
    questions take these terms in, and nothing between a name and a question is learned.
    """
    alphabet, rules = examples(dataset)
    phrases, terms, with_phrase = _counts(alphabet, dict.fromkeys(rules))
    for_phrases = _for_phrases(phrases, terms, with_phrase)
    signs, found, inside = alphabet.signs, set[Rule](), Counter[str]()
    for (function, phrase, term), count in with_phrase.items():
        if function in for_phrases and signs.issuperset(term[1:].replace(phrase, "", 1)):
            found.add(Rule(phrase, term))
            inside[phrase] += count
    alone = {Rule(phrase, phrase) for phrase, count in phrases.items() if inside[phrase] < count}
    return Grammar.of(alphabet, found | alone)


def _counts(alphabet: Alphabet, pairs: Iterable[Rule]) -> tuple[Counter[str], Counter[str], _Terms]:
    """Count the phrases that sides share, the functions, and the phrases in each term that has no other term inside."""
    some = (_LEFT_OUT, CLOSING.values(), CLOSING, labelled({*alphabet.tokens}))
    unwanted, opening, closing, labels = ({*alphabet.encode(tokens)} for tokens in some)
    phrases, terms, with_phrase = Counter[str](), Counter[str](), _Terms()
    for pair in pairs:
        shared = [*_shared(*pair, unwanted)]
        phrases.update(shared)
        for term in _terms(pair.target, opening, closing, labels):
            terms[term[0]] += 1
            inside = term[1:-1] if term[0] in labels else term[2:-1]
            if not (opening | labels) & {*inside}:
                with_phrase.update((term[0], phrase, term) for phrase in shared if phrase in inside)
    return phrases, terms, with_phrase


def _for_phrases(phrases: Counter[str], terms: Counter[str], with_phrase: _Terms) -> set[str]:
    """Return the functions that are there for phrases; see `names`."""
    inside = defaultdict[str, Counter[str]](Counter)  # by function: in how many of its terms each phrase is
    for (function, phrase, _), count in with_phrase.items():
        inside[function][phrase] += count
    return {
        function
        for function, found in inside.items()
        if found.total() >= max(_NEARLY * terms[function], sum(phrases[phrase] for phrase in found) / 2)
    }


def _terms(target: str, opening: set[str], closing: set[str], labels: set[str]) -> Iterator[str]:
    """Yield the terms f ( ... ) and [f ... ] of a target."""
    starts: list[int] = []
    for place, letter in enumerate(target):
        if letter in opening:
            starts.append(place - 1)
        elif letter in labels:
            starts.append(place)
        elif letter in closing and starts:
            start = starts.pop()
            if start >= 0:
                yield target[start : place + 1]


def companions(dataset: Dataset) -> Grammar:
    """Seed rules x -> y for words that go together: x is in an example's source if, and only if, y is in its target.

    Words of one side that are in the same examples are left out. This is not in the paper. Without a rule for *left*,
    everything learned with *left* must be learned again with *right*. Raises DataError as `examples`.
    """
    alphabet, rules = examples(dataset)
    where: tuple[dict[str, list[int]], ...] = ({}, {})
    for number, rule in enumerate(rules):
        for found, side in zip(where, rule, strict=True):
            for letter in set(side):
                found.setdefault(letter, []).append(number)
    alike: dict[tuple[int, ...], tuple[list[str], list[str]]] = {}
    for place, found in enumerate(where):
        for letter, numbers in found.items():
            alike.setdefault(tuple(numbers), ([], []))[place].append(letter)
    pairs = [(sources, targets) for sources, targets in alike.values() if len(sources) == len(targets) == 1]
    return Grammar.of(alphabet, (Rule(source, target) for (source,), (target,) in pairs))


def inflections(dataset: Dataset) -> Grammar:
    """Seed rules x' -> x, one token each, where x' is another form of the word x (`ate`, `eat`), as published for COGS.

    x is the most probable translation of x' by IBM Model 1 (Brown et al. 1993), and shares letters with it. The paper
    names the model, and says that x' is x or an inflected form of x, but not how that was decided. Its list has 140
    rules, none of them x -> x; so has this one. Raises DataError as `examples`.
    """
    alphabet, rules = examples(dataset)
    return Grammar.of(alphabet, (rule for rule in _translations(rules) if _alike(*alphabet.key(rule))))


def _alike(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two tokens differ in more than case, and share many letters in order."""
    letters = one[0].lower(), other[0].lower()
    return letters[0] != letters[1] and SequenceMatcher(None, *letters, autojunk=False).ratio() > _ALIKE


def _translations(pairs: Sequence[Rule]) -> list[Rule]:
    """Return each source token with its most probable translation by IBM Model 1, without the empty source token.

    for each round: expected[x, y] = sum over the target tokens y of pairs with x in the source
                                     of p(y | x) / sum over the tokens x' of the source of p(y | x')
                    p(y | x) = expected[x, y] / sum over y' of expected[x, y']
    """
    if not pairs:
        return []
    words, symbols = (codes("".join(side)) for side in zip(*pairs, strict=True))
    width, height = np.array([[*map(len, pair)] for pair in pairs]).T
    # (links) All pairs of a target token and a source token of one example: their places, then their letters.
    origin, places = ranges(np.repeat(np.cumsum(width) - width, height), np.repeat(width, height))
    source, target = words[places], symbols[origin]
    kinds, kind = np.unique(source << 32 | target, return_inverse=True)
    sources, own = np.unique(kinds >> 32, return_inverse=True)
    probable = np.ones(len(kinds))  # (kinds) p(y | x), to within a factor at first
    for _ in range(_ROUNDS):
        weights = probable[kind]
        expected = np.bincount(kind, weights / np.bincount(origin, weights)[origin])
        probable = expected / np.bincount(own, expected)[own]
    order = np.lexsort((probable, own))
    best = order[np.searchsorted(own[order], np.arange(len(sources)), "right") - 1]
    return [Rule(chr(one >> 32), chr(one & 0xFFFFFFFF)) for one in kinds[best].tolist()]
