"""The C++ runner answers as Python does: recurrent networks and Transformers, greedily and by beam search."""

import gzip
import json
import subprocess

import numpy as np
import pytest

from compgen.api import Predictor, export_bundle
from compgen.data.vocabulary import SPECIALS
from compgen.errors import UserError
from compgen.runtime.bundle import Bundle
from compgen.runtime.predict import greedy
from compgen.sampling import native
from tests.export.test_transformer import saved
from tests.export.tiny import exported
from tests.runtime.altered import edit, sign
from tests.sampling.test_native import compgen

pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture(scope="module")
def transformers(tmp_path_factory):
    """Bundles of small random Transformers, by name."""
    folder = tmp_path_factory.mktemp("transformers")
    shapes = {  # some of whose answers end, and some do not
        "plain": {"seed": 39, "spread": 1.0},
        "tags": {"seed": 6, "invariant_tags": True},
        "relative": {"seed": 22, "relative": 2, "layers": 1},
    }
    for name, changes in shapes.items():
        export_bundle(saved(folder / f"{name}.pt", size=16, **changes), folder / name, batches={7: 20}, quiet=True)
    return folder


@pytest.fixture(params=["plain", "tags", "relative", "recurrent", "recurrent graph"])
def bundle(request, transformers):
    """A predictor's bundle, and options of the runner."""
    if not request.param.startswith("recurrent"):
        return transformers / request.param, {}
    return exported("predictor", initial="encoder"), {"--step": "graph"} if "graph" in request.param else {}


def sources(folder, count, seed=0):
    """Sources of the bundle's tokens, of unlike lengths."""
    rng, tokens = np.random.default_rng(seed), Bundle.load(folder).vocabulary[len(SPECIALS) :]
    return [rng.choice(tokens, rng.integers(1, 12)).tolist() for _ in range(count)]


def ids(folder, some):
    numbers = {token: number for number, token in enumerate(Bundle.load(folder).vocabulary)}
    return [[numbers[token] for token in source] for source in some]


def run(folder, some, *words):
    text = "".join(" ".join(source) + "\n" for source in some)
    command = [native.runner(), folder, "--input", "-", *map(str, words)]
    return subprocess.run(command, input=text, capture_output=True, text=True, env=native.environment(), check=False)


@pytest.mark.parametrize("batch", [1, 7, 500])
def test_greedy_answers_are_those_of_python(bundle, batch):
    folder, options = bundle
    some, loaded = sources(folder, 60), Predictor.load(folder, provider="cpu")
    expected = greedy(loaded.decoder, ids(folder, some), loaded.max_length)
    found = native.raw_answers(Bundle.load(folder), ids(folder, some), options | {"--batch": batch, "--workers": 3})
    assert [list(draw.tokens) for draw in found] == [target for target, _ in expected]
    assert [draw.log_prob for draw in found] == pytest.approx([score for _, score in expected], abs=1e-4)
    assert [draw.finished for draw in found] == [len(target) < loaded.max_length for target, _ in expected]
    assert len({draw.tokens for draw in found}) > 5 and {draw.finished for draw in found} == {False, True}


@pytest.mark.parametrize(("best", "beam"), [(1, 2), (3, None), (4, 9), (2, 40)])
def test_beams_are_those_of_python(bundle, best, beam):
    folder, options = bundle
    some = sources(folder, 25, seed=best)
    expected = Predictor.load(folder, provider="cpu").best(some, best, beam)
    words = [word for pair in options.items() for word in pair] + ([] if beam is None else ["--beam", beam])
    done = run(folder, some, "--best", best, "--batch", 6, *words)
    assert done.returncode == 0, done.stderr
    found = [[] for _ in some]
    place = -1
    for line in map(json.loads, done.stdout.splitlines()):
        place += line["rank"] == 1
        assert line["source"] == some[place] and line["rank"] == len(found[place]) + 1
        found[place].append((line["target"], line["log_prob"]))
    assert [[target for target, _ in ranked] for ranked in found] == [[target for target, _ in row] for row in expected]
    scores = [score for ranked in found for _, score in ranked]
    assert scores == pytest.approx([score for ranked in expected for _, score in ranked], abs=2e-4)


@pytest.mark.parametrize("words", [(), ("--best", 3)])
def test_lines_are_those_of_predict(tmp_path, transformers, words):
    some = sources(transformers / "plain", 30)
    (tmp_path / "in.txt").write_text("".join(" ".join(source) + "\n" for source in some))
    done = compgen("predict", transformers / "plain", tmp_path / "in.txt", "-o", tmp_path / "out.jsonl", *words)
    assert done.returncode == 0, done.stderr
    expected = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    found = [json.loads(line) for line in run(transformers / "plain", some, *words).stdout.splitlines()]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.pop("log_prob") == pytest.approx(theirs.pop("log_prob"), abs=2e-4)
    assert [list(line) for line in found] == [list(line) for line in expected] and found == expected


