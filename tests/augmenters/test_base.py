"""What all augmenters share."""

import polars as pl

from compgen.augmenters.base import Augmenter, Options
from compgen.augmenters.registry import BUILT_IN, find
from compgen.data.examples import TOKENS, Dataset

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
