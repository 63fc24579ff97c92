"""What a generator is trained on, what watches it, and what its checkpoint says."""

import re

import numpy as np
import pytest
import torch

from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.data.vocabulary import SEP_ID, Vocabulary
from compgen.errors import ConfigError, DataError, UserError
from compgen.recombine import training as generator
from compgen.recombine.config import RecombineConfig
from compgen.recombine.neighborhoods import build
from compgen.recombine.rows import NeighborhoodExamples, as_sequences
from compgen.recombine.training import per_token_loss, train_generator
from compgen.training.loop import Outcome
from tests.export.tiny import SEQUENCES, make

TINY = [f"network.{name}=6" for name in ("hidden", "encoder_hidden", "embedding", "output", "attention")]
PLAIN = ["neighborhood.cover=false", "neighborhood.delta=0.1", "optimisation.steps=3", "optimisation.batch=4"]


def commands(extra=()):
    verbs, times = ["walk", "run", "look", "hop"], {"": 1, "twice": 2, "thrice": 3}
    pairs = [([v, *([t] if t else [])], [v.upper()] * n) for v in verbs for t, n in times.items()]
    return Dataset.from_pairs([*pairs, *extra])


def config(*more):
    return load_config(RecombineConfig, "recombine_small", [*TINY, *PLAIN, "unknown_below=0", *more])


@pytest.fixture
def parts(monkeypatch):
    """What is trained on and what watches, as they are made: (rows, batch, seed) each."""
    seen = []

    class Watched(NeighborhoodExamples):
        def __init__(self, sequences, rows, batch, seed, *rest):
            super().__init__(sequences, rows, batch, seed, *rest)
            seen.append((rows, batch, seed))

    monkeypatch.setattr(generator, "NeighborhoodExamples", Watched)
    return seen


def rows_of(dataset, options, seed):
    vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
    return build(as_sequences(dataset, vocabulary), vocabulary, options.prototypes, options.neighborhood, seed)


def as_sets(*arrays):
    return [{tuple(row) for row in rows.tolist()} for rows in arrays]


def test_it_trains_where_the_caller_has_turned_gradients_off(tmp_path):
    with torch.inference_mode():
        _, outcome = train_generator(commands(), config(), tmp_path / "g.pt", quiet=True)
    assert outcome.steps == 3


@pytest.mark.parametrize("by", ["example", "row"])
def test_a_share_of_examples_or_of_rows_is_held_out(tmp_path, parts, by):
    options = config("held_out=0.3", f"held_out_by={by}")
    checkpoint, outcome = train_generator(commands(), options, tmp_path / "g.pt", seed=3, quiet=True)
    every = rows_of(commands(), options, 3)
    (watched, _, _), (training, batch, seed) = parts
    assert (batch, seed) == (4, 3)
    held, kept, whole = as_sets(watched, training, every)
    assert held | kept == whole and not held & kept and 0.1 < len(held) / len(whole) < 0.5
    shared = {row[0] for row in held} & {row[0] for row in kept}
    assert bool(shared) == (by == "row")
    assert outcome.held_out is not None
    said = checkpoint.trained_on
    assert said["neighborhood_rows"] == len(every) and said["examples"] == len(commands())
    assert said["compatible_tuples"] == checkpoint.pool.total > 0
    assert (said["seed"], said["updates"]) == (3, 3)
    assert said["held_out_loss_nats_per_token"] == pytest.approx(outcome.held_out, abs=1e-5)


def test_without_a_share_to_hold_out_nothing_watches(tmp_path, parts):
    checkpoint, outcome = train_generator(commands(), config("held_out=0"), tmp_path / "g.pt", quiet=True)
    assert [len(rows) == 0 for rows, *_ in parts] == [True, False]
    assert outcome.held_out is None and checkpoint.trained_on["held_out_loss_nats_per_token"] is None


def test_repeated_examples_count_once_or_as_often_as_they_are_there(tmp_path, parts):
    twice = (["walk", "twice"], ["WALK", "WALK"])
    dataset = commands([twice, twice])
    rows = rows_of(dataset, config(), 0)
    for deduplicate in (True, False):
        train_generator(
            dataset, config("held_out=0", f"deduplicate={str(deduplicate).lower()}"), tmp_path / "g.pt", quiet=True
        )
    once, often = (len(training) for training, *_ in parts[1::2])
    repeated = [number for number, pair in enumerate(dataset.unique().pairs()) if pair == twice]
    assert once == len(rows)
    assert often == len(rows) + 2 * int(np.isin(rows[:, 0], repeated).sum()) > once


def test_rare_tokens_are_shown_as_unknown_and_no_others(tmp_path):
    dataset = commands([(["jump"], ["JUMP"]), (["jump", "twice"], ["JUMP", "JUMP"])])  # two examples hold jump
    for below, rare in ((0, set()), (2, set()), (3, {"jump", "JUMP"})):
        checkpoint, _ = train_generator(dataset, config(f"unknown_below={below}"), tmp_path / "g.pt", quiet=True)
        shown = checkpoint.network.shown.tolist()
        words = checkpoint.vocabulary.tokens
        assert {words[place] for place, token in enumerate(shown) if token != place} == rare
    assert config().network.token_dropout and RecombineConfig(network=config().network).unknown_below == 0


