"""Probabilities of rules, against all derivations of small grammars written out, and on published data."""

import itertools
import warnings
from collections import defaultdict

import numpy as np
import pytest
import torch

from compgen.csl.augmenter import Csl
from compgen.csl.forests import forests
from compgen.csl.induction import Options, induce
from compgen.csl.model import Inside, learn
from compgen.csl.options import Training
from compgen.csl.parsing import ViterbiParser
from compgen.csl.rules import Grammar, Rule, nonterminals
from compgen.csl.sampling import slots
from compgen.csl.seeds import exact_matches
from compgen.csl.targets import TargetGrammar
from compgen.csl.weights import Scores
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.errors import DataError, UserError
from tests.csl.data import GEOQUERY_TARGETS, geoquery, published, published_scan

AMBIGUOUS = """\
NT_1 and NT_2 ### NT_1 NT_2
NT_1 twice ### NT_1 NT_1
walk ### W
walk and walk ### W W
run ### R
walk ### R
"""
UNITS = AMBIGUOUS + "NT_1 ### NT_1\nNT_1 ### x NT_1\n"


def derivations(grammar: Grammar, log_probs: np.ndarray, depth: int, units: int):
    """All derivations up to a depth, unit rules not counted, as (source, target): log-probabilities of each."""
    first = slots(grammar)
    is_unit = [rule.source == "\1" for rule in grammar.rules]

    def below(slot: int, left: int, stacked: int):
        if left == 0:
            return
        for number, rule in enumerate(grammar.rules):
            if is_unit[number] and stacked == 0:
                continue
            own = log_probs[slot, number]
            under = stacked - 1 if is_unit[number] else units
            deeper = left if is_unit[number] else left - 1
            parts = [[*below(first[number] + at, deeper, under)] for at in range(rule.arity)]
            for some in itertools.product(*parts):
                source, target = rule
                for at, (s, t, _) in enumerate(some, 1):
                    source, target = source.replace(chr(at), s), target.replace(chr(at), t)
                yield source, target, own + sum(score for *_, score in some)

    found = defaultdict(list)
    for source, target, score in below(0, depth, units):
        found[source, target].append(score)
    return found


def random_log_probs(grammar: Grammar, seed: int = 0) -> np.ndarray:
    shape = 1 + sum(len(nonterminals(rule.source)) for rule in grammar.rules), len(grammar.rules)
    weights = np.random.default_rng(seed).dirichlet(np.ones(shape[1]), shape[0])
    return np.log(weights)


@pytest.mark.parametrize(("text", "units"), [(AMBIGUOUS, 1), (UNITS, 1), (UNITS, 0)])
def test_an_examples_probability_is_the_sum_over_its_derivations(text, units):
    grammar = Grammar.parse(text.splitlines())
    log_probs = random_log_probs(grammar)
    written_out = derivations(grammar, log_probs, 3, units)
    short = [pair for pair in written_out if len(pair[0]) <= 3]  # derived no deeper than what is written out
    assert len(short) > 10 and max(map(len, written_out.values())) > 1
    for source, target in short:
        inside = Inside(grammar, forests(grammar, [Rule(source, target)], units))
        found = float(inside.log_likelihood(torch.from_numpy(log_probs)))
        assert found == pytest.approx(float(np.logaddexp.reduce(written_out[source, target])), rel=1e-9)


@pytest.mark.parametrize(("text", "units"), [(AMBIGUOUS, 1), (UNITS, 1)])
def test_the_best_derivation_is_the_best_of_all(text, units):
    grammar = Grammar.parse(text.splitlines())
    log_probs = random_log_probs(grammar, 1)
    best = defaultdict(lambda: (-np.inf, ""))
    for (source, target), scores in derivations(grammar, log_probs, 3, units).items():
        best[source] = max(best[source], (max(scores), target))
    parser = ViterbiParser(grammar, log_probs, units)
    for source, (_, target) in best.items():
        if len(source) <= 3:
            assert parser.parse(grammar.alphabet.decode(source)) == list(grammar.alphabet.decode(target))


