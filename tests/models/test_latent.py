import math

import pytest
import torch

from compgen.data.padding import padded
from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID
from compgen.models.latent import around, divergence, turned
from compgen.models.network import Network
from tests.models.test_network import batch, network


def test_divergence_is_that_of_the_densities():
    assert divergence(32, 25.0) == pytest.approx(5.755, abs=5e-4)  # the paper's sizes for SCAN
    assert divergence(2, 1.0) == pytest.approx(0.210, abs=5e-4)  # and the reference's for morphology
    assert divergence(3, 1e-4) == pytest.approx(0.0, abs=1e-6)
    kappa = 4.0  # in three dimensions the constants are elementary
    mean = 1 / math.tanh(kappa) - 1 / kappa
    exact = kappa * mean + math.log(kappa / (4 * math.pi * math.sinh(kappa))) + math.log(4 * math.pi)
    assert divergence(3, kappa) == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(("size", "kappa"), [(2, 1.0), (3, 4.0), (32, 25.0)])
def test_directions_turn_from_their_mean_as_the_distribution_has_it(size, kappa):
    torch.manual_seed(0)
    cosine = turned(40_000, size, kappa)
    # The derivative of log C(kappa) is minus the mean cosine.
    step = 1e-4
    drop = (divergence(size, kappa + step) - divergence(size, kappa - step)) / (2 * step)  # kappa A'(kappa)
    assert float(kappa * cosine.var()) == pytest.approx(drop, rel=0.05)
    mean = torch.nn.functional.normalize(torch.randn(1, size), dim=1).expand(40_000, -1)
    drawn = around(mean, kappa)
    torch.testing.assert_close(drawn.norm(dim=1), torch.ones(40_000))
    assert float((drawn * mean).sum(dim=1).mean()) == pytest.approx(float(cosine.mean()), abs=0.01)
    across = drawn.mean(dim=0) - (drawn.mean(dim=0) @ mean[0]) * mean[0]
    assert float(across.norm()) < 0.02 * math.sqrt(size)


def test_training_reaches_the_mean_and_the_norm_stays_within_bounds():
    net: Network = network(latent=4).train()
    assert net.posterior is not None
    sequences, tokens = batch()
    net.log_likelihood(sequences, tokens).sum().backward()
    assert all(
        parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in net.posterior.parameters()
    )
    embedded, lengths, finals = torch.randn(500, 5, 6).double(), torch.full((500,), 5), torch.randn(500, 2, 14).double()
    for scale, least, most in ((0.0, 0.0, 1.001), (1e3, 8.999, 10.0)):
        net.posterior.mean.weight.data *= scale
        net.posterior.mean.bias.data *= scale
        norms = net.posterior(embedded, lengths, finals).detach().norm(dim=1)
        assert least <= float(norms.min()) and float(norms.max()) <= most
        net.posterior.mean.bias.data += 1.0


@pytest.mark.parametrize("changes", [{}, {"own": 4}, {"feed": False}, {"memories": 0, "feed": False, "copying": False}])
def test_the_mean_of_an_example_does_not_depend_on_the_examples_beside_it(changes):
    """Whichever is the longest, and loses its end symbol as the input of no step."""
    net = network(latent=4, **changes)
    assert net.posterior is not None
    examples = [[BOS_ID, 6, 3, 7, EOS_ID], [BOS_ID, 6, 7, 8, 3, 7, 9, EOS_ID], [BOS_ID, 5, EOS_ID]]
    tokens = torch.randint(5, 11, (1, changes.get("memories", 2), 4)).expand(3, -1, -1)
    means = []
    compute = net.posterior.mu
    net.posterior.mu = lambda *given: means.append(compute(*given)) or means[-1]
    net.log_likelihood(torch.from_numpy(padded(examples)), tokens)
    for row, example in enumerate(examples):
        net.log_likelihood(torch.tensor([example]), tokens[row : row + 1])
        net.log_likelihood(torch.tensor([[*example, PAD_ID]]), tokens[row : row + 1])
    means = [mean.detach() for mean in means]
    together, alone, beside_padding = means[0], torch.cat(means[1::2]), torch.cat(means[2::2])
    assert together.dtype == torch.float64
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-12)
    torch.testing.assert_close(together, beside_padding, rtol=0, atol=1e-12)
    assert float((together[0] - together[1]).abs().min()) > 1e-6


def test_divergence_of_a_posterior_counts_direction_and_norm():
    net = network(latent=32, latent_concentration=25.0, latent_norm=10.0, latent_width=1.0)
    assert net.posterior is not None
    assert net.posterior.divergence == pytest.approx(5.755 + math.log(10), abs=5e-4)
