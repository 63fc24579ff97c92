"""Predictors that answer together: what each proposes, ranked by the mean of all."""

import numpy as np
import pytest

import compgen
from compgen.data.vocabulary import SEP, SPARES
from compgen.errors import DataError, Remark, UserError
from compgen.trained.committee import Committee
from compgen.trained.predictor import EXAMPLES, Predictor
from tests.export.tiny import make


class Member(Predictor):
    """Knows log-probabilities of the targets of any source, and remarks what it is told to."""

    def __init__(self, known, remark=None):
        self.known, self.remark = known, remark

    def best(self, sources, count, beam=None, batch=256, unknown=False):  # noqa: ARG002
        ranked = sorted(self.known.items(), key=lambda one: -one[1])[:count]
        return [[(target.split(), score) for target, score in ranked] for _ in sources]

    def losses(self, dataset, batch=256, watch=None):  # noqa: ARG002
        pairs = dataset.pairs()
        return np.array([-self.known[" ".join(target)] / (len(target) + 1) for _, target in pairs])

    def remarks(self, sources):  # noqa: ARG002
        return [] if self.remark is None else [self.remark]


def test_what_all_find_probable_wins_over_what_one_is_sure_of():
    sure = Member({"a": -0.1, "b c": -3.0, "d": -9.0})
    other = Member({"a": -8.0, "b c": -0.5, "d": -1.0})
    third = Member({"a": -7.0, "b c": -1.0, "d": -0.9})
    together = Committee([sure, other, third])
    (ranked,) = together.best([["x"]], 3)
    # Of each: the mean over the three, by hand.
    assert [target for target, _ in ranked] == [["b", "c"], ["d"], ["a"]]
    assert [score for _, score in ranked] == pytest.approx([-4.5 / 3, -10.9 / 3, -15.1 / 3])
    assert together.predict([["x"], ["y"]]) == [["b", "c"]] * 2


def test_only_what_a_member_proposes_is_ranked_and_each_target_once():
    first = Member({"a": -1.0, "b": -2.0, "c": -3.0})
    second = Member({"a": -1.0, "c": -2.0, "b": -2.5})
    (ranked,) = Committee([first, second]).best([["x"]], 2)
    assert [target for target, _ in ranked] == [["a"], ["b"]]  # c was proposed, too: -2.5 on average; b has -2.25
    (ranked,) = Committee([first, second]).best([["x"]], 1)
    assert [target for target, _ in ranked] == [["a"]]


def test_losses_are_the_mean_and_remarks_are_said_once():
    data = compgen.Dataset.from_pairs([(["x"], ["a"]), (["x"], ["b", "b"])])
    members = [Member({"a": -2.0, "b b": -3.0}, "odd"), Member({"a": -4.0, "b b": -6.0}, "odd"), Member({})]
    assert Committee(members[:2]).losses(data).tolist() == [1.5, 1.5]
    assert Committee(members).remarks([["x"]]) == ["odd"]
    assert Committee(members, ["a", "b", "c"]).remarks([["x"]]) == ["a: odd", "b: odd"]


def test_progress_is_that_of_all_members_together():
    class Told(Member):
        def losses(self, dataset, batch=256, watch=None):
            for done in range(batch, len(dataset) + batch, batch):
                watch(min(done, len(dataset)))
            return super().losses(dataset)

    data, heard = compgen.Dataset.from_pairs([(["x"], ["a"])] * 4), []
    Committee([Told({"a": -1.0})] * 2).losses(data, 2, heard.append)
    assert heard == [1, 2, 3, 4]


def test_members_that_count_otherwise_are_ranked_by_whole_targets():
    """A pretrained member's losses are a piece, not a token, which says nothing of how probable a target is."""

    class Pieces(Member):
        def losses(self, dataset, batch=256, watch=None):  # noqa: ARG002
            return np.array([0.1 if target == ["a"] else 9.0 for _, target in dataset.pairs()])

        def log_probs(self, dataset, batch=256):  # noqa: ARG002
            return np.array([self.known[" ".join(target)] for _, target in dataset.pairs()])

    member = Pieces({"b c": -1.0, "a": -2.0})
    together = Committee([member, member])
    assert together.best([["x"]], 2) == member.best([["x"]], 2)
    other = Committee([together, Member({"b c": -2.0, "a": -6.0})])  # a committee may be a member, too
    assert other.best([["x"]], 2) == [[(["b", "c"], -1.5), (["a"], -4.0)]]


def test_a_member_may_write_special_symbols(tmp_path):
    """One that has learned little does; as ids, and so in the C++ runner, they are tokens as others are."""
    tiny = make("predictor")
    tiny.save(tmp_path / "p.pt")
    member = Predictor.load(tmp_path / "p.pt")
    written = [[SEP, "a"], ["b", SPARES[0]], ["b"]]
    proposing = Member({" ".join(target): -0.1 for target in written})
    proposing.losses = lambda dataset, batch: np.zeros(len(dataset))
    (ranked,) = Committee([proposing, member]).best([["a", "b"]], 3)
    assert len(ranked) == 3 and all(np.isfinite(score) for _, score in ranked)
    data = compgen.Dataset.from_pairs([(["a", "b"], target) for target in written])
    assert np.isfinite(member.losses(data)).all() and len({*member.losses(data).tolist()}) == 3
    with pytest.raises(DataError, match="'→' is a special symbol"):
        member.predict([[SEP]], unknown=True)


@pytest.mark.parametrize("count", [0, 1])
def test_one_is_no_committee(count):
    with pytest.raises(UserError, match=f"found {count} predictors to answer together, expected two or more"):
        Committee([Member({})] * count)


def test_what_a_member_learned_from_is_known():
    data = compgen.Dataset.from_pairs([(["x"], ["a"])])
    learnt = Member({"a": -1.0})
    learnt.trained_on = {EXAMPLES: data.digest()}
    together = Committee([Member({"a": -1.0}), learnt])
    for evaluate in (together.evaluate, lambda data: compgen.evaluate(together, data), learnt.evaluate):
        with pytest.warns(Remark, match="these are the examples it was trained on: the score measures memory") as said:
            evaluate(data)
        assert len(said) == 1 and said[0].filename == __file__
    assert Committee([learnt, learnt]).learnt_from(data) and not together.learnt_from(data[:0])


def test_what_is_no_list_of_predictors_with_their_names_is_refused():
    with pytest.raises(UserError, match="found Member, expected a list of predictors"):
        Committee(Member({}))
    with pytest.raises(UserError, match="found 1 names of 2 predictors: expected one for each, or none"):
        Committee([Member({})] * 2, ["a"])
