"""Adam is PyTorch's to the bit, also when it goes on from a saved state, and imports no compiler."""

import subprocess
import sys

import pytest
import torch

from compgen.models.adam import Adam

START = """
import sys, torch
from compgen.models.adam import Adam
weights = torch.ones(3, requires_grad=True)
adam = Adam([weights], 0.1, fused=True)
weights.sum().backward()
adam.step()
assert (weights < 1).all() and "torch._dynamo" not in sys.modules
"""


def parameters():
    torch.manual_seed(3)
    return [torch.randn(shape, requires_grad=True) for shape in ((30, 20), (7,), (2, 3))]


def train(weights, optimiser, steps):
    """Some updates; the last parameter has no gradient in the first of them, and rates differ."""
    for step in steps:
        optimiser.param_groups[0]["lr"] = 0.05 / (step + 1)
        optimiser.zero_grad()
        sum((one**3).sum() for one in weights[: 2 if step < 5 else 3]).backward()
        optimiser.step()


@pytest.mark.parametrize("fused", [True, False])
def test_weights_are_those_of_pytorch(fused):
    ours, theirs = parameters(), parameters()
    train(ours, Adam(ours, 0.1, fused=fused), range(20))
    train(theirs, torch.optim.Adam(theirs, 0.1, fused=fused), range(20))
    assert all(map(torch.equal, ours, theirs)) and not torch.equal(ours[0], parameters()[0])


@pytest.mark.parametrize("saved_by", [Adam, torch.optim.Adam])
@pytest.mark.parametrize("at", [3, 12])
def test_it_goes_on_from_what_was_saved(saved_by, at):
    whole, halves = parameters(), parameters()
    train(whole, Adam(whole, 0.1, fused=True), range(20))
    first, second = saved_by(halves, 0.1, fused=True), Adam(halves, 0.1, fused=True)
    train(halves, first, range(at))
    second.load_state_dict(first.state_dict())
    train(halves, second, range(at, 20))
    assert all(map(torch.equal, whole, halves))


def test_it_imports_no_compiler():
    subprocess.run([sys.executable, "-c", START], check=True)
