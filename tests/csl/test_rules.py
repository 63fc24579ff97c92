import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.csl.rules import Alphabet, Grammar, Rule, examples, normal
from compgen.data.examples import Dataset
from compgen.errors import DataError

TOKENS = st.sampled_from(["a", "b", "C", "(", "{0}", "日本", "%s", "nt_1"])


@st.composite
def rules(draw):
    """A rule as two lists of tokens: nonterminals in any order, some of them more than once in the target."""
    names = [f"NT_{number}" for number in draw(st.lists(st.integers(1, 99), max_size=4, unique=True))]
    again = draw(st.lists(st.sampled_from(names), max_size=2)) if names else []
    sides = [draw(st.lists(TOKENS, min_size=1, max_size=5)) for _ in range(2)]
    return draw(st.permutations(names + sides[0])), draw(st.permutations(names + again + sides[1]))


@settings(deadline=None)
@given(st.lists(rules(), max_size=5))
def test_what_is_written_is_read(pairs):
    lines = [f"{' '.join(source)} ### {' '.join(target)}" for source, target in pairs]
    grammar = Grammar.parse(lines)
    again = Grammar.parse(grammar.text().splitlines())
    assert again.rules == grammar.rules
    assert again.text() == grammar.text()
    assert len(grammar.rules) <= len(pairs)


@settings(deadline=None)
@given(rules())
def test_normal_form(pair):
    (rule,) = Grammar.parse([f"{' '.join(pair[0])} ### {' '.join(pair[1])}"]).rules
    assert [ord(letter) for letter in rule.source if ord(letter) < 100] == list(range(1, rule.arity + 1))
    assert rule.length == len(pair[0]) + len(pair[1])
    assert normal(*rule) == rule


def test_renumbering_swaps():
    grammar = Grammar.parse(["NT_2 and NT_1 ### NT_1 NT_2 NT_1"])
    assert grammar.text() == "NT_1 and NT_2 ### NT_2 NT_1 NT_2\n"


def test_order_is_that_of_tokens():
    lines = [
        "walk ### W",
        "NT_1 twice ### NT_1",
        "NT_1 twice ### A NT_1",
        "NT_10 ### NT_10 NT_10",
        "Look ### L",
        "b c ### B",
    ]
    assert Grammar.parse(lines).text().splitlines() == [
        "Look ### L",
        "NT_1 ### NT_1 NT_1",
        "NT_1 twice ### A NT_1",
        "NT_1 twice ### NT_1",
        "b c ### B",
        "walk ### W",
    ]


def test_unknown_tokens_differ_from_all_known():
    alphabet = Alphabet(["a"])
    assert alphabet.decode(alphabet.encode(["a", "a"])) == ("a", "a")
    assert alphabet.encode(["b"]) == alphabet.encode(["c"]) != alphabet.encode(["a"])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("walk W", "line 2: found 'walk W', expected 'source ### target'"),
        ("walk ###", "line 2.*neither side empty"),
        ("### W", "line 2.*neither side empty"),
        ("a ### b ### c", "line 2.*expected 'source ### target'"),
        ("NT_1 ### a", "line 2.*expected each once in the source"),
        ("NT_1 NT_1 ### NT_1", "line 2.*expected each once in the source"),
        ("NT_1 ### NT_2", "line 2.*the same ones"),
        ("NT_0 ### NT_0", "line 2: found the token 'NT_0'"),
        ("NT_100 ### NT_100", "line 2: found the token 'NT_100', expected none that begins with NT_"),
    ],
)
def test_a_line_that_is_no_rule(line, message):
    with pytest.raises(DataError, match=message):
        Grammar.parse(["a ### b", line])


def test_files(tmp_path):
    path = tmp_path / "rules.txt"
    path.write_text("a NT_1 ### NT_1\n\nb ### B\n")
    assert Grammar.read(path).text() == "a NT_1 ### NT_1\nb ### B\n"
    path.write_text("a\n")
    with pytest.raises(DataError, match=r"rules\.txt, line 1"):
        Grammar.read(path)
    path.write_bytes(b"\xff ### a")
    with pytest.raises(DataError, match="UTF-8"):
        Grammar.read(path)
    with pytest.raises(DataError, match="no such file"):
        Grammar.read(tmp_path / "none")


def test_examples_are_rules():
    alphabet, found = examples(Dataset.from_pairs([(["b", "a"], ["B"]), (["a"], ["a"])]), Grammar.parse(["c ### NT"]))
    assert [alphabet.text(rule) for rule in found] == ["b a ### B", "a ### a"]
    assert alphabet.tokens == ("B", "NT", "a", "b", "c")
    assert all(isinstance(rule, Rule) and rule.arity == 0 for rule in found)


@pytest.mark.parametrize("token", ["NT_1", "NT_x", "###", "a b", ""])
def test_tokens_that_no_rule_can_have(token):
    with pytest.raises(DataError, match=f"example 2: found the token {token!r}, expected"):
        examples(Dataset.from_pairs([(["a"], ["b"]), (["a"], ["b", token])]))


@pytest.mark.parametrize(("pair", "side"), [(([], ["a"]), "source"), ((["a"], []), "target")])
def test_an_empty_side(pair, side):
    with pytest.raises(DataError, match=f"example 2: found an empty {side}"):
        examples(Dataset.from_pairs([(["a"], ["b"]), pair]))
