"""Export of a Transformer: encoder and step as ONNX graphs, and the check that they answer as the checkpoint does.

The truth is PyTorch in float64. In float64 the graphs must answer every source alike; in float32 an answer may differ
where two tokens are so nearly as probable that rounding decides.
"""

import copy
import json
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from compgen import __version__
from compgen.data.vocabulary import BOS_ID, EOS_ID
from compgen.export.assemble import seal
from compgen.export.graphs import Part, Sizes
from compgen.export.onnx_graphs import save_graphs, trace
from compgen.export.verify import Written, counts, made_up_sources, one_thread, require
from compgen.models.backend import TorchTransformer
from compgen.models.transformer import Transformer, TransformerMemory, TransformerStep
from compgen.progress import Progress
from compgen.runtime.backend import Decoder
from compgen.runtime.bundle import Bundle
from compgen.runtime.cached import MEMORY, STEP_INPUTS, STEP_OUTPUTS
from compgen.runtime.manifest import ENCODER, STEP, VOCABULARY, Manifest, Parity
from compgen.runtime.onnx_transformer import OnnxTransformer
from compgen.runtime.predict import as_sources, greedy
from compgen.training.checkpoint import Checkpoint


def assemble(checkpoint: Checkpoint, network: Transformer, folder: Path) -> Bundle:
    """Write graphs and vocabulary of a checkpoint to `folder`, in the dtype of `network`, its weights.

    Returns:
        The bundle as it will be, with a manifest that says nothing of parity yet.
    """
    models = {part.file: trace(part, folder / part.file) for part in _parts(network.eval())}
    graphs = save_graphs(models, folder)
    vocabulary = list(checkpoint.vocabulary.tokens)
    (folder / VOCABULARY).write_text(json.dumps(vocabulary, ensure_ascii=False, indent=0) + "\n", "utf-8")
    manifest = Manifest.model_validate(
        {
            "compgen": __version__,
            "kind": checkpoint.kind,
            "architecture": "transformer",
            "trained_on": checkpoint.trained_on,
            "config": checkpoint.config,
            "prototypes": 1,
            "max_length": checkpoint.max_length,
            "sampling": {"temperature": [0.0, 0.0]},
            "graphs": graphs,
            "files": {},
            "parity": [],
        }
    )
    seal(folder, manifest)
    return Bundle.load(folder)


def _parts(network: Transformer) -> list[Part]:
    config, dtype = network.config, network.embedding.weight.dtype
    kept: Sizes = ["B", config.layers, config.heads, "S", config.size // config.heads]
    past, longer = ([*kept[:3], size, kept[4]] for size in ("P", "L"))
    inputs: dict[str, Sizes] = {"token": ["B"], "position": ["B"], "source": ["B", "S"]}
    inputs |= dict.fromkeys(MEMORY, kept) | {"keys": past, "values": past}
    outputs: dict[str, Sizes] = {"log_probs": ["B", network.vocabulary], "next_keys": longer, "next_values": longer}
    assert tuple(inputs) == STEP_INPUTS and tuple(outputs) == STEP_OUTPUTS
    sizes = {"B": 2, "S": 3, "P": 2}

    def example(name: str) -> Any:
        shape = [sizes[size] if isinstance(size, str) else size for size in inputs[name]]
        return torch.full(shape, 2) if name in ("token", "position", "source") else torch.zeros(shape, dtype=dtype)

    source = {"source": torch.tensor([[5, 3, 2], [5, 2, 0]])}
    return [
        Part(ENCODER, TransformerMemory(network), source, {"source": ["B", "S"]}, dict.fromkeys(MEMORY, kept)),
        Part(STEP, TransformerStep(network), {name: example(name) for name in inputs}, inputs, outputs),
    ]


def verify(checkpoint: Checkpoint, bundle: Bundle, batches: Mapping[int, int], *, quiet: bool = False) -> list[Parity]:
    """Compare the answers of ONNX Runtime, in float64 and in float32, with those of PyTorch in float64.

    Args:
        checkpoint: what was exported.
        bundle: what it became.
        batches: rows decoded at once, and how many made-up sources to answer so.
        quiet: without progress.

    Raises:
        BundleError: an answer differs in float64, or in float32 without rounding as the reason, or too many differ.
    """
    assert isinstance(checkpoint.network, Transformer)
    sources = made_up_sources(max(batches.values()), len(checkpoint.vocabulary))
    double = copy.deepcopy(checkpoint.network).double()
    rows: list[Parity] = []
    with one_thread(), tempfile.TemporaryDirectory() as name:
        truth = TorchTransformer(double)
        runners: list[tuple[str, str, Decoder]] = [
            ("onnx", "float64", OnnxTransformer(assemble(checkpoint, double, Path(name)))),
            ("torch", "float32", TorchTransformer(checkpoint.network)),
            ("onnx", "float32", OnnxTransformer(bundle)),
        ]
        limit = checkpoint.max_length
        expected = _answers(truth, sources, limit, 256)
        with Progress("verify", len(runners) * len(batches), quiet=quiet) as progress:
            for runtime, dtype, decoder in runners:
                for batch, count in batches.items():
                    found = _answers(decoder, sources[:count], limit, batch)
                    judged = counts(expected[:count], found, partial(_distance, truth, sources, expected, found))
                    rows.append(Parity.model_validate({"runtime": runtime, "dtype": dtype, "batch": batch} | judged))
                    progress.update(len(rows), runtime)
    require(rows, "the export does not compute what its checkpoint does")
    return rows


def _answers(decoder: Decoder, sources: list[list[int]], limit: int, batch: int) -> list[Written]:
    found = [tuple(tokens) for tokens, _ in greedy(decoder, sources, limit, batch)]
    return [(*tokens, EOS_ID) if len(tokens) < limit else tokens for tokens in found]


def _distance(
    truth: Decoder, sources: list[list[int]], answers: list[Written], others: list[Written], row: int
) -> float:
    """By how much the first token of a row that differs is less probable than the one that was to be written."""
    source, expected, found = sources[row], answers[row], others[row]
    shared = min(len(expected), len(found))
    at = next((place for place in range(shared) if expected[place] != found[place]), shared)
    if at == shared:
        return float("inf")
    state = truth.open(as_sources([source]))
    for token in (BOS_ID, *expected[:at]):
        state["token"][:] = token
        state, log_probs = truth.advance(state)
    right, wrong = log_probs[0].astype(np.float64)[[expected[at], found[at]]]
    return float(np.exp(right) - np.exp(wrong))
