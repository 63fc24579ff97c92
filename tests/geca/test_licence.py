import pytest

from compgen.data.examples import Dataset
from compgen.geca.augmenter import Geca
from compgen.geca.compose import Composer, Drawing
from compgen.geca.licence import explain
from compgen.geca.tables import Config

PAIRS = [("dax", "DAX"), ("jog", "JOG"), ("jog and jog", "JOG JOG"), ("fast jog", "JOG NOW")]
SENTENCES = [
    *("the big wug sang", "the big cat sang", "one cat sang here", "one dog sang there", "the big dog ran"),
    *("a big cat sang here", "one big cat sang", "my big wug sang"),
]


def plain(pieces):
    return " ".join(text for text, _ in pieces)


def gaps(pieces):
    return [(text, gap) for text, gap in pieces if gap >= 0]


def test_an_empty_token_is_not_where_source_and_target_meet():
    examples = [(["", "dax"], ["DAX"]), (["", "jog"], ["JOG"]), (["", "jog", "twice"], ["JOG", "JOG"])]
    augmenter = Geca().fit(Dataset.from_pairs(examples))
    (row,) = augmenter.sample().frame.iter_rows(named=True)
    licence = explain(Composer(augmenter.tables, Drawing(), 0), row["template"], row["fragment"])
    assert licence.made.source == [("", -1), ("dax", 0), ("twice", -1)]
    assert licence.made.target == [("DAX", 1), ("DAX", 1)]


def test_the_licence_of_an_example_is_made_of_training_examples():
    augmenter = Geca().fit(Dataset.from_pairs((a.split(), b.split()) for a, b in PAIRS))
    frame = augmenter.sample().frame
    found = {}
    for row in frame.iter_rows(named=True):
        licence = explain(Composer(augmenter.tables, Drawing(), 0), row["template"], row["fragment"])
        found[" ".join(row["source"])] = licence
        assert plain(licence.made.source) == " ".join(row["source"])
        assert plain(licence.made.target) == " ".join(row["target"])
        for marked in (licence.shares, licence.hosts, licence.lends):
            assert (plain(marked.source), plain(marked.target)) in PAIRS
        assert gaps(licence.shares.source) == gaps(licence.hosts.source)[:1]
    licence = found["dax and dax"]
    assert gaps(licence.made.source) == [("dax", 0), ("dax", 0)]
    assert gaps(licence.made.target) == [("DAX", 1), ("DAX", 1)]
    assert plain(licence.shares.source) == "jog"
    assert plain(licence.lends.source) == "dax"
    assert plain(licence.hosts.source) == "jog and jog"


@pytest.mark.parametrize("mode", ["published", "reference"])
def test_sentences_and_windows(mode):
    config = Config(mode, span=2, spans=1, window=1)
    augmenter = Geca(config).fit(Dataset.from_pairs((line.split(), []) for line in SENTENCES))
    frame = augmenter.sample().frame
    for row in frame.iter_rows(named=True):
        licence = explain(Composer(augmenter.tables, Drawing(), 0), row["template"], row["fragment"])
        assert plain(licence.made.source) == " ".join(row["source"]) not in SENTENCES
        assert licence.made.target == []
        assert {plain(marked.source) for marked in (licence.shares, licence.hosts, licence.lends)} <= set(SENTENCES)
        assert gaps(licence.lends.source) == gaps(licence.made.source)
        assert licence.shares != licence.hosts


def test_what_nothing_licenses_has_no_explanation():
    augmenter = Geca().fit(Dataset.from_pairs((a.split(), b.split()) for a, b in PAIRS))
    with pytest.raises(ValueError, match="no licence"):
        explain(Composer(augmenter.tables, Drawing(), 0), 1, 2)
