"""A grammar's way from data to samples without torch, and what can be wrong with it."""

import json
import os
import subprocess
import sys

import pytest

from compgen.api import Generator, export_bundle, train_predictor
from compgen.configuration import load_config
from compgen.csl.augmenter import Csl
from compgen.csl.grammar_file import GrammarFile
from compgen.csl.options import CslOptions
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.errors import BundleError, UserError
from compgen.runtime.bundle import Bundle
from compgen.trained.verification import verify_bundle
from tests.cli.shell import compgen

VERBS = ("walk", "run", "look", "jump")
PAIRS = [
    *((verb, verb.upper()) for verb in VERBS),
    *((f"{verb} twice", f"{verb.upper()} {verb.upper()}") for verb in VERBS[:3]),
    *((f"{one} and {two}", f"{one.upper()} {two.upper()}") for one in VERBS[:3] for two in VERBS[:3]),
]
DATA = Dataset.from_pairs([(source.split(), target.split()) for source, target in PAIRS])
TARGETS = ["ROOT => ##V", "ROOT => ##V ##ROOT", *(f"V => {verb.upper()}" for verb in VERBS)]
BATCHES = {1: 10, 64: 200}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    targets = tmp_path_factory.mktemp("targets") / "targets.cfg"
    targets.write_text("\n".join(TARGETS))
    changes = ["training.steps=50", "drawing.depth.most=3", "drawing.longest=30", f"targets={targets}"]
    return Csl(load_config(CslOptions, "csl_scan", changes)).fit(DATA).trained


@pytest.fixture(scope="module")
def checkpoint(trained, tmp_path_factory):
    path = tmp_path_factory.mktemp("grammar") / "model.grammar"
    GrammarFile.of(trained, DATA, {"data": "words"}).save(path)
    return path


@pytest.fixture(scope="module")
def bundle(checkpoint):
    out = checkpoint.parent / "bundle"
    export_bundle(checkpoint, out, batches=BATCHES)
    return out


def test_names_of_files_need_not_be_utf8(tmp_path):
    data, model, out = tmp_path / os.fsdecode(b"d\xff.tsv"), tmp_path / "m.grammar", tmp_path / os.fsdecode(b"b\xff")
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    done = compgen("train", "csl", data, "--set", "training.steps=5", "-o", model)
    assert done.returncode == 0, done.stderr
    export_bundle(model, out, batches={1: 10})
    assert Bundle.load(out).manifest.trained_on["data"] == f"{tmp_path}/d?.tsv"
    assert (out / "README.md").read_text("utf-8").startswith("# b?\n")


def test_the_card_of_a_grammar_says_nothing_of_prototypes_and_graphs(bundle):
    text = (bundle / "README.md").read_text("utf-8")
    assert "| the training examples, to tell which samples are new |" in text
    assert not [one for one in ("attends", "prototypes", "each graph") if one in text]


def pairs(generator, count, **options):
    return [(sample.source, sample.target) for sample in generator.stream(count, **options)]


def test_checkpoint_and_bundle_draw_what_the_grammar_draws(trained, checkpoint, bundle):
    expected = trained.sampler().sample(150, seed=3).pairs()
    for path in (checkpoint, bundle):
        generator = Generator.load(path)
        assert pairs(generator, 150, seed=3) == expected
        assert pairs(generator, 50, seed=3, start=100, batch=7) == expected[100:]
    assert {len(source) for source, _ in expected} > {2, 3}


def test_samples_are_filtered_by_what_the_grammar_was_trained_on(bundle):
    found = pairs(Generator.load(bundle), 30, filters=["novel", "unique", "rare"], rare_tokens=["jump"])
    assert len({str(pair) for pair in found}) == 30
    known = DATA.pairs()
    assert all(pair not in known and "jump" in pair[0] for pair in found)


def test_temperature(trained, bundle):
    generator = Generator.load(bundle)
    hot = pairs(generator, 100, temperature=(50.0, 50.0))
    assert hot == trained.sampler(50.0).sample(100).pairs() != pairs(generator, 100)
    with pytest.raises(UserError, match="a temperature above 0"):
        next(generator.draw(temperature=(0, 0)))


