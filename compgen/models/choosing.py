"""The next token: which tokens are forbidden, and how one of the others is chosen."""

import torch
from torch import Tensor

from compgen.data.vocabulary import NEVER_FIRST, NEVER_WRITTEN, PAD_ID
from compgen.models.attention import MASKED


def forbidden_tokens(vocabulary: int) -> Tensor:
    """The tokens that may not be written, as booleans (2, V): row 0 at later steps, row 1 at the first step."""
    table = torch.zeros(2, vocabulary, dtype=torch.bool)
    table[0, list(NEVER_WRITTEN)] = True
    table[1, list(NEVER_FIRST)] = True
    return table


def choose(log_probs: Tensor, forbidden: Tensor, uniform: Tensor, temperature: Tensor, masked: float) -> Tensor:
    """Choose a token for each row, (B): by inverse CDF from p^(1/T), or the most probable one where T = 0.

        cdf[v] = sum of p[w]^(1/T) over the allowed w <= v
        token  = number of v with cdf[v] <= uniform * cdf[V - 1]

    Args:
        log_probs: (B, V).
        forbidden: (B, V), true for tokens that may not be written.
        uniform: (B) numbers in [0, 1).
        temperature: (B), T of each row.
        masked: the logit of forbidden tokens: `MASKED`, which TorchScript cannot read from here.
    """
    allowed = torch.where(forbidden, torch.full_like(log_probs, masked), log_probs)  # (B, V)
    warmth = temperature.unsqueeze(1)  # (B, 1)
    divisor = torch.where(warmth > 0, warmth, torch.ones_like(warmth))
    cdf = torch.cumsum(torch.softmax(allowed / divisor, dim=1), dim=1)  # (B, V)
    edge = uniform.unsqueeze(1) * cdf[:, -1:]  # (B, 1)
    drawn = (cdf <= edge).to(torch.int64).sum(dim=1).clamp(max=log_probs.shape[1] - 1)  # (B)
    return torch.where(temperature > 0, drawn, allowed.argmax(dim=1))


def written_greedily(log_probs: Tensor, targets: Tensor) -> Tensor:
    """Whether greedy decoding writes each target: the argmax over allowed tokens is the target's token at every step.

    Args:
        log_probs: (B, L, V), teacher-forced from the first token on; changed in place.
        targets: (B, L), padded with 0.

    Returns:
        booleans (B).
    """
    log_probs[..., list(NEVER_WRITTEN)] = MASKED
    log_probs[:, 0, list(NEVER_FIRST)] = MASKED
    right: Tensor = ((log_probs.argmax(dim=2) == targets) | (targets == PAD_ID)).all(dim=1)
    return right
