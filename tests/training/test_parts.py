"""Batches computed in parts: the gradients of the whole, whatever threads do, and runs that go on with them."""

import os
import signal

import numpy as np
import pytest
import torch

from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID
from compgen.errors import Interrupted
from compgen.models.config import NetworkConfig
from compgen.models.network import Network
from compgen.models.seeding import seed_torch
from compgen.recombine.training import train_generator
from compgen.training import loop, parts
from compgen.training.parts import Divided
from tests.models.test_network import network
from tests.training.tiny import generator_config, toy, weights

NOTHING_DROPPED = dict.fromkeys(("embedding_dropout", "output_dropout", "feed_dropout", "write_dropout"), 0.0)


@pytest.fixture
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


def rows(count, memories):
    """Sequences and memories of all lengths."""
    torch.manual_seed(1)
    sequences, read = torch.full((count, 9), PAD_ID), torch.full((count, memories, 7), PAD_ID)
    for row in range(count):
        length = 1 + row % 7
        sequences[row, : length + 2] = torch.tensor([BOS_ID, *torch.randint(5, 11, (length,)), EOS_ID])
        for slot in range(memories):
            length = 1 + (row + slot) % 6
            read[row, slot, :length] = torch.randint(5, 11, (length,))
    return sequences, read


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("changes", [{}, {"feed": True}, {"own": 4}, {"copying": False}])
def test_parts_have_the_gradients_of_the_whole_batch(count, changes):
    net = network(memories=2, **NOTHING_DROPPED, **changes).double().train()
    sequences, memories = rows(17, net.memories)
    loss = net.loss(sequences, memories).sum()
    expected = torch.autograd.grad(loss / 17, list(net.parameters()), allow_unused=True)
    found = Divided(net, count).backward(sequences, memories)
    assert float(found) == pytest.approx(float(loss.detach()), rel=1e-12)
    for (name, weight), gradient in zip(net.named_parameters(), expected, strict=True):
        if gradient is None:
            assert weight.grad is None, name
        else:
            torch.testing.assert_close(weight.grad, gradient, rtol=1e-10, atol=1e-13, msg=name)


def test_random_numbers_of_parts_do_not_depend_on_how_threads_take_turns():
    net = network(memories=1, embedding_dropout=0.3, output_dropout=0.3, write_dropout=0.2).train()
    sequences, memories = rows(32, 1)
    losses = set()
    for _ in range(20):
        seed_torch(3)
        losses.add(float(Divided(net, 4).backward(sequences, memories)))
    assert len(losses) == 1
    losses.add(float(Divided(net, 4).backward(sequences, memories)))
    assert len(losses) == 2  # another update, other random numbers


@pytest.mark.usefixtures("two_threads")
def test_batches_are_divided_where_there_are_threads_and_rows_enough():
    assert parts.parts(network(), 64) == 2 and parts.parts(network(), 31) == 1
    latent = Network(NetworkConfig(memories=1, latent=4, hidden=8, encoder_hidden=6, embedding=6, output=6), 12)
    assert parts.parts(latent, 64) == 1  # its random numbers are PyTorch's own
    torch.set_num_threads(1)
    assert parts.parts(network(), 64) == 1


@pytest.mark.usefixtures("two_threads")
def test_a_run_in_parts_is_reproduced_and_goes_on_with_one_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "LEAST_ROWS", 2)
    config = generator_config("network.embedding_dropout=0.2")
    whole, _ = train_generator(toy(), config, tmp_path / "whole.pt", quiet=True)

    update, out = loop._Run.update, tmp_path / "cut.pt"

    def interrupted(run, rows):
        assert run.parts == 2
        if run.step == 7:
            os.kill(os.getpid(), signal.SIGINT)
        return update(run, rows)

    monkeypatch.setattr(loop._Run, "update", interrupted)
    with pytest.raises(Interrupted):
        train_generator(toy(), config, out, quiet=True)
    monkeypatch.setattr(loop._Run, "update", update)
    torch.set_num_threads(1)
    resumed, _ = train_generator(toy(), config, out, resume=True, quiet=True)
    for name, expected in weights(whole).items():
        np.testing.assert_array_equal(weights(resumed)[name], expected, err_msg=name)
