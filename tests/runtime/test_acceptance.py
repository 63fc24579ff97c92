"""One rule of acceptance: whatever a bundle is, Python and the C++ runner take it or refuse it alike, and say why."""

import hashlib
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from safetensors.numpy import load_file, save_file

from compgen.api import Generator, Predictor
from compgen.errors import BundleError
from compgen.runtime.manifest import schemas, strict_json
from compgen.sampling import native
from tests.export.tiny import exported
from tests.runtime.altered import edit, sign
from tests.runtime.attacks import SECRET, attacked

SCHEMA = Path(__file__).parents[2] / "compgen" / "runtime" / "manifest.schema.json"


def put(*keys, value):
    """A change of one value of the manifest."""

    def change(folder):
        def inner(content):
            for key in keys[:-1]:
                content = content[key]
            content[keys[-1]] = value

        edit(folder, inner)

    return change


def drop(*keys):
    def change(folder):
        def inner(content):
            for key in keys[:-1]:
                content = content[key]
            del content[keys[-1]]

        edit(folder, inner)

    return change


def raw(old, new):
    """A change of the manifest's bytes."""

    def change(folder):
        path = folder / "manifest.json"
        data = path.read_bytes()
        assert old in data
        path.write_bytes(data.replace(old, new, 1))

    return change


def arrays(name, change):
    """A change of a file of arrays."""

    def apply(folder):
        content = load_file(folder / name)
        change(content)
        save_file(content, folder / name)
        sign(folder, name)

    return apply


def header(name, change):
    """A change of the header of a file of arrays, with its data as they are."""

    def apply(folder):
        data = (folder / name).read_bytes()
        size = int.from_bytes(data[:8], "little")
        content = json.loads(data[8 : 8 + size])
        change(content)
        text = json.dumps(content).encode()
        sign(folder, name, len(text).to_bytes(8, "little") + text + data[8 + size :])

    return apply


def graph(name, change):
    def apply(folder):
        model = onnx.load(folder / name)
        change(model.graph)
        sign(folder, name, model.SerializeToString())

    return apply


def vocabulary(text):
    return lambda folder: sign(folder, "vocabulary.json", text.encode("utf-8", "surrogatepass"))


def poisoned(name, value):
    """A step whose weights hold a number that is none."""

    def change(content):
        for tensor in content.initializer:
            array = onnx.numpy_helper.to_array(tensor).copy()
            if array.dtype == np.float32 and array.size > 1:
                array[...] = value
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))

    return graph(name, change)


def renamed(content):
    for node in content.node:
        node.input[:] = ["weird" if name == "half" else name for name in node.input]
    content.input[5].name = "weird"


def linked(name):
    def change(folder):
        (folder.parent / "outside").write_bytes((folder / name).read_bytes())
        (folder / name).unlink()
        (folder / name).symlink_to(folder.parent / "outside")

    return change


def piped(name):
    def change(folder):
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return change


def prepend(prefix):
    return lambda folder: (folder / "manifest.json").write_bytes(prefix + (folder / "manifest.json").read_bytes())


def token_after_padding(pool):
    row = int((pool["tokens"] == 0).any(axis=1).argmax())
    pool["tokens"][row, -1] = 2
    pool["tokens"][row, -2] = 0


def most_tuples(pool):
    """As many members as make more than 2^53 pairs in blocks of all with all."""
    pool["members"] = np.zeros(3_000_000, np.int32)
    pool["starts"] = np.zeros((1001, 2), np.int64)
    pool["counts"] = np.full((1001, 2), len(pool["members"]), np.int64)


def length_of_header(value):
    def change(folder):
        data = (folder / "pool.safetensors").read_bytes()
        sign(folder, "pool.safetensors", value.to_bytes(8, "little") + data[8:])

    return change


def longer(name):
    def change(folder):
        with (folder / name).open("ab") as file:
            file.write(b"\n")

    return change


