from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.csl.induction import induce
from compgen.csl.rules import Alphabet, Grammar
from compgen.csl.sampling import Depth, Sampler
from compgen.csl.seeds import exact_matches
from compgen.csl.targets import TargetGrammar
from compgen.csl.weights import Scores, Weights, slots
from compgen.data.scan import interpret
from compgen.errors import DataError, ExhaustedError, UserError
from tests.csl.data import GEOQUERY_TARGETS, coverage, geoquery, published

TINY = Grammar.parse(["NT_1 and NT_2 ### NT_2 NT_1 NT_2", "a ### A", "b ### B"])  # its rules in this order


def dense(table):
    """The weight of each rule in each slot, one state a slot."""
    with np.errstate(divide="ignore"):
        return Weights(np.log(np.eye(len(table))), np.log(np.array(table, dtype=np.float64)))


def shares(weights):
    """What each rule weighs in each slot."""
    return np.exp(weights.states) @ np.exp(weights.rules)


def sources(dataset):
    return Counter(" ".join(source) for source, _ in dataset.pairs())


def test_samples_are_derived(scan_grammar):
    made = Sampler(scan_grammar, Depth()).sample(300)
    assert coverage(scan_grammar, made) == len(made) == 300
    assert len(made.unique()) > 200
    commands = []
    for source, target in made.pairs():
        try:
            commands.append(interpret(source) == target)
        except DataError:
            commands.append(None)  # the grammar derives more than SCAN
    assert commands.count(True) > 50


def test_what_occurs_twice_in_the_target_is_the_same():
    for source, target in Sampler(TINY, Depth(least=1, most=1)).sample(50).pairs():
        assert target == [source[2].upper(), source[0].upper(), source[2].upper()]


def test_depth():
    assert sources(Sampler(TINY, Depth(least=0, most=0)).sample(50)).keys() == {"a", "b"}
    lengths = Counter(len(source) for source, _ in Sampler(TINY, Depth(least=1, most=1)).sample(50).pairs())
    assert lengths == {3: 50}
    lengths = Counter(len(source) for source, _ in Sampler(TINY, Depth(least=0, most=2)).sample(500).pairs())
    assert lengths.keys() == {1, 3, 5, 7}
    lengths = Counter(len(source) for source, _ in Sampler(TINY, Depth(least=2, most=2)).sample(50).pairs())
    assert lengths == {7: 50}


def test_weights_are_those_of_slots():
    """The root is 1 : 2 : 1; the left of `and` is a, the right a or b as 1 : 3."""
    assert slots(TINY) == [1, 3, 3]
    weights = dense([[1, 2, 1], [0, 5, 0], [0, 0.25, 0.75]])
    found = sources(Sampler(TINY, Depth(least=0, most=5), weights).sample(8000))
    expected = {"a": 1 / 2, "b": 1 / 4, "a and a": 1 / 16, "a and b": 3 / 16}
    assert found.keys() == expected.keys()
    for source, share in expected.items():
        assert found[source] / 8000 == pytest.approx(share, abs=5 * (share / 8000) ** 0.5)


def test_uniform_weights():
    found = sources(Sampler(TINY, Depth(least=0, most=1)).sample(9000))
    assert {source: found[source] / 9000 for source in ("a", "b")} == pytest.approx({"a": 1 / 3, "b": 1 / 3}, abs=0.03)
    assert found["a and b"] / 9000 == pytest.approx(1 / 12, abs=0.015)


def test_a_rule_weighs_the_same_in_however_many_ways_its_nonterminals_can_be_named():
    grammar = Grammar.parse(["f NT_1 ### f NT_1", "a ### A", "g ### g"])
    ways = [line for name in "XYZ" for line in (f"ROOT => f ##{name}", f"{name} => A")]
    targets = TargetGrammar.parse(["ROOT => g", *ways])
    found = sources(Sampler(grammar, Depth(least=0, most=2), targets=targets).sample(2000))
    assert found.keys() == {"f a", "g"}
    assert found["g"] / 2000 == pytest.approx(1 / 2, abs=0.05)


@settings(deadline=None)
@given(st.integers(0, 3000), st.integers(0, 5), st.integers(-(2**65), 2**65))
def test_a_sample_is_a_function_of_its_number_and_the_seed(start, number, seed):
    sampler = Sampler(TINY, Depth(least=1, most=3))
    together = Sampler(TINY, Depth(least=1, most=3)).sample(number + 1, seed, start)
    assert [sampler.sample(1, seed, start + one) for one in range(number + 1)] == [
        type(together)(together.frame[one]) for one in range(number + 1)
    ]


