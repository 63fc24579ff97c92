"""The C++ runner draws from grammars what Python draws, and refuses what Python refuses."""

import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from compgen.csl.grammar_file import GrammarFile
from compgen.csl.rules import Grammar
from compgen.csl.trained import TrainedGrammar
from compgen.errors import BundleError, ExhaustedError, UserError
from compgen.export.grammar import assemble
from compgen.runtime.bundle import Bundle
from compgen.sampling import native
from compgen.trained.architectures import Request, Runtime
from compgen.trained.grammar import ARCHITECTURE
from tests.runtime.altered import edit, sign
from tests.sampling.grammars import DATA, TOKENS, exported_grammar, grammar_file
from tests.sampling.test_native import compgen

pytestmark = pytest.mark.usefixtures("built")


def both(bundle, count, start=0, seed=0, heat=1.0, **options):
    """The draws of Python and of the runner; what they say instead where no derivation ends."""
    try:
        request = Request(seed, start, start + count, (heat, heat), batch=7)
        ours = [
            (draw.index, draw.tokens, draw.log_prob)
            for draw in ARCHITECTURE.open_bundle(bundle, Runtime()).draws(request)
        ]
    except ExhaustedError as error:
        with pytest.raises(UserError, match=re.escape(f"the C++ runner failed: error: {error}") + "$"):
            native.raw(bundle, seed, start, start + count, (heat, heat), options)
        return None, None
    found = native.raw(bundle, seed, start, start + count, (heat, heat), options)
    return ours, [(draw.index, draw.tokens, draw.log_prob) for draw in found]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("number", range(25))
def test_samples_are_those_of_python(tmp_path, number, named):
    bundle = assemble(grammar_file(number, named), tmp_path)
    for heat, start in ((1.0, 0), (0.3, 2**40 + number), (50.0, 2**33 - 5)):
        ours, theirs = both(bundle, 60, start, number * 2**55, heat, **{"--batch": 9, "--workers": 3})
        if ours is None:
            continue
        assert [draw[:2] for draw in theirs] == [draw[:2] for draw in ours]
        assert [draw[2] for draw in theirs] == pytest.approx([draw[2] for draw in ours], rel=1e-12, abs=1e-12)


def test_a_sample_that_cannot_be_drawn_ends_the_stream_there(tmp_path):
    """Of one sample in four all attempts fail; those before the first such sample come, whatever the threads."""
    scores = {"slots": np.zeros((2, 1)), "rules": np.log([[699.0, 1.0]])}
    settings = {"temperature": [1.0, 1.0], "least": 0, "most": 1, "longest": 1, "bias": 0.0, "biased": 1}
    text = "NT_1 b ### NT_1 B\na ### A"  # in the order in which rules are sorted
    trained = TrainedGrammar.of(text, "", scores, settings | {"unit_limit": 1, "copying": False})
    bundle = assemble(GrammarFile.of(trained, DATA, {}), tmp_path)
    assert both(bundle, 200) == (None, None)  # the same message, of the same sample
    words = [native.runner(), tmp_path, "--raw", "--draws", "200", "--workers", "3", "--batch", "2"]
    done = subprocess.run(words, capture_output=True, text=True, env=native.environment(), check=False)
    count = len(done.stdout.splitlines())
    assert done.returncode == 2 and f"sample {count}: none of 1,000 attempts" in done.stderr and 0 < count < 100
    ours, theirs = both(bundle, count)
    assert [draw[:2] for draw in theirs] == [draw[:2] for draw in ours] and len(ours) == count
    said = []
    for out, more in (("ours.jsonl", ()), ("theirs.jsonl", ("--runtime", "native"))):
        done = compgen("sample", tmp_path, "-n", 200, "-o", tmp_path / out, *more)
        assert done.returncode == 0
        said.append(done.stderr.splitlines()[-1].replace(out, "OUT"))
    assert said[0] == said[1] and said[0].startswith("warning: sample ") and f"; {count} samples are in" in said[0]
    done = compgen("sample", tmp_path, "-n", 200, "-o", tmp_path / "strict.jsonl", "--strict")
    assert done.returncode == 2 and not (tmp_path / "strict.jsonl").exists()
    assert (tmp_path / "theirs.jsonl").read_text() == (tmp_path / "ours.jsonl").read_text()