def test_log_probs_are_of_the_whole_derivation(trained, bundle):
    """A command of one level below `and` has one derivation, so its samples have its probability."""
    trained_probs = trained.scores.log_probs()
    assert trained_probs.max() <= 0
    for draw in Generator.load(bundle).draw(0, 0, 50):
        assert draw.log_prob < trained_probs[0].max()


def test_direct_answers_are_parses(bundle):
    generator = Generator.load(bundle)
    found = generator.answer([["jump", "twice"], ["jump", "and", "run", "twice"], ["fly"]])
    assert found == [["JUMP", "JUMP"], ["JUMP", "RUN", "RUN"], []]


@pytest.mark.parametrize("form", ["checkpoint", "bundle"])
def test_sampling_needs_no_torch(form, request):
    program = (
        "import sys; import compgen; g = compgen.Generator.load(sys.argv[1]); "
        "g.sample(20, filters=('novel',)); g.answer([['run']]); assert 'torch' not in sys.modules"
    )
    path = str(request.getfixturevalue(form))
    subprocess.run([sys.executable, "-c", program, path], check=True)


def test_the_manifest_says_what_it_is(bundle):
    manifest = Bundle.load(bundle).manifest
    assert (manifest.architecture, manifest.kind, manifest.prototypes) == ("grammar", "generator", 0)
    assert {(row.batch, row.samples, row.differing) for row in manifest.parity} == {(1, 10, 0), (64, 200, 0)}
    assert "the checkpoint's" in (bundle / "README.md").read_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 3}, "leave out beam and workers"),
        ({"workers": 2}, "leave out beam and workers"),
        ({"temperature": (1.0, 0.5)}, "has one temperature, found 1 and 0.5"),
        ({"temperature": (0.0, 0.0)}, "above 0, found 0"),
        ({"engine": "ray"}, "needs a bundle that ONNX Runtime runs: .*; for a grammar, .* leave ray out"),
    ],
)
def test_what_a_grammar_has_not(bundle, options, message):
    with pytest.raises(UserError, match=message):
        list(Generator.load(bundle).stream(3, **options))


def test_no_runtime(checkpoint, bundle):
    with pytest.raises(UserError, match="a grammar needs no runtime"):
        Generator.load(bundle, runtime="onnx")
    for runtime in ("torch", "onnx"):
        with pytest.raises(UserError, match="a grammar needs no runtime"):
            Generator.load(checkpoint, runtime)
    with pytest.raises(BundleError, match="leave out int8"):
        export_bundle(checkpoint, bundle.parent / "other", int8=True)
    for provider in ("cuda", "gpu"):
        with pytest.raises(UserError, match=f"a grammar runs on the CPU, found provider '{provider}'"):
            verify_bundle(bundle, provider)
    assert verify_bundle(bundle, "cpu")[0][0].passed


def test_altered_rules_are_refused(bundle, tmp_path):
    copied = tmp_path / "bundle"
    subprocess.run(["cp", "-r", str(bundle), str(copied)], check=True)
    (copied / "rules.txt").write_text("a ### b\n")
    with pytest.raises(BundleError, match=r"rules\.txt"):
        Generator.load(copied)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("longest", "x"),
        ("longest", 1.5),
        ("longest", 0),
        ("longest", 2**15),  # a bundle of no size could ask for any, as targets double with each level
        ("most", 10**9),
        ("most", 2.5),
        ("bias", "x"),
        ("unit_limit", -1),
        ("copying", "no"),
        ("temperature", [1.0, 2.0]),
        ("biased", None),
    ],
)
def test_altered_settings_are_refused(bundle, tmp_path, name, value):
    copied = tmp_path / "bundle"
    subprocess.run(["cp", "-r", str(bundle), str(copied)], check=True)
    manifest = json.loads((copied / "manifest.json").read_text())
    manifest["sampling"][name] = value
    (copied / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BundleError, match="bundle"):
        Generator.load(copied)


def test_a_batch_without_bound(bundle):
    generator = Generator.load(bundle)
    assert pairs(generator, 3, batch=10**12) == pairs(generator, 3)


