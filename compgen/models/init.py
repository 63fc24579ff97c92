"""How weights start: Glorot for each gate, forget biases 1 + 1, as in the reference."""

import torch
from torch import nn


def init_lstm(lstm: nn.LSTM) -> None:
    """Glorot-uniform for each gate's matrices, zero biases but for the forget gate's two, which are 1 each."""
    size = lstm.hidden_size
    for name, parameter in lstm.named_parameters():
        if name.startswith("weight"):
            for gate in torch.split(parameter.data, size):
                nn.init.xavier_uniform_(gate)
        else:
            nn.init.zeros_(parameter)
            nn.init.ones_(parameter.data[size : 2 * size])  # gates are stored input, forget, cell, output
