"""Drawing by a whole loop gives the draws of continuous batching, and a generator uses it where it has one."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from compgen.api import Generator
from compgen.errors import BundleError
from compgen.models.backend import TorchBackend
from compgen.models.cuda_graph import TorchLoop
from compgen.runtime.bundle import Bundle
from compgen.runtime.onnx_backend import OnnxLoop
from compgen.sampling.batching import draws
from compgen.sampling.whole_loop import loop_draws
from compgen.trained.architectures import Request
from tests.export.tiny import VOCABULARY, exported, make

LOOPS = {
    "torch": lambda changes: TorchLoop(make(**changes).network, "cpu"),
    "onnx": lambda changes: OnnxLoop(Bundle.load(exported(**changes)), provider="cpu"),
}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"memories": 0, "copying": False, "feed": False},
        pytest.param({"latent": 3, "own": 4}, marks=pytest.mark.long),
    ],
    ids=str,
)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_gives_the_draws_of_continuous_batching(loop, changes):
    checkpoint = make(**changes)
    asked = {"seed": 3, "start": 5, "stop": 205, "max_length": 9, "temperature": (1.0, 0.5)}
    expected = list(draws(TorchBackend(checkpoint.network), checkpoint.pool, **asked))
    found = list(
        loop_draws(LOOPS[loop](changes), checkpoint.pool, **asked, vocabulary=99, rows=64)
    )  # the last batch is smaller
    assert [(d.index, d.tokens, d.finished, d.prototypes) for d in found] == [
        (d.index, d.tokens, d.finished, d.prototypes) for d in expected
    ]
    np.testing.assert_allclose([d.log_prob for d in found], [d.log_prob for d in expected], rtol=1e-4)
    assert {d.finished for d in found} == {True, False}
    with pytest.raises(BundleError, match="outside the vocabulary"):
        list(loop_draws(LOOPS[loop](changes), checkpoint.pool, **asked, vocabulary=4))


def test_threads_draw_one_after_the_other_by_the_loop_of_a_gpu():
    """Its state is at fixed addresses, which another thread would write over."""
    checkpoint = make()
    loop = TorchLoop(checkpoint.network, "cpu")

    def tokens(seed):
        asked = {"seed": seed, "start": 0, "stop": 200, "max_length": 9, "temperature": (1.0, 1.0)}
        return [draw.tokens for draw in loop_draws(loop, checkpoint.pool, **asked, vocabulary=99, rows=50)]

    expected = [tokens(seed) for seed in range(3)]
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(tokens, range(3))) == expected


def test_a_generator_with_a_loop_draws_by_it(monkeypatch):
    generator = Generator.load(exported(), provider="cpu")
    expected = generator.sample(draws=100, filters=["novel", "unique"]).pairs()
    loop = OnnxLoop(Bundle.load(exported()), provider="cpu")
    called = []
    monkeypatch.setattr(
        loop, "sample", lambda *inputs, sample=loop.sample: called.append(len(inputs[0])) or sample(*inputs)
    )
    monkeypatch.setattr(generator.backend, "loop", loop)
    monkeypatch.setattr(generator.backend, "step", None)
    assert generator.sample(draws=100, filters=["novel", "unique"], batch=40).pairs() == expected
    assert called == [40, 40, 20]


@pytest.mark.parametrize("how", ["threads", "loop", "beam"])
def test_rare_prototypes_are_drawn_from_however_it_is_decoded(monkeypatch, how):
    generator = Generator.load(exported(), provider="cpu")
    if how == "loop":
        monkeypatch.setattr(generator.backend, "loop", OnnxLoop(Bundle.load(exported()), provider="cpu"))
    rare = (generator.pool.tokens == VOCABULARY.encode(["c"])[0]).any(axis=1)
    for pool in (None, generator.pool.holding(rare)):
        drawn = list(generator.model.draws(Request(0, 0, 60, beam=2 if how == "beam" else None, pool=pool)))
        assert len(drawn) == 60 and all(rare[[*draw.prototypes]].any() for draw in drawn) == (pool is not None)


@pytest.mark.parametrize("loop", LOOPS)
def test_probabilities_that_are_no_numbers_are_an_error_in_a_loop(loop):
    changes = {"memories": 0, "copying": False, "feed": False}
    made = LOOPS[loop](changes)
    given = made.sample

    def spoiled(*inputs):
        tokens, log_prob = given(*inputs)
        return tokens, np.where(np.arange(len(log_prob)) == 3, np.nan, log_prob)

    made.sample = spoiled
    asked = {"seed": 3, "start": 0, "stop": 9, "max_length": 9, "temperature": (1.0, 0.5), "vocabulary": 99}
    with pytest.raises(BundleError, match="a probability that is no number"):
        list(loop_draws(made, make(**changes).pool, **asked))
