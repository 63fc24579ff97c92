"""The C++ runner reads its options as `cgen sample` does, and is called as it."""

import json
import os
import re
import resource
import shutil
import struct
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compgen import __version__
from compgen.export.bundle_writer import export
from compgen.recombine.compatible import compatible
from compgen.runtime.bundle import Bundle
from compgen.sampling import native
from tests.cli.shell import compgen
from tests.export.tiny import exported, make
from tests.runtime.altered import edit

pytestmark = pytest.mark.usefixtures("built")


def run(*words, **options):
    command = [str(word) for word in (native.runner(), *words)]
    options = {"env": native.environment(), "check": False} | options
    return subprocess.run(command, capture_output=True, text=True, **options)


def test_onnx_runtime_writes_nothing_of_its_own(tmp_path):
    surroundings = native.environment() | {"HOME": str(tmp_path)}
    surroundings.pop("ORT_DISABLE_TELEMETRY", None)
    done = run(exported(), "--raw", "--draws", 1, env=surroundings)
    assert done.returncode == 0 and not [*tmp_path.iterdir()], done.stderr


@pytest.mark.parametrize("written", ["00100", "+100", " 100 ", "1_00", "100.0"])
def test_whole_numbers_are_in_tens(written):
    done = run(exported(), "--raw", "--draws", "00003", "--start", written, "--workers", "01")
    assert [json.loads(line)["index"] for line in done.stdout.splitlines()] == [100, 101, 102], done.stderr


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("--start", "0x10"),
        ("--start", "-1"),
        ("--seed", "1'0"),
        ("--seed", "18446744073709551616"),
        ("-n", "0b1"),
        ("-n", "0"),
        ("--workers", "5000"),
        ("--batch", "0"),
        ("--best", "1e3"),
        ("--margin", "0x1"),
        ("--support", "nan"),
        ("--support", "inf"),
        ("--support", "-0.5"),
        ("--support", "0x1p-1"),
        ("--rarity", "nan"),
        ("--rarity", "-inf"),
        ("--rarity", "0"),
        ("--rarity", "2"),
        ("--rarity", "0x1p-1"),
        ("--temperature", "1,"),
        ("--temperature", ",1"),
        ("--temperature", "1,,2"),
        ("--temperature", "1,2,3"),
        ("--temperature", ""),
        ("--temperature", "0x1p-1"),
        ("--temperature", "nan"),
        ("--temperature", "-0.5"),
        ("--temperature", "1e15"),
        ("--temperature", "\u0661"),
        ("--rarity", "1e15"),
        ("--filter", "rare,newer"),
        ("--filter", "rare,it's"),
        ("--novelty", "Pair"),
        ("--novelty", ""),
        ("--prototypes", "some"),
        ("--rare-token", "it's"),
        ("--rare-token", "<unk>"),
        ("--draws", "3"),  # a second time
    ],
)
def test_values_that_cannot_be_are_told_in_the_same_words(name, written):
    words = [exported(), "--draws", "2", "--filter", "rare", name, written]
    done, python = run(*words), compgen("sample", *words)
    assert done.returncode == python.returncode == 2 and not done.stdout
    said = " ".join(python.stderr.replace("│", " ").split())  # in a box, if there are colours
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert done.stderr.removeprefix("error: ").strip() in said


@pytest.mark.parametrize("end", ["-n", "--draws"])
def test_votes_that_nothing_voted_against_are_told_in_the_same_words(end):
    words = [exported(), end, "20", "--vote", "--temperature", "1"]
    told = [re.findall("warning: .*", by.stderr) for by in (run(*words), compgen("sample", *words))]
    assert told[0] == told[1] and len(told[0]) == 1 and "sources were drawn once" in told[0][0]


def test_ngrams_may_be_longer_than_any_sample():
    words = [exported(), "--draws", "60", "--filter", "rare", "--ngram", "1001"]
    assert run(*words).stderr.removeprefix("error: ") == compgen("sample", *words).stderr.removeprefix("cgen: ")


def test_temperatures_may_have_spaces_around_them():
    words = [exported(), "--draws", "40", "--temperature"]
    assert run(*words, " 1 , .5 ").stdout == run(*words, "1.0,5e-1").stdout != ""


def test_a_filter_takes_one_word_with_commas(tmp_path):
    out = tmp_path / "out.jsonl"
    done = run("--filter", "novel, unique ,", exported(), "--draws", "400", "-o", out)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "out.jsonl.run.json").read_text())["filters"] == ["novel", "unique"]


@pytest.mark.parametrize("words", ["--nothing", "more", "more still", "more -q --nothing", "--nothing=3 4", "--step x"])
def test_words_that_are_no_options_are_one_line_and_that_of_python(words):
    done = run(exported(), *words.split())
    assert done.returncode == 2 and done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    message = done.stderr.removeprefix("error: ").removesuffix("; --help lists the options\n")
    if "--step" not in words:  # which Python has not
        assert message in " ".join(compgen("sample", exported(), *words.split()).stderr.replace("│", " ").split())


def test_the_version_is_that_of_python():
    assert run("--version").stdout == f"compgen-sample {__version__}\n"
    assert run("--help").returncode == 0


def test_a_message_is_one_line_whatever_a_folder_is_called(tmp_path):
    done = run(tmp_path / "no\nwhere", "--draws", "3")
    assert (
        done.returncode == 2 and f"{tmp_path}/no where: no such bundle" in done.stderr and done.stderr.count("\n") == 1
    )


