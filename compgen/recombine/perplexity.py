"""The perplexity of examples under a generator, by the lower bound of R&R's equation 4.

    p(x) >= 1 / |D|^n  sum over d' in N(x) of p(x | d')

with D the training sequences, N(x) the neighborhood of x among them, and n prototypes. With latent vectors
log p(x | d') is bounded too, by its mean under the posterior minus the divergence from the prior. The mean is
estimated from one draw.

The reference divides by the number of tuples that it would sample from, and sums over neighbors outside them, which
is no bound. Between generators with different n, figures differ by the constant n log |D| per example.
"""

from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch

from compgen.data.examples import Dataset
from compgen.data.padding import padded
from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID
from compgen.errors import DataError, UserError
from compgen.models.seeding import draws_alone, seed_torch
from compgen.recombine.neighborhoods import NeighborhoodConfig, build
from compgen.recombine.rows import as_sequences
from compgen.trained.checkpoint import Checkpoint

BATCH = 256
SEED = 0  # one for all, as figures differ a little between seeds


@dataclass(frozen=True)
class Bound:
    """The bound over a set of examples.

    Attributes:
        examples: the number of distinct examples.
        covered: the number of those with a neighborhood, which the other figures are about.
        tokens: their tokens: source, separator, target and end symbol.
        nats: the sum of -log p.
    """

    examples: int
    covered: int
    tokens: int
    nats: float

    @property
    def perplexity(self) -> float:
        """exp of the mean over tokens."""
        return float(np.exp(self.nats / self.tokens))


@torch.no_grad()
@draws_alone()
def bound(checkpoint: Checkpoint, dataset: Dataset) -> Bound:
    """Compute the bound on the distinct examples of a dataset; neighborhoods and latent vectors are drawn with SEED.

    An example with a token that the generator does not know has no neighborhood.

    Raises:
        UserError: not a generator.
        DataError: no example has a neighborhood.
    """
    if checkpoint.pool is None:
        raise UserError("found a predictor, expected a generator, which says how probable whole examples are")
    network, n = checkpoint.network.eval(), checkpoint.pool.prototypes
    known = [[token for token in row if token not in (PAD_ID, EOS_ID)] for row in checkpoint.pool.tokens.tolist()]
    distinct = dataset.unique()
    readable = [pair for pair in distinct.pairs() if checkpoint.vocabulary.knows(chain(*pair))]
    if not readable:
        raise DataError(f"none of {distinct.frame.height} examples has only tokens that the generator knows")
    sequences = known + as_sequences(Dataset.from_pairs(readable), checkpoint.vocabulary)
    config = NeighborhoodConfig(**checkpoint.config["neighborhood"]).model_copy(update={"longest": None})
    rows = build(sequences, checkpoint.vocabulary, n, config, SEED, pool=len(known))
    rows = np.unique(rows, axis=0)  # a tuple found twice counts once
    seed_torch(SEED)
    whole = torch.from_numpy(padded([[BOS_ID, *sequence, EOS_ID] for sequence in sequences]))  # (N, L)
    lengths = np.array([len(sequence) for sequence in sequences])
    rows = rows[np.argsort(lengths[rows[:, 0]], kind="stable")]  # (M, 1 + n)
    totals = np.full(len(sequences), -np.inf)
    divergence = 0.0 if network.posterior is None else network.posterior.divergence
    for first in range(0, len(rows), BATCH):
        part = rows[first : first + BATCH]
        targets = whole[part[:, 0], : lengths[part[:, 0]].max() + 2]  # (B, L)
        memories = whole[part[:, 1:], 1 : lengths[part[:, 1:]].max(initial=0) + 2]  # (B, n, T)
        found = network.log_likelihood(targets, memories).sum(dim=1).double().numpy() - divergence  # (B)
        np.logaddexp.at(totals, part[:, 0], found)
    covered = np.unique(rows[:, 0])
    nats = float((n * np.log(len(known)) - totals[covered]).sum())
    return Bound(distinct.frame.height, len(covered), int((lengths[covered] + 1).sum()), nats)
