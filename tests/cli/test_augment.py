"""`cgen augment` by geca, concat, stemcorrupt and csl, and `explain geca`, as a user runs them."""

import json
import os
import subprocess
import sys
import time

import pytest

from tests import smcalflow
from tests.cli.shell import compgen, refused

PAIRS = "dax\tDAX\njog\tJOG\njog twice\tJOG JOG\njog left\tLEFT JOG\n"


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS)
    return path


def test_what_looks_like_markup_is_explained_as_it_is(tmp_path):
    verbs = ("[/b]", "[red]", ":car:")
    lines = [f"{verb} {late}\t{verb.upper()} {late.upper()}\n" for verb in verbs for late in ("now", "soon", "")]
    (tmp_path / "p.tsv").write_text("".join(lines[:-1]))
    made = compgen("augment", "lexsym", tmp_path / "p.tsv", "-o", tmp_path / "m.jsonl")
    assert made.returncode == 0, made.stderr
    explained = compgen("explain", "lexsym", tmp_path / "m.jsonl", "-n", 99)
    assert explained.returncode == 0, explained.stderr
    for row in map(json.loads, (tmp_path / "m.jsonl").read_text().splitlines()):
        assert f". {' '.join(row['source'])} -> {' '.join(row['target'])}:" in explained.stdout


def test_csl_explains_what_it_made_and_what_a_grammar_drew(tmp_path):
    pairs = tmp_path / "p.tsv"
    pairs.write_text("".join(f"{word} {more}\t{word[0].upper()} {more[0].upper()}\n"
                             for word in ("jog", "run", "hop") for more in ("left", "twice", "now")))  # fmt: skip
    out, grammar, drawn = tmp_path / "m.tsv", tmp_path / "g.grammar", tmp_path / "d.tsv"
    for words in (
        ("augment", "csl", pairs, "-n", 9, "--uniform", "--rules", tmp_path / "g.rules", "-o", out),
        ("train", "csl", pairs, "--set", "training.steps=2", "-o", grammar),
        ("sample", grammar, "-n", 9, "-o", drawn),
    ):
        done = compgen(*words)
        assert done.returncode == 0, done.stderr
    explained = compgen("explain", "csl", out, "-n", 9).stdout.splitlines()
    rules, shown = (tmp_path / "g.rules").read_text().splitlines(), [line.split() for line in explained]
    used = {" ".join(line[1:]).replace(" -> ", " ### ") for line in shown if line[0] == "rule"}
    known = {" ".join(line[1:]).replace(" -> ", "\t") for line in shown if line[0] == "from"}
    assert used <= {*rules} and any("NT_1" in rule for rule in used)
    assert known <= {*pairs.read_text().splitlines()} and len(known) > 1
    again = [line.split() for line in compgen("explain", "csl", drawn, "-n", 9).stdout.splitlines()]
    assert {" ".join(line[1:]).replace(" -> ", " ### ") for line in again if line[0] == "rule"} <= {*rules}
    assert not any(line[0] == "from" for line in again)
    refused(compgen("explain", "recombine", drawn), "samples of a grammar have none: call `cgen explain csl`")
    pairs.write_text("fly\tF\n")
    refused(compgen("explain", "csl", out), "the grammar does not derive this")
    grammar.unlink()
    refused(compgen("explain", "csl", drawn), "no such file")


