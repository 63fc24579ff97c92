"""What `cgen evaluate` does by itself; tests/cli/test_main.py evaluates trained predictors."""

import pytest

from compgen.cli.common import show
from compgen.cli.evaluate import Options, _compared, _comparisons, _limited, _print_scores, evaluate
from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.data.named import USUALLY
from compgen.evaluation.metrics import Scores
from compgen.training.config import Seq2SeqConfig
from compgen.training.predictors import train_predictor
from tests.training.tiny import SHORT, TINY

NUMBERS = Dataset.from_pairs([([str(at)], ["x"]) for at in range(100)])


def test_a_limit_draws_examples_from_everywhere_and_the_same_each_time():
    """The first examples of a sorted file are all alike."""
    rows = [int(source[0]) for source, _ in _limited(NUMBERS, 20)]
    assert rows == sorted(set(rows)) and len(rows) == 20
    assert min(rows) < 20 and max(rows) > 80
    assert rows == [int(source[0]) for source, _ in _limited(NUMBERS, 20)]
    assert len(_limited(NUMBERS, 100)) == len(_limited(NUMBERS, 101)) == len(_limited(NUMBERS, None)) == 100


@pytest.mark.parametrize(
    ("right", "written"),
    [(0, "0.0000"), (1, "<0.0001"), (2, "0.0001"), (20_998, "0.9999"), (20_999, ">0.9999"), (21_000, "1.0000")],
)
def test_only_all_and_none_are_written_as_such(capsys, right, written):
    share = right / 21_000
    _print_scores([("p.pt", Scores(21_000, share, share, share, share))], [], {}, json=False)
    assert capsys.readouterr().out.splitlines()[1].split() == ["p.pt", "21,000", written, written]


def test_systems_are_compared_by_exact_match_and_f1_and_a_gain_is_positive(capsys):
    pytest.importorskip("scipy", reason="needs SciPy, the extra [lm]")
    worse = {"exact match": [0.0, 0, 1, 0], "F1": [0.5, 0.5, 1, 0.5]}
    better = {"exact match": [1.0, 0, 1, 1], "F1": [1.0, 0.5, 1, 1]}
    found = _compared(["bare.pt", "more.pt"], [worse, better], 1)
    assert [(measure, one.first, one.second, one.mean) for measure, one in found] == [
        ("exact match", "bare.pt", "more.pt", 0.5),
        ("F1", "bare.pt", "more.pt", 0.25),
    ]
    show(_comparisons(found))
    heading, row, _ = capsys.readouterr().out.splitlines()
    assert heading.split()[:4] == ["measure", "from", "to", "gain"] and "+0.5000" in row


def test_training_examples_are_told_of_by_a_limit_too(tmp_path, capsys):
    pairs = [(verb.split(), [verb.upper()]) for verb in ("walk", "run", "look", "jump")]
    config = load_config(Seq2SeqConfig, "seq2seq_small", [*TINY, *SHORT])
    train_predictor(Dataset.from_pairs(pairs), config, tmp_path / "p.pt", quiet=True)
    write_dataset(Dataset.from_pairs([*reversed(pairs)], "test"), tmp_path / "renamed.tsv")
    evaluate([str(tmp_path / "p.pt")], str(tmp_path / "renamed.tsv"), Options(limit=2), USUALLY)
    said = capsys.readouterr().err
    assert "renamed.tsv: these are the examples it was trained on" in said and "p.pt: 2 examples" in said
    second = Options(direct=True, otherwise=str(tmp_path / "p.pt"))
    evaluate(["recomb2"], str(tmp_path / "renamed.tsv"), second, USUALLY)
    assert "renamed.tsv: these are the examples it was trained on" in capsys.readouterr().err
