"""Sampling: a draw is a function of its address, whatever the batch, the workers or the order of work."""

import threading
import time

import numpy as np
import pytest
import torch

from compgen.data import random
from compgen.data.vocabulary import SPECIALS, Vocabulary
from compgen.models.backend import TorchBackend
from compgen.models.config import NetworkConfig
from compgen.models.network import Network
from compgen.recombine.compatible import compatible
from compgen.sampling.batching import FIRST, Memories, draws
from compgen.sampling.resampling import Filter, FilterConfig, Training

VOCABULARY = Vocabulary([*SPECIALS, *"abcdef"])
SEQUENCES = [[5, 6, 3, 8, 9], [6, 3, 9], [5, 3, 8], [7, 5, 3, 10, 8], [7, 3, 10], [5, 7, 3, 8, 10]]


def setting(**changes):
    torch.manual_seed(4)
    config = {"hidden": 12, "encoder_hidden": 6, "embedding": 6, "attention": 5, "positions": 3, "output": 6} | changes
    network = Network(NetworkConfig(**config), 11).double()
    for parameter in network.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    rows = np.array([[0, *range(1, 1 + network.memories)]], dtype=np.int32)
    return TorchBackend(network), compatible(SEQUENCES, VOCABULARY, rows, "long-short", "mean+std")


def take(backend, pool, **changes):
    options = {"seed": 7, "start": 0, "stop": 40, "max_length": 9, "temperature": (1.0, 1.0)} | changes
    return list(draws(backend, pool, **options))


@pytest.mark.parametrize(
    "changes", [{}, {"memories": 1}, {"memories": 3}, {"memories": 0, "feed": False, "copying": False}], ids=str
)
def test_draws_do_not_depend_on_batch_workers_or_range(changes):
    backend, pool = setting(**changes)
    expected = take(backend, pool, slots=1)
    assert [draw.index for draw in expected] == list(range(40))
    assert len({draw.tokens for draw in expected}) > 10
    for slots, workers in [(7, 1), (64, 1), (5, 3)]:
        got = take(backend, pool, slots=slots, workers=workers)
        assert [(d.tokens, d.prototypes, d.finished) for d in got] == [
            (d.tokens, d.prototypes, d.finished) for d in expected
        ]
        np.testing.assert_allclose([d.log_prob for d in got], [d.log_prob for d in expected], rtol=1e-9)
    assert [d.tokens for d in take(backend, pool, start=13, stop=29)] == [d.tokens for d in expected[13:29]]


def test_seeds_and_temperatures_matter_and_greedy_ignores_the_uniform_numbers():
    backend, pool = setting()
    one, other = take(backend, pool), take(backend, pool, seed=8)
    assert [d.tokens for d in one] != [d.tokens for d in other]
    greedy = take(backend, pool, temperature=(0.0, 0.0), stop=200)
    by_prototypes: dict[tuple, set] = {}
    for draw in greedy:
        by_prototypes.setdefault(draw.prototypes, set()).add(draw.tokens)
    assert len(by_prototypes) > 5
    assert all(len(found) == 1 for found in by_prototypes.values())


def test_log_prob_is_the_likelihood_of_the_draw():
    backend, pool = setting()
    for draw in take(backend, pool, stop=10):
        if not draw.finished:
            continue
        sequence = torch.tensor([[1, *draw.tokens, 2]])
        memory = torch.from_numpy(pool.tokens[list(draw.prototypes)].astype(np.int64))[None]
        expected = backend.network.log_likelihood(sequence, memory).sum().item()
        assert draw.log_prob == pytest.approx(expected, rel=1e-9)


def test_giving_rows_up_changes_nothing_that_is_kept():
    backend, pool = setting()
    training = Training(pool)
    for novelty in ("both", "source", "pair"):
        config = FilterConfig(("novel",), novelty)
        whole, hurried = Filter(config, training), Filter(config, training)
        expected = [draw for draw, _, _ in whole.keep(take(backend, pool, stop=300))]
        got = take(backend, pool, stop=300, unwanted=hurried.unwanted, slots=7, workers=2)
        assert [draw.index for draw in got] == list(range(300))
        assert any(draw.given_up for draw in got) == (novelty != "pair")
        assert all(draw.given_up or draw.finished or len(draw.tokens) == 9 for draw in got)
        for draw in got:
            if draw.given_up:
                assert draw.tokens[-1] == 3 and draw.tokens[:-1] in training.sources
                assert not draw.finished
        kept = [draw for draw, _, _ in hurried.keep(got)]
        assert [(d.index, d.tokens) for d in kept] == [(d.index, d.tokens) for d in expected]
        assert kept and hurried.counts.drawn == whole.counts.drawn