@pytest.mark.parametrize(("left", "target"), [(0.9, "( ( A B ) C )"), (0.1, "( A ( B C ) )")])
def test_of_ways_to_cut_a_source_the_better_counts(left, target):
    grammar = Grammar.parse(["NT_1 and NT_2 ### ( NT_1 NT_2 )", "a ### A", "b ### B", "c ### C"])
    joined = grammar.rules.index(Rule("\1" + grammar.alphabet.encode(["and"]) + "\2", grammar.rules[0].target))
    log_probs = np.log(np.full((3, 4), 0.2))
    first = slots(grammar)[joined]
    log_probs[first, joined], log_probs[first + 1, joined] = np.log(left), np.log(1 - left)
    assert ViterbiParser(grammar, log_probs).parse(["a", "and", "b", "and", "c"]) == target.split()


@pytest.mark.parametrize(("whole", "target"), [(0.16, "both"), (0.14, "W W")])
def test_a_derivation_of_few_rules_and_one_of_many_are_weighed_by_probability_alone(whole, target):
    grammar = Grammar.parse(["NT_1 and NT_2 ### NT_1 NT_2", "walk ### W", "walk and walk ### both"])
    number = {rule.source: place for place, rule in enumerate(grammar.rules)}
    encode = grammar.alphabet.encode
    log_probs = np.log(np.full((3, 3), 0.5))
    log_probs[0, number["\1" + encode(["and"]) + "\2"]] = np.log(0.6)  # 0.6 * 0.5 * 0.5 = 0.15
    log_probs[0, number[encode(["walk", "and", "walk"])]] = np.log(whole)
    assert ViterbiParser(grammar, log_probs).parse(["walk", "and", "walk"]) == target.split()


def test_what_is_derived_alike_is_one_place():
    """In both commands there is one place for what comes after the verb, and one for the whole of the shorter."""
    grammar = Grammar.parse(["NT_1 twice ### NT_1 NT_1", "walk ### W", "left NT_1 ### L NT_1"])
    encode = grammar.alphabet.encode
    pairs = [("walk twice", "W W"), ("left walk twice", "L W W"), ("walk twice", "W W"), ("walk", "L")]
    examples = [Rule(encode(source.split()), encode(target.split())) for source, target in pairs]
    found = forests(grammar, examples)
    assert found.roots[0] == found.roots[2] and found.roots[3] == -1
    assert len(found.members) == 3
    assert sorted(found.height) == [0, 1, 2]


def test_learning_makes_examples_probable_and_probabilities_sum_to_one():
    grammar = Grammar.parse(AMBIGUOUS.splitlines())
    encode = grammar.alphabet.encode
    pairs = [("walk", "W"), ("walk", "W"), ("run and walk", "R W"), ("run twice", "R R"), ("fly", "F")]
    examples = [Rule(encode(source.split()), encode(target.split())) for source, target in pairs]
    scores, losses = learn(grammar, examples, Training(states=4, rate=0.05, steps=300))
    log_probs = scores.log_probs()
    np.testing.assert_allclose(np.exp(log_probs).sum(axis=1), 1, rtol=1e-5)
    # Of four that it derives two are the same, so no model can do better than their entropy.
    assert 1.5 * np.log(2) - 1e-6 < losses[-1] < 1.1 < losses[0]
    again, _ = learn(grammar, examples, Training(states=4, rate=0.05, steps=300))
    np.testing.assert_array_equal(log_probs, again.log_probs())
    wrong = grammar.rules.index(Rule(encode(["walk"]), encode(["R"])))
    assert np.exp(log_probs[0, wrong]) < 0.05


def test_probabilities_are_learned_where_the_caller_has_turned_gradients_off():
    grammar = Grammar.parse(AMBIGUOUS.splitlines())
    examples = [Rule(grammar.alphabet.encode(["walk"]), grammar.alphabet.encode(["W"]))]
    expected, _ = learn(grammar, examples, Training(states=2, rate=0.05, steps=3))
    with torch.inference_mode():
        found, _ = learn(grammar, examples, Training(states=2, rate=0.05, steps=3))
    np.testing.assert_array_equal(found.log_probs(), expected.log_probs())


