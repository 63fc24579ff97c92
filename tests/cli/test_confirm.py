"""`cgen confirm`."""

import json
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from compgen.cli.main import app
from compgen.errors import Interrupted
from compgen.training import confirmation
from tests.cli.shell import compgen, refused, said
from tests.training.test_predictors import SHORT, TINY

SETTINGS = [word for one in (*TINY, *SHORT) for word in ("--set", one)]


def test_examples_are_confirmed_and_recorded(tmp_path):
    (tmp_path / "data.tsv").write_text("a\tA\nb\tB\nc\tC\n")
    (tmp_path / "made.jsonl").write_text(
        "".join(json.dumps({"source": ["a", one], "target": ["A", one], "method": "m"}) + "\n" for one in "abc")
    )
    words = ["confirm", "data.tsv", "--augmented", "made.jsonl", "-o", "out.jsonl"]
    (tmp_path / "out.jsonl.partial").mkdir()
    (tmp_path / "out.jsonl.partial" / "old.pt").touch()
    done = compgen(*words, *SETTINGS, cwd=tmp_path)
    assert done.returncode == 0 and "0 of 3 examples are confirmed" in done.stderr
    assert "have not learnt enough to tell" in done.stderr
    assert (tmp_path / "out.jsonl").read_text() == ""
    record = json.loads((tmp_path / "out.jsonl.run.json").read_text())
    assert record["parts"] == 2 and record["set"] == [*TINY, *SHORT] and record["examples"] == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "data.tsv",
        "made.jsonl",
        "out.jsonl",
        "out.jsonl.run.json",
    ]


def test_a_run_that_was_interrupted_goes_on(tmp_path, monkeypatch):
    (tmp_path / "data.tsv").write_text("a\tA\nb\tB\nc\tC\n")
    (tmp_path / "made.tsv").write_text("a b\tA B\nb c\tB C\n")
    monkeypatch.chdir(tmp_path)
    train, trained = confirmation.train_predictor, []

    def interrupted(dataset, config, out, **options):
        if len(trained) == 1:
            trained.append(out)
            raise Interrupted("stopped", signal.SIGINT)
        trained.append(out)
        return train(dataset, config, out, **options)

    monkeypatch.setattr(confirmation, "train_predictor", interrupted)
    words = ["confirm", "data.tsv", "--augmented", "made.tsv", "-o", "out.tsv", *SETTINGS]
    with pytest.raises(Interrupted):
        raise CliRunner().invoke(app, words).exception
    assert trained[0].exists() and not Path("out.tsv").exists()
    code, text = said(*words, "--resume")
    assert code == 0 and "0 of 2 examples are confirmed" in text
    assert trained[2:] == trained[1:2] and not Path("out.tsv.partial").exists()


def test_standard_output_is_refused(tmp_path):
    (tmp_path / "data.tsv").write_text("a\tA\n")
    done = compgen("confirm", "data.tsv", "--augmented", "data.tsv", "-o", "-", cwd=tmp_path)
    refused(done, "predictors are kept beside OUT")


def test_a_file_in_the_place_of_the_folder_of_predictors(tmp_path):
    (tmp_path / "data.tsv").write_text("a\tA\nb\tB\n")
    (tmp_path / "out.tsv.partial").write_text("of another command")
    done = compgen("confirm", "data.tsv", "--augmented", "data.tsv", "-o", "out.tsv", *SETTINGS, cwd=tmp_path)
    refused(done, "out.tsv.partial")
    assert (tmp_path / "out.tsv.partial").read_text() == "of another command"
