"""Synthetic examples that predictors confirm which have not learnt them."""

import numpy as np
import polars as pl
import pytest

from compgen import confirm
from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.errors import DataError, Remark
from compgen.trained.predictor import Predictor
from compgen.training import confirmation
from compgen.training.config import Seq2SeqConfig
from compgen.training.confirmation import confirmed
from tests.training.test_predictors import SHORT, TINY

VERBS = [*"abcdefgh"]
ORIGINAL = Dataset.from_pairs([([verb], [verb.upper()]) for verb in VERBS])


def doubled(verb, wrong=False):
    """A source and its target, which is the verb twice, or once if it is wrong."""
    return ["twice", verb], [verb.upper()] * (1 if wrong else 2)


@pytest.fixture
def learners(monkeypatch):
    """The trainings, as they are asked for; what they train answers all sources as the first of these says."""
    trained = {}

    def train(*arguments, **options):
        out = arguments[2]
        trained[out] = options
        out.touch()

    class Learner:
        def __init__(self, out):
            self.out = out

        def predict(self, sources, unknown):
            assert unknown
            return [doubled(verb)[1] for _, verb in sources]

    monkeypatch.setattr(confirmation, "train_predictor", train)
    monkeypatch.setattr(Predictor, "load", Learner)
    return trained


@pytest.mark.parametrize("parts", [2, 3, 8])
def test_each_source_is_judged_once_by_what_has_not_learnt_it(learners, tmp_path, parts):
    made = Dataset.from_pairs([doubled(verb, wrong) for verb in VERBS for wrong in (verb == "c", False)])
    right = confirmed(ORIGINAL, made, load_config(Seq2SeqConfig, "seq2seq_small"), tmp_path, parts=parts, seed=3)
    assert np.flatnonzero(~right).tolist() == [2 * VERBS.index("c")]
    learnt = [{source[1] for source, _ in options["augmented"].pairs()} for options in learners.values()]
    left_out = [set(VERBS) - some for some in learnt]
    assert len(left_out) == parts and set().union(*left_out) == set(VERBS)
    assert sum(map(len, left_out)) == len(VERBS)  # no source is in two parts, even with two targets
    assert max(map(len, left_out)) - min(map(len, left_out)) <= 1
    assert {options["seed"] for options in learners.values()} == {3}


def test_finished_predictors_serve_the_same_call_and_no_other(learners, tmp_path):
    made = Dataset.from_pairs([doubled(verb) for verb in VERBS])
    config = load_config(Seq2SeqConfig, "seq2seq_small")
    confirmed(ORIGINAL, made, config, tmp_path)
    assert len(learners) == 2
    next(tmp_path.glob("*/part-1.pt")).unlink()
    learners.clear()
    confirmed(ORIGINAL, made, config, tmp_path)
    assert len(learners) == 1
    others = [
        (ORIGINAL, made, load_config(Seq2SeqConfig, "seq2seq_small", ["p_aug=0.3"]), {}),
        (ORIGINAL, made, config, {"seed": 1}),
    ]
    others += [(made, made, config, {}), (ORIGINAL, made[:-1], config, {})]
    for dataset, augmented, settings, options in others:
        learners.clear()
        confirmed(dataset, augmented, settings, tmp_path, **options)
        assert len(learners) == 2


def test_fewer_sources_than_parts(tmp_path):
    made = Dataset.from_pairs([doubled("a"), doubled("a", wrong=True)])
    with pytest.raises(DataError, match="1 augmented sources: expected at least 2"):
        confirmed(ORIGINAL, made, load_config(Seq2SeqConfig, "seq2seq_small"), tmp_path)


def test_what_contradicts_the_other_examples_is_left_out():
    made = Dataset.from_pairs([doubled(verb, verb in "bg") for verb in VERBS])
    original = ORIGINAL + Dataset.from_pairs([(["thrice", verb], [verb.upper()] * 3) for verb in VERBS])
    quick = ["optimisation.steps=300", "optimisation.batch=8", "optimisation.learning_rate=0.01", "held_out=0"]
    sizes = [f"network.{name}=24" for name in ("hidden", "encoder_hidden", "embedding", "output", "attention")]
    kept = confirm(original, made, overrides=[*sizes, *quick], parts=2, quiet=True)
    verbs = {source[1] for source, _ in kept.pairs()}
    assert verbs.isdisjoint("bg") and len(verbs) >= 4


@pytest.mark.usefixtures("learners")
def test_few_that_are_confirmed_are_remarked_on():
    made = Dataset.from_pairs([doubled(verb, wrong=verb > "c") for verb in VERBS])
    with pytest.warns(Remark, match="3 of 8 examples are confirmed: either most are wrong"):
        assert len(confirm(ORIGINAL, made)) == 3


@pytest.mark.usefixtures("learners")
def test_further_columns_stay():
    made = Dataset.from_pairs([doubled(verb) for verb in VERBS])
    made = Dataset(made.frame.with_columns(pl.Series("method", [*"xxxxyyyy"])))
    assert confirm(ORIGINAL, made).frame["method"].to_list() == [*"xxxxyyyy"]


def test_untrained_predictors_confirm_nothing():
    made = Dataset.from_pairs([doubled(verb) for verb in VERBS])
    with pytest.warns(Remark, match="0 of 8 examples are confirmed"):
        assert len(confirm(ORIGINAL, made, overrides=[*TINY, *SHORT], quiet=True)) == 0
