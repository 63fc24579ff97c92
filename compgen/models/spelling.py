"""How tokens of the data are written for a pretrained model's tokenizer, so that they can be read back.

T5's tokenizer has no `<`, `>` or `~`: it reads them as its unknown piece, and cannot write them. Qiu et al. (2022)
write `lb`, `rb` and `sim`, and their program puts the characters back wherever these letters stand, inside words too.
Here such a token has a word that no other token has, and whole words alone are read back.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from compgen.errors import DataError

NAMES = {"<": "lb", ">": "rb", "~": "sim"}  # as in Qiu et al. (2022)
NAMESAKES = 100  # tokens, at most, whose words differ only in the number at the end


class Spelling:
    """Writes tokens as words that a tokenizer keeps unchanged.

    `words` has the word of each token that is not written as itself.
    """

    def __init__(self, tokenizer: Any, words: Mapping[str, str]) -> None:
        self.tokenizer, self.words = tokenizer, dict(words)
        self.tokens = {word: token for token, word in words.items()}
        self._kept: dict[str, bool] = {}
        self._met: dict[str, str | None] = {}  # tokens that were not learnt

    @classmethod
    def of(cls, tokenizer: Any, tokens: Iterable[str]) -> "Spelling":
        """Return a spelling in which all these tokens differ; raises DataError if a token has no such word."""
        spelling = cls(tokenizer, {})
        distinct = sorted(set(tokens))
        taken = {token for token in distinct if spelling._keeps(token)}
        words = {}
        for token in distinct:
            if token not in taken:
                word = next((word for word in spelling._words(token) if word not in taken), None)
                if word is None:
                    raise DataError(f"token {token!r} cannot be written with the model's tokenizer: rename it")
                words[token] = word
                taken.add(word)
        return cls(tokenizer, words)

    def write(self, tokens: Iterable[str]) -> str:
        """Return the text of some tokens; one that was not learnt, and has no word either, is left as it is."""
        return " ".join(self.words.get(token) or self._unlearnt(token) or token for token in tokens)

    def read(self, text: str) -> list[str]:
        """Return the tokens of a text."""
        return [self.tokens.get(word, word) for word in text.split()]

    def lost(self, tokens: Iterable[str]) -> list[str]:
        """Return those of these tokens that cannot be written, sorted."""
        return sorted(token for token in set(tokens) if token not in self.words and self._unlearnt(token) is None)

    def _unlearnt(self, token: str) -> str | None:
        if token not in self._met:
            self._met[token] = token if self._keeps(token) else next(self._words(token), None)
        return self._met[token]

    def _words(self, token: str) -> Iterator[str]:
        """Yield words for a token that the tokenizer does not keep: characters by name, then with a number."""
        strange = "".join(character if self._keeps(character) else _name(character) for character in token)
        plain = "".join(
            character if character.isascii() and character.isalnum() else _name(character) for character in token
        )
        for number in ("", *range(2, NAMESAKES)):
            yield from (word for word in (f"{strange}{number}", f"{plain}{number}") if self._keeps(word))

    def _keeps(self, word: str) -> bool:
        """Return whether the tokenizer returns a word unchanged."""
        if word not in self._kept:
            ids = self.tokenizer(word, add_special_tokens=False).input_ids
            self._kept[word] = texts(self.tokenizer, [ids])[0].split() == [word]
        return self._kept[word]


def texts(tokenizer: Any, ids: Sequence[Sequence[int]]) -> list[str]:
    """Return the texts of sequences of a tokenizer's ids."""
    found: list[str] = tokenizer.batch_decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return found


def _name(character: str) -> str:
    """Return a character in letters: as in the paper, or its name in Unicode, or its number."""
    name = unicodedata.name(character, f"U{ord(character):x}")
    return NAMES.get(character) or "".join(letter for letter in name.lower() if letter.isalnum())
