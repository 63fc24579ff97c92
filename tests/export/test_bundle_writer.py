"""What export writes: whole, verified, free of traces of the machine; and what it refuses."""

import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path

import onnx
import pytest
import torch

import compgen
from compgen.cli.export import Options
from compgen.cli.export import export as command
from compgen.data.unimorph import INFLECTION, WORDS
from compgen.errors import BundleError, CheckpointError, Remark, UserError
from compgen.export import recurrent
from compgen.export.assemble import assemble
from compgen.export.bundle_writer import export
from compgen.export.card import card
from compgen.runtime.bundle import Bundle
from tests.export.tiny import exported, make


@pytest.mark.parametrize("kind", ["generator", "predictor"])
def test_a_bundle_holds_no_path_of_this_machine_and_no_external_data(kind):
    folder = exported(kind)
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


def test_a_network_that_is_too_large_for_onnx_is_told(tmp_path, monkeypatch):
    def fails(*_args, **_options):  # as torch says it of a graph of more than 2 GiB
        raise RuntimeError("The serialized model is larger than the 2GiB limit imposed by the protobuf library. ...")

    make("predictor").save(tmp_path / "large.pt")
    monkeypatch.setattr(torch.onnx, "export", fails)
    with pytest.raises(BundleError, match=r"large\.pt: too large for a bundle: a graph of ONNX has at most 2 GiB"):
        export(tmp_path / "large.pt", tmp_path / "out", batches={1: 2}, quiet=True)
    assert not (tmp_path / "out").exists()


def test_a_manifest_says_what_the_model_is():
    manifest = Bundle.load(exported()).manifest
    assert (manifest.kind, manifest.prototypes, manifest.max_length) == ("generator", 2, 9)
    assert manifest.sampling == {"temperature": [1.0, 0.5]}
    assert manifest.trained_on == {"data": "made up"}
    shapes = {tensor.name: tensor.shape for tensor in manifest.graphs["step.onnx"].inputs}
    assert shapes["keys"] == shapes["values"] == ["B", 2, "T", 5]
    assert shapes["hidden"] == ["B", 12]
    assert len(manifest.parity) == 10
    text = (exported() / "README.md").read_text()
    assert "onnx loop | float64 | 7 | 20" in text
    assert "cgen sample FOLDER" in text and "## Sampling" in text and "--filter novel,unique" in text
    assert "; attends to 2 sequences; " in text and "| the training examples, and which of them go together" in text
    assert "graph are in `manifest.json`.\n\n## Parity" in text


def test_the_card_of_a_predictor_says_how_it_is_used_and_no_more():
    manifest = Bundle.load(exported("predictor")).manifest.model_copy(update={"trained_on": {"data": "", "seed": 0}})
    text = card(manifest, "mine")
    assert "cgen predict FOLDER SOURCES" in text and "cgen evaluate FOLDER DATA" in text and "exported/" not in text
    assert "spaces between tokens: divide it as the training data were. `vocabulary.json`" in text
    assert "- seed: 0" in text and "- data" not in text  # a comparison does not name them
    assert not [one for one in ("novel", "a seed and an index", "defaults:", "Sampling") if one in text]
    words = manifest.model_copy(update={"trained_on": {WORDS: INFLECTION}})
    assert "is lemma TAB tags" in card(words, "mine")
    call = re.search(r"compgen\.predict\(.*\)", text)[0].replace("FOLDER", str(exported("predictor")))
    with pytest.warns(Remark, match="unknown to it"):
        assert len(eval(call, {"compgen": compgen})) == 1  # the call itself works, whatever it knows


@pytest.mark.parametrize("name", ["recomb2", None])
def test_a_bundle_is_not_exported_again(name, tmp_path):
    with pytest.raises(BundleError, match=r"a bundle already, expected a checkpoint"):
        export(Path(name or exported()), tmp_path / "out")


def test_a_network_with_the_attention_of_the_shipped_configurations_can_be_exported(tmp_path):
    sizes = {"own": 64, "attention": 1024}  # of recombine_morphology and seq2seq_morphology
    bundle = assemble(make("predictor", mixing="gate", **sizes), tmp_path, script=False)
    assert bundle.manifest.decoder.output == 8 + 64 * 1025


def test_sizes_beyond_those_of_bundles_are_named(tmp_path):
    replace(make("predictor"), max_length=70_000).save(tmp_path / "long.pt")
    with pytest.raises(BundleError, match=r"long.pt: beyond what a bundle may hold: max_length: .*65536, found 70000"):
        export(tmp_path / "long.pt", tmp_path / "bundle", torchscript=False, quiet=True)
    assert not (tmp_path / "bundle").exists()


def test_a_failed_verification_writes_nothing(tmp_path, monkeypatch):
    make().save(tmp_path / "model.pt")

    def refuse(*_args, **_options):
        raise BundleError("differs")

    monkeypatch.setattr(recurrent, "verify", refuse)
    with pytest.raises(BundleError, match="differs"):
        export(tmp_path / "model.pt", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


@pytest.mark.parametrize("batches", [{}, {0: 5}, {7: 0}, {7: 20.0}, {True: 20}, [7]], ids=str)
def test_nothing_is_exported_unverified(tmp_path, batches):
    make().save(tmp_path / "model.pt")
    with pytest.raises(UserError, match=r"batches: found .*, expected numbers of samples by sizes of batches"):
        export(tmp_path / "model.pt", tmp_path / "bundle", batches=batches, quiet=True)


def test_a_folder_whose_manifest_is_nested_without_end_is_no_bundle(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "manifest.json").write_text("[" * 100_000)
    with pytest.raises(BundleError, match="exists and is not a bundle"):
        export(tmp_path / "model.pt", tmp_path / "mine", quiet=True)


def test_export_replaces_a_bundle_and_nothing_else(tmp_path):
    make().save(tmp_path / "model.pt")
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(BundleError, match="not a bundle"):
        export(tmp_path / "model.pt", mine)
    (mine / "manifest.json").write_text('{"name": "a web page", "files": {"thesis.txt": {}}}')
    with pytest.raises(BundleError, match="not a bundle"):
        export(tmp_path / "model.pt", mine)
    assert (mine / "thesis.txt").exists()
    with pytest.raises(CheckpointError, match="no such file"):
        export(tmp_path / "none.pt", tmp_path / "out")
    shutil.copytree(exported(), tmp_path / "out")
    export(tmp_path / "model.pt", tmp_path / "out", batches={5: 10}, torchscript=False, quiet=True)
    replaced, plain = Bundle.load(tmp_path / "out"), Bundle.load(exported())
    assert replaced.files.keys() == plain.files.keys() - {"sampler.ts"}
    assert {row.runtime for row in replaced.manifest.parity} == {"torch", "onnx", "onnx loop"}
    (tmp_path / "out" / "samples.jsonl").write_text("a night's work")
    with pytest.raises(BundleError, match=r"holds samples\.jsonl, too"):
        export(tmp_path / "model.pt", tmp_path / "out")
    assert (tmp_path / "out" / "samples.jsonl").exists()


def test_the_command_prints_parity_beside_and_the_folder_as_its_result(tmp_path, capsys):
    make("predictor").save(tmp_path / "model.pt")
    command(tmp_path / "model.pt", Options(folder=tmp_path / "out", samples=10))
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'out'}\n"
    assert "onnx loop" in printed.err
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["kind"] == "predictor"
