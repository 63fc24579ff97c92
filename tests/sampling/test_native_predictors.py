"""The C++ runner answers as Python does: recurrent networks and Transformers, greedily and by beam search."""

import gzip
import json
import resource
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from compgen.api import Predictor, export_bundle
from compgen.data.vocabulary import SPECIALS
from compgen.errors import UserError
from compgen.export.transformer import assemble
from compgen.models.backend import TorchTransformer
from compgen.runtime.bundle import Bundle
from compgen.runtime.predict import greedy
from compgen.sampling import native
from compgen.trained.checkpoint import Checkpoint
from compgen.trained.committee import Committee
from tests.cli.shell import compgen as cgen
from tests.export.test_transformer import LARGE, saved
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


KINDS = ("plain", "tags", "relative", "recurrent")


@pytest.fixture(params=[f"{kind} {step}" for kind in KINDS for step in ("own", "graph")])
def bundle(request, transformers):
    """A predictor's bundle, and options of the runner."""
    kind, step = request.param.split()
    folder = exported("predictor", initial="encoder") if kind == "recurrent" else transformers / kind
    return folder, {"--step": step}


def sources(folder, count, seed=0):
    """Sources of the bundle's tokens, of unlike lengths."""
    rng, tokens = np.random.default_rng(seed), Bundle.load(folder).vocabulary[len(SPECIALS) :]
    return [rng.choice(tokens, rng.integers(1, 12)).tolist() for _ in range(count)]


def ids(folder, some):
    numbers = {token: number for number, token in enumerate(Bundle.load(folder).vocabulary)}
    return [[numbers[token] for token in source] for source in some]


def run(folder, some, *words, **how):
    text = "".join(" ".join(source) + "\n" for source in some)
    command = [native.runner(), folder, "--input", "-", *map(str, words)]
    how = {"input": text, "capture_output": True, "text": True, "env": native.environment(), "check": False} | how
    return subprocess.run(command, **how)


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


@pytest.mark.parametrize("words", [(), ("--best", 3), ("--beam", 4, "--step", "graph")])
def test_predictors_answer_together_as_in_python(transformers, words):
    names = ("plain", "relative", "plain")
    some = sources(transformers / "plain", 40, seed=3)
    options = dict(zip(words[::2], words[1::2], strict=True))
    together = Committee([Predictor.load(transformers / name, provider="cpu") for name in names])
    expected = together.best(some, options.get("--best", 1), options.get("--beam"))
    others = [word for name in names[1:] for word in ("--with", transformers / name)]
    done = run(transformers / "plain", some, *words, *others, "--batch", 5)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["target"] for line in lines] == [target for ranked in expected for target, _ in ranked]
    scores = [score for ranked in expected for _, score in ranked]
    assert [line["log_prob"] for line in lines] == pytest.approx(scores, abs=2e-4)
    alone = [Predictor.load(transformers / name, provider="cpu").predict(some) for name in names[:2]]
    assert all([ranked[0][0] for ranked in expected] != targets for targets in alone)  # neither is followed everywhere


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("generator", "a generator, expected a predictor"),
        ("predictor", "its vocabulary differs from that of "),
    ],
)
def test_who_cannot_answer_together_is_told(transformers, kind, message):
    done = run(transformers / "plain", [["a"]], "--with", exported(kind))
    assert done.returncode == 2 and message in done.stderr, done.stderr


GZIPPED = gzip.compress(b"a b\n", mtime=0)


