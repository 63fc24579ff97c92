"""Lexicons: which symbols words mean, and which words may take each other's place (Akyürek and Andreas 2023).

A lexeme is a set of symbols; its forms are the words that mean them (ate, eaten: eat). Forms of different lexemes are
of one type if they stand in the same context. A type has one form of a lexeme, so that a lexeme may take the place of
another wherever both have a form of the same types.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from math import comb
from pathlib import Path
from typing import Any, Literal, NamedTuple
from unicodedata import category

import numpy as np

from compgen.csl.seeds import companions
from compgen.data.content import read_text
from compgen.data.examples import Dataset, Side
from compgen.errors import DataError
from compgen.files import atomic_path
from compgen.lexsym.alignment import Lexicon, Pairs, model1, simple
from compgen.lexsym.elsewhere import Occurrences

Aligner = Literal["model1", "companions", "simple"]
Partners = Mapping[str, "Others"]  # by word, the words that may take its place
HEADER = ("type", "word", "symbols")  # of which there may be several
ALONE = "-"  # the type of words that are not exchanged
JOINED = "\x02"  # between the tokens of a phrase
LINKS = 0.01  # of the examples with a word, in which a symbol is linked to it
_MOST_WORDS = 4  # words that may share a symbol; one that more words share belongs to grammar, and is no meaning
_MOST_SYMBOLS = 3  # of a word, in the reference
_WINDOW = 2  # tokens on either side, in the reference
_HOLE = "\0"


def align(pairs: Pairs, aligner: Aligner) -> Lexicon:
    """Link words and symbols by one of the aligners; `companions` as CSL's seed rules."""
    if aligner == "companions":
        grammar = companions(Dataset.from_pairs(pairs))
        examples = Counter(word for source, _ in pairs for word in set(source))
        return {word: {symbol: examples[word]} for (word,), (symbol,) in map(grammar.alphabet.key, grammar.rules)}
    return model1(pairs) if aligner == "model1" else simple(pairs)


class Others(Sequence[str]):
    """The words of a group but one. A list for each word would take memory by the square of the group's size."""

    def __init__(self, group: Sequence[str], place: int) -> None:
        self.group, self._place = group, place

    def __len__(self) -> int:
        return len(self.group) - 1

    def __getitem__(self, number: Any) -> Any:
        return self.group[number + (number >= self._place)]

    def __iter__(self) -> Iterator[str]:
        return chain(self.group[: self._place], self.group[self._place + 1 :])


class Entry(NamedTuple):
    """A word of the lexicon: its type, and what it means."""

    type: str
    word: str
    symbols: Side


def frequent(lexicon: Lexicon, pairs: Pairs, share: float) -> Lexicon:
    """Drop what is linked to a word less often than in this share of the examples with the word."""
    examples = Counter(word for source, _ in pairs for word in set(source))
    # 7 of 100 is 0.07 exactly, but 0.07 times 100 is more than 7.
    return _kept(lexicon, lambda word, symbol: lexicon[word][symbol] / examples[word] >= share)


def _kept(lexicon: Lexicon, wanted: Callable[[str, str], bool]) -> Lexicon:
    """The links of words and symbols that are wanted, of words that have some."""
    kept = {word: {symbol: count for symbol, count in symbols.items() if wanted(word, symbol)}
            for word, symbols in lexicon.items()}  # fmt: skip
    return {word: symbols for word, symbols in kept.items() if symbols}


def explained(lexicon: Lexicon, pairs: Pairs) -> Lexicon:
    """Drop links that another word explains: one that never is without the symbol, and is wherever both are.

    If data have *opposite left* but never *opposite right*, then *opposite* never is without the symbol of *left*, and
    is linked to it; *left* has it without *opposite*, too.
    """
    where, gone = Occurrences(pairs), set[tuple[str, str]]()
    having = np.zeros(len(pairs), dtype=bool)  # the symbol
    for symbol, words in _by_symbol(lexicon).items():
        if len(words) > 1:
            having[where.of(1, symbol)] = True
            rows = {word: where.of(0, word) for word in words}
            both = {word: frozenset(some[having[some]].tolist()) for word, some in rows.items()}
            sure = [both[word] for word in words if len(both[word]) == len(rows[word])]
            gone |= {(word, symbol) for word, some in both.items() if any(some < one for one in sure)}
            having[where.of(1, symbol)] = False
    return _kept(lexicon, lambda word, symbol: (word, symbol) not in gone)


