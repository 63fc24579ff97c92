"""A bundle gives what it gave where it was made, in every runtime, or `verify` says where it does not."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from compgen.data import random
from compgen.errors import BundleError, UserError
from compgen.export import golden_draws
from compgen.export.bundle_writer import export
from compgen.export.golden_draws import ANSWERS, FEWEST, SAFE, STREAMS, draws_of, margins
from compgen.models.backend import TorchBackend
from compgen.runtime.bundle import Bundle
from compgen.runtime.golden import golden_of
from compgen.runtime.manifest import GOLDEN
from compgen.runtime.onnx_backend import OnnxBackend, OnnxLoop
from compgen.sampling.batching import draws
from compgen.trained import verification
from compgen.trained.verification import (
    TOLERANCE,
    TOLERANCE_IN_INTEGERS,
    TOLERANCE_OF_ANSWERS,
    Verified,
    verify_bundle,
)
from tests.cli.shell import compgen, refused, said
from tests.export.tiny import exported, make
from tests.runtime.altered import edit, sign

SHIPPED = Path(__file__).parents[2] / "exported" / "recomb2"


def with_other_weight(folder, name, by=0.1):
    """Add to one weight of a graph's largest matrix."""
    model = onnx.load(folder / name)
    tensor = max(model.graph.initializer, key=lambda one: np.prod(one.dims) * (one.data_type == 1))
    array = numpy_helper.to_array(tensor).copy()
    array.flat[array.size // 2] += by
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    sign(folder, name, model.SerializeToString())


def test_the_runner_allows_the_same_differences():
    source = (Path(__file__).parents[2] / "cpp_runner" / "src" / "verify.cpp").read_text("utf-8")
    pattern = r"TOLERANCE = (\S+), TOLERANCE_IN_INTEGERS = (\S+);\n.* TOLERANCE_OF_ANSWERS = (\S+);"
    written = re.search(pattern, source)
    assert written is not None
    assert [float(number) for number in written.groups()] == [TOLERANCE, TOLERANCE_IN_INTEGERS, TOLERANCE_OF_ANSWERS]


def rows_of(folder, **options):
    rows, notes = verify_bundle(folder, "cpu", **options)
    return {row.runtime: row for row in rows}, notes


def test_the_shipped_bundle_gives_its_golden_draws_without_torch():
    program = (
        "import sys; from compgen.cli.main import app; app(['verify', 'recomb2', '--json'], standalone_mode=False); "
        "assert 'torch' not in sys.modules, 'torch'"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row["runtime"] for row in rows[:2]] == ["onnx step, cpu", "onnx loop, cpu"]
    for row in rows:
        assert row["passed"] and row["samples"] == row["equal"] == 220 and row["first"] == "" and row["rate"] > 0
        assert row["largest"] <= TOLERANCE
    assert "TorchScript: the bundle has none" in done.stderr


def test_the_shipped_golden_draws_reach_beyond_32_bits_and_vary_in_temperature():
    streams = golden_of(Bundle.load(SHIPPED)).streams
    assert sum(len(stream.samples) for stream in streams) >= 200
    assert [stream.seed for stream in streams] == [0, 2**64 - 1, 2**33 + 1]
    assert [stream.samples[0].index >= 2**32 for stream in streams] == [False, True, True]
    assert [stream.temperature for stream in streams] == [[0.4, 0.0], [0.4, 0.0], [1.0, 1.0]]


@pytest.mark.parametrize(
    "name", ["sampler.onnx", *(pytest.param(name, marks=pytest.mark.long) for name in ("step.onnx", "encoder.onnx"))]
)
def test_one_other_weight_is_found(tmp_path, name):
    folder = shutil.copytree(SHIPPED, tmp_path / "mine")
    with_other_weight(folder, name)
    rows, _ = rows_of(folder)
    wrong = {"sampler.onnx": {"onnx loop, cpu"}}.get(name, {"onnx step, cpu"})
    assert {name for name, row in rows.items() if not row.passed and "onnx" in name} == wrong


def test_where_the_first_difference_is(tmp_path):
    folder = shutil.copytree(exported(), tmp_path / "mine")
    golden = json.loads((folder / "golden.json").read_text())
    samples = golden["streams"][0]["samples"]
    samples[4]["tokens"][1] = 5 if samples[4]["tokens"][1] != 5 else 6
    samples[7]["prototypes"][0] += 1 if samples[7]["prototypes"][0] == 0 else -1
    samples[9]["log_prob"] -= 2 * TOLERANCE
    sign(folder, "golden.json", json.dumps(golden).encode())
    row = rows_of(folder)[0]["onnx step, cpu"]
    assert (row.equal, row.first, row.passed) == (row.samples - 2, f"{samples[4]['index']}, token 1", False)
    assert row.largest == pytest.approx(2 * TOLERANCE)
    refused(compgen("verify", folder), "not what was exported")


def test_a_runtime_that_is_not_here_is_not_called_a_wrong_bundle(monkeypatch):
    rows = [Verified("onnx step", 9, 9), Verified("torchscript", 9, problem="TorchScript needs torch")]
    monkeypatch.setattr(verification, "verify_bundle", lambda *_, **__: (rows, []))
    assert "mine: torchscript: cannot be run here: TorchScript needs torch\n" in said("verify", "mine")[1]
    rows.insert(0, Verified("onnx loop", 9, 8))
    assert "mine: onnx loop: not what was exported: 8 of 9 samples are the golden ones\n" in said("verify", "mine")[1]


@pytest.mark.parametrize(
    ("kind", "changes"),
    [("generator", {}), ("generator", {"memories": 0, "copying": False, "feed": False}), ("predictor", {})],
    ids=str,
)
def test_every_export_has_golden_draws_that_all_runtimes_give(kind, changes):
    bundle = Bundle.load(exported(kind, **changes))
    golden = golden_of(bundle)
    held = len(golden.answers) + sum(len(stream.samples) for stream in golden.streams)
    assert held == (ANSWERS if kind == "predictor" else sum(wanted for _, _, wanted in STREAMS)) >= 200
    rows, notes = rows_of(bundle.path, trust_code=True)
    assert {"onnx step, cpu", "onnx loop, cpu"} <= set(rows)
    assert ("torchscript" in rows) == (not changes) == ("TorchScript: the bundle has none" not in notes)
    assert all(row.passed for row in rows.values()), rows


def test_answers_of_a_loop_without_a_probability_are_found(monkeypatch):
    true = OnnxLoop.sample

    def sample(self, *given):
        tokens, log_probs = true(self, *given)
        return tokens, np.where(np.arange(len(log_probs)) == 7, np.nan, log_probs)

    monkeypatch.setattr(OnnxLoop, "sample", sample)
    row = rows_of(exported("predictor"))[0]["onnx loop, cpu"]
    assert not row.passed and row.problem.endswith("the network gives a probability that is no number"), row


def test_an_int8_bundle_is_verified_too(tmp_path):
    make(hidden=64).save(tmp_path / "model.pt")
    export(tmp_path / "model.pt", tmp_path / "bundle", batches={7: 20}, int8=True, quiet=True)
    rows, _ = rows_of(tmp_path / "bundle")
    assert all(row.passed for row in rows.values()), rows


@pytest.mark.parametrize(("safe", "streams"), [(2.0, 1), (0.05, 3)])
def test_there_are_golden_draws_however_few_are_safe(monkeypatch, safe, streams):
    """Where a network has learned nothing or knows many words, none may be, or few that are far apart."""
    monkeypatch.setattr(golden_draws, "SAFE", safe)
    bundle = Bundle.load(exported())
    golden = draws_of(bundle, OnnxBackend(bundle, provider="cpu"))
    assert len(golden.streams) == streams and sum(len(stream.samples) for stream in golden.streams) >= FEWEST
    assert golden_of(replace(bundle, files=bundle.files | {GOLDEN: golden.model_dump_json().encode()})) == golden


def test_golden_draws_stay_away_from_boundaries():
    """A uniform number that is moved by less than the margin gives the same draw, and by a little more another one."""
    backend, pool = TorchBackend(make().network), make().pool
    samples = np.arange(40, dtype=np.int64)
    far = margins(backend, pool, 3, samples, (1.0, 1.0), 9)
    kept = {"seed": 3, "start": 0, "stop": 40, "max_length": 9, "temperature": (1.0, 1.0)}
    expected = [draw.tokens for draw in draws(backend, pool, **kept)]
    true = random.uniforms
    moved = dict.fromkeys((-1.0, 1.0))
    for way in moved:
        for scale in (0.9, 1.1):

            def uniforms(seed, addresses, count, way=way, scale=scale):
                return np.clip(true(seed, addresses, count) + way * scale * far[addresses][:, None], 0, 1 - 1e-7)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(random, "uniforms", uniforms)
                found = [draw.tokens for draw in draws(backend, pool, **kept)]
            same = [one == other for one, other in zip(found, expected, strict=True)]
            if scale < 1:
                assert all(same)
            else:
                moved[way] = same
    assert sum(not (up and down) for up, down in zip(*moved.values(), strict=True)) > 30
    assert far.min() < SAFE * 10 and (far >= 0).all()


def test_a_bundle_without_golden_draws(tmp_path):
    folder = shutil.copytree(exported(), tmp_path / "mine")
    edit(folder, lambda content: content["files"].pop("golden.json"))
    with pytest.raises(BundleError, match="holds no golden draws: export it again"):
        verify_bundle(folder)


def test_code_is_run_on_the_users_word_alone():
    from compgen.api import Generator

    with pytest.raises(UserError, match=r"sampler\.ts: TorchScript is code.*--trust-code"):
        Generator.load(exported(), "torchscript")
    with pytest.raises(UserError, match="for the runtime torchscript alone"):
        Generator.load(exported(), trust_code=True)
    assert len(list(Generator.load(exported(), "torchscript", trust_code=True).draw(0, 0, 3))) == 3


def test_code_that_the_manifest_does_not_list_is_never_run(tmp_path):
    from compgen.api import Generator

    folder = shutil.copytree(exported(), tmp_path / "mine")
    edit(folder, lambda content: content["files"].pop("sampler.ts"))
    with pytest.raises(BundleError, match="was exported without TorchScript"):
        Generator.load(folder, "torchscript", trust_code=True)
