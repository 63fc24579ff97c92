"""The command as a user meets it: quick help, clear errors, exit codes, nothing half-written."""

import gzip
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compgen import __version__
from compgen.cli.common import say
from compgen.cli.main import _explained, _warn
from compgen.cli.train import Seq2SeqOptions, _say_foreign
from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.errors import Remark
from compgen.trained.generator import Generator
from tests.cli.shell import compgen, refused


def settings(*values):
    return [word for value in values for word in ("--set", value)]


SMALL = settings(
    "network.hidden=8",
    "network.encoder_hidden=6",
    "network.embedding=6",
    "network.attention=5",
    "optimisation.steps=60",
    "optimisation.batch=8",
)
TINY = [*SMALL, *settings("network.output=6", "neighborhood.cover=false", "neighborhood.delta=0.1")]
PAIRS = "".join(f"{verb}{suffix}\t{verb.upper()}\n" for verb in ("walk", "run", "look") for suffix in ("", " now"))


@pytest.fixture(scope="session")
def generator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generator")
    (folder / "pairs.tsv").write_text(PAIRS)
    done = compgen("train", "recombine", folder / "pairs.tsv", "-o", folder / "g.pt", *TINY)
    assert done.returncode == 0, done.stderr
    return folder / "g.pt"


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_no_shell_has_a_builtin_of_this_name(tmp_path):
    (tmp_path / "cgen").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m compgen "$@"\n')
    (tmp_path / "cgen").chmod(0o755)
    path = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    for shell in filter(shutil.which, ("bash", "dash", "zsh", "fish")):
        done = subprocess.run([shell, "-c", "cgen --version"], capture_output=True, text=True, check=True, env=path)
        assert done.stdout == f"compgen {__version__}\n"


def test_errors_begin_with_the_name_of_the_command():
    done = refused(compgen("sample", "nowhere", "-n", 1), "cgen: nowhere: no such bundle")
    assert done.stderr.startswith("cgen: ")
    # Which of its two names the option for help is given depends on Click's version.
    assert re.search(r"Try 'cgen sample (-h|--help)' for help\.", refused(compgen("sample", "--nothing")).stderr)