@pytest.mark.parametrize(
    ("name", "content", "good"),
    [
        ("s.txt", "\ufeffa b\n".encode(), True),
        ("s.txt", "a\u00a0b\u3000a\x0cb\x1ca\n".encode(), True),
        ("s.txt", b"a\tb\r\na\r\n", True),
        ("s.txt", b"a b\n\n \t\nb\n\n", True),
        ("s.tsv", b"a b\tx\r\na\r\n", True),
        ("s.tsv", b"a b\tx\n\n\na\n", True),
        ("s.tsv", b"a b\n\tx\n", False),
        ("s.tsv.gz", gzip.compress(b"a b\tx\na\n", mtime=0), True),
        ("s.txt.gz", gzip.compress(b"a b\ta\na\n", mtime=0), True),
        ("-", b"a b\tx\na\n", True),
        ("-", b"\n a b \t\na\tb\n\tb\n", True),
        ("-", b"a\tb\n\ta\n", False),
        ("s.txt", "a \ufeffb\n".encode(), False),
        ("s.txt", b"a \xc3\n", False),
        ("s.txt", "\ufeffb\na é ".encode() + b"\xe2\x82\n", False),
        ("s.txt", b"a\0b\n", False),
        ("s.txt.gz", GZIPPED + GZIPPED, True),
        ("s.txt.gz", GZIPPED + b"\0" * 600 + GZIPPED + b"\0", True),
        ("s.txt.gz", GZIPPED + b"\0" + b"x", False),
        ("s.txt.gz", GZIPPED[:-1], False),
        ("s.txt.gz", b"a b\n", False),
    ],
)
def test_sources_are_read_as_in_python(transformers, tmp_path, name, content, good):
    place = "standard input" if name == "-" else str(tmp_path / name)
    words = [str(transformers / "plain"), name if name == "-" else place]
    if name != "-":
        (tmp_path / name).write_bytes(content)
    for suffix in ("jsonl", "tsv"):
        given = content.decode() if name == "-" else ""
        runner = [native.runner(), words[0], "--input", words[1], "-o", tmp_path / f"native.{suffix}"]
        both = [
            cgen("predict", *words, "-o", tmp_path / f"python.{suffix}", stdin=given),
            subprocess.run(runner, input=given, text=True, capture_output=True, env=native.environment(), check=False),
        ]
        said = [done.stderr for done in both]
        if not good:
            assert both[1].returncode == 2 and said[1].count("\n") == 1 and said[1].startswith(f"error: {place}"), said
            assert both[0].returncode == 2 or "is not in the vocabulary" in said[1], said
            if "expected te" in said[1] or "expected tokens" in said[1]:  # text in UTF-8, or text without NUL
                assert said[1].partition(": ")[2] == said[0].partition(": ")[2]
            return
        assert [done.returncode for done in both] == [0, 0], said
        theirs, ours = ((tmp_path / f"{by}.{suffix}").read_text().split("\n") for by in ("python", "native"))
        if suffix == "jsonl":
            theirs, ours = ([json.loads(line) for line in lines if line] for lines in (theirs, ours))
            scores = [[row.pop("log_prob", 0) for row in rows] for rows in (theirs, ours)]
            assert scores[1] == pytest.approx(scores[0], abs=2e-4)
        assert ours == theirs and ours


