"""Exports compute what their checkpoints do, in every configuration, runtime and batch size; and would be caught."""

import copy
import time
from dataclasses import replace
from functools import partial
from threading import Event

import numpy as np
import pytest
import torch

from compgen.data.vocabulary import EOS_ID
from compgen.errors import BundleError
from compgen.export import verify as verification
from compgen.export.assemble import assemble
from compgen.export.verify import distance, judge, parity, task, verify
from compgen.models.backend import TorchBackend
from compgen.progress import Progress
from compgen.runtime.bundle import Bundle
from compgen.runtime.onnx_backend import OnnxLoop
from compgen.runtime.torchscript_backend import TorchScriptBackend
from compgen.sampling.batching import draws
from tests.export.tiny import exported, make

BATCHES = {1: 6, 7: 60, 60: 60}
ALONE = {"memories": 0, "copying": False, "feed": False}
LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("generator", {}),
        pytest.param(
            "generator", {"memories": 1, "feed": False, "tied": False, "output": 6, "initial": "encoder"}, marks=LONG
        ),
        pytest.param(
            "generator", {"copying": False, "encoder_shared": False, "positions": 0, "initial": "encoder"}, marks=LONG
        ),
        pytest.param("generator", ALONE, marks=LONG),
        pytest.param("predictor", {"initial": "encoder"}, marks=LONG),
        ("predictor", {"feed": False, "copying": False, "activation": "linear", "tied": False, "output": 6}),
        pytest.param("generator", {"own": 30, "mixing": "gate", "initial": "encoder", "positions": 0}, marks=LONG),
        pytest.param("generator", {"own": 3, "mixing": "word", "feed": False}, marks=LONG),
        pytest.param(
            "generator", {"latent": 2, "own": 9, "mixing": "gate", "memories": 1, "initial": "encoder"}, marks=LONG
        ),
        pytest.param("generator", ALONE | {"copying": True, "own": 5, "mixing": "gate"}, marks=LONG),
        pytest.param("predictor", {"own": 4, "mixing": "word"}, marks=LONG),
        pytest.param("generator", {"latent": 5, "own": 9, "mixing": "gate"}, marks=LONG),
        pytest.param("generator", ALONE | {"latent": 32}, marks=LONG),
    ],
    ids=str,
)
def test_every_runtime_draws_the_same_samples(kind, changes, has_runner):
    rows = parity(make(kind, **changes), BATCHES, native=has_runner, quiet=True)
    assert len(rows) == 2 * (5 + 2 * has_runner) * len(BATCHES)
    assert all(row.differing == 0 for row in rows if row.dtype == "float64")
    assert all(row.explained == row.differing for row in rows)
    assert {row.samples for row in rows} == {6, 60}
    assert all(row.tokens > 2 * row.samples for row in rows)


@pytest.mark.parametrize("loop", [OnnxLoop, partial(TorchScriptBackend, trust_code=True)], ids=["onnx", "torchscript"])
def test_a_loop_takes_any_width_and_length_and_scores_like_the_sampler(loop):
    bundle = Bundle.load(exported())
    work = task(make(), 30)
    run = loop(bundle)
    warmth = np.array(work.temperature, dtype=np.float32)
    uniforms = np.ascontiguousarray(work.uniforms.T)
    tokens, log_prob = run.sample(work.memory_tokens, uniforms, warmth)
    expected = list(
        draws(
            TorchBackend(make().network),
            bundle.pool,
            seed=20_220,
            start=0,
            stop=30,
            max_length=9,
            temperature=work.temperature,
        )
    )
    assert [work.ended(draw.tokens) for draw in expected] == work.looped(run, "float32", 30, 30)
    np.testing.assert_allclose(log_prob, [draw.log_prob for draw in expected], rtol=1e-4)
    for column in tokens.T.tolist():
        ends = column.index(EOS_ID) if EOS_ID in column else len(column)
        assert 0 not in column[:ends]
        assert not any(column[ends + 1 :])
    wider = np.pad(work.memory_tokens, [(0, 0), (0, 0), (0, 4)])
    np.testing.assert_array_equal(run.sample(wider, uniforms, warmth)[0], tokens)
    # A longer limit changes only rows that had not ended; the loop stops early and still gives L rows.
    longer = np.concatenate([uniforms, np.zeros((200, 30), np.float32)])
    more, _ = run.sample(work.memory_tokens, longer, warmth)
    assert more.shape == (209, 30)
    np.testing.assert_array_equal(more[:9], tokens)


def test_an_export_of_other_weights_is_caught(tmp_path):
    checkpoint = make()
    other = replace(checkpoint, network=copy.deepcopy(checkpoint.network))
    with torch.no_grad():
        other.network.combine.bias += 0.2
    with pytest.raises(BundleError, match=r"float32.*sequences differ.*rounding"):
        verify(checkpoint, assemble(other, tmp_path), {7: 40}, quiet=True)