def test_of_several_starts_the_best_is_kept():
    grammar = Grammar.parse(AMBIGUOUS.splitlines())
    encode = grammar.alphabet.encode
    pairs = [("walk", "W"), ("run and walk", "R W"), ("run twice", "R R"), ("walk and run", "W R")]
    examples = [Rule(encode(source.split()), encode(target.split())) for source, target in pairs]
    heard: list[tuple[int, float]] = []
    training = Training(states=2, rate=0.05, steps=20, starts=5)
    _, losses = learn(grammar, examples, training, 3, lambda *step: heard.append(step))
    assert [step for step, _ in heard] == [*range(1, 101)]
    runs = [[loss for _, loss in heard[first : first + 20]] for first in range(0, 100, 20)]
    ends = [run[-1] for run in runs]
    assert len(set(ends)) == 5 and losses == runs[ends.index(min(ends))]
    assert ends.index(min(ends)) > 0, "else the first start would do"
    _, alone = learn(grammar, examples, Training(states=2, rate=0.05, steps=20), 3)
    assert alone == runs[0]


def test_learning_outlasts_probabilities_that_come_to_nothing():
    grammar = Grammar.parse(AMBIGUOUS.splitlines())
    encode = grammar.alphabet.encode
    examples = [Rule(encode(["walk"]), encode(["W"])), Rule(encode(["run", "twice"]), encode(["R", "R"]))]
    losses: list[float] = []
    with pytest.raises(UserError, match=r"training.rate 50: the loss rose from 2.70 to .*: lower training.rate"):
        learn(grammar, examples, Training(states=2, rate=50.0, steps=30), watch=lambda _, loss: losses.append(loss))
    assert len(losses) == 30 and np.isfinite(losses).all()


def test_what_cannot_be_learned_or_parsed():
    grammar = Grammar.parse(AMBIGUOUS.splitlines())
    with pytest.raises(DataError, match="derives none of 1 examples"):
        learn(grammar, [Rule(grammar.alphabet.encode(["walk"]), "x")], Training(steps=1))
    parser = ViterbiParser(grammar, random_log_probs(grammar))
    assert parser.parse(["fly"]) is None and parser.parse([]) is None
    with pytest.raises(DataError, match="no examples"):
        parser.evaluate(Dataset.from_pairs([]))


def test_scan_is_parsed_without_a_mistake(scan_grammar):
    parts = published_scan("jump")
    encode = scan_grammar.alphabet.encode
    examples = [Rule(encode(source), encode(target)) for source, target in parts["train"].pairs()[::10]]
    scores, _ = learn(scan_grammar, examples, Training(states=2, rate=0.03, steps=300, unit_limit=0))
    found = ViterbiParser(scan_grammar, scores.log_probs(), 0).evaluate(parts["test"])
    assert (found.coverage, found.accuracy, found.precision) == (1, 1, 1)


@pytest.mark.long
def test_geoquery_is_parsed_as_published():
    """Length split: 29.0% of the test sources get an output, and of all 26.6% the right one (tables 2 and 7)."""
    train, test = geoquery("length", "train"), geoquery("length", "test")
    targets = TargetGrammar.read(GEOQUERY_TARGETS)
    grammar, _ = induce(train, published("geoquery").induction, exact_matches(train), targets)
    encode = grammar.alphabet.encode
    examples = [Rule(encode(source), encode(target)) for source, target in train.pairs()]
    scores, losses = learn(grammar, examples, published("geoquery").training)
    assert losses[-1] < losses[0] / 3
    found = ViterbiParser(grammar, scores.log_probs(), 1, targets).evaluate(test)
    assert 100 * found.coverage == pytest.approx(29.0, abs=2)
    assert 100 * found.accuracy == pytest.approx(26.6, abs=2)


def test_one_unit_rule_at_a_time_unless_one_says_otherwise():
    grammar = Grammar.parse(["NT_1 ### x NT_1", "NT_1 ### y NT_1", "a ### A"])
    encode = grammar.alphabet.encode
    once, twice = Rule(encode("a"), encode(["x", "A"])), Rule(encode("a"), encode(["x", "y", "A"]))
    assert [root >= 0 for root in forests(grammar, [once, twice]).roots] == [True, False]
    assert [root >= 0 for root in forests(grammar, [once, twice], 2).roots] == [True, True]


def test_of_equal_derivations_the_first_rules_counts():
    for lines in (["a ### A", "a ### B"], ["a ### B", "a ### A"]):
        grammar = Grammar.parse(lines)
        first = grammar.alphabet.decode(grammar.rules[0].target)
        assert ViterbiParser(grammar, np.log(np.full((1, 2), 0.5))).parse(["a"]) == list(first)


