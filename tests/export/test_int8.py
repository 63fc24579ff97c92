"""Int8 bundles: another sampler than their checkpoint, but one whose samples have an address; and they say so."""

import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from compgen import Generator
from compgen.cli.export import Options
from compgen.cli.export import export as command
from compgen.errors import BundleError
from compgen.export.assemble import assemble
from compgen.export.bundle_writer import export
from compgen.export.int8 import SPARED, approximate, divergence, opened, to_round, verify_approximate
from compgen.export.verify import task
from compgen.models.backend import TorchBackend
from compgen.runtime.backend import StepInputs
from compgen.runtime.bundle import Bundle
from compgen.runtime.onnx_backend import OnnxBackend, OnnxLoop
from tests.export.tiny import exported, make

LARGE = {"hidden": 64}  # the smallest network here with a product worth it
ALONE = {"memories": 0, "copying": False, "feed": False}
READER = {"memories": 1, "feed": False, "tied": False, "output": 6, "initial": "encoder"}


@pytest.fixture(scope="module")
def int8(tmp_path_factory):
    """A function that exports `make(**LARGE, **changes)` in int8, each once."""

    @cache
    def exported_in_int8(**changes) -> Path:
        folder = tmp_path_factory.mktemp("int8")
        make(**LARGE, **changes).save(folder / "model.pt")
        export(folder / "model.pt", folder / "bundle", batches={7: 30}, int8=True, quiet=True)
        return folder / "bundle"

    return exported_in_int8


@pytest.mark.parametrize(
    "changes", [{}, *(pytest.param(one, marks=pytest.mark.long) for one in (READER, ALONE))], ids=str
)
def test_a_sample_does_not_depend_on_batch_threads_workers_or_who_loops(int8, changes):
    folder = int8(**changes)
    drawn = [
        [draw.tokens for draw in Generator.load(folder, threads=threads).draw(3, 0, 120, batch=batch, workers=workers)]
        for batch, threads, workers in ((64, 1, 1), (1, 1, 1), (7, 1, 1), (7, 2, 1), (16, 1, 3))
    ]
    assert len(set(drawn[0])) > 60
    assert all(other == drawn[0] for other in drawn[1:])
    if changes.get("memories", 2):
        bundle, work = Bundle.load(folder), task(make(**LARGE, **changes), 60)
        stepped = work.stepwise(OnnxBackend(bundle), 60, 13)
        for batch in (1, 60):
            assert work.looped(OnnxLoop(bundle), "float32", 60, batch) == stepped


@pytest.mark.parametrize("rows", [1, 4])
def test_a_step_is_the_same_to_the_last_bit_whatever_other_rows_hold(int8, rows):
    backend = OnnxBackend(Bundle.load(int8()))
    alone, loud = backend.step(state(rows)), state(9)
    for part in (loud.hidden, loud.cell, loud.fed, loud.keys, loud.values):
        part[rows:] *= 50
    for one, other in zip(alone, backend.step(loud), strict=True):
        np.testing.assert_array_equal(one, other[:rows])


def state(rows):
    """Inputs of a step of `make(**LARGE)`; fewer rows are the first of more."""
    rng = np.random.default_rng(5)
    sizes = {"hidden": (64,), "cell": (64,), "fed": (8,), "keys": (2, 6, 5), "values": (2, 6, 5)}
    floats = {name: rng.uniform(-0.9, 0.9, (9, *size)).astype(np.float32)[:rows] for name, size in sizes.items()}
    ids = {"token": rng.integers(5, 12, 9)[:rows], "memory_tokens": rng.integers(0, 12, (9, 2, 6))[:rows]}
    counts = {name: np.full(rows, 1) for name in ("position", "half")}
    draws = {"uniform": np.full(rows, 0.4, np.float32), "temperature": np.ones(2, np.float32)}
    return StepInputs(**floats, **ids, **counts, **draws)


@pytest.mark.parametrize("changes", [{}, READER], ids=str)
def test_its_distribution_is_close_to_the_checkpoints_and_not_the_same(int8, changes):
    checkpoint = make(**LARGE, **changes)
    exact, work = TorchBackend(checkpoint.network), task(checkpoint, 40)
    written = work.stepwise(exact, 40, 40)
    tokens, nats = divergence(opened(work, exact), opened(work, OnnxBackend(Bundle.load(int8(**changes)))), written)
    assert tokens == sum(map(len, written))
    assert 1e-7 < nats / tokens < 1e-2
    # Against itself there is nothing to find, and against other weights much more.
    assert divergence(opened(work, exact), opened(work, exact), written) == (tokens, 0)
    other = make(**LARGE, **changes)
    other.network.combine.bias.data += 0.2
    assert divergence(opened(work, exact), opened(work, TorchBackend(other.network)), written)[1] > 5 * nats


def _alone(work, exact, changed, sequence):
    return divergence(opened(work, exact), opened(work, changed), [sequence])


def test_divergence_is_summed_over_the_tokens_of_each_sequence_alone():
    checkpoint = make()
    other = make()
    other.network.combine.bias.data += 0.2
    exact, changed, work = TorchBackend(checkpoint.network), TorchBackend(other.network), task(checkpoint, 6)
    written = work.stepwise(exact, 6, 6)
    assert len(set(map(len, written))) > 1
    together = divergence(opened(work, exact), opened(work, changed), written)
    apart = [
        _alone(replace(work, memory_tokens=work.memory_tokens[row : row + 1]), exact, changed, sequence)
        for row, sequence in enumerate(written)
    ]
    assert together[0] == sum(tokens for tokens, _ in apart)
    assert together[1] == pytest.approx(sum(nats for _, nats in apart), rel=1e-4)