def test_sequences_are_cut_but_never_before_their_target(tmp_path):
    dataset = commands()
    vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
    whole = as_sequences(dataset, vocabulary)
    assert [len(sequence) for sequence in whole[:3]] == [3, 5, 6]
    assert as_sequences(dataset, vocabulary, 4) == [sequence[:4] for sequence in whole]
    with pytest.raises(DataError, match=r"a source has 2 tokens.*set max_tokens to 4 or more"):
        as_sequences(dataset, vocabulary, 3)
    assert as_sequences(Dataset.from_pairs([]), vocabulary, 3) == []
    assert config("max_tokens=3").max_tokens == 3
    with pytest.raises(ConfigError, match="max_tokens"):
        config("max_tokens=2")
    checkpoint, _ = train_generator(dataset, config("max_tokens=4"), tmp_path / "g.pt", quiet=True)
    assert checkpoint.pool.tokens.shape[1] <= 5
    assert checkpoint.max_length == int((checkpoint.pool.tokens != 0).sum(axis=1).max()) + 1


def test_as_many_examples_as_a_tuple_needs(tmp_path):
    few = Dataset.from_pairs([(["a", "b"], ["x", "y"]), (["a", "c"], ["x", "z"])])
    with pytest.raises(DataError, match="found 2 examples, expected 3 or more: one is learned from 2 others"):
        train_generator(few, config(), tmp_path / "g.pt", quiet=True)
    three = Dataset.from_pairs([*few.pairs(), (["b"], ["y"])])
    train_generator(three, config("held_out=0"), tmp_path / "g.pt", quiet=True)


def test_the_loss_that_watches_is_the_mean_of_tokens():
    checkpoint = make()
    rows = np.array([[0, 1, 2], [3, 4, 1], [5, 0, 3], [1, 2, 0]], dtype=np.int32)
    total = tokens = 0
    with torch.no_grad():
        for example, *prototypes in rows:
            longest = max(len(SEQUENCES[k]) for k in prototypes) + 1
            memory = torch.tensor([[[*SEQUENCES[k], 2] + [0] * (longest - len(SEQUENCES[k]) - 1) for k in prototypes]])
            sequence = torch.tensor([[1, *SEQUENCES[example], 2]])
            total -= float(checkpoint.network.log_likelihood(sequence, memory).sum())
            tokens += len(SEQUENCES[example]) + 1
    for batch in (1, 3, 9):
        examples = NeighborhoodExamples(SEQUENCES, rows, batch, 0)
        assert per_token_loss(checkpoint.network, examples, "cpu") == pytest.approx(total / tokens, rel=1e-5)
    seen = []
    examples = NeighborhoodExamples(SEQUENCES, rows, 2, 0)
    collate = examples.collate
    examples.collate = lambda batch: seen.append(len(batch)) or collate(batch)
    per_token_loss(checkpoint.network, examples, "cpu", rows=3)
    assert seen == [2], "at most so many rows, in whole batches"


def test_a_network_that_memory_cannot_hold_is_refused_before_it_is_made(tmp_path):
    with pytest.raises(UserError, match="memory"):
        train_generator(commands(), config("network.hidden=65536"), tmp_path / "g.pt", quiet=True)
    assert not list(tmp_path.iterdir())


def test_a_generator_that_bigram_counts_nearly_equal_is_called_undertrained(tmp_path):
    one, _ = train_generator(commands(), config("optimisation.steps=1"), tmp_path / "g.pt", quiet=True)
    assert "undertrained" in one.trained_on["warning"]
    assert "train longer (optimisation.steps, now 1)" in one.trained_on["warning"]
    found = generator.bigram_loss([[7, 8], [7, 7]])
    pairs = [1, 1 / 3, 1, 1, 1 / 3, 1 / 3]  # ^ a, a b, b $; ^ a, a a, a $
    assert found == pytest.approx(-np.log(pairs).sum() / 6)


@pytest.mark.parametrize(
    ("train", "held_out", "says"),
    [
        (0.40, None, "undertrained: its loss is 0.40 nats a token, that of bigram counts is 0.55"),
        (0.50, 0.40, "undertrained: its loss is 0.40"),
        (
            0.10,
            0.40,
            r"few to learn from: the held-out loss is 0.40 .* training loss is 0.10: .* \(more --minutes\)",
        ),
        (0.40, 0.10, None),  # with dropout
        (0.10, None, None),
    ],
)
def test_losses_are_compared_with_that_of_bigram_counts(train, held_out, says):
    found = generator._warning(Outcome(9, 1.0, train, held_out), [[7, 8], [7, 7]], 2)
    assert re.search(says, found["warning"]) if says else found == {}


def test_a_language_model_is_not_compared_with_counts_of_its_own_bigrams():
    outcome, sentences = Outcome(9, 1.0, 4.0, 4.5), [[7, 8, SEP_ID], [7, SEP_ID]]
    assert generator._warning(outcome, sentences, 0) == {}
    assert "undertrained" in generator._warning(outcome, sentences, 2)["warning"]
    assert "undertrained" in generator._warning(outcome, [[7, SEP_ID, 8]], 0)["warning"], "pairs"
