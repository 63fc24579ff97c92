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
