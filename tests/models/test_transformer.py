"""The Transformer computes one function, for all tokens at once and for one at a time."""

import numpy as np
import pytest
import torch

from compgen.models.backend import TorchTransformer
from compgen.models.config import TransformerNetwork
from compgen.models.transformer import Transformer
from compgen.runtime.beam import beam
from compgen.runtime.predict import as_sources, greedy, losses

SMALL = {"layers": 2, "heads": 2, "size": 8, "inner": 12}
PAIRS = [([5, 6, 7], [8, 9]), ([9], [10, 5, 5, 7, 6]), ([10, 10, 6, 5, 8], [7]), ([6, 7], [])]


def network(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    net = Transformer(TransformerNetwork(**(SMALL | changes)), 11).double().eval()
    for parameter in net.parameters():  # away from zero biases, so that nothing can be left out unseen
        parameter.data += 0.3 * torch.randn_like(parameter)
    return net


def tensors(pairs=PAIRS):
    sequences = as_sources([[1, *target] for _, target in pairs])
    return torch.from_numpy(sequences), torch.from_numpy(as_sources([source for source, _ in pairs])[:, None])


@pytest.mark.parametrize("changes", [{}, {"invariant_tags": True}, {"layers": 1, "heads": 4}, {"relative": 2}])
def test_training_and_decoding_agree(changes):
    net = network(**changes)
    net.treat_as_tags([9, 10])
    sequences, sources = tensors()
    at_once = net.loss(sequences, sources)
    lengths = (sequences[:, 1:] != 0).sum(dim=1)
    stepped = losses(TorchTransformer(net), PAIRS)
    np.testing.assert_allclose(stepped, (at_once.sum(dim=1) / lengths).detach().numpy(), rtol=1e-10)


def test_a_row_does_not_see_the_others_nor_its_padding():
    net = network()
    decoder = TorchTransformer(net)
    together = losses(decoder, PAIRS)
    np.testing.assert_allclose([losses(decoder, [pair])[0] for pair in PAIRS], together, rtol=1e-10)
    sources = [source for source, _ in PAIRS]
    assert greedy(decoder, sources, 9, batch=1) == [
        (tokens, pytest.approx(score)) for tokens, score in greedy(decoder, sources, 9)
    ]


def test_what_is_written_does_not_depend_on_what_follows():
    net = network()
    sequences, sources = tensors([([5, 6], [7, 8, 9]), ([5, 6], [7, 8, 10])])
    # One at a time: rows of a batch may be summed in another order, by processor.
    first, second = (net.loss(sequences[row], sources[row])[0] for row in (slice(0, 1), slice(1, 2)))
    assert torch.equal(first[:2], second[:2])
    assert first[2] != second[2] and first[3] != second[3]


def test_tags_have_no_place_if_they_are_invariant():
    letters, tags, target = [5, 6, 7], [9, 10], [5, 8]
    orders = [letters + tags, letters + tags[::-1], tags + letters, [5, 9, 6, 10, 7]]
    invariant, placed = network(invariant_tags=True), network()
    for net in (invariant, placed):
        net.treat_as_tags(tags)
    found = losses(TorchTransformer(invariant), [(order, target) for order in orders])
    np.testing.assert_allclose(found, found[0], rtol=1e-9)
    assert len(set(losses(TorchTransformer(placed), [(order, target) for order in orders]).round(9))) == 4
    other = losses(TorchTransformer(invariant), [([6, 5, 7, 9, 10], target)])
    assert abs(other[0] - found[0]) > 1e-6  # letters do have places
    for kind in (0, 1):  # of letters, of tags
        invariant.kinds.weight.data[kind, 0] += 1.0
        changed = losses(TorchTransformer(invariant), [(orders[0], target)])
        assert abs(changed[0] - found[0]) > 1e-6
        found = changed


def test_scores_depend_on_distances_if_positions_are_relative():
    torch.manual_seed(0)
    own = network(relative=2).encoder[0].own
    queries, keys = torch.randn(1, 2, 3, 4, dtype=torch.float64), 5  # the last three of five tokens
    found = own._by_distance(queries, own.distances, keys)
    for t in range(3):
        for j in range(keys):
            row = min(max(j - (t + 2), -2), 2) + 2
            expected = (queries[0, :, t] * own.distances[:, row]).sum(dim=1)
            torch.testing.assert_close(found[0, :, t, j], expected)


def test_relative_positions_know_order_without_a_position_of_their_own():
    net = network(relative=4, layers=1)
    same, turned = losses(TorchTransformer(net), [([5, 6, 7], [8]), ([7, 6, 5], [8])])
    assert abs(same - turned) > 1e-6
    net = network(relative=4)
    embedded = net._embed(torch.tensor([[5, 6, 5]]), torch.tensor([[1, 2, 3]]))
    assert torch.equal(embedded[0, 0], embedded[0, 2])  # no position of its own


def test_labels_are_smoothed_in_training_alone():
    net = network(label_smoothing=0.2, dropout=0.0, attention_dropout=0.0)
    sequences, sources = tensors()
    plain = net.loss(sequences, sources)
    net.train()
    smooth = net.loss(sequences, sources)
    everything = -net._log_probs(sequences, sources).mean(dim=2)
    wanted = (0.8 * plain + 0.2 * everything) * (sequences[:, 1:] != 0)
    torch.testing.assert_close(smooth, wanted)


def test_what_it_predicts_is_what_greedy_decoding_writes():
    net = network(1)
    net.decoder_norm.bias.data = 1.2 * net.embedding.weight.data[2]  # so that answers end
    sources = [source for source, _ in PAIRS]
    answers = [tokens for tokens, _ in greedy(TorchTransformer(net), sources, 12)]
    ended = [(source, answer) for source, answer in zip(sources, answers, strict=True) if len(answer) < 12]
    assert len(ended) == 4 and len({len(answer) for _, answer in ended}) > 1
    assert net.predicts(*tensors(ended)).all()
    assert not net.predicts(*tensors([(source, [*answer, 7]) for source, answer in ended])).any()


def test_a_beam_finds_what_greedy_decoding_misses_or_the_same():
    decoder = TorchTransformer(network(5))
    sources = [source for source, _ in PAIRS]
    assert beam(decoder, sources, 1, 8) == [
        (tokens, pytest.approx(score)) for tokens, score in greedy(decoder, sources, 8)
    ]
    for (_, wide), (_, narrow) in zip(beam(decoder, sources, 6, 8), beam(decoder, sources, 1, 8), strict=True):
        assert wide >= narrow - 1e-9


def test_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match=r"relative = 0 or invariant_tags = false \(relative is 4\)"):
        TransformerNetwork(relative=4, invariant_tags=True)
    with pytest.raises(ValueError, match="multiple of heads: found 10 and 4 heads"):
        TransformerNetwork(size=10, heads=4)
    with pytest.raises(ValueError, match="even"):
        TransformerNetwork(size=9, heads=3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_dropout_leaves_out_its_share_and_scales_what_stays(dtype):
    dropout = Transformer(TransformerNetwork(**SMALL, dropout=0.25), 11).dropout
    ones = torch.ones(101, 99, dtype=dtype, requires_grad=True)  # not a multiple of 8
    torch.manual_seed(0)
    found = dropout(ones)
    assert found.dtype == dtype
    assert set(found.double().unique().tolist()) == {0.0, ones.new_tensor(4 / 3).item()}
    assert (found == 0).double().mean().item() == pytest.approx(0.25, abs=0.02)
    found.sum().backward()
    assert torch.equal(ones.grad, found)  # what is left out has no gradient
    assert dropout.eval()(ones) is ones