def fly(path):
    """A predictor that knows how to fly, and little else."""
    pairs = Dataset.from_pairs([(["fly"], ["FLY"])] * 20)
    small = ["network.hidden=8", "network.embedding=8", "network.encoder_hidden=4", "network.attention=4"]
    sizes = ["network.output=8", "optimisation.steps=80", "optimisation.learning_rate=0.02", "held_out=0.0"]
    train_predictor(pairs, "seq2seq_small", path, [*small, *sizes], quiet=True)
    return path


@pytest.mark.parametrize(("more", "answer"), [((), ""), (("--copying",), "GREET zoe")])
def test_a_grammar_copies_unknown_words_where_it_is_trained_to(tmp_path, more, answer):
    rows = (f"{verb} {name}\t{verb.upper()} {name}\n" for verb in ("greet", "call") for name in ("ann", "bob", "carl"))
    (tmp_path / "data.tsv").write_text("".join(rows))
    words = ("train", "csl", tmp_path / "data.tsv", "--seed-rules", "matches", "--uniform", *more)
    assert compgen(*words, "-o", tmp_path / "g.grammar").returncode == 0
    (tmp_path / "sources.txt").write_text("greet zoe\n")
    assert compgen("predict", "--direct", tmp_path / "g.grammar", tmp_path / "sources.txt").stdout == f"{answer}\n"


def test_commands(tmp_path):
    data, model, out = tmp_path / "data.tsv", tmp_path / "csl.grammar", tmp_path / "more.jsonl"
    data.write_text("".join(f"{source}\t{target}\n" for source, target in PAIRS))
    done = compgen("train", "csl", data, "--config", "csl_scan", "--uniform", "-o", model)
    assert done.returncode == 0 and done.stdout.strip() == str(model), done.stderr
    assert compgen("export", model, "--samples", "10", "-o", tmp_path / "csl").returncode == 0
    assert compgen("sample", tmp_path / "csl", "-n", "25", "--filter", "novel,unique", "-o", out).returncode == 0
    assert len(read_dataset(out).unique()) == 25
    again = tmp_path / "again.jsonl"
    assert compgen("sample", model, "-n", "25", "--filter", "novel,unique", "-o", again).returncode == 0
    assert again.read_text() == out.read_text()
    scores = compgen("evaluate", tmp_path / "csl", data, "--direct", "--json")
    assert json.loads(scores.stdout)["exact_match"] == 1
    (tmp_path / "asked.tsv").write_text("jump twice\tJUMP JUMP\nfly\tFLY\n")
    asked = ["evaluate", tmp_path / "csl", tmp_path / "asked.tsv", "--json"]
    both = compgen(*asked, "--direct", "--otherwise", str(fly(tmp_path / "fly.pt")))
    assert "1 answered" in both.stderr and json.loads(both.stdout)["exact_match"] == 1, both.stderr
    refused = compgen(*asked, "--otherwise", tmp_path / "fly.pt")
    assert refused.returncode == 2 and "add --direct" in refused.stderr
    (tmp_path / "one.tsv").write_text("a\tA\n")
    only = compgen("train", "csl", tmp_path / "one.tsv", "--uniform", "-o", tmp_path / "one.grammar")
    assert (
        only.returncode == 0
        and "the grammar can parse, but cannot be sampled: nothing to recombine: every rule of the grammar"
        in only.stderr
    )
    refused = compgen("train", "csl", data, "--uniform", "--set", "training.steps=3", "-o", model)
    assert refused.returncode == 2 and "leave out --set training" in refused.stderr
    refused = compgen("train", "csl", data, "-o", tmp_path / "csl.pt")
    assert refused.returncode == 2 and "ends in .grammar" in refused.stderr
    refused = compgen("train", "seq2seq", data, "-o", tmp_path / "csl.grammar")
    assert refused.returncode == 2 and "ends in .pt" in refused.stderr
    scores = compgen("evaluate", model, data, "--direct", "--json")
    assert json.loads(scores.stdout)["exact_match"] == 1
    verified = compgen("verify", tmp_path / "csl", "--json")
    rows = [
        json.loads(line) for line in verified.stdout.splitlines()
    ]  # numpy's, and the C++ runner's where it is built
    assert rows and all(row["passed"] for row in rows), verified.stderr
