"""The registry of architectures."""

import pickle
import shutil
import sys
import threading
import types
from typing import ClassVar

import numpy as np
import pytest
import torch
from pydantic import BaseModel

from compgen.api import Generator, Predictor, export_bundle
from compgen.data.examples import Dataset
from compgen.data.vocabulary import EOS_ID
from compgen.errors import BundleError, UserError
from compgen.files import sha256
from compgen.models.trainable import Trainable
from compgen.trained import architectures
from compgen.trained.predictor import StepwisePredictor
from compgen.training.predictors import config_of, train_predictor
from tests.export.tiny import exported, make


def test_a_new_architecture_of_predictors_is_three_files(monkeypatch, tmp_path):
    """Its module, its line in the registry, and its entry: then it is configured, trained, saved, opened and used."""
    files = types.ModuleType("copies")
    files.ARCHITECTURE = LastToken()
    monkeypatch.setitem(sys.modules, "copies", files)
    monkeypatch.setitem(architectures.MODULES, "last-token", "copies")
    architectures.architecture.cache_clear()
    pairs = [([one, two], [two]) for one in "abc" for two in "abc"]
    config = config_of("last-token")(network={"size": 8}, held_out=0.0, optimisation={"epochs": 60, "batch": 3})
    train_predictor(Dataset.from_pairs(pairs), config, tmp_path / "p.pt", quiet=True)
    predictor = Predictor.load(tmp_path / "p.pt")
    assert predictor.predict([list("ab"), list("ca")]) == [["b"], ["a"]]
    assert predictor.losses(Dataset.from_pairs(pairs)).max() < 0.5
    with pytest.raises(UserError, match="holds a predictor, expected a generator"):
        Generator.load(tmp_path / "p.pt")
    with pytest.raises(BundleError, match="a last-token model has no bundle"):
        export_bundle(tmp_path / "p.pt", tmp_path / "bundle")
    architectures.architecture.cache_clear()


class Size(BaseModel):
    """What `LastTokenNetwork` is configured by."""

    size: int = 4


class LastTokenNetwork(Trainable):
    """Writes a target of one token, which depends on the last token of the source."""

    architecture = "last-token"

    def __init__(self, config, vocabulary):
        super().__init__()
        self.embedding = torch.nn.Embedding(vocabulary, config.size)
        self.output = torch.nn.Linear(config.size, vocabulary)

    def scores(self, sequences, memory_tokens):
        source = memory_tokens[:, 0]
        last = source.gather(1, (source > EOS_ID).sum(dim=1, keepdim=True) - 1)
        ending = (
            (torch.arange(sequences.shape[1] - 1) > 0)
            * 1e3
            * torch.nn.functional.one_hot(torch.tensor(EOS_ID), self.output.out_features)[:, None]
        )
        return self.output(self.embedding(last)) + ending.T

    def loss(self, sequences, memory_tokens):
        scores = self.scores(sequences, memory_tokens)
        return torch.nn.functional.cross_entropy(scores.transpose(1, 2), sequences[:, 1:], reduction="none")

    def predicts(self, sequences, memory_tokens):
        return (self.scores(sequences, memory_tokens).argmax(dim=2) == sequences[:, 1:]).all(dim=1)


class Steps:
    """`LastTokenNetwork` as a `Decoder`."""

    name = "last-token"

    def __init__(self, network):
        self.network = network

    def open(self, sources):
        return {"source": sources, "token": np.zeros(len(sources), np.int64), "position": np.zeros(len(sources), int)}

    @torch.inference_mode()
    def advance(self, state):
        sources = torch.from_numpy(state["source"])[:, None]
        sequences = torch.zeros((len(sources), int(state["position"].max()) + 2), dtype=torch.int64)
        log_probs = self.network.scores(sequences, sources)[:, -1].log_softmax(dim=1).numpy()
        return state | {"token": log_probs.argmax(axis=1), "position": state["position"] + 1}, log_probs


class LastToken(architectures.Architecture):
    """The entry."""

    tag = "last-token"
    abilities: ClassVar = {"predictor": architectures.PREDICTOR}
    memory = "network.size"

    def configuration(self, values):
        return Size(**values)

    def build(self, config, vocabulary):
        return LastTokenNetwork(config, vocabulary)

    def open_saved(self, saved, path, runtime):  # noqa: ARG002
        return StepwisePredictor(Steps(saved.network), saved.vocabulary, saved.max_length)


@pytest.mark.parametrize("tag", ["grammar", "pretrained"])
def test_what_is_no_network_of_ours_has_no_configuration_here(tag):
    with pytest.raises(UserError, match=f"architecture {tag}: no network that is trained from scratch"):
        config_of(tag)


@pytest.mark.parametrize("kind", ["generator", pytest.param("predictor", marks=pytest.mark.long)])
def test_threads_and_random_numbers_of_torch_stay_the_callers(kind, tmp_path):
    used = []
    make(kind).save(tmp_path / "m.pt")
    before, state = torch.get_num_threads(), torch.get_rng_state()
    torch.set_num_threads(3)
    try:
        opened = {"generator": Generator, "predictor": Predictor}[kind].load(tmp_path / "m.pt", threads=2)
        backend = opened.backend if kind == "generator" else opened.decoder.backend
        backend.decoding.register_forward_hook(lambda *_: used.append(torch.get_num_threads()))
        if kind == "generator":
            opened.sample(draws=600, workers=3, batch=16)
        else:
            opened.predict([["a", "b"]] * 3)
        export_bundle(tmp_path / "m.pt", tmp_path / "bundle", batches={1: 2}, quiet=True)
        threads = [torch.get_num_threads()]
        other = threading.Thread(target=lambda: threads.append(torch.get_num_threads()))
        other.start()
        other.join()
        assert threads == [3, 3] and set(used) == {2}
        assert torch.equal(torch.get_rng_state(), state)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("after", ["same", "other", "gone"])
def test_an_identity_is_of_what_was_opened(after, tmp_path):
    path = tmp_path / "p.pt"
    make("predictor").save(path)
    opened, expected = Predictor.load(path), sha256(path)
    if after == "same":
        assert opened.identity == expected
        path.unlink()
        assert opened.identity == expected  # found once
        return
    path.unlink()
    if after == "other":
        make("predictor", initial="encoder").save(path)
    says = {"other": "found another model than was opened there", "gone": "cannot be read again"}[after]
    with pytest.raises(UserError, match=f"^{path}: {says}"):
        opened.identity  # noqa: B018


def test_a_copy_opens_the_bundle_that_was_opened_or_none(tmp_path):
    folder = tmp_path / "bundle"
    shutil.copytree(exported("predictor"), folder)
    opened = pickle.dumps(Predictor.load(folder))
    assert pickle.loads(opened).identity == Predictor.load(folder).identity
    shutil.rmtree(folder)
    shutil.copytree(exported("predictor", initial="encoder"), folder)
    with pytest.raises(UserError, match=f"^{folder}: found another bundle than was opened there: open it again$"):
        pickle.loads(opened)


@pytest.mark.parametrize("threads", [0, -1, "2", 1.5])
@pytest.mark.parametrize("kind", [Generator, Predictor])
def test_a_number_of_threads_that_there_cannot_be_is_refused(kind, threads, tmp_path):
    with pytest.raises(UserError, match=f"threads {threads!r}: expected a number from 1 to 1,024"):
        kind.load(tmp_path / "m.pt", threads=threads)
