"""Copying of tokens already written, and the mixture of copying and writing (R&R, section 3.2 and appendix A.3).

The next token comes from one of a decoder's slots: one for each word of the vocabulary, for each token of each memory,
and for each token written. The probability of a word is the sum over its slots. There are three mixtures:

- joint: one softmax over the scores of all slots (appendix A.3, SCAN).
- gate: a softmax of the state distributes probability over writing and each source of copies, and the attention over a
  source distributes its share over its slots (equations 12, 13, 16 and 17; morphology in the paper).
- word: the vocabulary has one more word, `<copy>`, whose probability goes to copies; the gate distributes it over their
  sources (morphology in the reference).

Symbols: B batch, L decoder steps, V vocabulary, S slots of one source, H hidden, F size of the output u, A attention.
"""

import math

import torch
from torch import Tensor, nn

from compgen.models.attention import MASKED


class OwnAttention(nn.Module):
    """Attention over the tokens written (equation 10), each represented by the state that wrote it."""

    def __init__(self, hidden: int, size: int) -> None:
        super().__init__()
        self.size, self.masked = size, MASKED  # attributes, because TorchScript does not read a module's globals
        self.query = nn.Linear(hidden, size)
        self.note = nn.Linear(hidden, size)

    def forward(self, hidden: Tensor, notes: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            hidden: (B, L, H).
            notes: (B, S, A), from `note` of the states that wrote the tokens.
            inside: (B, L, S) or (1, L, S), true for tokens that a step may attend to; there may be none.

        Returns:
            contexts (B, L, A), zeros where there is nothing to attend to, and masked scores (B, L, S).
        """
        scores = torch.matmul(self.query(hidden), notes.transpose(1, 2)) / math.sqrt(self.size)
        scores = scores.masked_fill(~inside, self.masked)
        weights = torch.softmax(scores, dim=2) * inside
        return torch.matmul(weights, notes), scores


class Mixture(nn.Module):
    """Log-probabilities of all slots, by one of the three mixtures."""

    def __init__(self, kind: str, hidden: int, output: int, sources: int) -> None:
        super().__init__()
        self.kind, self.masked = kind, MASKED
        self.gate: nn.Linear | None = None
        self.copy_word: nn.Linear | None = None
        if kind != "joint":
            self.gate = nn.Linear(hidden, sources + (kind == "gate"))
        if kind == "word":
            self.copy_word = nn.Linear(output, 1)

    def forward(self, hidden: Tensor, u: Tensor, logits: Tensor, scores: list[Tensor]) -> Tensor:
        """Distribute probability over all slots.

        Args:
            hidden: (B, L, H).
            u: (B, L, F).
            logits: (B, L, V) of words.
            scores: (B, L, S) of each source; all masked where there is nothing to copy.

        Returns:
            log-probabilities (B, L, V + all S).
        """
        gate = self.gate
        if gate is None:
            every = [logits]
            every.extend(scores)
            return torch.log_softmax(torch.cat(every, dim=2), dim=2)
        empty = torch.stack([(each <= 0.5 * self.masked).all(dim=2) for each in scores], dim=2)  # (B, L, sources)
        copies = [torch.log_softmax(each, dim=2) for each in scores]
        amounts = gate(hidden)  # (B, L, sources), and writing before them for kind = gate
        copy_word = self.copy_word
        if copy_word is None:
            writing = torch.zeros_like(empty[:, :, :1])
            amounts = torch.log_softmax(amounts.masked_fill(torch.cat([writing, empty], dim=2), self.masked), dim=2)
            words = torch.log_softmax(logits, dim=2) + amounts[:, :, :1]
            amounts = amounts[:, :, 1:]
        else:
            # Where there is nothing to copy yet, <copy> has no probability.
            copying = copy_word(u).masked_fill(empty.all(dim=2, keepdim=True), self.masked)
            words = torch.log_softmax(torch.cat([logits, copying], dim=2), dim=2)
            amounts = torch.log_softmax(amounts.masked_fill(empty, self.masked), dim=2) + words[:, :, -1:]
            words = words[:, :, :-1]
        parts = [words]
        for source, each in enumerate(copies):
            parts.append(each + amounts[:, :, source : source + 1])
        return torch.cat(parts, dim=2)
