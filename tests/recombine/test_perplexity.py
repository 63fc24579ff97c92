import math

import numpy as np
import pytest
import torch

from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError
from compgen.recombine.neighborhoods import NeighborhoodConfig, build
from compgen.recombine.perplexity import bound
from tests.export.tiny import SEQUENCES, VOCABULARY, make

NEW = [[5, 7, 3, 8, 10], [7, 6, 3, 10, 9]]


def as_dataset(sequences):
    decode = VOCABULARY.decode
    return Dataset.from_pairs([(decode(s[: s.index(3)]), decode(s[s.index(3) + 1 :])) for s in sequences])


@torch.no_grad()
@pytest.mark.parametrize("prototypes", [1, 2])
def test_the_bound_sums_over_the_neighborhood_and_divides_by_all_tuples(prototypes):
    checkpoint = make(memories=prototypes)
    checkpoint.config["neighborhood"] = {"kind": "long-short", "delta": 0.2, "cover": False}
    config = NeighborhoodConfig(**checkpoint.config["neighborhood"])
    rows = build([*SEQUENCES, *NEW], VOCABULARY, prototypes, config, 0, pool=len(SEQUENCES))
    assert (rows[:, 1:] < len(SEQUENCES)).all()
    total = tokens = 0
    for example, sequence in enumerate(NEW, start=len(SEQUENCES)):
        mine = rows[rows[:, 0] == example]
        if not len(mine):
            continue
        each = []
        for row in mine[:, 1:]:
            longest = max(len(SEQUENCES[k]) for k in row) + 1
            memory = torch.tensor([[[*SEQUENCES[k], 2] + [0] * (longest - len(SEQUENCES[k]) - 1) for k in row]])
            each.append(float(checkpoint.network.log_likelihood(torch.tensor([[1, *sequence, 2]]), memory).sum()))
        total += prototypes * math.log(len(SEQUENCES)) - np.logaddexp.reduce(each)
        tokens += len(sequence) + 1
    found = bound(checkpoint, as_dataset(NEW))
    assert found.examples == 2 and found.tokens == tokens
    assert found.nats == pytest.approx(total, rel=1e-5)
    assert found.perplexity == pytest.approx(math.exp(total / tokens), rel=1e-5)


def test_without_prototypes_it_is_the_perplexity_itself():
    checkpoint = make(memories=0, copying=False, feed=False)
    sequence = torch.tensor([[1, *NEW[0], 2]])
    with torch.no_grad():
        nats = -float(checkpoint.network.log_likelihood(sequence, torch.zeros((1, 0, 0), dtype=torch.int64)).sum())
    found = bound(checkpoint, as_dataset(NEW[:1]))
    assert (found.covered, found.tokens) == (1, 6)
    assert found.nats == pytest.approx(nats, rel=1e-6)


def test_a_latent_vector_costs_its_divergence():
    checkpoint = make(latent=4)
    checkpoint.config["neighborhood"] = {"kind": "long-short", "delta": 0.2, "cover": False}
    network = checkpoint.network
    plain = bound(checkpoint, as_dataset(NEW))
    network.posterior.norm *= math.e  # a prior that is e times as wide is a nat farther away, if nothing else changes
    network.posterior.mean.weight.data.zero_(), network.posterior.mean.bias.data.zero_()
    near = bound(checkpoint, as_dataset(NEW))
    network.posterior.norm *= math.e
    far = bound(checkpoint, as_dataset(NEW))
    assert far.nats - near.nats == pytest.approx(far.covered, rel=1e-4)
    assert plain.nats > 0


def test_an_example_with_an_unknown_token_has_no_neighborhood():
    checkpoint = make()
    checkpoint.config["neighborhood"] = {"kind": "long-short", "delta": 0.2, "cover": False}
    known, more = as_dataset(NEW), Dataset.from_pairs([(["never", "seen"], ["before"])])
    one, both = bound(checkpoint, known), bound(checkpoint, known + more)
    assert both.examples == one.examples + 1
    assert (both.covered, both.tokens, both.nats) == (one.covered, one.tokens, one.nats)
    with pytest.raises(DataError, match="none of 1 examples has only tokens that the generator knows"):
        bound(make(memories=0, copying=False, feed=False), more)


def test_what_has_no_bound_is_said():
    with pytest.raises(UserError, match="found a predictor, expected a generator"):
        bound(make("predictor"), as_dataset(NEW))
    checkpoint = make()
    checkpoint.config["neighborhood"] = {"kind": "long-short", "delta": 0.99}
    with pytest.raises(
        DataError, match=r"no neighborhoods: .* similarity above 0\.99; a lower neighborhood\.delta, other or more"
    ):
        bound(checkpoint, as_dataset(NEW))
