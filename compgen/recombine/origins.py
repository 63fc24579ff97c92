"""The origin of each token of a sample: attention to its prototypes and the source of each copy (R&R, figure 3)."""

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
from compgen.models.teacher_forcing import attended
from compgen.sampling.batching import Draw, draws
from compgen.trained.checkpoint import Checkpoint


@dataclass(frozen=True)
class Source:
    """A prototype of a sample, or the tokens written so far."""

    name: str
    tokens: list[str]
    weights: NDArray[np.floating[Any]]  # attention (steps, tokens)


@dataclass(frozen=True)
class Attention:
    """The attention of a generator while it wrote a sample.

    `shares` (steps, 1 + sources) splits the probability of each written token between the word for it and copies from
    each source: each row sums to one.
    """

    written: list[str]
    sources: list[Source]
    shares: NDArray[np.floating[Any]]


@torch.inference_mode()
def attention(checkpoint: Checkpoint, index: int, seed: int = 0) -> Attention:
    """Draw the sample of an address at the generator's own temperatures, and return the attention behind it.

    Raises:
        UserError: a checkpoint that is not a generator with attention.
    """
    network = checkpoint.network.eval()
    if checkpoint.pool is None or not (network.memories or network.window):
        raise UserError("only a generator with prototypes looks at anything: expected recomb1, recomb2 or more")
    first, second = checkpoint.sampling["temperature"]
    drawn = next(
        draws(
            TorchBackend(network),
            checkpoint.pool,
            seed=seed,
            start=index,
            stop=index + 1,
            max_length=checkpoint.max_length,
            temperature=(float(first), float(second)),
        )
    )
    prototypes = [[token for token in checkpoint.pool.tokens[row].tolist() if token] for row in drawn.prototypes]
    return _forced(checkpoint, drawn, prototypes, seed)


def _forced(checkpoint: Checkpoint, drawn: Draw, prototypes: list[list[int]], seed: int) -> Attention:
    """The attention of a network made to write a sample."""
    network, decode = checkpoint.network, checkpoint.vocabulary.decode
    ids = [*drawn.tokens, *([EOS_ID] if drawn.finished else [])]
    memories = torch.from_numpy(padded(prototypes))[None]  # (1, n, T)
    latent = None
    if (place := latent_of(network)) is not None:
        z = place.draw(seed, np.array([drawn.index], dtype=np.int64))
        latent = torch.from_numpy(z).to(network.embedding.weight.dtype)  # (1, Z)
    hidden, u, scores = attended(network, torch.tensor([[BOS_ID, *ids[:-1]]]), memories, latent)
    slots = network.slots(hidden, u, scores)[0].exp()  # (steps, V + places to copy from)
    shares = [slots[torch.arange(len(ids)), torch.tensor(ids)]]
    copying = slots[:, network.vocabulary :]
    sources = []
    names = [f"prototype {number + 1}" for number in range(len(prototypes))] + ["written"] * bool(network.window)
    tokens = [*prototypes, *([ids] if network.window else [])]
    for name, own, score in zip(names, tokens, scores, strict=True):
        weights = torch.softmax(score[0], dim=1) * (score[0] > -1e8)  # (steps, T)
        sources.append(Source(name, decode(own), weights[:, : len(own)].numpy()))
        if network.copying:
            part, copying = copying[:, : score.shape[2]], copying[:, score.shape[2] :]
            same = torch.tensor(own)[None] == torch.tensor(ids)[:, None]  # (steps, tokens)
            shares.append((part[:, : len(own)] * same).sum(dim=1))
    whole = torch.stack(shares, dim=1)  # (steps, 1 + sources)
    return Attention(decode(ids), sources, (whole / whole.sum(dim=1, keepdim=True)).numpy())


def as_text(found: Attention) -> list[str]:
    """A line per token: its main origin, and the token there with the most attention among equal ones."""
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