STEP = (exported() / "step.onnx").read_bytes()
BIG = "9" * 400
REFUSED = {
    "link for a manifest": linked("manifest.json"),
    "link for a graph": linked("step.onnx"),
    "pipe for a manifest": piped("manifest.json"),
    "pipe for a graph": piped("encoder.onnx"),
    "byte order mark": prepend(b"\xef\xbb\xbf"),
    "not UTF-8": raw(b"made up", b"made \xff"),
    "lone surrogate": raw(b"made up", b"made \\ud800"),
    "NaN": raw(b'"max_length": 9', b'"max_length": NaN'),
    "infinity": raw(b'"max_length": 9', b'"max_length": -Infinity'),
    "too large a number": raw(b'"made up"', b"1e999"),
    "too large a whole number": raw(b'"made up"', BIG.encode()),
    "nested": raw(b'"made up"', b"[" * 63 + b"]" * 63),
    "nested without end": prepend(b"[" * 200_000),
    "two values": lambda folder: (folder / "manifest.json").open("a").write("{}"),
    "a byte of 0 at the end": lambda folder: (folder / "manifest.json").open("a").write("\0"),
    "a byte of 0 at the end of the vocabulary": vocabulary(
        json.dumps(["<pad>", "<s>", "</s>", "→", "<unk>", *"abcdefg"]) + "\0"
    ),
    "control character": raw(b"made up", b"made \x01"),
    "another format": put("format", value="zip"),
    "no format": drop("format"),
    "a list for a manifest": lambda folder: (folder / "manifest.json").write_text("[]"),
    "a manifest that is too large": lambda folder: (folder / "manifest.json").open("a").write(" " * (1 << 24)),
    "a file that is longer": longer("step.onnx"),
    "a file that is not there": lambda folder: (folder / "vocabulary.json").unlink(),
    "version as true": put("version", value=True),
    "version as 1.0": put("version", value=1.0),
    "version as text": put("version", value="1"),
    "surprise": put("surprise", value=1),
    "surprise within": put("shape", "surprise", value=1),
    "no compgen": drop("compgen"),
    "no parity": drop("parity"),
    "compgen as number": put("compgen", value=1),
    "kind": put("kind", value="oracle"),
    "architecture": put("architecture", value="wizard"),
    "shape as list": put("shape", value=[]),
    "shape null": put("shape", value=None),
    "hidden 255": put("shape", "hidden", value=255),
    "hidden 1e9": put("shape", "hidden", value=10**9),
    "hidden 0": put("shape", "hidden", value=0),
    "hidden as text": put("shape", "hidden", value="12"),
    "hidden as 12.0": put("shape", "hidden", value=12.0),
    "hidden as true": put("shape", "hidden", value=True),
    "output 1e9": put("shape", "output", value=10**9),
    "output 7": put("shape", "output", value=7),
    "dtype float16": put("shape", "dtype", value="float16"),
    "dtype float64": put("shape", "dtype", value="float64"),
    "latent beyond": put("shape", "latent", value={"start": 5, "size": 4, "norm": 1.0}),
    "latent with no norm": put("shape", "latent", value={"start": 0, "size": 4, "norm": 0}),
    "max_length 0": put("max_length", value=0),
    **{f"max_length {size}": put("max_length", value=size) for size in (10**8, 10**15, 2**63, 2**64, 2**70)},
    "prototypes 3": put("prototypes", value=3),
    "prototypes -1": put("prototypes", value=-1),
    "prototypes 65": put("prototypes", value=65),
    "no temperature": drop("sampling", "temperature"),
    "temperature as text": put("sampling", "temperature", value="hot"),
    "temperature of a number and a text": put("sampling", "temperature", value=[1.0, "hot"]),
    "temperature of three": put("sampling", "temperature", value=[1, 1, 1]),
    "temperature as booleans": put("sampling", "temperature", value=[True, False]),
    "temperature below 0": put("sampling", "temperature", value=[-1, 0]),
    "temperature too high": put("sampling", "temperature", value=[1e12, 0]),
    "no network": drop("config", "network"),
    "feed as number": put("config", "network", "feed", value=1),
    "activation": put("config", "network", "activation", value="relu"),
    "positions below 0": put("config", "network", "positions", value=-1),
    "hash too short": put("files", "step.onnx", "sha256", value="ab"),
    "hash in capitals": lambda folder: edit(
        folder, lambda c: c["files"]["step.onnx"].update(sha256=c["files"]["step.onnx"]["sha256"].upper())
    ),
    "size below 0": put("files", "step.onnx", "size", value=-1),
    "size too large": put("files", "step.onnx", "size", value=2**40),
    "no step": drop("files", "step.onnx"),
    "no sampler": drop("files", "sampler.onnx"),
    "no pool": drop("files", "pool.safetensors"),
    "no vocabulary": drop("files", "vocabulary.json"),
    "no graph of the step": drop("graphs", "step.onnx"),
    **{
        f"file {name!r}": put("files", name, value={"sha256": hashlib.sha256(b"").hexdigest(), "size": 0})
        for name in ("", ".", "..", ".hidden", "../x", "/etc/passwd", "a/b", "a\\b", "a\0b", "a b", "é", "x" * 101)
    },
    "a graph that no one knows": lambda folder: (
        sign(folder, "other.onnx", STEP),
        edit(folder, lambda c: c["graphs"].update({"other.onnx": c["graphs"]["step.onnx"]})),
    ),
    "a graph that is not listed": lambda folder: sign(folder, "start.onnx", STEP),
    "a graph without a file": lambda folder: edit(
        folder, lambda c: c["graphs"].update({"start.onnx": c["graphs"]["step.onnx"]})
    ),
    "final of no fixed size": put("graphs", "encoder.onnx", "outputs", 2, "shape", value=["B", 2, "F"]),
    "final of no size at all": put("graphs", "encoder.onnx", "outputs", 2, "shape", value=[]),
    "no keys": put("graphs", "encoder.onnx", "outputs", 0, "name", value="locks"),
    "keys of no fixed size": put("graphs", "encoder.onnx", "outputs", 0, "shape", value=["B", 2, "T", "A"]),
    "keys of another size": put("graphs", "encoder.onnx", "outputs", 0, "shape", value=["B", 2, "T", 6]),
    "a tensor of nine sizes": put("graphs", "step.onnx", "inputs", 0, "shape", value=[1] * 9),
    "a tensor of another type": put("graphs", "step.onnx", "inputs", 0, "dtype", value="string"),
    "parity with NaN": raw(b'"largest": 0.0', b'"largest": NaN'),
    "vocabulary with a surrogate": vocabulary('["<pad>","<s>","</s>","→","<unk>","\\ud800"]'),
    "vocabulary twice the same": vocabulary('["<pad>","<s>","</s>","→","<unk>",' + ",".join(['"a"'] * 7) + "]"),
    "vocabulary without its symbols": vocabulary('["a","b","c","d","e","f","g","h","i","j","k","l"]'),
    "vocabulary of numbers": vocabulary("[1,2]"),
    "vocabulary as object": vocabulary("{}"),
    "vocabulary too small": vocabulary('["<pad>","<s>","</s>","→","<unk>","a"]'),
    "vocabulary too large": vocabulary(json.dumps(["<pad>", "<s>", "</s>", "→", "<unk>", *"abcdefgh"])),
    "pool ids outside": arrays("pool.safetensors", lambda p: p.update(tokens=p["tokens"] + 99)),
    "pool of another type": arrays("pool.safetensors", lambda p: p.update(members=p["members"].astype(np.int64))),
    "pool with more": arrays("pool.safetensors", lambda p: p.update(more=p["members"])),
    "pool with less": arrays("pool.safetensors", lambda p: p.pop("counts")),
    "pool beyond its members": arrays("pool.safetensors", lambda p: p.update(counts=p["counts"] + 99)),
    "pool of members outside": arrays("pool.safetensors", lambda p: p.update(members=p["members"] + 99)),
    "pool of members below 0": arrays("pool.safetensors", lambda p: p.update(members=p["members"] - 99)),
    "pool of groups of none": arrays("pool.safetensors", lambda p: p.update(counts=p["counts"] * 0)),
    "pool of groups below 0": arrays("pool.safetensors", lambda p: p.update(starts=p["starts"] - 99)),
    "pool of groups that end outside": arrays("pool.safetensors", lambda p: p.update(starts=p["starts"] + 99)),
    "pool of groups of other prototypes": arrays(
        "pool.safetensors", lambda p: p.update(starts=p["starts"][:, :1].copy(), counts=p["counts"][:, :1].copy())
    ),
    "pool of groups that do not agree": arrays("pool.safetensors", lambda p: p.update(starts=p["starts"][:0])),
    "pool of no group": arrays("pool.safetensors", lambda p: p.update(starts=p["starts"][:0], counts=p["counts"][:0])),
    "pool of too many tuples": arrays("pool.safetensors", most_tuples),
    "pool of another rank": arrays("pool.safetensors", lambda p: p.update(members=p["members"][None].copy())),
    "pool without an end": arrays("pool.safetensors", lambda p: p["tokens"].__setitem__(p["tokens"] == 2, 3)),
    "pool with one sequence without an end": arrays(
        "pool.safetensors", lambda p: np.place(p["tokens"][2], p["tokens"][2] == 2, 3)
    ),
    "pool after its padding": arrays("pool.safetensors", token_after_padding),
    "arrays that overlap": header("pool.safetensors", lambda h: h["members"].update(data_offsets=[0, 24])),
    "arrays of no type": header("pool.safetensors", lambda h: h["members"].update(dtype="BF16")),
    "arrays of fractions": header("pool.safetensors", lambda h: h["members"].update(shape=[6.0])),
    "arrays of a type that is a number": header("pool.safetensors", lambda h: h["members"].update(dtype=1)),
    "arrays without a type": header("pool.safetensors", lambda h: h["members"].pop("dtype")),
    "an array that is a list": header("pool.safetensors", lambda h: h.update(members=[])),
    "arrays without a shape": header("pool.safetensors", lambda h: h["members"].pop("shape")),
    "arrays of a shape that is a number": header("pool.safetensors", lambda h: h["members"].update(shape=6)),
    "arrays without a place": header("pool.safetensors", lambda h: h["members"].pop("data_offsets")),
    "arrays of three places": header("pool.safetensors", lambda h: h["members"].update(data_offsets=[0, 24, 24])),
    "arrays that end before they begin": header(
        "pool.safetensors", lambda h: h["members"].update(data_offsets=h["members"]["data_offsets"][::-1])
    ),
    "arrays that end outside": header("pool.safetensors", lambda h: h["members"]["data_offsets"].__setitem__(1, 9**9)),
    "arrays of another size": header("pool.safetensors", lambda h: h["members"].update(shape=[1])),
    "arrays larger than the file": header("pool.safetensors", lambda h: h["members"].update(shape=[9**9, 9**9])),
    "arrays without a header": lambda folder: sign(folder, "pool.safetensors", b"1234567"),
    "a header of nothing": length_of_header(0),
    "a header beyond the file": length_of_header(2**62),
    "a header that is no object": lambda folder: sign(folder, "pool.safetensors", bytes([2, *[0] * 7]) + b"[]"),
    "metadata that are a list": header("pool.safetensors", lambda h: h.update(__metadata__=[])),
    "metadata of numbers": header("pool.safetensors", lambda h: h.update(__metadata__={"a": 1})),
    "bytes after the arrays": lambda folder: sign(
        folder, "pool.safetensors", (folder / "pool.safetensors").read_bytes() + b"\0\0"
    ),
    "weights without a bias": arrays("step.safetensors", lambda w: w.pop("combine_bias")),
    "weights of another shape": arrays("step.safetensors", lambda w: w.update(project=w["project"][:, 1:].copy())),
    "weights of another type": arrays("step.safetensors", lambda w: w.update(project=w["project"].astype(np.float64))),
    "weights that are no numbers": arrays("step.safetensors", lambda w: w["combine"].fill(np.nan)),
    "inputs of other names": graph("step.onnx", renamed),
    "a step that is no number": poisoned("step.onnx", np.nan),
    "an encoder that is no number": poisoned("encoder.onnx", np.nan),
    **{
        f"attack, {name}": lambda folder, data=data: sign(folder, "step.onnx", data)
        for name, data in attacked(STEP).items()
    },
    "attack on the sampler": lambda folder: sign(
        folder, "sampler.onnx", attacked((folder / "sampler.onnx").read_bytes())["initializer"]
    ),
}
ACCEPTED = {
    "as it is": lambda _: None,
    "without defaults": drop("architecture"),
    "with an unlisted file": lambda folder: (folder / "stray.onnx").write_bytes(b"whatever"),
    "with a file of another name": lambda folder: sign(folder, "Read-me_2.txt", b"whatever"),
    "with a file of a short name": lambda folder: sign(folder, "x", b"whatever"),
    "with prototypes of 16 bits": arrays("pool.safetensors", lambda p: p.update(tokens=p["tokens"].astype(np.uint16))),
    "nested, but not too deep": raw(b'"made up"', b"[" * 62 + b"]" * 62),
    "another word for what it is": put("compgen", value="9.9 ✓"),
    "metadata in a file of arrays": header("pool.safetensors", lambda h: h.update(__metadata__={"a": "b"})),
    "temperature of whole numbers": put("sampling", "temperature", value=[1, 0]),
    "largest length": put("max_length", value=2**16),
}


