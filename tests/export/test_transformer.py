"""A Transformer's bundle: small networks, and all that can be wrong with them."""

import json
import shutil
import subprocess

import numpy as np
import onnx
import pytest
import torch
from safetensors.numpy import load_file, save
from torch.nn import LayerNorm

from compgen.api import Generator, Predictor, export_bundle
from compgen.data.examples import Dataset
from compgen.data.vocabulary import BOS_ID, EOS_ID, NEVER_FIRST, Vocabulary
from compgen.errors import BundleError, UserError
from compgen.export import transformer
from compgen.export.golden_draws import FEWEST, SAFE_IN_INTEGERS, _answer_margins
from compgen.export.integers import constants
from compgen.export.step_weights import folded
from compgen.export.verify import answer_distance, task
from compgen.models.backend import TorchTransformer
from compgen.models.config import TransformerNetwork
from compgen.models.transformer import Transformer
from compgen.recombine.origins import attention
from compgen.runtime.bundle import MOST_WEIGHT, Bundle
from compgen.runtime.golden import golden_of
from compgen.runtime.onnx_transformer import OnnxTransformer
from compgen.sampling import native
from compgen.trained.checkpoint import Checkpoint
from compgen.training.config import TransformerConfig
from tests.runtime.altered import output_through, sign

BATCHES = {1: 5, 7: 40}
WORDS = [(["a", "b", "c", "V", "PST"], ["a", "b", "c", "d"]), (["b", "V"], ["b"])]


# Large enough for int8; some of its answers end, and some do not.
LARGE = {"size": 128, "heads": 4, "inner": 64, "layers": 1, "relative": 2, "seed": 4, "embeddings": 0.2}


def saved(path, seed=0, spread=0.3, embeddings=1.0, **changes):
    """A checkpoint of random weights, which some seeds make more lively than others.

    Large networks repeat what they read, unless `embeddings`, which are the output's weights, too, are made smaller.
    """
    torch.manual_seed(seed)
    vocabulary = Vocabulary.of([["a", "b", "c", "d", "V", "PST"]])
    shape = {"layers": 2, "heads": 2, "size": 8, "inner": 12} | changes
    net = Transformer(TransformerNetwork(**shape), len(vocabulary))
    for parameter in net.parameters():
        parameter.data += spread * torch.randn_like(parameter)
    net.embedding.weight.data *= embeddings
    if embeddings < 1:
        net.embedding.weight.data[EOS_ID] *= 1.5  # so that answers end
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


@pytest.mark.parametrize(
    ("name", "output"), [("encoder.onnx", "memory_keys"), ("encoder.onnx", "memory_values"), ("step.onnx", "next_keys")]
)
@pytest.mark.parametrize(("operator", "how"), [("Transpose", {"perm": [1, 0, 2, 3, 4]}), ("Flatten", {"axis": 1})])
def test_keys_and_values_of_another_shape_are_refused(bundle, tmp_path, name, output, operator, how):
    folder = shutil.copytree(bundle, tmp_path / "mine")
    output_through(folder, name, output, operator, **how)
    with pytest.raises(BundleError, match=f"{name}: gives keys or values of shape "):
        Predictor.load(folder, provider="cpu").predict([["a"], ["b"], ["c"]], beam=2)


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


def test_rounding_explains_no_token_that_may_not_be_there(checkpoint):
    """A first token that is forbidden may well be the most probable one."""
    loaded = Checkpoint.load(checkpoint)
    work, truth = task(loaded, 1), TorchTransformer(loaded.network)
    (written,) = work.answers(truth, 1, 1)
    for token in range(BOS_ID, len(loaded.vocabulary)):
        if token != written[0]:
            gap = answer_distance(work, truth, 0, written, (token,))
            assert np.isinf(gap) == (token in NEVER_FIRST)


def test_what_a_transformer_has_not(checkpoint, bundle, tmp_path):
    for options, says in (
        ({"int8": True}, "no matrix of 8 x 12 is large enough"),
        ({"torchscript": True}, "ONNX alone"),
    ):
        with pytest.raises(BundleError, match=says):
            export_bundle(checkpoint, tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UserError, match="runs in onnx and native alone"):
        Predictor.load(bundle, "torchscript")
    with pytest.raises(UserError, match="only a generator with prototypes"):
        attention(Checkpoint.load(checkpoint), 0)
    with pytest.raises(UserError, match="holds a predictor, expected a generator"):
        Generator.load(checkpoint)