def test_each_prototype_is_encoded_once_whatever_the_number_of_workers():
    backend, pool = setting()
    encoded, encode = [], backend.encode

    def counting(tokens):
        encoded.extend(tuple(row[row != 0].tolist()) for row in tokens)
        return encode(tokens)

    backend.encode = counting
    used = {member for draw in take(backend, pool, workers=4, slots=3) for member in draw.prototypes}
    assert sorted(encoded) == sorted(tuple(row[row != 0].tolist()) for row in pool.tokens[sorted(used)])


def test_a_failing_backend_is_reported_and_closing_stops_the_workers():
    backend, pool = setting()
    before = threading.active_count()
    stream = draws(
        backend, pool, seed=0, start=0, stop=10**12, max_length=9, temperature=(1.0, 1.0), slots=4, workers=2
    )
    assert next(stream).index == 0
    stream.close()
    assert threading.active_count() == before
    backend.step = lambda state: 1 / 0
    with pytest.raises(ZeroDivisionError):
        take(backend, pool)


def test_closing_stops_rows_that_are_not_done():
    """Else the first sample of a command would wait for hundreds of others."""
    backend, pool = setting()
    late, step, closing = [], backend.step, threading.Event()

    def slow(state):
        if closing.is_set():
            late.append(len(state.token))
            time.sleep(0.02)
        return step(state)

    backend.step = slow
    how = {"seed": 0, "start": 0, "stop": 10**12, "max_length": 200, "temperature": (1.0, 1.0)}
    stream = draws(backend, pool, **how, slots=64)
    next(stream)
    closing.set()
    stream.close()
    assert len(late) <= 2


def test_where_few_draws_are_enough_no_more_are_begun():
    backend, pool = setting()
    rows, step = [], backend.step

    def counting(state):
        rows.append(len(state.token))
        return step(state)

    backend.step = counting
    for enough, workers, most in [(1, 2, 1), (5, 2, 3), (None, 2, FIRST), (1000, 1, FIRST)]:
        rows.clear()
        drawn = take(backend, pool, stop=300, slots=64, workers=workers, enough=enough)
        assert rows[0] == most and max(rows) > FIRST
        assert [draw.index for draw in drawn] == list(range(300))


def test_pool_draws_uniformly_from_what_goes_together():
    sequences = [[5, 6, 3, 8], [5, 3, 8], [6, 3, 8], [5, 6, 7, 3, 8], [7, 3, 8]]
    pool = compatible(sequences, VOCABULARY, np.array([[0, 3, 3]], dtype=np.int32), "long-long", "mean")
    sets = [set(sequence) for sequence in sequences]
    wanted = {(i, j) for i in range(5) for j in range(5) if len(sets[i] - sets[j]) == 1}
    assert pool.total == len(wanted)
    chosen = pool.choose(1, np.arange(6000))
    pairs, counts = np.unique(chosen, axis=0, return_counts=True)
    assert {tuple(pair) for pair in pairs.tolist()} == wanted
    assert abs(counts - 6000 / len(wanted)).max() < 5 * (6000 / len(wanted)) ** 0.5


def test_each_step_draws_with_its_own_number():
    backend, pool = setting()
    for draw in take(backend, pool, stop=12):
        numbers = random.uniforms(7, np.array([draw.index]), 9)[0].astype(np.float64)
        tokens = torch.from_numpy(pool.tokens[list(draw.prototypes)].astype(np.int64))[None]
        prefix = [1]
        for token, number in zip(draw.tokens, numbers, strict=False):
            logits = [backend.network.log_likelihood(torch.tensor([[*prefix, v]]), tokens)[0, -1] for v in range(1, 11)]
            weights = np.exp([-np.inf, *(float(value.detach()) for value in logits)])
            weights[[1, 4]] = 0  # never written: start and unknown
            if len(prefix) == 1:
                weights[[2, 3]] = 0  # nor first: end and separator
            cdf = np.cumsum(weights)
            assert token == int((cdf <= number * cdf[-1]).sum())
            prefix.append(token)


def test_what_could_not_be_encoded_is_encoded_when_it_is_asked_for_again():
    backend, pool = setting()
    memories = Memories(backend, pool)
    encode, failures = backend.encode, [MemoryError("no room")]

    def unsteady(tokens):
        if failures:
            raise failures.pop()
        return encode(tokens)

    backend.encode = unsteady
    chosen = pool.choose(0, np.arange(2))
    with pytest.raises(MemoryError):
        memories.prepare(chosen)
    memories.prepare(chosen)
    whole = Memories(TorchBackend(backend.network), pool)
    whole.prepare(chosen)
    for name, values in memories.fetch(chosen).items():
        np.testing.assert_array_equal(values, whole.fetch(chosen)[name])
        assert values.any()