def by_python(folder, kind):
    """The message by which Python refuses a bundle, or nothing."""
    try:
        if kind == "generator":
            list(Generator.load(folder, provider="cpu").draw(0, 0, 3, workers=1))
        else:
            Predictor.load(folder, provider="cpu").predict([["a", "b"]])
    except BundleError as error:
        return str(error)
    return ""


def by_native(folder, kind, runner, step, **environment):
    words = ["--draws", "3", "--workers", "1", "--raw"] if kind == "generator" else ["--input", "-"]
    done = subprocess.run(
        [runner, folder, *words, "--step", step],
        input="a b\n",
        capture_output=True,
        text=True,
        timeout=60,
        env=native.environment() | environment,
    )
    assert done.returncode in (0, 2), done.stderr
    assert done.returncode == 0 or (done.stderr.startswith("error: ") and done.stderr.count("\n") == 1), done.stderr
    return done.stderr if done.returncode else ""


@pytest.fixture
def folder(tmp_path):
    return shutil.copytree(exported(), tmp_path / "mine")


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_all(folder, name):
    (folder / SECRET).write_bytes(bytes(64))
    REFUSED[name](folder)
    said = by_python(folder, "generator")
    assert said and "\n" not in said and str(folder) in said


# Of what is no JSON and no file of arrays, the programs' libraries say why, each in its own words. A number beyond 64
# bits is a fraction to the runner, and where the network fails it names the bundle.
OTHER_WORDS = re.compile(
    r"not UTF-8|surrogate|NaN|infinity|too large a|nested without|two values|a byte of 0|control character"
    r"|arrays|an array|a header|metadata|bytes after|max_length (?:\d{20,})|no number$"
)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_the_runner(folder, name, built):
    (folder / SECRET).write_bytes(bytes(64))
    REFUSED[name](folder)
    step = "graph" if "step" in name or name in ("inputs of other names",) else "own"
    said = by_native(folder, "generator", built, step)
    assert str(folder) in said
    if not OTHER_WORDS.search(name):
        assert said.removeprefix("error: ").rstrip() == by_python(folder, "generator")


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_accepted_is_accepted_by_all(folder, name, built):
    ACCEPTED[name](folder)
    assert not by_python(folder, "generator")
    for step in ("own", "graph"):
        assert not by_native(folder, "generator", built, step)