def test_help_imports_nothing_heavy():
    probe = (
        "import sys\n"
        "from compgen.cli.main import app\n"
        "try: app(['--help'])\n"
        "except SystemExit: pass\n"
        "heavy = [m for m in ('torch', 'onnxruntime', 'polars', 'onnx', 'numpy', 'transformers') if m in sys.modules]\n"
        "print('HEAVY', heavy)"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert "HEAVY []" in done.stdout
    for verb in ("data", "train", "export", "sample", "augment", "evaluate"):
        assert f" {verb} " in done.stdout


def test_pairs_go_all_the_way(generator, tmp_path):
    samples, predictor = tmp_path / "s.jsonl", tmp_path / "p.pt"
    sampled = compgen("sample", generator, "--draws", 500, "--temperature", "1", "--filter", "unique", "-o", samples)
    assert sampled.returncode == 0, sampled.stderr
    assert "500 drawn" in sampled.stderr
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    record = json.loads((tmp_path / "s.jsonl.run.json").read_text())
    assert record["counts"]["kept"] == len(lines) and record["next"] == 500
    assert lines
    more = ["--augmented", samples, "-o", predictor]
    trained = compgen("train", "seq2seq", generator.with_name("pairs.tsv"), *more, *SMALL)
    assert trained.returncode == 0, trained.stderr
    scored = compgen(
        "evaluate", predictor, generator.with_name("pairs.tsv"), "--json", "--errors", "0",
        "--predictions", tmp_path / "predictions.tsv",
    )  # fmt: skip
    assert scored.returncode == 0, scored.stderr
    assert json.loads(scored.stdout)["examples"] == 6
    predicted = (tmp_path / "predictions.tsv").read_text().splitlines()
    assert len(predicted) == 6


def test_a_transformer_goes_all_the_way(generator, tmp_path):
    """Trained, exported, and the bundle answers as the checkpoint does."""
    data, model, bundle = generator.with_name("pairs.tsv"), tmp_path / "t.pt", tmp_path / "bundle"
    sizes = settings("network.layers=1", "network.size=8", "network.inner=8", "optimisation.steps=20")
    trained = compgen("train", "transformer", data, "-o", model, *sizes)
    assert trained.returncode == 0, trained.stderr
    exported = compgen("export", model, "-o", bundle, "--samples", "10")
    assert exported.returncode == 0, exported.stderr
    for name, target in ((model, "own.tsv"), (bundle, "exported.tsv")):
        scored = compgen("evaluate", name, data, "--predictions", tmp_path / target)
        assert scored.returncode == 0, scored.stderr
    assert (tmp_path / "own.tsv").read_text() == (tmp_path / "exported.tsv").read_text()
    refused(
        compgen("train", "transformer", data, "-o", model, "--config", "seq2seq_small"),
        "configuration seq2seq_small is of another command",
    )
    refused(compgen("sample", bundle, "-n", "1"), "holds a predictor, expected a generator")


def test_predicted_commands_can_be_executed(tmp_path):
    from compgen import Predictor, load_dataset
    from compgen.data.scan import interpret
    from compgen.errors import DataError

    pytest.importorskip("scipy", reason="needs SciPy, the extra [lm]")
    commands = [f"{verb}{late}" for verb in ("walk", "run", "look") for late in ("", " twice", " left")]
    nacs, model, predictions = (tmp_path / name for name in ("nacs.tsv", "p.pt", "predictions.tsv"))
    nacs.write_text("".join(f"{' '.join(interpret(one.split()))}\t{one}\n" for one in commands))
    trained = compgen("train", "seq2seq", nacs, "-o", model, *SMALL)
    assert trained.returncode == 0, trained.stderr
    scored = compgen("evaluate", model, nacs, "--execute", "scan", "--json", "--predictions", predictions)
    assert scored.returncode == 0, scored.stderr
    figures = json.loads(scored.stdout)

    def right(actions, command):
        try:
            return " ".join(interpret(command.split())) == actions
        except DataError:
            return False

    hits = [right(*line.split("\t")[:2]) for line in predictions.read_text().splitlines()]
    assert figures["executes"] == sum(hits) / len(hits) >= figures["exact_match"]
    assert figures["signature"].endswith("|executes:scan,equals-source")
    scores = Predictor.load(model).evaluate(load_dataset(str(nacs)), execute="scan")
    assert scores.executes == figures["executes"]
    again = tmp_path / "again.pt"
    again.write_bytes(model.read_bytes())
    compared = compgen("evaluate", model, again, nacs, "--compare", "1", "--json")
    assert json.loads(compared.stdout.splitlines()[-1])["items_p"] == 1, compared.stderr
    assert "by Bonferroni" in compgen("evaluate", model, again, nacs, "--compare", "1").stdout
    table = compgen("evaluate", model, nacs, "--execute", "scan")
    assert table.stdout.splitlines()[0].split()[-1] == "executes"
    assert table.stdout.splitlines()[1].split()[-1] == f"{figures['executes']:.4f}"


@pytest.mark.parametrize(("kind", "expected"), [("length", {2, 3}), ("shape", {"y0", "y1"})])
def test_templates_may_be_lengths_or_shapes(tmp_path, kind, expected):
    data = tmp_path / "d.tsv"
    data.write_text("".join(f"{'w ' * (1 + i % 2)}n{i}\ty{int(i > 300)}\n" for i in range(600)))
    asked = ("select", data, "-n", 40, "--by", "umt", "--template", kind, "--format", "jsonl", "-o", "-")
    chosen = [json.loads(line) for line in compgen(*asked).stdout.splitlines()]
    found = [len(one["source"]) if kind == "length" else one["target"][0] for one in chosen]
    assert set(found) == expected and len(found) == 40


def test_a_range_of_addresses_can_be_split(generator):
    whole = compgen("sample", generator, "--draws", 60, "--temperature", "1", "--workers", 2).stdout
    parts = [
        compgen("sample", generator, "--draws", n, "--start", s, "--temperature", "1", "--batch", b).stdout
        for s, n, b in ((0, 25, 3), (25, 35, 256))
    ]
    fields = [
        [[json.loads(line)[key] for key in ("index", "source", "target")] for line in text.splitlines()]
        for text in (whole, "".join(parts))
    ]
    assert fields[0] == fields[1]
    assert fields[0]


def test_samples_are_explained_by_their_prototypes(generator, tmp_path):
    out, more = tmp_path / "s.jsonl", tmp_path / "more.jsonl"
    compgen("sample", generator, "-n", 3, "-o", out)
    made = compgen("augment", "recombine", generator.with_name("pairs.tsv"), "-n", 3, "-o", more, *TINY)
    assert made.returncode == 0, made.stderr
    for path, kept in ((out, generator), (more, f"{more}.pt")):
        examples = [f"{' '.join(s)} -> {' '.join(t)}" for s, t in Generator.load(kept).examples().pairs()]
        sample = json.loads(path.read_text().splitlines()[1])
        expected = [f"prototype {n}  {examples[row]}" for n, row in enumerate(sample["prototypes"], start=1)]
        both = [" ".join(sample[side]) for side in ("source", "target") if sample[side]]
        told = compgen("explain", "recombine", path, "--line", 2).stdout.splitlines()
        assert [line.strip() for line in told] == [f"2. {' -> '.join(both)}:", *expected]
    refused(compgen("explain", "recombine", out, "--line", 4), "it has 3 examples, no line 4")
    compgen("sample", generator, "-n", 3, "-o", tmp_path / "s.tsv")
    refused(compgen("explain", "recombine", tmp_path / "s.tsv"), "has no column prototypes, which .jsonl")
    record = out.with_name("s.jsonl.run.json")
    record.write_text(record.read_text().replace('"identity": "', '"identity": "0'))
    refused(compgen("explain", "recombine", out), "g.pt: another generator than the one that")
    record.write_text("{}")
    refused(compgen("explain", "recombine", out), "expected the record of `cgen augment recombine` or `cgen sample`")
    csv = tmp_path / "more.csv"
    record = csv.with_name("more.csv.run.json")
    record.write_text(more.with_name("more.jsonl.run.json").read_text().replace('"format": null', '"format": "csv"'))
    csv.write_text("source,target,prototypes\nwalk,WALK,0\n")
    refused(compgen("explain", "recombine", csv), "has no column prototypes")


def test_no_epoch_is_voted_on(generator, tmp_path):
    changes = [change for change in TINY if change != "--set"]
    options = Seq2SeqOptions(out=tmp_path / "p.pt", augment="recombine", augment_set=changes)
    pairs = generator.with_name("pairs.tsv")
    whole = load(str(pairs))
    assert options.more(whole, str(pairs), whole)["fresh"].augmenter.options.vote is False


def test_chosen_samples_are_the_clearest_votes(generator):
    drawn = ("--draws", 5000, "--temperature", "1,0.3")

    def told(line):  # the last digit of a probability depends on the batch, and threads take turns as they like
        return {key: value for key, value in json.loads(line).items() if key in ("source", "target", "votes")}

    draws, ranked, best, clear, supported = (
        [told(line) for line in compgen("sample", generator, *drawn, *options).stdout.splitlines()]
        for options in (
            (),
            ("--vote",),
            ("--vote", "--best", 3),
            ("--vote", "--margin", 2),
            ("--vote", "--support", 0.5),
        )
    )
    assert best == ranked[:3]
    assert supported == [one for one in ranked if one in supported] and len(supported) < len(ranked)
    assert len({tuple(one["source"]) for one in ranked}) == len(ranked) > 3  # one target for each source

    def margin(winner):
        own = [one["target"] == winner["target"] for one in draws if one["source"] == winner["source"]]
        return 2 * sum(own) - len(own)

    assert clear == [one for one in ranked if margin(one) >= 2]
    assert 0 < len(clear) < len(ranked)


def test_beams_are_addressed_too():
    whole = compgen("sample", "recomb2", "--draws", 12, "--beam", 2)
    part = compgen("sample", "recomb2", "--draws", 7, "--start", 5, "--beam", 2, "--batch", 2)
    assert whole.returncode == part.returncode == 0, whole.stderr + part.stderr
    late = [line for line in whole.stdout.splitlines() if json.loads(line)["index"] >= 5]
    assert late
    assert [json.loads(line)["target"] for line in part.stdout.splitlines()] == [
        json.loads(line)["target"] for line in late
    ]


def test_every_configuration_that_is_spoken_of_exists():
    from compgen.configuration import shipped

    spoken = compgen("train", "recombine", "--help").stdout + compgen("train", "seq2seq", "--help").stdout
    spoken += (Path(__file__).parents[2] / "README.md").read_text() + compgen("--help").stdout
    names = set(re.findall(r"\b(?:recombine|seq2seq|rnnlm)_[a-z_]+[a-z]", spoken))
    assert names and names <= set(shipped())


def test_an_impossible_filter_stops_with_counts(generator, tmp_path):
    done = refused(
        compgen("sample", generator, "-n", 5, "--filter", "rare", "--ngram", 99, "-o", tmp_path / "s.jsonl"),
        "20,000 draws in a row",
    )  # fmt: skip
    assert "0 kept" in done.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["sample", "nowhere.pt", "-n", "1"], ["nowhere.pt"]),
        (["sample", "no-such-bundle", "-n", "1"], ["no-such-bundle"]),
        (["train", "recombine", "nowhere.tsv", "-o", "x.pt"], ["nowhere.tsv"]),
        (["train", "recombine", "scan/jmp", "-o", "x.pt"], ["jmp", "jump"]),
        (["train", "seq2seq", "scan/jump", "-o", "x.pt", "--split", "dev"], ["dev", "train"]),
        (["train", "recombine", "scan/jump", "-o", "x.pt", "--config", "nothing"], ["nothing", "recombine_small"]),
        (["train", "recombine", "scan/jump", "-o", "x.pt", "--device", "tpu"], ["tpu", "cuda"]),
        (["evaluate", "nowhere.pt", "scan/jump"], ["nowhere.pt"]),
        (["evaluate", "nowhere.pt", "scan/jump", "--execute", "lisp"], ["no interpreter 'lisp'", "scan"]),
        (["evaluate", "nowhere.pt", "scan/jump", "--execute", "scan"], ["targets that execute to their sources"]),
        (["evaluate", "a.pt", "b.pt", "c.pt", "scan/jump", "--compare", "2"], ["systems of 2 models", "found 3"]),
        (["evaluate", "a.pt", "a.pt", "scan/jump", "--compare", "1"], ["a.pt twice"]),
        (["evaluate", "recomb2", "scan/jump", "--direct", "--predictions", "-"], ["the name of a file"]),
        (["data", "write", "x" * 300, "-o", "x.tsv"], ["File name too long"]),
        (["select", "scan/jump", "-n", "1", "--by", "random", "--split", "dev", "-o", "x.tsv"], ["split 'dev'"]),
        (["lm", "train", "x.txt", "-o", "x.bin", "--temporary", "gone"], ["gone: no such folder"]),
        (["sample"], ["MODEL"]),
        (["frobnicate"], ["frobnicate"]),
        (["evaluate", "nowhere.pt", "scan/jump", "--predictions", "out.xls"], ["out.xls"]),
        (["augment", "recombine", "scan/jump", "-o", "out.xls"], ["out.xls"]),
        (["augment", "recombine", "scan/jump", "-o", "-"], ["name of a file"]),
        (["augment", "recombine", "scan/jump", "-o", "x", "--format", "xls"], ["no format 'xls'"]),
        (["evaluate", "a.pt", "b.pt", "scan/jump", "--predictions", "a.tsv"], ["2 models"]),
        (["train", "seq2seq", "scan/jump", "-o", "x.pt", "--seed", str(2**64)], ["--seed"]),
        (["train", "recombine", "scan/jump", "-o", "x.pt", "--set", "sampling.temperature=[-1,0]"], ["temperature"]),
        (["augment", "recombine", "scan/jump", "-o", "out.tsv", "--filter", "fresh"], ["fresh"]),
        (["train", "recombine", "scan/jump", "-o", "model"], ["ends in .pt"]),
        (["train", "recombine", "scan/jump", "-o", "x.pt", "--set", "max_tokens=4"], ["max_tokens"]),
    ],
)
def test_mistakes_are_one_message_and_exit_code_2(words, says, tmp_path):
    refused(compgen(*words, cwd=tmp_path), *says)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["-n", "1", "--runtime", "onnx"], "export it first"),
        (["-n", "1", "--runtime", "vm"], "expected one of"),
        (["-n", "1", "--temperature", "1", "--beam", "2"], "not both"),
        (["-n", "1", "--temperature", "warm"], "expected one or two numbers"),
        (["-n", "1", "--temperature", "1e-9,0"], "expected 0 (greedy)"),
        (["-n", "1", "--beam", "2", "--workers", "2"], "leave out workers or beam"),
        (["-n", "1", "--novelty", "pair"], "add --filter novel"),
        (["--draws", "9", "--filter", "novel", "--novelty", "sorce", "--vote"], "no novelty 'sorce'"),
        (["-n", "1", "--filter", "novel", "--ngram", "2"], "add --filter rare"),
        (["-n", "1", "--provider", "cpu"], "--provider is for bundles"),
        (["-n", "1", "--start", str(2**62)], "--start"),
        (["-n", "1", "--filter", "fresh"], "expected some of novel"),
        (["-n", "1", "-o", "s.xlsx"], ".jsonl"),
        (["-n", "1", "--vote", "--filter", "unique"], "leave unique out"),
        (["-n", "1", "--margin", "3"], "use it with --vote"),
        ([], "how many"),
    ],
)
def test_impossible_sampling_options(generator, options, says, tmp_path):
    refused(compgen("sample", generator, *options, cwd=tmp_path), says)
    assert not list(tmp_path.iterdir())


