"""Words with their analyses, as SIGMORPHON 2018 and UniMorph publish them: examples of inflection.

A line of a file is lemma TAB form TAB tags, the tags joined by semicolons (or as `tags_of` says). It is an example of
inflection, lemma and tags to form:

    h a b l a r V IND PST 3 SG PFV  →  h a b l ó

With sides swapped, form to lemma and tags, it is an example of analysis. Each character is a token, a space is the
token `␣`, and each tag is a token. A token that begins with a capital or a digit is a tag, and no other is: a capital
or a digit of a word has CAPITAL before it in its token, as in `^H a u s`. Text is in NFC. Readers of published data put
it in lower case.
"""

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import polars as pl

from compgen.data.content import decoded, malformed, name_of, read_bytes, shown
from compgen.data.examples import TRAIN, Dataset
from compgen.data.named import SPLITS, USUALLY, Columns, words_columns
from compgen.data.tables import Placed, check_one_split
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError

BLANK = "␣"
WORDS = "words"  # in `trained_on`: what was learnt of words, INFLECTION or ANALYSIS, by `task_of`
INFLECTION, ANALYSIS = "inflection", "analysis"
CAPITAL = "^"
DOTTED = ("turkish", "azeri", "azerbaijani", "crimean-tatar", "tur", "aze", "crh")  # languages with both i and ı
_EXPECTED = "lemma TAB form TAB tags, the tags joined by semicolons"
# In a line of TSV, where semicolons alone tell tags from splits and targets; the first is one by `is_tag`.
SOME_TAGS = r"\s*[\p{Uppercase}\d][^\s;]*(?:;[^\s;]+)*;?\s*"
SEVERAL = ";"  # in tags that are several
_SIGNS = (";", r"\|", ",", r"\s")  # what may part tags, the surest first
_ORDER = "lemma TAB form TAB tags, in this order"
_TAGGED = rf"^[^\t]*\t[^\t]*\t({SOME_TAGS})$"
BUNDLE = r"^\s*[^\s;]+(?:;[^\s;]+)+;?\s*$"  # several tags of a word, well written or not

Word = tuple[str, str, tuple[str, ...]]  # lemma, form, tags


def read_words(path: str | Path) -> list[Word]:
    """Return the words of a file as they are written there; empty lines are skipped."""
    words = [word for _, word in _words(read_bytes(path, lines=True), name_of(path))]
    if not words:
        raise DataError(f"{path}: no words: the file is empty")
    return words


def _words(content: bytes, name: str) -> Iterator[tuple[int, Word]]:
    """Yield the words in lines, with their numbers."""
    lines = [*numbered(decoded(content, name))]
    check_order(lines, name)
    for place, (number, line) in enumerate(lines):
        try:
            word = _word(line)
        except DataError as error:
            none = not place and not Path(name).suffix  # the file is named as words are, and has perhaps none
            other = "; a file without a suffix is read as words: name other data by theirs, as .tsv" * none
            raise DataError(f"{name}, line {number}: {error}{other}") from None
        yield number, word


