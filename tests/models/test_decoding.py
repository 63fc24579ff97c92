"""The choice of the next token: what may come, what temperatures do, and how a uniform number becomes a token."""

import inspect

import numpy as np
import pytest
import torch

from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID, SEP_ID, UNK_ID
from compgen.models.attention import MASKED
from compgen.models.config import NetworkConfig
from compgen.models.decoding import DecodingStep
from compgen.models.network import Network
from compgen.runtime.backend import StepInputs, StepOutputs

WORDS = 11


def step(**changes):
    torch.manual_seed(4)
    sizes = {"hidden": 12, "encoder_hidden": 7, "embedding": 6, "attention": 5, "positions": 3, "output": 6}
    network = Network(NetworkConfig(**sizes | changes), WORDS).double().eval()
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    return DecodingStep(network)


def inputs(decoding, rows, **changes):
    """What a step reads, after a beginning that has token 7 written last."""
    network = decoding.network
    tokens = torch.tensor([[[5, 6, 3, 7, 2], [8, 3, 9, 2, 0]]]).repeat(rows, 1, 1)[:, : network.memories]
    keys, values, final = network.recall(tokens)
    hidden, cell = network.start(final)
    given = {
        "token": torch.full((rows,), 7),
        "hidden": hidden,
        "cell": cell,
        "fed": torch.zeros(rows, network.carried, dtype=torch.float64),
        "position": torch.full((rows,), 2),
        "half": torch.zeros(rows, dtype=torch.int64),
        "uniform": torch.full((rows,), 0.5, dtype=torch.float64),
        "temperature": torch.tensor([1.0, 1.0], dtype=torch.float64),
        "keys": keys,
        "values": values,
        "memory_tokens": tokens,
    }
    assert changes.keys() <= given.keys()
    return given | changes


def run(decoding, rows, **changes):
    with torch.no_grad():
        return decoding(**inputs(decoding, rows, **changes))


def only(decoding, *tokens):
    """Make these tokens next to certain, the first more than the next."""
    original = decoding.network.merge
    gifts = torch.zeros(WORDS, dtype=torch.float64)
    for number, token in enumerate(tokens):
        gifts[token] = 100 - 20 * number
    decoding.network.merge = lambda slots, ids: torch.log_softmax(original(slots, ids) + gifts, dim=1)


@pytest.mark.parametrize(
    ("wanted", "position", "chosen"),
    [
        ((PAD_ID, 9), 2, 9),
        ((BOS_ID, 9), 2, 9),
        ((UNK_ID, 9), 2, 9),
        ((EOS_ID, 9), 2, EOS_ID),
        ((SEP_ID, 9), 2, SEP_ID),
        ((EOS_ID, 9), 0, 9),
        ((SEP_ID, 9), 0, 9),
        ((PAD_ID, 9), 0, 9),
        ((UNK_ID, 9), 0, 9),
        ((5, 9), 0, 5),
    ],
)
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_tokens_that_may_not_come(wanted, position, chosen, temperature):
    decoding = step()
    only(decoding, *wanted)
    uniform = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)
    warmth = torch.full((2,), temperature, dtype=torch.float64)
    token, log_probs, *_ = run(decoding, 3, position=torch.full((3,), position), uniform=uniform, temperature=warmth)
    assert token.tolist() == [chosen] * 3
    assert (log_probs[:, wanted[0]] > np.log(0.9)).all()  # as the network has it, before anything is forbidden


@pytest.mark.parametrize("temperature", [1.0, 0.5, 2.0])
def test_a_uniform_number_becomes_the_token_in_whose_share_it_lies(temperature):
    decoding = step()
    rows = 400
    uniform = (torch.arange(rows, dtype=torch.float64) + 0.5) / rows
    warmth = torch.full((2,), temperature, dtype=torch.float64)
    token, log_probs, *_ = run(decoding, rows, uniform=uniform, temperature=warmth)
    weights = (log_probs[0].exp() ** (1 / temperature)).numpy()
    weights[[PAD_ID, BOS_ID, UNK_ID]] = 0
    edges = np.cumsum(weights / weights.sum())
    assert token.tolist() == [int(np.searchsorted(edges, number, side="right")) for number in uniform.numpy()]


