"""Text scored by a recurrent language model: a generator without prototypes (`cgen train recombine`, recomb0).

A sentence is a source with an empty target: its end is the separator and the end symbol together. An unknown word has
the probability of `<unk>`, which training never shows.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import BOS_ID, EOS_ID, SEP_ID, SPECIALS, UNK_ID
from compgen.errors import UserError

BATCH = 64  # sentences scored together; a step has the probabilities of all words for each


class NeuralModel:
    """A recurrent language model, from a checkpoint or a bundle."""

    def __init__(self, path: Path, threads: int = 1) -> None:
        """Open a model; raises UserError if it cannot be used, has prototypes, or was trained on pairs."""
        from compgen.trained.architectures import DRAWS, Runtime, open_model

        model = open_model(path, DRAWS, Runtime(threads=threads))
        self.ids = {token: number for number, token in enumerate(model.vocabulary) if number >= len(SPECIALS)}
        if model.backend is None or model.pool.prototypes:
            raise UserError(f"{path}: a generator with prototypes or a grammar, expected a language model")
        tokens = model.pool.tokens
        if (tokens[:, 1:][tokens[:, :-1] == SEP_ID] != EOS_ID).any():
            raise UserError(f"{path}: a generator of pairs, expected a language model, which is trained on sentences")
        self.backend: Any = model.backend

    def score(self, sentences: Sequence[Sequence[str]]) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
        """Return log10 p of each token, (T), the ends of sentences included; and whether it is known, 1 or 0, (T)."""
        ids = [[self.ids.get(word, UNK_ID) for word in words] for words in sentences]
        ends = np.cumsum([len(words) + 1 for words in ids])
        log10 = np.zeros(int(ends[-1]) if len(ends) else 0, dtype=np.float32)
        order = np.argsort([len(words) for words in ids], kind="stable")
        for start in range(0, len(order), BATCH):
            rows = order[start : start + BATCH].tolist()
            for row, scored in zip(rows, self._batch([ids[row] for row in rows]), strict=True):
                log10[ends[row] - len(scored) : ends[row]] = scored
        known = np.array([token != UNK_ID for words in ids for token in (*words, EOS_ID)], dtype=np.uint8)
        return log10, known

    def words(self) -> set[str]:
        """Return the words that it knows, without its special symbols."""
        return set(self.ids)

    def _batch(self, sentences: list[list[int]]) -> list[NDArray[np.float64]]:
        """Return log10 p of the tokens of each of B sentences of similar lengths."""
        from compgen.runtime.predict import advance, opening

        rows = len(sentences)
        steps = max(map(len, sentences)) + 2
        written = np.full((rows, steps), EOS_ID, dtype=np.int64)  # (B, steps)
        for row, words in enumerate(sentences):
            written[row, : len(words) + 1] = [*words, SEP_ID]
        state: dict[str, Any] = opening(self.backend, np.zeros((rows, 0, 0), dtype=np.int64), half=0)
        found = np.zeros((rows, steps))
        for step in range(steps):
            token = np.full(rows, BOS_ID) if step == 0 else written[:, step - 1]
            state, log_probs = advance(self.backend, state | {"token": token})  # log_probs: (B, V)
            found[:, step] = log_probs[np.arange(rows), written[:, step]]
        found /= np.log(10)
        return [
            np.append(found[row, : len(words)], found[row, len(words)] + found[row, len(words) + 1])
            for row, words in enumerate(sentences)
        ]