def test_geca_makes_examples_and_explains_them(pairs, tmp_path):
    out = tmp_path / "more.tsv"
    done = compgen("augment", "geca", pairs, "-n", 9, "--seed", 3, "--reach", 99, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "2 examples of 9 asked for: with these options the data license no more; " in done.stderr
    assert "; made from 2 templates and 1 fragment; searched " in done.stderr
    assert sorted(out.read_text().splitlines()) == ["dax left\tLEFT DAX", "dax twice\tDAX DAX"]
    record = json.loads((tmp_path / "more.tsv.run.json").read_text())
    assert (record["data"], record["n"], record["seed"]) == (str(pairs), 9, 3)
    assert (record["method"], record["options"]["mode"], record["report"]["made"]) == ("geca", "published", 2)
    assert compgen("augment", "concat", pairs, "-o", tmp_path / "usual.tsv").returncode == 0
    usual = json.loads((tmp_path / "usual.tsv.run.json").read_text())
    assert usual["n"] == usual["report"]["asked"] > 0

    line = out.read_text().splitlines().index("dax twice\tDAX DAX") + 1
    explained = compgen("explain", "geca", out, "--line", line)
    assert explained.returncode == 0, explained.stderr
    assert "made         [dax] twice -> [DAX] [DAX]" in explained.stdout
    assert "first        [jog] -> [JOG]" in explained.stdout
    assert "second       [dax] -> [DAX]" in explained.stdout
    assert "template of  [jog] twice -> [JOG] [JOG]" in explained.stdout

    (tmp_path / "more.tsv.run.json").write_text(json.dumps(record | {"split": "train"}))  # as older versions wrote it
    assert compgen("explain", "geca", out, "--line", line).stdout == explained.stdout
    for place, wrong in (
        ("split", {"split": None}),
        ("n", {"n": True}),
        ("options", {"options": 3}),
        ("span: found 1.5", {"options": {"span": 1.5}}),
        ("spam: no such setting", {"options": {"spam": 1}}),
    ):
        (tmp_path / "more.tsv.run.json").write_text(json.dumps(record | wrong))
        refused(compgen("explain", "geca", out), place)
    for wrong in ("[]", "3", "null"):
        (tmp_path / "more.tsv.run.json").write_text(wrong)
        wanted = "more.tsv.run.json: found no JSON object; expected what `cgen augment` writes"
        refused(compgen("explain", "geca", out), wanted)
    (tmp_path / "more.tsv.run.json").write_text(json.dumps(record))
    refused(compgen("explain", "concat", out), "made by geca: call `cgen explain geca`")
    chosen = out.with_name("chosen.jsonl")
    assert compgen("select", out, "-n", 2, "--by", "random", "-o", chosen).returncode == 0
    refused(compgen("explain", "geca", chosen), "does not say the method, as records of `cgen augment` do")
    drawn = chosen.with_name("drawn.jsonl")
    assert compgen("sample", "recomb2", "-n", 2, "-o", drawn).returncode == 0
    refused(compgen("explain", "geca", drawn), "drawn by `cgen sample`: call `cgen explain recombine`")
    (tmp_path / "more.tsv.run.json").write_text(json.dumps(record))
    pairs.write_text(PAIRS + "jog right\tRIGHT JOG\n")
    changed = compgen("explain", "geca", out)
    assert changed.returncode == 2 and "one has changed" in changed.stderr


def test_explanations_need_neither_the_folder_nor_the_suffix(pairs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = compgen("augment", "geca", pairs.name, "--format", "jsonl", "--memory", "1", "-o", "more.data")
    assert done.returncode == 0, done.stderr
    monkeypatch.chdir("/")
    explained = compgen("explain", "geca", tmp_path / "more.data")
    assert "second       [dax] -> [DAX]" in explained.stdout, explained.stderr


def test_sigterm_leaves_nothing_behind(tmp_path):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    words = ["augment", "geca", "scan/jump", "--spans", "3", "--memory", "0.3", "-o", str(tmp_path / "more.tsv")]
    job = subprocess.Popen([sys.executable, "-m", "compgen", *words], env=environment, stderr=subprocess.DEVNULL)
    while not list(tmp_path.glob("compgen-geca-*/*")):
        assert job.poll() is None
        time.sleep(0.05)
    job.terminate()
    assert job.wait(60) == 143
    assert list(tmp_path.iterdir()) == []


def test_columns_that_a_method_writes_in_place_of_the_datas_are_told(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"source": "a", "target": "b", "id": 1, "method": "by hand", "host": "here"}\n')
    done = compgen("augment", "resample", tmp_path / "x.jsonl", "-n", 2, "-o", tmp_path / "y.jsonl")
    assert "y.jsonl: method, host: by resample, in place of the data's own: rename those to keep" in done.stderr
    first = json.loads((tmp_path / "y.jsonl").read_text().splitlines()[0])
    assert (first["id"], first["method"], first["host"]) == (1, "resample", 0)


@pytest.mark.usefixtures("pairs")
def test_geca_reads_and_writes_pipes(tmp_path):
    done = compgen("augment", "geca", "-", "-o", "-", "--format", "tsv", stdin=PAIRS)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["dax left\tLEFT DAX", "dax twice\tDAX DAX"]
    done = compgen("augment", "geca", "-", "-o", tmp_path / "x.tsv", stdin=PAIRS)
    assert done.returncode == 0
    assert "x.tsv: left out, as tsv has no place for it: method, " in done.stderr
    assert "standard input and are gone" in compgen("explain", "geca", tmp_path / "x.tsv").stderr
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cp", tmp_path / "pairs.tsv", tmp_path / "pipe"]):
        assert compgen("augment", "geca", tmp_path / "pipe", "-o", tmp_path / "y.tsv").returncode == 0
    assert "a pipe or standard input and are gone" in compgen("explain", "geca", tmp_path / "y.tsv").stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["augment", "geca", "scan/jump", "-o", "x.xls"], "suffix '.xls'"),
        (
            ["augment", "geca", "scan/jump", "-o", "x.tsv", "--mode", "other"],
            "mode: found 'other', expected 'published'",
        ),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--novelty", "none"], "expected 'both', 'source' or 'pair'"),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--limit", "1"], "at most 1 times"),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--memory", "0.02"], "GiB or more"),
        (["augment", "geca", "scan/jump", "--split", "dev", "-o", "x.tsv"], "no examples in split 'dev'"),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--shard", "3/2"], "expected I/N"),
        (["augment", "geca", "scan/jump", "-o", "-", "--shard", "1/2"], "give the name of a file"),
        (
            ["augment", "geca", "scan/jump", "-o", "x.tsv", "--workers", "2", "--shard", "1/2"],
            "--shard is done by one process",
        ),
        (
            ["augment", "geca", "scan/jump", "-o", "x.tsv", "--memory", "nan"],
            "memory",
        ),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--variants", 2**40], "2147483647"),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--shard", "²/3"], "expected I/N"),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--shard", ""], "--shard '': expected I/N"),
        (["augment", "geca", "scan/jump", "-o", "x.tsv", "--shard", "1/257"], "up to 256"),
        (["augment", "geca", "scan/jump", "-o", "n" * 225 + ".tsv"], "cannot be written: File name too long"),
        (["augment", "geca", "scan/jump", "-o", "n" * 212 + ".tsv"], "cannot be written: File name too long"),
        (["augment", "geca", "scan/jump", "-o", "/dev/null/x.tsv"], "/dev/null/x.tsv: cannot be written"),
        (["augment", "concat", "scan/jump", "-n", 10**12, "-o", "x.tsv"], "fewer than"),
        (["augment", "stemcorrupt", "scan/jump", "-o", "x.tsv"], "letters of a lemma and tags"),
        (["augment", "stemcorrupt", "scan/jump", "-o", "x.xls"], "suffix '.xls'"),
        (
            ["augment", "stemcorrupt", "scan/jump", "-o", "x.tsv", "--theta", "0"],
            "theta: found 0.0, expected a number",
        ),
        (["augment", "stemcorrupt", "scan/jump", "-o", "x.tsv", "--stemless", "no"], "expected 'drop' or 'keep'"),
        (["explain", "geca", "gone.tsv"], "no such file"),
    ],
)
def test_what_cannot_be_is_one_message_and_code_2(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = compgen(*words)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words", [["geca", "-o"], ["concat", "-n", 4, "-o"], ["csl", "-n", 4, "-o", "x.tsv", "--rules"]], ids=lambda w: w[0]
)
def test_data_are_not_written_over(pairs, words, monkeypatch):
    monkeypatch.chdir(pairs.parent)
    done = compgen("augment", words[0], pairs, *words[1:], pairs)
    assert done.returncode == 2 and "it is read, too" in done.stderr
    assert pairs.read_text() == PAIRS and list(pairs.parent.iterdir()) == [pairs]


