"""A Transformer's bundle: small networks, and all that can be wrong with them."""

import json

import pytest
import torch

from compgen.api import Generator, Predictor, export_bundle
from compgen.data.examples import Dataset
from compgen.data.vocabulary import Vocabulary
from compgen.errors import BundleError, UserError
from compgen.export import transformer
from compgen.models.config import TransformerNetwork
from compgen.models.transformer import Transformer
from compgen.recombine.origins import attention
from compgen.runtime.bundle import Bundle
from compgen.trained.checkpoint import Checkpoint
from compgen.training.config import TransformerConfig

BATCHES = {1: 5, 7: 40}
WORDS = [(["a", "b", "c", "V", "PST"], ["a", "b", "c", "d"]), (["b", "V"], ["b"])]


def saved(path, seed=0, spread=0.3, **changes):
    """A checkpoint of random weights, which some seeds make more lively than others."""
    torch.manual_seed(seed)
    vocabulary = Vocabulary.of([["a", "b", "c", "d", "V", "PST"]])
    shape = {"layers": 2, "heads": 2, "size": 8, "inner": 12} | changes
    net = Transformer(TransformerNetwork(**shape), len(vocabulary))
    for parameter in net.parameters():
        parameter.data += spread * torch.randn_like(parameter)
    net.treat_as_tags([vocabulary.encode([tag])[0] for tag in ("V", "PST")])
    config = TransformerConfig(network=shape).model_dump(mode="json")
    Checkpoint("predictor", net.eval(), vocabulary, config, 12).save(path)
    return path


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    return saved(tmp_path_factory.mktemp("checkpoint") / "model.pt", invariant_tags=True)


@pytest.fixture(scope="module")
def bundle(checkpoint):
    out = checkpoint.parent / "bundle"
    export_bundle(checkpoint, out, batches=BATCHES, quiet=True)
    return out


def test_answers_and_losses_are_the_checkpoints(checkpoint, bundle):
    own, exported = Predictor.load(checkpoint), Predictor.load(bundle)
    sources = [source for source, _ in WORDS]
    for beam in (1, 3):
        assert own.predict(sources, beam) == exported.predict(sources, beam)
    assert own.losses(Dataset.from_pairs(WORDS)) == pytest.approx(exported.losses(Dataset.from_pairs(WORDS)), rel=1e-4)


def test_relative_positions_are_exported(tmp_path):
    checkpoint, bundle = saved(tmp_path / "model.pt", relative=2), tmp_path / "bundle"
    export_bundle(checkpoint, bundle, batches=BATCHES, quiet=True)  # which compares both
    sources = [["a", "b", "c", "a", "b", "c", "d"], ["d"]]
    assert Predictor.load(bundle).predict(sources, 2) == Predictor.load(checkpoint).predict(sources, 2)


def test_the_manifest_says_what_was_compared(bundle):
    manifest = Bundle.load(bundle).manifest
    assert manifest.architecture == "transformer" and manifest.shape is None
    compared = {(row.runtime, row.dtype, row.batch, row.samples) for row in manifest.parity}
    assert compared == {(r, d, b, n) for r, d in (("onnx", "float64"), ("torch", "float32"), ("onnx", "float32"))
                        for b, n in BATCHES.items()}  # fmt: skip
    assert all(row.differing == 0 or row.dtype == "float32" for row in manifest.parity)


def test_an_export_that_computes_something_else_is_refused(checkpoint, tmp_path):
    loaded = Checkpoint.load(checkpoint)
    assert isinstance(loaded.network, Transformer)
    made = transformer.assemble(loaded, loaded.network, tmp_path)
    loaded.network.kinds.weight.data *= -1
    with pytest.raises(BundleError, match="does not compute what its checkpoint does"):
        transformer.verify(loaded, made, BATCHES, quiet=True)


def test_what_a_transformer_has_not(checkpoint, bundle, tmp_path):
    for options in ({"int8": True}, {"torchscript": True}):
        with pytest.raises(BundleError, match="ONNX in float32 alone"):
            export_bundle(checkpoint, tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="runs in onnx alone"):
        Predictor.load(bundle, "torchscript")
    with pytest.raises(UserError, match="only a generator with prototypes"):
        attention(Checkpoint.load(checkpoint), 0)
    with pytest.raises(UserError, match="holds a predictor, expected a generator"):
        Generator.load(checkpoint)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"architecture": "recurrent"}, "a recurrent without a shape"),
        ({"shape": {"hidden": 1, "output": 1, "dtype": "float32"}}, "a transformer with a shape"),
        ({"kind": "generator"}, "a generator with a transformer"),
    ],
)
def test_manifests_that_contradict_themselves(bundle, tmp_path, change, says):
    for file in bundle.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | change))
    with pytest.raises(BundleError, match=says):
        Bundle.load(tmp_path)