def test_filters_add_up(generator):
    few = ["--draws", 300, "--temperature", 1]
    apart = compgen("sample", generator, *few, "--filter", "novel", "--filter", "unique")
    assert apart.stdout == compgen("sample", generator, *few, "--filter", "novel,unique").stdout
    assert 0 < len(apart.stdout.splitlines()) < len(compgen("sample", generator, *few).stdout.splitlines())


def test_known_pairs_have_votes_too(generator):
    draws = [
        json.loads(line)
        for line in compgen("sample", generator, "--draws", 4000, "--temperature", 1).stdout.splitlines()
    ]
    won = compgen(
        "sample", generator, "--draws", 4000, "--temperature", 1, "--vote", "--filter", "novel", "--novelty", "pair"
    )
    known = {tuple(line.lower().split("\t")) for line in PAIRS.splitlines()}
    chosen = [json.loads(line) for line in won.stdout.splitlines()]
    sources = {source for source, _ in known}
    assert any(" ".join(one["source"]) in sources for one in chosen), won.stderr  # else no known pair has a vote here
    for one in chosen:
        assert (" ".join(one["source"]), " ".join(one["target"]).lower()) not in known
        assert one["votes"][1] == sum(draw["source"] == one["source"] for draw in draws)


def test_results_that_cannot_be_written_are_a_users_error(generator):
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs /dev/full")
    with full.open("w") as stream:
        for words in (["sample", generator, "-n", 3], ["data", "write", "scan/jump", "-o", "-"], ["--version"]):
            command = [sys.executable, "-m", "compgen", *map(str, words)]
            # Python must buffer its output, as it does for users.
            buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
            done = subprocess.run(
                command, stdout=stream, stderr=subprocess.PIPE, text=True, timeout=300, check=False, env=buffered
            )
            refused(done, "standard output: cannot be written")