def test_copies_that_have_no_probability_are_none_without_a_warning():
    grammar = Grammar.parse(["a ### A", "b ### b"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parser = ViterbiParser(grammar, np.array([[0.0, -np.inf]]), copying=True)
    assert parser.log_probs[0][-1] == -np.inf


def test_derivations_may_be_deep():
    grammar = Grammar.parse(["not NT_1 ### N NT_1", "a ### A"])
    source, target = [*["not"] * 700, "a"], [*["N"] * 700, "A"]
    encode = grammar.alphabet.encode
    found = forests(grammar, [Rule(encode(source), encode(target))])
    assert max(found.height) == 700 and found.roots[0] >= 0
    assert ViterbiParser(grammar, random_log_probs(grammar)).parse(source) == target


def test_unknown_tokens_are_copied_where_others_are():
    """Names are copied, so a new name is; a word that is not a name has no rule that copies in its place."""
    grammar = Grammar.parse(["NT_1 saw NT_2 ### see ( NT_1 , NT_2 )", "NT_1 NT_2 ### NT_2 ( NT_1 )", "Mia ### Mia",
                             "Zoe ### Zoe", "slept ### sleep", "a NT_1 ### a NT_1"])  # fmt: skip
    log_probs = np.full((1 + 2 + 2 + 1, 6), -2.0)
    parser = ViterbiParser(grammar, log_probs, copying=True)
    assert parser.parse(["Kai", "saw", "Mia"]) == ["see", "(", "Kai", ",", "Mia", ")"]
    assert parser.parse(["Kai", "saw", "Lou"]) == ["see", "(", "Kai", ",", "Lou", ")"]
    assert parser.parse(["Kai", "saw", "Kai"]) == ["see", "(", "Kai", ",", "Kai", ")"]
    assert parser.parse(["Kai", "slept"]) == ["sleep", "(", "Kai", ")"]
    assert ViterbiParser(grammar, log_probs).parse(["Kai", "slept"]) is None
    # A name is not what the root is: any other derivation is better than to copy there.
    targets = TargetGrammar.parse(["ROOT => see ( ##N , ##N )", "ROOT => sleep ( ##N )", "N => ##"])
    strict = ViterbiParser(grammar, log_probs, targets=targets, copying=True)
    assert strict.parse(["Kai"]) is None and strict.parse(["Kai", "slept"]) == ["sleep", "(", "Kai", ")"]
    closed = TargetGrammar.parse(["ROOT => sleep ( ##N )", "N => Mia"])
    assert ViterbiParser(grammar, log_probs, targets=closed, copying=True).parse(["Kai", "slept"]) is None
    bare = Grammar.parse(["slept ### sleep", "NT_1 NT_2 ### NT_2 ( NT_1 )", "Mia ### mia"])
    assert ViterbiParser(bare, np.zeros((3, 3)), copying=True).parse(["Kai", "slept"]) is None


def test_a_copy_is_as_probable_as_copies_are_in_its_place():
    grammar = Grammar.parse(["NT_1 NT_2 ### first NT_1 NT_2", "NT_1 NT_2 ### then NT_2 NT_1", "a ### a", "b ### b"])
    log_probs = np.log(np.full((5, 4), 0.25))
    log_probs[1, 2:], log_probs[3, 2:] = np.log(0.4), np.log(0.1)  # copies come first below the first rule
    parser = ViterbiParser(grammar, log_probs, copying=True)
    assert parser.parse(["x", "b"]) == ["first", "x", "b"]
    log_probs[1, 2:], log_probs[3, 2:] = np.log(0.1), np.log(0.4)
    assert ViterbiParser(grammar, log_probs, copying=True).parse(["x", "b"]) == ["then", "b", "x"]
    log_probs[1, 2:] = np.log([0.6, 0.1])  # 0.35 on average, 0.6 at best
    assert ViterbiParser(grammar, log_probs, copying=True).parse(["x", "b"]) == ["then", "b", "x"]
    log_probs[1, 2:] = np.log([0.89, 0.01])  # 0.45 on average, 0.09 as a geometric mean
    assert ViterbiParser(grammar, log_probs, copying=True).parse(["x", "b"]) == ["first", "x", "b"]


def test_unlabelled_sources_make_what_they_hold_probable(tmp_path):
    pairs = [(["go"], ["G"])] * 9 + [(["stop"], ["S"]), (["go", "now"], ["G", "N"]), (["stop", "now"], ["S", "N"])]
    dataset = Dataset.from_pairs(pairs)
    unlabelled = Dataset.from_pairs([(["stop"], [])] * 40 + [(["fly"], [])])
    config = published("scan")
    few = {"induction": Options(), "training": config.training.model_copy(update={"steps": 150})}
    augmenter = Csl(config.model_copy(update=few))
    before = augmenter.fit(dataset).trained.scores.log_probs()
    assert augmenter.relearn(dataset, unlabelled) == 40
    stop = [augmenter.grammar.alphabet.text(rule) for rule in augmenter.grammar.rules].index("stop ### S")
    assert augmenter.trained.scores.log_probs()[0, stop] > before[0, stop] + 0.5
    write_dataset(unlabelled, tmp_path / "more.txt")
    again = Csl(augmenter.options.model_copy(update={"unlabelled": str(tmp_path / "more.txt")})).fit(dataset)
    assert again.report()["unlabelled_parsed"] == 40 < again.report()["unlabelled"] == 41
    np.testing.assert_array_equal(again.trained.scores.rules, augmenter.trained.scores.rules)
    with pytest.raises(UserError, match="learn probabilities before"):
        Csl(config).relearn(dataset, unlabelled)


def test_a_copy_is_checked_by_the_target_grammar_as_the_token_that_it_is():
    grammar = Grammar.parse(["ohio ### ohio", "iowa ### iowa", "rivers in NT_1 ### river ( NT_1 )"])
    log_probs = Scores.uniform(grammar).log_probs()

    def answers(*rules):
        targets = TargetGrammar.parse(rules)
        return ViterbiParser(grammar, log_probs, targets=targets, copying=True).parse(["rivers", "in", "texas"])

    named = ["ROOT => river ( ##STATE )", "STATE => ohio", "STATE => iowa"]
    assert answers(*named, "STATE => texas") == ["river", "(", "texas", ")"]
    assert answers(*named) is None
    any_other = ["ROOT => river ( ##NAME )", "NAME => ##", "NAME => ohio", "NAME => iowa"]
    assert answers(*any_other) == ["river", "(", "texas", ")"]
    assert answers(*any_other, "ROOT => x texas") is None  # `##` stands for tokens that are in no rule


def test_what_only_targets_have_is_as_unknown_in_a_source_as_any_other_word():
    lines = ["the NT_1 slept ### sleep ( NT_1 )", "ran ### run", "cat ### cat", "dog ### dog"]
    grammar = Grammar.parse(lines)
    parser = ViterbiParser(grammar, Scores.uniform(grammar).log_probs(), copying=True)
    for noun in ("cat", "emu", "run", "sleep"):
        assert parser.parse(["the", noun, "slept"]) == ["sleep", "(", noun, ")"]


def test_a_target_that_doubles_with_each_word_has_an_end():
    grammar = Grammar.parse(["jump ### JUMP", "NT_1 twice ### NT_1 NT_1"])
    parser = ViterbiParser(grammar, Scores.uniform(grammar).log_probs())
    assert parser.parse(["jump"] + 14 * ["twice"]) == 2**14 * ["JUMP"]
    for times in (15, 34, 1000):
        assert parser.parse(["jump"] + times * ["twice"]) is None


def test_a_source_that_can_be_cut_in_too_many_ways_has_no_answer(monkeypatch):
    grammar = Grammar.parse(["NT_1 NT_2 NT_3 NT_4 ### NT_1 NT_2 NT_3 NT_4", "NT_1 NT_2 ### NT_1 NT_2", "a ### A"])
    parser = ViterbiParser(grammar, Scores.uniform(grammar).log_probs())
    assert parser.parse(9 * ["a"]) == 9 * ["A"]
    monkeypatch.setattr("compgen.csl.parsing._STEPS", 50)
    assert parser.parse(9 * ["a"]) is None and parser.parse(3 * ["a"]) == 3 * ["A"]


def test_parts_of_a_source_that_are_kept_count_by_their_length(monkeypatch):
    source = [f"x{number}" for number in range(400)]
    grammar = Grammar.parse([" ".join(source) + " ### A"])
    parser = ViterbiParser(grammar, Scores.uniform(grammar).log_probs())
    steps = 273 * 1 + 145 * 2 + 17 * 3 + 1 * 3  # of 128, 256, 384 and 400 tokens
    for given, answer in ((steps, ["A"]), (steps - 1, None)):
        monkeypatch.setattr("compgen.csl.parsing._STEPS", given)
        assert parser.parse(source) == answer
