"""SMCalFlow-CS: tokens of sources, what is left out, domains, and damaged files."""

import json

import pytest

from compgen.data import smcalflow
from compgen.data.catalog import load
from compgen.errors import DataError
from tests.smcalflow import CROSS, SINGLE, UNKNOWABLE, event, subject, write


def read(folder, **parts):
    return smcalflow.read({part: write(folder / f"{part}.jsonl", pairs) for part, pairs in parts.items()})


def test_punctuation_is_set_apart_in_sources_alone(tmp_path):
    target = event(subject("5-7 (maybe)"))
    (pair,) = read(tmp_path, test=[("Where's  5-7(maybe)?", target)]).pairs()
    assert pair == (["Where", "'", "s", "5", "-", "7", "(", "maybe", ")", "?"], target.split())


def test_training_pairs_that_nobody_can_know_are_a_split_of_their_own(tmp_path):
    known = [
        ("WHO IS ZOE'S BOSS?", SINGLE[9][1]),
        ("Plan a picnic on May 4, '21", UNKNOWABLE[1][1]),
        ("Plan a picnic on May 4 2021", UNKNOWABLE[1][1].replace("2021", "2021.0")),
        ("Who is Mc-Cat's boss?", SINGLE[9][1].replace("Zoe", "Mc-Cat")),
        ("Plan 2021", event(subject("PersonName 2021"))),
    ]
    dataset = read(tmp_path, train=[*UNKNOWABLE, *known], dev=UNKNOWABLE)
    assert dataset.splits == {"dropped": 2, "train": 5, "dev": 2}
    assert [target for _, target in dataset.split("dropped").pairs()] == [target.split() for _, target in UNKNOWABLE]


def test_what_needs_both_domains_is_a_split_of_its_own(tmp_path):
    dataset = read(tmp_path, train=[*SINGLE, *CROSS], dev=CROSS, test=[CROSS[0], *SINGLE, CROSS[1]])
    assert list(dataset.splits.items()) == [("train", 16), ("dev-cross", 2), ("test-cross", 2), ("test", 14)]
    assert dataset.split("test-cross").pairs() == dataset.split("dev-cross").pairs()


def test_the_known_data_sets_are_read_from_the_download_or_from_the_recipe(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    folder = tmp_path / "smcalflow_cs" / "calflow.orgchart.event_create" / "source_domain_with_target_num8"
    folder.mkdir(parents=True)
    for part in ("train", "valid", "test"):
        write(folder / f"{part}.alignment.jsonl", SINGLE + CROSS)
    published = load("smcalflow-cs/8")
    assert published.splits == {"train": 16, "dev": 14, "dev-cross": 2, "test": 14, "test-cross": 2}
    for part in ("train", "valid", "test"):
        (folder / f"{part}.alignment.jsonl").unlink()
        write(folder / f"{part}.jsonl", SINGLE + CROSS, keys=("utterance", "plan"))
    assert load("smcalflow-cs/8") == published


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"source": "a"}', "Field required; expected a JSON object with the strings"),
        ('{"source": "a", "target": 3}', "valid string; expected a JSON object"),
        ("a\tb", "Invalid JSON"),
        ('["a", "b"]', "expected a JSON object"),
        (json.dumps({"source": " ", "target": "( a )"}), "found an empty source, expected tokens on both sides"),
        (json.dumps({"source": "a", "target": ""}), "found an empty target, expected tokens on both sides"),
        (json.dumps({"source": "a", "target": "( a ( b )"}), "found an end with 1 brackets open, expected all closed"),
        (json.dumps({"source": "a", "target": "( a ) ) ("}), "token 4: found a closing bracket, expected one opened"),
        (
            json.dumps({"source": "a", "target": "(a (b))"}),
            r"token 1: found '\(a', expected spaces around each bracket",
        ),
        (json.dumps({"source": "a", "target": '( " b )'}), 'found 1 tokens that are ", expected as many to end'),
    ],
)
def test_damaged_files_are_named_with_the_line(tmp_path, line, message):
    path = write(tmp_path / "x.jsonl", SINGLE[:2])
    path.write_text(f"{path.read_text()}\n{line}\n")
    with pytest.raises(DataError, match=rf"x.jsonl, line 4: .*{message}"):
        smcalflow.read({"train": path})


def test_brackets_between_quotation_marks_are_text():
    target = ["(", "String", '"', ":)", "(", '"', ")"]
    assert smcalflow.nesting(target) == [1, 0, 0, 0, 0, 0, -1]


def test_missing_and_empty_files(tmp_path):
    with pytest.raises(DataError, match=r"gone.jsonl: no such file"):
        smcalflow.read({"train": tmp_path / "gone.jsonl"})
    with pytest.raises(DataError, match=r"x.jsonl: no examples"):
        smcalflow.read({"train": write(tmp_path / "x.jsonl", [])})
