"""Files of earlier versions still open: they draw, answer, export and verify as they did when they were written.

`old/models.zip` was written before checkpoints had a tag of their architecture and grammars a file of their own:
checkpoints (`unsealed.pt` has neither version nor digest) and bundles of version 1.
"""

import copy
import json
import zipfile
from pathlib import Path

import pytest

from compgen.api import Generator, Predictor, export_bundle
from compgen.data.examples import Dataset
from compgen.errors import CheckpointError, Remark, UserError
from compgen.trained.architectures import read_saved
from compgen.trained.checkpoint import Checkpoint
from compgen.trained.verification import verify_bundle

NETWORK = [  # tokens and prototypes of addresses 10 to 13 of seed 5, and log-probabilities
    ((5, 6, 8, 9, 6, 6, 6, 6, 6), (1, 2), -13.8466),
    ((5,), (1, 1), -6.3712),
    ((8, 10, 9, 3, 7, 6, 6, 5, 5), (4, 4), -15.7665),
    ((10, 9, 3, 3, 6, 6, 6, 6, 6), (4, 4), -13.0578),
]
GRAMMAR = [
    ((12, 8, 10, 8, 10, 11, 3, 7, 6, 6, 6, 6), (), -9.2592),
    ((9, 11, 3, 5, 5), (), -3.7003),
    ((12, 8, 12, 3, 7, 7), (), -4.4235),
    ((10, 8, 12, 3, 6, 7), (), -4.4141),
]
SOURCES = [["a", "b"], ["run", "and", "look"]]  # for generators, the second for the grammar
DRAWN = {
    "unsealed.pt": (NETWORK, [list("bbbbbb"), []]),
    "generator.pt": (NETWORK, [list("bbbbbb"), []]),
    "generator": (NETWORK, [list("bbbbbb"), []]),
    "grammar.pt": (GRAMMAR, [[], ["RUN", "LOOK"]]),
    "grammar": (GRAMMAR, [[], ["RUN", "LOOK"]]),
}
TRANSFORMER = ([list("fffffffff"), list("bbfffffff"), list("fffffffff")], [3.4447, 3.7376])
ANSWERED = {
    "predictor.pt": ([list("ebabbbbbb"), list("eega"), list("eefeeeeee")], [2.0168, 2.9831]),
    "transformer.pt": TRANSFORMER,
    "transformer": TRANSFORMER,
}
TAGS = {"unsealed": "recurrent", "generator": "recurrent", "predictor": "recurrent"}
TAGS |= {"transformer": "transformer", "grammar": "grammar"}

pytestmark = pytest.mark.filterwarnings("ignore::compgen.errors.Remark")


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    folder = tmp_path_factory.mktemp("old")
    with zipfile.ZipFile(Path(__file__).parent / "old" / "models.zip") as packed:
        packed.extractall(folder)
    return folder


def drawn(generator):
    return [(draw.tokens, draw.prototypes, round(draw.log_prob, 4)) for draw in generator.draw(5, 10, 14)]


@pytest.mark.parametrize("name", DRAWN)
def test_generators_draw_and_answer(old, name):
    generator = Generator.load(old / name)
    draws, answers = DRAWN[name]
    found = drawn(generator)
    assert [one[:2] for one in found] == [one[:2] for one in draws]
    assert [one[2] for one in found] == pytest.approx([one[2] for one in draws], abs=2e-4)
    assert generator.answer(SOURCES) == answers


@pytest.mark.parametrize("name", ANSWERED)
def test_predictors_answer(old, name):
    predictor = Predictor.load(old / name)
    targets, losses = ANSWERED[name]
    assert predictor.predict([list("abc"), list("ga"), list("fed")]) == targets
    pairs = Dataset.from_pairs([(list("abc"), list("ab")), (list("d"), list("g"))])
    assert predictor.losses(pairs) == pytest.approx(losses, abs=2e-4)


def test_a_file_without_a_digest_is_read_with_a_remark(old):
    with pytest.warns(Remark, match=r"unsealed\.pt: it has no digest"):
        Checkpoint.load(old / "unsealed.pt")


def test_a_grammar_is_no_network(old):
    with pytest.raises(CheckpointError, match=r"grammar\.pt: holds a grammar, expected a network"):
        Checkpoint.load(old / "grammar.pt")
    with pytest.raises(UserError, match=r"holds a generator, .* \(in Python Generator\.load opens it\)"):
        Predictor.load(old / "grammar.pt")


@pytest.mark.parametrize("name", TAGS)
def test_the_tag_is_inferred_and_kept(old, tmp_path, name):
    entry, _, saved = read_saved(old / f"{name}.pt")
    assert entry.tag == saved.architecture == TAGS[name]
    again = tmp_path / ("again.grammar" if entry.tag == "grammar" else "again.pt")
    saved.save(again)
    assert read_saved(again)[0].tag == entry.tag
    if entry.tag != "grammar":
        assert f'"architecture": "{entry.tag}"'.encode() in again.read_bytes()


@pytest.mark.parametrize("name", ["generator", "transformer", "grammar"])
def test_bundles_are_verified(old, name):
    rows, _ = verify_bundle(old / name, "cpu")
    assert rows and all(row.passed for row in rows), rows


@pytest.mark.parametrize(
    "name",
    [
        "unsealed.pt",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("generator.pt", "predictor.pt")),
        "transformer.pt",
    ],
)
def test_an_old_network_is_exported(old, tmp_path, name):
    """Settings that are newer than its checkpoint are in the manifest, as they are without being set."""
    export_bundle(old / name, tmp_path / "bundle", batches={7: 20}, quiet=True)
    written = json.loads((tmp_path / "bundle" / "manifest.json").read_text())["config"]
    entry, _, saved = read_saved(old / name)
    assert written["network"] == entry.configuration(saved.config["network"]).model_dump(mode="json")
    assert {**written, "network": saved.config["network"]} == saved.config
    rows, _ = verify_bundle(tmp_path / "bundle", "cpu")
    assert rows and all(row.passed for row in rows), rows
    if name in DRAWN:
        assert [one[:2] for one in drawn(Generator.load(tmp_path / "bundle"))] == [one[:2] for one in DRAWN[name][0]]
    else:
        answers = Predictor.load(tmp_path / "bundle").predict([list("abc"), list("ga"), list("fed")])
        assert answers == ANSWERED[name][0]


def test_an_old_grammar_is_exported(old, tmp_path):
    export_bundle(old / "grammar.pt", tmp_path / "bundle", batches={7: 20}, quiet=True)
    assert drawn(Generator.load(tmp_path / "bundle")) == GRAMMAR
    for name in ("rules.txt", "scores.safetensors", "pool.safetensors", "vocabulary.json"):
        assert (tmp_path / "bundle" / name).read_bytes() == (old / "grammar" / name).read_bytes(), name
    found, kept = (
        json.loads((folder / "golden.json").read_text()) for folder in (tmp_path / "bundle", old / "grammar")
    )
    assert apart(found) == apart(kept)
    assert log_probs(found) == pytest.approx(log_probs(kept), abs=1e-5)  # processors differ in the last digits


def draws(golden):
    return [draw for stream in golden["streams"] for draw in stream["samples"]]


def log_probs(golden):
    return [draw["log_prob"] for draw in draws(golden)]


def apart(golden):
    """All but the log-probabilities."""
    kept = copy.deepcopy(golden)
    for draw in draws(kept):
        del draw["log_prob"]
    return kept