def test_the_last_uniform_number_is_still_a_token_that_may_come():
    decoding = step()
    only(decoding, 8)
    token, *_ = run(decoding, 1, uniform=torch.tensor([np.nextafter(1.0, 0.0)], dtype=torch.float64))
    assert token.item() in range(5, WORDS)


def test_each_half_has_its_temperature():
    decoding = step()
    uniform = torch.full((2,), 0.999, dtype=torch.float64)
    mixed = torch.tensor([1.0, 0.0], dtype=torch.float64)
    token, log_probs, half, *_ = run(decoding, 2, half=torch.tensor([0, 1]), uniform=uniform, temperature=mixed)
    allowed = log_probs[1].clone()
    allowed[[PAD_ID, BOS_ID, UNK_ID]] = MASKED
    assert token[1] == allowed.argmax() and token[0] != token[1]
    assert half.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("token", "before", "after"), [(SEP_ID, 0, 1), (SEP_ID, 1, 1), (9, 0, 0), (9, 1, 1), (EOS_ID, 0, 0)]
)
def test_the_second_half_begins_with_the_separator(token, before, after):
    decoding = step()
    only(decoding, token)
    chosen, _, half, *_ = run(decoding, 1, half=torch.tensor([before]))
    assert (chosen.item(), half.item()) == (token, after)


@pytest.mark.parametrize("changes", [{}, {"own": 3, "mixing": "gate"}, {"latent": 4}], ids=str)
def test_what_is_padding_in_a_prototype_is_not_looked_at(changes):
    decoding = step(**changes)
    given = inputs(decoding, 1)
    longer = {
        "keys": torch.cat([given["keys"], torch.full_like(given["keys"][:, :, :2], 9.0)], dim=2),
        "values": torch.cat([given["values"], torch.full_like(given["values"][:, :, :2], 9.0)], dim=2),
        "memory_tokens": torch.nn.functional.pad(given["memory_tokens"], (0, 2), value=PAD_ID),
    }
    for one, other in zip(run(decoding, 1), run(decoding, 1, **longer), strict=True):
        torch.testing.assert_close(one, other)


def test_what_a_step_leaves_behind_is_its_output_and_the_same_latent_vector():
    decoding = step(latent=4)
    fed = torch.randn(2, decoding.network.carried, dtype=torch.float64)
    *_, following = run(decoding, 2, fed=fed)
    assert following.shape == fed.shape
    torch.testing.assert_close(following[:, decoding.network.output :], fed[:, decoding.network.output :])
    assert not torch.isclose(following[:, : decoding.network.output], fed[:, : decoding.network.output]).any()


def test_what_was_written_is_remembered_in_a_ring():
    decoding = step(own=3)
    network = decoding.network
    ids = slice(network.output + network.latent, network.output + network.latent + network.window)
    state = inputs(decoding, 1)
    for position, (token, expected) in enumerate([(BOS_ID, [0, 0, BOS_ID]), (6, [6, 0, BOS_ID]), (7, [6, 7, BOS_ID])]):
        state |= {"token": torch.tensor([token]), "position": torch.tensor([position])}
        _, _, _, state["hidden"], state["cell"], state["fed"] = run(decoding, 1, **state)
        assert state["fed"][0, ids].tolist() == expected
    for position, (token, expected) in enumerate([(8, [6, 7, 8]), (9, [9, 7, 8])], start=3):
        state |= {"token": torch.tensor([token]), "position": torch.tensor([position])}
        _, _, _, state["hidden"], state["cell"], state["fed"] = run(decoding, 1, **state)
        assert state["fed"][0, ids].tolist() == expected


def test_the_step_takes_and_gives_what_the_runtime_names():
    decoding = step()
    assert tuple(inspect.signature(decoding.forward).parameters) == StepInputs._fields
    outputs = StepOutputs(*run(decoding, 3))
    network = decoding.network
    assert outputs.token.shape == outputs.half.shape == (3,) and outputs.log_probs.shape == (3, WORDS)
    assert outputs.hidden.shape == outputs.cell.shape == (3, network.hidden)
    assert outputs.fed.shape == (3, network.carried)
