"""What sequences have in common, token by token."""

from hypothesis import given
from hypothesis import strategies as st

from compgen.comparison.differences import MOST, beside, judged, plain
from compgen.comparison.result import Changed, Origin, Shown

texts = st.lists(st.sampled_from(["a", "b", "c", "(", ")"]), max_size=12).map(" ".join)


def shown(source, *origins):
    made_from = [Origin(label=f"origin {number}", source=one, target="") for number, one in enumerate(origins)]
    return Shown(source=source, target="", made_from=made_from)


def marked(pieces):
    return " ".join(f"[{text}]" if kind == "new" else f"-{text}-" if kind == "gone" else text for text, kind in pieces)


def sources(one):
    example, origins = beside(one)
    return [marked(example.source), *(marked(origin.source) for origin in origins)]


def test_an_example_is_measured_by_the_origin_most_like_it():
    found = sources(shown("look at the red ball", "ball games are red", "look at the blue ball"))
    assert found == ["look at the [red] ball", "ball games are [red]", "look at the -blue- ball"]


def test_signs_alone_come_from_nowhere():
    assert sources(shown("a ( b )", "a b", "( )")) == ["a [(] b [)]", "a b", "( )"]


def test_an_example_without_origins_has_no_marks():
    assert sources(shown("look at")) == ["look at"]


@given(texts, texts, texts)
def test_pieces_are_the_whole_text(source, one, other):
    example, origins = beside(shown(source, one, other))
    for pair, text in zip([example, *origins], [source, one, other], strict=True):
        assert " ".join(piece.text for piece in pair.source) == text
    assert sources(shown(source, source, other))[:2] == [source, source]


@given(texts, texts)
def test_what_is_not_marked_is_in_both_in_this_order(expected, answer):
    wanted, bare, chosen = judged(Changed(source="", expected=expected, bare=answer, chosen=expected))
    assert [piece.text for piece in chosen] == ([expected] if expected else [])
    common = [" ".join(piece.text for piece in pieces if piece.kind == "same") for pieces in (wanted, bare)]
    assert common[0].split() == common[1].split()


def test_a_long_text_shows_where_it_differs():
    words = [f"word{number}" for number in range(300)]
    other = [*words[:150], "else", *words[151:]]
    example, (origin,) = beside(shown(" ".join(words), " ".join(other)))
    assert "[word150]" in marked(example.source) and "-else-" in marked(origin.source)
    assert "[… 138 tokens …]" in marked(example.source)
    assert sum(len(piece.text) for piece in example.source) < MOST


def test_a_text_without_spaces_is_cut():
    (start, rest) = plain("x" * 1000)
    assert start == ("x" * MOST, "same") and rest == ("[… 600 characters more]", "cut")
    assert plain("  ") == []
