"""A Transformer that writes a target from a source (Vaswani et al. 2017), with the tags of Wu et al. (2021).

Layers normalise their inputs, not their outputs as in the paper, so that training needs no long warm-up. Training and
decoding are one computation: all tokens of a target at once with a mask, or one token at a time with the keys and
values of those before it. Positions are sinusoids that are added to embeddings, or, with `relative`, distances that
scores of attention within a side depend on (Shaw, Uszkoreit and Vaswani 2018, equation 4; but each head has a table
R of its own, and values have none):

    score_tj = q_t . (k_j + R[clip(j - t, -K, K) + K]) / sqrt(d / h)

Symbols: B batch, N layers, h heads, d size, S source tokens, L target tokens, P target tokens before them, V
vocabulary.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

from compgen.data.vocabulary import PAD_ID
from compgen.models.attention import MASKED, each
from compgen.models.choosing import written_greedily
from compgen.models.config import TransformerNetwork
from compgen.models.dropout import Dropout
from compgen.models.embedding import Embedding, draw
from compgen.models.products import Linear
from compgen.models.trainable import Trainable

Cache = tuple[Tensor, Tensor]  # keys and values (B, N, h, L, d / h)


class Transformer(Trainable):
    """Encoder and decoder over embeddings that are the output's weights, too."""

    architecture = "transformer"

    def __init__(self, config: TransformerNetwork, vocabulary: int) -> None:
        super().__init__()
        self.config, self.vocabulary = config, vocabulary
        self.embedding = Embedding(vocabulary, config.size)
        draw(self.embedding.weight, config.size**-0.5)
        self.kinds = Embedding(2, config.size) if config.invariant_tags else None
        self.register_buffer("tags", torch.zeros(vocabulary, dtype=torch.bool))
        self.tags: Tensor
        self.encoder = nn.ModuleList(_EncoderLayer(config) for _ in range(config.layers))
        self.layers = [_DecoderLayer(config) for _ in range(config.layers)]
        self.decoder = nn.ModuleList(self.layers)
        self.encoder_norm, self.decoder_norm = nn.LayerNorm(config.size), nn.LayerNorm(config.size)
        self.dropout = Dropout(config.dropout)
        places = torch.arange(0, config.size, 2, device="cpu")  # on the meta device this takes a second of imports
        frequency = torch.exp(places * (-math.log(10_000.0) / config.size))
        self.register_buffer("frequency", frequency, persistent=False)
        self.frequency: Tensor

    def treat_as_tags(self, tokens: list[int]) -> None:
        """Mark the tokens that have no position in a source (`invariant_tags`; Wu et al. 2021, section 4)."""
        self.tags[tokens] = True

    def recall(self, source: Tensor) -> Cache:
        """Encode source ids (B, S), padded with 0: keys and values (B, N, h, S, d / h) for the decoder."""
        return _stacked(self._remember(source))

    def _remember(self, source: Tensor) -> list[Cache]:
        """What `recall` gives, by layer."""
        letters = (source != PAD_ID).long()  # (B, S), 1 for what has a position
        if self.kinds is not None:
            letters = letters * ~self.tags[source]
        # Tags are at position 0, wherever they stand; letters at 1, 2, ...
        embedded = self._embed(source, letters.cumsum(dim=1) * letters)  # (B, S, d)
        if self.kinds is not None:
            embedded = embedded + self.kinds(self.tags[source].long())
        x, mask = self.dropout(embedded), _of_source(source, embedded.dtype)
        for layer in self.encoder:
            x = layer(x, mask)
        x = self.encoder_norm(x)
        return [layer.remember(x) for layer in self.layers]

    def forward(
        self, written: Tensor, start: Tensor, source: Tensor, memory: Cache, past: Cache, mask: Tensor
    ) -> tuple[Tensor, Cache]:
        """Scores (B, L, V) of the token after each of L tokens, and keys and values of these and those before them.

        Args:
            written: (B, L) ids; the first token of a target is the start symbol.
            start: (B), the number of tokens before them.
            source, memory: the argument and the result of `recall`.
            past: keys and values (B, N, h, P, d / h) of the P tokens before them.
            mask: (L, P + L), added to the scores of attention to the target.
        """
        layers = range(self.config.layers)
        memories, pasts = ([(kept[0][:, n], kept[1][:, n]) for n in layers] for kept in (memory, past))
        scores, now = self._decode(written, start, source, memories, pasts, mask)
        return scores, _stacked(now)

    def _decode(
        self,
        written: Tensor,
        start: Tensor,
        source: Tensor,
        memory: list[Cache],
        past: Sequence[Cache | None],
        mask: Tensor,
    ) -> tuple[Tensor, list[Cache]]:
        """What `forward` computes, with memory, past and result by layer; None for no past."""
        places = start.unsqueeze(1) + torch.arange(1, written.shape[1] + 1, device=written.device)
        x = self.dropout(self._embed(written, places))
        beyond, kept = _of_source(source, x.dtype), list[Cache]()
        for layer, before, encoded in zip(self.layers, past, memory, strict=True):
            x, now = layer(x, before, mask, encoded, beyond)
            kept.append(now)
        return functional.linear(self.decoder_norm(x), self.embedding.weight), kept

    def _embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        embedded: Tensor = self.embedding(tokens) * math.sqrt(self.config.size)
        if self.config.relative:
            return embedded
        angles = places.unsqueeze(2).to(self.frequency.dtype) * self.frequency  # (B, L, d / 2)
        # ONNX Runtime before 1.29 has no cosine in float64, in which exports are verified.
        double = angles.dtype == torch.float64
        cosines = torch.sin(angles + math.pi / 2) if double else torch.cos(angles)  # (B, L, d / 2)
        waves = torch.cat([torch.sin(angles), cosines], dim=2)  # (B, L, d)
        return embedded + waves

    def _log_probs(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Log-probabilities (B, L - 1, V) of every token after the first."""
        source, inputs = memory_tokens[:, 0], sequences[:, :-1]
        length = inputs.shape[1]
        future = torch.full((length, length), MASKED, device=inputs.device, dtype=self.frequency.dtype).triu(1)
        start = torch.zeros(len(inputs), dtype=torch.int64, device=inputs.device)
        scores, _ = self._decode(inputs, start, source, self._remember(source), [None] * self.config.layers, future)
        return torch.log_softmax(scores.float() if scores.dtype == torch.bfloat16 else scores, dim=2)

    def loss(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Cross-entropy (B, L - 1) of the tokens after the first, 0 at padding; labels are smoothed in training.

        Args:
            sequences: (B, L) ids that begin with the start symbol and end with the end symbol, padded with 0.
            memory_tokens: (B, 1, T), sources with their end symbol.
        """
        targets = sequences[:, 1:]
        log_probs = self._log_probs(sequences, memory_tokens)
        found = -log_probs.gather(2, targets.unsqueeze(2)).squeeze(2)
        smoothing = self.config.label_smoothing if self.training else 0.0
        if smoothing:
            found = (1 - smoothing) * found - smoothing * log_probs.mean(dim=2)
        loss: Tensor = found * (targets != PAD_ID)
        return loss

    def predicts(self, sequences: Tensor, memory_tokens: Tensor) -> Tensor:
        """Whether greedy decoding from the first token of each sequence (B, L) would write the rest: (B), boolean."""
        return written_greedily(self._log_probs(sequences, memory_tokens), sequences[:, 1:])


def _stacked(layers: list[Cache]) -> Cache:
    """Keys and values of each layer (B, h, L, d / h) as (B, N, h, L, d / h)."""
    return torch.stack([keys for keys, _ in layers], dim=1), torch.stack([values for _, values in layers], dim=1)


class TransformerStep(nn.Module):
    """One token of a target with all state given, as it is exported."""

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        self.network = network

    def forward(
        self,
        token: Tensor,
        position: Tensor,
        source: Tensor,
        memory_keys: Tensor,
        memory_values: Tensor,
        keys: Tensor,
        values: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Last token (B), position (B) and what `Transformer.forward` takes, to log-probabilities (B, V) and cache."""
        everything = torch.zeros(1, dtype=keys.dtype, device=keys.device)  # no mask: it may attend to all before it
        memory, past = (memory_keys, memory_values), (keys, values)
        scores, (keys, values) = self.network(token.unsqueeze(1), position, source, memory, past, everything)
        return torch.log_softmax(scores[:, 0], dim=1), keys, values


class TransformerMemory(nn.Module):
    """The encoder, as it is exported."""

    def __init__(self, network: Transformer) -> None:
        super().__init__()
        self.network = network

    def forward(self, source: Tensor) -> Cache:
        """See `Transformer.recall`."""
        return self.network.recall(source)


def _of_source(source: Tensor, dtype: torch.dtype) -> Tensor:
    """The mask (B, 1, 1, S) added to scores of attention to a source (B, S)."""
    return (source == PAD_ID).to(dtype)[:, None, None] * MASKED


class _Attention(nn.Module):
    """Attention of h heads, with keys and values computed apart, so that they can be kept.

    Within a side, it may know how far away each token is: up to `relative`.
    """

    def __init__(self, config: TransformerNetwork, relative: int = 0) -> None:
        super().__init__()
        self.heads, self.size, self.relative = config.heads, config.size, relative
        self.scale = math.sqrt(config.size // config.heads)  # of scores
        self.distances: nn.Parameter | None = None
        if relative:
            width = config.size // config.heads
            self.distances = nn.Parameter(torch.empty(config.heads, 2 * relative + 1, width))
            draw(self.distances, width**-0.5)
        self.query, self.out = Linear(config.size, config.size), Linear(config.size, config.size)
        self.key_value = Linear(config.size, 2 * config.size)
        self.dropout = Dropout(config.attention_dropout)

    def _split(self, x: Tensor) -> Tensor:
        """(B, L, d) to (B, h, L, d / h)."""
        return x.view(x.shape[0], -1, self.heads, self.size // self.heads).transpose(1, 2)

    def remember(self, x: Tensor) -> Cache:
        """Keys and values (B, h, L, d / h) of states (B, L, d)."""
        keys, values = self.key_value(x).chunk(2, dim=2)
        return self._split(keys), self._split(values)

    def forward(self, x: Tensor, kept: Cache, mask: Tensor) -> Tensor:
        """Attend from states (B, L, d) to keys and values (B, h, K, d / h); `mask` is added to scores (B, h, L, K)."""
        queries = self._split(self.query(x))  # (B, h, L, d / h)
        scores = queries @ kept[0].transpose(2, 3)
        if self.distances is not None:
            scores = scores + self._by_distance(queries, self.distances, kept[0].shape[2])
        scores = scores / self.scale + mask
        found = self.dropout(torch.softmax(scores, dim=3)) @ kept[1]  # (B, h, L, d / h)
        mixed: Tensor = self.out(found.transpose(1, 2).reshape(x.shape[0], -1, self.size))
        return mixed

    def _by_distance(self, queries: Tensor, distances: Tensor, tokens: int) -> Tensor:
        """Scores (B, h, L, K) of queries (B, h, L, d / h), the last L of K tokens, by the distance to each token."""
        length = queries.shape[2]
        scores = each(queries, distances.transpose(1, 2))  # (B, h, L, 2 * relative + 1)
        places = torch.arange(tokens, device=queries.device)
        distance = places - places[tokens - length :].unsqueeze(1)  # (L, K)
        numbers = distance.clamp(-self.relative, self.relative) + self.relative
        return scores.gather(3, numbers.expand(queries.shape[0], self.heads, length, tokens))


class _Inner(nn.Sequential):
    """The feed-forward layer after attention."""

    def __init__(self, config: TransformerNetwork) -> None:
        size, inner, dropout = config.size, config.inner, Dropout(config.dropout)
        super().__init__(nn.LayerNorm(size), Linear(size, inner), nn.ReLU(), dropout, Linear(inner, size))


class _EncoderLayer(nn.Module):
    def __init__(self, config: TransformerNetwork) -> None:
        super().__init__()
        self.norm, self.own = nn.LayerNorm(config.size), _Attention(config, config.relative)
        self.inner = _Inner(config)
        self.dropout = Dropout(config.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        """States (B, S, d) after this layer, given those before it; `mask` is that of the source."""
        normal = self.norm(x)
        x = x + self.dropout(self.own(normal, self.own.remember(normal), mask))
        out: Tensor = x + self.dropout(self.inner(x))
        return out


class _DecoderLayer(nn.Module):
    def __init__(self, config: TransformerNetwork) -> None:
        super().__init__()
        self.norm, self.own = nn.LayerNorm(config.size), _Attention(config, config.relative)
        self.across_norm, self.across = nn.LayerNorm(config.size), _Attention(config)
        self.inner, self.dropout = _Inner(config), Dropout(config.dropout)

    def remember(self, encoded: Tensor) -> Cache:
        """Keys and values (B, h, S, d / h) of an encoded source (B, S, d)."""
        return self.across.remember(encoded)

    def forward(
        self, x: Tensor, past: Cache | None, mask: Tensor, memory: Cache, beyond: Tensor
    ) -> tuple[Tensor, Cache]:
        """States (B, L, d) after this layer, and keys and values of the target up to here.

        Args:
            x: (B, L, d), the states before it.
            past: keys and values of the tokens before these; None if there are none.
            mask: (L, P + L), of attention to the target.
            memory: from `remember`.
            beyond: the mask of the source.
        """
        normal = self.norm(x)
        kept = self.own.remember(normal)
        if past is not None:
            kept = torch.cat([past[0], kept[0]], dim=2), torch.cat([past[1], kept[1]], dim=2)
        x = x + self.dropout(self.own(normal, kept, mask))
        x = x + self.dropout(self.across(self.across_norm(x), memory, beyond))
        return x + self.dropout(self.inner(x)), kept
