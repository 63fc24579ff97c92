"""ONNX Runtime: samples as PyTorch's without torch, providers chosen honestly, installations that cannot work named."""

import json
import os
import shutil
import subprocess
import sys
from importlib import metadata

import numpy as np
import onnx
import pytest

from compgen.errors import BundleError, UserError
from compgen.models.backend import TorchBackend
from compgen.runtime import device
from compgen.runtime.bundle import Bundle
from compgen.runtime.onnx_backend import OnnxBackend, OnnxGraph
from compgen.sampling.batching import draws
from tests.export.tiny import exported, make
from tests.runtime.altered import output_through, sign

WITHOUT_TORCH = """
import json, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {"torch", "onnx", "onnxscript"}:
            raise ImportError(f"{name} is not for servers")

sys.meta_path.insert(0, Blocker())
from compgen.runtime.bundle import Bundle
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.sampling.batching import draws

bundle = Bundle.load(sys.argv[1])
found = draws(OnnxBackend(bundle), bundle.pool, seed=5, start=10, stop=60, max_length=9, temperature=(1.0, 0.5))
print(json.dumps([draw.tokens for draw in found]))
"""


def test_sampling_needs_no_torch_gives_the_samples_of_torch_and_writes_nothing_at_home(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    environment.pop("ORT_DISABLE_TELEMETRY", None)
    ran = subprocess.run(
        [sys.executable, "-c", WITHOUT_TORCH, str(exported())],
        check=True,
        env=environment,
        capture_output=True,
        text=True,
    )
    backend = TorchBackend(make().network)
    expected = draws(backend, make().pool, seed=5, start=10, stop=60, max_length=9, temperature=(1.0, 0.5))
    assert json.loads(ran.stdout) == [list(draw.tokens) for draw in expected]
    assert not [*tmp_path.iterdir()]


def test_threads_of_a_session_that_waits_leave_the_processors_to_others():
    graph = OnnxGraph(Bundle.load(exported()), "step.onnx", 2, "cpu")
    options = graph.session.get_session_options()
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
    assert options.intra_op_num_threads == 2


def test_batches_workers_and_threads_do_not_matter():
    bundle = Bundle.load(exported())
    options = {"seed": 2, "start": 0, "stop": 50, "max_length": 9, "temperature": (1.0, 1.0)}
    expected = [draw.tokens for draw in draws(OnnxBackend(bundle), bundle.pool, **options)]
    for threads, slots, workers in [(1, 3, 1), (2, 50, 1), (1, 8, 3)]:
        got = draws(OnnxBackend(bundle, threads), bundle.pool, slots=slots, workers=workers, **options)
        assert [draw.tokens for draw in got] == expected


def test_a_network_without_memories_is_fed_none():
    bundle = Bundle.load(exported(memories=0, copying=False, feed=False))
    assert "encoder.onnx" not in bundle.manifest.files
    got = list(
        draws(OnnxBackend(bundle), bundle.pool, seed=0, start=0, stop=9, max_length=9, temperature=(1.0, 1.0), slots=4)
    )
    assert len(got) == 9


def test_providers():
    bundle = Bundle.load(exported())
    assert OnnxBackend(bundle, provider="cpu").provider == "CPUExecutionProvider"
    with pytest.raises(UserError, match="no provider 'tpu': expected one of auto, cpu, cuda"):
        OnnxBackend(bundle, provider="tpu")
    try:
        assert OnnxBackend(bundle, provider="cuda").provider == "CUDAExecutionProvider"
    except UserError as error:
        assert "CUDA was asked for" in str(error)  # noqa: PT017 -- which of the two depends on the machine
        assert OnnxBackend(bundle).provider == "CPUExecutionProvider"


@pytest.mark.filterwarnings("ignore:Specified provider")
@pytest.mark.parametrize("provider", ["auto", "cuda"])
def test_a_gpu_build_without_a_gpu_falls_back_only_when_it_may(monkeypatch, provider):
    """A build with CUDA lists its provider even where there is none, and its sessions fall back silently."""
    import onnxruntime

    if "CUDAExecutionProvider" in onnxruntime.get_available_providers():
        pytest.skip("this build has CUDA")
    listed = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: listed)
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda: None, raising=False)
    bundle = Bundle.load(exported())
    if provider == "auto":
        assert OnnxBackend(bundle, provider=provider).provider == "CPUExecutionProvider"
    else:
        with pytest.raises(UserError, match="CUDA was asked for and cannot be had"):
            OnnxBackend(bundle, provider=provider)


