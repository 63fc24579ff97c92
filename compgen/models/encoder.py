"""A bidirectional LSTM whose result for a sequence does not depend on what it is batched with.

The reference lets its LSTMs read padding, so that an encoding changes with the longest neighbour in the batch. A sample
must be a function of its address alone, so here the backward direction reads each sequence reversed within its own
length and everything past the end is zero.
"""

import torch
from torch import Tensor, nn

from compgen.models.init import init_lstm


class Encoder(nn.Module):
    """BiLSTM: embedded tokens (B, T, E) and lengths (B) to states (B, T, 2 * hidden)."""

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(embedding, hidden, batch_first=True)
        self.backwards = nn.LSTM(embedding, hidden, batch_first=True)
        init_lstm(self.forwards)
        init_lstm(self.backwards)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Return states (B, T, 2H), zero past each length, and the two last states side by side (B, 2H)."""
        batch, time = embedded.shape[0], embedded.shape[1]
        position = torch.arange(time, device=embedded.device).unsqueeze(0).expand(batch, time)
        inside = position < lengths.unsqueeze(1)
        mirrored = torch.where(inside, lengths.unsqueeze(1) - 1 - position, position)  # (B, T), its own inverse
        forwards = self.forwards(embedded)[0]
        backwards = self.backwards(_gather(embedded, mirrored))[0]
        last = (lengths - 1).clamp(min=0).unsqueeze(1)  # (B, 1)
        final = torch.cat([_gather(forwards, last), _gather(backwards, last)], dim=2).reshape(batch, -1)
        states = torch.cat([forwards, _gather(backwards, mirrored)], dim=2)
        return states * inside.unsqueeze(2).to(states.dtype), final


def _gather(x: Tensor, index: Tensor) -> Tensor:
    """Rows of x (B, T, D) at index (B, S): (B, S, D)."""
    return torch.gather(x, 1, index.unsqueeze(2).expand(index.shape[0], index.shape[1], x.shape[2]))
