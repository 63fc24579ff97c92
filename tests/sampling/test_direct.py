"""Direct inference against its definition, written plainly."""

import itertools

import numpy as np
import pytest
import torch

from compgen.errors import UserError
from compgen.models.backend import TorchBackend
from compgen.sampling import direct as direct_module
from compgen.sampling.direct import Direct
from tests.export.tiny import make

SOURCES = [list(source) for length in (1, 2, 3) for source in itertools.product((5, 6, 7), repeat=length)]


def direct(each=3, **changes):
    checkpoint = make(**changes)
    checkpoint.network.double()
    for parameter in checkpoint.network.parameters():  # so that prototypes matter, and answers differ
        parameter.data *= 2
    return checkpoint, Direct(TorchBackend(checkpoint.network), checkpoint.pool, checkpoint.max_length, each)


def memories(checkpoint, rows):
    tokens = torch.from_numpy(checkpoint.pool.tokens[list(rows)].astype(np.int64))
    return tokens[None, :, : int((tokens != 0).sum(dim=1).max())]


def log_prob(checkpoint, source, answer, rows):
    sequence = torch.tensor([[1, *source, 3, *answer, 2]])
    return float(checkpoint.network.log_likelihood(sequence, memories(checkpoint, rows)).sum())


@pytest.mark.parametrize("changes", [{}, {"memories": 1, "initial": "encoder"}, {"own": 12, "mixing": "gate"}], ids=str)
@torch.no_grad()
def test_the_answer_is_the_most_probable_candidate_with_prototypes_summed_out(changes):
    checkpoint, answering = direct(**changes)
    chosen = answering.retrieved(SOURCES)
    found = answering.answers(SOURCES)
    contested = overruled = 0
    for source, rows, answer in zip(SOURCES, chosen, found, strict=True):
        assert len(rows) == len(set(rows))
        written = [answering._forced([[*source, 3]], np.array([pair]), answer=True)[0][0] for pair in rows]
        candidates = dict.fromkeys(map(tuple, written))
        total = {c: np.logaddexp.reduce([log_prob(checkpoint, source, c, pair) for pair in rows]) for c in candidates}
        assert total[tuple(answer)] == pytest.approx(max(total.values()), abs=1e-9)
        contested += len(total) > 1
        overruled += tuple(answer) != next(iter(candidates))
    assert contested > 2 and overruled, "the sources leave nothing to rank"


def test_many_fair_witnesses_outweigh_a_good_one(monkeypatch):
    _, answering = direct()
    monkeypatch.setattr(answering, "retrieved", lambda sources: [[(0, 1), (0, 2), (0, 3)]])
    one, three = [-1.0, -10.0, -10.0], [-1.5, -1.5, -1.5]
    replies = iter([([[8], [9], [9]], np.zeros(3)), ([], np.array([*one, *three]))])
    monkeypatch.setattr(answering, "_forced", lambda *given, **how: next(replies))
    assert answering.answers([[5, 6]]) == [[9]]


def test_prototypes_are_like_the_source_and_like_what_is_missing():
    _, answering = direct()
    for source, rows in zip(SOURCES, answering.retrieved(SOURCES), strict=True):
        for first, second in rows:
            assert set(source) - answering.held[first] or not any(set(source) - held for held in answering.held)
            assert abs(len(answering.sources[second]) - len(set(source) - answering.held[first])) <= 4


def test_an_example_is_no_prototype_of_its_own_source():
    _, answering = direct(memories=1, initial="encoder")
    known = [[ord(letter) - 0x100 for letter in text] for text in answering.sources]
    for source, rows in zip(known, answering.retrieved(known), strict=True):
        assert not any(known[first] == source for first, *_ in rows)


def test_where_no_prototype_may_be_taken_the_nearest_is():
    checkpoint, answering = direct(each=2)
    letters = [5, 6, 7, 5, 6, 7]
    answering.held = [frozenset([letter]) for letter in letters]
    answering.sources = [chr(0x100 + letter) * 9 for letter in letters]  # all too long for a second prototype
    pairs = answering.retrieved([[5, 5, 5, 5, 5, 5, 5, 5, 6]])[0]
    assert {first for first, _ in pairs} == {0, 3}
    assert {answering.sources[second][0] for _, second in pairs} == {chr(0x106)}
    with pytest.raises(UserError, match="expected one prototype or more"):
        Direct(TorchBackend(checkpoint.network), checkpoint.pool, 9, each=0)


