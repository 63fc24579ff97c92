from collections import namedtuple

import pytest

from compgen.data.examples import Dataset
from compgen.errors import UserError
from compgen.geca.augmenter import Geca
from compgen.geca.compose import Composer
from compgen.geca.licence import licence

PAIRS = [("dax", "DAX"), ("jog", "JOG"), ("jog and jog", "JOG JOG"), ("fast jog", "JOG NOW")]
SENTENCES = [
    *("the big wug sang", "the big cat sang", "one cat sang here", "one dog sang there", "the big dog ran"),
    *("a big cat sang here", "one big cat sang", "my big wug sang"),
]


Licence = namedtuple("Licence", "made shares lends hosts")


def plain(pieces):
    return " ".join(text for text, _ in pieces)


def gaps(pieces):
    return [(text, gap) for text, gap in pieces if gap >= 0]


def test_an_empty_token_is_not_where_source_and_target_meet():
    examples = [(["", "dax"], ["DAX"]), (["", "jog"], ["JOG"]), (["", "jog", "twice"], ["JOG", "JOG"])]
    augmenter = Geca().fit(Dataset.from_pairs(examples))
    (row,) = augmenter.sample().frame.iter_rows(named=True)
    reason = Licence(*augmenter.explain(row))
    assert reason.made.source == [("", -1), ("dax", 0), ("twice", -1)]
    assert reason.made.target == [("DAX", 1), ("DAX", 1)]


def test_the_licence_of_an_example_is_made_of_training_examples():
    augmenter = Geca().fit(Dataset.from_pairs((a.split(), b.split()) for a, b in PAIRS))
    frame = augmenter.sample().frame
    found = {}
    for row in frame.iter_rows(named=True):
        reason = Licence(*augmenter.explain(row))
        found[" ".join(row["source"])] = reason
        assert plain(reason.made.source) == " ".join(row["source"])
        assert plain(reason.made.target) == " ".join(row["target"])
        for marked in (reason.shares, reason.hosts, reason.lends):
            assert (plain(marked.source), plain(marked.target)) in PAIRS
        assert gaps(reason.shares.source) == gaps(reason.hosts.source)[:1]
    reason = found["dax and dax"]
    assert gaps(reason.made.source) == [("dax", 0), ("dax", 0)]
    assert gaps(reason.made.target) == [("DAX", 1), ("DAX", 1)]
    assert plain(reason.shares.source) == "jog"
    assert plain(reason.lends.source) == "dax"
    assert plain(reason.hosts.source) == "jog and jog"


def test_a_template_of_several_examples_is_shown_by_one_with_the_fragment_that_is_shared():
    pairs = [*PAIRS, ("hop", "HOP"), ("hop and hop", "HOP HOP")]
    augmenter = Geca().fit(Dataset.from_pairs((a.split(), b.split()) for a, b in pairs))
    reasons = [Licence(*augmenter.explain(row)) for row in augmenter.sample().frame.iter_rows(named=True)]
    assert "dax and dax" in {plain(reason.made.source) for reason in reasons}
    for reason in reasons:
        assert gaps(reason.shares.source) == gaps(reason.hosts.source)[:1]


def test_what_fills_a_gap_may_be_longer():
    pairs = [("run fast", "RUN NOW"), ("jog", "JOG"), ("jog and jog then stop", "JOG JOG STOP")]
    augmenter = Geca(span=2).fit(Dataset.from_pairs((a.split(), b.split()) for a, b in pairs))
    (row,) = (one for one in augmenter.sample().frame.iter_rows(named=True) if "and" in one["source"])
    made = Licence(*augmenter.explain(row)).made
    assert made.source == [("run fast", 0), ("and", -1), ("run fast", 0), ("then", -1), ("stop", -1)]
    assert made.target == [("RUN NOW", 1), ("RUN NOW", 1), ("STOP", -1)]


def test_samples_of_all_seeds_have_a_licence_where_the_seed_says_which_templates_are_reached():
    pairs = [("jump", "JUMP"), ("walk", "WALK"), *((f"walk {word}", f"WALK {word.upper()}") for word in "abcdefgh")]
    augmenter = Geca(reach=3).fit(Dataset.from_pairs((a.split(), b.split()) for a, b in pairs))
    for seed in range(9):
        for row in augmenter.sample(seed=seed).frame.iter_rows(named=True):
            assert plain(Licence(*augmenter.explain(row)).made.source) == " ".join(row["source"])


@pytest.mark.parametrize("mode", ["published", "reference"])
def test_sentences_and_windows(mode):
    augmenter = Geca(mode=mode, span=2, spans=1, window=1).fit(
        Dataset.from_pairs((line.split(), []) for line in SENTENCES)
    )
    frame = augmenter.sample().frame
    for row in frame.iter_rows(named=True):
        reason = Licence(*augmenter.explain(row))
        assert plain(reason.made.source) == " ".join(row["source"]) not in SENTENCES
        assert reason.made.target == []
        assert {plain(marked.source) for marked in (reason.shares, reason.hosts, reason.lends)} <= set(SENTENCES)
        assert gaps(reason.lends.source) == gaps(reason.made.source)
        assert reason.shares.source != reason.hosts.source


def test_what_nothing_licenses_has_no_explanation():
    augmenter = Geca().fit(Dataset.from_pairs((a.split(), b.split()) for a, b in PAIRS))
    with pytest.raises(ValueError, match="no licence"):
        licence(Composer(augmenter.tables, augmenter.options, 0), 1, 2)


@pytest.mark.parametrize("template", ["-1", "f" * 20, "no hash", None])
def test_what_is_no_sample_is_not_explained(template):
    augmenter = Geca().fit(Dataset.from_pairs((a.split(), b.split()) for a, b in PAIRS))
    row = augmenter.sample().frame.row(0, named=True)
    with pytest.raises(UserError, match="expected a sample of what it was fitted to"):
        augmenter.explain(row | {"template": template})
