"""Drawing with the whole loop behind one call, for accelerators: nothing crosses to the host between two steps.

A batch runs until its last row has ended. On a CPU continuous batching (`compgen.sampling.batching`), which refills
rows, is twice as fast; on a GPU a step costs as much for one row as for thousands. The samples are the same, since
each is a function of its address alone.
"""

from collections.abc import Iterator

import numpy as np

from compgen.data import random
from compgen.data.vocabulary import EOS_ID
from compgen.runtime.backend import Loop, check_numbers, check_tokens
from compgen.runtime.pool import PrototypePool
from compgen.sampling.batching import Draw

ROWS = 4096  # decoded together by default


def loop_draws(
    loop: Loop,
    pool: PrototypePool,
    *,
    seed: int,
    start: int,
    stop: int,
    max_length: int,
    temperature: tuple[float, float],
    vocabulary: int,
    rows: int = ROWS,
) -> Iterator[Draw]:
    """Yield the draws of addresses start .. stop - 1, in order, `rows` at a time; `vocabulary` is a number of tokens.

    Raises:
        BundleError: the network gives a token outside the vocabulary, or a probability that is no number.
    """
    for first in range(start, stop, rows):
        addresses = np.arange(first, min(first + rows, stop), dtype=np.int64)
        chosen = pool.choose(seed, addresses)
        uniforms = np.ascontiguousarray(random.uniforms(seed, addresses, max_length).T.astype(loop.dtype))
        latent = None if loop.latent is None else loop.latent.draw(seed, addresses).astype(loop.dtype)
        tokens, log_probs = loop.sample(pool.sequences(chosen), uniforms, np.array(temperature, loop.dtype), latent)
        check_tokens(loop.name, tokens, vocabulary)
        check_numbers(loop.name, log_probs)
        columns = (addresses.tolist(), tokens.T.tolist(), log_probs.tolist(), chosen.tolist())
        for index, row, log_prob, prototypes in zip(*columns, strict=True):
            finished = EOS_ID in row
            written = tuple(row[: row.index(EOS_ID)] if finished else row)
            yield Draw(index, written, finished, log_prob, tuple(prototypes))
