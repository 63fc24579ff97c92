"""`Generator.load(..., "native")` answers by the C++ runner as Python does: by direct inference, and by best parses."""

import os
import pickle
import shutil

import numpy as np
import pytest

from compgen.api import Generator
from compgen.cli.answering import second_model
from compgen.csl.grammar_file import GrammarFile
from compgen.csl.trained import TrainedGrammar
from compgen.data.vocabulary import Vocabulary
from compgen.errors import UserError
from compgen.export.assemble import assemble
from compgen.export.grammar import assemble as assemble_grammar
from compgen.trained.native_predictor import NativePredictor
from compgen.trained.predictor import StepwisePredictor
from tests.cli.shell import compgen
from tests.export.tiny import exported, make
from tests.sampling.grammars import DATA, TOKENS, exported_grammar, grammar_file
from tests.sampling.test_native_direct import asked, made
from tests.sampling.test_native_grammar import sources

pytestmark = pytest.mark.usefixtures("built")

UNWRITTEN = ["", "new york", "\x07", "\ud800", "<pad>", "\ufeffa", "word0"]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    return assemble(made(), tmp_path_factory.mktemp("network"), script=False).path


@pytest.mark.parametrize("kind", ["two", "one"])
def test_networks_answer_as_in_onnx_runtime(tmp_path, network, kind):
    folder = network
    if kind == "one":
        folder = assemble(made(memories=1, initial="encoder"), tmp_path, script=False).path
    some = [[], *asked(), *(["a", token] for token in UNWRITTEN)]
    expected = Generator.load(folder, provider="cpu").answer(some)
    done = []
    assert Generator.load(folder, "native", threads=2).answer(some, watch=done.append) == expected
    assert expected[0] == Generator.load(folder, provider="cpu").answer([[]])[0] == []
    assert done == [len(some)] and len({*map(tuple, expected)}) > 15 and [] in expected


def test_tokens_of_networks_may_have_spaces(tmp_path):
    vocabulary = Vocabulary.of([["a", "b b", "c", "d\n", "", "f", "g"]])
    assemble(make(vocabulary=vocabulary), tmp_path, script=False)
    some = [["a", "b b"], ["d\n"], ["", "", "c", "b b"], ["b"], ["g"]]
    expected = Generator.load(tmp_path, provider="cpu").answer(some)
    assert Generator.load(tmp_path, "native").answer(some) == expected
    assert any(len(token.split()) != 1 for answer in expected for token in answer)


@pytest.mark.parametrize("named", [False, True])
def test_grammars_answer_as_in_python(tmp_path, named):
    assemble_grammar(grammar_file(3, named), tmp_path)
    some = [line.split() for line in sources(3, [*TOKENS, "NT_1", *UNWRITTEN])]
    expected = Generator.load(tmp_path).answer(some)
    assert Generator.load(tmp_path, "native", threads=2).answer(some) == expected
    assert any(expected) or named


@pytest.mark.parametrize("targets", ["", "ROOT => river ( ##S )\nS => ohio\nS => word1\nS => ##"])
def test_grammars_copy_what_no_line_can_hold(tmp_path, targets):
    rules = ["ohio ### ohio", "rivers in NT_1 ### river ( NT_1 )"]
    scores = {"slots": np.zeros((2, 1)), "rules": np.zeros((1, 2))}
    settings = {"temperature": [1.0, 1.0], "least": 0, "most": 5, "longest": 99, "bias": 0.0, "biased": 1}
    settings |= {"unit_limit": 1, "copying": True}
    trained = TrainedGrammar.of("\n".join(rules), targets, scores, settings)
    assemble_grammar(GrammarFile.of(trained, DATA, {}), tmp_path)
    some = [["rivers", "in", token] for token in (*UNWRITTEN, "ohio", "word1", "utah")]
    some += [["\ufeffrivers", "in", "ohio"], [], ["rivers"]]
    expected = Generator.load(tmp_path).answer(some)
    assert Generator.load(tmp_path, "native").answer(some) == expected
    assert [["river", "(", token, ")"] for token in UNWRITTEN] == expected[: len(UNWRITTEN)]
    assert Generator.load(tmp_path, "native").answer([]) == []
    assert Generator.load(tmp_path, "native").answer([[], []]) == [[], []]


