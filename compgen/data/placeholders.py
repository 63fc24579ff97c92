"""Placeholders for names, so that what is learnt about one name holds for all; and names put back.

    where is new york    ( loc ( new york ) )
    where is name0       ( loc ( name0 ) )        names: {"name0": "new york"}

Names are those of a list, or what sources and targets share (`shared_names`). In each source the longest names are
replaced from left to right, and in its target those that its source has: a target's other names cannot be told from the
source. Placeholders are numbered from 0 in the order of the source. No token of the data looks like one. So the names
can be put back exactly, in predictions too.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import polars as pl

from compgen.data.content import lines_as_they_come, malformed, name_of, read_text, shown, suffix_of
from compgen.data.examples import PREDICTED, Dataset
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError, UserError, tell

NAMES = "names"  # the column with the names of an example: a JSON object from placeholders to names
USUAL = "name"
Names = dict[tuple[str, ...], str]  # from the tokens of a name to its type, which placeholders begin with


def read_names(path: str | Path, usual: str = USUAL) -> Names:
    """Return the names in a file: a name a line, its tokens separated by spaces, and perhaps TAB and a type.

    Raises:
        DataError: a line has no name, a name has two types, or a type ends in a digit or has a space.
    """
    names, file = Names(), name_of(path)
    for number, line in enumerate(read_text(path).splitlines(), start=1):
        if line.strip():
            text, _, kind = line.partition("\t")
            name, kind = tuple(text.split()), kind.strip() or usual
            if not name or not _is_type(kind):
                raise malformed(file, number, shown(line), "a name, or a name TAB a type that ends in no digit")
            if names.setdefault(name, kind) != kind:
                raise malformed(file, number, f"{' '.join(name)!r} as {kind}", f"{names[name]} as before")
    if not names:
        raise DataError(f"{file}: no names: the file is empty")
    return names


def names_of(
    given: "Mapping[str | tuple[str, ...], str] | Iterable[str | tuple[str, ...]]", usual: str = USUAL
) -> Names:
    """Return names, each a string with spaces between tokens or a tuple of tokens, with their types or the usual one.

    Raises:
        UserError: these are not names, a name has no tokens, or one of them is empty or has a space in it.
    """
    kinds = given if isinstance(given, Mapping) else {}
    if not isinstance(given, Iterable):
        raise UserError(f"found {given!r:.60}, expected names")
    names: Names = {}
    for name in given:
        tokens = tuple(name.split()) if isinstance(name, str) else name
        if not isinstance(tokens, tuple) or not tokens or not all(map(_is_token, tokens)):
            raise UserError(
                f"found the name {name!r:.60}, expected a string of tokens, or a tuple of them, none with a space in it"
            )
        names[tokens] = kinds.get(name, usual)
    return names


def shared_names(dataset: Dataset, most: float = 0.25, usual: str = USUAL) -> Names:
    """Return what sources and targets share literally, the most tokens at a time.

        copied = tokens with a letter or digit, and no space, that each example has on both sides or on neither,
                 in at most the share `most` of all examples, or in one
        names  = from left to right, the longest spans of copied tokens in a source that its target has too

    Raises:
        DataError: nothing is shared.
        UserError: `most` is no share.
    """
    if not 0 < most <= 1:
        raise UserError(f"most {most!r}: expected a share of the examples, above 0 and at most 1")
    either, both = Counter[str](), Counter[str]()
    for source, target in dataset:
        either.update({*source, *target})
        both.update(set(source) & set(target))
    limit = max(1, most * len(dataset))
    copied = {
        token
        for token, count in both.items()
        if count == either[token] and count <= limit and any(map(str.isalnum, token)) and token.split() == [token]
    }
    names = {span: usual for source, target in dataset for span in _shared_spans(source, target, copied)}
    if not names:
        raise DataError("found no names: no token is on both sides of each example that has it; give a list of names")
    return names


def _shared_spans(source: list[str], target: list[str], copied: set[str]) -> Iterable[tuple[str, ...]]:
    """Yield the longest spans of copied tokens of a source that its target has too, from left to right."""
    place = 0
    while place < len(source):
        end = place
        while end < len(source) and source[end] in copied and _has(target, source[place : end + 1]):
            end += 1
        if end > place:
            yield tuple(source[place:end])
        place = max(end, place + 1)


def _has(tokens: list[str], span: list[str]) -> bool:
    return any(tokens[place : place + len(span)] == span for place in range(len(tokens) - len(span) + 1))


def mask(dataset: Dataset, names: Names) -> Dataset:
    """Return a dataset with placeholders for names, and what they stand for in the column NAMES.

    Raises:
        UserError: a type ends in a digit, or has a space.
        DataError: there is such a column already.
    """
    if NAMES in dataset.frame.columns:
        raise DataError(f"found a column {NAMES!r}, expected data without placeholders")
    for kind in names.values():
        if not _is_type(kind):
            raise UserError(f"found {kind!r} for placeholders, expected text without spaces that ends in no digit")
    prefixes = _prefixes(dataset, names.values())
    finder = _Finder(names)
    sources, targets, found_names = [], [], []
    for source, target in dataset:
        placeholders: dict[tuple[str, ...], str] = {}
        numbers = Counter[str]()
        for name in dict.fromkeys(finder.spans(source)):
            kind = names[name]
            placeholders[name] = f"{prefixes[kind]}{numbers[kind]}"
            numbers[kind] += 1
        of_example = _Finder(placeholders)
        sources.append(of_example.replaced(source))
        targets.append(of_example.replaced(target))
        found = {placeholder: " ".join(name) for name, placeholder in placeholders.items()}
        found_names.append(json.dumps(found, ensure_ascii=False))
    masked = dataset.with_sides(source=sources, target=targets).frame
    return Dataset(masked.with_columns(pl.Series(NAMES, found_names, dtype=pl.String)))


def names_in(masked: Dataset) -> list[dict[str, str]]:
    """Return what the placeholders of each example stand for.

    Raises:
        DataError: `mask` did not make this dataset.
    """
    if NAMES not in masked.frame.columns:
        raise DataError(f"found no column {NAMES!r}, expected what `cgen data mask` wrote")
    found = []
    for number, text in enumerate(masked.frame[NAMES].to_list(), start=1):
        try:
            names = json.loads(text)
            if not (isinstance(names, dict) and all(isinstance(name, str) for name in names.values())):
                raise ValueError
        except (ValueError, TypeError, RecursionError):
            raise DataError(f"example {number}: found {shown(text)} in the column {NAMES!r}, expected names") from None
        found.append(names)
    return found


def unmask(tokens: Iterable[str], names: Mapping[str, str]) -> list[str]:
    """Return tokens with names in place of their placeholders; others stay as they are."""
    return [part for token in tokens for part in (names[token].split() if token in names else [token])]


def unmasked(predicted: Dataset, masked: Dataset) -> tuple[Dataset, int]:
    """Return predictions with names in place of placeholders, and how many placeholders have no name.

    Args:
        predicted: predictions for the sources of `masked`, in its order. Where there is a column `rank`, all rows from
            a rank of 1 on are of one source.
        masked: what `mask` made.

    Raises:
        DataError: the sources are not those of `masked`.
    """
    names = names_in(masked)
    ranks = predicted.frame.get_column("rank", default=None)
    rows = range(len(predicted)) if ranks is None else ((ranks == 1).cum_sum() - 1).to_list()
    asked = masked.frame["source"].to_list()
    known = {placeholder for one in names for placeholder in one}
    sources, targets = [], []
    left, row = 0, -1
    for number, (row, (source, target)) in enumerate(zip(rows, predicted, strict=True), start=1):
        if not 0 <= row < len(asked) or asked[row] != source:
            expected = repr(" ".join(asked[row]))[:80] if 0 <= row < len(asked) else "a row of rank 1 or no more rows"
            found = f"example {number}: found {' '.join(source)!r:.80}"
            raise DataError(f"{found}, expected {expected}, as was masked; several answers to a source are for .jsonl")
        sources.append(unmask(source, names[row]))
        targets.append(unmask(target, names[row]))
        left += sum(token in known and token not in names[row] for token in target)
    if row + 1 < len(asked):
        raise DataError(f"found predictions for {row + 1:,} sources, expected {len(asked):,}, as many as were masked")
    restored = predicted.with_sides(source=sources, target=targets).frame
    return Dataset(restored.drop(NAMES, strict=False)), left


def predictions(path: str, asked: Dataset) -> Dataset:
    """Load predictions for some sources; lines (.txt, or -) are targets, one for each, unless they begin with IN:.

    Raises:
        DataError: there are not as many lines as sources, or a line has several answers.
    """
    from compgen.data.catalog import load
    from compgen.data.formats import read_dataset

    if path != "-" and suffix_of(path) != ".txt":
        return load(path, answers=True)
    lines = [line for some in lines_as_they_come(path) for line in some]
    if lines and lines[0].startswith("IN:"):  # as `cgen data write` writes pairs to .txt
        return read_dataset(path, "scan", answers=True, content="\n".join(lines).encode())
    if any("\t" in line for line in lines):
        raise DataError(f"{path}: found a TAB, as of several answers a line: write those of --best to .jsonl")
    targets = [line.split() for line in lines]
    if len(targets) != len(asked):
        raise DataError(f"{path}: found {len(targets):,} lines, expected {len(asked):,}, as many as examples")
    return Dataset.from_pairs(zip((source for source, _ in asked), targets, strict=True), PREDICTED)


def _is_token(token: object) -> bool:
    """Whether this can be a token of a name: names are kept as text, with spaces between tokens."""
    return isinstance(token, str) and token.split() == [token]


def _is_type(kind: object) -> bool:
    return isinstance(kind, str) and bool(re.fullmatch(r"\S*[^\s\d]", kind)) and not why_not_data(kind)


def _prefixes(dataset: Dataset, kinds: Iterable[str]) -> dict[str, str]:
    """Return for each type what its placeholders begin with: the type, with `_` as often as no token looks like one."""
    tokens = pl.concat([dataset.frame[side].explode().drop_nulls() for side in ("source", "target")]).unique()
    taken = {token.rstrip("0123456789") for token in tokens if token[-1:].isdigit()}
    prefixes: dict[str, str] = {}
    for kind in sorted(set(kinds)):
        prefix = kind
        while prefix in taken:
            prefix += "_"
        if prefix != kind:
            tell(
                f"placeholders are written {prefix}0, not {kind}0, as the data have such tokens themselves; a "
                f"predictor that learned {kind}0 does not know them"
            )
        taken.add(prefix)
        prefixes[kind] = prefix
    return prefixes


class _Finder:
    """Finds the longest of some spans of tokens, from left to right, and replaces them."""

    def __init__(self, spans: Mapping[tuple[str, ...], str]) -> None:
        self.by_span = spans
        self.by_first: dict[str, list[tuple[str, ...]]] = {}
        for span in sorted(spans, key=len, reverse=True):
            self.by_first.setdefault(span[0], []).append(span)

    def spans(self, tokens: Sequence[str]) -> list[tuple[str, ...]]:
        """Return the spans that there are."""
        return [part for part in self._parts(tokens) if part in self.by_span]

    def replaced(self, tokens: Sequence[str]) -> list[str]:
        """Return tokens with what each span is replaced by."""
        return [
            token for part in self._parts(tokens) for token in ([self.by_span[part]] if part in self.by_span else part)
        ]

    def _parts(self, tokens: Sequence[str]) -> list[tuple[str, ...]]:
        """Return tokens in spans, and the others one by one."""
        parts: list[tuple[str, ...]] = []
        place = 0
        while place < len(tokens):
            candidates = self.by_first.get(tokens[place], ())
            fitting = (span for span in candidates if tuple(tokens[place : place + len(span)]) == span)
            parts.append(next(fitting, (tokens[place],)))
            place += len(parts[-1])
        return parts
