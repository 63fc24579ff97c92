"""The C++ runner answers by direct inference as Python does: networks with one prototype or two."""

import json
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from safetensors.numpy import load_file, save

from compgen.api import Generator
from compgen.errors import UserError
from compgen.export.assemble import assemble
from compgen.export.bundle_writer import export
from compgen.models.backend import TorchBackend
from compgen.recombine.compatible import compatible
from compgen.sampling import native
from compgen.sampling.direct import Direct
from tests.cli.shell import said
from tests.export.tiny import VOCABULARY, make
from tests.runtime.altered import sign
from tests.sampling.test_native_predictors import copied, poisoned

pytestmark = pytest.mark.usefixtures("built")

KINDS = {
    "two": {},
    "one": {"memories": 1, "initial": "encoder"},
    "gate": {"latent": 5, "own": 9, "mixing": "gate"},
    "int8": {"hidden": 64},
}
ROW = 70  # tokens of a source that is compared in two words of the processor


def made(**changes):
    """A small generator whose prototypes matter, with a pool in which many are near to what is asked."""
    checkpoint = make(**changes)
    for parameter in checkpoint.network.parameters():
        parameter.data *= 2
    rng = np.random.default_rng(4)
    sources = {tuple(rng.integers(5, 9, rng.integers(1, 7)).tolist()) for _ in range(60)}
    sources |= {tuple(rng.integers(5, 9, ROW - few).tolist()) for few in range(5)}
    sequences = [[*source, 3, *rng.integers(8, 12, rng.integers(1, 4)).tolist()] for source in sorted(sources)]
    prototypes = checkpoint.pool.prototypes
    rows = np.array([range(1 + prototypes)], dtype=np.int32)
    pool = compatible(sequences, VOCABULARY, rows, "long-short", "mean+std")
    return replace(checkpoint, pool=pool, max_length=14)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """The bundles of `KINDS`."""
    folder = tmp_path_factory.mktemp("direct")
    for name, changes in KINDS.items():
        if name == "int8":
            made(**changes).save(folder / "model.pt")
            export(folder / "model.pt", folder / name, batches={7: 2}, int8=True, torchscript=False, quiet=True)
        else:
            (folder / name).mkdir()
            assemble(made(**changes), folder / name, script=False)
    return folder


def asked():
    """Sources of unlike lengths, some with nothing in them, words that are not known, or more than can be written."""
    rng = np.random.default_rng(8)
    short = [rng.choice(list("abcd"), rng.integers(1, 9)).tolist() for _ in range(45)]
    long = [rng.choice(list("abcd"), length).tolist() for length in (13, 14, 64, 65, ROW)]
    return [*short, [], *long, list("azb"), list("fg")]


def run(folder, some, *words):
    text = "".join(" ".join(source) + "\n" for source in some)
    command = [native.runner(), folder, "--direct", "--input", "-", *map(str, words)]
    return subprocess.run(command, input=text, capture_output=True, text=True, env=native.environment(), check=False)


def answers(folder, some, *words):
    done = run(folder, some, *words)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["source"] for line in lines] == some
    assert done.stderr == f"{folder}: {sum(bool(line['target']) for line in lines)} answered\n"
    return [line["target"] for line in lines]


def in_python(folder, some):
    """What Python answers; a line of nothing has an empty answer."""
    known = [source for source in some if source]
    found = iter(Generator.load(folder, provider="cpu").answer(known))
    return [next(found) if source else [] for source in some]