def test_the_commands_take_it(tmp_path, network):
    (tmp_path / "in.txt").write_text("a b c\n\na x\nd c\n")
    (tmp_path / "pairs.tsv").write_text("a b\tc\nd x\ta a\n")
    second = exported("predictor", initial="encoder")
    for bundle, usual in ((network, "onnx"), (exported_grammar(tmp_path), None)):
        for command, data, more in (
            ("predict", "in.txt", ("--otherwise", second)),
            ("evaluate", "pairs.tsv", ("--json", "--otherwise", second)),
        ):
            words = (command, bundle, tmp_path / data, "--direct", *more)
            theirs = compgen(*words, *(("--runtime", usual) if usual else ()))
            ours = compgen(*words, "--runtime", "native")
            assert (ours.returncode, ours.stdout) == (theirs.returncode, theirs.stdout) == (0, ours.stdout)
            assert ours.stderr == theirs.stderr and " answered" in ours.stderr


def test_the_second_model_is_in_the_runner_if_it_can_be(tmp_path):
    make("predictor").save(tmp_path / "p.pt")
    bundle = exported("predictor", initial="encoder")
    assert isinstance(second_model(str(bundle), "native"), NativePredictor)
    for path, runtime in ((bundle, None), (tmp_path / "p.pt", "native")):
        found = second_model(str(path), runtime)
        assert isinstance(found, StepwisePredictor) and not isinstance(found, NativePredictor)
    assert second_model(None, "native") is None


def test_a_copy_opens_the_bundle_again(network):
    loaded = Generator.load(network, "native")
    assert pickle.loads(pickle.dumps(loaded)).answer([["a", "b"]]) == loaded.answer([["a", "b"]])
    assert len(pickle.dumps(loaded.model)) < 2000


def test_it_answers_by_the_bundle_that_was_opened(tmp_path, network, monkeypatch):
    """Wherever the process goes, and whatever is put there in its place."""
    folder = tmp_path / os.fsdecode(b"nu\xff")
    shutil.copytree(network, folder)
    monkeypatch.chdir(tmp_path)
    opened = Generator.load(folder.name, "native")
    monkeypatch.chdir("/")
    assert opened.answer([["a", "b"]]) == Generator.load(network, provider="cpu").answer([["a", "b"]])
    program = tmp_path / "runner"
    program.write_text("#!/bin/sh\nprintf 'nu\\377: why' >&2\nexit 2\n")
    program.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setenv("COMPGEN_RUNNER", str(program))
        with pytest.raises(UserError, match=r"^the C\+\+ runner failed: nu\udcff: why$"):
            opened.answer([["a", "b"]])
    shutil.rmtree(folder)
    shutil.copytree(exported("predictor", initial="encoder"), folder)
    with pytest.raises(UserError, match=f"^{folder}: found another bundle than was opened there: open it again$"):
        opened.answer([["a", "b"]])


def test_what_the_runner_cannot_do_is_refused(tmp_path, network, monkeypatch):
    loaded, message = Generator.load(network, "native"), "in the runtime native a generator answers, and draws by"
    for draw in (loaded.draw, lambda: loaded.sample(3), lambda: list(loaded.stream(3))):
        with pytest.raises(UserError, match=f"^{network}: {message} `cgen sample` alone"):
            draw()
    with pytest.raises(UserError, match="engine ray needs a bundle that ONNX Runtime runs"):
        loaded.sample(3, engine="ray")
    with pytest.raises(UserError, match=r"found each = 3: the C\+\+ runner answers by 5 prototypes"):
        loaded.answer([["a"]], each=3)
    three = Generator.load(assemble(make(memories=3, feed=False), tmp_path, script=False).path, "native")
    with pytest.raises(UserError, match="direct inference is for one prototype or two: found a generator with 3"):
        three.answer([["unknown"]])
    grammar_file(1).save(tmp_path / "m.grammar")
    with pytest.raises(UserError, match="export it first for --runtime native"):
        Generator.load(tmp_path / "m.grammar", "native")
    with pytest.raises(UserError, match=r"the C\+\+ runner runs on the CPU"):
        Generator.load(network, "native", provider="cuda")
    monkeypatch.setenv("COMPGEN_RUNNER", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"no C\+\+ runner at COMPGEN_RUNNER="):
        Generator.load(network, "native")