def test_data_are_not_taken_for_the_record_of_what_is_written(pairs, monkeypatch):
    monkeypatch.chdir(pairs.parent)
    data = pairs.rename(pairs.parent / "x.jsonl.run.json")
    data.write_text('[{"source": "a", "target": "b"}]\n')
    done = compgen("augment", "resample", data, "-n", 4, "-o", "x.jsonl")
    assert done.returncode == 2 and "x.jsonl.run.json: it is read, too" in done.stderr
    assert list(pairs.parent.iterdir()) == [data]


def test_what_the_split_leaves_out_is_said(tmp_path):
    data = tmp_path / "splits.tsv"
    data.write_text("dax\tDAX\ttrain\njog\tJOG\ttrain\nwug\tWUG\tdev\n")
    done = compgen("augment", "concat", data, "-n", 4, "-o", "-")
    assert "2 examples of split train; left out: 1 of dev" in done.stderr and "wug" not in done.stdout
    piped = compgen("augment", "concat", "-", "-n", 4, "-o", "-", stdin=data.read_text())
    assert "standard input: 2 examples of split train" in piped.stderr
    assert "left out" not in compgen("augment", "concat", "scan/jump", "-n", 4, "-o", "-").stderr


def test_concat_puts_examples_one_behind_another(pairs, tmp_path):
    out = tmp_path / "more.tsv"
    assert compgen("augment", "concat", pairs, "-n", 16, "-o", out).returncode == 0
    lines = out.read_text().splitlines()
    assert len(set(lines)) == 16
    assert "dax | jog left\tDAX | LEFT JOG" in lines
    record = json.loads((tmp_path / "more.tsv.run.json").read_text())
    assert (record["data"], record["n"], record["options"]["separator"]) == (str(pairs), 16, "|")


