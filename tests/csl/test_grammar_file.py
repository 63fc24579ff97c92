"""Grammar files: what is written comes back, and what is damaged or does not fit together is refused."""

import json
import random
from collections import Counter

import numpy as np
import pytest
from safetensors.numpy import load, save

from compgen.cli.main import app
from compgen.csl.grammar_file import FORMAT, GrammarFile, _digest
from compgen.csl.rules import Grammar
from compgen.csl.sampling import Depth, Drawing, Sampler
from compgen.csl.targets import TargetGrammar
from compgen.csl.trained import TrainedGrammar
from compgen.csl.weights import Scores
from compgen.data.examples import Dataset
from compgen.errors import CheckpointError, ExhaustedError, UserError
from compgen.runtime.manifest import LONGEST_SIDE
from compgen.trained.generator import Generator

RULES = ["walk ### WALK", "run ### RUN", "NT_1 twice ### NT_1 NT_1", "NT_1 and NT_2 ### NT_1 NT_2"]
DATA = Dataset.from_pairs([(["walk"], ["WALK"]), (["run", "twice"], ["RUN", "RUN"])])


def test_a_bias_is_kept_and_drawn_with():
    grammar = Grammar.parse(RULES)
    drawing = Drawing(depth=Depth(least=0, most=1), temperature=0.5, bias=30.0, biased=2)
    trained = TrainedGrammar(grammar, Scores.uniform(grammar), None, drawing, 1)
    again = TrainedGrammar.of(grammar.text(), "", vars(trained.scores), trained.settings)
    assert again.drawing == drawing
    for source, _ in again.sampler().sample(50).pairs():
        assert "and" in source and "twice" not in source


@pytest.fixture(scope="module")
def saved():
    grammar = Grammar.parse(RULES)
    rng = np.random.default_rng(0)
    scores = Scores(rng.normal(size=(1 + sum(rule.arity for rule in grammar.rules), 2)), rng.normal(size=(2, 4)))
    targets = TargetGrammar.parse(["ROOT => ##V", "ROOT => ##V ##ROOT", "V => WALK", "V => RUN"])
    return GrammarFile.of(
        TrainedGrammar(grammar, scores, targets, Drawing(depth=Depth(least=0, most=3), longest=20), 2),
        DATA,
        {"data": "ä"},
    )


@pytest.fixture
def path(saved, tmp_path):
    saved.save(tmp_path / "g.grammar")
    return tmp_path / "g.grammar"


def held(one):
    """All that a file holds, to the last bit."""
    scores = one.trained.scores
    arrays = [(a.dtype, a.shape, a.tobytes()) for a in (scores.slots, scores.rules, one.tokens)]
    trained = one.trained
    texts = (trained.grammar.text(), trained.target_rules, trained.settings)
    return [*arrays, *texts, one.vocabulary, one.trained_on]


def test_what_is_written_comes_back(saved, path):
    read = GrammarFile.load(path)
    assert held(read) == held(saved)
    assert read.trained.sampler().sample(20).pairs() == saved.trained.sampler().sample(20).pairs()
    assert (read.trained.max_length, read.pool.prototypes, read.tokens.shape) == (42, 0, (2, 6))


def test_long_samples_are_drawn_a_few_together(path, monkeypatch):
    """4,096 derivations of 32,767 nodes each would take some 10 GiB."""
    rewritten(path, lambda meta, _: meta["settings"].update(longest=LONGEST_SIDE))
    asked, blocks = [], Sampler.blocks
    monkeypatch.setattr(Sampler, "blocks", lambda *span: asked.append(span[-1]) or blocks(*span))
    long = [draw.tokens for draw in Generator.load(path).draw(0, 0, 200)]
    assert asked == [128] and len(long) == 200
    rewritten(path, lambda meta, _: meta["settings"].update(longest=1000))
    assert [draw.tokens for draw in Generator.load(path).draw(0, 0, 200)] == long and asked == [128, 4096]


@pytest.mark.parametrize("shape", [(0, 0), (0, 6)])
def test_a_grammar_without_its_training_examples_draws_all_the_same(path, tmp_path, shape):
    rewritten(path, lambda _, arrays: arrays.update(tokens=np.zeros(shape, dtype=np.int32)))
    assert len(Generator.load(path).examples()) == 0
    out = tmp_path / "more.jsonl"
    app(["sample", str(path), "-n", "5", "-o", str(out)], standalone_mode=False)
    assert len(out.read_text().splitlines()) == 5
    with pytest.raises(UserError, match="found no examples"):
        app(["sample", str(path), "-n", "5", "--strict", "-o", str(out)], standalone_mode=False)