@pytest.mark.parametrize("step", ["own", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_those_of_python(bundles, kind, step):
    some = asked()
    expected = in_python(bundles / kind, some)
    assert len({*map(tuple, expected)}) > 15
    one = answers(bundles / kind, some, "--step", step, "--batch", 1, "--workers", 1)
    apart = sum(found != wanted for found, wanted in zip(one, expected, strict=True))
    assert apart <= ((kind, step) == ("int8", "own"))  # where a last digit may round a number to another level
    for batch, workers in ((7, 3), (500, 2)):
        assert answers(bundles / kind, some, "--step", step, "--batch", batch, "--workers", workers) == one


@pytest.mark.parametrize("changes", [{}, {"memories": 1}], ids=str)
def test_answers_in_float64_are_those_of_pytorch(tmp_path, changes):
    checkpoint = made(**changes)
    checkpoint.network.double()
    assemble(checkpoint, tmp_path, script=False)
    some = [source for source in asked() if source and set(source) <= set("abcdfg")]
    truth = Direct(TorchBackend(checkpoint.network), checkpoint.pool, checkpoint.max_length)
    expected = truth.answers([VOCABULARY.encode(source) for source in some])
    assert answers(tmp_path, some, "--batch", 9) == [VOCABULARY.decode(answer) for answer in expected]


def test_sequences_without_a_separator_are_compared_with_their_padding(tmp_path, bundles):
    """Nobody makes such pools, and both programs take them for what they are."""
    copied(bundles / "two", tmp_path)
    arrays = load_file(tmp_path / "pool.safetensors")
    tokens = arrays["tokens"]
    tokens[::2] = np.where(tokens[::2] == 3, 8, tokens[::2])
    sign(tmp_path, "pool.safetensors", save({**arrays, "tokens": np.pad(tokens, ((0, 0), (0, 2)))}))
    some = asked()
    assert answers(tmp_path, some) == in_python(tmp_path, some) != in_python(bundles / "two", some)


@pytest.mark.parametrize(
    ("name", "content"),
    [("in.txt", "a b c\n\n a  z\nb\n"), ("in.tsv", "a b c\tleft out\n\na z\td\n"), ("in.txt", ""), ("in.txt", "\n\n")],
)
def test_files_are_those_of_python(tmp_path, bundles, name, content):
    (tmp_path / name).write_text(content)
    for suffix in ("jsonl", "tsv"):
        words = (tmp_path / name, "--direct", "-o", tmp_path / f"ours.{suffix}")
        code, text = said("predict", bundles / "two", *words)
        command = [native.runner(), bundles / "two", "--input", *words[:-1], tmp_path / f"theirs.{suffix}"]
        done = subprocess.run(command, capture_output=True, text=True, env=native.environment(), check=False)
        assert code == done.returncode == 0, (text, done.stderr)
        assert (tmp_path / f"ours.{suffix}").read_text() == (tmp_path / f"theirs.{suffix}").read_text()
        assert done.stderr in text


@pytest.mark.parametrize(
    "words", [("--best", "1"), ("--beam", "2"), ("--beam", "2", "--best", "2"), ("--with", "other")], ids=" ".join
)
def test_what_has_no_use_is_refused_in_the_same_words(bundles, words):
    done, (code, text) = (
        run(bundles / "two", [["a"]], *words),
        said("predict", bundles / "two", "-", "--direct", *words),
    )
    assert done.returncode == code == 2
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert done.stderr.removeprefix("error: ").strip() in " ".join(text.replace("│", " ").split())


def test_what_direct_inference_has_no_use_for(bundles, tmp_path):
    for words in (("--draws", "3"), ("--vote",), ("--filter", "novel"), ("--resume",), ("--model", "hidden")):
        assert run(bundles / "two", [["a"]], *words).stderr == f"error: --direct has no use for {words[0]}\n"
    assert run(bundles / "two", [["a"]], "--beam", "1").returncode == 0  # as in Python
    assemble(make("predictor"), tmp_path, script=False)
    said = run(tmp_path, [["a"]]).stderr
    assert said.startswith(f"error: {tmp_path}: holds a predictor, expected a generator; `cgen train recombine` and ")


def test_raw_answers_are_ids(bundles, tmp_path):
    done = run(bundles / "two", [["5", "6"], ["7"]], "--raw")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    expected = [VOCABULARY.encode(answer) for answer in answers(bundles / "two", [["a", "b"], ["c"]])]
    assert rows == [{"index": number, "tokens": answer} for number, answer in enumerate(expected)]
    for words, message in ((["a"], "line 1: token 'a' is not in the"), ([], "line 1: found an empty source")):
        done = run(bundles / "two", [words], "--raw")
        assert done.returncode == 2 and message in done.stderr
    done = run(bundles / "two", [["5"]], "--raw", "-o", tmp_path / "out.tsv")
    assert done.stderr == "error: --raw writes .jsonl\n"


@pytest.mark.parametrize(("token", "why"), [("\x16", "has a control character"), ("<unk>", "is a special symbol")])
def test_tokens_that_data_cannot_have_are_refused_by_both(tmp_path, bundles, token, why):
    (tmp_path / "in.txt").write_text(f"a b\na {token} b\n")
    code, text = said("predict", bundles / "two", tmp_path / "in.txt", "--direct", "-o", tmp_path / "out.jsonl")
    command = [native.runner(), bundles / "two", "--direct", "--input", tmp_path / "in.txt"]
    done = subprocess.run(command, capture_output=True, text=True, env=native.environment(), check=False)
    for given in (done.stderr, text):
        assert f"{tmp_path}/in.txt, line 2: found the token" in given and f"which {why}" in given
    assert done.returncode == code == 2


@pytest.mark.parametrize("memories", [0, 3])
def test_only_generators_with_one_prototype_or_two_answer(tmp_path, memories):
    checkpoint = make(memories=memories, copying=memories > 0, feed=False)
    assemble(checkpoint, tmp_path, script=False)
    with pytest.raises(UserError) as error:
        Generator.load(tmp_path, provider="cpu").answer([["a"]])
    assert run(tmp_path, [["a"]]).stderr == f"error: {error.value}\n"
    assert run(tmp_path, []).returncode == run(tmp_path, [[]]).returncode == 0  # nothing is asked


def test_a_network_that_gives_no_numbers_is_refused_by_both(tmp_path, bundles):
    copied(bundles / "one", tmp_path)
    poisoned("step.onnx")(tmp_path)
    with pytest.raises(UserError, match="no number"):
        Generator.load(tmp_path, provider="cpu").answer([["a", "b"]])
    done = run(tmp_path, [["a", "b"]], "--step", "graph")
    assert done.returncode == 2 and "the network gives a probability that is no number" in done.stderr
