"""GeoQuery and Scholar as text2sql-data publishes them (Finegan-Dollak et al., ACL 2018), variables filled in.

A file is a JSON list. An entry is a query, with variables in it, and the questions that ask for it:

    {"sql": ["SELECT ... = \"city0\" ;", ...], "query-split": "train",
     "sentences": [{"text": "where is city0", "question-split": "dev", "variables": {"city0": "new york"}}, ...]}

Files with logical forms have `logic` instead of `sql`. Pairs are made as in the reference code of GECA (Andreas, ACL
2020), so that figures can be compared:

1. Only the first query of an entry counts; the others are further ways to write it.
2. Spaces are put around `"`, `(` and `)` in the query, not in the question.
3. In both, each variable's name is replaced by its value wherever the letters occur. A name without a value stays, as
   `year0` in one pair of Scholar.
4. Both are split at white space; case is kept.

Deviation, which changes no pair of the published files: longer names are replaced first, so that `city1` does not spoil
`city10`. The data have editions. The authors' counts are of `geography.json` at text2sql-data's commit 0da03bc and of
`scholar.json` at 8bda287. In later ones, such as 5050bad, which our figures are of, some queries are mended: train and
dev of the query split differ in 18 of 695 pairs and in 2 of 502. `geography-logic.txt` has one edition.
"""

import re
from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, BaseModel, Field, TypeAdapter, ValidationError

from compgen.data.content import LONGEST_LINE, read_text
from compgen.data.examples import TRAIN, Dataset, joined
from compgen.errors import DataError

Split = Literal["query", "question"]

_PARTS = (TRAIN, "dev", "test")
# Small corpora have ten folds in place of parts; GECA's reference takes these two for dev and test.
_FOLDS = {"8": "dev", "9": "test"}
_APART = re.compile(r'["()]')
_EXPECTED = (
    'a JSON list of {"sql" or "logic": [a query, ...], "query-split": ..., '
    '"sentences": [{"text": ..., "question-split": ..., "variables": {name: value, ...}}, ...]}'
)


class _Sentence(BaseModel):
    text: str
    split: str = Field(validation_alias="question-split")
    variables: dict[str, str]


class _Entry(BaseModel):
    queries: list[str] = Field(validation_alias=AliasChoices("sql", "logic"), min_length=1)
    split: str = Field(validation_alias="query-split")
    sentences: list[_Sentence]


def read(path: str | Path, split: Split) -> Dataset:
    """Return the pairs of question and query in a file: first the training ones, then `dev`, then `test`.

    The `query` split keeps all questions for a query in one part, so that a test query is new but for its values; the
    `question` split does not. A split that is a number is a fold: 8 is dev, 9 is test, the others are train.
    """
    pairs: dict[str, list[tuple[list[str], list[str]]]] = {part: [] for part in _PARTS}
    for number, entry in enumerate(_entries(path), start=1):
        query = _APART.sub(r" \g<0> ", entry.queries[0])
        for sentence in entry.sentences:
            where = f"{path}, entry {number}"
            part = _part(entry.split if split == "query" else sentence.split, where, split)
            pairs[part].append((_tokens(sentence.text, sentence, where), _tokens(query, sentence, where)))
    dataset = joined(Dataset.from_pairs(pairs[part], split=part) for part in _PARTS)
    if not len(dataset):
        raise DataError(f"{path}: no examples: found no question in it, expected {_EXPECTED}")
    return dataset


def _tokens(text: str, sentence: _Sentence, where: str) -> list[str]:
    """Return the tokens of a question or a query, with the sentence's values for the variables.

    Raises DataError for a text that grows beyond a line of data: values may hold names of variables, again and again.
    """
    for name in sorted(sentence.variables, key=len, reverse=True):
        value = sentence.variables[name]
        if len(text) + text.count(name) * len(value) > LONGEST_LINE:
            raise DataError(
                f"{where}: found values of variables that make a text of more than {LONGEST_LINE:,} characters, "
                "expected shorter ones"
            )
        text = text.replace(name, value)
    return text.split()


def _part(value: str, where: str, split: Split) -> str:
    """Return the part that a value of `query-split` or `question-split` stands for."""
    if value.isdecimal():
        return _FOLDS.get(value, TRAIN)
    if value not in _PARTS:
        raise DataError(
            f'{where}: found "{split}-split": {value!r}, expected train, dev, test, or the number of a fold'
        )
    return value


def _entries(path: str | Path) -> list[_Entry]:
    try:
        return TypeAdapter(list[_Entry]).validate_json(read_text(path, lines=False))
    except ValidationError as error:
        problem = error.errors()[0]
        # E.g. (3, "sentences", 0, "text"): people count from one.
        steps = [str(step + 1) if isinstance(step, int) else step for step in problem["loc"]]
        where = f", entry {' '.join(steps)}" if steps else ""
        found = f"found {problem['input']!r:.80}: {problem['msg']}"
        raise DataError(f"{path}{where}: {found}; expected {_EXPECTED}") from None