def test_the_way_from_a_cpu_build_to_cuda_does_not_end_in_two_installations(monkeypatch):
    import onnxruntime

    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: ["CPUExecutionProvider"])
    with pytest.raises(UserError, match=r"pip uninstall onnxruntime, then pip install 'compgen\[gpu\]'"):
        device.choose("cuda")


@pytest.mark.parametrize(
    ("installed", "match"),
    [({"onnxruntime", "onnxruntime-gpu"}, "both installed and overwrite each other"), (set(), r"compgen\[cpu\]")],
)
def test_installations_that_cannot_work(monkeypatch, installed, match):
    def version(name):
        if name not in installed:
            raise metadata.PackageNotFoundError(name)
        return "1"

    monkeypatch.setattr(metadata, "version", version)
    if not installed:
        monkeypatch.setitem(sys.modules, "onnxruntime", None)  # what importing finds when it is not there
    with pytest.raises(UserError, match=match):
        device.onnxruntime()


def test_graphs_that_are_something_else_are_refused(tmp_path):
    folder = shutil.copytree(exported(), tmp_path / "mine")
    model = onnx.load(folder / "step.onnx")
    for node in model.graph.node:
        node.input[:] = ["weird" if name == "half" else name for name in node.input]
    model.graph.input[5].name = "weird"
    sign(folder, "step.onnx", model.SerializeToString())
    with pytest.raises(BundleError, match=r"step.onnx: inputs or outputs not those of a step.onnx: weird"):
        OnnxBackend(Bundle.load(folder))
    sign(folder, "step.onnx", b"not a graph")
    with pytest.raises(BundleError, match=r"step.onnx: not an ONNX graph"):
        Bundle.load(folder)


NUMBERS = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
WORDS = onnx.helper.make_tensor_type_proto(onnx.TensorProto.STRING, None)


@pytest.mark.parametrize(
    ("name", "output", "operator", "given", "says"),
    [
        ("step.onnx", "next_token", "Cast", NUMBERS, r"as tensor\(float\), expected tensor\(int64\)"),
        ("step.onnx", "log_probs", "Cast", WORDS, r"as tensor\(string\), expected tensor\(float\)"),
        (
            "encoder.onnx",
            "keys",
            "SequenceConstruct",
            onnx.helper.make_sequence_type_proto(NUMBERS),
            r"as seq\(tensor\(float\)\), expected tensor\(float\)",
        ),
    ],
)
def test_outputs_of_another_type_are_refused(tmp_path, name, output, operator, given, says):
    folder = shutil.copytree(exported(), tmp_path / "mine")
    output_through(
        folder, name, output, operator, given, **({"to": given.tensor_type.elem_type} if operator == "Cast" else {})
    )
    with pytest.raises(BundleError, match=f"{name}: gives {output} {says}"):
        OnnxBackend(Bundle.load(folder))


def test_start_follows_the_configuration():
    zeros = OnnxBackend(Bundle.load(exported()))
    final = np.ones((3, 2, 14), dtype=np.float32)
    hidden, cell = zeros.start(final)
    assert not hidden.any()
    assert not cell.any()
    assert hidden.shape == cell.shape == (3, 12)
    bridged = OnnxBackend(Bundle.load(exported(initial="encoder")))
    expected = TorchBackend(make(initial="encoder").network).start(final)
    np.testing.assert_allclose(bridged.start(final), expected, atol=1e-6)
    assert expected[0].any()