def test_a_malformed_line_is_named(tmp_path):
    (tmp_path / "bad.tsv").write_text("walk\tWALK\nrun\n")
    refused(compgen("train", "recombine", tmp_path / "bad.tsv", "-o", tmp_path / "x.pt"), "bad.tsv, line 2")


def test_a_generator_is_no_predictor(generator):
    refused(compgen("evaluate", generator, "scan/jump"), "holds a generator, expected a predictor", "--direct")
    refused(compgen("evaluate", "scan/jump", generator), "scan/jump: not a model", "the model comes first")
    refused(compgen("sample", "scan/jump", "-n", "1"), "scan/jump: a data set, expected a model")


def test_a_closed_pipe_is_quiet(generator):
    words = [sys.executable, "-m", "compgen", "sample", str(generator), "--draws", "50000", "--temperature", "1"]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait(timeout=120) in (-signal.SIGPIPE, 128 + signal.SIGPIPE)
    assert "Traceback" not in process.stderr.read()


def test_a_predictor_learns_from_all_splits_that_are_named(tmp_path):
    lines = [f"walk {place}\tWALK {place}\t{part}\n" for part in ("train", "dev", "test") for place in "abcd"]
    (tmp_path / "d.tsv").write_text("".join(lines))
    for splits, count in ((["train"], 4), (["train", "dev"], 8), (["dev", "test"], 8)):
        named = [word for split in splits for word in ("--split", split)]
        words = ["train", "seq2seq", "d.tsv", *named, "--set", "optimisation.steps=2", "-o", "p.pt", "--device", "cpu"]
        done = compgen(*words, cwd=tmp_path)
        assert done.returncode == 0 and f"examples {count}," in done.stderr, done.stderr