def test_after_an_error_runners_begin_no_further_batch(monkeypatch):
    monkeypatch.setattr(verification, "cores", lambda: 2)
    begun, failing, batches = Event(), Event(), []

    def fails(*_):
        assert begun.wait(10)
        failing.set()
        raise KeyboardInterrupt

    def works(_, batch):
        batches.append(batch)
        begun.set()
        assert failing.wait(10)
        time.sleep(0.2)  # in which the error reaches the others
        return [(EOS_ID,)]

    with pytest.raises(KeyboardInterrupt), Progress("verify", 6, quiet=True) as progress:
        verification.compare(
            [(EOS_ID,)], "float32", {"fails": fails, "works": works}, {1: 1, 64: 1, 1000: 1}, None, progress
        )
    assert batches == [1]


@pytest.mark.parametrize("temperature", [(1.0, 1.0), (0.0, 0.0)])
def test_distance_is_how_far_the_uniform_number_is_from_another_token(temperature):
    checkpoint = make()
    checkpoint = replace(checkpoint, network=copy.deepcopy(checkpoint.network).double())
    truth = TorchBackend(checkpoint.network)
    work = replace(task(checkpoint, 12), temperature=temperature)
    # Only the prototypes come from the pool; the uniform numbers of the task are those that `distance` reads.
    expected = work.looped(Stepwise(truth), "float64", 12, 12)
    for row, written in enumerate(expected):
        at = min(2, len(written) - 1)
        for token in range(5, 12):
            if token == written[at]:
                continue
            gap = distance(work, truth, row, written, (*written[:at], token))
            assert gap > 0
            if temperature[0]:
                assert moved(work, truth, row, at, token, gap + 1e-6) == token
                assert moved(work, truth, row, at, token, gap - 1e-6) != token


def test_a_draw_beside_an_edge_counts_as_rounding_and_another_does_not():
    checkpoint = replace(make(), network=copy.deepcopy(make().network).double())
    truth = TorchBackend(checkpoint.network)
    work = replace(task(checkpoint, 1), temperature=(1.0, 1.0))
    (written,) = work.looped(Stepwise(truth), "float64", 1, 1)
    gaps = {token: distance(work, truth, 0, written, (token,)) for token in range(5, 12) if token != written[0]}
    nearest = min(gaps, key=gaps.__getitem__)
    sign = 1 if nearest > written[0] else -1
    for left, explained in ((5e-6, 1), (5e-5, 0)):
        uniforms = work.uniforms.astype(np.float64)
        uniforms[0, 0] += sign * (gaps[nearest] - left)
        judged = judge([written], [(nearest, *written[1:])], partial(distance, replace(work, uniforms=uniforms), truth))
        assert (judged["differing"], judged["explained"]) == (1, explained)
        assert judged["largest"] == pytest.approx(left, rel=1e-3)


def moved(work, truth, row, at, token, gap):
    """The token drawn at a step when its uniform number moves by `gap` towards the wanted token."""
    found = []
    for sign in (-1, 1):
        uniforms = work.uniforms.astype(np.float64)
        uniforms[row, at] += sign * gap
        changed = replace(work, uniforms=uniforms)
        one = replace(changed, memory_tokens=work.memory_tokens[row : row + 1], uniforms=uniforms[row : row + 1])
        found.append(one.looped(Stepwise(truth), "float64", 1, 1)[0][at])
    return token if token in found else None


class Stepwise:
    """A whole loop over TorchBackend's steps, written as plainly as can be."""

    def __init__(self, backend):
        self.backend = backend

    latent = None

    def sample(self, memory_tokens, uniforms, temperature, _latent=None):
        from compgen.runtime.predict import advance, opening

        state = opening(self.backend, memory_tokens, 0)
        tokens = np.zeros(uniforms.shape, dtype=np.int64)
        done = np.zeros(uniforms.shape[1], dtype=bool)
        for step, uniform in enumerate(uniforms):
            state, _ = advance(self.backend, state, uniform, temperature)
            tokens[step] = np.where(done, 0, state["token"])
            done |= state["token"] == EOS_ID
        return tokens, np.zeros(uniforms.shape[1])


def test_distance_is_infinite_for_what_no_rounding_can_do():
    checkpoint = replace(make(), network=copy.deepcopy(make().network).double())
    truth, work = TorchBackend(checkpoint.network), task(checkpoint, 1)
    (written,) = work.stepwise(truth, 1, 1)
    assert distance(work, truth, 0, written, (*written, 0)) == float("inf")
    assert distance(work, truth, 0, written, written[:-1]) == float("inf")
    assert distance(work, truth, 0, written, (EOS_ID,)) == float("inf")
    assert distance(work, truth, 0, written, (1, *written[1:])) == float("inf")
