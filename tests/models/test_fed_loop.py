"""The recurrence with input feeding as one operation: what steps give, and their gradients."""

import pytest
import torch

from compgen.models import teacher_forcing
from compgen.models.attention import Attention
from compgen.models.fed_loop import by_distance
from compgen.models.recurrence import Memory, Recurrence
from tests.models.test_network import batch, network


class Given(torch.nn.Module):
    """Dropout by factors that are given, one call after the other."""

    dropped = 1

    def __init__(self, factors):
        super().__init__()
        self.factors = iter(factors)

    def forward(self, x):
        factor = next(self.factors)
        return x * (factor.unsqueeze(1) if x.dim() == 3 else factor)


CASES = [
    {},
    {"memories": 1, "positions": 0, "activation": "linear", "initial": "encoder", "tied": False, "output": 9},
    {"latent": 4, "mixing": "gate"},
    {"memories": 3, "encoder_shared": False, "mixing": "word"},
    {"embedding_dropout": 0.3},
]


def by_steps(self, inputs, embedded, latent, start, memory):
    """`all_at_once` by `step_by_step`, with the same dropout."""
    rows, length = inputs.shape
    if self.training:
        hidden, fed = teacher_forcing.dropped(self, length, rows, embedded)
        self.output_dropout, self.feed_dropout = Given(hidden), Given(fed)
    step = torch.arange(length).unsqueeze(0)
    seen = torch.zeros(1, length, length, dtype=torch.bool)
    return teacher_forcing.step_by_step(self, embedded, latent, Recurrence(*start, embedded), memory, step, seen)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("changes", CASES, ids=str)
def test_one_operation_is_what_steps_are_and_so_are_its_gradients(changes, training, monkeypatch):
    found = []
    for way in (teacher_forcing.all_at_once, by_steps):
        monkeypatch.setattr(teacher_forcing, "all_at_once", way)
        net = network(**{"output_dropout": 0.3, "feed_dropout": 0.2, "embedding_dropout": 0.0} | changes)
        net.train(training)
        sequences, tokens = batch(memories=net.memories)
        torch.manual_seed(3)
        loss = net.loss(sequences, tokens).sum()
        loss.backward()
        gradients = {name: parameter.grad for name, parameter in net.named_parameters() if parameter.grad is not None}
        found.append((loss, gradients))
    (fast, gradients), (slow, expected) = found
    torch.testing.assert_close(fast, slow, rtol=1e-13, atol=0)
    assert gradients.keys() == expected.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(
            gradient, expected[name], rtol=0, atol=1e-13 * float(expected[name].abs().max()) + 1e-300
        )


def test_states_have_gradients_too():
    net = network(output_dropout=0.0)
    inputs, tokens = batch()
    found = []
    for way in (teacher_forcing.all_at_once, by_steps):
        states, _, _ = way(net, inputs, net.embed(inputs), None, *opened(net, tokens))
        (gradient,) = torch.autograd.grad((states**2).sum(), [net.attention.query.weight])
        found.append(gradient)
    torch.testing.assert_close(*found)


def opened(net, tokens):
    keys, values, _, hidden, cell = net.begin(tokens)
    return (hidden, cell), Memory(keys, values, tokens != 0)


def test_rows_of_a_position_table_are_those_of_clipped_distances():
    table = torch.randn(2, 7, 3)  # distances from -3 to 3
    laid = by_distance(table, steps=6, tokens=5)
    for t in range(6):
        expected = table[:, [min(max(j - t, -3), 3) + 3 for j in range(5)]]
        assert torch.equal(laid[:, 5 - t : 10 - t], expected)


def test_a_role_alone_has_the_keys_and_values_that_it_has_among_all():
    torch.manual_seed(0)
    attention = Attention(3, 4, 6, 5, 2, "tanh").double()
    states = torch.randn(2, 7, 6, dtype=torch.float64)
    keys, values = attention.prepare(states)
    for slot in range(3):
        key, value = attention.prepare_one(states, slot)
        torch.testing.assert_close((key, value), (keys[:, slot], values[:, slot]))
