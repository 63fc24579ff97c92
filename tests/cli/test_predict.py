"""`cgen predict`, as a user runs it."""

import json
import pickle
import subprocess
import sys

import pytest

import compgen as package
from compgen.data.sources import as_word
from compgen.files import sha256
from tests.cli.shell import compgen, refused

SIZES = ["network.hidden=8", "network.encoder_hidden=6", "network.embedding=6", "network.attention=5"]
SETTINGS = [word for value in (*SIZES, "optimisation.steps=60", "optimisation.batch=8") for word in ("--set", value)]
LINES = "walk now\n\nrun\nswim now\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A predictor of commands, p.pt, and one of inflected words, w.pt."""
    folder = tmp_path_factory.mktemp("predict")
    pairs = [(f"{verb}{late}", verb.upper()) for verb in ("walk", "run", "look") for late in ("", " now")]
    (folder / "p.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    words = [("a b", "PST", "a bd"), ("a b", "PRS", "a be"), ("ca", "PST", "cad"), ("ca", "PRS", "cae")]
    (folder / "words").write_text("".join(f"{lemma}\t{form}\tV;{tag}\n" for lemma, tag, form in words))
    done = compgen("data", "write", folder / "words", "--swap", "-o", folder / "swapped.tsv")
    assert done.returncode == 0, done.stderr
    for data, model in (("p.tsv", "p.pt"), ("words", "w.pt"), ("swapped.tsv", "analyst.pt")):
        done = compgen("train", "seq2seq", folder / data, "-o", folder / model, *SETTINGS)
        assert done.returncode == 0, done.stderr
    (folder / "x.txt").write_text(LINES)
    return folder


@pytest.fixture(scope="module")
def predictor(folder):
    return package.Predictor.load(folder / "p.pt")


def expected(predictor, beam=1):
    asked = [line.split() for line in LINES.splitlines() if line]
    found = iter(predictor.predict(asked, beam, unknown=True))
    return [" ".join(next(found)) if line else "" for line in LINES.splitlines()]


def test_lines_are_answered_one_for_one(folder, predictor):
    piped = compgen("predict", folder / "p.pt", stdin=LINES)
    assert piped.returncode == 0 and piped.stdout.split("\n") == [*expected(predictor), ""]
    assert "1 source token is unknown to it: swim" in piped.stderr
    named = compgen("predict", folder / "p.pt", folder / "x.txt", "--beam", 3, "-o", folder / "y.txt")
    assert named.returncode == 0 and not named.stdout, named.stderr
    assert (folder / "y.txt").read_text().split("\n") == [*expected(predictor, 3), ""]
    record = json.loads((folder / "y.txt.run.json").read_text())
    assert (record["model"], record["sources"], record["beam"]) == (str(folder / "p.pt"), 4, 3)
    assert record["identity"] == sha256(folder / "p.pt") == pickle.loads(pickle.dumps(predictor)).identity


def test_predictors_answer_together(folder, tmp_path):
    other = [*SETTINGS, "--seed", 1]
    made = compgen("train", "seq2seq", folder / "p.tsv", "-o", tmp_path / "q.pt", *other)
    assert made.returncode == 0, made.stderr
    both = (folder / "p.pt", tmp_path / "q.pt")
    out = tmp_path / "both.jsonl"
    done = compgen("predict", both[0], folder / "x.txt", "--with", both[1], "--best", 2, "-o", out)
    assert done.returncode == 0, done.stderr
    together = package.Committee([package.Predictor.load(one) for one in both])
    asked = [line.split() for line in LINES.splitlines() if line]
    expected = [target for ranked in together.best(asked, 2, unknown=True) for target, _ in ranked]
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [row["target"] for row in rows if row["source"]] == expected
    record = json.loads((tmp_path / "both.jsonl.run.json").read_text())
    assert (record["model"], record["others"]) == (str(both[0]), [str(both[1])])
    assert [record["identity"], *record["identity_of_others"]] == [*map(sha256, both)]
    assert record["otherwise"] is record["identity_of_otherwise"] is None
    assert f"together: {both[0]}: 1 source token is unknown to it: swim" in done.stderr
    done = compgen("evaluate", *both, folder / "p.tsv", "--together", "--json", "--predictions", tmp_path / "o.tsv")
    assert done.returncode == 0, done.stderr
    scores = {row["model"]: row["exact_match"] for row in map(json.loads, done.stdout.splitlines())}
    assert [*scores] == [*map(str, both), "together"]
    examples = package.load_dataset(str(folder / "p.tsv"))
    assert scores["together"] == together.evaluate(examples).exact_match
    written = [line.split("\t")[1].split() for line in (tmp_path / "o.tsv").read_text().splitlines()]
    assert written == together.predict([source for source, _ in examples.pairs()])


def test_augmented_examples_are_those_of_train(folder, tmp_path):
    """What else is in the file is to be tested on, most likely."""
    (tmp_path / "more.tsv").write_text("go\tGO\ttrain\nstop\tSTOP\ttest\ncome\tCOME\ttest\n")
    words = [*SETTINGS, "--set", "optimisation.steps=2", "--augmented", tmp_path / "more.tsv"]
    done = compgen("train", "seq2seq", folder / "p.tsv", *words, "-o", tmp_path / "q.pt")
    assert done.returncode == 0 and "augmented examples 1," in done.stdout + done.stderr
    assert "more.tsv: 1 examples of split train; left out: 2 of test" in done.stderr
    words[-1] = "-"  # read once
    done = compgen("train", "seq2seq", folder / "p.tsv", *words, "-o", tmp_path / "r.pt", stdin="go\tGO\nstop\tSTOP\n")
    assert done.returncode == 0 and "augmented examples 2," in done.stdout + done.stderr


def test_augmented_examples_that_are_to_be_tested_on_are_told(folder, tmp_path):
    (tmp_path / "all.tsv").write_text((folder / "p.tsv").read_text() + "go\tGO\ttest\nstop\tSTOP\ttest\n")
    (tmp_path / "more.tsv").write_text("go\tGO\ncome\tCOME\n")
    words = [*SETTINGS, "--set", "optimisation.steps=2", "--augmented", tmp_path / "more.tsv"]
    done = compgen("train", "seq2seq", "all.tsv", *words, "-o", tmp_path / "q.pt", cwd=tmp_path)
    assert "1 of 2 examples of split test of all.tsv are among the augmented ones: a score on" in done.stderr
    done = compgen("train", "seq2seq", folder / "p.tsv", *words, "-o", tmp_path / "q.pt", cwd=tmp_path)
    assert done.returncode == 0 and "are among the augmented ones" not in done.stderr, done.stderr


def test_tables_have_sources_and_targets(folder, predictor):
    done = compgen("predict", folder / "p.pt", folder / "p.tsv", "-o", folder / "y.tsv")
    assert done.returncode == 0, done.stderr
    rows = [line.split("\t") for line in (folder / "y.tsv").read_text().splitlines()]
    sources = [line.split("\t")[0] for line in (folder / "p.tsv").read_text().splitlines()]
    assert rows == [[one, target] for one, target in zip(sources, package.predict(predictor, sources), strict=True)]
    done = compgen("predict", folder / "p.pt", "-", "-o", folder / "blank.tsv", stdin=LINES)
    assert [line.count("\t") for line in (folder / "blank.tsv").read_text().splitlines()] == [1, 0, 1, 1]


@pytest.mark.parametrize("options", [[], ["--source", "question"]])
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("asked.csv", "question\nwalk now\nrun\n"),
        ("asked.tsv", "question\nwalk now\nrun\n"),
        ("asked.jsonl", '{"question": "walk now"}\n{"question": ["run"]}\n'),
    ],
)
def test_tables_need_no_targets(folder, predictor, name, text, options):
    (folder / name).write_text(text)
    done = compgen("predict", folder / "p.pt", folder / name, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == package.predict(predictor, ["walk now", "run"])


def test_ids_stay_with_their_answers_and_the_record_has_the_columns(folder):
    (folder / "ids.csv").write_text("number,nl,sql\n7,walk now,x\n8,run,y\n")
    asked = ("predict", folder / "p.pt", folder / "ids.csv", "--source", "nl", "-o", folder / "ids.jsonl")
    done = compgen(*asked)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (folder / "ids.jsonl").read_text().splitlines()]
    assert [(row["number"], row["source"]) for row in rows] == [("7", ["walk", "now"]), ("8", ["run"])]
    assert "sql" not in rows[0]  # a right answer is no answer
    assert json.loads((folder / "ids.jsonl.run.json").read_text())["source"] == "nl"


