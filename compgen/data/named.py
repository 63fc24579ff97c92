"""Which columns of a table are sources and targets: by option, or by the names that people usually give them."""

import difflib
import shlex
from collections.abc import Sequence
from typing import ClassVar

from pydantic import BaseModel, Field

from compgen.errors import DataError, tell

USUAL = {
    "source": (
        *("source", "src", "input", "inputs", "question", "utterance", "command", "commands", "sentence", "text"),
        *("nl", "prompt", "instruction"),
    ),
    "target": (
        *("target", "tgt", "trg", "output", "outputs", "query", "sql", "logical_form", "logicalform", "lf", "funql"),
        *("program", "parse", "semantic_parse", "meaning", "mr", "action", "actions"),
        *("answer", "completion", "response"),
    ),
}
BESIDE = ("id", "split")  # usual names of columns that are neither source nor target
PARTS = ("part", "set", "subset", "partition", "fold", "section")  # names of columns that may be meant to be `split`
SPLITS = r"(?i)^\s*(?:train|training|dev|val|valid|validation|test|gen|eval)(?:[-_.\w]*)\s*$"  # usual names of splits
ALONE = "sentences without targets are read from text (.txt), one a line"
CHATS = ("messages", "conversations")  # columns of chats: lists of messages, each with its role
TAGS = ("tags", "features", "feats", "msd")  # of an inflected form, beside `lemma` and `form`