def rewritten(path, change, sealed=True):
    """Write a file as somebody may who knows how."""
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    meta, arrays = json.loads(header["__metadata__"][FORMAT]), load(content)
    said = meta.pop("digest")
    change(meta, arrays)
    digest = _digest(meta, arrays) if sealed else said
    path.write_bytes(save(arrays, {FORMAT: json.dumps(meta | {"digest": digest})}))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda meta, _: meta.update(version=2), "version 2, this compgen reads 1"),
        (lambda meta, _: meta.update(version=True), "version True"),
        (lambda meta, _: meta.update(rules="a ### b"), "does not fit together"),
        (lambda meta, _: meta.update(rules=7), "does not fit together"),
        (lambda meta, _: meta["settings"].update(longest="x"), "does not fit together: settings of a grammar: longest"),
        (lambda meta, _: meta.update(vocabulary=meta["vocabulary"][:-1]), "does not fit together"),
        (lambda meta, _: meta.update(trained_on=None), "does not fit together"),
        (lambda meta, _: meta.pop("targets"), "does not fit together"),
        (lambda _, arrays: arrays.update(slots=np.zeros((1, 2))), "does not fit together"),
        (lambda _, arrays: arrays.pop("rules"), "does not fit together"),
        (lambda _, arrays: arrays.update(tokens=arrays["tokens"] + 99), "ids outside the vocabulary"),
        (lambda _, arrays: arrays.update(tokens=arrays["tokens"][:, :2].copy()), "without its end symbol"),
    ],
)
def test_files_that_do_not_fit_together(path, change, says):
    rewritten(path, change)
    with pytest.raises(CheckpointError, match=rf"g\.grammar: .*{says}") as refused:
        GrammarFile.load(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", ["slots", "rules", "tokens"])
def test_another_number_is_damage(path, name):
    rewritten(path, lambda _, arrays: arrays[name].__setitem__((0, 0), 1), sealed=False)
    with pytest.raises(CheckpointError, match="damaged: its content does not agree with its digest"):
        GrammarFile.load(path)


@pytest.mark.parametrize("content", [b"", b"a\tb\n", b"\xff" * 40, b"\x02" + bytes(7) + b"{}"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "g.grammar"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="cut short; expected a file that `cgen train csl` wrote"):
        GrammarFile.load(path)


def test_what_is_no_file(tmp_path):
    with pytest.raises(CheckpointError, match="no such file"):
        GrammarFile.load(tmp_path / "g.grammar")
    with pytest.raises(CheckpointError, match="a folder, a pipe or a device"):
        GrammarFile.load(tmp_path)


def test_damaged_files_are_refused_or_harmless(saved, path):
    content, found, rng = path.read_bytes(), Counter(), random.Random(1)
    for number in range(400):
        changed = bytearray(content)
        if number % 4 == 0:
            del changed[rng.randrange(len(content)) :]
        else:
            changed[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        try:
            found["same" if held(GrammarFile.load(path)) == held(saved) else "other"] += 1
        except CheckpointError as error:
            found["refused" if str(path) in str(error) and "\n" not in str(error) else "message"] += 1
    assert found.keys() <= {"same", "refused"} and found["refused"] > 350, found


def test_the_digest_knows_names_types_and_shapes():
    array = np.arange(6, dtype=np.int32)
    others = ({"b": array}, {"a": array.reshape(2, 3)}, {"a": array.view(np.uint32)})
    assert len({_digest({}, arrays) for arrays in ({"a": array}, *others)}) == 4


def test_where_no_derivation_ends_that_is_told_before_the_first_draw(tmp_path):
    scores = {"slots": np.zeros((2, 1)), "rules": np.zeros((1, 1))}
    settings = {"temperature": [1.0, 1.0], "least": 0, "most": 1, "longest": 9, "bias": 0.0, "biased": 1}
    trained = TrainedGrammar.of("NT_1 b ### NT_1 B", "", scores, settings | {"unit_limit": 1, "copying": False})
    GrammarFile.of(trained, DATA, {}).save(tmp_path / "g.grammar")
    generator = Generator.load(tmp_path / "g.grammar")
    with pytest.raises(ExhaustedError, match="the grammar has no derivation"):
        generator.stream(1)  # a run calls it before it drops the samples of an interrupted one