def test_seeds_and_numbers_differ():
    sampler = Sampler(TINY, Depth(least=3, most=6))
    made = [sampler.sample(30, seed, start) for seed in (0, 1) for start in (0, 1024, 2048)]
    assert len({str(one.pairs()) for one in made}) == 6


def test_targets_are_well_formed():
    grammar = Grammar.parse(
        [
            "the NT_1 ### answer ( NT_1 )",
            "NT_1 of NT_2 ### NT_1 ( NT_2 )",
            "capital ### capital",
            "state ### loc",
            "it ### m0",
            "nonsense ### ( (",
        ]
    )
    targets = TargetGrammar.parse(
        [
            "ROOT => answer ( ##CITY )",
            "CITY => ##S_TO_C ( ##STATE )",
            "STATE => ##C_TO_S ( ##CITY )",
            "S_TO_C => capital",
            "C_TO_S => loc",
            "CITY => m0",
            "STATE => m0",
        ]
    )
    found = sources(Sampler(grammar, Depth(least=1, most=3), targets=targets).sample(200))
    assert found.keys() == {"the it", "the capital of it", "the capital of state of it"}
    free = sources(Sampler(grammar, Depth(least=1, most=3)).sample(200))
    assert len(free) > 10


def test_geoquery():
    dataset = geoquery("length", "train")
    targets = TargetGrammar.read(GEOQUERY_TARGETS)
    grammar, _ = induce(dataset, published("geoquery").induction, exact_matches(dataset), targets)
    made = Sampler(grammar, Depth(least=1, most=4), targets=targets).sample(200)
    assert coverage(grammar, made) == 200
    checker = targets.checker(grammar.alphabet)
    letters = map(grammar.alphabet.encode, made.frame["target"].to_list())
    assert all(("ROOT",) in checker.signatures(target) for target in letters)


def test_no_end():
    grammar = Grammar.parse(["NT_1 x ### NT_1 X"])
    with pytest.raises(
        ExhaustedError, match=r"\(rules without nonterminals, .*: 0 of 1\): lower drawing\.depth\.least, or give"
    ):
        Sampler(grammar, Depth())
    with pytest.raises(ExhaustedError, match="sample 7: none of 1,000 attempts"):
        Sampler(TINY, Depth(), dense([[1, 0, 0], [0, 0, 0], [0, 1, 0]])).sample(1, start=7)


def test_no_well_formed_target_has_an_end():
    targets = TargetGrammar.parse(["ROOT => ##PART b A", "PART => ##PART b A", "PART => C"])
    with pytest.raises(ExhaustedError, match=r"1 of 2\): "):
        Sampler(Grammar.parse(["NT_1 x ### NT_1 b A", "a ### A"]), Depth(), targets=targets)
    with pytest.raises(ExhaustedError, match=r"no derivation with 0 to about 5 levels .*: give more examples"):
        Sampler(Grammar.parse(["a ### A"]), Depth(least=0, most=5), targets=targets)


def test_what_cannot_be_deep_enough():
    flat = Grammar.parse(["a ### A"])
    assert sources(Sampler(flat, Depth(least=0, most=5)).sample(2)) == {"a": 2}
    with pytest.raises(ExhaustedError, match="nothing to recombine: every rule of the grammar is a whole example"):
        Sampler(flat, Depth(least=1, most=5))
    grammar = Grammar.parse(["f NT_1 ### f NT_1", "a ### A"])
    targets = TargetGrammar.parse(["ROOT => f ##PART", "PART => f ##END", "END => A"])
    assert sources(Sampler(grammar, Depth(least=2, most=2), targets=targets).sample(2)) == {"f f a": 2}
    with pytest.raises(ExhaustedError, match="no derivation with 3 to about 3 levels"):
        Sampler(grammar, Depth(least=3, most=3), targets=targets)


def test_too_long():
    made = Sampler(TINY, Depth(least=1, most=2), longest=7).sample(200)
    assert {len(source) for source, _ in made.pairs()} == {3, 5}  # 7 tokens on the left are 9 on the right
    assert {len(target) for _, target in made.pairs()} == {3, 5, 7}
    with pytest.raises(ExhaustedError, match="levels and at most 2 tokens a side"):
        Sampler(TINY, Depth(least=1, most=2), longest=2).sample(1)


def test_what_cannot_end_goes_up_to_five_levels_deeper():
    grammar = Grammar.parse(["a NT_1 ### a ( NT_1 )", "b NT_1 ### b ( NT_1 )", "c ### c"])
    for end in (5, 6):
        chain = [f"A{level} => b ( ##A{level + 1} )" for level in range(end)]
        targets = TargetGrammar.parse(["ROOT => a ( ##A0 )", *chain, f"A{end} => c"])
        if end == 5:
            assert sources(Sampler(grammar, Depth(least=1, most=1), targets=targets).sample(1)) == {"a b b b b b c": 1}
    with pytest.raises(ExhaustedError, match="with 1 to about 1 levels"):
        Sampler(grammar, Depth(least=1, most=1), targets=targets)