@pytest.fixture(scope="module")
def int8(tmp_path_factory):
    """A checkpoint, and its bundle in integers."""
    folder = tmp_path_factory.mktemp("int8")
    checkpoint = saved(folder / "model.pt", **LARGE)
    export_bundle(checkpoint, folder / "bundle", batches=BATCHES, int8=True, quiet=True)
    return checkpoint, folder / "bundle"


def test_in_integers_it_is_another_model_near_by(int8):
    checkpoint, bundle = (Predictor.load(path) for path in int8)
    near, exact = bundle.losses(Dataset.from_pairs(WORDS)), checkpoint.losses(Dataset.from_pairs(WORDS))
    assert near == pytest.approx(exact, rel=0.02) and near != pytest.approx(exact, rel=1e-5)
    measured = Bundle.load(int8[1]).manifest.approximation
    assert measured.weights == "int8" and measured.same / measured.samples > 0.5 and 0 < measured.kl < 0.01
    assert "## Approximate" in (int8[1] / "README.md").read_text()


def test_layers_are_in_integers_and_embeddings_are_not(int8):
    arrays = load_file(int8[1] / "step.safetensors")
    integers = {name.removesuffix(".int8") for name in arrays if name.endswith(".int8")}
    layer = {"attend", "mix", "expand", "contract"}
    beyond = layer | {"remember", "query", "across_mix"}
    assert integers == {f"encoder.0.{name}" for name in layer} | {f"decoder.0.{name}" for name in beyond}
    assert {"embedding", "source_embedding", "project"} < set(arrays)
    assert all(np.abs(arrays[f"{name}.int8"].astype(int)).max() == MOST_WEIGHT for name in integers)
    for name in ("encoder.onnx", "step.onnx"):
        known = constants(onnx.load(int8[1] / name))
        largest = max((array for array in known.values() if array.dtype == np.float32), key=np.size)
        assert largest.shape in ((11, 128), (128, 11))  # the embeddings


def test_a_row_in_integers_does_not_see_others(int8):
    decoder = OnnxTransformer(Bundle.load(int8[1]), provider="cpu")
    some = np.array([[7, 8, 9, EOS_ID], [10, 6, 6, EOS_ID], [9, 9, 10, EOS_ID]])
    _, together = decoder.advance(decoder.open(some))
    for row, log_probs in enumerate(together):
        _, alone = decoder.advance(decoder.open(some[row : row + 1]))
        assert alone[0] == pytest.approx(log_probs, abs=1e-6)  # less than a level of 8 bits makes


def test_golden_answers_keep_away_from_what_a_level_decides(int8):
    bundle = Bundle.load(int8[1])
    sources = [answer.source for answer in golden_of(bundle).answers]
    margins = _answer_margins(OnnxTransformer(bundle, provider="cpu"), sources, bundle.manifest.max_length)
    assert len(sources) >= FEWEST and (margins >= SAFE_IN_INTEGERS - 1e-3).all()


@pytest.mark.usefixtures("built")
def test_weights_that_some_processor_cannot_add_are_refused(int8, tmp_path):
    for file in int8[1].iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    arrays = load_file(tmp_path / "step.safetensors")
    arrays["decoder.0.query.int8"][3, 5] = -65
    sign(tmp_path, "step.safetensors", save(arrays))
    with pytest.raises(BundleError, match=r"decoder\.0\.query\.int8 has numbers beyond 64"):
        Bundle.load(tmp_path)
    command = [native.runner(), tmp_path, "--verify"]
    done = subprocess.run(command, capture_output=True, text=True, env=native.environment(), check=False)
    assert done.returncode == 2 and "decoder.0.query.int8 has numbers beyond 64" in done.stderr


def test_folding_changes_no_answer_and_leaves_normalisations_bare(checkpoint):
    network = Checkpoint.load(checkpoint).network.double().eval()
    source, written = torch.tensor([[6, 7, 8, EOS_ID]]), torch.tensor([[BOS_ID, 7, 8, EOS_ID]])
    bare = folded(network)
    assert torch.allclose(bare.loss(written, source[:, None]), network.loss(written, source[:, None]), atol=1e-12)
    norms = [
        module for name, module in bare.named_modules() if isinstance(module, LayerNorm) and name != "decoder_norm"
    ]
    assert len(norms) == 2 * 2 + 3 * 2 + 1
    assert all((norm.weight == 1).all() and (norm.bias == 0).all() for norm in norms)


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