def test_shares_meet_beside_out(pairs, tmp_path):
    out = tmp_path / "more.tsv"
    words = ["augment", "geca", pairs, "-o", out, "--shard"]
    first = subprocess.Popen([sys.executable, "-m", "compgen", *map(str, words), "1/2"])
    assert compgen(*words, "2/2").returncode == 0
    assert first.wait(60) == 0
    assert sorted(out.read_text().splitlines()) == ["dax left\tLEFT DAX", "dax twice\tDAX DAX"]
    assert not (tmp_path / "more.tsv.shards").exists()
    assert "[dax]" in compgen("explain", "geca", out).stdout


def test_stemcorrupt_keeps_affixes_and_says_what_it_dropped(tmp_path):
    given, out = tmp_path / "words", tmp_path / "more.tsv"
    given.write_text("hablar\thablas\tV;2\nvivir\tviviste\tV;PST\nir\tvoy\tV;1\n", encoding="utf-8")
    words = ["augment", "stemcorrupt", given, "--seed", 3, "-o", out]
    done = compgen(*words, "-n", 200, "--theta", 1)
    assert done.returncode == 0, done.stderr
    assert "200 examples; made from 2 training examples; 1 dropped for want of a stem" in done.stderr
    lines = out.read_text(encoding="utf-8").splitlines()
    assert len(set(lines)) == 200
    for source, target in (line.split("\t") for line in lines):
        letters, form = source.split(), target.split()
        stem, affixes = (
            (5, (["r", "V", "2"], ["s"])) if letters[-1] == "2" else (4, (["r", "V", "PST"], ["s", "t", "e"]))
        )
        assert letters[:stem] == form[:stem]
        assert (letters[stem:], form[stem:]) == affixes
    record = json.loads((tmp_path / "more.tsv.run.json").read_text())
    assert (record["data"], record["n"], record["seed"]) == (str(given), 200, 3)
    assert record["options"] == {"theta": 1, "shortest": 3, "stemless": "drop", "candidates": 1}
    assert record["report"]["dropped"] == 1

    piped = compgen(*words[:-1], "-", "--format", "tsv", "-n", 150, "--theta", 1)
    assert piped.stdout.splitlines() == lines[:150]
    kept = compgen(*words, "-n", 200, "--stemless", "keep")
    assert "0 dropped" in kept.stderr
    assert "i r V 1\tv o y" in out.read_text(encoding="utf-8").splitlines()
    few = compgen(*words, "-n", 10**9)
    assert few.returncode == 2 and "give at most" in few.stderr


