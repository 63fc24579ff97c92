from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.csl.charts import Parser
from compgen.csl.occurrences import occurs
from compgen.csl.rules import Grammar, Rule, is_nonterminal, nonterminals, normal
from compgen.data import scan
from tests.csl import naive

# Letters: nonterminals are the low code points, terminals the high ones.
NUMBERS = st.integers(1, 3)
SOURCE = st.sampled_from("αβ")
TARGET = st.sampled_from("ΓΔ")


@st.composite
def rules(draw, arity=2, longest=3):
    names = [chr(number) for number in range(1, draw(st.integers(0, arity)) + 1)]
    again = draw(st.lists(st.sampled_from(names), max_size=1)) if names else []
    least = 0 if names else 1
    sides = [draw(st.lists(side, min_size=least, max_size=longest)) for side in (SOURCE, TARGET)]
    return normal(
        "".join(draw(st.permutations(names + sides[0]))), "".join(draw(st.permutations(names + again + sides[1])))
    )


def plain(letters):
    return tuple(ord(letter) if is_nonterminal(letter) else letter for letter in letters)


def letters(tokens):
    return "".join(chr(one) if isinstance(one, int) else one for one in tokens)


def sides(rule):
    return plain(rule.source), plain(rule.target)


@settings(deadline=None)
@given(st.lists(rules(), max_size=5), rules(longest=5), st.sampled_from([0, 1, 2]))
def test_what_is_derived(grammar, goal, units):
    """All targets of a source, and none besides; with what is derived for goals, so that most are not refused."""
    grammar = list(dict.fromkeys(grammar))
    derived = naive.targets([sides(rule) for rule in grammar], plain(goal.source), units)
    parser = Parser(grammar, units)
    assert len(goal.target) <= 9
    assert parser.derives(goal) == (plain(goal.target) in derived)
    for target in derived:
        assert parser.derives(Rule(goal.source, letters(target)))


@settings(deadline=None)
@given(st.lists(rules(), min_size=1, max_size=6))
def test_what_is_derived_without_itself(grammar):
    grammar = list(dict.fromkeys(grammar))
    parser = Parser(grammar)
    for goal in grammar:
        assert parser.derives_otherwise(goal) == Parser([rule for rule in grammar if rule != goal]).derives(goal)


@settings(deadline=None)
@given(st.lists(rules(), max_size=8), rules(longest=5))
def test_rules_that_a_derivation_may_use(grammar, goal):
    grammar = list(dict.fromkeys(grammar))
    open_ = [one for one in grammar if nonterminals(one.source) and not is_nonterminal(one.source)]
    expected = {one for one in open_ if occurs(one.source, goal.source) and occurs(one.target, goal.target)}
    found = [one.rule for one in Parser(grammar).usable(goal)]
    assert len(found) == len(expected)
    assert {*found} == expected


def test_unit_rules_stack_so_high():
    _, rules = naive.read(
        "walk ### W", "NT_1 ### f ( NT_1 )", *(f"walk ### {'f ( ' * n}W{' )' * n}" for n in (1, 2, 3))
    )
    grammar, goals = rules[:2], rules[2:]
    assert [Parser(grammar, 1).derives(goal) for goal in goals] == [True, False, False]
    assert [Parser(grammar).derives(goal) for goal in goals] == [True, True, False]
    # Over a nonterminal of the goal the first does not count.
    _, (unit, left, *goals) = naive.read(
        "NT_1 ### f ( NT_1 )",
        "NT_1 left ### L NT_1",
        *(f"NT_1 left ### L {'f ( ' * n}NT_1{' )' * n}" for n in (1, 2, 3)),
    )
    assert [Parser([unit, left], 1).derives(goal) for goal in goals] == [True, True, False]


def test_rules_from_rules():
    _, (turn, twice, goal, other) = naive.read(
        "NT_1 left ### L NT_1",
        "NT_1 twice ### NT_1 NT_1",
        "NT_1 left twice ### L NT_1 L NT_1",
        "NT_1 left twice ### L L NT_1",
    )
    assert Parser([turn, twice]).derives(goal)
    assert not Parser([turn, twice]).derives(other)


def test_a_long_source():
    _, (twice, walk) = naive.read("NT_1 twice ### NT_1 T", "walk ### W")
    source, target = walk.source + twice.source[1:] * 400, walk.target + twice.target[1:] * 400
    assert Parser([twice, walk]).derives(Rule(source, target))


def test_scan_is_derived(scan_grammar):
    parser = Parser(scan_grammar.rules, unit_limit=0)
    for source, target in scan.simple().pairs()[::20]:
        both = Rule(*map(scan_grammar.alphabet.encode, (source, target)))
        assert parser.derives(both)
        assert not parser.derives(Rule(both.source, both.target[:-1]))
        assert not parser.derives(Rule(both.source + "?", both.target))


def test_as_many_nonterminals_as_have_letters():
    names = [f"NT_{number}" for number in range(1, 100)]
    most = Grammar.parse([f"x {' y '.join(names)} ### {' '.join(reversed(names))} Z", "a ### A", "b ### B"])
    source = f"x {' y '.join(['a'] * 98)} y b"
    goals = [f"{source} ### {target} Z" for target in ("B" + " A" * 98, "A " * 98 + "B")]
    encode = most.alphabet.encode
    rules = [Rule(*(encode(side.split()) for side in goal.split(" ### "))) for goal in goals]
    assert [Parser(most.rules).derives(rule) for rule in rules] == [True, False]