def test_the_best_come_with_their_scores(folder, predictor):
    done = compgen("predict", folder / "p.pt", folder / "x.txt", "--best", 2, "-o", folder / "y.jsonl")
    assert done.returncode == 0, done.stderr
    assert json.loads((folder / "y.jsonl.run.json").read_text())["beam"] == 2
    rows = [json.loads(line) for line in (folder / "y.jsonl").read_text().splitlines()]
    asked = [line.split() for line in LINES.splitlines()]
    found = [[([], None)] if not one else predictor.best([one], 2, unknown=True)[0] for one in asked]
    wanted = [(one, target, score) for one, ranked in zip(asked, found, strict=True) for target, score in ranked]
    assert [(row["source"], row["target"]) for row in rows] == [(one, target) for one, target, _ in wanted]
    scored = [(row["rank"], row["log_prob"]) for row in rows if row["source"]]
    scores = [score for *_, score in wanted if score is not None]
    assert scored == [(1 + place % 2, pytest.approx(score, abs=1e-3)) for place, score in enumerate(scores)]
    lines = compgen("predict", folder / "p.pt", folder / "x.txt", "--best", 2).stdout.split("\n")
    assert lines == ["\t".join(" ".join(target) for target, _ in ranked) for ranked in found] + [""]


@pytest.mark.parametrize("form", ["", "?\t"])
def test_words_are_inflected(folder, form):
    (folder / "lemmas.tsv").write_text(f"A b\t{form}V;PST\n\nca\t{form}V;PRS\n")
    done = compgen("predict", folder / "w.pt", folder / "lemmas.tsv", "-o", folder / "forms.tsv")
    assert done.returncode == 0, done.stderr
    done = compgen("predict", folder / "w.pt", folder / "lemmas.tsv", "-o", folder / "forms.unimorph")
    assert done.returncode == 0, done.stderr
    assert (folder / "forms.unimorph").read_text() == (folder / "forms.tsv").read_text()
    answers = package.predict(folder / "w.pt", ["a ␣ b V PST", "c a V PRS"])
    forms = [answer.replace(" ", "").replace("␣", " ") for answer in answers]
    assert (folder / "forms.tsv").read_text() == f"A b\t{forms[0]}\tV;PST\n\nca\t{forms[1]}\tV;PRS\n"
    piped = compgen("predict", folder / "w.pt", "-", stdin=(folder / "lemmas.tsv").read_text())
    assert piped.stdout == f"{forms[0]}\n\n{forms[1]}\n"
    tokens = compgen("predict", folder / "w.pt", stdin="a ␣ b V PST\n")
    assert tokens.stdout == f"{answers[0]}\n"