def test_csl_induces_a_grammar_and_draws_from_it(tmp_path):
    verbs, ends = {"walk": "W", "run": "R", "look": "L", "jump": "J"}, {"": 1, " twice": 2, " thrice": 3}
    pairs = [(verb + end, " ".join(verbs[verb] * ends[end])) for verb in ("walk", "run", "look") for end in ends]
    data, out, rules = tmp_path / "d.tsv", tmp_path / "more.tsv", tmp_path / "grammar.txt"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in [*pairs, ("jump", "J")]))
    done = compgen("augment", "csl", data, "--config", "csl_scan", "--rules", rules, "-n", 300, "-o", out)
    assert done.returncode == 0, done.stderr
    assert "6 rules" in done.stderr and "300 examples" in done.stderr
    assert "NT_1 twice ### NT_1 NT_1" in rules.read_text().splitlines()
    made = dict(line.split("\t") for line in out.read_text().splitlines())
    assert made["walk thrice"] == "W W W"
    record = json.loads((tmp_path / "more.tsv.run.json").read_text())
    assert (record["config"], record["n"], record["options"]["uniform"]) == ("csl_scan", 300, False)
    uniform = compgen(
        "augment", "csl", data, "--config", "csl_scan", "--uniform", "-n", 300, "--format", "tsv", "-o", "-"
    )
    assert uniform.returncode == 0, uniform.stderr
    # What is probable is learned: the one training command with the verb has nothing behind it.
    assert "jump twice\tJ J" in uniform.stdout.splitlines()
    reused = compgen(
        "augment", "csl", data, "--config", "csl_scan", "--uniform", "-n", 5, "--seed-rules", rules, "-o", "-"
    )
    assert reused.returncode == 0 and len(reused.stdout.splitlines()) == 5, reused.stderr
    written = rules.read_text()
    words = ("augment", "csl", data, "--config", "csl_scan", "--uniform", "-n", 5, "--seed-rules", rules)
    refused(compgen(*words, "--rules", rules, "-o", out), "it is read, too")
    refused(compgen(*words, "-o", tmp_path / "below" / ".." / "grammar.txt", "--format", "tsv"), "it is read, too")
    again = tmp_path / "below" / ".." / "again.tsv"
    refused(compgen(*words, "--rules", again, "-o", tmp_path / "again.tsv"), "another than OUT's")
    assert rules.read_text() == written and not (tmp_path / "again.tsv").exists()
    trained = ("train", "csl", data, "--config", "csl_scan", "--uniform", "-o", tmp_path / "g.grammar")
    assert compgen(*trained, "--rules", tmp_path / "trained.txt").returncode == 0
    assert (tmp_path / "trained.txt").read_text() == written
    refused(compgen(*trained, "--rules", data), "it is read, too")


def test_a_training_warns_of_unlabelled_sources_that_change_nothing(pairs, tmp_path):
    (tmp_path / "more.txt").write_text("fly\n")
    words = ("train", "csl", pairs, "--set", "training.steps=2", "--unlabelled", tmp_path / "more.txt")
    done = compgen(*words, "-o", tmp_path / "g.grammar")
    assert done.returncode == 0 and "warning: none of the 1 sources of --unlabelled has a parse" in done.stderr


