"""Random numbers that are drawn in between leave those of training as they would have been."""

from contextlib import nullcontext

import pytest
import torch

from compgen.models.seeding import undrawn


def test_what_is_drawn_in_between_changes_nothing():
    torch.manual_seed(3)
    expected = torch.rand(2)[1]
    torch.manual_seed(3)
    torch.rand(1)
    with undrawn("cpu"):
        torch.rand(5)
    assert torch.rand(1) == expected


@pytest.mark.parametrize(("device", "kept"), [("cpu", []), ("cuda", [1]), (torch.device("cuda", 0), [1])], ids=str)
def test_the_state_of_a_gpu_is_kept_too(device, kept, monkeypatch):
    asked = []
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: asked.append(devices) or nullcontext())
    with undrawn(device):
        pass
    assert asked == [kept]
