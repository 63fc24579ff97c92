"""Placeholders for names, and names put back."""

import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data import catalog
from compgen.data.downloads import MissingFileError
from compgen.data.examples import Dataset
from compgen.data.placeholders import NAMES, mask, names_in, names_of, read_names, shared_names, unmask, unmasked
from compgen.errors import DataError, Remark, UserError

WHERE = Dataset.from_pairs(
    [
        (["where", "is", "new", "york"], ["(", "loc", "(", "new", "york", ")", ")"]),
        (
            ["what", "borders", "new", "mexico", "and", "texas"],
            ["(", "and", "(", "next", "(", "new", "mexico", ")", ",", "texas", ")", ")"],
        ),
        (["is", "texas", "in", "texas"], ["(", "in", "(", "texas", ",", "texas", ")", ")"]),
        (["what", "is", "the", "largest", "state"], ["(", "largest", "(", "state", ")", ")"]),
        (["where", "is", "the", "largest"], ["(", "loc", "(", "max", ")", ")"]),
    ]
)
TOKENS = st.lists(st.sampled_from(["a", "b", "c", "name", "name0", "name1", "name_0", "x y", "", "7", "("]), max_size=8)
SPANS = st.lists(st.sampled_from(["a", "b", "c", "name0", "7", "("]), min_size=1, max_size=3).map(tuple)


def test_names_are_what_both_sides_always_share():
    names = shared_names(WHERE, most=0.5)
    assert {" ".join(name) for name in names} == {"new york", "new mexico", "texas", "in", "and", "state"}
    assert {" ".join(name) for name in shared_names(WHERE, most=0.3)} == {
        *("york", "mexico", "in", "and", "state"),  # new and texas are in two of five
    }
    with pytest.raises(DataError, match="no token is on both sides"):
        shared_names(Dataset.from_pairs([(["jump"], ["I_JUMP", "."]), (["."], ["x"])]))


def test_placeholders_are_numbered_in_the_order_of_the_source():
    masked = mask(WHERE, {("new", "york"): "name", ("new", "mexico"): "name", ("texas",): "name", ("new",): "name"})
    assert [(" ".join(source), " ".join(target)) for source, target in masked][:3] == [
        ("where is name0", "( loc ( name0 ) )"),
        ("what borders name0 and name1", "( and ( next ( name0 ) , name1 ) )"),
        ("is name0 in name0", "( in ( name0 , name0 ) )"),
    ]
    assert json.loads(masked.frame[NAMES][1]) == {"name0": "new mexico", "name1": "texas"}
    assert masked[3:].pairs() == WHERE[3:].pairs() and names_in(masked)[3:] == [{}, {}]


def test_types_count_by_themselves_and_targets_have_the_names_of_their_source_alone():
    data = Dataset.from_pairs([(["from", "rome", "to", "utah", "or", "oslo"], ["rome", "utah", "oslo", "bern"])])
    masked = mask(data, {("rome",): "city", ("oslo",): "city", ("utah",): "state", ("bern",): "city"})
    assert masked[0] == (["from", "city0", "to", "state0", "or", "city1"], ["city0", "state0", "city1", "bern"])


@given(
    st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=6), st.dictionaries(SPANS, st.sampled_from(["name", "x"]))
)
def test_what_was_masked_comes_back(pairs, names):
    data = Dataset(Dataset.from_pairs(pairs).frame.with_columns(host=pl.lit(3)))
    masked = mask(data, names)
    known = {token for pair in pairs for side in pair for token in side}
    for (source, target), own in zip(masked, names_in(masked), strict=True):
        assert not known & set(own)
        assert not own or set(own) <= {*source}
        assert set(target) - known <= set(own)
    assert unmasked(masked, masked) == (data, 0)


@given(st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=6))
def test_names_that_are_found_come_back_too(pairs):
    data = Dataset.from_pairs(pairs)
    try:
        names = shared_names(data, 1.0)
    except DataError:
        return
    masked = mask(data, names)
    assert any(own for own in names_in(masked))
    assert unmasked(masked, masked) == (data, 0)


