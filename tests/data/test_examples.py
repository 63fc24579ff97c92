"""Datasets: building, splitting, joining, looking in."""

import re
import sys
from types import SimpleNamespace

import polars as pl
import pytest

from compgen.data.compounds import Trees
from compgen.data.examples import SIDES, Dataset, Example, check_sides
from compgen.data.formats import write_dataset
from compgen.data.signs import apart
from compgen.errors import DataError, UserError
from compgen.evaluation.metrics import check_executes

TRAIN = Dataset.from_pairs([(["jump", "twice"], ["J", "J"]), (["walk"], ["W"]), (["jump", "twice"], ["J", "J"])])
TEST = Dataset.from_pairs([(["walk"], ["W"])], split="test")


def test_pairs_come_back_as_they_were_given():
    pairs = [(["a", "b"], ["c"]), (["a", "sentence"], [])]
    dataset = Dataset.from_pairs(iter([(("a", "b"), ["c"]), (["a", "sentence"], ())]))
    assert dataset.pairs() == pairs
    assert len(dataset) == 2
    assert dict(dataset.frame.schema) == {
        "source": pl.List(pl.String),
        "target": pl.List(pl.String),
        "split": pl.String(),
    }


def test_a_string_is_not_a_list_of_tokens():
    with pytest.raises(DataError, match="list of tokens"):
        Dataset.from_pairs([("jump", ["J"])])


def test_no_pairs_make_an_empty_dataset_with_the_same_columns():
    empty = Dataset.from_pairs([])
    assert len(empty) == 0
    assert empty.splits == {}
    assert empty.frame.schema == TRAIN.frame.schema


def test_splits_are_counted_in_the_order_of_appearance():
    both = TEST + TRAIN
    assert list(both.splits.items()) == [("test", 1), ("train", 3)]


def test_concatenation_keeps_order_and_split_takes_apart_again():
    both = TRAIN + TEST
    assert both.pairs() == TRAIN.pairs() + TEST.pairs()
    assert both.split("train") == TRAIN
    assert both.split("test") == TEST
    assert both.split("test") != TRAIN


def test_concatenation_carries_a_column_that_only_one_has():
    marked = Dataset(TEST.frame.with_columns(method=pl.lit("geca")))
    assert (TRAIN + marked).frame["method"].to_list() == [None, None, None, "geca"]


def test_concatenation_finds_a_common_type_or_says_that_there_is_none():
    def marked(value):
        return Dataset(TEST.frame.with_columns(x=pl.Series([value])))

    assert (marked(1) + marked("a")).frame["x"].to_list() == ["1", "a"]
    assert (marked(2**63) + marked(-1)).frame["x"].to_list() == [2**63, -1]
    assert (marked(None) + marked([1])).frame["x"].to_list() == [None, [1]]
    with pytest.raises(DataError, match="columns of unlike types"):
        marked(1) + marked([1])


def test_a_missing_split_names_those_there_are():
    with pytest.raises(DataError, match=r"no examples in split 'dev'; available splits: train \(3\), test \(1\)"):
        (TRAIN + TEST).split("dev")


def test_swapping_exchanges_the_sides_and_keeps_the_rest():
    marked = Dataset(TEST.frame.with_columns(method=pl.lit("geca")))
    assert marked.swapped().pairs() == [(["W"], ["walk"])]
    assert marked.swapped().frame["method"].to_list() == ["geca"]
    assert marked.swapped().swapped() == marked


def test_unique_drops_repetitions_within_a_split_only():
    both = (TRAIN + TEST).unique()
    assert both.splits == {"train": 2, "test": 1}
    assert both.pairs() == [(["jump", "twice"], ["J", "J"]), (["walk"], ["W"]), (["walk"], ["W"])]
    often = TEST + TRAIN + TEST + TEST
    assert often.unique().pairs() == (TEST + TRAIN).unique().pairs()
    assert often.repetitions().tolist() == [3, *TRAIN.repetitions().tolist()]
    assert TRAIN.repetitions().sum() == len(TRAIN)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (TRAIN.frame.drop("target"), "column 'target'.*no such column"),
        (TRAIN.frame.with_columns(source=pl.lit("jump twice")), "column 'source' of type List.*found String"),
    ],
)
def test_a_frame_without_the_columns_is_refused(frame, message):
    with pytest.raises(DataError, match=message):
        Dataset(frame)


@pytest.mark.parametrize("texts", [True, False])
def test_the_way_from_a_frame_of_pandas_is_told(texts):
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    sides = [" a  b", "A"] if texts else [["a", "b"], ["A"]]
    names, frame = {"polars": pl}, pandas.DataFrame(dict(zip(SIDES, ([side] for side in sides), strict=True)))
    for _ in range(2 + 2 * texts):  # each message has the next step
        with pytest.raises(DataError, match="; ") as told:
            Dataset(frame)
        step = re.search(r"; (.*\)) (makes|splits|adds)", str(told.value))
        frame = eval(step[1], names | {"frame": frame})
    assert Dataset(frame) == Dataset.from_pairs([(["a", "b"], ["A"])])


def test_examples_are_met_one_by_one():
    both = TRAIN + TEST
    assert [(source, target) for source, target in both] == both.pairs() == list(both)
    assert both[0] == Example(["jump", "twice"], ["J", "J"]) and both[0].target == ["J", "J"]
    assert both[-1] == both[3] == both[-1:][0]
    assert both[1:3] == Dataset(both.frame[1:3]) and both[::-2].pairs() == both.pairs()[::-2]
    for place in (4, -5):
        with pytest.raises(IndexError, match="a dataset of 4 examples"):
            both[place]
    with pytest.raises(TypeError, match=r"expected a place or a slice; data.split\('train'\) is a split"):
        both["train"]


