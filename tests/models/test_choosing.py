"""Which tokens may come, and how one is chosen among them, against the definitions."""

import numpy as np
import torch

from compgen.data.vocabulary import forbidden
from compgen.models.attention import MASKED
from compgen.models.choosing import choose, forbidden_tokens, written_greedily

WORDS = 9


def test_the_table_says_what_is_forbidden_at_a_position():
    table = forbidden_tokens(WORDS)
    for row, position in ((1, 0), (0, 1), (0, 7)):
        assert table[row].nonzero()[:, 0].tolist() == sorted(forbidden(position))


def test_a_token_is_chosen_by_inverse_cdf():
    torch.manual_seed(0)
    log_probs = torch.log_softmax(torch.randn(200, WORDS, dtype=torch.float64), dim=1)
    uniform = torch.rand(200, dtype=torch.float64)
    temperature = torch.tensor([0.0, 0.5, 1.0, 2.0], dtype=torch.float64).repeat(50)
    table = forbidden_tokens(WORDS)[torch.arange(200) % 2]
    found = choose(log_probs, table, uniform, temperature, MASKED)
    for row in range(200):
        weights = np.where(table[row], 0.0, log_probs[row].exp())
        if temperature[row] == 0:
            assert found[row] == weights.argmax()
            continue
        cdf = np.cumsum(weights ** (1 / float(temperature[row])))
        assert found[row] == (cdf <= float(uniform[row]) * cdf[-1]).sum()


def test_a_target_is_written_greedily_if_each_of_its_tokens_is_the_best_that_is_allowed():
    targets = torch.tensor([[5, 6, 2, 0], [5, 6, 2, 0], [5, 3, 6, 2]])
    log_probs = torch.full((3, 4, WORDS), -9.0).scatter(2, targets.unsqueeze(2), -1.0)
    log_probs[:, 0, [1, 2, 3]] = log_probs[:, 1, [0, 1, 4]] = -0.5  # better, but forbidden
    assert written_greedily(log_probs.clone(), targets).tolist() == [True, True, True]
    log_probs[1, 1, 7] = log_probs[2, 3, 8] = -0.5
    assert written_greedily(log_probs, targets).tolist() == [True, False, False]
