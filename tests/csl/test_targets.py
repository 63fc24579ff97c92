import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.csl.rules import MOST, Alphabet, Grammar
from compgen.csl.targets import TargetGrammar, TargetRule
from compgen.errors import DataError
from tests.csl.data import COGS_TARGETS, GEOQUERY_TARGETS, cogs, geoquery

QUERIES = """\
# questions

ROOT => answer ( ##STATE )
ROOT => answer ( ##CITY )
STATE => ##PLACEHOLDER
CITY => ##PLACEHOLDER
PLACEHOLDER => m0
STATE => ##CITY_TO_STATE ( ##CITY )
CITY => ##STATE_TO_CITY ( ##STATE )
CITY_TO_STATE => loc
STATE_TO_CITY => capital
STATE => both ( ##STATE , ##STATE )
CITY => both ( ##CITY , ##CITY )
"""


@pytest.fixture
def queries():
    return TargetGrammar.parse(QUERIES.splitlines())


def checked(targets, line):
    """A checker, and the target of a rule."""
    grammar = Grammar.parse([line])
    return targets.checker(grammar.alphabet), grammar.rules[0].target


@pytest.mark.parametrize(
    ("line", "allowed", "signatures"),
    [
        ("x ### answer ( capital ( m0 ) )", True, {("ROOT",)}),
        ("x ### capital ( m0 )", True, {("CITY",)}),
        ("x ### m0", True, {("PLACEHOLDER",), ("CITY",), ("STATE",)}),
        ("x ### loc", True, {("CITY_TO_STATE",)}),
        ("x ### loc ( capital ( m0 ) )", True, {("STATE",)}),
        ("x ### loc ( loc ( m0 ) )", False, set()),
        ("x ### loc (", False, set()),
        ("x ### loc ( unheard )", False, set()),
        ("x NT_1 ### loc ( NT_1 )", True, {("STATE", "CITY"), ("STATE", "PLACEHOLDER")}),
        (
            "x NT_1 NT_2 ### NT_2 ( loc ( NT_1 ) )",
            True,
            {("CITY", "CITY", "STATE_TO_CITY"), ("CITY", "PLACEHOLDER", "STATE_TO_CITY")},
        ),
        ("x NT_1 ### both ( capital ( NT_1 ) , NT_1 )", True, {("CITY", "PLACEHOLDER")}),
        ("x NT_1 ### answer ( NT_1 ( NT_1 ) )", True, set()),
        (
            "x NT_1 NT_2 ### both ( NT_2 , NT_1 )",
            True,
            {
                (whole, first, second)
                for whole in ("STATE", "CITY")
                for first in (whole, "PLACEHOLDER")
                for second in (whole, "PLACEHOLDER")
            },
        ),
    ],
)
def test_what_is_a_part_of_a_target(queries, line, allowed, signatures):
    checker, target = checked(queries, line)
    assert checker.allows(target) == allowed
    assert checker.signatures(target) == signatures


@settings(deadline=None)
@given(st.lists(st.sampled_from(["the", "new", "dog", "cat", "unheard", "(", ")", "\1", "\2"]), min_size=1, max_size=6))
def test_a_part_is_what_has_a_name(target):
    """With each nonterminal once, as then none has two names."""
    target = [one for place, one in enumerate(target) if one > "\2" or one not in target[:place]]
    targets = TargetGrammar.parse(["ROOT => the ##WORD", "WORD => ##", "WORD => new ##WORD ( ##ROOT )"])
    alphabet = Alphabet(["the", "new", "dog", "cat", "(", ")"])
    checker = targets.checker(alphabet)
    letters = "".join([one if one <= "\2" else alphabet.encode([one]) for one in target])
    assert checker.allows(letters) == bool(checker.signatures(letters))
    plain = letters.replace("\1", "").replace("\2", "")
    assert checker.derives(plain) == (("ROOT",) in checker.signatures(plain))


