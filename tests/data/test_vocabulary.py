"""The vocabulary: fixed special symbols, stable ids, errors that name the token."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data import vocabulary
from compgen.data.vocabulary import SPECIALS, Vocabulary
from compgen.errors import DataError

tokens = st.text(min_size=1).filter(lambda token: token not in SPECIALS)


def test_special_symbols_hold_the_first_ids():
    vocabulary_ = Vocabulary.of([["walk", "jump"], ["jump"]])
    assert vocabulary_.tokens == ("<pad>", "<s>", "</s>", "→", "<unk>", "jump", "walk")
    ids = (vocabulary.PAD_ID, vocabulary.BOS_ID, vocabulary.EOS_ID, vocabulary.SEP_ID, vocabulary.UNK_ID)
    assert ids == (0, 1, 2, 3, 4)
    assert vocabulary_.decode(ids) == [
        vocabulary.PAD,
        vocabulary.BOS,
        vocabulary.EOS,
        vocabulary.SEP,
        vocabulary.UNK,
    ]
    assert len(vocabulary_) == 7
    assert "jump" in vocabulary_
    assert "run" not in vocabulary_


@given(st.lists(st.lists(tokens)))
def test_decoding_undoes_encoding(sentences):
    made = Vocabulary.of(sentences)
    for sentence in sentences:
        assert made.decode(made.encode(sentence)) == sentence


@given(st.lists(tokens), st.randoms())
def test_the_order_of_the_data_does_not_matter(sentence, random):
    shuffled = random.sample(sentence, len(sentence))
    assert Vocabulary.of([sentence]) == Vocabulary.of([[token] for token in shuffled])
    assert Vocabulary(Vocabulary.of([sentence]).tokens) == Vocabulary.of([sentence])


def test_an_unknown_token_is_named_with_its_neighbours():
    with pytest.raises(DataError, match=r"unknown token 'jmup'.*did you mean 'jump'"):
        Vocabulary.of([["jump", "walk"]]).encode(["walk", "jmup"])


def test_unknown_words_borrow_spares():
    made = Vocabulary.of([["walk", "to"]], spares=True)
    ids, lent = made.lend(["walk", "utah", "to", "ohio", "utah"])
    assert made.decode(ids) == ["walk", "<unk1>", "to", "<unk2>", "<unk1>"]
    assert made.decode(ids, lent) == ["walk", "utah", "to", "ohio", "utah"]
    many = [f"w{number}" for number in range(10)]
    assert made.decode(*made.lend(many)) == [*many[:8], "<unk>", "<unk>"]
    assert Vocabulary.of([["walk"]]).lend(["walk", "utah"]) == ([5, 4], {})
    assert Vocabulary.of([["<unk1>"]]).lend(["<unk1>"]) == ([5], {})  # no spare is made, so it is a word like others
    for special in ("<unk1>", "<s>"):
        with pytest.raises(DataError, match="is a special symbol"):
            made.lend([special])
        assert made.decode(made.read([special], {})) == [special]  # as a predictor may write it
    with pytest.raises(DataError, match="'<unk8>' is a special symbol"):
        Vocabulary.of([["<unk8>"]], spares=True)


@pytest.mark.parametrize("special", SPECIALS)
def test_special_symbols_cannot_stand_in_data(special):
    with pytest.raises(DataError, match=f"'{special}' is a special symbol"):
        Vocabulary.of([["walk", special]])
    with pytest.raises(DataError, match=f"'{special}' is a special symbol"):
        Vocabulary.of([["walk"]]).encode([special])


@pytest.mark.parametrize("number", [-1, 6])
def test_an_id_outside_is_refused(number):
    with pytest.raises(DataError, match=f"id {number} is outside the vocabulary, which has ids 0 to 5"):
        Vocabulary.of([["walk"]]).decode([number])


@pytest.mark.parametrize(
    ("full", "message"),
    [
        ([], "begins with .*: found nothing"),
        (["walk", *SPECIALS], "begins with .*: found 'walk'"),
        ([*SPECIALS, "walk", "run", "walk"], "found 'walk' more than once"),
        ([*SPECIALS, "<pad>"], "found '<pad>' more than once"),
        ([*SPECIALS, 5], "text in UTF-8: found a token that is none"),
        ([*SPECIALS, "\ud800"], "text in UTF-8: found a token that is none"),
    ],
)
def test_a_full_list_is_checked(full, message):
    with pytest.raises(DataError, match=message):
        Vocabulary(full)