def _by_symbol(lexicon: Lexicon) -> dict[str, list[str]]:
    """The words that are linked to each symbol."""
    words = defaultdict(list)
    for word, symbols in lexicon.items():
        for symbol in symbols:
            words[symbol].append(word)
    return words


def lexemes(lexicon: Lexicon) -> dict[str, Side]:
    """The symbols of each word, such that two words have the same symbols or none in common.

    Symbols of many words go, then those that are of different sets.
    """
    found = {word: frozenset(symbols) for word, symbols in lexicon.items()}
    words = Counter(symbol for symbols in found.values() for symbol in symbols)
    unclear = {symbol for symbol, count in words.items() if count > _MOST_WORDS}
    while True:
        found = {word: left for word, symbols in found.items() if (left := symbols - unclear)}
        sets = Counter(symbol for symbols in {*found.values()} for symbol in symbols)
        unclear = {symbol for symbol, count in sets.items() if count > 1}
        if not unclear:
            return {word: tuple(sorted(symbols)) for word, symbols in sorted(found.items())}


def most_frequent(lexicon: Lexicon) -> Lexicon:
    """Keep the three most frequent symbols of each word, as coded."""
    return {word: dict(Counter(symbols).most_common(_MOST_SYMBOLS)) for word, symbols in lexicon.items()}


def one_to_many(lexicon: Lexicon, whole_words: bool = False) -> Lexicon:
    """Leave a symbol to none if several words mean it, as published; `whole_words`: drop these words, as coded.

    In the code words may share symbols if they differ by case alone, or by one letter at the end.
    """
    words = _by_symbol(lexicon)
    if not whole_words:
        return _kept(lexicon, lambda _, symbol: len(words[symbol]) == 1)
    gone = {word for sharing in words.values() for word in sharing if not all(_alike(word, one) for one in sharing)}
    return {word: symbols for word, symbols in lexicon.items() if word not in gone}


def _alike(one: str, other: str) -> bool:
    one, other = one.lower(), other.lower()
    return one == other or one[:-1] == other or one == other[:-1]


def find(pairs: Pairs, aligner: Aligner = "model1", share: float = LINKS) -> list[Entry]:
    """Find lexemes and types: words are of one type that have a context in common, in source and target.

    A type in which a lexeme has several forms (ate, eaten) is divided, by the contexts that such lexemes have among
    themselves. Words that are alone, and those of what cannot be divided, are of no type (ALONE).
    """
    meaning = lexemes(explained(frequent(align(pairs, aligner), pairs, share), pairs))
    for phrase in {token for source, target in pairs for token in {*source} & {*target} if JOINED in token}:
        meaning[phrase] = (phrase,)
    types = _types(pairs, meaning)
    large = sorted((words for words in types if len(words) > 1), key=lambda words: (-len(words), words))
    found = [Entry(f"t{number}", word, meaning[word]) for number, words in enumerate(large, 1) for word in words]
    return found + [Entry(ALONE, word, meaning[word]) for word in sorted(meaning.keys() - {one.word for one in found})]


def _types(pairs: Pairs, meaning: Mapping[str, Side]) -> list[list[str]]:
    """Words that have a context in common, divided until no lexeme has two of them."""
    left, types = dict(meaning), list[list[str]]()
    while left:
        again: dict[str, Side] = {}
        for alike in components(contexts(pairs, left).values(), left):
            forms = Counter(left[word] for word in alike)
            types.append([word for word in alike if forms[left[word]] == 1])
            again |= {word: left[word] for word in alike if forms[left[word]] > 1}
        left = again if len(again) < len(left) else {}
    return types


