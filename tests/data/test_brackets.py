from hypothesis import given
from hypothesis import strategies as st

from compgen.data.brackets import balanced, labelled


@given(st.text("()[]{}x", max_size=8))
def test_brackets_are_balanced_if_pairs_can_be_taken_out_until_none_is_left(text):
    left = text.replace("x", "")
    for _ in text:
        left = left.replace("()", "").replace("[]", "").replace("{}", "")
    assert balanced(text) == (not left)


def test_depth_costs_no_more_than_length():
    assert balanced("(" * 10**6 + ")" * 10**6) and not balanced("(" * 10**6 + ")" * (10**6 - 1))


def test_brackets_have_labels_where_their_closing_ones_are_tokens():
    assert labelled({"[SL:TASK", "[IN:A", "]", "buy", "[", "", "[1", "[a]", "[x(y", "(NP"}) == {"[SL:TASK", "[IN:A"}
    assert labelled({"(lambda", "$0))", "[a"}) == set()