class Columns(BaseModel):
    """The names of the columns that hold sources and targets; None where the usual names are to be looked for."""

    sides: ClassVar[tuple[str, ...]] = ("source", "target")  # that are looked for

    source: str | None = Field(
        None,
        description="Column of sources. By default, found by name.",
        json_schema_extra={"metavar": "NAME"},
    )
    target: str | None = Field(
        None,
        description="Column of targets. By default, found by name.",
        json_schema_extra={"metavar": "NAME"},
    )

    @property
    def given(self) -> dict[str, str]:
        """The names that were given, by side."""
        return {side: name for side, name in (("source", self.source), ("target", self.target)) if name is not None}

    @property
    def options(self) -> str:
        """The names that were given, as they follow in a command: with a space before, and empty if there are none."""
        return "".join(f" --{side} {shlex.quote(name)}" for side, name in self.given.items())

    def renaming(self, found: Sequence[str], place: str) -> dict[str, str]:
        """Return for each column its name in a dataset: `source` and `target` for the two sides.

        Only `sides` are looked for. Another column that has the name of a side keeps its content as `source_column` or
        `target_column`. A `Remark` names the columns chosen if they are not called `source` and `target`.

        Raises:
            DataError: a side is not found, or there are several columns that it may be.
        """
        chosen = {self._column(side, found, place): side for side in self.sides}
        if len(chosen) < len(self.sides):
            raise DataError(f"{place}: the column {next(iter(chosen))!r} cannot be both source and target")
        if not self.given and set(chosen) != set(self.sides):
            names = f"column{'s' * (len(chosen) > 1)} {' and '.join(map(repr, chosen))}"
            tell(f"{place}: read the {names} as {' and '.join(self.sides)}")
        kept = {name: f"{name}_column" for name in USUAL if name in found and name not in chosen}
        for name, other in kept.items():
            if other in found and other not in chosen:
                raise DataError(
                    f"{place}: {name!r} would be kept as {other!r}, of which there is one: rename one of them"
                )
        return {name: chosen.get(name, kept.get(name, name)) for name in found}

    def names(self, fields: Sequence[str]) -> bool:
        """Whether the fields of a first line are names of columns, as far as one can tell."""
        return looks_like_names(fields)

    def words(self, found: Sequence[str]) -> tuple[str, str, str] | None:
        """Return the columns of lemmas, forms and tags if there are such, and none of sides."""
        return None if self.given or {*self.sides} <= {*found} else words_columns(found)

    def _column(self, side: str, found: Sequence[str], place: str) -> str:
        """Return the column of a side."""
        given = self.given.get(side)
        listed = ", ".join(map(repr, found[:9])) or "(none)"
        if given is not None:
            if given in found:
                return given
            near = difflib.get_close_matches(given, found, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise DataError(f"{place}: found the columns {listed}, expected {given!r}, as --{side} says{hint}")
        if side in found:
            return side
        usual = [name for name in found if plain(name) in USUAL[side]]
        if len(usual) == 1:
            return usual[0]
        saying = f"by --{side} NAME (in Python {side}=)"
        if usual:
            raise DataError(f"{place}: found {' and '.join(map(repr, usual))}: say which is the {side} {saying}")
        expected = f"{side!r} or another usual name ({', '.join(USUAL[side][1:6])}...); or say which {saying}"
        expected += f"; {ALONE}" if len(found) == 1 else ""
        if {*found} & {*CHATS}:
            expected = "question and answer in columns of their own, as 'source' and 'target': chats are not read"
        raise DataError(f"{place}: found the columns {listed}, expected {expected}")


class SourceColumns(Columns):
    """The same for sources alone: targets are not read, and may be missing. A single column has the sources."""

    sides: ClassVar[tuple[str, ...]] = ("source",)

    def names(self, fields: Sequence[str]) -> bool:
        """Whether the fields of a first line are names of columns, with or without one of targets."""
        return looks_like_names(fields) or looks_like_sources(fields) or self.words(fields) is not None

    def words(self, found: Sequence[str]) -> tuple[str, str, str] | None:
        """Return the columns of lemmas and tags; forms are not looked at, and lemmas take their place."""
        if self.given or {*self.sides} <= {*found}:
            return None
        words = words_columns([*found, "form"])
        return words and (words[0], words[0], words[2])

    def _column(self, side: str, found: Sequence[str], place: str) -> str:
        """Return the column of sources; a name with spaces may be a source of a table without names."""
        alone = len(found) == 1 and plain(found[0]) not in USUAL["target"] and len(found[0].split()) == 1
        return found[0] if alone and not self.given else super()._column(side, found, place)


USUALLY = Columns()


def looks_like_names(fields: Sequence[str]) -> bool:
    """Whether the fields of a first line are names of columns, a source's and a target's or a word's among them."""
    names = [plain(field) for field in fields]
    return len({*names}) == len(names) and (
        words_columns(fields) is not None or all(any(name in usual for name in names) for usual in USUAL.values())
    )


def unread_split(found: Sequence[str]) -> str:
    """Return a remark on a column that may name splits and is not read as such; empty if there is none."""
    if "split" in found:
        return ""
    part = next((name for name in found if plain(name) in ("split", *PARTS)), None)  # perhaps `Split`
    return "" if part is None else f"the column {part!r} is not read: if it names train and test, call it 'split'"


def tell_unread_split(found: Sequence[str], place: str) -> None:
    """Issue a Remark on a column that may name splits and is not read as such, if there is one."""
    if part := unread_split(found):
        tell(f"{place}: {part}")


def looks_like_sources(fields: Sequence[str]) -> bool:
    """Whether the fields of a first line are the name of a column of sources, and of none but BESIDE it."""
    names = [plain(field) for field in fields]
    sides = [name for name in names if name not in BESIDE]
    return len({*names}) == len(names) and len(sides) == 1 and sides[0] in USUAL["source"]


def words_columns(found: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the columns of lemmas, forms and tags if there are such."""
    names = {plain(name): name for name in found}
    tags = next((names[name] for name in TAGS if name in names), None)
    return (names["lemma"], names["form"], tags) if tags and {"lemma", "form"} <= set(names) else None


def beside_words(name: str) -> str:
    """Return what a column beside those of words is called in a dataset, where `source` and `target` are the words."""
    return f"{name}_column" if name in USUAL else name


def unnamed_forms(found: Sequence[str]) -> tuple[str, str] | None:
    """Return the names of tags and of what may be forms, if there are lemmas, tags, and one more column, not `form`."""
    names = {plain(name): name for name in found}
    tags = next((name for name in TAGS if name in names), "")
    others = [name for name in names if name not in ("lemma", tags)]
    alone = tags and "lemma" in names and len(others) == 1 and others[0] not in ("form", *BESIDE)
    return (names[tags], names[others[0]]) if alone else None


def plain(name: str) -> str:
    """Return a name as USUAL has it: in small letters, joined by underscores."""
    return "_".join(name.strip().strip('"').casefold().replace("-", " ").replace("_", " ").split())
