"""A network whose weights are no numbers gives no samples and no answers, whatever decodes."""

import numpy as np
import pytest
import torch

from compgen.data.vocabulary import EOS_ID
from compgen.errors import BundleError
from compgen.models.backend import TorchBackend, TorchTransformer
from compgen.models.config import TransformerNetwork
from compgen.models.transformer import Transformer
from compgen.runtime.beam import beam, beam_over
from compgen.runtime.predict import Recurrent, greedy, losses
from compgen.sampling.batching import draws
from compgen.sampling.direct import Direct
from tests.export.tiny import VOCABULARY, make

SOURCES = [[5, 6], [7]]
PAIRS = [([5, 6], [8]), ([7], [9, 9])]


def spoiled(kind="generator"):
    checkpoint = make(kind)
    checkpoint.network.combine.bias.data[0] = float("nan")
    return TorchBackend(checkpoint.network, name="mine.pt"), checkpoint


def transformer():
    torch.manual_seed(0)
    network = Transformer(TransformerNetwork(size=8, heads=2, layers=1, inner=8), len(VOCABULARY)).eval()
    next(network.parameters()).data[:] = float("nan")
    return TorchTransformer(network, name="mine.pt")


def generated(work):
    backend, checkpoint = spoiled()
    return work(backend, checkpoint.pool)


WAYS = {
    "sampling": lambda: generated(
        lambda backend, pool: list(draws(backend, pool, seed=0, start=0, stop=3, max_length=9, temperature=(1.0, 1.0)))
    ),
    "beam over prototypes": lambda: generated(
        lambda backend, pool: beam_over(backend, pool.tokens[pool.choose(0, np.arange(2))].astype(np.int64), 2, 9)
    ),
    "direct": lambda: generated(lambda backend, pool: Direct(backend, pool, 9).answers(SOURCES)),
    "greedy": lambda: greedy(Recurrent(spoiled("predictor")[0]), SOURCES, 9),
    "beam": lambda: beam(Recurrent(spoiled("predictor")[0]), SOURCES, 3, 9),
    "losses": lambda: losses(Recurrent(spoiled("predictor")[0]), PAIRS),
    "a Transformer's answers": lambda: greedy(transformer(), SOURCES, 9),
    "a Transformer's beam": lambda: beam(transformer(), SOURCES, 3, 9),
    "a Transformer's losses": lambda: losses(transformer(), PAIRS),
}


@pytest.mark.parametrize("way", WAYS)
def test_probabilities_that_are_no_numbers_are_an_error(way):
    with pytest.raises(BundleError, match=r"^mine\.pt: the network gives a probability that is no number$"):
        WAYS[way]()


def test_whole_networks_are_not():
    backend = TorchBackend(make("predictor").network)
    assert all(EOS_ID not in tokens for tokens, _ in greedy(Recurrent(backend), SOURCES, 9))