def test_letters_of_words_are_known_on_either_side(capsys):
    """Those of forms, which StemCorrupt writes into lemmas; of other pairs, each side has its own."""
    for lemma, form in (("a n V PST", "a n í"), ("say n", "n í")):
        data = Dataset.from_pairs([(lemma.split(), form.split())])
        more = Dataset.from_pairs([(lemma.replace("n", "í").split(), form.split())])
        _say_foreign(data, more, "d")
        assert ("source tokens that d does not have, as 'í'" in capsys.readouterr().err) == ("V" not in lemma)


def test_augmented_examples_may_be_in_several_files(tmp_path):
    (tmp_path / "d.tsv").write_text("walk\tWALK\nrun\tRUN\nhop\tHOP\n")
    (tmp_path / "a.tsv").write_text("walk twice\tWALK WALK\nrun twice\tRUN RUN\n")
    (tmp_path / "b.jsonl").write_text('{"source": "hop twice", "target": "HOP HOP", "note": 1}\n')
    more = ["--augmented", "a.tsv", "--augmented", "b.jsonl", "--set", "optimisation.steps=2", "-o", "p.pt"]
    done = compgen("train", "seq2seq", "d.tsv", *more, "--device", "cpu", cwd=tmp_path)
    assert done.returncode == 0 and "augmented examples 3," in done.stderr, done.stderr
    assert "3 of 3 augmented examples have source tokens that d.tsv does not have, as 'twice'" in done.stderr
    assert "target tokens that" not in done.stderr
    (tmp_path / "t.tsv").write_text("hop\tHOP\nhop\tSKIP\nhop\tHOP\nrun\tRUN\n")
    done = compgen("evaluate", "p.pt", "t.tsv", cwd=tmp_path)
    assert "t.tsv: 1 sources have several targets, of which one is predicted: 3 of 4 examples can" in done.stderr