def test_what_is_one_nonterminal_in_the_whole_is_any(queries):
    checker, target = checked(queries, "NT_1 ### NT_1")
    assert checker.allows(target)
    found = checker.signatures(target)
    assert {("CITY", "CITY"), ("CITY", "PLACEHOLDER")} <= found
    assert ("CITY", "STATE") not in found


def test_two_unit_rules_stack_and_not_three():
    chain = [f"{name} => ##{below}" for name, below in ("AB", "BC", "CD")]
    checker, target = checked(TargetGrammar.parse(["ROOT => x ##A", *chain, "D => d"]), "s ### d")
    assert checker.signatures(target) == {("D",), ("C",), ("B",)}


def test_any_token_that_is_in_no_rule():
    targets = TargetGrammar.parse(["ROOT => the ##WORD", "WORD => ##", "WORD => new ##WORD"])
    assert TargetGrammar.parse(targets.text().splitlines()) == targets
    alphabet = Alphabet(["the", "new", "dog"])
    checker = targets.checker(alphabet)
    for target, expected in {
        "dog": {("WORD",)},
        "new": set(),
        "the dog": {("ROOT",)},
        "the new dog": {("ROOT",)},
        "the new": set(),
        "the the": set(),
        "the cat": set(),  # not in the alphabet
    }.items():
        assert checker.signatures(alphabet.encode(target.split())) == expected, target
    assert targets.checker(Alphabet(["the", "cat"])).allows(Alphabet(["the", "cat"]).encode(["the", "cat"]))


def test_a_long_target():
    targets = TargetGrammar.parse(["ROOT => f ( ##ROOT )", "ROOT => x"])
    for depth in (200, 201):
        checker, target = checked(targets, f"s ### {'f ( ' * depth} x {') ' * 200}")
        assert checker.allows(target) == (depth == 200)


@pytest.mark.parametrize(
    ("parts", "tokens", "fine"), [(3, 60, True), (12, 60, False), (30, 31, True), (98, 120, False)]
)
def test_no_more_ways_are_tried_than_there_is_time_for(parts, tokens, fine):
    targets = TargetGrammar.parse([f"ROOT => {'##A ' * parts}", "A => a ##A", "A => a"])
    checker, target = checked(targets, f"x ### {'a ' * tokens}")
    if fine:
        assert checker.signatures(target) == {("ROOT",), ("A",)}
        return
    with pytest.raises(DataError, match="can be derived in too many ways"):
        checker.signatures(target)
    assert checker.allows(target[:9])  # induction asks for no names, and has no such limit


def test_no_more_names_are_put_together_than_there_is_time_for():
    pairs = [f"{name} => ( {' '.join(f'##{one}' for one in kinds)} )" for name in "AB" for kinds in ("AA", "AB", "BA")]
    targets = TargetGrammar.parse(["ROOT => ##A", "A => a", "B => b", *pairs, "A => ( ##B ##B )"])
    line = "NT_1"
    for number in range(2, 20):
        line = f"( {line} NT_{number} )"
    checker, target = checked(targets, f"{' '.join(f'NT_{n}' for n in range(1, 20))} ### {line}")
    with pytest.raises(DataError, match="can be derived in too many ways"):
        checker.signatures(target)


def test_what_is_written_is_read(queries, tmp_path):
    assert TargetGrammar.parse(queries.text().splitlines()) == queries
    assert len(queries.rules) == 11
    path = tmp_path / "targets.cfg"
    path.write_text(QUERIES + "STATE => ##PLACEHOLDER\n")
    assert TargetGrammar.read(path) == queries


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("STATE", "line 2: found 'STATE', expected 'LHS =>"),
        ("STATE =>", "line 2: found"),
        ("STATE -> a", "line 2: found"),
        ("ROOT => ##CITY", "line 2: found ##CITY, for which there is no rule"),
        (f"ROOT => {'##ROOT ' * 100}", "line 2: found 100 nonterminals in a rule for ROOT, expected at most 99"),
        ("ROOT => ##ROOT", r"line 2: found ROOT => ##ROOT, .* in a circle \(ROOT\), expected no circle"),
        ("STATE => x ##STATE", "line 2: found STATE, all of whose rules lead to nonterminals without end"),
        ("ROOT => a ##", "line 2: found ## among others, expected it alone: 'ROOT => ##'"),
    ],
)
def test_a_line_that_is_no_rule(line, message):
    with pytest.raises(DataError, match=message):
        TargetGrammar.parse(["ROOT => a", line])


