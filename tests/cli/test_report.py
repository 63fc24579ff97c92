"""`cgen report`, as a user calls it."""

import json

import pytest

from compgen.comparison.report import CLAIM, REPORT, RESULT
from tests.cli.shell import compgen, refused
from tests.comparison import made_up


@pytest.fixture
def folder(tmp_path):
    (tmp_path / RESULT).write_text(made_up.result().model_dump_json(), encoding="utf-8")
    return tmp_path


def test_the_report_is_made_again_and_told_in_short(folder):
    done = compgen("report", folder)
    assert done.returncode == 0 and done.stderr == f"report: {folder / REPORT}\n"
    told, _, known = done.stdout.partition("\n\nWhat to know:\n")
    answer, empty, title, heading, *rows = told.splitlines()
    assert answer == made_up.result().answer and not empty and "exact match" in title
    assert heading.split() == ["system", "test", "over", "bare", "95", "%", "interval", "over", "control", "p"]
    assert rows[0].split() == ["bare", "59.5", "%"]
    assert " ".join(rows[2].split()) == "geca + csl x8 (chosen) 72.6 % +13.1 +9.7 to +16.5 +11.7 0.002"
    assert "resample x8 (control)" in rows[1] and max(map(len, rows)) < 80
    result = made_up.result()
    assert result.predictor.why in known and f"{result.predictor.updates:,} updates" in known
    assert known.splitlines()[1:] == [f"- {remark}" for remark in result.remarks]
    assert (folder / REPORT).read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_has_the_systems(folder):
    rows = [json.loads(line) for line in compgen("report", folder, "--json").stdout.splitlines()]
    assert rows == [one.model_dump() for one in made_up.result().tested]


def test_a_folder_without_a_comparison_is_refused(tmp_path):
    refused(compgen("report", tmp_path), f"{tmp_path / RESULT}: no such file, expected the folder")
    refused(compgen("report", tmp_path / "none"), "no such file")
    (tmp_path / CLAIM).touch()
    refused(compgen("report", tmp_path), f"{tmp_path}: the comparison is not finished: it runs, or was interrupted")