def test_a_name_that_is_not_utf_8_is_printed_as_it_is(tmp_path):
    """Also where, as in most locales, Python is strict about what it prints."""
    name = os.fsdecode(b"\xff.tsv")
    (tmp_path / name).write_text("walk\tWALK\ttrain\nrun\tRUN\ttest\n")
    command = [sys.executable, "-m", "compgen", "data", "overlap", name]
    strict = dict(os.environ, PYTHONIOENCODING="utf-8:strict")
    done = subprocess.run(command, capture_output=True, cwd=tmp_path, timeout=60, check=False, env=strict)
    assert done.returncode == 0 and b"data:\xff.tsv|" in done.stdout, done.stderr


def test_notes_of_two_threads_go_to_a_socket_that_is_closed():
    """Each thread asks by itself whether there is a reader."""
    code = (
        "import sys, threading, compgen.cli.streams as streams; streams.prepare()\n"
        "def talk():\n for _ in range(3000): print('x', file=sys.stderr)\n"
        "both = [threading.Thread(target=talk) for _ in range(2)]\n"
        "threading.excepthook = lambda raised: print(raised.exc_value)\n"
        "[one.start() for one in both]; [one.join() for one in both]; print('done')"
    )
    ours, theirs = socket.socketpair()
    ours.close()
    for stream in (theirs, subprocess.DEVNULL):
        done = subprocess.run(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=stream, text=True, timeout=60
        )
        assert (done.returncode, done.stdout) == (0, "done\n")
    theirs.close()


