"""Attention is what appendix A.3 says it is, position by position."""

import math

import pytest
import torch

from compgen.models.attention import Attention
from compgen.models.copying import OwnAttention


@pytest.mark.parametrize("step", [[[0, 1, 2, 7]], [[3, 4, 5, 6], [0, 1, 9, 2]]], ids=["shared steps", "own steps"])
@pytest.mark.parametrize("activation", ["tanh", "linear"])
@pytest.mark.parametrize("clip", [1, 2, 16])
def test_attention_by_its_definition(clip, activation, step):
    torch.manual_seed(0)
    n, size, rows, time = 2, 3, 2, 6
    attention = Attention(n, 4, 5, size, clip, activation).double()
    features, states = torch.randn(rows, 4, 4).double(), torch.randn(rows, time, 5).double()
    inside = torch.ones(rows, n, time, dtype=torch.bool)
    inside[1, 1, 2:] = False
    keys, values = attention.prepare(states)
    sums = attention.query(features)
    context, scores = attention(attention.queries(sums), keys, values, inside, torch.tensor(step))

    bend = torch.tanh if activation == "tanh" else (lambda x: x)
    for b in range(rows):
        for k in range(n):
            maps = bend(attention.key_value(states[b])).reshape(time, n, 2, size)[:, k]  # (T, 2, A)
            for i in range(4):
                t = step[b % len(step)][i]
                query = bend(sums[b, i].reshape(n, size)[k])
                place = [min(max(j - t, -clip), clip) + clip for j in range(time)]
                wanted = torch.stack([query @ (maps[j, 0] + attention.position_keys[k, place[j]]) for j in range(time)])
                wanted = (wanted / math.sqrt(size)).masked_fill(~inside[b, k], -1e9)
                torch.testing.assert_close(scores[b, k, i], wanted)
                weights = wanted.softmax(0)
                mixed = sum(weights[j] * (maps[j, 1] + attention.position_values[k, place[j]]) for j in range(time))
                torch.testing.assert_close(context[b, i, k * size : (k + 1) * size], mixed)


def test_attention_to_what_is_written_by_its_definition():
    torch.manual_seed(0)
    own = OwnAttention(4, 3).double()
    hidden, inside = torch.randn(2, 5, 4).double(), torch.ones(5, 5, dtype=torch.bool).tril(-1).unsqueeze(0)
    notes = own.note(hidden)
    context, scores = own(hidden, notes, inside)
    assert (context[:, 0] == 0).all() and (scores[:, 0] == -1e9).all()  # nothing is written yet
    for step in range(1, 5):
        wanted = (notes[:, :step] @ own.query(hidden[:, step]).unsqueeze(2)).squeeze(2) / math.sqrt(3)
        torch.testing.assert_close(scores[:, step, :step], wanted)
        torch.testing.assert_close(context[:, step], (wanted.softmax(1).unsqueeze(2) * notes[:, :step]).sum(1))
