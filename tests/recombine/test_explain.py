import numpy as np
import pytest

from compgen.errors import UserError
from compgen.recombine.explain import as_text, attention
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


def test_text_says_which_token_like_the_written_one_was_copied():
    found = attention(make(own=9, mixing="gate"), index=5, seed=2)
    lines = as_text(found)
    assert len(lines) == len(found.written)
    for line, token in zip(lines, found.written, strict=True):
        assert line.startswith(token) and ("written as a word" in line or line.endswith(f"({token})"))


def test_a_generator_that_looks_at_nothing_is_refused():
    with pytest.raises(UserError, match="expected recomb1, recomb2 or more"):
        attention(make(memories=0, copying=False, feed=False), 0)
