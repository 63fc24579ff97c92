"""Bundles: what is whole loads, and everything else is refused in one line that says what was found and expected."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compgen.errors import BundleError
from compgen.export.bundle_writer import export
from compgen.runtime import bundle as room
from compgen.runtime.backend import warm
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import plain
from tests.export.tiny import exported, make
from tests.runtime.altered import edit, sign


@pytest.fixture
def copied(tmp_path):
    """A bundle that a test may spoil."""
    return shutil.copytree(exported(), tmp_path / "mine")


def refuse(folder, match):
    with pytest.raises(BundleError, match=match) as caught:
        Bundle.load(folder)
    assert "\n" not in str(caught.value)


def test_a_whole_bundle_loads():
    generator = Bundle.load(exported())
    assert generator.vocabulary == list(make().vocabulary.tokens)
    for name, array in vars(make().pool).items():
        np.testing.assert_array_equal(getattr(generator.pool, name), array)
    predictor = Bundle.load(exported("predictor"))
    assert predictor.pool is None
    assert predictor.manifest.sampling == {"temperature": [0.0, 0.0]}


def test_no_more_memory_is_taken_than_a_file_has_bytes(tmp_path):
    (tmp_path / "step.onnx").write_bytes(b"graph")  # whatever its manifest says
    assert room.read_within(tmp_path / "step.onnx", 2**60) == b"graph"
    assert room.read_within(tmp_path / "step.onnx", 3) == b"grap"


@pytest.mark.parametrize("name", ["step.onnx", "sampler.ts", "pool.safetensors", "README.md"])
def test_files_cut_short_altered_or_missing(copied, name):
    data = (copied / name).read_bytes()
    (copied / name).write_bytes(data[:-1])
    refuse(copied, rf"{name}: .* bytes, expected .*: cut short or altered")
    middle = len(data) // 2
    (copied / name).write_bytes(data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :])
    refuse(copied, rf"{name}: altered: SHA-256")
    (copied / name).unlink()
    refuse(copied, rf"{name}: missing")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda c: c.update(version=2), "bundle version 2, this compgen reads 1"),
        (lambda c: c.update(format="another"), "format 'another', expected 'compgen-bundle'"),
        (lambda c: c.update(surprise=1), "surprise: Extra inputs"),
        (lambda c: c.pop("shape"), "a recurrent without a shape"),
        (lambda c: c["shape"].update(dtype="float16"), "shape.dtype: .*found 'float16'"),
        (lambda c: c["files"].pop("step.onnx"), "lists no step.onnx"),
        (lambda c: c["files"].pop("pool.safetensors"), "lists no pool.safetensors"),
        (lambda c: c["files"].update({"../../x": c["files"]["step.onnx"]}), "plain name"),
        (lambda c: c["files"].update({"/etc/passwd": c["files"]["step.onnx"]}), "plain name"),
        (lambda c: c["files"].update({"..": c["files"]["step.onnx"]}), "plain name"),
        (lambda c: c["graphs"].update({"../x": c["graphs"]["step.onnx"]}), "lists no ../x"),
        (lambda c: c["sampling"].update(temperature="hot"), "sampling.temperature 'hot'"),
        (lambda c: c["sampling"].update(temperature=[1e12, 0]), "sampling.temperature 1000000000000.0: expected 0"),
        (lambda c: c.update(prototypes=3), "expected 3 prototypes"),
    ],
)
def test_manifests_that_are_not_ours(copied, change, match):
    edit(copied, change)
    refuse(copied, match)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "null", '"compgen-bundle"', "[" * 100_000, "\ufffd\x00"])
def test_manifests_that_are_not_manifests(copied, text):
    (copied / "manifest.json").write_text(text)
    refuse(copied, r"manifest.json: (cannot be read|format None, expected)")


@pytest.mark.parametrize("name", ["manifest.json", "step.onnx"])
def test_a_file_that_may_not_be_read_is_neither_missing_nor_a_link(copied, monkeypatch, name):
    opened = os.open

    def refusing(path, *how):
        if Path(path).name == name:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *how)

    monkeypatch.setattr(os, "open", refusing)
    with pytest.raises(BundleError, match=f"{name}: cannot be read: Permission denied$"):
        Bundle.load(copied)


def test_a_link_out_of_the_bundle_is_not_followed(copied, tmp_path):
    (tmp_path / "outside").write_bytes((copied / "step.onnx").read_bytes())
    (copied / "step.onnx").unlink()
    (copied / "step.onnx").symlink_to(tmp_path / "outside")
    refuse(copied, r"step.onnx: missing or a link, expected a plain file")


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda pool: pool.update(tokens=pool["tokens"] + 99), "token ids outside"),
        (lambda pool: pool.update(tokens=pool["tokens"].astype(np.int64)), "tokens is int64"),
        (lambda pool: pool.update(members=pool["members"] - 9), "members outside"),
        (lambda pool: pool.update(counts=pool["counts"] + 99), "groups outside"),
        (lambda pool: pool.update(counts=pool["counts"] * 0), "groups outside"),
        (lambda pool: pool.update(counts=pool["counts"] * 2**31), "more than 2\\^53 tuples"),
        (lambda pool: pool.update(starts=pool["starts"][:, :1].copy()), "expected 2 prototypes"),
        (lambda pool: pool.pop("starts"), "has no array starts"),
    ],
)
def test_pools_that_would_be_read_out_of_bounds(copied, change, match):
    pool = load_file(copied / "pool.safetensors")
    change(pool)
    save_file(pool, copied / "pool.safetensors")
    sign(copied, "pool.safetensors")
    refuse(copied, match)


def test_signed_nonsense_is_refused_too(copied):
    (copied / "pool.safetensors").write_bytes(b"\xff" * 64)
    sign(copied, "pool.safetensors")
    refuse(copied, "pool.safetensors: not a file of arrays")
    (copied / "vocabulary.json").write_text('{"a": 1}')
    sign(copied, "vocabulary.json")
    refuse(copied, "vocabulary.json: expected a list of strings")


def test_names_resolve_to_bundles_that_come_with_the_product(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "PACKAGE", tmp_path / "compgen")
    shipped = tmp_path / "exported" / "scan"
    shutil.copytree(exported(), shipped)
    assert Bundle.load("scan").path == shipped
    assert Bundle.load("exported/scan").path == shipped
    refuse("some/where/scan", "some/where/scan: no such bundle; expected a bundle's folder, or the name of one")
    nearer = shutil.copytree(shipped, tmp_path / "compgen" / "exported" / "scan")
    assert Bundle.load("scan").path == nearer
    refuse("scam", "a bundle's folder, or the name of one that comes with compgen: scan")
    (tmp_path / "file").write_text("x")
    refuse(tmp_path / "file", "a file, expected a model: a bundle's folder")
    (tmp_path / "empty").mkdir()
    refuse(tmp_path / "empty", "not a bundle: it has no manifest.json")
    shutil.copytree(shipped, tmp_path / "empty" / "bundle")  # as in the folder of a comparison
    refuse(tmp_path / "empty", f"it has no manifest.json; {tmp_path / 'empty' / 'bundle'} is one")


def test_loading_imports_neither_torch_nor_onnxruntime():
    program = (
        "import sys; from compgen.runtime.bundle import Bundle; Bundle.load(sys.argv[1]); "
        "assert not {'torch', 'onnxruntime', 'onnx'} & set(sys.modules), 'heavy'"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", program, str(exported())], check=True, env=environment)


@pytest.mark.parametrize(
    ("name", "fits"),
    [
        ("a" * 100, True),
        ("a" * 101, False),
        ("", False),
        (".a", False),
        ("a/b", False),
        ("\u00e4", False),
        ("A-9_.b", True),
    ],
)
def test_a_name_that_can_only_be_that_of_a_file(name, fits):
    assert plain(name) == fits


@pytest.mark.parametrize(
    ("temperature", "fits"), [(0, True), (1e-3, True), (9e-4, False), (1000, True), (1001, False), (-1, False)]
)
def test_temperatures_have_their_range(temperature, fits):
    if fits:
        assert warm(temperature) == temperature
    else:
        with pytest.raises(ValueError, match="expected 0"):
            warm(temperature)


def test_a_matrix_in_integers_has_so_many_rows_that_no_sum_leaves_32_bits(tmp_path, monkeypatch):
    make(hidden=64).save(tmp_path / "model.pt")
    export(tmp_path / "model.pt", tmp_path / "mine", batches={7: 20}, int8=True, quiet=True)
    monkeypatch.setattr(room, "MOST_DEPTH", 8 + 64)  # what the step before wrote, and the hidden state
    Bundle.load(tmp_path / "mine")
    monkeypatch.setattr(room, "MOST_DEPTH", 8 + 64 - 1)
    with pytest.raises(BundleError, match="state_gates is too large for integers"):
        Bundle.load(tmp_path / "mine")


def test_the_runner_takes_matrices_of_as_many_rows():
    header = (Path(__file__).parents[2] / "cpp_runner" / "src" / "integers.h").read_text()
    assert f"MOST_DEPTH = 1 << {room.MOST_DEPTH.bit_length() - 1};" in header
    assert room.MOST_DEPTH * 255 * 127 < 2**31