def test_csl_on_smcalflow(tmp_path, monkeypatch):
    folder = tmp_path / "smcalflow_cs" / "calflow.orgchart.event_create" / "source_domain_with_target_num8"
    folder.mkdir(parents=True)
    for part in ("train", "valid", "test"):
        smcalflow.write(
            folder / f"{part}.alignment.jsonl", smcalflow.SINGLE + smcalflow.CROSS[:1] + smcalflow.UNKNOWABLE
        )
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    assert (
        "train 15, dropped 2, dev 16, dev-cross 1, test 16, test-cross 1"
        in compgen("data", "show", "smcalflow-cs/8").stdout
    )
    words = ["--config", "csl_smcalflow", "--uniform", "-n", 200]
    done = compgen("augment", "csl", "smcalflow-cs/8", *words, "-o", tmp_path / "more.tsv")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "more.tsv").read_text().splitlines()
    assert len(lines) == 200
    assert all("\t( Yield :output ( " in line for line in lines)
    assert any("CreateCommitEventWrapper" in line and "FindManager" in line for line in lines)
    record = json.loads((tmp_path / "more.tsv.run.json").read_text())
    assert (record["options"]["seed_rules"], record["options"]["targets"]) == ("smcalflow", "smcalflow")


def test_csl_finds_inflections_and_keeps_to_the_grammar_of_cogs(tmp_path):
    data, out, rules = tmp_path / "d.tsv", tmp_path / "more.tsv", tmp_path / "grammar.txt"
    verbs, names = {"ate": "eat", "saw": "see", "moved": "move"}, ("Mia", "Zoe", "Levi")
    lines = [
        f"{one} {verb} {other} .\t{lemma} ( agent = {one} , theme = {other} )\n"
        for verb, lemma in verbs.items() for one in names for other in names
    ]  # fmt: skip
    data.write_text("".join([*lines, *(f"{name}\t{name}\n" for name in names)]))
    words = ["--config", "csl_cogs", "--uniform"]
    done = compgen("augment", "csl", data, *words, "--rules", rules, "-n", 50, "-o", out)
    assert done.returncode == 0, done.stderr
    expected = [f"{verb} ### {lemma}" for verb, lemma in verbs.items()]
    found = rules.read_text().splitlines()
    assert {*expected, "NT_1 NT_2 NT_3 . ### NT_2 ( agent = NT_1 , theme = NT_3 )"} <= set(found)
    made = [line.split("\t")[1].split() for line in out.read_text().splitlines()]
    assert len(made) == 50 and all(target.count("(") == target.count(")") for target in made)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config", "csl_snack"], "no configuration csl_snack"),
        (["--set", "induction.partitons=3"], "induction.partitons"),
        (["--set", "drawing.depth.least=9", "--set", "drawing.depth.most=2"], "expected least <= most"),
        (["--targets", "nowhere.cfg"], "nowhere.cfg"),
        (["--seed-rules", "nowhere.txt"], "nowhere.txt"),
        (["--split", "dev"], "no examples in split 'dev'"),
        (["--targets", "nowhere"], "nowhere: no such file"),
        (["--targets", "geoquery"], "4 of 4 targets are not derivable from the target grammar: DAX; JOG; JOG JOG; ..."),
        (["--rules", "-"], "--rules -: expected the name of a file"),
        (["--rules", "nowhere/rules.txt", "--format", "xls"], "no format 'xls'"),
    ],
)
def test_csl_says_what_is_wrong(pairs, tmp_path, words, message):
    done = compgen("augment", "csl", pairs, "--uniform", "-o", tmp_path / "out.tsv", *words)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out.tsv").exists()


def test_a_wrong_key_is_named_with_its_file(pairs, tmp_path):
    config = tmp_path / "own.toml"
    for method, text, wrong in (
        ("concat", "seperator = 'x'", "seperator: no such setting"),
        ("csl", "[induction]\nspam = 1", "induction.spam: no such setting"),
    ):
        config.write_text(text)
        done = compgen("augment", method, pairs, "--config", config, "-o", tmp_path / "more.tsv")
        assert done.returncode == 2 and str(config) in done.stderr and wrong in done.stderr


