"""Where a sample comes from: attention over its prototypes, and what wrote each token (R&R, figure 3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from compgen.data.padding import padded
from compgen.data.vocabulary import BOS_ID, EOS_ID
from compgen.errors import UserError
from compgen.models.backend import TorchBackend
from compgen.models.cuda_graph import latent_of
from compgen.sampling.batching import Draw, draws
from compgen.training.checkpoint import Checkpoint


@dataclass(frozen=True)
class Source:
    """One thing that a generator looks at while it writes: a prototype, or what it has written."""

    name: str
    tokens: list[str]
    weights: NDArray[np.floating[Any]]  # (steps, tokens) of attention


@dataclass(frozen=True)
class Attention:
    """What a generator looked at while it wrote a sample, and what each token came from.

    `shares` (steps, 1 + sources) says how probable the written token was, by the word for it and by copies from each
    source, in proportion: each row sums to one.
    """

    written: list[str]
    sources: list[Source]
    shares: NDArray[np.floating[Any]]


@torch.inference_mode()
def attention(checkpoint: Checkpoint, index: int, seed: int = 0) -> Attention:
    """The sample of an address at the generator's own temperatures, written once more.

    Raises:
        UserError: a checkpoint that is no generator with something to look at.
    """
    network = checkpoint.recurrent.eval()
    if checkpoint.pool is None or not (network.memories or network.window):
        raise UserError("only a generator with prototypes looks at anything: expected recomb1, recomb2 or more")
    first, second = checkpoint.sampling["temperature"]
    drawn = next(
        draws(TorchBackend(network), checkpoint.pool, seed=seed, start=index, stop=index + 1,
              max_length=checkpoint.max_length, temperature=(float(first), float(second)))
    )  # fmt: skip
    return _written_again(checkpoint, drawn, seed)


def _written_again(checkpoint: Checkpoint, drawn: Draw, seed: int) -> Attention:
    network, pool, decode = checkpoint.recurrent, checkpoint.pool, checkpoint.vocabulary.decode
    assert pool is not None
    ids = [*drawn.tokens, *([EOS_ID] if drawn.finished else [])]
    sequence = torch.tensor([[BOS_ID, *ids]])
    prototypes = [[token for token in pool.tokens[row].tolist() if token] for row in drawn.prototypes]
    memories = torch.from_numpy(padded(prototypes))[None]  # (1, n, T)
    place, latent = latent_of(network), None
    if place is not None:
        z = place.draw(seed, np.array([drawn.index], dtype=np.int64))
        latent = torch.from_numpy(z).to(network.embedding.weight.dtype)
    hidden, u, scores = network.attended(sequence[:, :-1], memories, latent)
    slots = network.slots(hidden, u, scores)[0].exp()
    steps = torch.arange(len(ids))
    shares = [slots[steps, torch.tensor(ids)]]
    sources = []
    copying = slots[:, network.vocabulary :]
    names = [f"prototype {number + 1}" for number in range(len(prototypes))] + ["written"] * bool(network.window)
    tokens = [*prototypes, *([ids] if network.window else [])]
    for name, own, score in zip(names, tokens, scores, strict=True):
        weights = torch.softmax(score[0], dim=1) * (score[0] > -1e8)
        sources.append(Source(name, decode(own), weights[:, : len(own)].numpy()))
        if network.copying:
            part, copying = copying[:, : score.shape[2]], copying[:, score.shape[2] :]
            same = torch.tensor(own)[None] == torch.tensor(ids)[:, None]
            shares.append((part[:, : len(own)] * same).sum(dim=1))
    whole = torch.stack(shares, dim=1)
    return Attention(decode(ids), sources, (whole / whole.sum(dim=1, keepdim=True)).numpy())


def as_text(found: Attention) -> Sequence[str]:
    """A line a token written: where most of it came from, and which token like it was looked at most there."""
    lines = []
    for step, token in enumerate(found.written):
        best = int(found.shares[step].argmax())
        came = "written as a word"
        if best:
            source = found.sources[best - 1]
            same = np.array([other == token for other in source.tokens])
            place = int(np.where(same, source.weights[step], -1).argmax())
            came = f"copied from {source.name}, token {place + 1} ({source.tokens[place]})"
        lines.append(f"{token:<16}{found.shares[step, best]:4.0%}  {came}")
    return lines