def test_large_weights_are_integers_that_no_processor_saturates_on(int8):
    for name in ("step.onnx", "sampler.onnx"):
        model = onnx.load(int8() / name)
        integers = [numpy_helper.to_array(t) for t in model.graph.initializer if t.data_type == onnx.TensorProto.INT8]
        assert [weights.shape for weights in integers] == [(72, 256)]
        assert 2 * 255 * np.abs(integers[0].astype(int)).max() < 2**15
        assert np.abs(integers[0]).max() == 64
        floats = [t for t in model.graph.initializer if t.data_type == onnx.TensorProto.FLOAT]
        assert all(np.prod(t.dims) < 72 * 256 for t in floats)


@pytest.mark.parametrize(
    ("gates", "combine", "project", "rounded"),
    [
        (512, 128, 8, {"gates"}),
        (320, 128, 8, {"gates", "combine"}),  # 9% of the multiplications
        (1024, 128, 128, {"gates"}),
        (512, 128, 128, {"gates", "combine"}),  # each is less than 8%, both are more
        (256, 256, 8, {"gates", "combine"}),
    ],
)
def test_products_nearest_to_the_tokens_stay_in_float32_where_they_are_few(gates, combine, project, rounded):
    sizes = {"gates": (512, gates), "combine": (128, combine), "project": (128, project)}
    weights = {name: np.full(size, number, np.float32) for number, (name, size) in enumerate(sizes.items())}
    nodes = [helper.make_node("MatMul", ["x", name], [f"{name}/out"]) for name in weights]
    tensors = [numpy_helper.from_array(matrix, name) for name, matrix in weights.items()]
    found = to_round(helper.make_model(helper.make_graph(nodes, "step", [], [], tensors)), weights)
    assert {output.removesuffix("/out") for output in found} == rounded
    large = [matrix.size for matrix in weights.values() if matrix.size >= 2**14]
    assert sum(large) - sum(matrix.size for _, matrix in found.values()) <= SPARED * sum(large)


def test_manifest_and_card_say_that_it_is_approximate(int8):
    manifest = Bundle.load(int8()).manifest
    measured = manifest.approximation
    assert measured.weights == "int8"
    assert measured.samples == 30
    assert 15 < measured.same <= 30
    assert 0 < measured.kl < 1e-2
    assert {row.runtime for row in manifest.parity} == {"onnx", "onnx, 2 threads", "onnx loop"}
    assert all(row.differing == 0 for row in manifest.parity)
    assert "sampler.ts" not in manifest.files
    assert manifest.shape.dtype == "float32"
    card = (int8() / "README.md").read_text()
    assert "## Approximate" in card
    assert f"{measured.same} of 30 samples are the checkpoint's" in card
    assert "PyTorch in float64" not in card
    assert Bundle.load(exported()).manifest.approximation is None
    assert "Approximate" not in (exported() / "README.md").read_text()


def test_a_loop_that_gives_other_samples_is_caught(int8, tmp_path):
    shutil.copytree(int8(), tmp_path / "bundle")
    bundle = Bundle.load(tmp_path / "bundle")
    other = make(**LARGE)
    other.network.combine.bias.data += 0.2
    (tmp_path / "other").mkdir()
    assemble(other, tmp_path / "other")
    bundle.files["sampler.onnx"] = (tmp_path / "other" / "sampler.onnx").read_bytes()
    with pytest.raises(BundleError, match="depend on what they are drawn with: onnx loop"):
        verify_approximate(make(**LARGE), bundle, {7: 40}, quiet=True)


@pytest.mark.parametrize(
    ("kind", "changes", "options", "message"),
    [
        ("predictor", LARGE, {}, "for generators.* this is neither"),
        ("generator", {}, {}, "no weight matrix of this network is large enough"),
        ("generator", LARGE, {"torchscript": True}, "has no TorchScript"),
        ("generator", LARGE | {"own": 4}, {}, "int8 is for networks that copy from prototypes alone"),
        ("generator", LARGE | {"latent": 4}, {}, r"without latent vectors \(latent = 0\)"),
    ],
)
def test_what_cannot_be_had_in_int8_is_refused_and_nothing_written(tmp_path, kind, changes, options, message):
    make(kind, **changes).save(tmp_path / "model.pt")
    with pytest.raises(BundleError, match=message):
        export(tmp_path / "model.pt", tmp_path / "out", int8=True, quiet=True, **options)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_float64_weights_are_refused(tmp_path):
    checkpoint = make(**LARGE)
    checkpoint.network.double()
    with pytest.raises(BundleError, match="from float32 weights, found float64"):
        approximate(checkpoint, assemble(checkpoint, tmp_path))


def test_the_command_prints_the_measured_distance(tmp_path, capsys):
    make(**LARGE).save(tmp_path / "model.pt")
    command(tmp_path / "model.pt", Options(folder=tmp_path / "out", samples=10, int8=True))
    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'out'}\n"
    assert "approximate (int8)" in printed.err
    assert "this bundle's own" in printed.err


def test_products_with_several_matrices_are_never_of_one_row(int8):
    """ONNX Runtime adds up a product of one row in another order, so each gets a row more."""
    graph = onnx.load(int8() / "step.onnx").graph
    made = {output: node.op_type for node in graph.node for output in node.output}
    constants = {tensor.name: tensor for tensor in graph.initializer}
    constants |= {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant"}
    matrices = {name for name, tensor in constants.items() if len(tensor.dims) == 3}
    products = [node for node in graph.node if node.op_type == "MatMul" and node.input[1] in matrices]
    assert products and all(made[node.input[0]] == "Pad" for node in products)
