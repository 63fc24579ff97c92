"""The vocabulary: tokens as the small integers that models count in.

The special symbols come first with fixed ids, so that a model, its export and the C++ runtime agree on them without
asking the vocabulary.
"""

import difflib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from compgen.errors import DataError

PAD, BOS, EOS, SEP, UNK = "<pad>", "<s>", "</s>", "→", "<unk>"
SPECIALS = (PAD, BOS, EOS, SEP, UNK)
PAD_ID, BOS_ID, EOS_ID, SEP_ID, UNK_ID = range(len(SPECIALS))
NEVER_WRITTEN = (PAD_ID, BOS_ID, UNK_ID)
NEVER_FIRST = (*NEVER_WRITTEN, EOS_ID, SEP_ID)  # an output begins with neither its end nor its separator

SPARES = tuple(f"<unk{number}>" for number in range(1, 9))  # ids for words unknown in training: see `Vocabulary.lend`

# Of ASCII's control characters, only white space can be meant: a TAB or a line end may be a token of a program. Control
# characters beyond ASCII do occur in published texts.
CONTROL = r"\x00-\x08\x0b\x0c\x0e-\x1f\x7f"
_CONTROL = re.compile(rf"[{CONTROL}\ud800-\udfff]")


def forbidden(position: int) -> tuple[int, ...]:
    """Return the ids that may not be written at a position of an output, counted from 0."""
    return NEVER_WRITTEN if position else NEVER_FIRST


@functools.lru_cache(1 << 16)  # data repeat few tokens
def why_not_data(token: str) -> str:
    """Return in a few words why a token cannot stand in data; empty if it can."""
    if token in SPECIALS:
        return "is a special symbol, which models need for themselves: write another token in its place"
    return "has a control character, or half of a surrogate pair" if _CONTROL.search(token) else ""


class Vocabulary:
    """An immutable, ordered set of tokens; a token's id is its place. The special symbols hold ids 0 to 4."""

    __slots__ = ("_ids", "_spares", "tokens")

    def __init__(self, tokens: Sequence[str]) -> None:
        """Make the vocabulary whose full list of tokens, special symbols included, is `tokens`."""
        self.tokens = tuple(tokens)
        if self.tokens[: len(SPECIALS)] != SPECIALS:
            found = " ".join(map(repr, self.tokens[: len(SPECIALS)])) or "nothing"
            raise DataError(f"a vocabulary begins with {' '.join(map(repr, SPECIALS))}: found {found}")
        try:
            "".join(self.tokens).encode()
        except (TypeError, UnicodeEncodeError):
            raise DataError("a vocabulary holds text in UTF-8: found a token that is none") from None
        self._ids = {token: number for number, token in enumerate(self.tokens)}
        if len(self._ids) < len(self.tokens):
            twice = next(token for number, token in enumerate(self.tokens) if self._ids[token] != number)
            raise DataError(f"a vocabulary holds each token once: found {twice!r} more than once")
        after = range(len(SPECIALS), len(SPECIALS) + len(SPARES))
        self._spares = after if self.tokens[after.start : after.stop] == SPARES else range(0)

    @classmethod
    def of(cls, token_lists: Iterable[Iterable[str]], spares: bool = False) -> "Vocabulary":
        """Return the vocabulary of all tokens in `token_lists`: special symbols, SPARES if asked for, tokens sorted."""
        tokens = {token for tokens in token_lists for token in tokens}
        first = SPECIALS + SPARES if spares else SPECIALS
        for special in first:
            if special in tokens:
                raise _special_in_data(special)
        return cls([*first, *sorted(tokens)])

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of data tokens. Special symbols are not data: put their ids in by `BOS_ID` and its like."""
        ids = []
        for token in tokens:
            number = self._ids.get(token, -1)
            if number < len(SPECIALS):
                raise _special_in_data(token) if number >= 0 else self._unknown(token)
            ids.append(number)
        return ids

    def knows(self, tokens: Iterable[str]) -> bool:
        """Whether all are tokens of data that have an id."""
        return all(self._ids.get(token, -1) >= len(SPECIALS) for token in tokens)

    def lend(self, tokens: Iterable[str]) -> tuple[list[int], dict[int, str]]:
        """Return the ids of a source that may have unknown words, and the word that each spare id stands for there.

        Each distinct unknown word gets the next of the vocabulary's spares, so that a network can tell them apart and
        copy them. When no spare is left, words are UNK_ID. Special symbols are a DataError.
        """
        source = self._data(tokens)
        unknown = dict.fromkeys(token for token in source if token not in self._ids)
        lent = dict(zip(self._spares, unknown, strict=False))
        return self.read(source, lent), lent

    def read(self, tokens: Iterable[str], lent: Mapping[int, str]) -> list[int]:
        """Return the ids of a target whose source `lend` has read; UNK_ID for words that neither knows.

        A special symbol has its own id: the target may be what a predictor wrote that has learned little.
        """
        spares = {token: number for number, token in lent.items()}
        return [spares.get(token, self._ids.get(token, UNK_ID)) for token in tokens]

    def decode(self, ids: Iterable[int], lent: Mapping[int, str] | None = None) -> list[str]:
        """Return the tokens of `ids`, special symbols included; for ids in `lent`, the words there (see `lend`)."""
        words, tokens = lent or {}, []
        for number in ids:
            if not 0 <= number < len(self.tokens):
                raise DataError(f"id {number} is outside the vocabulary, which has ids 0 to {len(self.tokens) - 1}")
            tokens.append(words.get(number, self.tokens[number]))
        return tokens

    def _data(self, tokens: Iterable[str]) -> list[str]:
        """Return the tokens; raise DataError if one is a special symbol, or one of the spares if there are any."""
        found = list(tokens)
        for token in found:
            if token in SPECIALS or (token in SPARES and self._spares):
                raise _special_in_data(token)
        return found

    def _unknown(self, token: str) -> DataError:
        near = difflib.get_close_matches(token, self.tokens[len(SPECIALS) :])
        hint = f"; did you mean {', '.join(map(repr, near))}?" if near else ""
        return DataError(f"unknown token {token!r}: not among the vocabulary's {len(self):,} tokens{hint}")

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: object) -> bool:
        return token in self._ids

    def __iter__(self) -> Iterator[str]:
        return iter(self.tokens)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.tokens == other.tokens

    def __hash__(self) -> int:
        return hash(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"


def _special_in_data(token: str) -> DataError:
    why = "is a special symbol and cannot stand in data, as models need it for themselves"
    return DataError(f"token {token!r} {why}: write another token in its place")
