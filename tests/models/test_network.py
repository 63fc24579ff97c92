"""The network computes one function, whichever way it is run."""

import pytest
import torch

from compgen.data.vocabulary import NEVER_FIRST, NEVER_WRITTEN, SEP_ID, SPECIALS, UNK_ID
from compgen.models.config import NetworkConfig
from compgen.models.decoding import DecodingStep
from compgen.models.network import Network

SMALL = {
    "hidden": 12,
    "encoder_hidden": 7,
    "embedding": 6,
    "attention": 5,
    "positions": 3,
    "output": 6,
}


def network(seed: int = 0, **changes) -> Network:
    torch.manual_seed(seed)
    net = Network(NetworkConfig(**(SMALL | changes)), 11).double().eval()
    for parameter in net.parameters():  # away from zero biases, so that nothing can be left out unseen
        parameter.data += 0.1 * torch.randn_like(parameter)
    return net


def batch(rows: int = 3, memories: int = 2, length: int = 6, time: int = 5, seed: int = 1):
    generator = torch.Generator().manual_seed(seed)
    sequences = torch.randint(5, 11, (rows, length), generator=generator)
    sequences[:, 0] = 1
    sequences[0, -2:] = 0
    tokens = torch.randint(5, 11, (rows, memories, time), generator=generator)
    if memories:
        tokens[1, 0, 3:] = 0
        tokens[2, -1, 1:] = 0
    return sequences, tokens


def stepper(net: Network):
    """The decoding step as a function of the network's state alone: token, state, position and memories."""
    decoding = DecodingStep(net)

    def step(token, hidden, cell, fed, position, keys, values, tokens):
        nothing = torch.zeros(len(token), dtype=torch.int64), torch.zeros(len(token)), torch.zeros(2)
        outputs = decoding(token, hidden, cell, fed, position, *nothing, keys, values, tokens)
        return outputs[1], *outputs[3:]

    return step


VARIANTS = [
    {},
    {"feed": False},
    {"copying": False},
    {"encoder_shared": False},
    {"memories": 1, "initial": "encoder", "tied": False, "output": 9, "feed": False, "activation": "linear"},
    {"memories": 3, "positions": 0},
    {"memories": 0, "feed": False, "copying": False},
    {"own": 20},
    {"own": 3, "mixing": "gate"},
    {"own": 20, "mixing": "gate", "memories": 1, "feed": False, "initial": "encoder"},
    {"own": 20, "mixing": "word", "feed": False},
    {"mixing": "gate", "positions": 0},
    {"mixing": "word", "own": 2},
    {"memories": 0, "feed": False, "own": 4, "mixing": "gate"},
    {"memories": 0, "feed": False, "own": 4, "mixing": "word"},
    {"latent": 3},
    {"latent": 4, "own": 6, "feed": False, "memories": 1},
    {"latent": 2, "memories": 0, "feed": False, "copying": False},
]


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_steps_give_the_likelihood_of_teacher_forcing(changes):
    net = network(**changes)
    sequences, tokens = batch(memories=net.memories)
    latent = torch.randn(3, net.latent, dtype=torch.float64) if net.latent else None
    expected = net.log_likelihood(sequences, tokens, latent)
    if net.memories:
        keys, values, final = net.recall(tokens)
        hidden, cell = net.start(final)
    else:
        keys = values = torch.zeros(3, 0, 0, 0, dtype=torch.float64)
        hidden = cell = torch.zeros(3, net.hidden, dtype=torch.float64)
    fed = torch.zeros(3, net.carried, dtype=torch.float64)
    if latent is not None:
        fed[:, net.output : net.output + net.latent] = latent
    step = stepper(net)
    for t in range(sequences.shape[1] - 1):
        position = torch.full((3,), t)
        log_probs, hidden, cell, fed = step(sequences[:, t], hidden, cell, fed, position, keys, values, tokens)
        torch.testing.assert_close(log_probs.exp().sum(1), torch.ones(3, dtype=torch.float64))
        target = sequences[:, t + 1]
        got = log_probs.gather(1, target.unsqueeze(1))[:, 0] * (target != 0)
        torch.testing.assert_close(got, expected[:, t])


