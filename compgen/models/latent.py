"""Latent edit vectors (R&R, appendix F; Guu et al. 2018).

A vector z of Z numbers is a direction times a norm. In the prior the direction is uniform on the sphere and the norm
uniform in [0, M] (equation 31). In the posterior, with a mean mu computed from the example, the direction has a von
Mises and Fisher distribution of concentration kappa around mu, and the norm is uniform in [m, m + w] with
m = min(|mu|, M - w) (equations 32 to 34). Both are functions of mu and of random numbers that do not depend on it.

The divergence of the two is the same for every mu. So, as in the reference, training does not subtract it; only
perplexity counts it.

Three things follow the reference: an interval of norms near M is moved, where the paper narrows it; mu is computed from
the features that a prototype and the example share; and it is linear in these, where the paper squashes it.
Symbols: B batch, n memories, T tokens, D last encoder state, Z.
"""

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from compgen.models.encoder import Encoder


class Posterior(nn.Module):
    """z of an example and its prototypes."""

    __jit_unused_properties__: ClassVar = ["divergence"]

    def __init__(
        self,
        memories: int,
        embedding: int,
        encoder_hidden: int,
        size: int,
        concentration: float,
        norm: float,
        width: float,
    ) -> None:
        super().__init__()
        self.size, self.concentration, self.norm, self.width = size, concentration, norm, width
        self.encoder = Encoder(embedding, encoder_hidden)
        self.memory = nn.Linear(2 * encoder_hidden, 2 * encoder_hidden)
        self.mean = nn.Linear(2 * encoder_hidden * max(1, memories), size)

    @torch.jit.unused  # training alone draws from here
    def forward(self, embedded: Tensor, lengths: Tensor, finals: Tensor) -> Tensor:
        """Draw z (B, Z).

        Args:
            embedded: (B, T, E) examples.
            lengths: (B) their lengths.
            finals: (B, n, D), the last states of their prototypes.
        """
        mu = self.mu(embedded, lengths, finals)
        length = mu.norm(dim=1, keepdim=True).clamp(min=1e-8)
        norm = length.clamp(max=self.norm - self.width) + self.width * torch.rand_like(length)
        drawn: Tensor = around(mu / length, self.concentration) * norm
        return drawn

    @torch.jit.unused
    def mu(self, embedded: Tensor, lengths: Tensor, finals: Tensor) -> Tensor:
        """The mean (B, Z) of an example."""
        found = self.encoder(embedded, lengths)[1]
        if finals.shape[1]:
            found = (finals * torch.softmax(found.unsqueeze(1) * self.memory(finals), dim=2)).flatten(1)
        mean: Tensor = self.mean(found)
        return mean

    @property
    def divergence(self) -> float:
        """KL divergence of the posterior from the prior, in nats."""
        return divergence(self.size, self.concentration) + math.log(self.norm / self.width)


def around(mean: Tensor, concentration: float) -> Tensor:
    """Draw directions (B, Z) of a von Mises and Fisher distribution around unit vectors (B, Z), by Wood's rejection.

    The angle to the mean does not depend on the mean, so gradients reach the mean.
    """
    size = mean.shape[1]
    cosine = turned(len(mean), size, concentration).to(mean)  # (B, 1)
    # A random direction less its component along the mean is orthogonal to it.
    across = torch.randn_like(mean)
    for _ in range(2):  # twice, for what rounding leaves where the first draw was nearly the mean
        across = across - (across * mean).sum(dim=1, keepdim=True) * mean
        across = across / across.norm(dim=1, keepdim=True).clamp(min=1e-8)
    return cosine * mean + torch.sqrt((1 - cosine * cosine).clamp(min=0.0)) * across


def turned(count: int, size: int, concentration: float) -> Tensor:
    """Draw cosines (count, 1) of the angles between directions in Z dimensions and their mean (Wood 1994)."""
    d = size - 1
    b = (-2 * concentration + math.sqrt(4 * concentration**2 + d * d)) / d
    x0 = (1 - b) / (1 + b)
    c = concentration * x0 + d * math.log(1 - x0 * x0)
    beta = torch.distributions.Beta(torch.tensor(d / 2), torch.tensor(d / 2))
    cosine, open_ = torch.zeros(count), torch.ones(count, dtype=torch.bool)
    while open_.any():
        e = beta.sample((count,))
        w = (1 - (1 + b) * e) / (1 - (1 - b) * e)
        accepted = open_ & (concentration * w + d * torch.log(1 - x0 * w) - c >= torch.log(torch.rand(count)))
        cosine[accepted], open_ = w[accepted], open_ & ~accepted
    return cosine.unsqueeze(1)


def divergence(size: int, concentration: float) -> float:
    """KL divergence of von Mises and Fisher's distribution from the uniform one on the sphere in Z dimensions, in nats.

    kappa A(kappa) + log C(kappa) - log C(0), with A the mean cosine and C the normalising constants; exact, where the
    reference's closed form has two dimensions too few.
    """
    order = size / 2 - 1
    mean_cosine = math.exp(_log_bessel(order + 1, concentration) - _log_bessel(order, concentration))
    log_constant = (
        order * math.log(concentration) - size / 2 * math.log(2 * math.pi) - _log_bessel(order, concentration)
    )
    log_uniform = math.lgamma(size / 2) - math.log(2) - size / 2 * math.log(math.pi)
    return concentration * mean_cosine + log_constant - log_uniform


def _log_bessel(order: float, x: float) -> float:
    """Logarithm of the modified Bessel function of the first kind, by its power series."""

    def term(k: int) -> float:
        return (2 * k + order) * math.log(x / 2) - math.lgamma(k + 1) - math.lgamma(k + order + 1)

    terms = [term(k) for k in range(200 + int(4 * x))]
    largest = max(terms)
    return largest + math.log(sum(math.exp(term - largest) for term in terms))
