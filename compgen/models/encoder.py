"""A bidirectional LSTM whose result for a sequence does not depend on what it is batched with.

The reference lets its LSTMs read padding, so that an encoding changes with the longest neighbour in the batch. A sample
must be a function of its address alone, so here the backward direction reads each sequence reversed within its own
length, and everything past the end is zero.
"""

import torch
from torch import Tensor, nn


def init_lstm(lstm: nn.LSTM) -> None:
    """Initialise as the reference does: Glorot-uniform for each gate's matrices, zero biases but 1 + 1 to forget."""
    size = lstm.hidden_size
    for name, parameter in lstm.named_parameters():
        if name.startswith("weight"):
            for gate in torch.split(parameter.data, size):
                nn.init.xavier_uniform_(gate)
        else:
            nn.init.zeros_(parameter)
            nn.init.ones_(parameter.data[size : 2 * size])  # gates are stored input, forget, cell, output


class Encoder(nn.Module):
    """BiLSTM with H units in each direction over embeddings of size E."""

    def __init__(self, embedding: int, hidden: int) -> None:
        super().__init__()
        self.forwards = nn.LSTM(embedding, hidden, batch_first=True)
        self.backwards = nn.LSTM(embedding, hidden, batch_first=True)
        init_lstm(self.forwards)
        init_lstm(self.backwards)

    def forward(self, embedded: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        """Embedded tokens (B, T, E) and lengths (B) to states (B, T, 2H) and both last states side by side (B, 2H)."""
        batch, time = embedded.shape[0], embedded.shape[1]
        position = torch.arange(time, device=embedded.device).unsqueeze(0).expand(batch, time)
        inside = position < lengths.unsqueeze(1)  # (B, T)
        mirrored = torch.where(inside, lengths.unsqueeze(1) - 1 - position, position)  # (B, T), its own inverse
        forwards = self.forwards(embedded)[0]  # (B, T, H)
        backwards = self.backwards(_gather(embedded, mirrored))[0]  # (B, T, H), the last token first
        last = (lengths - 1).clamp(min=0).unsqueeze(1)  # (B, 1)
        final = torch.cat([_gather(forwards, last), _gather(backwards, last)], dim=2).reshape(batch, -1)  # (B, 2H)
        states = torch.cat([forwards, _gather(backwards, mirrored)], dim=2)  # (B, T, 2H)
        return states * inside.unsqueeze(2).to(states.dtype), final


def _gather(x: Tensor, index: Tensor) -> Tensor:
    """Rows of x (B, T, D) at index (B, S): (B, S, D)."""
    return torch.gather(x, 1, index.unsqueeze(2).expand(index.shape[0], index.shape[1], x.shape[2]))