def test_attempts_are_repeated():
    """Half of the derivations come to where nothing fits, and are drawn again."""
    grammar = Grammar.parse(["good NT_1 ### g NT_1", "bad NT_1 ### b NT_1", "a ### A"])
    targets = TargetGrammar.parse(["ROOT => g ##X", "ROOT => b ##Y", "X => A", "Y => none"])
    assert sources(Sampler(grammar, Depth(least=1, most=2), targets=targets).sample(50)) == {"good a": 50}


def test_no_rules():
    with pytest.raises(DataError, match="without rules"):
        Sampler(Grammar(Alphabet([]), ()), Depth())


def test_what_weighs_next_to_nothing_is_drawn_where_nothing_else_fits():
    """Both states prefer to go on, by more than a floating point number can say; at the end one of them is chosen."""
    scores = Scores(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), np.array([[9.0, 1.0, 0.0], [9.0, 0.0, 1.0]]))
    assert sources(Sampler(TINY, Depth(least=1, most=1), scores.weights(1e-4)).sample(50)) == {"a and b": 50}
    tied = Scores(np.zeros((3, 2)), scores.rules)
    found = sources(Sampler(TINY, Depth(least=0, most=0), tied.weights(1e-4)).sample(1000))
    assert found["a"] == pytest.approx(500, abs=80) and found["b"] == 1000 - found["a"]


def test_scores():
    scores = Scores(np.array([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]), np.array([[1.0, 0.0, -1.0], [0.0, 0.5, 0.0]]))
    written_out = np.zeros((3, 3))
    for slot in range(3):
        for state in range(2):
            mixed = np.exp(scores.slots[slot, state]) / np.exp(scores.slots[slot]).sum()
            written_out[slot] += mixed * np.exp(scores.rules[state]) / np.exp(scores.rules[state]).sum()
    np.testing.assert_allclose(np.exp(scores.log_probs()), written_out)
    block = Sampler(TINY, Depth(least=0, most=9), scores.weights()).block(0, 0, 500)
    for length, found in zip(block.lengths[0], block.log_probs, strict=True):
        if length == 1:
            assert found in np.log(written_out[0, 1:])
    hot = scores.weights(1e6)
    np.testing.assert_allclose(shares(hot), 1 / 3, atol=1e-5)
    cold = scores.weights(1e-2)
    np.testing.assert_allclose(shares(cold)[0], [0, 1, 0], atol=1e-5)
    longer = scores.weights(bias=20.0, biased=2, arities=[2, 0, 0])
    assert shares(longer)[:, 0].min() > 0.999
    with pytest.raises(UserError, match="temperature 0: expected a number above 0"):
        scores.weights(0)
    with pytest.raises(UserError, match="temperature 1e-310: found scores that it makes infinite"):
        scores.weights(1e-310)


def test_what_doubles_at_each_level_is_too_long_and_not_past_counting():
    """A target of 2^70 tokens is as many as none in 64 bits."""
    grammar = Grammar.parse(["NT_1 x ### NT_1 NT_1", "a ### A"])
    with pytest.raises(ExhaustedError, match="at most 1,000 tokens a side"):
        Sampler(grammar, Depth(least=70, most=70)).sample(1)
    assert sources(Sampler(grammar, Depth(least=3, most=3)).sample(1)) == {"a x x x": 1}


def test_hardly_any_weight_is_none_or_some_but_never_an_error():
    grammar = Grammar.parse(["NT_1 NT_2 ### NT_2 NT_1", "a ### A", "x NT_1 ### NT_1 X NT_1"])
    for tiny in (5e-324, 1e-300):
        table = np.ones((4, 3))
        table[:, 1] = tiny
        try:
            found = sources(Sampler(grammar, Depth(least=1, most=1), dense(table)).sample(20))
        except ExhaustedError:
            continue
        assert found.keys() <= {"a a", "x a"}


def test_samples_before_one_that_cannot_be_had_are_given():
    """One attempt in two hundred comes to an end, so that of a few hundred samples some have none in a thousand."""
    sampler = Sampler(TINY, Depth(least=0, most=1), dense([[1, 0.0046, 0], [0, 0, 0], [0, 1, 0]]))
    given = []
    with pytest.raises(ExhaustedError) as caught:
        given.extend(len(block.log_probs) for block in sampler.blocks(0, 0, 800, 400))
    assert f"sample {sum(given)}: none of" in str(caught.value) and given
    assert len(sampler.sample(sum(given))) == sum(given)
