"""`compgen-ngram`, called by itself, against Python: the same digits, and the same messages for bad input."""

import gzip
import json
import os
import re
import signal
import struct
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compgen.errors import UserError
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.install import program
from compgen.lm.measuring import measure, rescore
from compgen.lm.mixture import FORMAT, Mixture, Perplexity
from tests.cli.shell import compgen
from tests.lm.conftest import LINES
from tests.lm.naive import Arpa
from tests.sampling.test_native_options import TOO_MANY, few

WORDS = ["the", "cat", "dog", "sat", "ran", "on", "a", "zebra", "été", "日本"]
LINE = st.lists(st.sampled_from(WORDS), max_size=9).map(" ".join)
TEXT = st.lists(st.one_of(LINE, st.sampled_from(["", " ", "\t\r", "the\u00a0cat", "the\r"])), max_size=12)
KINDS = ["arpa", "probing", "rest", "trie", "array", "quantised", "both"]
ONE = {"format": FORMAT, "models": ["arpa"], "weights": [[1.0]]}


def run(*words, stdin=b"", **options):
    command = [str(program("compgen-ngram")), *map(str, words)]
    return subprocess.run(command, input=stdin, capture_output=True, check=False, **options)


def good(*words, **options):
    done = run(*words, **options)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of each of KenLM's kinds over one vocabulary, by name; they differ in order and text, too."""
    folder = tmp_path_factory.mktemp("kinds")
    found = {}
    for number, name in enumerate(KINDS):
        lines = [line.split() for line in LINES] + [LINES[k % len(LINES)].split() for k in range(number)]
        text = write_sentences(lines, folder / f"{name}.txt")
        found[name] = folder / f"{name}.{'arpa' if name == 'arpa' else 'bin'}"
        arpa = folder / f"{name}.arpa"
        estimate([text], arpa, Estimation(order=2 if name == "rest" else 2 + number % 3, fallback=True))
        options = {
            "probing": ["probing"],
            "rest": ["-r", f"{_unigrams(arpa)}", "probing"],
            "trie": ["trie"],
            "array": ["-a", "22", "trie"],
            "quantised": ["-q", "8", "trie"],
            "both": ["-q", "8", "-b", "7", "-a", "22", "trie"],
        }
        if name != "arpa":
            build = [program("build_binary"), *options[name], arpa, found[name]]
            subprocess.run(build, check=True, capture_output=True)
    return found


def _unigrams(arpa):
    """A model of the single words of another, which models with rest costs are built from."""
    lines = arpa.read_text().split("\n")
    rows = lines[lines.index("\\1-grams:") + 1 : lines.index("\\2-grams:") - 1]
    text = "\n".join(["\\data\\", f"ngram 1={len(rows)}", "", "\\1-grams:", *(row.rpartition("\t")[0] for row in rows)])
    path = arpa.with_suffix(".unigrams")
    path.write_text(text + "\n\n\\end\\\n")
    return path


