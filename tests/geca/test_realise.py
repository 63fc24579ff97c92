"""Sequences are compared token by token, as equal hashes do not make them equal."""

import numpy as np

from compgen.data.examples import Dataset
from compgen.geca import realise
from compgen.geca.corpus import Corpus
from compgen.geca.realise import Known, Sequences, same


def test_equal_sequences_have_equal_lengths_and_all_tokens_in_common():
    first = Sequences(np.array([1, 2, 3, 4, 5, 6]), np.array([0, 2, 4, 6]))
    second = Sequences(np.array([1, 2, 3, 9, 5, 6, 7]), np.array([0, 2, 4, 7]))
    assert same(first, second).tolist() == [True, False, False]


def test_a_new_example_with_the_hash_of_a_known_one_is_new(monkeypatch):
    monkeypatch.setattr(realise, "_hashes", lambda sequences: np.zeros(len(sequences), dtype=np.uint64))
    corpus = Corpus.of(Dataset.from_pairs([(["a"], ["A"])]), None)
    _, source, _, target, _ = corpus.tokens.tolist()
    new = corpus.tokens.copy()
    new[1], new[3] = target, source
    asked = Sequences(np.concatenate([corpus.tokens, new]), np.array([0, 5, 10]))
    for novelty in ("pair", "source", "both"):
        assert Known(corpus, novelty).holds(asked).tolist() == [True, False]