@pytest.mark.parametrize(
    ("text", "slots", "least", "message"),
    [
        ("a ### A\nb ### B", 1, 1, "nothing to recombine: every rule of the grammar is a whole example"),
        ("NT_1 b ### NT_1 B", 2, 0, r"which can end one: 0 of 1\): give more examples"),
        ("NT_1 b ### NT_1 B", 2, 1, r"0 of 1\): lower drawing.depth.least, or give more examples"),
    ],
)
def test_a_grammar_that_derives_nothing_is_said_alike(tmp_path, text, slots, least, message):
    scores = {"slots": np.zeros((slots, 1)), "rules": np.zeros((1, text.count("###")))}
    settings = {"temperature": [1.0, 1.0], "least": least, "most": 3, "longest": 9, "bias": 0.0, "biased": 1}
    trained = TrainedGrammar.of(text, "", scores, settings | {"unit_limit": 1, "copying": False})
    bundle = assemble(GrammarFile.of(trained, DATA, {}), tmp_path)
    with pytest.raises(ExhaustedError, match=message):
        list(ARCHITECTURE.open_bundle(bundle, Runtime()).draws(Request(0, 0, 1)))
    assert both(bundle, 1) == (None, None)  # the same message


def test_weights_too_small_for_products_count(tmp_path):
    """At a low temperature most rules weigh less than a float can say, and the depth may leave no others."""
    saved = grammar_file(5, least=2, most=2, temperature=[0.001, 0.001])
    ours, theirs = both(assemble(saved, tmp_path), 50, 0, 1, 0.001)
    assert [draw[:2] for draw in theirs] == [draw[:2] for draw in ours]
    assert [draw[2] for draw in theirs] == pytest.approx([draw[2] for draw in ours], rel=1e-12)
    assert min(draw[2] for draw in ours) < -800


