"""A trained grammar where a generator has its network: draws as token ids by address, and answers to sources."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from compgen.data.vocabulary import SEP_ID, Vocabulary
from compgen.sampling.batching import Draw

if TYPE_CHECKING:  # polars alone takes a tenth of a second
    from compgen.csl.trained import TrainedGrammar


MOST_ROWS = 1 << 16  # derived together: more take memory and gain nothing


class GrammarBackend:
    """Draws pairs from a grammar, in the ids of a vocabulary that has all its tokens."""

    def __init__(self, trained: "TrainedGrammar", vocabulary: Vocabulary) -> None:
        self.trained = trained
        self._ids = np.array(vocabulary.encode(trained.grammar.alphabet.tokens), dtype=np.int64)

    def draws(self, seed: int, start: int, stop: int, temperature: float, rows: int) -> Iterator[Draw]:
        """The draws of addresses start .. stop - 1, in order, `rows` drawn together; raises as `Sampler`."""
        rows = min(rows, MOST_ROWS)  # samples do not depend on it
        for block in self.trained.sampler(temperature).blocks(seed, start, stop, rows):
            sources, targets = (self._ids[numbers].tolist() for numbers in block.numbers)
            ends = (np.cumsum(lengths).tolist() for lengths in block.lengths)
            one = other = 0
            for index, (end, last, score) in enumerate(zip(*ends, block.log_probs.tolist(), strict=True), block.start):
                tokens = (*sources[one:end], SEP_ID, *targets[other:last])
                one, other = end, last
                yield Draw(index, tokens, True, score, ())

    def answers(self, sources: Sequence[Sequence[str]], watch: Callable[[int], None] | None = None) -> list[list[str]]:
        """The target of each source's best derivation; none where there is no derivation."""
        parser = self.trained.parser()
        found = []
        for number, source in enumerate(sources, 1):
            found.append(parser.parse(list(source)) or [])
            if watch is not None:
                watch(number)
        return found
