"""`cgen data mask` and `unmask`, as a user runs them."""

import json

import pytest

from compgen.cli.data import app
from compgen.data.formats import read_dataset
from compgen.errors import Remark, UserError
from tests.cli.shell import runner

PAIRS = "where is new york\tloc ( new york )\nwhere is texas\tloc ( texas )\nwhat is big\tall\nwhat is new\tall\n"


def run(*arguments, **options):
    return runner().invoke(app, [str(argument) for argument in arguments], **options)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "names").write_text("new york\tcity\ntexas\tstate\n")
    (tmp_path / "asked.txt").write_text("is texas in new york\nwhat is big\n")
    (tmp_path / "two.txt").write_text("loc\tall\n" * 4)
    return tmp_path


def test_names_are_masked_and_come_back(folder):
    done = run("mask", "pairs.tsv", "--found", "found.txt", "-o", "masked.jsonl")
    assert done.exit_code == 0, done.exception
    said = "2 names, found in 2 of 4 examples; 3 distinct targets, 3 when masked; delete words that are no names"
    assert f"{said} from found.txt, and mask again with --names found.txt\n" in done.stderr
    assert (folder / "found.txt").read_text() == "texas\nyork\n"  # new stands alone, too
    rows = [json.loads(line) for line in (folder / "masked.jsonl").read_text().splitlines()]
    assert rows[0] | {"split": ""} == {
        "source": ["where", "is", "new", "name0"],
        "target": ["loc", "(", "new", "name0", ")"],
        "split": "",
        "names": '{"name0": "york"}',
    }
    assert run("unmask", "masked.jsonl", "--masked", "masked.jsonl", "-o", "back.tsv").exit_code == 0
    assert (folder / "back.tsv").read_text() == PAIRS
    for name in ("m.csv", "m.json", "m.parquet", "m"):
        done = run("mask", "pairs.tsv", "-o", name)
        assert done.exit_code == 0 and "delete words" not in done.stderr
        assert run("unmask", name, "--masked", name, "-o", "back.tsv").exit_code == 0
        assert (folder / "back.tsv").read_text() == PAIRS


@pytest.mark.parametrize("found", ["masked.jsonl", "masked.jsonl.run.json"])
def test_names_do_not_take_the_place_of_what_is_masked(folder, found):
    done = run("mask", "pairs.tsv", "--found", found, "-o", "masked.jsonl")
    assert "expected the name of a file, and another than OUT's and its record's" in str(done.exception)
    assert not (folder / "masked.jsonl").exists()


@pytest.mark.parametrize("written", ["lines", "table", "pairs in .txt"])
def test_predictions_of_masked_sources_are_unmasked(folder, written):
    done = run("mask", "asked.txt", "--names", "names", "-o", "asked.jsonl")
    assert done.exit_code == 0, done.exception
    assert "found in 1 of 2 examples" in done.stderr and "targets" not in done.stderr
    assert read_dataset(folder / "asked.jsonl")[0].source == ["is", "state0", "in", "city0"]
    if written == "lines":
        (folder / "y.txt").write_text("in ( state0 , city0 )\n\n")
        done = run("unmask", "y.txt", "--masked", "asked.jsonl", "-o", "z.jsonl")
        assert run("unmask", "-", "--masked", "asked.jsonl", "-o", "-", input="state0\nall\n").exit_code == 0
    elif written == "pairs in .txt":
        (folder / "y.tsv").write_text("is state0 in city0\tin ( state0 , city0 )\nwhat is big\t\n")
        assert run("write", "y.tsv", "--signs", "joined", "-o", "y.txt").exit_code == 0
        assert (folder / "y.txt").read_text().endswith("\nIN: what is big OUT:\n")
        done = run("unmask", "y.txt", "--masked", "asked.jsonl", "-o", "z.jsonl")
    else:
        (folder / "y.tsv").write_text("is state0 in city0\tin ( state0 , city0 )\nwhat is big\tstate0\n")
        done = run("unmask", "y.tsv", "--masked", "asked.jsonl", "-o", "z.jsonl")
        assert "1 placeholders without a name were left as they are" in done.stderr
    assert done.exit_code == 0, done.exception
    first, second = read_dataset(folder / "z.jsonl", answers=True)
    assert first == (["is", "texas", "in", "new", "york"], ["in", "(", "texas", ",", "new", "york", ")"])
    assert second == (["what", "is", "big"], ["state0"] if written == "table" else [])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mask", "pairs.tsv", "-o", "m.tsv"], "no place for the names: write .jsonl, .csv or .parquet"),
        (["mask", "asked.txt", "-o", "m.jsonl"], "give --names"),
        (["mask", "pairs.tsv", "--names", "names", "--found", "f", "-o", "m.jsonl"], "leave out --names"),
        (["mask", "pairs.tsv", "--prefix", "x1", "-o", "m.jsonl"], "found 'x1' for placeholders"),
        (["mask", "pairs.tsv", "--names", "pairs.tsv", "-o", "m.jsonl"], "pairs.tsv, line 1: found"),
        (["unmask", "two.txt", "--masked", "pairs.tsv", "-o", "m.jsonl"], "found a TAB, as of several answers a line"),
        (["unmask", "asked.txt", "--masked", "pairs.tsv", "-o", "m.jsonl"], "found 2 lines, expected 4"),
        (["unmask", "pairs.tsv", "--masked", "pairs.tsv", "-o", "m.jsonl"], "expected what `cgen data mask` wrote"),
    ],
)
def test_mistakes_are_the_users(folder, arguments, message):
    before = {path.name for path in folder.iterdir()}
    done = run(*arguments)
    assert isinstance(done.exception, UserError) and message in str(done.exception)
    assert {path.name for path in folder.iterdir()} == before


def test_another_prefix_is_told(folder):
    (folder / "odd.txt").write_text("is texas city7\n")
    with pytest.warns(Remark, match="placeholders are written city_0, not city0"):
        assert run("mask", "odd.txt", "--names", "names", "-o", "odd.jsonl").exit_code == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("most", ["0", "-1"])
def test_no_share_of_examples_is_refused(most):
    done = run("mask", "pairs.tsv", "--most", most, "-o", "masked.jsonl")
    assert isinstance(done.exception, UserError)
    assert str(done.exception) == f"--most {float(most)}: expected a number greater than 0"


def test_ranks_that_a_format_does_not_hold_are_said_to_be_left_out(folder):
    row = '{"source": "a", "target": "b", "rank": 1, "names": "{}"}\n'
    (folder / "ranked.jsonl").write_text(row)
    with pytest.warns(Remark, match=r"z\.tsv: left out, as tsv has no place for it: rank; \.jsonl keeps it"):
        assert run("unmask", "ranked.jsonl", "--masked", "ranked.jsonl", "-o", "z.tsv").exit_code == 0
