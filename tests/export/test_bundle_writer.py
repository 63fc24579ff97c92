"""What export writes: whole, verified, free of traces of the machine; and what it refuses."""

import json
import zipfile
from pathlib import Path

import onnx
import pytest
import torch

from compgen.api import Generator
from compgen.cli.export import export as command
from compgen.data.examples import Dataset
from compgen.errors import BundleError, CheckpointError, DataError
from compgen.export import bundle_writer
from compgen.export.bundle_writer import export
from compgen.runtime.bundle import Bundle
from tests.export.tiny import exported, make


@pytest.mark.parametrize("kind", ["generator", "predictor"])
def test_a_bundle_holds_no_path_of_this_machine_and_no_external_data(kind):
    folder = exported(kind, initial="encoder")
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    with zipfile.ZipFile(folder / "sampler.ts") as archive:
        contents |= {entry: archive.read(entry) for entry in archive.namelist()}
    roots = [Path(__file__).parents[2], Path(torch.__file__).parents[1], Path.home(), folder.parent]
    for name, content in contents.items():
        for root in roots:
            assert str(root).encode() not in content, f"{root} in {name}"
        assert b"site-packages" not in content, name
    for path in folder.glob("*.onnx"):
        model = onnx.load(path, load_external_data=False)
        assert not any(tensor.external_data for tensor in model.graph.initializer)
        assert not any(node.doc_string or node.metadata_props for node in model.graph.node)
        assert [opset.version for opset in model.opset_import if not opset.domain] == [18]


def test_a_manifest_says_what_the_model_is():
    manifest = Bundle.load(exported()).manifest
    assert (manifest.kind, manifest.prototypes, manifest.max_length) == ("generator", 2, 9)
    assert manifest.sampling == {"temperature": [1.0, 0.5]}
    assert manifest.trained_on == {"data": "made up"}
    shapes = {tensor.name: tensor.shape for tensor in manifest.graphs["step.onnx"].inputs}
    assert shapes["keys"] == shapes["values"] == ["B", 2, "T", 5]
    assert shapes["hidden"] == ["B", 12]
    assert len(manifest.parity) == 10
    card = (exported() / "README.md").read_text()
    assert "onnx loop | float64 | 7 | 20" in card
    assert "compgen sample exported/" in card


def test_further_prototypes_are_recombined_and_known(tmp_path):
    make().save(tmp_path / "model.pt")
    further = Dataset.from_pairs([(["a", "g"], ["d"]), (["b"], ["g"]), (["a", "b"], ["d", "e"])])
    export(tmp_path / "model.pt", tmp_path / "more", batches={7: 20}, prototypes=further, quiet=True)
    before, after = (Generator.load(folder) for folder in (exported(), tmp_path / "more"))
    assert len(after.training.examples) == len(before.training.examples) + 2
    new = range(len(before.pool.tokens), len(after.pool.tokens))
    assert len(new) == 2  # the third is among the training examples
    for sample in after.stream(draws=200):
        assert set(new) & set(sample.prototypes)
    assert Bundle.load(tmp_path / "more").manifest.trained_on["further_prototypes"] == 2


@pytest.mark.parametrize(
    ("kind", "pair", "says"),
    [
        ("predictor", ("a", "d"), "for generators"),
        ("generator", ("a b", "d e"), "0 of 1 further prototypes"),
        ("generator", ("a z", "d"), "'z'"),
    ],
)
def test_further_prototypes_that_are_of_no_use_are_refused(tmp_path, kind, pair, says):
    make(kind).save(tmp_path / "model.pt")
    (tmp_path / "pairs.tsv").write_text("\t".join(pair) + "\n")
    with pytest.raises(DataError, match=says):
        command(tmp_path / "model.pt", tmp_path / "out", prototypes=str(tmp_path / "pairs.tsv"))
    assert not (tmp_path / "out").exists()


def test_a_failed_verification_writes_nothing(tmp_path, monkeypatch):
    make().save(tmp_path / "model.pt")

    def refuse(*_args, **_options):
        raise BundleError("differs")

    monkeypatch.setattr(bundle_writer, "verify", refuse)
    with pytest.raises(BundleError, match="differs"):
        export(tmp_path / "model.pt", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_export_replaces_a_bundle_and_nothing_else(tmp_path):
    make().save(tmp_path / "model.pt")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(BundleError, match="not a bundle"):
        export(tmp_path / "model.pt", mine)
    assert (mine / "thesis.txt").exists()
    with pytest.raises(CheckpointError, match="no such file"):
        export(tmp_path / "none.pt", tmp_path / "out")
    for _ in range(2):
        export(tmp_path / "model.pt", tmp_path / "out", batches={5: 10}, quiet=True)
    assert Bundle.load(tmp_path / "out").vocabulary == Bundle.load(exported()).vocabulary


def test_the_command_prints_parity_beside_and_the_folder_as_its_result(tmp_path, capsys):
    make("predictor").save(tmp_path / "model.pt")
    command(tmp_path / "model.pt", tmp_path / "out", samples=10)
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'out'}\n"
    assert "onnx loop" in printed.err
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["kind"] == "predictor"
