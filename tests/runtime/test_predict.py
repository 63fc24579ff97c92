"""Greedy decoding by definition, and the losses of targets that are given."""

import numpy as np
import pytest
import torch

from compgen.data.vocabulary import BOS_ID, EOS_ID
from compgen.errors import BundleError, UserError
from compgen.models.backend import TorchBackend
from compgen.runtime.predict import Recurrent, advance, as_sources, by_length, greedy, keep, losses, opening
from tests.export.tiny import make

PAIRS = [([5, 6, 7], [8, 9]), ([8], [5, 6, 7, 8, 9]), ([9, 9, 10, 11, 5], [10]), ([6, 5], []), ([7, 7, 7, 7], [9, 10])]


@pytest.fixture(scope="module")
def predictor():
    """Of random weights with which some answers end early, and at different steps."""
    checkpoint = make("predictor")
    torch.manual_seed(2)
    for parameter in checkpoint.network.parameters():
        parameter.data = 0.9 * torch.randn_like(parameter)
    return checkpoint


def log_likelihood(checkpoint, source, target):
    """(L) of the target and its end, by teacher forcing."""
    with torch.no_grad():
        sequence = torch.tensor([[BOS_ID, *target, EOS_ID]])
        found = checkpoint.network.log_likelihood(sequence, torch.tensor([[[*source, EOS_ID]]]))
    return found[0].double().numpy()


@pytest.mark.parametrize("batch", [1, 2, 3, 99])
def test_losses_are_those_of_teacher_forcing_whatever_the_batch(predictor, batch):
    expected = [-log_likelihood(predictor, *pair).mean() for pair in PAIRS]
    heard = []
    found = losses(Recurrent(TorchBackend(predictor.network)), PAIRS, batch, heard.append)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert heard == [*range(batch, len(PAIRS), batch), len(PAIRS)]


@pytest.mark.parametrize("batch", [1, 2, 99])
def test_each_token_is_the_most_probable_after_those_before_and_scores_add_up(predictor, batch):
    sources = [source for source, _ in PAIRS]
    most = 6
    found = greedy(Recurrent(TorchBackend(predictor.network)), sources, most, batch)
    lengths = set()
    for source, (written, score) in zip(sources, found, strict=True):
        lengths.add(len(written))
        ended = len(written) < most
        for place in range(len(written) + ended):
            best = max(
                (
                    token
                    for token in range(len(predictor.vocabulary))
                    if token not in (0, 1, 4) and (place or token > 3)
                ),
                key=lambda token: log_likelihood(predictor, source, [*written[:place], token])[place],
            )
            assert best == (written[place] if place < len(written) else EOS_ID)
        gained = log_likelihood(predictor, source, written)
        assert score == pytest.approx(gained.sum() if ended else gained[:-1].sum(), rel=1e-5)
    assert len(lengths) > 1, "rows must leave the batch at different steps"


def test_sources_of_like_length_share_a_batch():
    sources = [[5] * length for length in (3, 1, 4, 1, 5, 2)]
    assert by_length(sources, 2) == [[1, 3], [5, 0], [2, 4]]
    assert by_length(sources, 4) == [[1, 3, 5, 0], [2, 4]]
    assert by_length([], 4) == []
    with pytest.raises(UserError, match="batch 0: expected a whole number of 1 or more"):
        by_length(sources, 0)


def test_sources_end_with_their_end_symbol_and_padding():
    assert as_sources([[5, 6, 7], [8], []]).tolist() == [[5, 6, 7, 2], [8, 2, 0, 0], [2, 0, 0, 0]]


def test_the_state_before_the_first_step():
    backend = TorchBackend(make().network)
    tokens = np.array([[[5, 6, 3, 2], [7, 3, 2, 0]]] * 2)
    state = opening(backend, tokens, half=0)
    assert state["token"].tolist() == [BOS_ID] * 2 and state["position"].tolist() == state["half"].tolist() == [0, 0]
    np.testing.assert_array_equal(state["memory_tokens"], tokens)
    keys, values, final = zip(*(backend.encode(np.ascontiguousarray(tokens[:, slot])) for slot in (0, 1)), strict=True)

    def both(parts):  # a network has an encoder for each place, and gives what each makes of the tokens
        return np.stack([parts[slot][:, slot] for slot in (0, 1)], axis=1)

    for name, parts in (("keys", keys), ("values", values)):
        np.testing.assert_array_equal(state[name], both(parts))
    hidden, cell = backend.start(both(final))
    np.testing.assert_array_equal(state["hidden"], hidden)
    np.testing.assert_array_equal(state["cell"], cell)
    assert not state["fed"].any() and state["fed"].shape == (2, backend.shape.output)
    fed = np.ones((2, backend.shape.output), dtype=np.float32)
    assert opening(backend, tokens, 1, fed)["fed"] is fed
    assert opening(backend, tokens, 1)["half"].tolist() == [1, 1]
    alone = opening(TorchBackend(make(memories=0, copying=False, feed=False).network), tokens[:, :0], half=0)
    assert not alone["hidden"].any() and not alone["cell"].any() and alone["keys"].shape == (2, 0, 0, 0)


def test_a_step_moves_on_by_one_and_rows_can_be_kept():
    backend = TorchBackend(make().network)
    state, log_probs = advance(backend, opening(backend, np.array([[[5, 3, 2], [7, 3, 2]]] * 3), half=0))
    assert state["position"].tolist() == [1, 1, 1] and log_probs.shape == (3, len(make().vocabulary))
    kept = keep(state, np.array([True, False, True]))
    assert all(len(values) == 2 for values in kept.values())
    np.testing.assert_array_equal(kept["hidden"], state["hidden"][[0, 2]])


@pytest.mark.parametrize(
    ("token", "value", "message"), [(99, -1.0, "token"), (-1, -1.0, "token"), (5, np.nan, "number")]
)
def test_a_damaged_networks_answers_are_refused(monkeypatch, token, value, message):
    backend = TorchBackend(make().network)
    state = opening(backend, np.array([[[5, 3, 2], [7, 3, 2]]]), half=0)
    step = backend.step

    def damaged(inputs):
        outputs = step(inputs)
        return outputs._replace(token=np.array([token]), log_probs=np.full_like(outputs.log_probs, value))

    monkeypatch.setattr(backend, "step", damaged)
    with pytest.raises(BundleError, match=message):
        advance(backend, state)
