"""Hashes of templates, against the polynomial that they are by definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.geca.arrays import BASE, mix, powers
from compgen.geca.corpus import Corpus
from compgen.geca.enumeration import Enumerator
from compgen.geca.realise import realise
from compgen.geca.spans import Spans

SIDE = st.lists(st.sampled_from("abc"), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SIDE, SIDE), min_size=1, max_size=4), st.integers(1, 3), st.booleans(), st.integers(0, 2))
@pytest.mark.parametrize("window", [None, 1])
def test_the_hash_of_a_template_is_the_polynomial_of_its_tokens(window, pairs, count, renumber, salt):
    corpus = Corpus.of(Dataset.from_pairs(pairs), None)
    enumerator = Enumerator(corpus, Spans.of(corpus, 2, None), count, window, renumber, salt)
    for rows in enumerator.rows(corpus.short):
        example, fragment = rows["example"].to_numpy().astype(np.int64), rows["fragment"].to_numpy()
        templates = realise(enumerator, example, fragment)
        for number, hashed in enumerate(rows["template"].to_list()):
            tokens = templates.tokens[templates.starts[number] : templates.starts[number + 1]]
            terms = enumerator.values[tokens] * powers(BASE, len(tokens))
            assert mix(np.array([terms.sum(dtype=np.uint64)]))[0] == hashed