@pytest.mark.parametrize("changes", VARIANTS, ids=str)
def test_a_row_does_not_see_its_batch(changes):
    net = network(**changes)
    sequences, tokens = batch(memories=net.memories)
    latent = torch.randn(3, net.latent, dtype=torch.float64) if net.latent else None
    together = net.log_likelihood(sequences, tokens, latent)
    for row in range(3):
        own = tokens[row : row + 1]
        longest = int((own != 0).sum(dim=2).max()) if net.memories else 0
        mine = None if latent is None else latent[row : row + 1]
        alone = net.log_likelihood(sequences[row : row + 1], own[:, :, :longest], mine)
        torch.testing.assert_close(alone[0], together[row], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shared", [True, False])
def test_a_sequence_encoded_alone_is_what_it_is_as_a_memory(shared):
    net = network(encoder_shared=shared)
    _, tokens = batch()
    recalled = net.recall(tokens)
    for slot in range(2):
        inside = tokens[:, slot] != 0
        *encoded, final = (each[:, slot] for each in net.encode(tokens[:, slot]))
        torch.testing.assert_close(final, recalled[2][:, slot])
        for one, other in zip(encoded, recalled, strict=False):
            torch.testing.assert_close(one[inside], other[:, slot][inside])


def test_likelihood_agrees_with_greedy_prediction():
    net = network()
    sequences, tokens = batch()
    keys, values, final = net.recall(tokens)
    hidden, cell = net.start(final)
    step = stepper(net)
    fed = torch.zeros(3, net.output, dtype=torch.float64)
    token, written = sequences[:, 0], [sequences[:, 0]]
    for t in range(5):
        log_probs, hidden, cell, fed = step(token, hidden, cell, fed, torch.full((3,), t), keys, values, tokens)
        log_probs[:, NEVER_FIRST if t == 0 else NEVER_WRITTEN] = -1e9
        token = log_probs.argmax(dim=1)
        written.append(token)
    greedy = torch.stack(written, dim=1)
    assert net.predicts(greedy, tokens).all()
    greedy[1, 3] = (greedy[1, 3] - 5 + 1) % 6 + 5
    assert net.predicts(greedy, tokens).tolist() == [True, False, True]


def test_without_copying_words_come_from_the_vocabulary_alone():
    net = network(copying=False)
    sequences, tokens = batch()
    words = net(sequences[:, :-1], tokens)
    assert words.shape[2] == net.vocabulary
    expected = words.gather(2, sequences[:, 1:].unsqueeze(2))[..., 0] * (sequences[:, 1:] != 0)
    torch.testing.assert_close(net.log_likelihood(sequences, tokens), expected)


def test_write_dropout_makes_uncopyable_tokens_count_nothing():
    net = network(write_dropout=0.999999).train()
    for dropout in (net.embedding_dropout, net.output_dropout, net.feed_dropout):
        dropout.dropped = 0
    sequences, tokens = batch()
    copyable = (tokens.reshape(3, 1, -1) == sequences[:, 1:].unsqueeze(2)).any(2)
    likelihood = net.log_likelihood(sequences, tokens)
    assert copyable.any() and not copyable.all()
    assert (likelihood[~copyable] == 0).all()
    assert (likelihood[copyable & (sequences[:, 1:] != 0)] < 0).all()


def test_a_token_that_is_dropped_is_read_as_unknown_and_can_be_copied_alone():
    net = network(token_dropout=0.999999, write_dropout=0.0).train()
    for dropout in (net.embedding_dropout, net.output_dropout, net.feed_dropout):
        dropout.dropped = 0
    sequences, tokens = batch()
    sequences[1:, 3], tokens[:, :, 1] = SEP_ID, SEP_ID  # which is never dropped
    likelihood, targets = net.log_likelihood(sequences, tokens), sequences[:, 1:]
    special = len(SPECIALS)
    read = [torch.where(some < special, some, UNK_ID) for some in (sequences[:, :-1], tokens)]
    words, copies = net(*read).exp().split([net.vocabulary, tokens[0].numel()], dim=2)
    shares = (copies * (tokens.reshape(3, 1, -1) == targets.unsqueeze(2))).sum(2)
    shares = shares + words.gather(2, targets.unsqueeze(2))[..., 0] * (targets < special)
    left = (shares > 0) & (targets != 0)
    assert (left & (targets >= special)).any() and not left[targets != 0].all()
    torch.testing.assert_close(likelihood, torch.where(left, shares.clamp(min=1e-30).log(), 0.0))


def test_unknown_tokens_differ_by_copying_alone():
    net = network()
    net.treat_as_unknown([9, 10])
    sequences, tokens = batch()
    swapped = tokens.clone()
    swapped[tokens == 9], swapped[tokens == 10] = 10, 9
    keys, values, final = net.recall(tokens)
    torch.testing.assert_close(net.recall(swapped), (keys, values, final))
    state = (*net.start(final), torch.zeros(3, net.output, dtype=torch.float64), torch.zeros(3, dtype=torch.int64))
    one, other = (stepper(net)(sequences[:, 0], *state, keys, values, seen)[0] for seen in (tokens, swapped))
    assert not torch.allclose(one[:, 9:], other[:, 9:])
    torch.testing.assert_close(one[:, :9], other[:, :9])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"output": 5}, "tied needs output = embedding"),
        ({"memories": 0}, "nothing to copy"),
        ({"token_dropout": 0.1, "copying": False}, "token_dropout needs copying"),
        ({"hiden": 3}, "hiden"),
    ],
)
def test_impossible_configurations_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        NetworkConfig(**(SMALL | changes))


@pytest.mark.parametrize("initial", ["zeros", "encoder"])
def test_states_are_contiguous_as_cudnn_asks(initial):
    """On a CPU nothing else shows it: there an LSTM takes states of any strides."""
    net = network(memories=1, initial=initial, feed=False)
    seen = []
    net.lstm.register_forward_pre_hook(lambda _, given: seen.extend(given[1]))
    net.loss(*batch(memories=1))
    assert [state.is_contiguous() for state in seen] == [True, True]
