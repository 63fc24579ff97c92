"""The C++ runner asks a second model for what a generator has no answer to, as `cgen predict --otherwise` does."""

import json
import subprocess

import numpy as np
import pytest

from compgen.api import export_bundle
from compgen.data.vocabulary import SPARES, Vocabulary
from compgen.export.assemble import assemble
from compgen.export.grammar import assemble as assemble_grammar
from compgen.sampling import native
from compgen.trained.recurrent import ARCHITECTURE
from tests.cli.shell import compgen, said
from tests.export.test_transformer import saved
from tests.export.tiny import exported, make
from tests.sampling.grammars import TOKENS, grammar_file
from tests.sampling.test_native_direct import made

pytestmark = pytest.mark.usefixtures("built")

MANY = [f"new{number}" for number in range(12)]


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    """Generators, and predictors, by name."""
    folder = tmp_path_factory.mktemp("otherwise")
    export_bundle(saved(folder / "t.pt", 39, spread=1.0, size=16), folder / "transformer", batches={7: 20}, quiet=True)
    copying = make("predictor", Vocabulary.of([list("abcdefg")], spares=True))
    ARCHITECTURE.prepare(copying.network, copying.vocabulary)
    for name, checkpoint in (("network", made()), ("copying", copying)):
        (folder / name).mkdir()
        assemble(checkpoint, folder / name, script=False)
    (folder / "grammar").mkdir()
    assemble_grammar(grammar_file(1), folder / "grammar")
    found = {name: folder / name for name in ("transformer", "network", "copying", "grammar")}
    return found | {"recurrent": exported("predictor", initial="encoder")}


def lines(first):
    """Sources of which the first model answers some."""
    tokens = [*(TOKENS if first == "grammar" else "abcd"), "V"]
    rng = np.random.default_rng(2)
    some = [" ".join(rng.choice([*tokens, *rng.choice(MANY, 2)], rng.integers(1, 7))) for _ in range(30)]
    return "".join(f"{line}\n" for line in ["a b", "", *some, " ".join(MANY), "new1 a new1 new0"])


def run(*words):
    command = [native.runner(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, env=native.environment(), check=False)


def both(folder, first, second, suffix="jsonl", more=()):
    """What both programs say, and the lines that they write, of `in.txt` in a folder."""
    data, common = folder / "in.txt", ("--direct", "--otherwise", second)
    ours = run(first, "--input", data, *common, "-o", folder / f"ours.{suffix}", *more)
    theirs = compgen("predict", first, data, *common, "-o", folder / f"theirs.{suffix}")
    assert ours.returncode == theirs.returncode == 0, (ours.stderr, theirs.stderr)
    notes = [line for line in theirs.stderr.splitlines() if " so far" in line or line.endswith(" answered")]
    written = [(folder / f"{by}.{suffix}").read_text().splitlines() for by in ("ours", "theirs")]
    return (ours.stderr.splitlines(), written[0]), (notes, written[1])


@pytest.mark.parametrize("second", [pytest.param("recurrent", marks=pytest.mark.long), "copying", "transformer"])
@pytest.mark.parametrize("first", ["network", "grammar"])
def test_lines_are_those_of_predict(tmp_path, bundles, first, second):
    (tmp_path / "in.txt").write_text(lines(first))
    for more in ((), ("--step", "graph", "--batch", "3", "--workers", "2")):
        (ours, found), (theirs, expected) = both(tmp_path, bundles[first], bundles[second], more=more)
        assert ours == theirs and len(ours) == 2
        rows, wanted = ([json.loads(line) for line in written] for written in (found, expected))
        scores = [[row.pop("log_prob", 1.0) for row in some] for some in (rows, wanted)]
        assert scores[0] == pytest.approx(scores[1], abs=2e-4) and 2 < scores[0].count(1.0) < len(rows) - 9
        assert [list(row) for row in rows] == [list(row) for row in wanted] and rows == wanted
        assert second != "copying" or any({*row["target"]} & {*MANY} for row in rows)
    _, (_, expected) = answers = both(tmp_path, bundles[first], bundles[second], "tsv")
    assert answers[0] == answers[1] and expected[1] == ""


@pytest.mark.parametrize(
    ("content", "remarks"),
    [
        ("a b\n", 0),  # the second is not asked
        ("\n\n", 0),
        ("", 0),
        ("a x\n", 1),
        ("x y\n", 1),  # most of them
        ("a a a b c d e f x y\nf g x\n", 1),
        (" ".join(["a", *MANY[:6]]) + "\n", 1),
        (" ".join(["a b c d e f g", *MANY[:5]]) + "\n", 1),
    ],
)
def test_remarks_are_those_of_predict(tmp_path, bundles, content, remarks):
    (tmp_path / "in.txt").write_text(content)
    ours, theirs = both(tmp_path, bundles["network"], bundles["copying"], "tsv")
    assert ours == theirs and len(ours[0]) == 1 + remarks


@pytest.mark.parametrize("alone", [False, True])
def test_a_token_that_is_lent_is_refused_in_the_same_words(tmp_path, bundles, alone):
    (tmp_path / "in.txt").write_text(f"a b\na {'' if alone else 'x '}{SPARES[2]}\n")
    first, *more = (
        [bundles["copying"]] if alone else [bundles["network"], "--direct", "--otherwise", bundles["copying"]]
    )
    code, text = said("predict", first, tmp_path / "in.txt", *more)
    done = run(first, "--input", tmp_path / "in.txt", *more)
    assert code == done.returncode == 2 and "'<unk3>' is a special symbol and cannot stand in data" in done.stderr
    assert done.stderr.splitlines()[-1].removeprefix("error: ") in text


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("generator", ("--direct",)),
        ("none.pt", ("--direct",)),
        ("none", ("--direct",)),
        ("empty", ("--direct",)),
        ("recurrent", ()),
    ],
)
def test_mistakes_are_told_in_the_same_words(tmp_path, bundles, name, words):
    (tmp_path / "empty").mkdir()
    (tmp_path / "in.txt").write_text("a b\n")
    second = {"generator": bundles["network"], "recurrent": bundles["recurrent"]}.get(name, tmp_path / name)
    first = bundles["recurrent" if not words else "network"]
    code, text = said("predict", first, tmp_path / "in.txt", "--otherwise", second, *words)
    done = run(first, "--input", tmp_path / "in.txt", "--otherwise", second, *words)
    assert code == done.returncode == 2 and not done.stdout and done.stderr.count("\n") == 1
    assert done.stderr.removeprefix("error: ").strip() in " ".join(text.replace("│", " ").split())


def test_a_model_that_is_not_exported_is_told_as_by_sample(tmp_path, bundles):
    for name in ("m.pt", "m.grammar"):
        (tmp_path / name).touch()
        done = run(bundles["network"], "--input", "-", "--direct", "--otherwise", tmp_path / name)
        code, text = said("sample", tmp_path / name, "-n", 1, "--runtime", "native")
        assert code == done.returncode == 2 and done.stderr.removeprefix("error: ") == text.removeprefix("error: ")


def test_raw_answers_are_of_one_model(bundles):
    words = ("--input", "-", "--direct", "--otherwise", bundles["recurrent"], "--raw")
    done = run(bundles["network"], *words)
    assert done.returncode == 2 and done.stderr == "error: --direct has no use for --raw\n"