GZIPPED = gzip.compress(b"a b\n", mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "good"),
    [
        ("s.txt", "\ufeffa b\n".encode(), True),
        ("s.txt", "a\u00a0b\u3000a\x0cb\x1ca\n".encode(), True),
        ("s.txt", b"a b\tx\r\na\r\n", True),
        ("s.txt", "a \ufeffb\n".encode(), False),
        ("s.txt", b"a \xc3\n", False),
        ("s.txt", b"a\0b\n", False),
        ("s.gz", GZIPPED + GZIPPED, True),
        ("s.gz", GZIPPED + b"\0" * 600 + GZIPPED + b"\0", True),
        ("s.gz", GZIPPED + b"\0" + b"x", False),
        ("s.gz", GZIPPED[:-1], False),
        ("s.gz", b"a b\n", False),
    ],
)
def test_sources_are_read_as_in_python(transformers, tmp_path, name, content, good):
    (tmp_path / name).write_bytes(content)
    words = [str(transformers / "plain"), str(tmp_path / name)]
    python = compgen("predict", *words, "--format", "tsv", "-o", tmp_path / "python.jsonl")
    words = [native.runner(), words[0], "--input", words[1], "-o", str(tmp_path / "native.jsonl")]
    done = subprocess.run(words, capture_output=True, text=True, env=native.environment(), check=False)
    if not good:
        assert (
            done.returncode == 2
            and done.stderr.count("\n") == 1
            and done.stderr.startswith(f"error: {tmp_path / name}")
        )
        assert python.returncode == 2 or "is not in the vocabulary" in done.stderr
        return
    assert (python.returncode, done.returncode) == (0, 0), (python.stderr, done.stderr)
    rows = [map(json.loads, (tmp_path / f"{by}.jsonl").read_text().splitlines()) for by in ("python", "native")]
    ours, theirs = ([(row["source"], row["target"]) for row in some] for some in rows)
    assert ours == theirs and ours


def test_golden_answers_are_given_again(transformers):
    done = compgen("verify", transformers / "plain", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["runtime"], row["passed"]) for row in rows] == [("onnx, cpu", True), ("C++", True)], done.stderr
    words = [native.runner(), transformers / "plain", "--verify"]
    done = subprocess.run(words, capture_output=True, text=True, env=native.environment(), check=False)
    assert done.returncode == 0 and "graph" in done.stdout, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--beam", "2", "--best", "3"), "--best 3 needs a beam as wide: leave out --beam 2"),
        (("--best", "1025"), "--best 1025: expected a number from 1 to 1,024"),
        (("--vote",), "a predictor has no use for --vote"),
    ],
)
def test_options_that_do_not_agree(transformers, words, message):
    done = run(transformers / "plain", [["a"]], *words)
    assert done.returncode == 2 and done.stderr == f"error: {message}\n"


def test_a_generator_has_no_beam():
    words = [native.runner(), exported(), "--draws", "3", "--beam", "2"]
    done = subprocess.run(words, capture_output=True, text=True, env=native.environment(), check=False)
    assert done.returncode == 2 and done.stderr == "error: a generator has no use for --beam\n"


def test_weights_of_a_step_that_does_not_decode_are_looked_at_too(tmp_path):
    for file in exported("predictor", initial="encoder").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    sign(tmp_path, "step.safetensors", b"\0" * 8)
    with pytest.raises(UserError, match=r"step\.safetensors: not a file of arrays"):
        Predictor.load(tmp_path, provider="cpu")
    for step in ("own", "graph"):
        done = run(tmp_path, [["a"]], "--step", step)
        assert done.returncode == 2 and done.stderr.startswith(f"error: {tmp_path / 'step.safetensors'}: "), done.stderr


def poisoned(name):
    """Weights that are no numbers."""

    def change(folder):
        import onnx

        model = onnx.load(folder / name)
        for tensor in model.graph.initializer:
            array = onnx.numpy_helper.to_array(tensor).copy()
            if array.dtype == np.float32 and array.size > 1:
                array[...] = np.nan
                tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
        sign(folder, name, model.SerializeToString())

    return change


def swapped(folder):
    """The encoder's graph in place of the step's."""
    sign(folder, "step.onnx", (folder / "encoder.onnx").read_bytes())


@pytest.mark.parametrize(
    "change",
    [
        poisoned("step.onnx"),
        poisoned("encoder.onnx"),
        swapped,
        lambda folder: sign(folder, "encoder.onnx", b""),
        lambda folder: edit(folder, lambda content: content.update(kind="generator")),
        lambda folder: edit(folder, lambda content: content.update(prototypes=2)),
        lambda folder: edit(folder, lambda content: content["files"].pop("encoder.onnx")),
        lambda folder: edit(folder, lambda c: c.update(shape={"hidden": 1, "output": 1, "dtype": "float32"})),
        lambda folder: sign(folder, "vocabulary.json", json.dumps([*SPECIALS, "a", "b"]).encode()),
    ],
)
def test_what_is_refused_is_refused_by_both(tmp_path, transformers, change):
    for file in (transformers / "plain").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    change(tmp_path)
    with pytest.raises(UserError) as said:
        Predictor.load(tmp_path, provider="cpu").predict([["a", "b"]])
    done = run(tmp_path, [["a", "b"]])
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and str(tmp_path) in done.stderr, done.stderr
    assert str(tmp_path) in str(said.value)