def test_words_with_one_tag_each_are_inflected_by_what_learnt_to_inflect(folder):
    (folder / "one.tsv").write_text("ca\tPST\n")
    done = compgen("predict", folder / "w.pt", folder / "one.tsv")
    assert done.returncode == 0 and not done.stderr.count("unknown"), done.stderr
    answer = package.predict(folder / "w.pt", ["c a PST"])[0]
    assert done.stdout == answer.replace(" ", "").replace("␣", " ") + "\n"


def test_forms_are_analysed(folder):
    (folder / "forms.txt").write_text("a bd\n\ncae\n")
    done = compgen("predict", folder / "analyst.pt", folder / "forms.txt", "-o", folder / "analyses.tsv")
    assert done.returncode == 0 and "unknown" not in done.stderr, done.stderr
    answers = package.predict(folder / "analyst.pt", ["a ␣ b d", "c a e"])
    (first, tags), (second, more) = (as_word(answer.split()) for answer in answers)
    assert (folder / "analyses.tsv").read_text() == f"{first}\ta bd\t{tags}\n\n{second}\tcae\t{more}\n"
    refused(compgen("predict", folder / "analyst.pt", stdin="a bd\tV;PST\n"), "analyst.pt learnt to analyse forms")
    assert compgen("predict", folder / "analyst.pt", stdin="cae\n").stdout == f"{second} {more}\n"
    letters = compgen("predict", folder / "analyst.pt", stdin="c a e\n")
    assert letters.stdout == f"{answers[1]}\n"
    refused(compgen("predict", folder / "analyst.pt", folder / "words"), "learnt to analyse forms: found lemmas with")