def test_quality_is_shown_and_recorded_and_strict_writes_nothing(pairs, tmp_path):
    out = tmp_path / "more.tsv"
    done = compgen("augment", "geca", pairs, "-n", 9, "-o", out)
    assert "quality: 2 distinct, 0 in training" in done.stderr
    assert "warning: 2 of 9 examples: " in done.stderr
    found = json.loads((tmp_path / "more.tsv.run.json").read_text())["quality"]
    assert (found["asked"], found["made"], found["target"]["new"][0]) == (9, 2, 0.0)
    other = tmp_path / "other.tsv"
    refused(compgen("augment", "geca", pairs, "-n", 9, "-o", other, "--strict"), f"{other} is not written")
    assert not other.exists() and not (tmp_path / "other.tsv.run.json").exists()
    assert compgen("augment", "geca", pairs, "-n", 2, "-o", other, "--strict").returncode == 0


LEXICON = "type\tword\tsymbols\nt1\tdax\tDAX\nt1\tjog\tJOG\n"
ALONE = "-\tleft\tLEFT\n"  # *twice* never is without JOG either, which *jog* explains


def test_a_lexicon_is_written_corrected_and_used(pairs, tmp_path):
    out, lexicon = tmp_path / "more.jsonl", tmp_path / "lexicon.tsv"
    done = compgen("augment", "lexsym", pairs, "--write-lexicon", lexicon, "-o", out)
    assert done.returncode == 0, done.stderr
    assert lexicon.read_text() == LEXICON + ALONE
    assert "2 words of 1 type;" in done.stderr
    lexicon.write_text(LEXICON + "t1\twug\tWUG\n")
    beside = os.path.relpath(lexicon)  # the record's name of it can be read from everywhere
    done = compgen("augment", "lexsym", pairs, "--lexicon", beside, "-o", out)
    assert json.loads((tmp_path / "more.jsonl.run.json").read_text())["options"]["lexicon"] == str(lexicon)
    made = [json.loads(line) for line in out.read_text().splitlines()]
    sources = [" ".join(one["source"]) for one in made]
    assert sorted(sources) == ["dax left", "dax twice", "wug", "wug left", "wug twice"]
    explained = compgen("explain", "lexsym", out, "--line", 1 + sources.index("wug twice"))
    assert "from [jog] twice -> [JOG] [JOG]" in " ".join(explained.stdout.split()), explained.stdout


def test_substitution_says_what_a_sample_is_made_from(tmp_path):
    table, out = tmp_path / "questions.tsv", tmp_path / "more.jsonl"
    table.write_text("rivers in ohio\triver ( ohio )\nlargest of rivers in utah\tlargest ( river ( utah ) )\n")
    grammar = tmp_path / "grammar.rules"
    rules = ["largest of NT_1 ### largest ( NT_1 )", "rivers in NT_1 ### river ( NT_1 )"]
    grammar.write_text("\n".join([*rules, "ohio ### ohio", "utah ### utah", ""]))
    done = compgen("augment", "substitute", table, "--grammar", grammar, "--classes", "predicate", "-o", out)
    assert done.returncode == 0, done.stderr
    made = {" ".join(one["source"]): one for one in map(json.loads, out.read_text().splitlines())}
    assert set(made) == {"rivers in utah", "largest of rivers in ohio"}
    sample = made["rivers in utah"]
    assert (sample["host"], sample["donors"], sample["pieces"]) == (0, [1], ["utah ### utah"])
    explained = compgen("explain", "substitute", out, "--line", 1 + [*made].index("rivers in utah"))
    said = [" ".join(line.split()) for line in explained.stdout.splitlines()]
    assert "piece utah -> utah" in said and "host rivers in ohio -> river ( ohio )" in said, said


def test_training_draws_new_examples_in_each_epoch(pairs, tmp_path):
    out = tmp_path / "p.pt"
    small = ["--set", "optimisation.steps=3", "--set", "held_out=0.0", "--set", "network.hidden=8"]
    options = ["--augment", "lexsym", "--augment-set", "move=swap", "--hard"]
    done = compgen("train", "seq2seq", pairs, *options, *small, "-o", out)
    assert done.returncode == 0, done.stderr
    assert out.exists() and "fresh lexsym in each epoch" in done.stderr
