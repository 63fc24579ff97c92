"""Substitution over span trees that were annotated: SUBS (Yang, Zhang and Yang 2022), as its program does it.

Each example has a list of spans, {"span": [first, last], "type": ...}, in words from 0, both ends included. A type is
a predicate of the target, an entity as `stateid#'ohio'`, or `span` for inner nodes. By inclusion the spans are a tree,
and each node has a program, made of those below it.

    for each predicate p of an example that is the type of a leaf, the first such:
        climb from the leaf while the program is p alone; P is the parent, of two children, with a program p ( ... )
        the argument of p: the words of P left and right of the node, and what is in the brackets of p
    exchange: the argument of p in one example for one of p in another; the words of p stay

A stretch of words is put only where one was. As in the program, the class of an argument is the predicate above it (the
paper: the outermost predicate of what is exchanged).
"""

import json
import operator
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from compgen.augmenters.base import HOST
from compgen.csl.rules import SEPARATOR
from compgen.data.examples import SCHEMA, TOKENS, Dataset
from compgen.data.random import SamplePurpose, words
from compgen.errors import DataError, ExhaustedError

INNER, NEGATION = "span", "exclude"
BLOCK, MANY = 1 << 17, 200_000  # exchanges made at a time; new ones that are enough to draw samples from
MOST = 200  # spans of an example: `compute` calls itself as deep as they nest
_NOUNS = frozenset({"state", "city", "river", "capital", "mountain", "place"})  # alone they mean all of their kind


@dataclass(eq=False)
class Span:
    """A node of a span tree: its words from `first` to `last`, and what it is."""

    first: int
    last: int
    type: str
    below: list["Span"] = field(default_factory=list)
    above: "Span | None" = None
    program: list[str] = field(default_factory=list)


class Argument(NamedTuple):
    """What is around the argument of a predicate, and the argument."""

    predicate: str
    row: int
    before: list[str]
    left: list[str]
    own: list[str]  # the words of the predicate
    right: list[str]
    after: list[str]
    opening: list[str]  # of the target, up to the predicate's bracket
    inner: list[str]
    closing: list[str]


_SCHEMA = {"predicate": pl.String, "row": pl.Int64} | dict.fromkeys(Argument._fields[2:], TOKENS)


