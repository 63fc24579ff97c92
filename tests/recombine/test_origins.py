import numpy as np
import pytest
import torch

from compgen.errors import UserError
from compgen.models.backend import TorchBackend
from compgen.models.teacher_forcing import attended
from compgen.recombine.origins import Attention, Source, as_text, attention
from compgen.sampling.batching import draws
from tests.export.tiny import make


@pytest.mark.parametrize("changes", [{}, {"own": 9, "mixing": "gate"}, {"copying": False}, {"latent": 3}], ids=str)
def test_a_sample_is_looked_at_as_it_was_written(changes):
    checkpoint = make(**changes)
    pool, decode = checkpoint.pool, checkpoint.vocabulary.decode
    found = attention(checkpoint, index=5, seed=2)
    rows = pool.choose(2, np.array([5]))[0]
    assert [source.tokens for source in found.sources[:2]] == [decode(t for t in pool.tokens[row] if t) for row in rows]
    names = ["prototype 1", "prototype 2", *(["written"] if "own" in changes else [])]
    assert [source.name for source in found.sources] == names
    assert found.shares.shape == (len(found.written), 1 if "copying" in changes else 1 + len(found.sources))
    np.testing.assert_allclose(found.shares.sum(axis=1), 1, rtol=1e-5)
    for source in found.sources[:2]:
        np.testing.assert_allclose(source.weights.sum(axis=1), 1, rtol=1e-4)
    if "own" in changes:
        assert not np.triu(found.sources[2].weights).any()  # nothing is seen before it is written
        assert not found.sources[2].weights[0].any()


def test_the_stream_of_seed_0_is_looked_at_unless_another_is_asked_for():
    usual, first = attention(make(), 3), attention(make(), 3, seed=0)
    assert usual.written == first.written and [one.tokens for one in usual.sources] == [
        one.tokens for one in first.sources
    ]


def test_text_says_which_token_like_the_written_one_was_copied():
    found = attention(make(own=9, mixing="gate"), index=5, seed=2)
    lines = as_text(found)
    assert len(lines) == len(found.written)
    for line, token in zip(lines, found.written, strict=True):
        assert line.startswith(token) and ("written as a word" in line or line.endswith(f"({token})"))


def test_a_generator_that_looks_at_nothing_is_refused():
    with pytest.raises(UserError, match="expected recomb1, recomb2 or more"):
        attention(make(memories=0, copying=False, feed=False), 0)


ALONE = {"memories": 0, "feed": False, "own": 4, "mixing": "gate"}  # looks at what it writes, and at nothing else


@pytest.mark.parametrize("changes", [{}, {"own": 9, "mixing": "gate"}, {"memories": 1}, ALONE], ids=str)
def test_weights_and_shares_are_those_of_the_distribution_the_token_was_drawn_from(changes):
    """Of each written token: what the network says of it, as a word and by copies, in the sampler's own terms."""
    checkpoint = make(**changes)
    pool = checkpoint.pool
    for index in range(6):
        drawn = next(
            draws(TorchBackend(checkpoint.network), pool, seed=1, start=index, stop=index + 1,
                  max_length=checkpoint.max_length, temperature=(1.0, 0.5))
        )  # fmt: skip
        found = attention(checkpoint, index, seed=1)
        ids = [*drawn.tokens, *([2] if drawn.finished else [])]
        assert found.written == checkpoint.vocabulary.decode(ids)
        own = [[token for token in pool.tokens[row].tolist() if token] for row in drawn.prototypes]
        longest = max(map(len, own), default=0)
        padded = [row + [0] * (longest - len(row)) for row in own]
        memory = torch.tensor(padded, dtype=torch.int64).reshape(1, len(own), longest)
        with torch.no_grad():
            hidden, u, scores = attended(checkpoint.network, torch.tensor([[1, *ids[:-1]]]), memory)
            slots = checkpoint.network.slots(hidden, u, scores)[0].exp().double().numpy()
        words = slots.shape[1] - sum(score.shape[2] for score in scores)
        for step, token in enumerate(ids):
            expected, place = [slots[step, token]], words
            for number, score in enumerate(scores):
                tokens = own[number] if number < len(own) else ids
                width = score.shape[2]
                copies = slots[step, place : place + width][: len(tokens)]
                expected.append(sum(p for p, other in zip(copies, tokens, strict=False) if other == token))
                place += width
            np.testing.assert_allclose(found.shares[step], np.array(expected) / sum(expected), rtol=1e-4)
        for source, score in zip(found.sources, scores, strict=True):
            looked = score[0, :, : len(source.tokens)].double().numpy()
            weights = np.where(looked > -1e8, np.exp(looked - looked.max(axis=1, keepdims=True)), 0)
            total = weights.sum(axis=1, keepdims=True)
            seen = total[:, 0] > 0
            np.testing.assert_allclose(
                source.weights[seen], (weights / np.maximum(total, 1e-9))[seen], rtol=1e-4, atol=1e-6
            )


def test_text_names_source_place_and_share():
    weights = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
    found = Attention(
        ["walk", "WALK"],
        [Source("prototype 1", ["run", "walk", "walk"], weights), Source("written", ["walk", "WALK"], weights[:, :2])],
        np.array([[0.25, 0.75, 0.0], [0.6, 0.0, 0.4]]),
    )
    assert as_text(found) == [
        "walk             75%  copied from prototype 1, token 2 (walk)",
        "WALK             60%  written as a word",
    ]