@pytest.mark.parametrize(
    ("change", "accepted"),
    [
        (lambda _: None, True),
        (put("prototypes", value=2), False),
        (put("sampling", value={}), True),
        (drop("files", "encoder.onnx"), False),
        (put("kind", value="generator"), False),
    ],
)
def test_predictors_too(tmp_path, built, change, accepted):
    folder = shutil.copytree(exported("predictor"), tmp_path / "mine")
    change(folder)
    assert (not by_python(folder, "predictor")) == accepted
    assert (not by_native(folder, "predictor", built, "own")) == accepted


def test_the_schema_is_that_of_the_models():
    assert json.loads(SCHEMA.read_text("utf-8")) == schemas()


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b'"\\ud800"', b"[NaN]", b"1e999", b"\xef\xbb\xbf{}", b"[" * 99])
def test_what_is_no_json(text):
    with pytest.raises(ValueError, match=r"."):
        strict_json(text)


def test_the_oldest_onnx_runtime_refuses_every_attack_too(tmp_path, oldest):
    """All graphs that reach out, one after the other, in a process that has that version."""
    (tmp_path / SECRET).write_bytes(bytes(64))
    for name, data in attacked(STEP).items():
        folder = shutil.copytree(exported(), tmp_path / name.replace(" ", "-"))
        (folder / SECRET).write_bytes(bytes(64))
        sign(folder, "step.onnx", data)
    program = (
        "import sys, onnxruntime\n"
        "from pathlib import Path\n"
        "from compgen.api import Generator\n"
        "from compgen.errors import BundleError\n"
        "assert onnxruntime.__version__.startswith('1.22.'), onnxruntime.__version__\n"
        "honest, *others = map(Path, sys.argv[1:])\n"
        "assert len(list(Generator.load(honest).draw(0, 0, 3))) == 3\n"
        "for other in others:\n"
        "    try:\n"
        "        list(Generator.load(other).draw(0, 0, 3))\n"
        "    except BundleError:\n"
        "        continue\n"
        "    sys.exit(f'{other} was taken')\n"
    )
    others = sorted(path for path in tmp_path.iterdir() if path.is_dir())
    assert len(others) == len(attacked(STEP))
    words = [oldest / "bin" / "python", "-c", program, exported(), *others]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-800:]


def test_the_runner_with_the_oldest_onnx_runtime(tmp_path, oldest, built):
    library = next(oldest.glob("lib/python*/site-packages/onnxruntime/capi/libonnxruntime.so*"))
    environment = {"COMPGEN_ONNXRUNTIME": str(library)}
    assert not by_native(exported(), "generator", built, "graph", **environment)
    for name, data in attacked(STEP).items():
        folder = shutil.copytree(exported(), tmp_path / name.replace(" ", "-"))
        sign(folder, "step.onnx", data)
        assert by_native(folder, "generator", built, "graph", **environment), name