@dataclass(frozen=True)
class Gold:
    """The arguments of the predicates of a dataset.

    Attributes:
        arguments: by example, in its order.
        left_out: why examples have none, by their row: spans that do not nest, or have no program.
    """

    arguments: list[Argument]
    left_out: dict[int, str]

    @classmethod
    def of(cls, dataset: Dataset, column: str) -> "Gold":
        """Read the spans in a column, lists or JSON texts of lists.

        Raises:
            DataError: there is no such column, or no example has spans that can be used.
        """
        if column in SCHEMA:
            raise DataError(f"found {column!r}, expected another column, with spans; targets in brackets need none")
        if column not in dataset.frame.columns:
            raise DataError(f"found the columns {', '.join(dataset.frame.columns)}, expected {column!r}, with spans")
        found: list[Argument] = []
        left_out: dict[int, str] = {}
        examples = dataset.frame.with_row_index("row").sort("source", "target")  # so that their order does not matter
        for row, source, target, spans in examples.select("row", "source", "target", column).iter_rows():
            try:
                nodes = tree(_spans(spans), len(source))
                compute(nodes[0])
                found += _arguments(row, source, target, nodes)
            except ValueError as error:
                left_out[row] = str(error)
        if not found:
            row, why = next(iter(left_out.items()), (0, "no predicate has an argument"))
            raise DataError(
                f"{column}: {len(left_out):,} of {len(dataset):,} examples have spans that cannot be used; example "
                f"{row + 1}: {why}"
            )
        return cls(found, left_out)

    def exchanges(self) -> Iterator[pl.DataFrame]:
        """All exchanges, in the order of hosts and then donors: source, target, host, donors, pieces; in blocks."""
        frame = pl.DataFrame(self.arguments, schema=_SCHEMA, orient="row")
        dots, separator = (pl.lit([token], dtype=TOKENS) for token in ("...", SEPARATOR))  # the predicate's words stay
        piece = pl.concat_list("left_in", dots, "right_in", separator, "inner_in").list.join(" ")
        _, alike = Counter(one.predicate for one in self.arguments).most_common(1)[0]
        for hosts in frame.iter_slices(max(1, BLOCK // alike)):
            both = hosts.join(frame, on="predicate", suffix="_in", maintain_order="left_right")
            fits = [(pl.col(one).list.len() > 0) | (pl.col(f"{one}_in").list.len() == 0) for one in ("left", "right")]
            yield both.filter(fits).select(
                pl.concat_list("before", "left_in", "own", "right_in", "after").alias("source"),
                pl.concat_list("opening", "inner_in", "closing").alias("target"),
                pl.col("row").alias(HOST),
                pl.concat_list("row_in").alias("donors"),
                pl.concat_list(piece).alias("pieces"),
            )

    def draw(self, dataset: Dataset, count: int, seed: int) -> pl.DataFrame:
        """The first exchange for each new source, `count` of them at random, or all.

        If there are more than MANY, those of the hosts that come first in the order of examples are drawn first, so
        that fewer are the first of more.

        Raises:
            ExhaustedError: there is no new source.
        """
        known, made = dataset.frame.select("source").unique(), pl.DataFrame()
        part = 0  # those of one part are drawn before those of the next
        for block in self.exchanges():
            new = block.join(known, on="source", how="anti", maintain_order="left").with_columns(part=part)
            made = pl.concat([made, new] if len(made) else [new]).unique("source", keep="first", maintain_order=True)
            part += len(made) > MANY
            if len(made) > max(MANY, count):
                break
        if made.is_empty() and count:
            raise ExhaustedError(f"the {len(self.arguments):,} arguments of predicates give no new example")
        numbers = words(seed, np.arange(len(made)), SamplePurpose.SUBSTITUTIONS, 1)[:, 0]
        return made[np.lexsort((numbers, made["part"]))[:count]]


def _spans(value: Any) -> list[Span]:
    """The spans in a column: a list of objects, of their JSON texts, or the JSON text of a list."""
    expected = 'expected a list of {"span": [first, last], "type": text}'
    try:
        some = json.loads(value) if isinstance(value, str) else value
        found = [json.loads(one) if isinstance(one, str) else one for one in some]
        spans = [Span(operator.index(first), operator.index(last), str(one["type"]))
                 for one in found for first, last in [one["span"]]]  # fmt: skip
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ValueError(f"found {value!r:.60}, {expected}") from None
    if not spans or len(spans) > MOST:
        raise ValueError(f"found {len(spans):,} spans, expected 1 to {MOST}")
    return spans


def tree(nodes: list[Span], length: int) -> list[Span]:
    """The tree of spans, by inclusion, in preorder; raise ValueError if they do not nest in one that has them all."""
    nodes = sorted(nodes, key=lambda node: (node.first, -node.last, node.type != INNER))
    for number, node in enumerate(nodes):
        if not 0 <= node.first <= node.last < length:
            raise ValueError(f"found the span {node.first} to {node.last}, expected words from 0 to {length - 1}")
        around = [other for other in nodes[:number] if other.last >= node.first]
        if any(other.last < node.last for other in around):
            raise ValueError(f"the span {node.first} to {node.last} crosses another, expected spans that nest")
        if number and not around:
            raise ValueError(f"the span {node.first} to {node.last} is in no other, expected one that has them all")
        if around:
            node.above = around[-1]  # the innermost
            node.above.below.append(node)
    return nodes


def compute(node: Span) -> list[str]:
    """The program of a node, made of those of its children; raise ValueError if they cannot be put together."""
    parts = [compute(child) for child in node.below]
    if node.type != INNER and not parts:
        kind, _, value = node.type.partition("#")
        state = ", _" if kind == "cityid" and "," not in value else ""  # where it is not said
        node.program = [kind, "(", *(value.strip("'") + state).split(), ")"] if value else [kind]
    elif len(parts) == 1:
        node.program = parts[0]
    elif len(parts) == 2:
        node.program = _applied(*parts)
    elif len(parts) == 3:
        node.program = _applied(parts[1], _applied(parts[0], parts[2]))
    else:
        raise ValueError(f"the span {node.first} to {node.last} has {len(parts)} parts, expected one to three")
    return node.program


def _applied(one: list[str], other: list[str]) -> list[str]:
    """The program of two parts, whatever their order."""
    both = ["(" in one, "(" in other]
    if both == [True, True]:
        first, second = (one, other) if one[0] == NEGATION else (other, one)
        if first[0] != NEGATION:
            raise ValueError(f"{' '.join(one)} and {' '.join(other)}: expected {NEGATION} in one of two programs")
        return [*first[:-1], ",", *second, ")"]
    if both == [False, False]:
        noun = one if one[-1] in _NOUNS and other[-1] not in _NOUNS else other
        return [*(other if noun is one else one), "(", *noun, "(", "all", ")", ")"]
    predicate, argument = (other, one) if both[0] else (one, other)
    return [*predicate, "(", *argument, ")"]


def _arguments(row: int, source: list[str], target: list[str], nodes: list[Span]) -> list[Argument]:
    found = []
    for place, predicate in enumerate(target[:-1]):
        leaves = (node for node in nodes if not node.below and node.type == predicate and target[place + 1] == "(")
        node = next(leaves, None)
        while node is not None and node.above is not None and node.above.program == [predicate]:
            node = node.above
        above = None if node is None else node.above
        if node is None or above is None or len(above.below) != 2 or above.program[0] != predicate:
            continue
        end = _closing(target, place + 1)
        left, own = source[above.first : node.first], source[node.first : node.last + 1]
        right = source[node.last + 1 : above.last + 1]
        sides = source[: above.first], left, own, right, source[above.last + 1 :]
        found.append(Argument(predicate, row, *sides, target[: place + 2], target[place + 2 : end], target[end:]))
    return found


def _closing(target: Sequence[str], opening: int) -> int:
    """The place of the bracket that closes one."""
    depths = accumulate((token == "(") - (token == ")") for token in target[opening:])
    return next((place for place, depth in enumerate(depths, opening) if not depth), len(target))
