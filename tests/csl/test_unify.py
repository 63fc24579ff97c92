import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compgen.csl.occurrences import occurs
from compgen.csl.rules import FIRST, Rule, normal
from compgen.csl.unify import Partners, Unification
from tests.csl import naive
from tests.csl.test_charts import rules

NO_REPEATS = Unification(repeated_targets=False)
NO_BARE = Unification(bare_targets=False)
ALL = Unification(quirks=False)


@pytest.mark.parametrize(
    ("a", "b", "options", "expected"),
    [
        ("walk twice ### W W", "walk ### W", Unification(), "NT_1 twice ### NT_1 NT_1"),
        ("walk twice ### W W", "walk ### W", NO_REPEATS, None),
        ("walk twice ### W W", "NT_1 twice ### NT_1 NT_1", Unification(), "walk ### W"),
        ("walk twice ### W W", "NT_1 twice ### NT_1 NT_1", NO_REPEATS, None),
        ("walk and walk ### W W", "walk ### W", Unification(), None),
        ("run and walk ### R W", "NT_1 and NT_2 ### NT_1 NT_2", Unification(), None),
        ("NT_1 and walk ### NT_1 W", "NT_1 and NT_2 ### NT_1 NT_2", Unification(), "walk ### W"),
        (
            "NT_1 big dog ### dog ( NT_1 , big )",
            "dog ### dog",
            Unification(),
            "NT_1 big NT_2 ### NT_2 ( NT_1 , big )",
        ),
        (
            "the NT_1 of NT_2 ### f ( NT_2 , NT_1 )",
            "the NT_1 of NT_2 ### f ( NT_2 , NT_1 )",
            Unification(),
            None,
        ),
        (
            "show the NT_1 of NT_2 ### ans ( f ( NT_2 , NT_1 ) )",
            "the NT_1 of NT_2 ### f ( NT_2 , NT_1 )",
            Unification(),
            "show NT_1 ### ans ( NT_1 )",
        ),
        (
            "show the NT_1 of NT_2 ### ans ( f ( NT_2 , NT_1 ) )",
            "the NT_1 of NT_2 ### f ( NT_2 , NT_1 )",
            NO_BARE,
            "show NT_1 ### ans ( NT_1 )",
        ),
        ("show NT_1 ### NT_1", "NT_1 ### NT_1", Unification(), "show NT_1 ### NT_1"),
        ("show walk ### W", "walk ### W", Unification(), "show NT_1 ### NT_1"),
        ("show walk ### W", "walk ### W", NO_BARE, None),
        ("please show NT_1 ### x NT_1", "show NT_1 ### NT_1", Unification(), "please NT_1 ### x NT_1"),
        ("please show NT_1 ### x NT_1", "show NT_1 ### NT_1", NO_BARE, None),
        ("show big NT_1 ### s ( NT_1 )", "show NT_1 ### s ( NT_1 )", Unification(), "big NT_1 ### NT_1"),
        ("show big NT_1 ### s ( NT_1 )", "show NT_1 ### s ( NT_1 )", NO_BARE, None),
        ("a b c d e ### A B C D E", "c ### C", Unification(), "a b NT_1 d e ### A B NT_1 D E"),
        ("NT_1 NT_2 NT_3 NT_4 e ### NT_4 NT_3 NT_2 NT_1 E", "e ### E", Unification(), None),
        ("NT_1 a b ### NT_1 A B", "b ### B", Unification(max_nonterminals=2), "NT_1 a NT_2 ### NT_1 A NT_2"),
        ("NT_1 a b ### NT_1 A B", "b ### B", Unification(max_nonterminals=1), None),
        ("x x x ### X X X", "x x ### X X", Unification(), None),
        ("walk around ### L W L W", "walk ### W", Unification(), "NT_1 around ### L NT_1 L NT_1"),
        ("loud x ### f ( g ( x ) )", "NT_1 ### f ( NT_1 )", Unification(), "loud x ### g ( x )"),
    ],
)
def test_the_reference_finds(a, b, options, expected):
    alphabet, (first, second) = naive.read(a, b)
    assert [alphabet.text(rule) for rule in options.unify(first, second)] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("a", "b", "restricted", "expected"),
    [
        (
            "walk and walk ### W W",
            "walk ### W",
            [],
            [
                "NT_1 and walk ### NT_1 NT_1",
                "NT_1 and walk ### NT_1 W",
                "NT_1 and walk ### W NT_1",
                "walk and NT_1 ### NT_1 NT_1",
                "walk and NT_1 ### NT_1 W",
                "walk and NT_1 ### W NT_1",
            ],
        ),
        ("x twice ### X X X", "x ### X X", [], ["NT_1 twice ### NT_1 X", "NT_1 twice ### X NT_1"]),
        (
            "NT_1 a NT_2 b NT_3 ### NT_2 NT_1 NT_3 NT_3",
            "NT_1 b NT_2 ### NT_1 NT_2 NT_2",
            [],
            ["NT_1 a NT_2 ### NT_2 NT_1"],
        ),
        (
            "a b NT_1 ### A NT_1 NT_1",
            "NT_1 b NT_2 ### NT_1 NT_2 NT_2",
            [],
            ["a ### A"],
        ),
    ],
)
def test_quirks(a, b, restricted, expected):
    """What the reference does not find."""
    alphabet, (first, second) = naive.read(a, b)
    for options, wanted in ((Unification(), restricted), (ALL, expected)):
        assert sorted(alphabet.text(rule) for rule in options.unify(first, second)) == wanted