def answered(bundle, lines, *words):
    """What the runner answers to lines of sources: the objects that it writes."""
    command = [native.runner(), bundle, "--direct", "--input", "-", *words]
    text = "".join(f"{line}\n" for line in lines)
    environment = native.environment()
    done = subprocess.run(command, input=text, capture_output=True, text=True, env=environment, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def sources(seed, tokens):
    """Lines of up to six tokens, among them words that only targets have, and unknown ones."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice([*tokens, "A", "(", "new", "###"], rng.integers(1, 7))) for _ in range(40)]


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("number", range(10))
def test_direct_answers_are_those_of_python(tmp_path, number, named):
    bundle = assemble(grammar_file(number, named, copying=number % 2 == 1, unit_limit=number % 3), tmp_path)
    model = ARCHITECTURE.open_bundle(bundle, Runtime())
    lines = [*sources(number, TOKENS), "a b a b a b"]
    ours = model.answers([line.split() for line in lines])
    assert any(ours) or named  # few of these are well formed
    assert [one["target"] for one in answered(tmp_path, lines, "--workers", "3")] == ours


def answers_of(folder, rules, lines, targets="", **settings):
    """What both programs answer by rules that are all alike."""
    count, number = Grammar.parse(rules).shape
    scores = {"slots": np.zeros((count, 1)), "rules": np.zeros((1, number))}
    given = {"temperature": [1.0, 1.0], "least": 0, "most": 5, "longest": 99, "bias": 0.0, "biased": 1}
    trained = TrainedGrammar.of(
        "\n".join(rules), targets, scores, given | {"unit_limit": 1, "copying": False} | settings
    )
    model = ARCHITECTURE.open_bundle(assemble(GrammarFile.of(trained, DATA, {}), folder), Runtime())
    ours = model.answers([line.split() for line in lines])
    assert [one["target"] for one in answered(folder, lines)] == ours
    return [" ".join(answer) for answer in ours]


def test_what_doubles_with_each_word_has_an_end_in_both(tmp_path):
    lines = ["jump" + times * " twice" for times in (1, 14, 15, 34)]
    found = answers_of(tmp_path, ["jump ### J", "NT_1 twice ### NT_1 NT_1"], lines)
    assert [len(target.split()) for target in found] == [2, 2**14, 0, 0]


def test_a_target_that_can_be_checked_in_too_many_ways_is_none_in_both(tmp_path):
    lines = ["jump" + times * " twice" for times in (1, 5, 14)]
    rules, targets = ["jump ### J", "NT_1 twice ### NT_1 NT_1"], "ROOT => ##E\nE => ##E ##E\nE => J\n"
    found = answers_of(tmp_path, rules, lines, targets)
    assert [len(target.split()) for target in found] == [2, 32, 0]


def test_a_source_that_is_too_long_to_be_kept_in_parts_has_no_answer_in_both(tmp_path):
    tokens = [f"x{number}" for number in range(5814)]  # with one less, two million steps are enough
    rules = [" ".join(tokens[:count]) + f" ### {count}" for count in (5813, 5814)]
    assert answers_of(tmp_path, rules, [rule.partition(" ###")[0] for rule in rules]) == ["5813", ""]


def test_copies_are_checked_by_target_grammars_alike(tmp_path):
    rules = ["ohio ### ohio", "rivers in NT_1 ### river ( NT_1 )", "ran ### run"]
    targets = "ROOT => river ( ##S )\nS => ohio\nS => texas\nS => ##"
    lines = [f"rivers in {name}" for name in ("ohio", "texas", "utah", "run", "river", "(", "NT_1")]
    found = answers_of(tmp_path, rules, lines, targets, copying=True)
    assert found == [*(f"river ( {name} )" for name in ("ohio", "texas", "utah", "run")), "", "", *found[6:]]
    assert found[6:] == ["river ( NT_1 )"]


def test_direct_answers_are_written_as_python_writes_them(tmp_path, exported):
    (tmp_path / "in.tsv").write_text("a\tleft out\n\nnobody\n")
    words = [native.runner(), exported, "--direct", "--input", tmp_path / "in.tsv"]
    for suffix in ("tsv", "jsonl"):
        done = compgen("predict", exported, tmp_path / "in.tsv", "--direct", "-o", tmp_path / f"ours.{suffix}")
        assert done.returncode == 0, done.stderr
        command = [*words, "-o", tmp_path / f"theirs.{suffix}"]
        done = subprocess.run(command, capture_output=True, text=True, env=native.environment(), check=True)
        assert done.stderr == f"{exported}: 1 answered\n"
        assert (tmp_path / f"theirs.{suffix}").read_text() == (tmp_path / f"ours.{suffix}").read_text() != ""


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    return exported_grammar(tmp_path_factory.mktemp("grammar"))


@pytest.mark.parametrize(
    "words",
    [
        ("--draws", 500),
        ("-n", 20, "--filter", "novel,unique", "--novelty", "source", "--start", 2**40, "--temperature", "0.7"),
        ("--draws", 900, "--filter", "novel", "--vote", "--margin", 1, "--best", 9, "--batch", 7),
    ],
)
def test_files_are_those_of_python(tmp_path, exported, words):
    for runtime in ("python", "native"):
        more = ("--runtime", "native") if runtime == "native" else ()
        done = compgen("sample", exported, "-o", tmp_path / f"{runtime}.jsonl", *words, *more)
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "native.jsonl").read_text() == (tmp_path / "python.jsonl").read_text() != ""
    ours, theirs = (json.loads((tmp_path / f"{name}.jsonl.run.json").read_text()) for name in ("native", "python"))
    for differing in ("seconds", "model", "quality"):
        ours.pop(differing, None), theirs.pop(differing)
    assert ours == theirs


def test_a_vote_takes_the_first_of_several_derivations_in_both(tmp_path):
    text = "NT_1 c NT_2 ### NT_1 NT_2\na ### A\nb ### B"  # a c b c a is derived in two ways
    rng = np.random.default_rng(0)
    scores = {"slots": rng.normal(size=(3, 2)), "rules": rng.normal(size=(2, 3))}
    settings = {"temperature": [1.0, 1.0], "least": 0, "most": 4, "longest": 40, "bias": 0.0, "biased": 1}
    settings |= {"unit_limit": 1, "copying": False}
    assemble(GrammarFile.of(TrainedGrammar.of(text, "", scores, settings), DATA, {"data": "made up"}), tmp_path)
    words = ("sample", tmp_path, "--draws", 600, "--vote")
    ours, theirs = (compgen(*words, *more).stdout.splitlines() for more in ((), ("--runtime", "native")))
    assert sorted(ours) == sorted(theirs) and ours  # rounding decides between sources that are as probable


def test_golden_draws_are_made_again(exported):
    done = compgen("verify", exported, "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(row["runtime"], row["passed"]) for row in rows] == [("numpy", True), ("C++", True)]
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--temperature", "1,0.5"), "a grammar has one temperature, found 1 and 0.5"),
        (("--temperature", "0"), "a grammar draws at a temperature above 0, found 0"),
        (("--step", "graph"), "a grammar has no use for --step"),
        (("--direct", "--input", "-"), "--direct has no use for --draws"),
    ],
)
def test_what_a_grammar_has_not(exported, words, message):
    command = [native.runner(), exported, "--draws", "3", *words]
    done = subprocess.run(command, capture_output=True, text=True, env=native.environment(), check=False)
    assert done.returncode == 2 and done.stderr == f"error: {message}\n"


def test_improbable_samples_are_written_alike(tmp_path, exported):
    folder = tmp_path / "bundle"
    shutil.copytree(exported, folder)
    for bias in (-1e300, 1e17):
        edit(folder, lambda content: content["sampling"].update(bias=bias))  # noqa: B023
        words = ["sample", folder, "--draws", 5]
        said = [compgen(*words, *more).stdout for more in ((), ("--runtime", "native"))]
        assert said[0] == said[1] and "e+" in said[0]


def scores(change):
    def apply(folder):
        tables = load_file(folder / "scores.safetensors")
        change(tables)
        save_file(tables, folder / "scores.safetensors")
        sign(folder, "scores.safetensors")

    return apply


def sampling(**changes):
    return lambda folder: edit(folder, lambda content: content["sampling"].update(changes))


def text(name, content):
    return lambda folder: sign(folder, name, content)


REFUSED = {
    "no rules": text("rules.txt", b"\n \n"),
    "other rules": text("rules.txt", b"a ### A\n"),
    "no separator": text("rules.txt", b"a ### A\nb B\n"),
    "an empty side": text("rules.txt", b"a ###\n"),
    "another nonterminal": text("rules.txt", b"NT_1 ### NT_2\n"),
    "a nonterminal twice": text("rules.txt", b"NT_1 NT_1 ### NT_1\n"),
    "the nonterminal 100": text("rules.txt", b"NT_100 ### a\n"),
    "rules that are no UTF-8": text("rules.txt", b"a ### \xff\n"),
    "rules with half a surrogate pair": text("rules.txt", b"a ### \xed\xa0\x80\n"),
    "a special symbol": lambda folder: sign(
        folder, "rules.txt", re.sub(rb" ### (?=[A-Z]\b)\S+", b" ### </s>", (folder / "rules.txt").read_bytes(), count=1)
    ),
    "targets that are no UTF-8": text("targets.cfg", b"ROOT => \xc0\x80\n"),
    "targets without ROOT": text("targets.cfg", b"A => a\n"),
    "targets without an arrow": text("targets.cfg", b"ROOT -> a\n"),
    "targets without a rule": text("targets.cfg", b"ROOT => ##A\n"),
    "targets without end": text("targets.cfg", b"ROOT => a ##ROOT\n"),
    "targets in a circle": text("targets.cfg", b"ROOT => ##A\nA => ##B\nB => ##A\nB => b\n"),
    "any among others": text("targets.cfg", b"ROOT => a ##\n"),
    "a hundred nonterminals": text("targets.cfg", b"ROOT => a\nROOT => " + b"##ROOT " * 100),
    "no table of slots": scores(lambda tables: tables.pop("slots")),
    "a table more": scores(lambda tables: tables.update(more=tables["slots"])),
    "tables of other sizes": scores(lambda tables: tables.update(rules=tables["rules"][:, 1:].copy())),
    "tables in float32": scores(lambda tables: tables.update(slots=tables["slots"].astype(np.float32))),
    "tables without states": scores(
        lambda tables: tables.update(slots=tables["slots"][:, :0].copy(), rules=tables["rules"][:0].copy())
    ),
    "tables of rank 1": scores(lambda tables: tables.update(slots=tables["slots"].ravel())),
    "scores that are no numbers": scores(lambda tables: tables["slots"].fill(np.nan)),
    "infinite scores": scores(lambda tables: tables["rules"].fill(np.inf)),
    "tables of rank 0": scores(lambda tables: tables.update(rules=np.array(1.0))),
    "no tables": text("scores.safetensors", b"\0" * 40),
    "an unknown token": lambda folder: sign(
        folder,
        "vocabulary.json",
        json.dumps(["<pad>", "<s>", "</s>", "\u2192", "<unk>", *"abcABCDEFGHIJKLM("]).encode(),
    ),
    "two temperatures": sampling(temperature=[1.0, 2.0]),
    "temperature 0": sampling(temperature=[0.0, 0.0]),
    "a depth of -1": sampling(least=-1),
    "least above most": sampling(least=9, most=8),
    "a depth beyond all": sampling(most=1001),
    "no length": sampling(longest=0),
    "a length beyond all": sampling(longest=2**60),
    "a length beyond a sample": sampling(longest=2**15),
    "a length as text": sampling(longest="9"),
    "a bias as text": sampling(bias="9"),
    "too many units": sampling(unit_limit=11),
    "copying as a number": sampling(copying=1),
    "a setting more": sampling(surprise=1),
    "memories": lambda folder: edit(folder, lambda content: content.update(prototypes=2)),
    "a predictor": lambda folder: edit(folder, lambda content: content.update(kind="predictor")),
    "a shape": lambda folder: edit(
        folder, lambda content: content.update(shape={"hidden": 1, "output": 1, "dtype": "float32"})
    ),
    "a graph": lambda folder: sign(folder, "step.onnx", b""),
    "no rules at all": lambda folder: edit(folder, lambda content: content["files"].pop("rules.txt")),
}
OTHER_WORDS = {  # those of libraries, which say what is wrong with text and with a file of arrays
    "rules that are no UTF-8",
    "rules with half a surrogate pair",
    "targets that are no UTF-8",
    "no tables",
}
ACCEPTED = {
    "as it is": lambda _: None,
    "whole numbers": sampling(temperature=[1, 1], bias=0),
    "no targets": text("targets.cfg", b""),
    "weights of a step": text("step.safetensors", b""),
    "ends of lines beyond ASCII": lambda folder: sign(
        folder,
        "rules.txt",
        (folder / "rules.txt").read_text("utf-8").replace("\n", "\u2028").replace(" ### ", "\u3000###\u00a0").encode(),
    ),
}


@pytest.fixture
def folder(tmp_path, exported):
    for file in exported.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    return tmp_path


def drawn(folder):
    bundle = Bundle.load(folder)
    return [draw.tokens for draw in ARCHITECTURE.open_bundle(bundle, Runtime()).draws(Request(0, 0, 20))]


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_refused_by_both(folder, name):
    REFUSED[name](folder)
    with pytest.raises(BundleError) as said:
        drawn(folder)
    assert str(folder) in str(said.value)
    words = [native.runner(), folder, "--draws", "20"]
    done = subprocess.run(words, capture_output=True, text=True, env=native.environment(), check=False)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and str(folder) in done.stderr, done.stderr
    if name not in OTHER_WORDS:
        assert done.stderr == f"error: {said.value}\n"


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        (
            lambda tables: tables["rules"].fill(1e308),
            {"bias": 1e308, "biased": 0},
            r"drawing\.bias 1e\+308: found scores that it makes infinite, expected one nearer to 0",
        ),
        (
            lambda tables: tables.update(
                slots=np.zeros((len(tables["slots"]), 2**18)), rules=np.zeros((2**18, tables["rules"].shape[1]))
            ),
            {},
            r"found 262,144 latent states and \d+ names of targets, expected a product below 2\^20",
        ),
        (
            lambda tables: tables["rules"].fill(-1e308),
            {"temperature": [0.001, 0.001]},
            r"temperature 0\.001: found scores that it makes infinite, expected a higher one",
        ),
    ],
)
def test_what_cannot_be_drawn_from_is_said_alike(folder, change, settings, message):
    scores(change)(folder)
    sampling(**settings)(folder)
    with pytest.raises(UserError, match=message) as said:
        drawn(folder)
    words = [native.runner(), folder, "--draws", "20"]
    done = subprocess.run(words, capture_output=True, text=True, env=native.environment(), check=False)
    assert (done.returncode, done.stderr) == (2, f"error: {said.value}\n")


@pytest.mark.parametrize("name", ACCEPTED)
def test_what_is_accepted_is_accepted_by_both(folder, name):
    ACCEPTED[name](folder)
    found = native.raw(Bundle.load(folder), 0, 0, 20, (1.0, 1.0), {})
    assert [draw.tokens for draw in found] == drawn(folder)