def test_work_goes_on_when_nobody_reads_its_notes(tmp_path):
    data, out = tmp_path / "data.tsv", tmp_path / "more.tsv"
    data.write_text("walk\tWALK\nrun\tRUN\n")
    words = [sys.executable, "-m", "compgen", "augment", "concat", str(data), "-n", "2", "-o", str(out)]
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(words, stdout=writer, stderr=writer, timeout=120)
    os.close(writer)
    assert done.returncode == 0 and len(out.read_text().splitlines()) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_ctrl_c_keeps_what_was_sampled(generator, tmp_path, number):
    out = tmp_path / "s.jsonl.gz"  # a file that --resume cannot go on with
    words = ["sample", generator, "--draws", 10**9, "--temperature", 1, "--workers", 1, "-o", out]
    process = subprocess.Popen([sys.executable, "-m", "compgen", *map(str, words)], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(path.stat().st_size for path in tmp_path.iterdir()):
        time.sleep(0.1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "goes on" in errors and "Traceback" not in errors
    record = json.loads((tmp_path / "s.jsonl.gz.run.json").read_text())
    with gzip.open(out, "rt") as lines:
        assert len(list(lines)) == record["counts"]["kept"] > 0
    assert {path.name for path in tmp_path.iterdir()} == {"s.jsonl.gz", "s.jsonl.gz.run.json"}


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_a_run_ended_before_it_kept_anything_writes_nothing(generator, tmp_path, number):
    out = tmp_path / "s.jsonl.gz"
    rare = ["--temperature", 0.001, "--filter", "rare", "--rare-token", "walk"]  # it writes "run" only, that cold
    words = ["sample", generator, "--draws", 10**9, *rare, "-o", out]
    process = subprocess.Popen([sys.executable, "-m", "compgen", *map(str, words)], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not any(tmp_path.iterdir()):
        time.sleep(0.1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert "none kept" in errors and "Traceback" not in errors
    assert not any(tmp_path.iterdir())


def test_examples_are_selected_by_what_a_predictor_finds_improbable(tmp_path):
    ends = {"PST": "d", "PRS": "e"}
    words = [(f"{stem} V {tag}", f"{stem} {ends[tag]}") for stem in ("a b", "b c", "c a") for tag in ends]
    data, model, more = tmp_path / "words.tsv", tmp_path / "m.pt", tmp_path / "more.jsonl"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in words))
    sizes = settings("network.layers=1", "network.size=8", "network.inner=8", "optimisation.steps=20")
    assert compgen("train", "transformer", data, "-o", model, *sizes).returncode == 0
    chosen = compgen("select", data, "-n", 3, "--model", model, "-o", more)
    assert chosen.returncode == 0 and "3 of 6 examples by umt+loss" in chosen.stderr, chosen.stderr
    record = json.loads((tmp_path / "more.jsonl.run.json").read_text())
    assert (record["n"], record["by"], record["candidates"]) == (3, "umt+loss", 6)
    assert len(more.read_text().splitlines()) == 3
    more.write_text(
        "".join(
            json.dumps({"source": [str(i)], "target": ["x"], "template": i % 2 if i < 200 else "other"}) + "\n"
            for i in range(300)
        )
    )
    fewer = tmp_path / "fewer.jsonl"
    by_column = compgen("select", more, "-n", 200, "--by", "umt", "--template", "template", "-o", fewer)
    assert by_column.returncode == 0 and len(fewer.read_text().splitlines()) == 200, by_column.stderr
    into_lines = compgen("select", more, "-n", 3, "--by", "random", "-o", tmp_path / "fewer.tsv")
    assert "fewer.tsv: left out, as tsv has no place for it: template; .jsonl keeps it" in into_lines.stderr
    piped = fewer.read_text()
    again = compgen("select", "-", "-n", 9, "--by", "umt", "--template", "template", "-o", "-", stdin=piped)
    assert {json.loads(line)["template"] for line in again.stdout.splitlines()} == {"0", "1", "other"}
    refused(compgen("select", more, "-n", 2, "--by", "umt", "--template", "x", "-o", "-"), "tags, shape, length or")
    refused(compgen("select", data, "-n", 2, "--by", "umt", "--template", "template", "-o", "-"), "JSON lines")
    refused(compgen("select", data, "-n", 2, "--by", "best", "-o", "-"), "umt+loss")
    refused(compgen("select", data, "-n", 2, "--by", "highloss", "-o", "-"), "highloss needs a model")
    without = "umt+loss needs a model: name a predictor by --model (in Python model=), or choose --by (by=) one of "
    without += "random, umt, emt\n"
    refused(compgen("select", data, "-n", 2, "-o", "-"), without)
    refused(compgen("select", data, "-n", 2, "--by", "umt", "--model", model, "-o", "-"), "leave out the model")
    refused(compgen("select", data, "-n", 2, "--by", "random", "--template", "template", "-o", "-"), "leave out")
    refused(compgen("select", data, "-n", 7, "--by", "random", "-o", "-"), "7 examples cannot be selected of 6")
    # An error now, not after computing losses.
    for words, says in ((["-n", 2, "-o", "x.xyz"], "suffix '.xyz'"), (["-n", 7, "-o", "-"], "7 examples cannot")):
        stopped = compgen("select", data, "--model", model, *words)
        refused(stopped, says)
        assert "losses" not in stopped.stderr


def test_ctrl_c_while_it_is_loaded_is_quiet():
    probe = (
        "import sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'compgen.cli.main': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "from compgen.__main__ import main\n"
        "main()"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    "error", [OSError(12, "Cannot allocate memory"), OSError("Cannot allocate memory (os error 12)"), MemoryError()]
)
def test_want_of_memory_is_no_bug(error):
    assert _explained(error).startswith("not enough memory: ")


def test_what_the_system_lacks_is_called_by_its_name():
    assert _explained(OSError(5, "Input/output error")).startswith("a file or standard output cannot be read or")
    assert _explained(OSError(28, "No space left on device")).startswith("standard output: cannot be written")
    assert _explained(OSError(30, "Read-only file system", "/t/x")) == "/t/x: Read-only file system"
    none = OSError(2, "No usable temporary directory found in ['/tmp']")
    assert _explained(none) == f"{none.strerror}: set TMPDIR to a folder that can be written"
    assert (
        _explained(OSError(2, "No such file or directory")) == "the current folder has been deleted: change to another"
    )
    assert _explained(OSError(2, "No such file or directory", "/t/x")) is None


@pytest.mark.parametrize(
    ("given", "found"), [({}, "2000"), ({"GOMP_SPINCOUNT": "7"}, "7"), ({"OMP_WAIT_POLICY": "active"}, "")]
)
def test_threads_spin_for_a_while_only_unless_one_says_otherwise(given, found, monkeypatch):
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    asked = "import os, compgen.__main__; print(os.environ.get('GOMP_SPINCOUNT', ''))"
    said = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == found


def test_no_note_steers_a_terminal(capsys):
    say("m.jsonl: 3 of \x1b[2Jdev\x9b2J\tb")  # the name of a split, or of a column, in a stranger's file
    _warn(Remark("left out: \x1b]0;title\x07"), Remark)
    assert capsys.readouterr().err == "m.jsonl: 3 of  [2Jdev 2J        b\ncgen: left out:  ]0;title \n"