def test_golden_answers_are_given_again(transformers):
    done = compgen("verify", transformers / "plain", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [("onnx, cpu", True), ("C++ own", True), ("C++ graph", True)]
    assert [(row["runtime"], row["passed"]) for row in rows] == expected, done.stderr
    words = [native.runner(), transformers / "plain", "--verify"]
    done = subprocess.run(words, capture_output=True, text=True, env=native.environment(), check=False)
    assert done.returncode == 0 and "own" in done.stdout and "graph" in done.stdout, done.stderr


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
    copied(exported("predictor", initial="encoder"), tmp_path)
    sign(tmp_path, "step.safetensors", b"\0" * 8)
    with pytest.raises(UserError, match=r"step\.safetensors: not a file of arrays"):
        Predictor.load(tmp_path, provider="cpu")
    for step in ("own", "graph"):
        done = run(tmp_path, [["a"]], "--step", step)
        assert done.returncode == 2 and done.stderr.startswith(f"error: {tmp_path / 'step.safetensors'}: "), done.stderr


@pytest.mark.parametrize("changes", [{}, {"relative": 3}, {"invariant_tags": True}, {"size": 64, "heads": 2}], ids=str)
def test_answers_in_float64_are_those_of_pytorch(tmp_path, changes):
    checkpoint = Checkpoint.load(saved(tmp_path / "model.pt", seed=39, spread=0.5, **({"size": 16} | changes)))
    network = checkpoint.network.double()
    (tmp_path / "bundle").mkdir()
    made, truth = assemble(checkpoint, network, tmp_path / "bundle"), TorchTransformer(network)
    some = ids(made.path, sources(made.path, 40))
    expected = greedy(truth, some, checkpoint.max_length)
    for batch in (1, 13):
        found = native.raw_answers(made, some, {"--batch": batch, "--step": "own"})
        assert [list(draw.tokens) for draw in found] == [target for target, _ in expected]
        assert [draw.log_prob for draw in found] == pytest.approx([score for _, score in expected], abs=1e-9)


def test_answers_in_integers_are_those_of_python(tmp_path):
    folder = tmp_path / "mine"
    export_bundle(saved(tmp_path / "model.pt", **LARGE), folder, batches={7: 20}, int8=True, quiet=True)
    some, loaded = ids(folder, sources(folder, 60)), Predictor.load(folder, provider="cpu")
    expected = greedy(loaded.decoder, some, loaded.max_length)
    for batch, step in ((1, "own"), (13, "own"), (13, "graph")):
        found = native.raw_answers(Bundle.load(folder), some, {"--batch": batch, "--step": step})
        assert [list(draw.tokens) for draw in found] == [target for target, _ in expected]
        assert len({draw.tokens for draw in found}) > 5 and {draw.finished for draw in found} == {False, True}
        apart = np.abs([draw.log_prob - score for draw, (_, score) in zip(found, expected, strict=True)])
        assert np.median(apart) < 1e-5 and apart.max() < 0.1  # a last bit that is rounded makes a level


def test_a_bundle_without_weights_for_our_step_is_run_by_its_graphs(tmp_path, transformers):
    copied(transformers / "plain", tmp_path)
    (tmp_path / "step.safetensors").unlink()
    edit(tmp_path, lambda content: content["files"].pop("step.safetensors"))
    some = sources(tmp_path, 20)
    assert Predictor.load(tmp_path, provider="cpu").predict(some) == Predictor.load(
        transformers / "plain", provider="cpu"
    ).predict(some)
    found, whole = run(tmp_path, some), run(transformers / "plain", some, "--step", "graph")
    assert found.returncode == 0 and found.stdout == whole.stdout


def weights(change):
    """A change of the arrays of our own step."""

    def inner(folder):
        arrays = load_file(folder / "step.safetensors")
        change(arrays)
        sign(folder, "step.safetensors", save(arrays))

    return inner


def network(**changes):
    """Other sizes in the manifest."""
    return lambda folder: edit(folder, lambda content: content["config"]["network"].update(changes))


@pytest.mark.parametrize(
    "change",
    [
        weights(lambda arrays: arrays.pop("decoder.0.remember_bias")),
        weights(lambda arrays: arrays.update({"encoder.0.mix": arrays["encoder.0.mix"][:, 1:].copy()})),
        weights(lambda arrays: arrays.update(project=arrays["project"].astype(np.float64))),
        weights(lambda arrays: arrays["decoder.1.expand"].fill(np.nan)),
        weights(lambda arrays: arrays.update(positioned=arrays["positioned"].astype(np.float32))),
        network(heads=4),
        network(heads=3),
        network(layers=3),
        network(layers=65),
        network(relative=1),
        network(size="16"),
        lambda folder: edit(folder, lambda content: content["config"].pop("network")),
        lambda folder: sign(folder, "vocabulary.json", json.dumps([*SPECIALS, "a", "b"]).encode()),
    ],
)
@pytest.mark.parametrize("step", ["own", "graph"])
def test_weights_of_other_sizes_are_refused_by_both(tmp_path, transformers, change, step):
    copied(transformers / "plain", tmp_path)
    change(tmp_path)
    with pytest.raises(UserError, match=str(tmp_path)):
        Predictor.load(tmp_path, provider="cpu")
    done = run(tmp_path, [["a", "b"]], "--step", step)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and str(tmp_path) in done.stderr, done.stderr


def test_sizes_that_weights_do_not_have_take_no_memory(tmp_path):
    """A manifest speaks of 4 GB of relative positions, and the file of weights has none of them."""
    copied(exported("predictor", initial="encoder"), tmp_path)
    size = 8192

    def widen(arrays):
        for name in ("token_queries", "state_queries"):
            arrays[name] = np.repeat(arrays[name][:, :1], size, axis=1)
        arrays["combine"] = np.repeat(arrays["combine"][:1], len(arrays["combine"]) - 5 + size, axis=0)

    def widen_too(content):
        content["config"]["network"]["positions"] = 65536
        for tensor in content["graphs"]["encoder.onnx"]["outputs"][:2]:
            tensor["shape"][-1] = size

    weights(widen)(tmp_path)
    edit(tmp_path, widen_too)
    done = run(tmp_path, [["a"]], preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31)))
    expected = f"position_values: expected float32 of 1 x 131073 x {size}"
    assert done.stderr == f"error: {tmp_path / 'step.safetensors'}: {expected}\n"


def copied(bundle, folder):
    for file in bundle.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())


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
        lambda folder: edit(folder, lambda content: content["config"]["network"].update(size=7)),
        lambda folder: edit(folder, lambda content: content["config"]["network"].update(heads=3)),
        lambda folder: edit(folder, lambda content: content["config"].pop("network")),
        lambda folder: edit(folder, lambda c: c.update(shape={"hidden": 1, "output": 1, "dtype": "float32"})),
    ],
)
def test_what_is_refused_is_refused_by_both(tmp_path, transformers, change):
    copied(transformers / "plain", tmp_path)
    change(tmp_path)
    with pytest.raises(UserError) as said:
        Predictor.load(tmp_path, provider="cpu").predict([["a", "b"]])
    done = run(tmp_path, [["a", "b"]], "--step", "graph")  # our own step runs no graph
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and str(tmp_path) in done.stderr, done.stderr
    assert str(tmp_path) in str(said.value)
