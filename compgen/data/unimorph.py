"""Words with their analyses, as SIGMORPHON 2018 and UniMorph publish them: examples of inflection.

A line of a file is lemma TAB form TAB tags, the tags joined by semicolons. It becomes the example

    h a b l a r V IND PST 3 SG PFV  →  h a b l ó        lemma and tags to form: inflection

and swapped, form to lemma and tags, one of analysis. Each character is a token, a blank is the token `␣`, and each tag
is a token. Letters are lower-cased, in Turkish and its kin with dots kept apart (I to ı, İ to i), and text is in NFC.
So a token that begins with a capital or a digit is a tag, and no other is.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from compgen.data.content import read_text
from compgen.data.examples import TRAIN, Dataset
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError

BLANK = "␣"
DOTTED = ("turkish", "azeri", "azerbaijani", "crimean-tatar", "tur", "aze", "crh")  # languages with both i and ı
_EXPECTED = "lemma TAB form TAB tags, the tags joined by semicolons"

Word = tuple[str, str, tuple[str, ...]]  # lemma, form, tags


def read_words(path: str | Path) -> list[Word]:
    """Return the words of a file as they are written there; empty lines are skipped."""
    words = []
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            lemma, form, tags = (*map(str.strip, line.split("\t")), "", "")[:3]
            names = tuple(tag for tag in tags.split(";") if tag)
            if line.count("\t") != 2 or not (lemma and form and names):
                raise DataError(f"{path}, line {number}: found {line!r:.80}, expected {_EXPECTED}")
            words.append((lemma, form, names))
    if not words:
        raise DataError(f"{path}: no words: the file is empty")
    return words


def read(path: str | Path, split: str = TRAIN, language: str | None = None) -> Dataset:
    """Return the words of a file as examples of inflection.

    `language` matters where i has two capitals; by default it is taken from the file's name.
    """
    return dataset(read_words(path), split, language_of(path) if language is None else language, str(path))


def dataset(words: Iterable[Word], split: str = TRAIN, language: str = "", name: str = "words") -> Dataset:
    """Return words as examples of inflection; errors call them `name`."""
    pairs = []
    for number, word in enumerate(words, start=1):
        try:
            pairs.append(inflection(word, language))
        except DataError as error:
            raise DataError(f"{name}, word {number}: {error}") from None
    if not pairs:
        raise DataError(f"{name}: no words: the file is empty")
    return Dataset.from_pairs(pairs, split)


def inflection(word: Word, language: str = "") -> tuple[list[str], list[str]]:
    """Return a word as tokens: lemma and tags, and form."""
    lemma, form, tags = word
    for text in (lemma, form):
        for letter in characters(text, language):
            if is_tag(letter):
                raise DataError(f"found {letter!r} in {text!r}, expected letters: capitals and digits stand for tags")
            if why := why_not_data(letter):
                raise DataError(f"found {letter!r} in {text!r:.80}, which {why}")
    for tag in tags:
        if why := why_not_data(tag):
            raise DataError(f"found the tag {tag!r:.80}, which {why}")
        if not is_tag(tag):
            raise DataError(f"found the tag {tag!r}, expected tags that begin with a capital or a digit")
    return [*characters(lemma, language), *tags], characters(form, language)


def characters(text: str, language: str = "") -> list[str]:
    """Return the tokens of a lemma or form: its characters in lower case, blanks as BLANK."""
    text = unicodedata.normalize("NFC", text)  # a decomposed İ is an I at first
    if language.lower() in DOTTED:
        text = text.replace("I", "ı").replace("İ", "i")
    return [BLANK if letter.isspace() else letter for letter in unicodedata.normalize("NFC", text.lower())]


def joined(tokens: Iterable[str]) -> str:
    """Return the letters of a word as it is written: what `characters` took apart."""
    return "".join(" " if token == BLANK else token for token in tokens)


def is_tag(token: str) -> bool:
    """Whether a token is a tag and not a character of a word."""
    return token[:1].isupper() or token[:1].isdigit()


def split_tags(tokens: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return lemma and tags of a source of inflection (or a target of analysis); tags begin with the first one."""
    first = next((place for place, token in enumerate(tokens) if is_tag(token)), len(tokens))
    return list(tokens[:first]), list(tokens[first:])


def rare_tags(words: Dataset, least: int = 2, most: int = 20) -> list[str]:
    """Return the tags in `least` to `most` examples of inflection; the defaults are those of R&R's reference."""
    held = Counter(tag for source, _ in words.pairs() for tag in set(split_tags(source)[1]))
    rare = sorted(tag for tag, count in held.items() if least <= count <= most and tag[0].isupper())
    if not rare:
        raise DataError(f"no tag is rare: each is in fewer than {least} of {len(words):,} words or in more than {most}")
    return rare


def language_of(path: str | Path) -> str:
    """Return the language that a file is named after: `crimean-tatar` for `crimean-tatar-dev`, `tur` for `tur.txt`."""
    return re.split(r"-(?:train|dev|test)\b|\.", Path(path).name)[0]
