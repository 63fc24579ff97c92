"""Dropout by random bytes."""

import pytest
import torch

from compgen.models.dropout import Dropout


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_is_dropped_and_the_mean_is_kept(share):
    torch.manual_seed(0)
    dropped = Dropout(share).train()(torch.ones(1001, 1003))
    assert abs(float((dropped == 0).float().mean()) - round(share * 256) / 256) < 0.002
    assert abs(float(dropped.mean()) - 1) < 0.01
    assert len(dropped.unique()) == 2


def test_nothing_is_dropped_in_evaluation_or_without_a_share():
    x = torch.randn(5, 3)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.001).train()(x) is x
