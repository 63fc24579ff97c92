"""Which columns of a table are sources and targets: by option, or by the names that people usually give them."""

import difflib
import warnings
from collections.abc import Sequence

from pydantic import BaseModel, Field

from compgen.errors import DataError, Remark

USUAL = {
    "source": (
        *("source", "src", "input", "inputs", "question", "utterance", "command", "commands", "sentence", "text"),
        *("nl", "prompt", "instruction"),
    ),
    "target": (
        *("target", "tgt", "trg", "output", "outputs", "query", "sql", "logical_form", "logicalform", "lf", "funql"),
        *("program", "parse", "meaning", "mr", "action", "actions", "answer", "completion", "response"),
    ),
}
TAGS = ("tags", "features", "feats", "msd")  # of an inflected form, beside `lemma` and `form`


class Columns(BaseModel):
    """The names of the columns that hold sources and targets; None where the usual names are to be looked for."""

    source: str | None = Field(
        None,
        description="Column of sources; by default found by name.",
        json_schema_extra={"metavar": "NAME"},
    )
    target: str | None = Field(
        None,
        description="Column of targets; by default found by name.",
        json_schema_extra={"metavar": "NAME"},
    )

    @property
    def given(self) -> dict[str, str]:
        """The names that were given, by side."""
        return {side: name for side, name in (("source", self.source), ("target", self.target)) if name is not None}

    def renaming(self, found: Sequence[str], place: str) -> dict[str, str]:
        """Return for each column its name in a dataset: `source` and `target` for the two sides.

        Another column that has the name of a side keeps its content as `source_column` or `target_column`. What is
        chosen by other names than these is said in a `Remark`.

        Raises:
            DataError: a side is not found, or there are several columns that it may be.
        """
        chosen = {_side(side, self.given.get(side), found, place): side for side in USUAL}
        if len(chosen) < len(USUAL):
            raise DataError(f"{place}: the column {next(iter(chosen))!r} cannot be both source and target")
        if not self.given and set(chosen) != set(USUAL):
            names = " and ".join(map(repr, chosen))
            warnings.warn(f"{place}: read the columns {names} as source and target", Remark, stacklevel=2)
        return {
            name: chosen.get(name, f"{name}_column" if name in USUAL and name not in chosen else name) for name in found
        }


USUALLY = Columns()


def looks_like_names(fields: Sequence[str]) -> bool:
    """Whether the fields of a first line are names of columns, a source's and a target's or a word's among them."""
    names = [plain(field) for field in fields]
    return len({*names}) == len(names) and (
        words_columns(fields) is not None or all(any(name in usual for name in names) for usual in USUAL.values())
    )


def words_columns(found: Sequence[str]) -> tuple[str, str, str] | None:
    """Return the columns of lemmas, forms and tags if there are such."""
    names = {plain(name): name for name in found}
    tags = next((names[name] for name in TAGS if name in names), None)
    return (names["lemma"], names["form"], tags) if tags and {"lemma", "form"} <= set(names) else None


def plain(name: str) -> str:
    """Return a name as USUAL has it: in small letters, joined by underscores."""
    return "_".join(name.strip().strip('"').casefold().replace("-", " ").replace("_", " ").split())


def _side(side: str, given: str | None, found: Sequence[str], place: str) -> str:
    """Return the column of a side."""
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
    if usual:
        raise DataError(f"{place}: found {' and '.join(map(repr, usual))}: say which is the {side} by --{side} NAME")
    expected = f"{side!r} or another usual name ({', '.join(USUAL[side][1:6])}...); or say which by --{side} NAME"
    raise DataError(f"{place}: found the columns {listed}, expected {expected}")
