"""The encoder that reads no padding: what `Encoder` gives, and its gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from compgen.models.cell import tanh
from compgen.models.encoder import Encoder
from compgen.models.network import Network
from compgen.models.packed import encode_packed, pack
from compgen.models.teacher_forcing import packs, recall_packed
from tests.models.test_network import batch, network


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_states_last_states_and_gradients_are_those_of_the_encoder(lengths):
    torch.manual_seed(0)
    encoder, embeddings = Encoder(3, 4).double(), torch.randn(9, 3, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor(lengths)
    longest = int(lengths.max())
    tokens = torch.randint(1, 9, (len(lengths), longest))
    states, final = encoder(embeddings[tokens], lengths)
    packing = pack(lengths)
    found, last = encode_packed(encoder, embeddings, tokens[packing.row, packing.place], packing)
    torch.testing.assert_close(found, states[packing.row, packing.place])
    torch.testing.assert_close(last, final)
    given = [embeddings, *encoder.parameters()]
    weight = torch.arange(states.shape[2], dtype=torch.float64)
    expected = torch.autograd.grad((states**2 * weight).sum() + final.sum(), given)
    gradients = torch.autograd.grad((found**2 * weight).sum() + last.sum(), given)
    torch.testing.assert_close(gradients, expected)


def test_the_longest_come_first_and_every_token_has_a_row():
    packing = pack(torch.tensor([2, 3, 1]))
    assert packing.counts == [3, 2, 1]
    assert packing.row.tolist() == [1, 0, 2, 1, 0, 1] and packing.place.tolist() == [0, 0, 0, 1, 1, 2]
    assert packing.mirrored.tolist() == [5, 4, 2, 3, 1, 0]
    assert packing.last.tolist() == [4, 5, 2] and packing.before.tolist() == [0, 1, 3]


@pytest.mark.parametrize("changes", [{}, {"memories": 3, "encoder_shared": False}, {"memories": 1}], ids=str)
def test_memories_are_recalled_as_with_padding(changes):
    net = network(**changes)
    net.treat_as_unknown([9])
    _, tokens = batch(memories=net.memories)
    keys, values, final = net.recall(tokens)
    inside = (tokens != 0).unsqueeze(3)
    assert packs(net, tokens)
    found = recall_packed(net, tokens)
    torch.testing.assert_close(found, (keys * inside, values * inside, final))


def test_a_memory_without_tokens_is_recalled_the_other_way():
    net, (_, tokens) = network(), batch()
    tokens[0, 1] = 0
    assert not packs(net, tokens)
    assert isinstance(net, Network) and net.recall(tokens)[0].shape[:2] == (3, 2)


def test_tanh_by_the_sigmoid_is_as_near_as_float_allows():
    x = torch.linspace(-20, 20, 10_001)
    assert float((tanh(x, out=torch.empty_like(x)) - torch.tanh(x.double())).abs().max()) < 2.5e-7
