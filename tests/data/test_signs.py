"""Signs set apart, and close together again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.data.signs import JOINER, apart, together
from compgen.data.vocabulary import why_not_data
from compgen.errors import DataError

SIGNS = st.text("a1ü_.,-$()[]{}\"'=:→ \u0301\u200d猫", min_size=1, max_size=9)
TOKENS = st.lists(
    st.one_of(SIGNS, st.text(min_size=1, max_size=5)).filter(lambda token: JOINER not in token), max_size=6
)


def set_apart(text, **options):
    return " ".join(apart(Dataset.from_pairs([(text.split(), ["x"])]), **options)[0].source)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SIEHT(猫.rot,Hund.rot)", "SIEHT ( 猫 . rot , Hund . rot )"),
        ('[{"op": "Öl_2", "n": 3.5}]', '[ { " op " : " Öl_2 " , " n " : 3.5 } ]'),
        ("f(-2,x-2) -2.5 2km 1.2.3", "f ( -2 , x - 2 ) -2.5 2km 1.2.3"),
        ("--2 (a)-2 -x - 2", "- - 2 ( a ) - 2 - x - 2"),
        ("lambda($0,e.US$5)", "lambda ( $0 , e . US $5 )"),
        ("cafe\u0301(x\u0301)", "cafe\u0301 ( x\u0301 )"),
        ("don't well-known", "don ' t well - known"),
        ("a ( b )", "a ( b )"),
        ("我看见Python3红的花。", "我 看 见 Python3 红 的 花 。"),
        (
            "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
            "\u0e2a \u0e27\u0e31 \u0e2a \u0e14\u0e35",
        ),
        ("ケーキを2.5", "ケ ー キ を 2.5"),
    ],
)
def test_signs_are_set_apart_and_words_and_numbers_stay_whole(text, expected):
    assert set_apart(text) == expected
    assert set_apart(expected) == expected


def test_what_stood_close_is_marked():
    assert set_apart("f(x, y) z", marked=True) == "f ￭( ￭x ￭, y ￭) z"


@given(st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=4))
def test_what_is_marked_comes_back(pairs):
    data = Dataset.from_pairs(pairs)
    try:
        marked = apart(data, marked=True)
    except DataError:
        assert any(map(why_not_data, "".join(token for pair in pairs for side in pair for token in side)))
        return
    assert together(marked) == data
    assert all(len(token.removeprefix(JOINER)) for pair in marked.pairs() for side in pair for token in side)


def test_predictions_with_marks_in_odd_places_are_joined_too():
    data = Dataset.from_pairs([([JOINER, f"{JOINER}a", f"{JOINER}b", JOINER, "c"], [])])
    assert together(data).pairs() == [(["ab", "c"], [])]


def test_data_that_are_marked_are_not_marked_again():
    data = apart(Dataset.from_pairs([(["f(x)"], ["y"])]), marked=True)
    with pytest.raises(DataError, match="which has the sign of what stood close"):
        apart(data, marked=True)


def test_a_sign_that_data_cannot_have_is_refused():
    with pytest.raises(DataError, match="found 'a→b', of which '→' would be a token, which is a special symbol"):
        apart(Dataset.from_pairs([(["a→b"], ["y"])]))


def test_an_empty_token_comes_back():
    odd = Dataset.from_pairs([(["a", "", "b(c"], ["x"])])
    assert together(apart(odd, marked=True)) == odd


def test_a_bracket_with_a_label_stays_whole_where_its_closing_one_is_a_token():
    for source, target, parted in (
        ("ซื้อนม", "[IN:BUY [SL:WHAT นม ] ]", "[IN:BUY [SL:WHAT น ม ] ]"),
        ("buy", "[IN:BUY [SL:WHAT milk]]", "[ IN : BUY [ SL : WHAT milk ] ]"),
    ):
        for marked in (False, True):
            data = Dataset.from_pairs([([source], target.split())])
            (found,) = apart(data, marked=marked).frame["target"].to_list()
            assert [token.removeprefix("￭") for token in found] == parted.split()