def numbered(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of words that are not blank, with their numbers, from 1."""
    return ((number, line) for number, line in enumerate(re.split(r"\r?\n|\r", text), start=1) if line.strip())


def check_order(lines: Iterable[tuple[int, str]], name: str) -> None:
    """Raise DataError if lines of words, with their numbers, have their tags in second place, more of them than not.

    Single lines could be read nevertheless, because a form with a capital passes for a tag. But all lines of a file
    have one order.
    """
    fields = [(number, fields_of(line)) for number, line in lines]
    wrong = [
        (number, found[1])
        for number, found in fields
        if len(found) == 3 and _are_several(found[1], _SIGNS[:2]) and not _are_several(found[2], _SIGNS)
    ]
    if 2 * len(wrong) > len(fields):
        number, tags = wrong[0]
        raise malformed(name, number, f"the tags {tags!r:.80} in second place", f"{_ORDER} in all lines")


def _are_several(text: str, signs: tuple[str, ...]) -> bool:
    """Whether text is several tags, parted by the first of some signs; a form may have spaces, too."""
    return len(tags_of(text, signs)) > 1 and are_tags(text, signs)


def fields_of(line: str) -> list[str]:
    """Return the fields of a line of words, without empty ones after the third, which spreadsheets write.

    Earlier empty fields stay: one may be what is missing.
    """
    fields = [*map(str.strip, line.split("\t"))]
    while len(fields) > 3 and not fields[-1]:
        fields.pop()
    return fields


def _word(line: str) -> Word:
    fields = fields_of(line)
    lemma, form, tags = (*fields, "", "")[:3]
    names = tags_of(tags)
    if len(fields) != 3 or not (lemma and form and names):
        columns = f"{len(fields)} columns, " if len(fields) > 3 else ""
        empty = f"; column {fields.index('') + 1} is empty: delete it" if columns and "" in fields else ""
        raise DataError(f"found {columns}{shown(line)}, expected {_EXPECTED}{empty}")
    return lemma, form, names


def example(line: str) -> tuple[list[str], list[str]]:
    """Return a line of lemma TAB form TAB tags as an example of inflection.

    Raises:
        DataError: it is none; the error does not say where.
    """
    return inflection(_word(line))


def in_cells(cells: Sequence[object]) -> tuple[list[str], list[str]]:
    """Return a lemma, a form and tags, in cells of a table, as an example of inflection.

    Raises:
        DataError: one is missing, or they are no word; the error does not say where.
    """
    lemma, form = (cell.strip() if isinstance(cell, str) else "" for cell in cells[:2])
    tags = tags_in(cells[2])
    if not (lemma and form and tags):
        raise DataError(f"found {shown((*cells,))}, expected a lemma, a form, and tags joined by semicolons")
    return inflection((lemma, form, tags))


def read(path: str | Path, split: str = TRAIN, lower_as: str | None = None) -> Dataset:
    """Return the words of a file as examples of inflection; `lower_as` as for `characters`."""
    found = read_examples(read_bytes(path, lines=True), str(path), lower_as=lower_as)
    if found.frame.is_empty():
        raise DataError(f"{path}: no words: the file is empty")
    return Dataset(found.frame.with_columns(split=pl.lit(split)))


def read_examples(content: bytes, name: str, columns: Columns = USUALLY, lower_as: str | None = None) -> Placed:
    """Read lines of lemma TAB form TAB tags as examples of inflection; `lower_as` as for `characters`."""
    if columns.given:
        raise DataError(f"{name}: words have the columns lemma, form and tags: leave out --{next(iter(columns.given))}")
    numbers, pairs = [], []
    for number, word in _words(content, name):
        try:
            pairs.append(inflection(word, lower_as))
        except DataError as error:
            raise DataError(f"{name}, line {number}: {error}") from None
        numbers.append(number)
    return Placed(Dataset.from_pairs(pairs).frame, pl.Series(numbers, dtype=pl.Int64))


def write(dataset: Dataset, name: str) -> bytes:
    """Write examples of inflection as lines of lemma TAB form TAB tags."""
    check_one_split(dataset, f"{name}: unimorph")
    lines = []
    for number, (source, target) in enumerate(dataset.pairs(), start=1):
        try:
            lemma, tags = parts(source, target)
        except DataError as error:
            raise DataError(f"{name}: unimorph holds words: example {number:,}: {error}") from None
        bundle = ";".join(tags)
        if (read := tags_of(bundle)) != (*tags,):
            wrong = f"{bundle!r:.80}, which would be read as {len(read)} tags, not {len(tags)}: write jsonl"
            raise DataError(f"{name}: unimorph joins tags by semicolons: example {number:,}: found {wrong}")
        line = "\t".join([joined(lemma), joined(target), bundle])
        if not _is_read_as(line, source, target):
            wrong = f"{' '.join(source)!r:.80} and {' '.join(target)!r:.80}, which would be read otherwise: write jsonl"
            held = "unimorph holds words in NFC, without a space at an end"
            raise DataError(f"{name}: {held}: example {number:,}: found {wrong}")
        lines.append(f"{line}\n")
    return "".join(lines).encode()


def _is_read_as(line: str, source: list[str], target: list[str]) -> bool:
    """Whether the example that a line is read as is this one."""
    try:
        return example(line) == (source, target)
    except DataError:
        return False


def looks_like_words(lines: pl.Series) -> bool:
    """Whether lines of TSV are lemma, form and tags: all third fields are tags, and most are several."""
    if not lines.head(1).str.contains(_TAGGED).any():
        return False
    tags = lines.str.extract(_TAGGED)
    return not tags.has_nulls() and 2 * int(tags.str.contains(SEVERAL).sum()) > len(lines)


def untagged(lines: pl.Series) -> pl.Series:
    """Return which lines of TSV lack their tags, if most lines are words; otherwise none do.

    Where third fields name splits, a line without one is a training example. Lines are words if more than half of the
    third fields are joined by semicolons, and none is a usual name of a split.
    """
    third = lines.str.split("\t").list.get(2, null_on_oob=True).str.strip_chars()
    words = 2 * int(third.str.contains(BUNDLE).sum()) > len(lines) and not third.str.contains(SPLITS).any()
    return (third.fill_null("") == "") & words


def check_tagged(lines: pl.DataFrame, name: str) -> None:
    """Raise DataError if lines of TSV, `number` and `line`, are words, but some lack their tags."""
    if (lacking := untagged(lines["line"])).any():
        number, line = lines.filter(lacking).select("number", "line").row(0)
        splits = "if third fields are names of splits, write one here too, as train"
        raise malformed(name, number, f"{shown(line)}, without tags", f"{_EXPECTED}, as most lines have; {splits}")


def parts(source: Sequence[str], form: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return lemma and tags of an example of inflection.

    Raises:
        DataError: it is none.
    """
    lemma, tags = split_tags(source)
    letters = [tag for tag in tags if not is_tag(tag)]
    odd = [token for token in {*lemma, *form} if not is_letter(token)]
    wrong = None
    if not (lemma and tags):
        wrong = (
            f"the source {' '.join(source)!r:.80}, expected the letters of a lemma and tags (examples of inflection; "
            "swap those of analysis by `cgen data write --swap`)"
        )
    elif letters:
        wrong = (
            f"{letters[0]!r:.80} behind a tag, expected a lemma and then tags, which begin with a capital or a digit"
        )
    elif not form:
        wrong = f"an empty form of {''.join(lemma)!r:.80}, expected its letters"
    elif odd:
        wrong = f"{min(odd)!r:.80} in a lemma or form, expected tokens of one letter each"
    if wrong:
        raise DataError(f"found {wrong}")
    return lemma, tags


def dataset(words: Iterable[Word], split: str = TRAIN, lower_as: str | None = None, name: str = "words") -> Dataset:
    """Return words as examples of inflection, `lower_as` as for `characters`; errors call them `name`."""
    pairs = []
    for number, word in enumerate(words, start=1):
        try:
            pairs.append(inflection(word, lower_as))
        except DataError as error:
            raise DataError(f"{name}, word {number}: {error}") from None
    if not pairs:
        raise DataError(f"{name}: no words: the file is empty")
    return Dataset.from_pairs(pairs, split)


def inflection(word: Word, lower_as: str | None = None) -> tuple[list[str], list[str]]:
    """Return a word as tokens: lemma and tags, and form; `lower_as` as for `characters`."""
    lemma, form, tags = word
    if len(tags) == 1 and words_columns([lemma, form, *tags]):
        raise DataError("found a header line, expected words: delete it, or give the file the suffix .tsv")
    check_place(form, tags)
    sides = characters(lemma, lower_as), characters(form, lower_as)
    for text, letters in zip((lemma, form), sides, strict=True):
        for letter in letters:
            if why := why_not_data(letter):
                raise DataError(f"found {letter!r} in {text!r:.80}, which {why}")
    for tag in tags:
        if why := why_not_data(tag):
            raise DataError(f"found the tag {tag!r:.80}, which {why}")
        if not is_tag(tag):
            raise DataError(f"found the tag {tag!r}, expected tags that begin with a capital or a digit")
    return [*sides[0], *tags], sides[1]


def check_place(form: str, tags: Sequence[str]) -> None:
    """Raise DataError for a form that reads as several tags beside one tag: the two have changed places."""
    if len(tags) == 1 and _are_several(form, _SIGNS[:2]):
        raise DataError(f"found the tags {form!r:.80} in second place, expected {_ORDER}")


def characters(text: str, lower_as: str | None = None) -> list[str]:
    """Return the tokens of a lemma or form: its characters, spaces as BLANK, capitals and digits behind CAPITAL.

    With `lower_as`, the name of a language, in lower case by its rules: İ and I become i and ı where it has both.
    """
    text = unicodedata.normalize("NFC", text)  # a decomposed İ is an I at first
    if lower_as is not None:
        text = _lower(text, lower_as)
    return [_token(letter) for letter in text]


def _lower(text: str, language: str) -> str:
    if language.lower() in DOTTED:
        text = text.replace("I", "ı").replace("İ", "i")
    return unicodedata.normalize("NFC", text.lower())


def _token(letter: str) -> str:
    if letter.isspace():
        return BLANK
    return CAPITAL + letter if is_tag(letter) else letter


def joined(tokens: Iterable[str]) -> str:
    """Return the letters of a word as it is written: what `characters` took apart."""
    return "".join(" " if token == BLANK else token[-1] if is_letter(token) else token for token in tokens)


@functools.lru_cache(1 << 16)  # words repeat few letters and tags
def is_tag(token: str) -> bool:
    """Whether a token is a tag and not a character of a word."""
    return token[:1].isupper() or token[:1].isdecimal()  # a raised digit, as of a tone, is a letter


@functools.lru_cache(1 << 16)
def is_letter(token: str) -> bool:
    """Whether a token is a letter of a word: one character, or a capital or digit behind CAPITAL."""
    return (len(token) == 1 and not is_tag(token)) or (len(token) == 2 and token[0] == CAPITAL and is_tag(token[1]))


def split_tags(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return lemma and tags of a source of inflection (or a target of analysis); tags begin with the first one."""
    first = next((place for place, token in enumerate(tokens) if is_tag(token)), len(tokens))
    return list(tokens[:first]), list(tokens[first:])


def is_analysis(tokens: Sequence[str]) -> bool:
    """Whether tokens are the letters of a lemma, and then tags."""
    lemma, tags = split_tags(tokens)
    return bool(lemma and tags) and all(map(is_letter, lemma)) and all(map(is_tag, tags))


def task_of(dataset: Dataset) -> str | None:
    """Return INFLECTION if all sources are lemmas and tags, and targets forms; ANALYSIS if they are swapped."""
    pairs = dataset.pairs()
    for task, analysed, form in ((INFLECTION, 0, 1), (ANALYSIS, 1, 0)):
        if pairs and all(is_analysis(pair[analysed]) and all(map(is_letter, pair[form])) for pair in pairs):
            return task
    return None


def tags_in(value: object) -> tuple[str, ...]:
    """Return the tags in a cell of a table: text, or a list, in which only semicolons separate further tags."""
    if isinstance(value, str):
        return tags_of(value)
    if isinstance(value, list) and all(isinstance(text, str) for text in value):
        return tuple(tag for text in value for tag in tags_of(text, _SIGNS[:1]))
    return ()


@functools.lru_cache(1 << 16)  # words repeat few bundles
def tags_of(text: str, signs: tuple[str, ...] = _SIGNS) -> tuple[str, ...]:
    """Return the tags in text, parted by the first of `;`, `|`, commas and spaces that it has outside brackets.

    So `NOM(3,SG)` is one tag, and `Case=Nom,Acc|Number=Sing` are two.
    """
    plain = _without_brackets(text)
    ends = next((found for sign in signs if (found := [*re.finditer(sign, plain)])), [])
    places = [-1, *(end.start() for end in ends), len(text)]
    tags = (text[before + 1 : after].strip() for before, after in pairwise(places))
    return tuple(filter(None, tags))


def are_tags(text: str, signs: tuple[str, ...] = _SIGNS) -> bool:
    """Whether text is tags, one or several."""
    tags = tags_of(text, signs)
    return bool(tags) and all(map(is_tag, tags))


def _without_brackets(text: str) -> str:
    """Return text with `_` for each character from a bracket to the one that closes it, of whatever kind."""
    opened, pairs = list[int](), list[tuple[int, int]]()
    for place, letter in enumerate(text):
        if letter in "([{":
            opened.append(place)
        elif letter in ")]}" and opened:
            pairs.append((opened.pop(), place + 1))
    plain, done = "", 0
    for begin, end in sorted(pairs):
        if begin >= done:  # not within another pair
            plain, done = plain + text[done:begin] + "_" * (end - begin), end
    return plain + text[done:]


def language_of(path: str | Path) -> str:
    """Return the language that a file is named after: `crimean-tatar` for `crimean-tatar-dev`, `tur` for `tur.txt`."""
    return re.split(r"-(?:train|dev|test)\b|\.", Path(path).name)[0]