def contexts(pairs: Pairs, meaning: Mapping[str, Sequence[str]]) -> dict[tuple[Side, Side], set[str]]:
    """By what is left of an example without a word and its symbols, the words that stand there."""
    found: dict[tuple[Side, Side], set[str]] = defaultdict(set)
    for source, target in {(tuple(source), tuple(target)) for source, target in pairs}:
        for word in {*source} & meaning.keys():
            holes = {symbol: f"{_HOLE}{place}" for place, symbol in enumerate(meaning[word])}
            without = tuple([_HOLE if one == word else one for one in source])
            found[without, tuple([holes.get(one, one) for one in target])].add(word)
    return found


def components(together: Iterable[Iterable[str]], words: Iterable[str]) -> list[list[str]]:
    """The connected components of words, some of which are together."""
    leader = {word: word for word in words}

    def lead(word: str) -> str:
        while leader[word] != word:
            leader[word] = word = leader[leader[word]]
        return word

    for some in together:
        first, *others = sorted(some)
        for other in others:
            leader[lead(other)] = lead(first)
    found = defaultdict(list)
    for word in sorted(leader):
        found[lead(word)].append(word)
    return list(found.values())


def published_partners(pairs: Pairs, lexicon: Lexicon) -> Partners:
    """As published: words that share a whole context in the source, and those that are connected by such.

    The paper asks for one part of speech as well, by a tagger for English; that is left out.
    """
    found = defaultdict(set)
    for source in {tuple(source) for source, _ in pairs}:
        for place, word in enumerate(source):
            if word in lexicon:
                found[source[:place], source[place + 1 :]].add(word)
    return others_of(components(found.values(), lexicon))


def others_of(groups: Iterable[Sequence[str]]) -> Partners:
    """For each word of some groups, the others of its group."""
    return {word: Others(alike, place) for alike in groups for place, word in enumerate(alike)}


def coded_partners(pairs: Pairs, lexicon: Lexicon) -> Partners:
    """As coded: a window around one word equals that around another, less what the code does to windows.

    It takes the ends of the window from the wrong side, so that it is the whole source, or its last token alone for the
    second token. The first word of a pair is replaced, within other tokens too; the second must be inside its source.
    Of a word's occurrences in a source the first counts, and in sources of one token none.
    """
    inside, anywhere = defaultdict(set), defaultdict(set)
    for source in {tuple(source) for source, _ in pairs if len(source) > 1}:
        for word in {*source} & lexicon.keys():
            place = source.index(word)
            window = slice(min(0, place - _WINDOW), max(len(source), place + _WINDOW + 1))
            anywhere[word].add(" ".join(source[window]))
            if 0 < place < len(source) - 1:
                inside[word].add(" ".join(source[window]))
    found = {word: {word} for word in lexicon}
    for one, other in combinations(sorted(lexicon), 2):
        if {text.replace(one, other) for text in anywhere[one]} & inside[other]:
            found[one].add(other)
            found[other].add(one)
    groups = {frozenset(group): sorted(group) for group in found.values()}  # a word may be in several
    own = {word: groups[frozenset(group)] for word, group in found.items()}
    return {word: Others(group, group.index(word)) for word, group in own.items()}


def agreement(pairs: Pairs, entries: Sequence[Entry]) -> dict[str, tuple[int, int]]:
    """How often exchanges within each type are right on the training data themselves.

    For two words of a type in sources that are equal otherwise, the targets are to be equal but for their symbols.

    Returns:
        by type: how many such pairs of examples agree, and how many there are.
    """
    typed = {entry.word: entry for entry in entries if entry.type != ALONE}
    groups: dict[tuple[str, Side], Counter[Side]] = defaultdict(Counter)
    for (source, target), words in contexts(pairs, {word: entry.symbols for word, entry in typed.items()}).items():
        for word in words:
            groups[typed[word].type, source][target] += 1
    found = dict.fromkeys((entry.type for entry in typed.values()), (0, 0))
    for (name, _), targets in groups.items():
        right, of = found[name]
        found[name] = right + sum(comb(count, 2) for count in targets.values()), of + comb(targets.total(), 2)
    return found


