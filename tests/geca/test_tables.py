"""Rows that are held in memory or on disk: all of them come back, those with one key together."""

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.errors import UserError
from compgen.geca.corpus import Corpus
from compgen.geca.enumeration import ahead
from compgen.geca.options import GecaOptions
from compgen.geca.tables import MemoryNeededError, Store, find_spans, met_again


def rows(first, count, keys=7):
    return pl.DataFrame({"key": [(first + n) % keys for n in range(count)], "row": range(first, first + count)})


def read(store):
    frames = list(store.partitions())
    for number, frame in enumerate(frames):
        others = pl.concat([other for place, other in enumerate(frames) if place != number] or [frame.clear()])
        assert not set(frame["key"]) & set(others["key"]), "rows with a key must come together"
    return sorted(row for frame in frames for row in frame.rows()), [frame.height for frame in frames]


@pytest.mark.parametrize(("most", "held"), [(1000, 60), (60, 60), (59, 60), (20, 0), (19, 20)])
def test_rows_stay_in_memory_up_to_a_number_of_them(most, held):
    store = Store("key", most)
    for first in (0, 20, 40):
        store.add(rows(first, 20))
    assert store.held == held and (store.folder is not None) == (held < 60)
    for _ in range(2):  # they can be read again
        found, heights = read(store)
        assert found == sorted(rows(0, 60).rows())
        assert all(height <= most for height in heights)
        assert (len(heights) == 1) == (most >= 60)


def test_partitions_share_a_frame_as_long_as_they_fit():
    store = Store("key", 30)
    store.add(pl.DataFrame({"key": [0] * 10 + [1] * 10 + [2] * 10 + [3] * 10, "row": range(40)}))
    assert read(store)[1] == [30, 10]


def test_a_partition_that_is_too_large_says_how_many_rows_it_has():
    store = Store("key", 10)
    store.add(pl.DataFrame({"key": [3] * 10 + [4], "row": range(11)}))
    assert read(store)[1] == [10, 1]
    store.add(pl.DataFrame({"key": [3], "row": [11]}))
    with pytest.raises(MemoryNeededError) as caught:
        list(store.partitions())
    assert caught.value.args == (11,)


def test_stores_that_share_a_folder_give_each_row_once(tmp_path):
    stores = [Store("key", 100, tmp_path, (number, 2)) for number in (0, 1)]
    stores[0].add(rows(0, 30))
    stores[1].add(rows(30, 30))
    for store in stores:
        store.spill()
    parts = [read(store)[0] for store in stores]
    assert sorted(parts[0] + parts[1]) == sorted(rows(0, 60).rows())
    assert {key % 2 for key, _ in parts[0]} == {0} and {key % 2 for key, _ in parts[1]} == {1}


@given(st.lists(st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 2**63, 2**64 - 1])))
def test_rows_that_meet_another_of_their_value_are_those_that_polars_calls_duplicated(values):
    frame = pl.DataFrame({"key": pl.Series(values, dtype=pl.UInt64)}).with_row_index()
    assert met_again(frame, "key").rows() == frame.filter(pl.col("key").is_duplicated()).rows()


def test_an_empty_store_has_no_partitions(tmp_path):
    assert list(Store("key", 5).partitions()) == list(Store("key", 5, tmp_path).partitions()) == []


@pytest.mark.parametrize(
    "wrong", [{"span": 0}, {"spans": 0}, {"longest": 0}, {"limit": 0}, {"window": -1}, {"span": 2**31}, {"mode": "x"}]
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(UserError, match="expected"):
        GecaOptions(**wrong)


def test_the_least_and_the_most_that_can_be():
    assert GecaOptions(span=1, spans=1, longest=1, limit=1, window=0).window == 0
    assert GecaOptions(span=2**31 - 1).limit is None


def test_what_threads_make_ahead_comes_in_order():
    def made(chunk):
        time.sleep(0.01 * (chunk[0] % 3))
        return pl.DataFrame({"row": chunk})

    chunks = [np.arange(first, first + 2) for first in range(0, 20, 2)]
    assert [frame["row"].to_list() for frame in ahead(made, chunks)] == [chunk.tolist() for chunk in chunks]
    assert not [*ahead(made, [])]


def test_what_fails_in_a_thread_fails():
    def failing(chunk):
        raise ValueError(str(chunk[0]))

    with pytest.raises(ValueError, match="7"):
        list(ahead(failing, [np.array([7]), np.array([8])]))


def test_long_spans_need_memory_for_each_length():
    corpus = Corpus.of(Dataset.from_pairs([(map(str, range(5000)), [])]), None)
    assert len(find_spans(corpus, GecaOptions(span=2, memory=0.3))) == 9_999
    with pytest.raises(UserError, match=r"0\.30 GiB of memory is too little here: expected 0\.47 GiB or more"):
        find_spans(corpus, GecaOptions(span=10**9, memory=0.3))
