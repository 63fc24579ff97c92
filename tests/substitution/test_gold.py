"""Substitution over annotated span trees: the worked examples of SUBS."""

import json

import polars as pl
import pytest

from compgen.augmenters.registry import make
from compgen.data.examples import Dataset
from compgen.errors import ConfigError, DataError
from compgen.substitution import gold
from compgen.substitution.gold import Gold, _spans, compute, tree
from tests.cli.shell import compgen


def spans(*some):
    return [{"span": [first, last], "type": kind} for first, last, kind in some]


A = (
    "what is the population of the largest state ?",
    "answer ( population_1 ( largest ( state ( all ) ) ) )",
    spans((0, 8, "span"), (3, 3, "population_1"), (6, 8, "span"), (6, 6, "largest"), (7, 7, "state")),
)
B = (
    "what is the largest city in texas ?",
    "answer ( largest ( city ( loc_2 ( stateid ( texas ) ) ) ) )",
    spans(
        (0, 7, "span"),
        (3, 7, "span"),
        (3, 3, "largest"),
        (4, 7, "span"),
        (4, 4, "city"),
        (5, 7, "span"),
        (5, 5, "loc_2"),
    )
    + spans((6, 6, "stateid#'texas'")),
)
C = (
    "name the rivers in ohio .",
    "answer ( river ( loc_2 ( stateid ( ohio ) ) ) )",
    spans((0, 5, "span"), (2, 5, "span"), (2, 2, "river"), (3, 5, "span"), (3, 3, "loc_2"), (4, 4, "stateid#'ohio'")),
)


def data(*examples):
    frame = Dataset.from_pairs((source.split(), target.split()) for source, target, _ in examples).frame
    return Dataset(frame.with_columns(spans=pl.Series([json.dumps(some) for *_, some in examples])))


def made(*examples):
    found = make("substitute", spans="spans").fit(data(*examples)).sample()
    return {" ".join(source): " ".join(target) for source, target in found.pairs()}


AB = {
    "what is the largest state ?": "answer ( largest ( state ( all ) ) )",
    "what is the population of the largest city in texas ?": (
        "answer ( population_1 ( largest ( city ( loc_2 ( stateid ( texas ) ) ) ) ) )"
    ),
}


def test_arguments_of_the_same_predicate_are_exchanged():
    assert made(A, B) == AB


def test_punctuation_travels():
    assert made(A, B, C) == AB | {
        "name the rivers in texas ?": "answer ( river ( loc_2 ( stateid ( texas ) ) ) )",
        "what is the largest city in ohio .": "answer ( largest ( city ( loc_2 ( stateid ( ohio ) ) ) ) )",
    }


def test_a_stretch_of_words_comes_only_where_one_was():
    run = (
        "which states does ohio run through ?",
        "answer ( state ( traverse_1 ( riverid ( ohio ) ) ) )",
        spans((0, 6, "span"), (0, 2, "state"), (3, 5, "span"), (3, 3, "riverid#'ohio'"), (4, 5, "traverse_1")),
    )
    crossed = (
        "states the crossed by the red ?",
        "answer ( state ( traverse_1 ( riverid ( red ) ) ) )",
        spans((0, 6, "span"), (0, 0, "state"), (2, 6, "span"), (2, 3, "traverse_1"), (4, 5, "riverid#'red'")),
    )
    # The arguments of traverse_1 stand on its left and on its right, those of state on the right.
    assert made(run, crossed) == {
        "which states does the crossed by the red ?": crossed[1],
        "states ohio run through ?": run[1],
    }


@pytest.mark.parametrize(
    ("some", "program"),
    [
        (spans((0, 1, "span"), (0, 0, "largest"), (1, 1, "state")), "largest ( state ( all ) )"),
        (spans((0, 1, "span"), (0, 0, "loc_2"), (1, 1, "stateid#'ohio'")), "loc_2 ( stateid ( ohio ) )"),
        (spans((0, 0, "cityid#'austin'")), "cityid ( austin, _ )"),
        (
            spans((0, 2, "span"), (0, 0, "state"), (1, 1, "exclude"), (2, 2, "stateid#'ohio'")),
            "exclude ( state ( stateid ( ohio ) ) )",
        ),
    ],
)
def test_programs_are_made_from_below(some, program):
    assert " ".join(compute(tree(_spans(some), 3)[0])) == program