def write(path: Path, entries: Sequence[Entry]) -> None:
    """Write a lexicon: the names of the columns, then a word a line; spaces between the tokens of a phrase.

    Raises:
        DataError: a token has a space or a control character in it, so that `read` would read another one.
    """
    for token in (token for one in entries for unit in (one.word, *one.symbols) for token in unit.split(JOINED)):
        if " " in token or not _writable(token):
            raise DataError(
                f"{path}: a lexicon cannot hold the token {token!r}, which has a space or a control character in it: "
                "change the data, or leave out --write-lexicon (in Python write_lexicon=)"
            )
    lines = ["\t".join(HEADER), *("\t".join([one.type, one.word, *one.symbols]) for one in entries)]
    with atomic_path(path) as temporary:
        temporary.write_text("\n".join(lines).replace(JOINED, " ") + "\n", "utf-8")


def read(path: Path) -> list[Entry]:
    """Read a lexicon: type, word and one or more symbols between tabs, of all words in the order to exchange them in.

    Raises:
        DataError: a line has fewer columns, or lines contradict each other.
    """
    found: dict[str, Entry] = {}
    lexeme: dict[str, Side] = {}  # of each symbol
    forms: dict[tuple[str, Side], str] = {}
    for number, line in enumerate(read_text(path).split("\n"), 1):  # other ends of lines may be in words
        name, *units = [column.strip(" \r") for column in line.split("\t")]
        if (name, *units) == HEADER or not line.strip():
            continue
        place = f"{path}, line {number}"
        if not name or len(units) < 2 or not all(unit and _writable(unit) for unit in units):
            raise DataError(f"{place}: found {line!r:.60}, expected type, word and symbols between tabs")
        word, *symbols = (JOINED.join(filter(None, unit.split(" "))) for unit in units)
        entry = Entry(name, word, tuple(symbols))
        contradiction = _contradiction(entry, found, lexeme, forms)
        if contradiction:
            raise DataError(
                f"{place}: {contradiction}; expected each word once, with the symbols of another in the same order, or "
                "none of them"
            )
        found[word] = entry
        forms[name, entry.symbols] = word
        lexeme |= dict.fromkeys(symbols, entry.symbols)
    return [*found.values()]


def _writable(text: str) -> bool:
    """Whether a text has no control characters. Others that are not seen, such as joiners, are part of words."""
    return not any(category(letter) == "Cc" for letter in text)


def _contradiction(
    entry: Entry, found: Mapping[str, Entry], lexeme: Mapping[str, Side], forms: Mapping[tuple[str, Side], str]
) -> str:
    """How an entry contradicts those before it; empty if it does not."""
    if entry.word in found:
        return f"{entry.word!r} is there already"
    if any(lexeme.get(symbol, entry.symbols) != entry.symbols for symbol in entry.symbols):
        return f"{entry.word!r} shares a symbol with a word that has others, or another order of them"
    same = None if entry.type == ALONE else forms.get((entry.type, entry.symbols))
    return "" if same is None else f"{same!r} means the same and is of the type {entry.type!r} too: no way to choose"


def check(path: str, entries: Sequence[Entry], pairs: Pairs) -> None:
    """Raise DataError if some word is in the data, but nothing that it is said to mean ever is in the same example.

    A lexicon that was found may have symbols of a word that are never together in an example, and is accepted.
    """
    meaning = {entry.word: entry.symbols for entry in entries}
    seen, right = set[str](), set[str]()
    for source, target in pairs:
        here = {*source} & meaning.keys()
        seen |= here
        right |= {word for word in here if any(symbol in target for symbol in meaning[word])}
    if wrong := sorted(seen - right):
        some = ", ".join(wrong[:5]) + (", ..." if wrong[5:] else "")
        raise DataError(
            f"{path}: {len(wrong):,} of {len(seen):,} words that the data have are never beside their symbols: {some}; "
            "correct these lines or leave them out"
        )