def test_a_dataset_shows_itself():
    assert repr(TEST + TRAIN) == "Dataset(test 1, train 3; first: walk → W)"
    assert repr(Dataset.from_pairs([])) == "Dataset(no examples)"
    assert repr(Dataset.from_pairs([(["a"] * 99, ["b"])])).endswith("a a…  → b)".replace("  ", " "))
    many = Dataset.from_pairs([(["<b>", "&"], ["x"])] * 9, "a<b")
    table = many._repr_html_()
    assert table.count("<tr>") == 1 + 5 and "<caption>a&lt;b 9</caption>" in table
    assert "<td>&lt;b&gt; &amp;</td><td>x</td><td>a&lt;b</td>" in table and "<b>" not in table
    assert Dataset.from_pairs([])._repr_html_().count("<tr>") == 1


def test_frames_are_handed_out(monkeypatch):
    marked = Dataset(TEST.frame.with_columns(method=pl.lit("geca")))
    monkeypatch.setitem(sys.modules, "pandas", SimpleNamespace(DataFrame=dict))
    assert marked.to_pandas() == {"source": [["walk"]], "target": [["W"]], "split": ["test"], "method": ["geca"]}
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UserError, match="pip install pandas"):
        marked.to_pandas()


def test_pandas_takes_the_frame():
    pytest.importorskip("pandas", reason="needs pandas")
    frame = (TRAIN + TEST).to_pandas()
    assert frame["source"].tolist() == [source for source, _ in TRAIN + TEST] and len(frame.columns) == 3


@pytest.mark.parametrize("pairs", [[(["a"],)], [(["a"], ["b"], ["c"])], [(["a"], None)], [None], [7]])
def test_what_is_no_pair_is_told(pairs):
    with pytest.raises(DataError, match="a pair is two lists of tokens, found"):
        Dataset.from_pairs(pairs)


def test_tokens_are_strings():
    for wrong in (1, b"a", "\udc80"):
        with pytest.raises(DataError, match="tokens are strings"):
            Dataset.from_pairs([(["a", wrong], ["b"])])


@pytest.mark.parametrize("kind", [set, frozenset])
def test_sets_have_no_order_and_are_refused(kind):
    with pytest.raises(DataError, match="found a set, whose order is another in each run, expected a list of pairs"):
        Dataset.from_pairs(kind([(("a",), ("b",))]))
    for pair in ((kind("ab"), ["c"]), (["c"], kind("ab"))):
        with pytest.raises(DataError, match="each side of a pair is a list of tokens, found"):
            Dataset.from_pairs([pair])


def test_sides_may_be_any_iterables():
    assert Dataset.from_pairs([(iter("ab"), ("c",))]) == Dataset.from_pairs([(["a", "b"], ["c"])])


def test_missing_values_are_refused():
    frame = Dataset.from_pairs([(["a"], ["b"]), (["c"], ["d"])]).frame
    for column in ("source", "target", "split"):
        missing = pl.when(pl.col("target").list.first() == "d").then(None).otherwise(pl.col(column))
        with pytest.raises(DataError, match=f"column '{column}': found 1 missing values"):
            Dataset(frame.with_columns(missing.alias(column)))
    for other in (frame.lazy(), [], {}):
        with pytest.raises(DataError, match="expected a DataFrame of Polars"):
            Dataset(other)


def test_missing_tokens_are_refused():
    for pair in ((["a", None], ["b"]), (["a"], [None]), ([None], [])):
        with pytest.raises(DataError, match="tokens are strings: found None in "):
            Dataset.from_pairs([(["c"], ["d"]), pair])
    frame = pl.DataFrame({"source": [["a"], [], ["b"]], "target": [["c"], [], ["d", None]], "split": ["train"] * 3})
    with pytest.raises(DataError, match="a missing value among the tokens of the target of row 2, expected strings"):
        Dataset(frame.cast({"source": pl.List(pl.String), "target": pl.List(pl.String)}))
    assert Dataset(frame[:2].cast({"source": pl.List(pl.String), "target": pl.List(pl.String)})).pairs()[1] == ([], [])


@pytest.mark.parametrize("other", [None, 3, [(["a"], ["b"])]])
def test_only_a_dataset_can_be_added(other):
    with pytest.raises(DataError, match="expected a Dataset to add"):
        TRAIN + other


@pytest.mark.parametrize("pairs", [None, 3])
def test_what_holds_no_pairs_is_told(pairs):
    with pytest.raises(DataError, match="expected pairs of two lists of tokens"):
        Dataset.from_pairs(pairs)


LONG = "x" * 100_000


@pytest.mark.parametrize(
    "refused",
    [
        lambda: Dataset.from_pairs([(LONG, ["a"])]),
        lambda: check_sides(Dataset.from_pairs([(["a"], ["b"]), ([LONG], [])]).frame, "geca"),
        lambda: write_dataset(Dataset.from_pairs([([f"{LONG} x"], ["a"])]), "x.tsv"),
        lambda: Trees().atoms(Dataset.from_pairs([(["a"], ["f", "(", LONG])])),
        lambda: apart(Dataset.from_pairs([([f"{LONG}\uffed"], ["a"])]), marked=True),
        lambda: check_executes([["walk"]], [[LONG]], "scan"),
    ],
    ids=["a pair", "sides", "a token", "brackets", "signs", "execution"],
)
def test_a_message_is_short_though_the_data_are_long(refused):
    with pytest.raises(DataError) as error:
        refused()
    assert len(str(error.value)) < 500