@st.composite
def mixtures(draw):
    """Kinds of models, with rows of weights."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    share = st.one_of(st.just(0.0), st.floats(1e-9, 1.0))
    row = st.lists(share, min_size=len(kinds), max_size=len(kinds)).filter(sum)
    rows = draw(st.one_of(st.lists(row, min_size=1, max_size=1), st.lists(row, min_size=9, max_size=9)))
    return kinds, np.array(rows) / np.array(rows).sum(axis=1, keepdims=True)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=mixtures(), lines=TEXT.filter(lambda lines: any(map(str.strip, lines))), threads=st.integers(1, 3))
def test_mixtures_have_the_same_digits(chosen, lines, threads, models, tmp_path):
    kinds, weights = chosen
    mixture = Mixture(tuple(models[kind] for kind in kinds), weights)
    mixture.save(tmp_path / "mix.json")
    text = tmp_path / "text.txt"
    text.write_text("\n".join(lines), encoding="utf-8", newline="")
    kept = [(tmp_path / f"{name}.s.tsv", tmp_path / f"{name}.t.tsv") for name in ("python", "native")]
    expected = measure(mixture, text, sentences=kept[0][0], tokens=kept[0][1])
    words = ["perplexity", tmp_path / "mix.json", text, "--threads", threads, "--json"]
    found = json.loads(good(*words, "--sentences", kept[1][0], "--tokens", kept[1][1]))
    names = {"model": str(tmp_path / "mix.json"), "text": str(text)}
    assert found == names | {
        name: value if isinstance(value, int) else pytest.approx(value, rel=1e-9)
        for name, value in expected.to_dict().items()
    }
    for python, native in zip(*kept, strict=True):
        assert native.read_text() == python.read_text()
    rows = [f"{row.log_prob:.6f}\t{row.tokens}\t{row.unknown}" for row in rescore(mixture, text)]
    assert good("rescore", tmp_path / "mix.json", text, "--threads", threads).splitlines() == rows
    assert len(rows) == len("\n".join(lines).splitlines())


def test_a_long_text_in_order_on_any_number_of_threads(models, tmp_path):
    """Longer than what a thread reads at a time, with a line that is longer, too, and blank lines that fill it."""
    lines = [" ".join(["cat", "zebra", "dog"][: 1 + number % 3]) for number in range(120_000)]
    lines[50_000:50_000] = [""] * 600_000
    lines[9_000] = " ".join(np.random.default_rng(0).choice(WORDS, 200_000))
    text = tmp_path / "long.txt"
    text.write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "long.txt.gz").write_bytes(gzip.compress(text.read_bytes()))
    Mixture((models["arpa"], models["trie"]), np.array([[0.3, 0.7]])).save(tmp_path / "mix.json")
    once, more = (good("rescore", tmp_path / "mix.json", text, "--threads", threads) for threads in (1, 3))
    assert once == more == good("rescore", tmp_path / "mix.json", stdin=text.read_bytes())
    assert once.count("\n") == len(lines)
    expected = measure(Mixture.open(tmp_path / "mix.json"), text, 2, sentences=tmp_path / "python.tsv")
    for path in (text, tmp_path / "long.txt.gz"):
        words = ["perplexity", tmp_path / "mix.json", path, "--threads", 3, "--sentences", tmp_path / "native.tsv"]
        found = json.loads(good(*words, "--json"))
        assert found["perplexity"] == pytest.approx(expected.including, rel=1e-9)
        assert (tmp_path / "native.tsv").read_text() == (tmp_path / "python.tsv").read_text()


@pytest.mark.long
def test_memory_does_not_grow_with_the_text(models, tmp_path):
    text = tmp_path / "text.txt"
    script = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
    script += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    peaks = []
    for lines in (600_000, 1_200_000):  # both longer than what a thread holds at a time
        text.write_text("the cat sat on the mat\n" * lines)
        command = ["python3", "-c", script, program("compgen-ngram"), "perplexity", models["trie"], text]
        command += ["--threads", 1, "--tokens", tmp_path / "t.tsv"]  # of several, each holds more or less by chance
        peaks.append(int(subprocess.run(list(map(str, command)), check=True, capture_output=True).stdout))
    assert peaks[1] < peaks[0] + 5_000  # KB; the second text has 14,000 more, its tokens 80,000


def test_the_table_is_that_of_python(models, tmp_path):
    text = write_sentences([["the", "cat"], ["zebra"] * 1200], tmp_path / "a text.txt")
    other = write_sentences([["dog"]], tmp_path / "b.txt")
    words = ["perplexity", models["probing"], text, other, models["probing"].parent / "arpa.txt"]
    python = compgen("lm", *words).stdout
    assert [line.rstrip() for line in good(*words).splitlines()] == [line.rstrip() for line in python.splitlines()]
    assert good(*words, "--json") == compgen("lm", *words, "--json").stdout


@pytest.mark.parametrize("names", ["", "source\ttarget\n", "\nsource\ttarget\n"])
def test_a_blank_line_of_a_table_is_rescored_too(models, tmp_path, names):
    (tmp_path / "h.tsv").write_text(f"{names}the cat sat\tx\n\nthe zebra\ty\n\n")
    done = compgen("lm", "rescore", models["trie"], tmp_path / "h.tsv")
    assert done.returncode == 0, done.stderr
    before = "\n" * names.startswith("\n")
    text = compgen("lm", "rescore", models["trie"], "-", stdin=f"{before}the cat sat\n\nthe zebra\n\n")
    assert done.stdout == text.stdout and len(done.stdout.splitlines()) == 4 + len(before)


def test_rescored_lines_are_those_of_python(models, tmp_path):
    hypotheses = "the cat sat\n\nthe zebra\n \na dog"
    python = compgen("lm", "rescore", models["trie"], "-", stdin=hypotheses)
    assert python.returncode == 0, python.stderr
    assert good("rescore", models["trie"], stdin=hypotheses.encode()) == python.stdout
    rows = [line.split("\t") for line in python.stdout.splitlines()]
    assert [row[1:] for row in rows] == [["4", "0"], ["1", "0"], ["3", "1"], ["1", "0"], ["3", "0"]]
    assert rows[1] == rows[3]
    text = tmp_path / "n.txt"
    text.write_text("the cat sat\n")
    loss = measure(Mixture.open(models["trie"]), text).loss
    assert float(rows[0][0]) == pytest.approx(-loss, abs=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_has_come_to_know_other_words_is_not_mixed(kind, models, tmp_path, monkeypatch):
    """As many words, but others: for both programs, the message of `cgen lm interpolate`."""
    monkeypatch.chdir(tmp_path)
    lines = [line.replace("cat", "zebra").split() for line in LINES]
    text = write_sentences(lines, Path("text.txt"))
    estimate([text], Path("other.arpa"), Estimation(order=2, fallback=True))
    Mixture((models[kind], models["trie"], Path("other.arpa")), np.full((1, 3), 1 / 3)).save(Path("mix.json"))
    said = f"{models[kind].name} knows 12 words, other.arpa 12 or others; estimate both from texts with the same words"
    for words in (["perplexity", "mix.json", "text.txt"], ["rescore", "mix.json", "text.txt"]):
        done, python = run(*words), compgen("lm", *words)
        assert (done.returncode, python.returncode, done.stdout, python.stdout) == (2, 2, b"", "")
        assert done.stderr.decode().removeprefix("error: ") == python.stderr.removeprefix("cgen: ")
        assert python.stderr.startswith("cgen: mixed vocabularies: ") and said in python.stderr
    mixed = compgen("lm", "interpolate", models[kind], "other.arpa", "--validation", "text.txt", "-o", "new.json")
    assert said in mixed.stderr and not Path("new.json").exists()


BAD = {  # what a mixture may hold: the message, word for word
    "{": "{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers",
    '{"format": "other"}': '{path}: found the format "other", expected "compgen mixture of n-gram models 1"',
    "{}": '{path}: found the format null, expected "compgen mixture of n-gram models 1"',
    '{"format": {"b": [1, 2.5], "a": "é"}}': '{path}: found the format {"a":"\\u00e9","b":[1,2.5]}, expected "'
    + FORMAT
    + '"',
    json.dumps(ONE)[:-1]: "{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers",
    json.dumps(ONE) + "}": "{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers",
    '{"format": NaN}': "{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers",
    '{"format": 1e999}': "{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers",
    '{"a": ' + "[" * 70 + "]" * 70 + "}": "{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers",
    b'{"a": "\xff"}': "{path}: not a mixture: cut short, or not JSON in UTF-8 with finite numbers",
    json.dumps(ONE | {"models": []}): "{path}: models: expected a list of names of files",
    json.dumps(ONE | {"models": "arpa"}): "{path}: models: expected a list of names of files",
    json.dumps(ONE | {"models": [1]}): "{path}: models: expected a list of names of files",
    json.dumps(ONE | {"models": ["a\0b"]}): "{path}: models: expected a list of names of files",
    json.dumps(ONE | {"models": None}): "{path}: models: expected a list of names of files",
    json.dumps(ONE | {"weights": [[0.5]]}): "{path}: weights: expected numbers from 0 on that sum to one in each row",
    json.dumps(ONE | {"weights": [[-1]]}): "{path}: weights: expected numbers from 0 on that sum to one in each row",
    json.dumps(ONE | {"models": ["a", "b"], "weights": [[-0.5, 1.5]]}): "{path}: weights: expected numbers from 0 on "
    "that sum to one in each row",
    json.dumps(
        ONE | {"weights": [[1.0, 0.0]]}
    ): "{path}: weights: expected 1 row or 9, each of 1 numbers, one for each model",
    json.dumps(ONE | {"weights": [[1.0]] * 3}): "{path}: weights: expected 1 row or 9, each of 1 numbers, one for each "
    "model",
    json.dumps(
        ONE | {"weights": [["1"]]}
    ): "{path}: weights: expected 1 row or 9, each of 1 numbers, one for each model",
    json.dumps(
        ONE | {"weights": [[True]]}
    ): "{path}: weights: expected 1 row or 9, each of 1 numbers, one for each model",
    json.dumps(ONE | {"weights": 1}): "{path}: weights: expected 1 row or 9, each of 1 numbers, one for each model",
    json.dumps(ONE | {"weights": [1]}): "{path}: weights: expected 1 row or 9, each of 1 numbers, one for each model",
    json.dumps(ONE | {"models": ["gone"]}): "{path}: its model gone is missing: put it there, or make the",
    json.dumps(ONE | {"models": ["./up/../gone"]}): "{path}: its model up/../gone is missing: put it there",
    json.dumps(ONE | {"models": ["/gone.pt"]}): "{path}: its model /gone.pt is missing: put it there",
    json.dumps(ONE | {"models": ["{path}"]}): "{path}: not a model that KenLM can read",
    "the cat\n": "{path}: not a model that KenLM can read",
    "": "{path}: not a model that KenLM can read",
}


@pytest.mark.parametrize("command", ["perplexity", "rescore"])
def test_bad_mixtures_have_one_message(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("the cat\n")
    for number, (content, message) in enumerate(BAD.items()):
        path = tmp_path / f"{number}.json"
        if isinstance(content, str):
            content = content.replace("{path}", path.name).encode()
        path.write_bytes(content)
        done = run(command, f"./{path.name}", "text.txt")
        with pytest.raises(UserError) as python:
            measure(Mixture.open(path.relative_to(tmp_path)), "text.txt")
        said = done.stderr.decode()
        assert said == f"error: {python.value}\n"
        assert message.replace("{path}", path.name) in said
        assert (done.returncode, done.stdout) == (2, b"")


HEADER = 88  # bytes before what a binary model says of itself: order, multiplier, kind, whether it lists words, version


def test_what_is_impossible_is_infinitely_perplexing(arpa, tmp_path):
    Mixture((tmp_path / "odd.arpa",) * 2, np.array([[0.5, 0.5]])).save(tmp_path / "mix.json")
    for (word, log10), model in product([("the", "-inf"), ("<unk>", "-1e39")], ["odd.arpa", "mix.json"]):
        old = next(line for line in arpa.read_text().split("\n") if f"\t{word}\t" in line)
        new = "\t".join([log10, *old.split("\t")[1:]])
        (tmp_path / "odd.arpa").write_text(arpa.read_text().replace(old, new))
        (tmp_path / "text.txt").write_text("the zebra\nthe the cat\n")
        for command, *more in (("perplexity", "--json"), ("perplexity", "--json", "--tokens", "t.tsv"), ("rescore",)):
            words = [command, tmp_path / model, tmp_path / "text.txt", *more]
            python = compgen("lm", *words, cwd=tmp_path)
            assert (python.returncode, python.stderr) == (0, "")
            if "--json" in more:
                found = json.loads(python.stdout)
                assert found["perplexity"] == float("inf")
                assert (found["perplexity_without_unknown"] < 100) == (word == "<unk>")
                table = [command, *words[1:3]]
                assert good(*table, cwd=tmp_path).split() == compgen("lm", *table, cwd=tmp_path).stdout.split()
            tokens = (tmp_path / "t.tsv").read_bytes() if "t.tsv" in more else None
            assert good(*words, cwd=tmp_path) == python.stdout
            assert tokens is None or tokens == (tmp_path / "t.tsv").read_bytes()
    assert Perplexity(tokens=1, loss=800.0).including == float("inf")


@pytest.mark.parametrize("weights", [None, [[0.5, 0.5]], [[0.0, 1.0]], [[0.25, 0.75]] * 9], ids=str)
def test_what_is_all_but_impossible_is_a_number(weights, arpa, tmp_path):
    """Back-offs as low as -99 say that a model never backs off; a few of them add up to what no float64 can hold."""
    models = [tmp_path / "few.arpa", tmp_path / "none.arpa"]
    for model, backoff in zip(models, ("-199", "-240.5"), strict=True):
        model.write_text(re.sub(r"(?m)^(\S+\t.*)\t\S+$", rf"\1\t{backoff}", arpa.read_text()))
    lines = ["the zebra cat dog", "ran the a zebra on", "the cat sat"]
    text = write_sentences(map(str.split, lines), tmp_path / "text.txt")
    each = np.array([np.concatenate([Arpa(model).sentence(line.split()) for line in lines]) for model in models])
    assert (each.min(axis=1) < -350).all()
    if weights is None:
        mixture, expected = Mixture.open(models[0]), each[0]
    else:
        mixture = Mixture(tuple(models), np.array(weights))
        with np.errstate(divide="ignore"):
            expected = np.logaddexp.reduce(np.log(weights[:1]).T + each * np.log(10)) / np.log(10)
    mixture.save(tmp_path / "mix.json")
    words = [tmp_path / "mix.json", text]
    found = json.loads(good("perplexity", *words, "--tokens", tmp_path / "native.tsv", "--json"))
    python = measure(mixture, text, tokens=tmp_path / "python.tsv")
    assert python.including == pytest.approx(10 ** -expected.mean(), rel=1e-4)
    assert found["perplexity"] == pytest.approx(python.including, rel=1e-9)
    assert (tmp_path / "native.tsv").read_text() == (tmp_path / "python.tsv").read_text()
    assert good("rescore", *words) == compgen("lm", "rescore", *words).stdout


@pytest.mark.parametrize("kind", ["arpa", "bin"])
def test_a_model_without_the_unknown_word_is_said_once_where_one_occurs(kind, arpa, tmp_path):
    content = re.sub(r"(?m)^\S+\t<unk>\t\S+\n", "", arpa.read_text())
    size = int(re.search(r"ngram 1=(\d+)", content)[1])
    (tmp_path / "odd.arpa").write_text(content.replace(f"ngram 1={size}", f"ngram 1={size - 1}"))
    build = [program("build_binary"), "trie", tmp_path / "odd.arpa", tmp_path / "odd.bin"]
    subprocess.run(build, check=True, capture_output=True)
    for name, line in (("known", "the cat sat"), ("a", "the zebra sat"), ("b", "yak")):
        (tmp_path / f"{name}.txt").write_text(f"{line}\n" * 3)
    Mixture((tmp_path / f"odd.{kind}",) * 2, np.array([[0.5, 0.5]])).save(tmp_path / "mix.json")
    said = f"odd.{kind}: has no <unk>, so KenLM gives words that it does not know the probability 1e-100: read the"
    for model, command, texts in (
        (f"odd.{kind}", "perplexity", ["known.txt"]),
        (f"odd.{kind}", "perplexity", ["a.txt", "known.txt", "b.txt"]),
        (f"odd.{kind}", "rescore", ["a.txt"]),
        ("mix.json", "perplexity", ["b.txt"]),
    ):
        done, python = run(command, model, *texts, cwd=tmp_path), compgen("lm", command, model, *texts, cwd=tmp_path)
        assert (done.returncode, python.returncode) == (0, 0)
        assert done.stderr.decode().replace("warning: ", "cgen: ") == python.stderr
        assert python.stderr.count("\n") == python.stderr.count(said) == (texts != ["known.txt"])
    assert run("rescore", arpa, tmp_path / "a.txt").stderr == b""


def test_probabilities_that_are_no_numbers_are_refused(models, tmp_path):
    row = next(line for line in models["probing"].with_suffix(".arpa").read_text().split("\n") if "\tcat\t" in line)
    data = models["probing"].read_bytes()
    for sign in (1, -1):  # KenLM keeps a note in the sign
        data = data.replace(struct.pack("<f", sign * float(row.split("\t")[0])), struct.pack("<f", float("nan")))
    assert data != models["probing"].read_bytes()
    (tmp_path / "odd.bin").write_bytes(data)
    done = run("perplexity", tmp_path / "odd.bin", stdin=b"cat\n")
    assert done.stderr.decode() == f"error: {tmp_path / 'odd.bin'}: found a probability that is no number\n"
    assert done.returncode == 2


WHOLE = gzip.compress(b"the cat\n", mtime=0)


@pytest.mark.parametrize(
    ("content", "sentences"),
    [
        (gzip.compress(b"", mtime=0) + WHOLE, 1),
        (WHOLE + gzip.compress(b"", mtime=0) * 2 + WHOLE, 2),
        (WHOLE + b"\0" * 600 + WHOLE + b"\0", 2),
        (WHOLE + b"x", None),
        (WHOLE + b"\x1f", None),
        (WHOLE + WHOLE[:12], None),
    ],
)
@pytest.mark.parametrize("threads", [1, 3])
def test_texts_of_several_files_of_gzip(content, sentences, threads, arpa, tmp_path):
    (tmp_path / "text.gz").write_bytes(content)
    done = run("perplexity", arpa, tmp_path / "text.gz", "--json", "--threads", threads)
    if sentences is None:
        with pytest.raises(UserError) as python:
            measure(Mixture.open(arpa), tmp_path / "text.gz")
        assert (done.returncode, done.stderr.decode()) == (2, f"error: {python.value}\n")
        return
    assert done.returncode == 0, done.stderr
    assert (
        json.loads(done.stdout)["sentences"] == sentences == measure(Mixture.open(arpa), tmp_path / "text.gz").sentences
    )


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("probing", 0, b"\0"),
        ("trie", 0, b"\1"),
        ("probing", 0, b"\x0a"),
        ("probing", 4, b"\0\0\xc0\x7f"),  # no number
        ("probing", 4, b"\0\0\x80\x7f"),  # infinite
        ("trie", 8, b"\x4d"),
        ("trie", 12, b"\7"),
        ("probing", 20, b"\xff" * 8),
        ("trie", 27, b"\x10"),
        ("probing", None, b"\0\0\0\0\xff"),
        ("trie", None, b"\xff\xff"),
    ],
)
def test_models_that_cannot_be_are_not_opened(kind, place, value, models, tmp_path):
    data = bytearray(models[kind].read_bytes())
    order = data[HEADER]
    at = (HEADER + 20 + 8 * order + 7) // 8 * 8 if place is None else HEADER + place  # None: the number of words
    data[at : at + len(value)] = value
    (tmp_path / "damaged.bin").write_bytes(data)
    for words in (["words", tmp_path / "damaged.bin"], ["perplexity", tmp_path / "damaged.bin"]):
        done = run(*words, stdin=b"the cat\n")
        assert (done.returncode, done.stdout) == (2, b"")
        said = "not a model that KenLM can read: damaged: its header and its tables do not agree"
        assert done.stderr.decode() == f"error: {tmp_path / 'damaged.bin'}: {said}\n"


@pytest.mark.parametrize("kind", KINDS[1:])
@pytest.mark.parametrize("odd", [b"\xff", b"\0", b"\x55"])
def test_models_with_damaged_tables_are_refused_or_scored(kind, odd, models, tmp_path):
    """Whatever is damaged, nothing is read where no table is, and no search is without end."""
    whole, damaged, refused = models[kind].read_bytes(), tmp_path / "damaged.bin", 0
    for at in range(HEADER + 20, len(whole), max(8, len(whole) // 24)):
        damaged.write_bytes(whole[:at] + odd * 24 + whole[at + 24 :])
        done = run("rescore", "--threads", 1, damaged, stdin="\n".join(LINES).encode(), timeout=60)
        assert done.returncode in (0, 2), (at, done)
        if done.returncode:
            assert done.stderr.startswith(f"error: {damaged}: ".encode()) and done.stderr.count(b"\n") == 1
        refused += done.returncode == 2
    assert refused


def test_a_table_without_an_empty_cell_is_refused(models, tmp_path):
    """A search for an n-gram ends at an empty cell."""
    data = bytearray(models["probing"].read_bytes())
    order = data[HEADER]
    (count,) = struct.unpack_from("<Q", data, HEADER + 20 + 8 * (order - 1))
    end, cells = data.rindex(b"<unk>\0"), max(count + 1, int(1.5 * count))
    for at in range(end - 12 * cells, end, 12):  # of the longest n-grams: a hash of 8 bytes and a probability
        data[at : at + 8] = bytes(data[at : at + 8]) if any(data[at : at + 8]) else b"\1" * 8
    (tmp_path / "full.bin").write_bytes(data)
    done = run("rescore", tmp_path / "full.bin", stdin=b"the zebra\n", timeout=60)
    assert done.stderr.decode().endswith("damaged: its header and its tables do not agree\n") and done.returncode == 2


@pytest.mark.parametrize("content", [b"a" * 500_000, b"ngram " * 100_000, b"\xff" * 500_000])
def test_a_model_that_is_one_long_line_is_refused_in_a_short_one(content, tmp_path):
    (tmp_path / "long.arpa").write_bytes(content)
    done = run("words", tmp_path / "long.arpa")
    assert done.returncode == 2 and done.stderr.startswith(b"error: ") and done.stderr.count(b"\n") == 1
    assert len(done.stderr) < 600


@pytest.mark.parametrize("count", [b"-99", b"18446744073709551615", b"1152921504606846977", b"4000000000"])
def test_a_head_of_more_ngrams_than_there_are_is_refused(count, arpa, tmp_path):
    (tmp_path / "more.arpa").write_bytes(re.sub(rb"(?<=ngram 1=)\d+", count, arpa.read_bytes()))
    done = run("words", tmp_path / "more.arpa")
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"its head says that there are more n-grams" in done.stderr


def test_a_model_that_is_cut_short_is_refused(models, tmp_path):
    for kind in KINDS[1:]:
        whole = models[kind].read_bytes()
        (tmp_path / "cut.bin").write_bytes(whole[: len(whole) // 2])
        done = run("rescore", tmp_path / "cut.bin", stdin=b"the cat\n")
        assert done.stderr.decode() == f"error: {tmp_path / 'cut.bin'}: not a model that KenLM can read: cut short\n"


# A gzip file says when it was made; the same time always, as tests are named after what they are given.
CUT = gzip.compress(b"the cat\n" * 1000, mtime=0)[:40]
BROKEN = gzip.compress(b"the cat\n", mtime=0)[:-3] + b"\1\1\1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            b"the cat\nthe \xff dog\n",
            "text.txt, line 2: found bytes that are not UTF-8; expected sentences of plain words",
        ),
        (b"the\n\n\x07 cat\n", "text.txt, line 3: found the control character 0x07; expected sentences of plain words"),
        (b"\x1f cat\n", "text.txt, line 1: found the control character 0x1F; expected sentences of plain words"),
        (b"a\n" * 400_000 + b"sat on <unk>\n", "text.txt, line 400001: found <unk>, which has a meaning of its own"),
        (b"a\n<UNK> cat\n", "text.txt, line 2: found <UNK>, which has a meaning of its own"),
        (b"", "text.txt: found no sentence to measure"),
        (b"\n \n\t\r\n", "text.txt: found no sentence to measure"),
        (None, "text.txt: No such file or directory: expected a file of sentences"),
        (b"the cat\rthe dog\r", "text.txt: lines end with CR alone, expected LF or CR LF: tr '\\r' '\\n' < FILE > NEW"),
        (gzip.compress(b" \rthe cat\r\x0b a\r ", mtime=0), "text.txt: lines end with CR alone"),
        (b"the cat \r" * 9_000 + b"\n", "text.txt: lines end with CR alone"),
        (CUT, "text.txt: cut short or broken: expected a whole file of gzip"),
        (BROKEN, "text.txt: cut short or broken: expected a whole file of gzip"),
    ],
)
def test_bad_texts_have_one_message(content, message, arpa, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "text.txt").write_bytes(content)
    with pytest.raises(UserError) as python:
        measure(Mixture.open(arpa), "text.txt", tokens=tmp_path / "t.tsv")
    done = run("perplexity", arpa, "text.txt", "--tokens", tmp_path / "t.tsv")
    assert done.stderr.decode() == f"error: {python.value}\n" and message in str(python.value)
    assert (done.returncode, done.stdout) == (2, b"")
    assert [path.name for path in tmp_path.iterdir()] == (["text.txt"] if content is not None else [])


def test_a_line_longer_than_what_is_read_at_a_time_is_one_sentence(arpa, tmp_path):
    text = write_sentences([["the", "cat", "sat"] * 120_000, ["a", "dog"]], tmp_path / "text.txt")
    assert text.stat().st_size > 2**20
    found = json.loads(good("perplexity", arpa, text, "--json"))
    assert found["perplexity"] == pytest.approx(measure(Mixture.open(arpa), text).including, rel=1e-9)


@pytest.mark.parametrize("content", [b" \r the cat\r", b"\r", b"\rthe cat \r\r"], ids=repr)
def test_a_line_may_end_with_cr_where_there_is_one(content, arpa, tmp_path):
    (tmp_path / "text.txt").write_bytes(content)
    words = ["rescore", arpa, tmp_path / "text.txt"]
    assert good(*words) == compgen("lm", *words).stdout != ""


@pytest.mark.parametrize("name", ["a.jsonl", "a.json", "a.csv", "a.tsv.gz", "a.tsv", "a.parquet"])
def test_data_is_not_read_as_a_text(name, arpa, tmp_path):
    (tmp_path / name).write_text("the cat\n")
    for command in ("perplexity", "rescore"):
        done = run(command, arpa, tmp_path / name)
        said = f"error: {tmp_path / name}: data, of which `cgen lm` reads the sources: use that, or give a text, "
        assert (done.returncode, done.stdout) == (2, b"") and done.stderr.decode() == f"{said}a sentence a line\n"
    assert run("perplexity", arpa, tmp_path / f"x{name}").stderr.endswith(
        b"No such file or directory: expected a file of sentences\n"
    )


@pytest.mark.parametrize("content", [b"the cat\nthe dog\n", b"a", b"", b"the cat\n" * 300_000], ids=len)
def test_gzip_is_read_from_standard_input_and_pipes_too(content, arpa, tmp_path):
    (tmp_path / "text.txt").write_bytes(content)
    packed = gzip.compress(content, mtime=0)
    for command in ("rescore", "perplexity"):
        wanted = run(command, arpa, "-", stdin=content)
        assert wanted.stdout == run(command, arpa, stdin=packed).stdout
        assert wanted.returncode == (2 if command == "perplexity" and not content else 0)
    assert run("rescore", arpa, stdin=packed).stdout == run("rescore", arpa, tmp_path / "text.txt").stdout
    os.mkfifo(tmp_path / "pipe")
    with ThreadPoolExecutor(1) as threads:
        threads.submit((tmp_path / "pipe").write_bytes, packed)
        assert run("rescore", arpa, tmp_path / "pipe", timeout=60).stdout == run("rescore", arpa, stdin=packed).stdout
    done = run("rescore", arpa, stdin=packed[:-9])
    assert done.stderr == b"error: -: cut short or broken: expected a whole file of gzip\n"


@pytest.mark.parametrize("head", ["\n\n", "# of no weight\n"])
def test_a_model_of_text_may_begin_with_remarks(head, arpa, tmp_path):
    same = tmp_path / "model.arpa"
    same.write_text(head + arpa.read_text())
    (tmp_path / "text.txt").write_text("the cat sat\n")
    found, whole = (
        run("perplexity", model, tmp_path / "text.txt", "--json") for model in (tmp_path / "model.arpa", arpa)
    )
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["perplexity"] == json.loads(whole.stdout)["perplexity"]


EDGES = ["c1bf", "c280", "dfbf", "e09f80", "e0a080", "ed9fbf", "eda080", "ee8080", "f08f8080", "f0908080", "f48fbfbf",
         "f4908080", "f5808080", "f880808080", "80", "c2", "e6", "e697", "f09d84", "c241", "e69741", "7f"]  # fmt: skip


@pytest.mark.parametrize("bytes_", EDGES)
def test_text_is_utf_8_where_python_says_so(bytes_, arpa, tmp_path):
    (tmp_path / "text.txt").write_bytes(b"the " + bytes.fromhex(bytes_) + b"\n")
    done = run("perplexity", arpa, tmp_path / "text.txt")
    try:
        bytes.fromhex(bytes_).decode()
    except UnicodeDecodeError:
        assert done.returncode == 2 and b"line 1: found bytes that are not UTF-8" in done.stderr
    else:
        assert (b"the control character 0x7F" in done.stderr) if bytes_ == "7f" else done.returncode == 0


def test_a_text_may_be_a_folder_or_a_pipe(arpa, tmp_path):
    assert run("perplexity", arpa, tmp_path).stderr.decode() == (
        f"error: {tmp_path}: Is a directory: expected a file of sentences\n"
    )
    folder = os.open(tmp_path, os.O_RDONLY)
    command = [str(program("compgen-ngram")), "perplexity", str(arpa), "-"]
    done = subprocess.run(command, stdin=folder, capture_output=True, check=False)
    os.close(folder)
    assert (done.returncode, done.stderr) == (2, b"error: -: Is a directory: expected a file of sentences\n")
    done = run("perplexity", arpa, "-", "--json", stdin=b"the cat\n\xff\n")
    assert done.stderr.decode().startswith("error: -, line 2: found bytes that are not UTF-8")
    assert json.loads(good("perplexity", arpa, "--json", stdin=b"the cat\nthe dog"))["sentences"] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["perplexity", "gone.bin", "a.txt"], "gone.bin: no such file, expected a language model or a mixture"),
        (["perplexity", "m.arpa", "a.txt", "--tokens", "a.txt"], "a.txt: it is read, too: choose another name"),
        (["perplexity", "m.arpa", "a.txt", "--sentences", "x/../m.arpa"], "m.arpa: it is read, too"),
        (["perplexity", "mix.json", "a.txt", "--sentences", "m.arpa"], "m.arpa: it is read, too: choose another name"),
        (["perplexity", "mix.json", "a.txt", "--tokens", "x/../m.arpa"], "m.arpa: it is read, too"),
        (["perplexity", "m.arpa", "a.txt", "a.txt", "--tokens", "t.tsv"], "--sentences and --tokens are for one text"),
        (["perplexity", "m.arpa", "a.txt", "--tokens", "t", "--sentences", "./t"], "would both be t: give two names"),
        (["perplexity", "m.arpa", "a.txt", "--sentences", "a.txt/s.tsv"], "a.txt/s.tsv: cannot be written: a.txt is a"),
        (["perplexity", "m.arpa", "a.txt", "--sentences", "x"], "x: cannot be written: Is a directory"),
    ],
)
def test_what_cannot_be_has_one_message(words, message, arpa, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").mkdir()
    (tmp_path / "a.txt").write_text("the cat\n")
    (tmp_path / "m.arpa").write_bytes(arpa.read_bytes())
    (tmp_path / "mix.json").write_text(json.dumps(ONE | {"models": ["m.arpa"]}))
    done, python = run(*words), compgen("lm", *words)
    assert (done.returncode, python.returncode) == (2, 2)
    said = done.stderr.decode().strip().removeprefix("error: ")
    assert message in said and said == python.stderr.strip().removeprefix("cgen: ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "m.arpa", "mix.json", "x"]
    assert (tmp_path / "m.arpa").read_bytes() == arpa.read_bytes()


def test_a_thread_that_cannot_be_had_is_told_and_leaves_nothing(arpa, tmp_path):
    (tmp_path / "text.txt").write_text("the cat\n")
    words = ["perplexity", arpa, "text.txt", "--threads", 64, "--sentences", "s.tsv"]
    done = run(*words, cwd=tmp_path, preexec_fn=few)
    assert done.returncode == 2 and re.fullmatch(TOO_MANY, done.stderr.decode()), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["text.txt"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no command: expected perplexity, rescore, scores or words"),
        (["m.arpa"], "m.arpa: expected perplexity"),
        (["perplexity"], "perplexity: expected MODEL"),
        (["rescore", "a", "b", "c"], "rescore: expected MODEL and perhaps TEXT"),
        (["perplexity", "--threads", "0", "m.arpa"], "--threads 0: expected a number from 1 to 1024"),
        (["perplexity", "--threads", "2x", "m.arpa"], "--threads 2x: expected a number"),
        (["perplexity", "m.arpa", "--tokens"], "--tokens: expected a value behind it"),
        (["perplexity", "m.arpa", "--order", "2"], "--order: no such option"),
        (["rescore", "m.arpa", "--tokens", "t.tsv"], "rescore has no use for --tokens"),
        (["perplexity", "m.arpa", "--blank"], "perplexity has no use for --blank"),
        (["perplexity", "m.arpa", "--tokens", "t.parquet"], "--tokens t.parquet: expected a file of TSV"),
        (["perplexity", "m.arpa", "--sentences", "s.tsv.gz"], "--sentences s.tsv.gz: expected a file of TSV"),
        (["perplexity", "net.pt"], "net.pt: a checkpoint, which needs torch: `cgen export` makes a bundle of it"),
        (
            ["perplexity", "."],
            ".: a recurrent model, which compgen-score runs: `make runner` builds it; set COMPGEN_SCORER",
        ),
    ],
)
def test_options_that_are_none(words, message, arpa, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.arpa").write_bytes(arpa.read_bytes())
    (tmp_path / "net.pt").write_bytes(b"PK")
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("COMPGEN_SCORER", raising=False)
    done = run(*words, stdin=b"the cat\n")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode().startswith(f"error: {message}") and done.stderr.count(b"\n") == 1


def test_full_disks_are_said(arpa):
    with Path("/dev/full").open("wb") as full:
        command = [str(program("compgen-ngram")), "rescore", str(arpa)]
        done = subprocess.run(command, input=b"a\n" * 10_000, stdout=full, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (2, b"error: standard output: cannot be written\n")
    done = run("perplexity", arpa, "--tokens", "/dev/full", stdin=b"a\n" * 10_000)
    assert done.stderr == b"error: /dev/full: cannot be written: No space left on device\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_leaves_nothing(number, arpa, tmp_path):
    command = [program("compgen-ngram"), "perplexity", arpa, "--sentences", "s.tsv", "--tokens", "t.tsv"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, cwd=tmp_path) as process:
        while len(list(tmp_path.iterdir())) < 2 and process.poll() is None:
            time.sleep(0.01)
        time.sleep(0.2)  # it waits for its text
        process.send_signal(number)
        assert process.wait() == -number
    assert not list(tmp_path.iterdir())


def test_help_names_the_commands():
    said = good("--help")
    assert all(f"compgen-ngram {command} " in said for command in ("perplexity", "rescore", "scores", "words"))