def substitute(outer, number, inner):
    """The rule that comes of putting one rule in the place of a nonterminal of another."""
    names = {one: 50 + one for one in range(1, outer.arity + 1)}
    filled = (side.translate({**names, number: part}) for side, part in zip(outer, inner, strict=True))
    return normal(*filled)


def combinations(b, c):
    pairs = [(b, number, c) for number in range(1, b.arity + 1)] + [(c, number, b) for number in range(1, c.arity + 1)]
    return {substitute(*pair) for pair in pairs}


OPTIONS = st.builds(
    Unification,
    max_nonterminals=st.integers(1, 3),
    repeated_targets=st.booleans(),
    bare_targets=st.booleans(),
    lexical_sources=st.booleans(),
    quirks=st.booleans(),
)


@settings(deadline=None)
@given(rules(), rules(), OPTIONS, st.data())
def test_what_is_found_gives_back_the_rule(b, c, options, data):
    assume(combinations(b, c))
    a = data.draw(st.sampled_from(sorted(combinations(b, c))))
    found = options.unify(a, b)
    for other in found:
        assert a in combinations(b, other)
        assert other == normal(*other)
        assert len(other.source) > 1 or other.arity == 0
        assert len(other.target) > 1 or other.arity == 0 or options.bare_targets
        assert other.arity < len(other.source) or not options.lexical_sources
        assert other.arity <= options.max_nonterminals or other.arity <= a.arity
        assert occurs(other.source, a.source) and occurs(other.target, a.target)
        assert occurs(b.source, a.source) and occurs(b.target, a.target)
    assert found <= Unification(quirks=False).unify(a, b) or not options.repeated_targets


@settings(deadline=None)
@given(rules(), rules())
def test_one_replacement_is_found_again(b, c):
    """Without quirks all that was put together is taken apart, but for partly replaced repetitions and unit rules."""
    options = Unification(max_nonterminals=9, quirks=False)
    assume(len(c.source) > 1 or c.arity == 0)
    for number in range(1, b.arity + 1):
        assert c in options.unify(substitute(b, number, c), b)
    for number in range(1, c.arity + 1):
        a = substitute(c, number, b)
        span = "".join(c.target).count(chr(number))
        if span == 1:
            assert c in options.unify(a, b)


@settings(deadline=None)
@given(st.lists(rules(), max_size=6), st.lists(rules(), min_size=2, max_size=2), OPTIONS, st.data())
def test_partners_are_all_that_unify(others, pair, options, data):
    made = sorted(combinations(*pair))
    a = data.draw(st.sampled_from(made)) if made else pair[0]
    everyone = {*others, *pair}
    expected = {(b, c) for b in everyone if b != a for c in options.unify(a, b)}
    assert set(Partners(everyone).unify(options, a)) == expected


def test_of_a_long_source_only_slices_are_looked_up_that_may_be_others():
    """All slices of 300 tokens are 45,000, each of which was looked up twice, spelled out."""

    class Counted(dict):
        count = 0

        def get(self, *arguments):
            type(self).count += 1
            return super().get(*arguments)

    source = "".join(chr(FIRST + token) for token in range(300))
    a = Rule(source, source)
    b = Rule(f"{source[:140]}\1{source[150:]}", f"{source[:140]}\1{source[150:]}")
    partners = Partners([a, b, Rule(source[:2], source[:2])])
    partners._inner, partners._outer = Counted(partners._inner), Counted(partners._outer)
    inner = Rule(source[140:150], source[140:150])
    outer = Rule(f"\1{source[2:]}", f"\1{source[2:]}")
    assert {c for _, c in partners.unify(Unification(), a)} == {inner, outer}
    assert Counted.count < 2 * len(source)


def test_a_rule_is_not_its_own_partner():
    _, (rule,) = naive.read("NT_1 ### NT_1 x")
    assert not [*Partners([rule]).unify(Unification(), Rule(rule.source, rule.target))]
