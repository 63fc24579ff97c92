"""Ragged rows as series of lists."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data.ragged import cut, lists, lists_of, lists_of_rectangle, ranges

TOKENS = pl.Series(["", "a", "bé", "a longer token than fits a view", "'"])
rows = st.lists(st.lists(st.integers(0, len(TOKENS) - 1), max_size=7), max_size=9)


def test_ranges_are_given_row_by_row() -> None:
    row, element = ranges(np.array([5, 0, 2]), np.array([2, 0, 3]))
    assert row.tolist() == [0, 0, 2, 2, 2]
    assert element.tolist() == [5, 6, 2, 3, 4]


@given(numbers=rows)
def test_lists_hold_the_tokens_of_each_row(numbers: list[list[int]]) -> None:
    flat = np.array([number for row in numbers for number in row], dtype=np.int64)
    made = lists(TOKENS, flat, np.array([len(row) for row in numbers], dtype=np.int64))
    assert made.dtype == pl.List(pl.String)
    assert made.to_list() == [[TOKENS[number] for number in row] for row in numbers]


@given(numbers=rows)
def test_lists_of_python_are_lists_of_polars(numbers: list[list[int]]) -> None:
    made = lists_of([[TOKENS[number] for number in row] for row in numbers], pl.String())
    assert made.to_list() == [[TOKENS[number] for number in row] for row in numbers]
    assert made.dtype == pl.List(pl.String)
    assert cut(pl.Series([1, None, 3]), np.array([0, 2, 0, 1])).to_list() == [[], [1, None], [], [3]]


@pytest.mark.parametrize("kind", [np.uint16, np.uint32, np.int64])
@given(numbers=rows)
def test_lists_are_the_beginnings_of_rows_of_a_rectangle(kind: type, numbers: list[list[int]]) -> None:
    rectangle = np.array([row + [0] * (7 - len(row)) for row in numbers], dtype=kind).reshape(-1, 7)
    made = lists_of_rectangle(TOKENS, rectangle, np.array([len(row) for row in numbers], dtype=np.int64))
    assert made.dtype == pl.List(pl.String)
    assert made.to_list() == [[TOKENS[number] for number in row] for row in numbers]