def test_by_default_there_are_as_many_threads_as_usable_processors():
    usable = sorted(os.sched_getaffinity(0))
    for some in {1, min(2, len(usable))}:
        done = run(exported(), "--draws", "20", preexec_fn=lambda: os.sched_setaffinity(0, usable[:some]))  # noqa: B023
        assert f", {some} threads, " in done.stderr


def few():
    """Leave a process room for few threads: the stack of each is as large as the first limit says."""
    resource.setrlimit(resource.RLIMIT_STACK, (2**32, resource.getrlimit(resource.RLIMIT_STACK)[1]))
    resource.setrlimit(resource.RLIMIT_AS, (2**34, 2**34))


TOO_MANY = r"error: thread \d+ cannot be started: .+\n"


@pytest.mark.parametrize(("kind", "words"), [("generator", ("--draws", "1000000")), ("predictor", ("--input", "-"))])
def test_a_thread_that_cannot_be_had_is_told(kind, words):
    done = run(exported(kind), *words, "--workers", "64", input="a b\n" * 1000, preexec_fn=few)
    assert done.returncode == 2 and re.fullmatch(TOO_MANY, done.stderr), done.stderr


@pytest.fixture(scope="module")
def language_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("language-model")
    checkpoint = make(memories=0, copying=False, feed=False)
    pool = compatible([[5, 6, 3], [7, 3]], checkpoint.vocabulary, np.array([[0]], np.int32), "long-short", "max")
    replace(checkpoint, pool=pool).save(folder / "model.pt")
    export(folder / "model.pt", folder / "bundle", batches={7: 20}, quiet=True)
    return folder / "bundle"


REQUEST = struct.pack("=II", 1, 4) + b"a b\n"


def score(*words, asked=REQUEST, stdout=subprocess.PIPE, **options):
    command = [native.runner().with_name("compgen-score"), *words]
    options = {"env": native.environment(), "check": False} | options
    return subprocess.run(command, input=asked, stdout=stdout, stderr=subprocess.PIPE, **options)


def test_a_thread_that_cannot_be_had_is_told_of_language_models(language_model):
    done = score(language_model, "--threads", "64", preexec_fn=few)
    assert done.returncode == 2 and done.stdout == b"\n", done.stderr
    assert re.fullmatch(TOO_MANY, done.stderr.decode()), done.stderr
    done = score(language_model, "--threads", "0x2")
    assert done.returncode == 2 and b"--threads': Input should be a valid integer" in done.stderr


@pytest.mark.parametrize("asked", [REQUEST[:3], REQUEST[:8], REQUEST[:-1], REQUEST + REQUEST[:11]], ids=len)
def test_a_request_that_is_cut_short_is_told(language_model, asked):
    done = score(language_model, asked=asked)
    assert done.returncode == 2 and done.stderr == b"error: standard input: a request is cut short\n"
    assert len(done.stdout) == 1 + 15 * (len(asked) > len(REQUEST))


def test_scores_that_cannot_be_written_are_told(language_model):
    with Path("/dev/full").open("wb") as full:
        done = score(language_model, stdout=full)
    assert done.returncode == 2 and done.stderr == b"error: standard output: cannot be written\n"


def test_a_request_beyond_memory_is_told(language_model):
    asked = struct.pack("=II", 1, 2**32 - 1)
    limit = 2**31
    done = score(language_model, asked=asked, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 2 and done.stderr == b"error: not enough memory; try fewer --threads\n"


def test_a_batch_takes_no_more_memory_where_samples_may_be_long(tmp_path):
    bundle, limit = tmp_path / "bundle", 2**32
    shutil.copytree(exported(), bundle)
    edit(bundle, lambda manifest: manifest.update(max_length=2**16))
    words = ("--draws", "20", "--batch", 2**16, "--workers", "1")
    done = run(bundle, *words, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)))
    assert done.returncode == 0 and done.stdout == run(bundle, *words[:2]).stdout != "", done.stderr


@pytest.mark.parametrize("set_to", [None, ""])
def test_a_bundle_may_be_called_as_an_option_is(tmp_path, monkeypatch, set_to):
    monkeypatch.delenv("COMPGEN_ONNXRUNTIME", raising=False)
    if set_to is not None:
        monkeypatch.setenv("COMPGEN_ONNXRUNTIME", set_to)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-n").symlink_to(exported())
    bundle = Bundle.load("-n")
    assert len(native.raw(bundle, 0, 0, 5, (1.0, 1.0), {})) == 5
    done = compgen("sample", "--runtime", "native", "--draws", "30", "--", "-n", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout == run(exported(), "--draws", "30").stdout, done.stderr


def test_a_record_names_the_model_as_python_does(tmp_path):
    (tmp_path / "link").symlink_to(exported())
    for model, named in (("recomb2", "recomb2"), ("link", str(exported().resolve()))):
        for runtime in ("onnx", "native"):
            words = ["sample", model, "--draws", "40", "-o", f"{runtime}.jsonl", "--runtime", runtime]
            done = compgen(*words, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            assert json.loads((tmp_path / f"{runtime}.jsonl.run.json").read_text())["model"] == named


def test_the_bundle_in_a_comparisons_folder_is_named_in_the_same_words(tmp_path):
    shutil.copytree(exported(), tmp_path / "bundle")
    done, python = run(tmp_path, "--draws", 2), compgen("sample", tmp_path, "--draws", 2)
    assert done.returncode == python.returncode == 2
    says = f"{tmp_path}: not a bundle: it has no manifest.json; {tmp_path / 'bundle'} is one"
    assert done.stderr.split() == ["error:", *says.split()] and python.stderr.split() == ["cgen:", *says.split()]
