import pytest

from compgen.augmenters import concat
from compgen.augmenters.concat import Concat, first_numbers
from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.errors import DataError, ExhaustedError, UserError

DATA = Dataset.from_pairs([(["a"], ["A"]), (["b", "c"], ["B"]), (["a"], ["A"])])


def test_all_pairs_come_once():
    made = Concat().fit(DATA).sample(4).pairs()
    assert sorted(made) == [
        (["a", "|", "a"], ["A", "|", "A"]),
        (["a", "|", "b", "c"], ["A", "|", "B"]),
        (["b", "c", "|", "a"], ["B", "|", "A"]),
        (["b", "c", "|", "b", "c"], ["B", "|", "B"]),
    ]


def test_the_order_of_the_data_does_not_matter_and_the_seed_does():
    reverse = Dataset(DATA.frame.reverse())
    assert Concat().fit(DATA).sample(2, seed=3).pairs() == Concat().fit(reverse).sample(2, seed=3).pairs()
    assert len({str(Concat().fit(DATA).sample(1, seed).pairs()) for seed in range(20)}) > 1


@pytest.fixture
def few_at_a_time(monkeypatch):
    monkeypatch.setattr(concat, "LISTED", 1000)


@pytest.mark.usefixtures("few_at_a_time")
@pytest.mark.parametrize("below", [100, 1001])
def test_fewer_numbers_are_the_first_of_more_and_all_as_probable(below):
    most = first_numbers(below, 100, stream(Purpose.CONCATENATION, 3))
    assert sorted(set(most)) == sorted(most) and len(most) == 100 and min(most) >= 0 and max(most) < below
    assert [*first_numbers(below, 40, stream(Purpose.CONCATENATION, 3))] == [*most[:40]]
    means = [first_numbers(below, 20, stream(Purpose.CONCATENATION, seed)).mean() for seed in range(50)]
    assert 0.4 * below < sum(means) / len(means) < 0.6 * below


@pytest.mark.usefixtures("few_at_a_time")
def test_more_than_are_drawn_at_a_time_are_distinct():
    found = first_numbers(1001, 1001, stream(Purpose.CONCATENATION, 3))
    assert sorted(found) == list(range(1001))


def test_sentences_and_no_separator():
    sentences = Dataset.from_pairs([(["a"], [])])
    assert Concat().fit(sentences).sample(1).pairs() == [(["a", "|", "a"], [])]
    assert Concat(separator="").fit(sentences).sample(1).pairs() == [(["a", "a"], [])]


def test_what_cannot_be_is_said():
    with pytest.raises(UserError, match="separator </s>"):
        Concat(separator="</s>").fit(DATA)
    with pytest.raises(UserError, match="separator 'and then': expected one token"):
        Concat(separator="and then").fit(DATA)
    for separator in ("\x01", "\udc80"):  # files could not hold it, or could not be read again
        with pytest.raises(UserError, match="has a control character, or half of a surrogate pair"):
            Concat(separator=separator).fit(DATA)
    with pytest.raises(UserError, match="fit"):
        Concat().sample(1)
    with pytest.raises(DataError, match="expected a source and a target in all"):
        Concat().fit(Dataset.from_pairs([(["a"], ["A"]), (["b"], [])]))
    with pytest.raises(DataError, match="no example"):
        Concat().fit(Dataset.from_pairs([]))
    for count, seed in ((-1, 0), (1, -1), (1, 2**64)):
        with pytest.raises(UserError, match=f"concat: count {count}, seed {seed}: expected"):
            Concat().fit(DATA).sample(count, seed)


def test_where_there_are_fewer_pairs_all_of_them_are_made():
    fitted = Concat().fit(DATA)
    assert len(fitted.sample(5)) == len(fitted.sample()) == 4
    assert fitted.described() == "4 examples, fewer than the usual 1,000: 2 distinct examples have no more pairs"
    fitted.sample(5)
    assert fitted.described() == "4 examples of 5 asked for: 2 distinct examples have no more pairs"
    fitted.sample(4)
    assert "why" not in fitted.report()
    many = Concat().fit(Dataset.from_pairs([([str(n)], ["x"]) for n in range(1001)]))
    with pytest.raises(ExhaustedError, match="1,001 distinct examples give 1,002,001 pairs, fewer than 2,000,000"):
        many.sample(2_000_000)