def test_placeholders_of_types_whose_names_would_become_alike_are_not_mixed_up():
    data = Dataset.from_pairs([(["name0", "is", "rome", "in", "utah"], ["utah", "rome"])])
    with pytest.warns(Remark, match="placeholders are written"):
        masked = mask(data, {("rome",): "name", ("utah",): "name_"})
    assert names_in(masked) == [{"name_0": "rome", "name__0": "utah"}]
    assert unmasked(masked, masked) == (data, 0)


def test_predictions_get_the_names_of_their_source():
    masked = mask(WHERE, {("texas",): "name", ("new", "york"): "name"})
    sources = [source for source, _ in masked]
    predicted = Dataset.from_pairs([(source, ["name0", "name1", "("]) for source in sources])
    made, left = unmasked(predicted, masked)
    assert [source for source, _ in made] == [source for source, _ in WHERE] and left == 2  # where there is no name
    assert made[0].target == ["new", "york", "name1", "("] and made[4].target == ["name0", "name1", "("]
    twice = Dataset(
        Dataset.from_pairs([(source, [word]) for source in sources for word in ("name0", "x")]).frame.with_columns(
            rank=pl.Series([1, 2] * 5)
        )
    )
    ranked, left = unmasked(twice, masked)
    assert [target for _, target in ranked][:4] == [["new", "york"], ["x"], ["texas"], ["x"]] and left == 2
    for wrong, says in (
        (predicted[1:], "example 1: found 'what borders new mexico and name0', expected 'where is name0'"),
        (predicted[:3], "found predictions for 3 sources, expected 5"),
        (predicted + predicted, "example 6: found 'where is name0', expected a row of rank 1 or no more rows"),
    ):
        with pytest.raises(DataError, match=says):
            unmasked(wrong, masked)
    assert unmask(["a", "name0"], {"name0": "b c"}) == ["a", "b", "c"]


def test_lists_of_names_are_read(tmp_path):
    path = tmp_path / "names.txt"
    path.write_text("new york\tcity\n\ntexas\n new  york\tcity \n")
    assert read_names(path, "name") == {("new", "york"): "city", ("texas",): "name"}
    for text, says in (
        ("a\tcity\na\tstate\n", "line 2: found 'a' as state, expected city as before"),
        ("a\tcity1\n", "line 1: found .*a type that ends in no digit"),
        ("\tcity\n", "line 1: found"),
        ("a\tbig city\n", "line 1: found"),
        (" \n", "no names: the file is empty"),
    ):
        path.write_text(text)
        with pytest.raises(DataError, match=says):
            read_names(path)


def test_what_cannot_be_masked_or_unmasked_is_refused():
    masked = mask(WHERE, {("texas",): "name"})
    with pytest.raises(DataError, match="found a column 'names'"):
        mask(masked, {("texas",): "name"})
    with pytest.raises(UserError, match="found 'name1' for placeholders"):
        mask(WHERE, {("texas",): "name1"})
    with pytest.raises(DataError, match="found no column 'names'"):
        names_in(WHERE)
    for name in (("new york",), ("new", ""), ()):  # they could not be put back as they were
        with pytest.raises(UserError, match=r"found the name \(.*none with a space in it"):
            names_of([name])
    for text in ("x", "[]", '{"name0": 3}', None):
        damaged = Dataset(WHERE.frame.with_columns(names=pl.Series([text] * 5, dtype=pl.String)))
        with pytest.raises(DataError, match=r"example 1: found .* in the column 'names'"):
            names_in(damaged)


@pytest.mark.parametrize(("name", "targets"), [("geo/sql-query", 248), ("geo/logic-query", 317)])
def test_geoquery_has_nearly_the_queries_that_were_published_with_variables(name, targets):
    """They are 246 and 316."""
    try:
        data = catalog.load(name)
    except MissingFileError as error:
        pytest.skip(str(error))
    names = shared_names(data)
    assert {("new", "york"), ("texas",), ("baton", "rouge")} <= set(names) and ("river",) not in names
    masked = mask(data, names)
    assert masked.frame["target"].n_unique() == targets
    assert unmasked(masked, masked)[0] == data
