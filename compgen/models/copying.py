"""Copying: from what a decoder has written itself, and how copying is weighed against writing (R&R, section 3.2, A.3).

A decoder's next token comes out of one of its slots: one for each word of the vocabulary, one for each token of each
memory, one for each token that it has written. What all slots of a word have between them is the word's probability.
Three ways to share out probability among slots:

- joint: one softmax over the scores of all of them (appendix A.3, SCAN).
- gate: a softmax of the state says how much goes to writing and to each source of copies, and the attention over a
  source shares it out there (equations 12, 13, 16 and 17; morphology as the paper has it).
- word: writing has one word more, `<copy>`, whose probability is what goes to copies; the gate chooses among their
  sources alone (morphology in the reference).

Symbols: B batch, L decoder steps, V vocabulary, S slots of one source, H hidden, F size of the output u, A attention.
"""

import math

import torch
from torch import Tensor, nn

from compgen.models.attention import MASKED


class OwnAttention(nn.Module):
    """Attention over what the decoder has written (equation 10), each token remembered as the state that wrote it."""

    def __init__(self, hidden: int, size: int) -> None:
        super().__init__()
        self.size, self.masked = size, MASKED  # attributes, because TorchScript does not read a module's globals
        self.query = nn.Linear(hidden, size)
        self.note = nn.Linear(hidden, size)

    def forward(self, hidden: Tensor, notes: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
        """Attend.

        Args:
            hidden: (B, L, H).
            notes: (B, S, A), of each token written, from `note` of the state that wrote it.
            inside: (B, L, S) or (1, L, S), true for tokens that a step may look at; there may be none.

        Returns:
            contexts (B, L, A), zeros where there is nothing to look at, and masked scores (B, L, S).
        """
        scores = torch.matmul(self.query(hidden), notes.transpose(1, 2)) / math.sqrt(self.size)
        scores = scores.masked_fill(~inside, self.masked)
        weights = torch.softmax(scores, dim=2) * inside
        return torch.matmul(weights, notes), scores


class Mixture(nn.Module):
    """Log-probabilities of all slots."""

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
        """Share out probability.

        Args:
            hidden: (B, L, H).
            u: (B, L, F).
            logits: (B, L, V) of words.
            scores: of each source, (B, L, S); masked throughout where there is nothing to copy from.

        Returns:
            (B, L, V + all S), a distribution.
        """
        gate = self.gate
        if gate is None:
            every = [logits]
            every.extend(scores)
            return torch.log_softmax(torch.cat(every, dim=2), dim=2)
        empty = torch.stack([(each <= 0.5 * self.masked).all(dim=2) for each in scores], dim=2)
        copies = [torch.log_softmax(each, dim=2) for each in scores]
        amounts = gate(hidden)
        copy_word = self.copy_word
        if copy_word is None:
            writing = torch.zeros_like(empty[:, :, :1])
            amounts = torch.log_softmax(amounts.masked_fill(torch.cat([writing, empty], dim=2), self.masked), dim=2)
            words = torch.log_softmax(logits, dim=2) + amounts[:, :, :1]
            amounts = amounts[:, :, 1:]
        else:
            # Where there is nothing to copy yet, the word for it cannot come.
            copying = copy_word(u).masked_fill(empty.all(dim=2, keepdim=True), self.masked)
            words = torch.log_softmax(torch.cat([logits, copying], dim=2), dim=2)
            amounts = torch.log_softmax(amounts.masked_fill(empty, self.masked), dim=2) + words[:, :, -1:]
            words = words[:, :, :-1]
        parts = [words]
        for source, each in enumerate(copies):
            parts.append(each + amounts[:, :, source : source + 1])
        return torch.cat(parts, dim=2)
