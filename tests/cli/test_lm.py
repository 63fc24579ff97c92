"""`cgen lm`, as a user runs it."""

import gzip
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

from compgen.errors import UserError
from compgen.lm.estimation import Estimation, estimate
from compgen.lm.measuring import measure, rescore
from compgen.lm.mixture import Mixture, tuned
from compgen.lm.scoring import score_all
from tests.cli.shell import compgen, refused

pytestmark = pytest.mark.usefixtures("kenlm")


def good(*words, **options):
    done = compgen("lm", *words, **options)
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Texts and a model of one of them."""
    folder = tmp_path_factory.mktemp("lm")
    random = np.random.default_rng(0)
    nouns, verbs = ["cat", "dog", "bird", "fish", "cow", "fox"], ["saw", "ate", "met", "heard"]
    for name, count in (("train", 120), ("val", 60), ("test", 60)):
        rows = [f"the {random.choice(nouns)} {random.choice(verbs)} a {random.choice(nouns)}\n" for _ in range(count)]
        (folder / f"{name}.txt").write_text("".join(rows))
    good("train", folder / "train.txt", "-o", folder / "base.bin", "--order", 3, "--discount-fallback")
    return folder


def test_train_says_what_it_counted(folder):
    record = json.loads((folder / "base.bin.run.json").read_text())
    assert (record["sentences"], record["order"], len(record["ngrams"])) == (120, 3, 3)
    words = ["train", folder / "train.txt", "-o", folder / "small.arpa", "--order", 2, "--prune", "0,1"]
    done = good(*words, "--discount-fallback")
    assert "120 sentences, 600 tokens; n-grams" in done.stderr
    for path, said in ((folder / "small.arpa", done), (folder / "base.bin", None)):
        orders = json.loads(path.with_name(f"{path.name}.run.json").read_text())["fallback_orders"]
        grams = ", ".join(f"{order}-grams" for order in orders)
        assert orders and (said is None or f"fixed discounts, as the text gives none, for {grams}\n" in said.stderr)
    assert (folder / "small.arpa").read_text().startswith("\\data\\")


def test_train_reads_a_pipe(folder, tmp_path):
    words = ["train", "-", "-o", tmp_path / "piped.bin", "--order", 3, "--discount-fallback"]
    good(*words, stdin=(folder / "train.txt").read_text())
    assert (tmp_path / "piped.bin").read_bytes() == (folder / "base.bin").read_bytes()


def test_gzip_is_read_from_standard_input_too(folder, tmp_path):
    packed = gzip.compress((folder / "train.txt").read_bytes())
    words = ["train", "-", "-o", tmp_path / "piped.bin", "--order", "3", "--discount-fallback"]
    for command in (words, ["perplexity", folder / "base.bin", "-"], ["rescore", folder / "base.bin", "-"]):
        done = subprocess.run([sys.executable, "-m", "compgen", "lm", *command], input=packed, capture_output=True)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "piped.bin").read_bytes() == (folder / "base.bin").read_bytes()
    assert len(done.stdout.splitlines()) == 120


def test_models_and_texts_are_named_in_python_too(folder, tmp_path):
    estimate(str(folder / "train.txt"), str(tmp_path / "a.bin"), Estimation(3, fallback=True))
    assert (tmp_path / "a.bin").read_bytes() == (folder / "base.bin").read_bytes()
    text = str(folder / "test.txt")
    opened = measure(Mixture.open(folder / "base.bin"), text)
    assert measure(str(folder / "base.bin"), text).including == opened.including
    assert len(list(rescore(folder / "base.bin", text))) == 60
    models = [str(folder / "base.bin"), str(tmp_path / "b.bin")]
    estimate([str(folder / "train.txt")], models[1], Estimation(2, fallback=True), temporary=str(tmp_path))
    mixture = tuned(models, score_all(models, text), by_history=True)
    mixture.save(str(tmp_path / "mix.json"))
    kept = {name: str(tmp_path / f"{name}.tsv") for name in ("sentences", "tokens")}
    found = measure(mixture, text, **kept)
    assert measure(Mixture.open(str(tmp_path / "mix.json")), text).including == found.including
    assert measure(Mixture(tuple(models), mixture.weights), text).including == found.including
    assert len((tmp_path / "sentences.tsv").read_text().splitlines()) == found.sentences + 1
    for ask in (score_all, tuned):
        with pytest.raises(UserError, match=r"models: found '\S+base\.bin' alone, expected a list of models: \['"):
            ask(models[0], text)
    with pytest.raises(UserError, match="models are not compressed"):
        estimate(text, tmp_path / "a.arpa.gz")


def test_texts_may_be_data_whose_sources_are_the_sentences(folder, tmp_path):
    wanted = good("perplexity", folder / "base.bin", folder / "val.txt", "--json").stdout
    rescored = good("rescore", folder / "base.bin", folder / "val.txt").stdout
    for name in ("jsonl", "csv", "tsv", "json", "parquet", "jsonl.gz"):
        done = compgen("data", "write", folder / "val.txt", "-o", tmp_path / f"val.{name}")
        assert done.returncode == 0, done.stderr
        found = json.loads(good("perplexity", folder / "base.bin", tmp_path / f"val.{name}", "--json").stdout)
        assert found | {"text": None} == json.loads(wanted) | {"text": None}
    of_table = good("rescore", folder / "base.bin", tmp_path / "val.tsv")
    assert of_table.stdout == rescored and "of which the sources are scored" in of_table.stderr
    assert "sources" not in good("rescore", folder / "base.bin", folder / "val.txt").stderr
    assert compgen("data", "write", folder / "train.txt", "-o", tmp_path / "train.tsv").returncode == 0
    good("train", tmp_path / "train.tsv", "-o", tmp_path / "x.bin", "--order", 3, "--discount-fallback")
    assert (tmp_path / "x.bin").read_bytes() == (folder / "base.bin").read_bytes()


def test_a_text_has_one_split(folder, tmp_path):
    """Nobody means to learn from the test, or to measure on what was learned."""
    (tmp_path / "parts.tsv").write_text("go on\tGO\ttrain\nstop now\tSTOP\ttrain\ngo now\tGO\ttest\n")
    for words in (["train", tmp_path / "parts.tsv", "-o", tmp_path / "x.bin"],
                  ["perplexity", folder / "base.bin", tmp_path / "parts.tsv"]):  # fmt: skip
        refused(compgen("lm", *words), "found the splits train 2, test 1, expected one", "--split train -o OUT")
    assert not (tmp_path / "x.bin").exists()


def test_a_fault_is_told_of_texts_that_are_passed_on(folder, tmp_path):
    """The program that scores ends before it has read all of them."""
    words = "\x01 the cat\n" + "the cat saw a dog\n" * 200_000
    (tmp_path / "bad.txt.gz").write_bytes(gzip.compress(words.encode()))
    found = "line 1: found the control character 0x01"
    refused(compgen("lm", "perplexity", folder / "base.bin", tmp_path / "bad.txt.gz"), f"bad.txt.gz, {found}")
    refused(compgen("lm", "rescore", folder / "base.bin", "-", stdin=words), f"-, {found}")
    model = folder / "test.txt"
    refused(compgen("lm", "perplexity", model, tmp_path / "bad.txt.gz"), f"{model}: not a model that KenLM can read")


def test_perplexity_of_files_and_pipes(folder, tmp_path):
    texts = [folder / "val.txt", folder / "test.txt"]
    table = good("perplexity", folder / "base.bin", *texts).stdout
    assert "without unknown" in table and all(figure in table for figure in ("360", "60"))
    rows = [json.loads(line) for line in good("perplexity", folder / "base.bin", *texts, "--json").stdout.splitlines()]
    piped = good("perplexity", folder / "base.bin", "-", "--json", stdin=texts[1].read_text())
    assert json.loads(piped.stdout)["perplexity"] == rows[1]["perplexity"]
    kept = ["--sentences", tmp_path / "s.tsv", "--tokens", tmp_path / "t.parquet"]
    good("perplexity", folder / "base.bin", texts[0], *kept)
    assert len((tmp_path / "s.tsv").read_text().splitlines()) == 61
    assert pl.read_parquet(tmp_path / "t.parquet").height == rows[0]["tokens"] == 360


def test_interpolate_and_use_the_mixture(folder, tmp_path):
    other, mix = tmp_path / "other.bin", tmp_path / "mix.json"
    good("train", folder / "train.txt", "-o", other, "--order", 2, "--discount-fallback")
    models = [folder / "base.bin", other]

    def measured(model):
        return json.loads(good("perplexity", model, folder / "val.txt", "--json").stdout)["perplexity"]

    for options in ([], ["--by-history"], ["--grid", "0.05,0.1,0.5"]):
        done = good("interpolate", *models, "--validation", folder / "val.txt", "-o", mix, *options)
        assert f"{measured(mix):.4f}" in done.stderr
        if not options:
            assert measured(mix) <= min(map(measured, models)) + 1e-6


@pytest.mark.parametrize("options", [[], ["--by-history"], ["--grid", "0.1,0.5"]], ids=" ".join)
def test_weights_that_no_text_can_choose_are_not_written(options, tmp_path):
    grams = "\\data\\\nngram 1=4\nngram 2=1\n\n\\1-grams:\n-inf\t<unk>\n-99\t<s>\t-0.3\n-1\t</s>\n-1\ta\t-0.2\n"
    (tmp_path / "m.arpa").write_text(grams + "\n\\2-grams:\n-0.5\t<s> a\n\n\\end\\\n")
    (tmp_path / "val.txt").write_text("a\n\na zebra a\n")
    words = ["interpolate", "m.arpa", "m.arpa", "--validation", "val.txt", "-o", "mix.json", *options]
    done = refused(compgen("lm", *words, cwd=tmp_path), "cgen: val.txt, line 3: the word 'zebra', token 2 of 4: imposs")
    assert done.stderr.count("\n") == 1 and not (tmp_path / "mix.json").exists()


def test_augment_reports_the_control_beside_the_gain(folder, tmp_path):
    rows = [
        json.dumps({"source": line, "target": [], "split": split}) + "\n"
        for split in ("train", "test")
        for line in (folder / f"{split}.txt").read_text().splitlines()
    ]
    (tmp_path / "parts.jsonl").write_text("".join(rows))
    words = ["augment", tmp_path / "parts.jsonl", "--validation", folder / "val.txt", "--test", folder / "test.txt"]
    words += ["-o", tmp_path / "out", "--order", 3, "--discount-fallback", "--seeds", "4", "-n", 100]
    done = good(*words)
    assert "control, seed 4" in done.stdout and "augmented, seed 4" in done.stdout
    assert (tmp_path / "out" / "training.txt").read_text() == (folder / "train.txt").read_text()  # and not the test
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["test"], report["settings"]["count"]) == (str(folder / "test.txt"), 100)
    assert report["verdict"] in done.stdout.replace("\n", " ")
    control, base = (f"{report[side]['bootstrap_p']:.2g} against" for side in ("against_control", "against_base"))
    decisive = f"the bootstrap over 60 test sentences, losses averaged over 1 seed: p {control} the control, {base} the"
    assert decisive in report["decisive"] and report["decisive"] in done.stdout.replace("\n", " ")
    assert list(report["fallback_orders"])[:2] == ["base", "resampled-4"]
    assert "fixed (KenLM's --discount_fallback) for" in done.stdout.replace("\n", " ")
    trial = report["trials"][0]
    again = good("perplexity", tmp_path / "out" / "interpolated-4.json", folder / "test.txt", "--json").stdout
    assert json.loads(again)["perplexity"] == trial["mixture"]["test"]["perplexity"]
    other = compgen("lm", *words[:-1], 90)
    refused(other, "holds another run (count was 100, is 90): choose another folder or delete it")
    refused(compgen("lm", *words[:-1], 90, "--scheme", "paper"), "span was [2, 2], is [2]", "; 8 more)")
    assert json.loads((tmp_path / "out" / "report.json").read_text()) == report


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "gone.txt", "-o", "x.bin"], "gone.txt: No such file"),
        (["train", "train.txt", "-o", "x.bin", "--prune", "a"], "expected counts between commas"),
        (["train", "bad.txt", "-o", "x.bin"], "bad.txt, line 2: found bytes that are not UTF-8"),
        (["train", "bad.jsonl", "-o", "x.bin"], "bad.jsonl, line 2: found the keys 'words'"),
        (["train", "tiny.jsonl", "-o", "x.bin"], "tiny.jsonl: too small or too regular"),
        (["train", "gone.csv", "-o", "x.bin"], "gone.csv: no such file"),
        (["train", "tiny.txt", "-o", "x.bin"], "tiny.txt: too small or too regular"),
        (["train", "tiny.txt", "-o", "x.bin"], "(KenLM: Could not calculate"),
        (["train", "val.txt", "none.txt", "-o", "x.bin"], ": none.txt: found no word, expected sentences"),
        (["train", "train.txt", "-o", "x.bin", "--memory", "1"], "memory 1: too little for lmplz, expected 32M or"),
        (["train", "train.txt", "-o", "x.bin", "--memory", "1M"], "memory 1M: too little for lmplz, expected 32M or"),
        (["train", "val.txt", "-o", "x.arpa", "--kind", "trie"], "kind and quantise are of binary models"),
        (["train", "val.txt", "-o", "x.bin", "--temporary", "gone"], "gone: no such folder"),
        (["train", "val.txt", "-o", "val.txt/x.bin"], "val.txt/x.bin: cannot be written"),
        (["train", "val.txt", "-o", "val.txt"], "val.txt: it is read, too"),
        (["train", "val.txt", "-o", "-"], "give the name of a file"),
        (["perplexity", "base.bin", "val.txt", "--tokens", "t.parquet", "--sentences", "t.parquet"], "give two names"),
        (["perplexity", "base.bin", "val.txt", "--sentences", "val.txt"], "val.txt: it is read, too"),
        (["interpolate", "base.bin", "base.bin", "--validation", "val.txt", "-o", "base.bin"], "it is read, too"),
        (["augment", "x.txt", "--validation", "x", "--test", "x", "-o", "d", "--seeds", "1,1"], "different numbers"),
        (["augment", "x", "--validation", "x", "--test", "x", "-o", "d", "--seeds", "9" * 5000], "different numbers"),
        (["augment", "x", "--validation", "x", "--test", "x", "-o", "d", "--seeds", f"0,{2**64}"], f"{2**64}: expect"),
        # Refused once the data are read: no folder is left of this, either.
        (["augment", "train.txt", "--validation", "val.txt", "--test", "no.tsv", "-o", "d"], "no.tsv: no such file"),
        (["train", "train.txt", "-o", "x.bin", "--prune", "9" * 5000], "expected counts between commas"),
        (["augment", "val.txt", "--validation", "x", "--test", "./x", "-o", "d"], "fitted to the test"),
        (["perplexity", "train.txt", "val.txt"], "not a model that KenLM can read"),
        (["perplexity", "val.txt", "base.bin"], "val.txt: not a model, and base.bin is one: the model comes first"),
        (["perplexity", "base.bin", "val.txt", "--tokens", "t.csv"], "t.csv: tokens are written as .tsv or .parquet"),
        (["perplexity", "base.bin", "val.txt", "--sentences", "t.parquet"], "sentences are written as .tsv, found the"),
        (["rescore", "val.txt", "small.arpa"], "val.txt: not a model, and small.arpa is one: the model comes first"),
        (["rescore", "val.txt", "mix.json"], "val.txt: not a model, and mix.json is one: the model comes first"),
        (["interpolate", "base.bin", "mix.json", "--validation", "val.txt", "-o", "m.json"], "found a mixture"),
        (["perplexity", "cut.bin", "val.txt"], "cut.bin: not a model"),
        (["perplexity", "base.bin", "val.txt", "test.txt", "--tokens", "t.parquet"], "are for one text"),
        (["interpolate", "base.bin", "--validation", "val.txt", "-o", "m.json"], "two models or more"),
        (["interpolate", "base.bin", "base.bin", "--validation", "val.txt", "-o", "m.json", "--grid", "2"], "0 to 1"),
        (["augment", "x.txt", "--validation", "x", "--test", "x", "-o", "d", "--scheme", "x"], "no scheme"),
    ],
)
def test_what_cannot_be_is_one_message_and_code_2(words, message, folder, monkeypatch):
    monkeypatch.chdir(folder)
    (folder / "bad.txt").write_bytes(b"a b\n\xff\n")
    (folder / "bad.jsonl").write_text('{"source": "a b"}\n{"words": "c"}\n')
    (folder / "tiny.txt").write_text("a b\n")
    (folder / "none.txt").write_text("\n")
    Mixture.open(folder / "base.bin").save(folder / "mix.json")
    (folder / "small.arpa").write_text("\\data\\\n")
    (folder / "tiny.jsonl").write_text('{"source": ["a", "b"], "target": []}\n')
    (folder / "cut.bin").write_bytes((folder / "base.bin").read_bytes()[:200])
    done = compgen("lm", *words)
    assert done.returncode == 2
    assert message in done.stderr.replace("\n", " ") and "Traceback" not in done.stderr
    assert not any((folder / name).exists() for name in ("x.bin", "m.json", "t.parquet", "d"))