def test_only_generators_with_prototypes_answer():
    checkpoint = make(memories=0, copying=False, feed=False)
    with pytest.raises(UserError, match="one prototype or two: found a generator with 0"):
        Direct(TorchBackend(checkpoint.network), checkpoint.pool, 9)


@pytest.mark.parametrize("rows", [2, pytest.param(512, marks=pytest.mark.long)])
@torch.no_grad()
def test_what_is_given_is_scored_and_what_is_asked_for_is_written_greedily(monkeypatch, rows):
    """Whatever shares a batch, of whatever lengths."""
    monkeypatch.setattr(direct_module, "ROWS", rows)
    checkpoint, answering = direct()
    given = [[*source, 3] for source in SOURCES[::4]]
    pairs = np.array([[place % 5, (place + 1) % 5] for place in range(len(given))])
    answering.memories.prepare(pairs)
    written, scores = answering._forced(given, pairs, answer=True)
    assert len({len(answer) for answer in written}) > 1
    for prefix, pair, answer, score in zip(given, pairs, written, scores, strict=True):
        likelihood = checkpoint.network.log_likelihood
        ended = len(prefix) + len(answer) < checkpoint.max_length
        tokens = [1, *prefix, *answer, *([2] if ended else [])]
        each = likelihood(torch.tensor([tokens]), memories(checkpoint, pair))[0].tolist()
        assert score == pytest.approx(sum(each[: len(prefix)]), abs=1e-9)
        for place in range(len(prefix), len(tokens) - 1):  # greedily: no other token is more probable
            others = [
                float(likelihood(torch.tensor([[*tokens[: place + 1], token]]), memories(checkpoint, pair))[0, place])
                for token in (2, 3, *range(5, 12))
            ]
            assert each[place] == pytest.approx(max(others), abs=1e-9)
    whole = [[*prefix, *answer, 2] for prefix, answer in zip(given, written, strict=True)]
    nothing, scores = answering._forced(whole, pairs, answer=False)
    assert nothing == [[] for _ in given]
    for tokens, pair, score in zip(whole, pairs, scores, strict=True):
        each = checkpoint.network.log_likelihood(torch.tensor([[1, *tokens]]), memories(checkpoint, pair))
        assert score == pytest.approx(float(each.sum()), abs=1e-9)


def test_sources_are_answered_in_blocks_and_the_watcher_hears_of_each(monkeypatch):
    _, answering = direct()
    expected, heard = answering.answers(SOURCES), []
    monkeypatch.setattr(direct_module, "BLOCK", 15)
    assert answering.answers(SOURCES, heard.append) == expected
    assert heard == [15, 30, len(SOURCES)]


def test_a_second_prototype_is_at_most_four_tokens_longer_than_what_is_missing():
    _, answering = direct(each=6)
    missing = [6, 7, 8, 9, 10, 11]
    answering.held = [frozenset([5])] * 6
    text = "".join(chr(token + 0x100) for token in missing)
    answering.sources = [text + text[:1] * more for more in (3, 4, 5, 5, 5, 5)]  # all are more than half alike
    assert {second for _, second in answering.retrieved([[5, *missing]])[0]} == {0, 1}
    answering.sources = [text[: 6 - less] for less in (2, 3, 3, 3, 3, 3)]
    assert 0 in {second for _, second in answering.retrieved([[5, *missing]])[0]}


@pytest.mark.parametrize(
    ("similarity", "allowed", "count", "expected"),
    [
        ([0.9, 0.8, 0.7, 0.95], [1, 1, 1, 1], 2, [3, 0]),
        ([0.9, 0.8, 0.7, 0.95], [1, 1, 1, 0], 3, [0, 1, 2]),
        ([0.9, 0.5, 0.7, 0.51], [1, 1, 1, 1], 4, [0, 2, 3]),  # half alike is not near
        ([0.3, 0.4, 0.2, 0.1], [1, 0, 1, 1], 3, [0]),  # nothing is near: the nearest allowed
        ([0.3, 0.4, 0.9, 0.9], [0, 0, 0, 0], 3, [2, 3]),  # nothing is allowed: as if all were
        ([0.8, 0.8, 0.8, 0.8], [1, 1, 1, 1], 2, [0, 1]),
    ],
)
def test_the_nearest_that_are_allowed_and_near(similarity, allowed, count, expected):
    found = direct_module._best(np.array(similarity, np.float32), np.array(allowed, bool), count)
    assert found == expected