def test_a_pipe_is_answered_before_it_ends(folder):
    command = [sys.executable, "-m", "compgen", "predict", str(folder / "p.pt")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for line in (b"walk now\n", b"\n", b"run\n"):
            process.stdin.write(line)
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\n")
        process.stdin.close()
        assert process.wait(timeout=60) == 0


def test_generators_answer_directly(folder):
    asked = "jump twice\nwalk xyzzy\n\n"
    done = compgen("predict", "recomb2", "--direct", stdin=asked)
    assert (done.returncode, done.stdout) == (0, "I_JUMP I_JUMP\n\n\n") and "1 answered" in done.stderr
    both = compgen("predict", "recomb2", "--direct", "--otherwise", folder / "p.pt", "-o", "/dev/stdout", stdin=asked)
    second = package.predict(folder / "p.pt", ["walk xyzzy"])[0]
    assert both.stdout == f"I_JUMP I_JUMP\n{second}\n\n" and "is unknown to it: xyzzy" in both.stderr
    as_json = compgen("predict", "recomb2", "--direct", "-o", folder / "d.jsonl", stdin="jump twice\n")
    assert as_json.returncode == 0, as_json.stderr
    assert json.loads((folder / "d.jsonl").read_text()) == {
        "source": ["jump", "twice"],
        "target": ["I_JUMP", "I_JUMP"],
    }


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["recomb2"], "recomb2: holds a generator, expected a predictor; `cgen train seq2seq` makes one, and with"),
        (["p.pt", "--direct"], "holds a predictor, expected a generator"),
        (["x.txt", "p.pt"], "x.txt: not a model, and p.pt is one: the model comes first, then the data"),
        (["x.txt", "recomb2"], "x.txt: not a model, and recomb2 is one: the model comes first, then the data"),
        (["x.txt", "x.txt"], "x.txt: a file, expected a model: a bundle's folder, a checkpoint (.pt) or a .grammar\n"),
        (["scan/jump", "x.txt"], "scan/jump: a data set, expected a model"),
        (["p.pt", "w.pt"], "w.pt: a model, expected data\n"),
        (["p.pt", "x.txt", "-o", "x.txt"], "x.txt: it is read, too"),
        (["p.pt", "x.txt", "-o", "y.csv"], "predictions are written as .txt, .tsv, .jsonl, .unimorph (perhaps .gz)"),
        (["p.pt", "x.txt", "-o", "new.unimorph"], "unimorph holds words: found the source 'walk now', expected lemma"),
        (["p.pt", "bad.txt", "-o", "new.txt"], "bad.txt, line 2: found the token '</s>'"),
        (["p.pt", "blank.jsonl", "-o", "new.tsv"], "lines cannot hold the token 'a b'"),
        (["recomb2", "--direct", "--best", "2"], "leave out --beam and --best"),
        (["p.pt", "--otherwise", "p.pt"], "add --direct"),
        (["p.pt", "--best", "0"], "--best"),
        (["p.pt", "--format", "csv"], "expected text, tsv, jsonl or unimorph"),
    ],
)
def test_mistakes_are_one_message(folder, words, says):
    (folder / "bad.txt").write_text("walk\n</s>\n")
    (folder / "blank.jsonl").write_text('{"source": ["a b"]}\n')
    refused(compgen("predict", *words, cwd=folder, stdin=""), says)
    assert not list(folder.glob("*new*"))


def test_lemmas_with_tags_are_not_scored(folder):
    (folder / "tags.tsv").write_text("ca\tV;PST\n")
    refused(compgen("evaluate", folder / "w.pt", folder / "tags.tsv"), "without forms to score by; `cgen predict`")