def test_unit_rules_that_go_round():
    lines = ["ROOT => ##A", "A => ##B", "B => ##C", "C => ##B", "C => ##D", "D => d"]
    with pytest.raises(DataError, match=r"line 3: found B => ##C, .* in a circle \(B, C\)"):
        TargetGrammar.parse(lines)
    assert len(TargetGrammar.parse([*lines[:3], "C => ( ##B )", *lines[4:]]).rules) == 6


def test_no_end():
    with pytest.raises(DataError, match="line 1: found ROOT, all of whose rules lead to nonterminals without end"):
        TargetGrammar.parse(["ROOT => ( ##A )", "A => x ##ROOT", "B => b"])
    assert len(TargetGrammar.parse(["ROOT => ( ##A )", "A => x ##ROOT", "A => ##B y", "B => b"]).rules) == 4


def test_no_root():
    with pytest.raises(DataError, match="found no rule for ROOT"):
        TargetGrammar.parse(["# nothing", "STATE => a"])


@pytest.mark.parametrize("part", ["train", "test"])
def test_geoquery(part):
    """All its targets are well formed, and none is with a bracket or an argument less."""
    targets = geoquery("standard", part).frame["target"].to_list()
    alphabet = Alphabet(token for target in targets for token in target)
    checker = TargetGrammar.read(GEOQUERY_TARGETS).checker(alphabet)
    for target in targets:
        assert ("ROOT",) in checker.signatures(alphabet.encode(target))
        assert not checker.allows(alphabet.encode(target[:-1]))
        assert not checker.allows(alphabet.encode([*target[:-2], ",", ")", ")"]))


@pytest.mark.parametrize("part", ["train", "dev"])
def test_cogs(part):
    """All its targets are well formed, none is without its last token, and two arguments are no part by themselves."""
    targets = cogs(part).frame["target"].unique(maintain_order=True).to_list()
    alphabet = Alphabet(token for target in targets for token in target)
    checker = TargetGrammar.read(COGS_TARGETS).checker(alphabet)
    for target in targets[::5]:
        assert ("ROOT",) in checker.signatures(alphabet.encode(target))
        assert len(target) == 1 or not checker.allows(alphabet.encode(target[:-1]))
    assert checker.allows(alphabet.encode(["agent", "=", "dog"]))
    assert not checker.allows(alphabet.encode(["agent", "=", "dog", ",", "theme", "=", "dog"]))


def test_a_rule_has_as_many_nonterminals_as_letters_stand_for():
    assert len(TargetRule("ROOT", ("##A",) * MOST).kinds) == MOST
    with pytest.raises(DataError, match=f"found {MOST + 1} nonterminals in a rule for ROOT, expected at most {MOST}"):
        TargetRule("ROOT", ("##A",) * (MOST + 1))


def test_a_grammar_says_which_targets_it_derives():
    grammar = TargetGrammar.parse(["ROOT => f ##X", "X => ##", "X => f ##X"])
    assert grammar.derives([["f", "a"], ["f", "f", "a"], ["f"], ["a", "f"]]) == [True, True, False, False]
    assert grammar.derives([]) == []


def test_a_target_is_derived_soon_or_not_at_all():
    grammar = TargetGrammar.parse(["ROOT => ##E", "E => ##E ##E", "E => a", "E => b"])
    alphabet = Alphabet("ab")
    checker, target = grammar.checker(alphabet), alphabet.encode("abbabaabbaababba")
    steps = next(steps for steps in range(10_000) if checker.derives_soon(target, steps))
    assert 100 < steps < 10_000 and not checker.derives_soon(target, steps - 1) and checker.derives(target)