@pytest.mark.parametrize(
    ("some", "message"),
    [
        (
            spans((0, 3, "span"), (0, 2, "span"), (1, 3, "span")),
            "the span 1 to 3 crosses another, expected spans that nest",
        ),
        (spans((0, 9, "span")), "found the span 0 to 9, expected words from 0 to 8"),
        (spans((0, 1, "state"), (2, 3, "river")), "is in no other, expected one that has them all"),
        ([], "found 0 spans, expected 1 to 200"),
        ([{"type": "state"}], 'expected a list of {"span": [first, last], "type": text}'),
        (spans((0, float("inf"), "span")), "expected a list of"),
        (spans(*[(0, 8, "span")] * 201), "found 201 spans, expected 1 to 200"),
    ],
)
def test_spans_that_cannot_be_used_are_counted(some, message):
    broken = (A[0], A[1], some)
    with pytest.raises(DataError, match="1 of 1 examples have spans that cannot be used; example 1: "):
        Gold.of(data(broken), "spans")
    method = make("substitute", spans="spans").fit(data(A, B, broken))
    assert len(method.sample()) == len(AB)
    (warning,) = method.warnings()
    assert warning.startswith("1 examples have spans that cannot be used; example 3: ") and message in warning
    assert method.report()["without_spans"] == 1


def test_options_of_grammars_have_no_place_beside_spans():
    with pytest.raises(ConfigError, match="--spans exchanges once, as published: leave out --seen-heads"):
        make("substitute", spans="spans", seen_heads=True)
    with pytest.raises(ConfigError, match="leave out --rounds"):
        make("substitute", spans="spans", rounds=2)
    with pytest.raises(ConfigError, match="--seed-rules is for a grammar that is induced: leave it out, or --spans"):
        make("substitute", spans="spans", seed_rules="none")
    with pytest.raises(ConfigError, match="--targets is for a grammar that is induced: leave it out, or --grammar"):
        make("substitute", grammar="x.rules", targets="y.cfg")


def test_the_order_of_the_examples_does_not_matter():
    one, other = (make("substitute", spans="spans").fit(data(*some)) for some in ((A, B, C), (C, A, B)))
    assert one.sample(2).pairs() == other.sample(2).pairs()


def test_fewer_are_the_first_of_more_of_many_exchanges_too(monkeypatch):
    monkeypatch.setattr(gold, "MANY", 3)
    monkeypatch.setattr(gold, "BLOCK", 1)
    names = ("ohio", "texas", "utah", "iowa", "maine")
    more = [
        tuple(json.loads(json.dumps(one).replace("ohio", name).replace("rivers", f"{noun}s").replace("river", noun)))
        for name in names
        for noun, one in (("river", C), ("lake", C))
    ]
    fitted = make("substitute", spans="spans").fit(data(A, B, *more))
    every = fitted.sample(1000).pairs()
    assert len(every) > 2 * gold.MANY
    for count in range(len(every)):
        assert fitted.sample(count).pairs() == every[:count]
    other = fitted.sample(1000, seed=1).pairs()
    assert other != every and sorted(other) == sorted(every)


def test_json_lines_have_spans_as_they_are_documented(tmp_path):
    table, out = tmp_path / "a.jsonl", tmp_path / "more.jsonl"
    rows = [{"source": a.split(), "target": b.split(), "note": "n", "spans": c} for a, b, c in (A, B)]
    table.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = compgen("augment", "substitute", table, "--spans", "spans", "-o", out)
    assert done.returncode == 0, done.stderr
    made = [json.loads(line) for line in out.read_text().splitlines()]
    assert {" ".join(one["source"]) for one in made} == set(AB)
    assert all("spans" not in one and one["note"] == "n" for one in made)  # they are the host's


def test_a_column_that_is_not_there_is_told():
    with pytest.raises(DataError, match="found the columns source, target, split, spans, expected 'trees', with spans"):
        make("substitute", spans="trees").fit(data(A))
    with pytest.raises(DataError, match="found 'target', expected another column, with spans"):
        make("substitute", spans="target").fit(data(A))


def test_a_sample_says_what_it_was_made_from():
    method = make("substitute", spans="spans").fit(data(A, B))
    sample = next(row for row in method.sample().frame.iter_rows(named=True) if len(row["source"]) == 6)
    assert (sample["host"], sample["donors"], sample["pieces"]) == (1, [0], ["... state ? ### state ( all )"])
    assert [part.label for part in method.explain(sample)] == ["host", "piece", "from"]
