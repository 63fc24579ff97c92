"""Greedy decoding and beam search: against each other, a hand-made model, and all sequences that there are."""

import itertools

import numpy as np
import pytest

from compgen.errors import UserError
from compgen.models.backend import TorchBackend
from compgen.runtime.backend import Shape, StepOutputs
from compgen.runtime.beam import beam, beam_over, nbest
from compgen.runtime.predict import Recurrent, greedy
from tests.export.tiny import make

EOS, SEP, A, B = 2, 3, 5, 6
SOURCES = [[5, 6, 7], [8], [9, 9, 10, 11, 5], [], [6, 5], [7, 7, 7, 7]]


class Table:
    """A model that is a table: tokens written so far to the probabilities of the next, over seven tokens."""

    shape = Shape(1, 1, "float64")

    def __init__(self, table):
        self.table, self.name = table, "a table"
        self.written = {}

    def encode(self, tokens):
        nothing = np.zeros((len(tokens), 1, tokens.shape[1], 1))
        return nothing, nothing, np.zeros((len(tokens), 1, 2))

    def start(self, final):
        """The state is a number that stands for what was written; 0 for nothing."""
        self.written = {0.0: ()}
        return np.zeros((len(final), 1)), np.zeros((len(final), 1))

    def step(self, inputs):
        hidden = inputs.hidden.copy()
        log_probs = np.full((len(hidden), 7), -1e9)
        for row, (number, token) in enumerate(zip(hidden[:, 0], inputs.token, strict=True)):
            so_far = self.written[number] + (() if inputs.position[row] == 0 else (int(token),))
            hidden[row, 0] = float(hash(so_far))
            self.written[hidden[row, 0]] = so_far
            for after, probability in self.table.get(so_far, {EOS: 1.0}).items():
                log_probs[row, after] = np.log(probability)
        return StepOutputs(log_probs.argmax(axis=1), log_probs, inputs.half, hidden, inputs.cell, inputs.fed)


# Greedy goes to A (0.6) and ends at 0.6 * 0.5 = 0.3; B (0.4) ends at 0.4 * 0.9 = 0.36.
GARDEN_PATH = Table({(): {A: 0.6, B: 0.4}, (A,): {EOS: 0.5, A: 0.25, B: 0.25}, (B,): {EOS: 0.9, A: 0.1}} | {
    (x, y): {EOS: 1.0} for x, y in itertools.product((A, B), repeat=2)
})  # fmt: skip


def test_beam_finds_what_greedy_passes_by():
    assert greedy(Recurrent(GARDEN_PATH), [[5]], 4) == [([A], pytest.approx(np.log(0.3)))]
    assert beam(Recurrent(GARDEN_PATH), [[5]], 1, 4) == [([A], pytest.approx(np.log(0.3)))]
    assert beam(Recurrent(GARDEN_PATH), [[5]], 2, 4) == [([B], pytest.approx(np.log(0.36)))]


def test_without_an_end_the_best_unfinished_hypothesis_counts():
    assert greedy(Recurrent(GARDEN_PATH), [[5]], 1) == [([A], pytest.approx(np.log(0.6)))]
    assert beam(Recurrent(GARDEN_PATH), [[5]], 3, 1) == [([A], pytest.approx(np.log(0.6)))]


def test_where_no_token_may_be_written_the_output_is_empty():
    class Specials(Table):
        def step(self, inputs):
            found = super().step(inputs)
            return found._replace(log_probs=found.log_probs[:, :5])

    assert nbest(Recurrent(Specials({})), [[5]], 2, 3, 4) == [[([], 0.0)]]


@pytest.mark.parametrize("changes", [{}, {"initial": "encoder", "copying": False}], ids=str)
def test_width_one_is_greedy_and_batches_do_not_matter(changes):
    backend = TorchBackend(make("predictor", **changes).network)
    one_by_one = [greedy(Recurrent(backend), [source], 9)[0] for source in SOURCES]
    assert len({tuple(tokens) for tokens, _ in one_by_one}) > 2
    for batch in (1, 4, 6):
        for found in (
            greedy(Recurrent(backend), SOURCES, 9, batch),
            beam(Recurrent(backend), SOURCES, 1, 9, batch=batch),
        ):
            assert [tokens for tokens, _ in found] == [tokens for tokens, _ in one_by_one]
            np.testing.assert_allclose([s for _, s in found], [s for _, s in one_by_one], rtol=1e-4)


def test_a_wide_beam_finds_the_best_of_all_sequences():
    import torch

    network = make("predictor").network
    source = torch.tensor([[[5, 6, 7, EOS]]])
    bodies = [body for length in (1, 2) for body in itertools.product(range(3, 12), repeat=length)]
    likelihoods = {}
    for body in bodies:
        if body[0] != SEP and 4 not in body:
            with torch.no_grad():
                found = network.log_likelihood(torch.tensor([[1, *body, EOS]]), source).sum()
            likelihoods[body] = found.item()
    expected = sorted(likelihoods, key=lambda body: -likelihoods[body])[:7]
    decoder = Recurrent(TorchBackend(network))
    for count in (1, 3, 7):
        (found,) = nbest(decoder, [[5, 6, 7]], count, 200, 3)
        assert [tuple(tokens) for tokens, _ in found] == expected[:count]
        assert [score for _, score in found] == pytest.approx(
            [likelihoods[body] for body in expected[:count]], rel=1e-4
        )
    assert beam(decoder, [[5, 6, 7]], 200, 3) == found[:1]


def test_fewer_are_found_where_fewer_end():
    both = nbest(Recurrent(GARDEN_PATH), [[5], [5, 5]], 2, 2, 4)
    assert both[0] == both[1] == [([B], pytest.approx(np.log(0.36))), ([A], pytest.approx(np.log(0.3)))]
    (unfinished,) = nbest(Recurrent(GARDEN_PATH), [[5]], 3, 3, 1)
    assert unfinished == [([A], pytest.approx(np.log(0.6)))]
    (all_there_are,) = nbest(Recurrent(GARDEN_PATH), [[5]], 50, 50, 4)
    likely = [np.exp(score) for _, score in all_there_are if score > -100]
    assert len(likely) == 5 and sum(likely) == pytest.approx(1)  # A, B, AA, AB, BA


def test_wider_is_no_worse_for_generators_too():
    checkpoint = make()
    backend = TorchBackend(checkpoint.network)
    prototypes = checkpoint.pool.tokens[[[0, 1], [3, 2]]].astype(np.int64)
    narrow, wide = (beam_over(backend, prototypes, width, 9) for width in (1, 8))
    assert all(after >= before - 1e-6 for (_, before), (_, after) in zip(narrow, wide, strict=True))


def test_a_beam_has_a_width():
    with pytest.raises(UserError, match="best 3: expected 1 to 2"):
        nbest(Recurrent(GARDEN_PATH), [[5]], 3, 2, 4)
    with pytest.raises(UserError, match="beam width 0"):
        beam(Recurrent(GARDEN_PATH), [[5]], 0, 4)
    assert beam(Recurrent(GARDEN_PATH), [], 2, 4) == []
    nobody = None  # ONNX Runtime, asked for no rows, would end the process
    assert beam_over(nobody, np.zeros((0, 1, 3), np.int64), 2, 4) == []
    assert greedy(Recurrent(GARDEN_PATH), [], 4) == []
