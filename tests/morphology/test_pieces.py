"""Words as rows of clusters and tags."""

from hypothesis import given
from hypothesis import strategies as st

from compgen.morphology.pieces import Pieces, numbers, rectangle

SPELLINGS = [("a",), ("b",), ("a", "b"), ("b", "a", "a"), ("N;PL",)]
PIECES = Pieces.of(SPELLINGS)
WORD = st.lists(st.integers(1, len(SPELLINGS)), max_size=4)


def spelled(word: list[int]) -> list[str]:
    return [token for piece in word for token in SPELLINGS[piece - 1]]


@given(st.lists(WORD, min_size=1, max_size=6), st.lists(WORD, min_size=1, max_size=6))
def test_words_are_spelled_piece_by_piece_block_after_block(first, second):
    blocks = [rectangle(words, len(SPELLINGS)) for words in (first, second)]
    assert PIECES.lists(blocks).to_list() == [spelled(word) for word in first + second]


@given(st.lists(st.tuples(WORD, WORD), min_size=2, max_size=6))
def test_keys_are_those_of_the_tokens_however_they_are_cut_into_pieces(pairs):
    source, target = (rectangle([pair[side] for pair in pairs], len(SPELLINGS)) for side in (0, 1))
    keys = PIECES.keys(source, target).tolist()
    tokens = [(tuple(spelled(source)), tuple(spelled(target))) for source, target in pairs]
    assert len(set(keys)) == len(set(tokens)) == len(set(zip(keys, tokens, strict=True)))


def test_numbers_leave_0_to_the_filling():
    assert numbers(["x", "y"]) == {"x": 1, "y": 2}
    assert rectangle([[], [1, 300]], 300).tolist() == [[0, 0], [1, 300]]
