"""The tables of a grammar's rules (Qiu et al. 2022, section 3.1.2), as a module, so that checkpoints can hold them."""

import torch
from torch import nn


class RuleTables(nn.Module):
    """Scores A (slots, states) and B (states, rules), in float64; what they mean says `csl.weights`."""

    def __init__(self, slots: int, states: int, rules: int) -> None:
        super().__init__()
        self.slots = nn.Parameter(torch.zeros(slots, states, dtype=torch.float64))
        self.rules = nn.Parameter(torch.zeros(states, rules, dtype=torch.float64))
