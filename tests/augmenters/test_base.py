"""What all augmenters share."""

import polars as pl
import pytest

from compgen.augmenters.base import Augmenter, Options
from compgen.augmenters.registry import BUILT_IN, find, make
from compgen.data.examples import TOKENS, Dataset
from compgen.errors import ConfigError, UserError

DATA = Dataset.from_pairs([(["a"], ["A"]), (["b"], ["B"])])


class Noted(Augmenter[Options]):
    """Notes the seeds that it is given."""

    name = "noted"
    options_type = Options
    seeds: tuple[int, ...] = ()

    def learn(self, dataset, seed, watch):  # noqa: ARG002
        self.seeds += (seed,)

    def draw(self, count, seed, watch):  # noqa: ARG002
        self.seeds += (seed,)
        return pl.DataFrame({"source": [["c"]], "target": [["C"]]}, schema={"source": TOKENS, "target": TOKENS})


def test_seeds_are_zero_unless_given():
    noted = Noted().fit(DATA)
    noted.sample(1)
    noted.fit(DATA, 5).sample(1, 7)
    assert noted.seeds == (0, 0, 5, 7)


def test_the_methods_whose_samples_can_be_training_examples_say_so():
    assert {name for name in BUILT_IN if find(name).copies} == {"csl", "resample"}


def test_a_fitted_method_draws_by_other_options_but_does_not_pretend_to_have_learned_by_them():
    method = make("geca").fit(Dataset.from_pairs([(("a", "x"), ("A",)), (("b", "x"), ("B",))]))
    assert method.with_options(variants=5).options.variants == 5
    with pytest.raises(ConfigError, match="geca learns by `span`: make another with this option, and fit it"):
        method.with_options(span=2)


@pytest.mark.parametrize("name", ["csl", "resample"])
def test_what_has_no_end_is_bounded_before_memory_is(name):
    made = make(name, **({"training": None} if name == "csl" else {})).fit(
        Dataset.from_pairs([(["walk"], ["W"]), (["run"], ["R"])])
    )
    with pytest.raises(UserError, match=f"{name}: found 2,000,000,000 examples asked for, expected at most 1,000,000"):
        made.sample(2 * 10**9)


def test_what_a_failed_fit_has_lost_is_not_sampled_from():
    class Failing(Noted):
        def learn(self, dataset, seed, watch):
            super().learn(dataset, seed, watch)
            if len(dataset) < 2:
                raise UserError("too few")

    method = Failing().fit(DATA)
    with pytest.raises(UserError, match="too few"):
        method.fit(DATA[:1])
    with pytest.raises(UserError, match="fit the augmenter to a dataset before sampling from it"):
        method.sample(1)


@pytest.mark.parametrize("name", ["geca", "lexsym", "concat", "substitute"])
def test_what_is_no_row_of_samples_is_not_explained(name):
    data = Dataset.from_pairs([([one, two], [one.upper(), two.upper()]) for one in "abc" for two in "xyz"][:-1])
    method = make(name).fit(data)
    with pytest.raises(UserError, match=f"{name}: found Example, expected a row of what was made, by column"):
        method.explain(data[0])
    with pytest.raises(UserError, match=f"{name}: found no {next(iter(method.columns))}.*, expected a row of what was"):
        method.explain({})


@pytest.mark.parametrize("row", [{"template": "x", "fragment": "y"}, {"template": None, "fragment": 1}])
def test_what_geca_did_not_make_is_not_explained(row):
    method = make("geca").fit(Dataset.from_pairs([(("a", "x"), ("A",)), (("b", "x"), ("B",))]))
    for wrong in (row, {"template": "1", "fragment": "1"}):
        with pytest.raises(UserError, match=r"geca: found .*, expected a sample of what it was fitted to"):
            method.explain(wrong)


def test_settings_of_a_table_are_given_with_it():
    with pytest.raises(ConfigError, match=r"csl: overrides are for trainings: .* training={.steps.: 3000}"):
        make("csl", overrides=["training.steps=3"])
    with pytest.raises(ConfigError, match=r"no such setting; expected a table: training with steps; in Python"):
        make("csl", **{"training.steps": 3})
    assert make("csl", training={"steps": 3}).options.training.steps == 3
