"""SMCalFlow-CS (Yin et al., NAACL 2021): requests for events and about an organization, with programs in LISP.

A file is a part, with a JSON object on each line. Two of its keys are read, those of the download or of its recipe:

    {"source": "who is Kim 's boss", "target": "( Yield :output ( FindManager :recipient ( ... ) ) )", ...}
    {"utterance": ..., "plan": ..., ...}

Pairs are prepared as for CSL (Qiu et al., NAACL 2022, appendix A):

1. In sources a space is put around every punctuation character. Targets are split at spaces.
2. Training pairs that nobody can predict are in a split `dropped`: the text of a `PersonName`, or the last two digits
   of a number that is a `:year`, is not in the source, ignoring case.
3. Pairs that need both domains, an event with people found in the organization, are in the splits `dev-cross` and
   `test-cross`, the others in `dev` and `test`. Of training pairs, 8, 16 or 32 need both.
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import AliasChoices, BaseModel, Field, ValidationError

from compgen.data.content import read_text
from compgen.data.examples import TRAIN, Dataset, joined
from compgen.errors import DataError

PARTS = {TRAIN: "train", "dev": "valid", "test": "test"}  # of a dataset, and what files call them
DROPPED = "dropped"
CROSS = "-cross"
QUOTE = '"'

_PUNCTUATION = re.compile(f"[{re.escape(string.punctuation)}]")
_NAMES = re.compile(r'(?<!\S)PersonName " (.+?) "(?!\S)')
_YEARS = re.compile(r"(?<!\S):year # \( Number \d*(\d\d)(?:\.0)? \)")
_ORGANIZATION = {"FindReports", "FindManager", "FindTeamOf"}
_CHANGES = {"(": 1, ")": -1}
_EXPECTED = 'a JSON object with the strings "source" and "target" (or "utterance" and "plan")'


class _Record(BaseModel):
    source: str = Field(validation_alias=AliasChoices("source", "utterance"))
    target: str = Field(validation_alias=AliasChoices("target", "plan"))


def read(files: Mapping[str, str | Path]) -> Dataset:
    """Return the pairs of some files, each in the part that `files` maps to it: train, dev or test."""
    splits: dict[str, list[tuple[list[str], list[str]]]] = {}  # each split in one piece
    for part, path in files.items():
        for pair in _pairs(path):
            splits.setdefault(_split(part, *pair), []).append(pair)
    return joined(Dataset.from_pairs(pairs, split) for split, pairs in splits.items())


def words(text: str) -> list[str]:
    """Return the tokens of a source: cut at spaces and around each punctuation character."""
    return _PUNCTUATION.sub(r" \g<0> ", text).split()


def nesting(target: Sequence[str]) -> list[int]:
    """Return for each token of a target 1 if it opens a bracket, -1 if it closes one, else 0; 0 within quotes."""
    changes, depth, quoted = [], 0, False
    for number, token in enumerate(target, 1):
        quoted ^= token == QUOTE
        changes.append(0 if quoted else _CHANGES.get(token, 0))
        if not quoted and len(token) > 1 and ("(" in token or ")" in token):
            raise DataError(f"token {number}: found {token!r:.60}, expected spaces around each bracket")
        depth += changes[-1]
        if depth < 0:
            raise DataError(f"token {number}: found a closing bracket, expected one opened before")
    if quoted:
        count = list(target).count(QUOTE)
        raise DataError(f"found {count} tokens that are {QUOTE}, expected as many to end as to begin")
    if depth:
        raise DataError(f"found an end with {depth} brackets open, expected all closed")
    return changes


def is_cross_domain(target: Iterable[str]) -> bool:
    """Whether a target makes an event and looks for people in the organization."""
    tokens = set(target)
    return "CreateCommitEventWrapper" in tokens and not _ORGANIZATION.isdisjoint(tokens)


def _pairs(path: str | Path) -> list[tuple[list[str], list[str]]]:
    lines = enumerate(read_text(path).split("\n"), 1)
    pairs = [_pair(line, f"{path}, line {number}") for number, line in lines if line.strip()]
    if not pairs:
        raise DataError(f"{path}: no examples: the file is empty")
    return pairs


def _pair(line: str, place: str) -> tuple[list[str], list[str]]:
    try:
        record = _Record.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors()[0]
        raise DataError(f"{place}: found {line!r:.80}: {problem['msg']}; expected {_EXPECTED}") from None
    source, target = words(record.source), record.target.split()
    if not source or not target:
        raise DataError(f"{place}: found an empty {'target' if source else 'source'}, expected tokens on both sides")
    try:
        nesting(target)
    except DataError as error:
        raise DataError(f"{place}: {error}") from None
    return source, target


def _split(part: str, source: Sequence[str], target: Sequence[str]) -> str:
    if part == TRAIN:
        return part if _can_be_known(" ".join(source).lower(), " ".join(target)) else DROPPED
    return part + CROSS if is_cross_domain(target) else part


def _can_be_known(source: str, target: str) -> bool:
    """Whether a source has the names and the years of its target, perhaps as parts of words, as in the reference."""
    names = [" ".join(words(name)).lower() for name in _NAMES.findall(target)]
    return all(known in source for known in (*names, *_YEARS.findall(target)))
