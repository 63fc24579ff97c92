"""Random valid models, exported and drawn by every runtime: a difference that rounding does not explain is a defect.

    python scripts/random_models.py --count 1000

Model i of a seed is a generator, a recurrent predictor, a Transformer or a grammar of random shape, vocabulary and
weights. The truth for networks is PyTorch in float64: PyTorch, TorchScript, ONNX Runtime by the step and by the loop,
and C++ by its own step and by the graph must give its sequences in float64, and in float32 too, but for draws within
1e-5 of a boundary. Grammars are drawn by numpy and in C++, and may not differ. A model that fails is printed with the
options that make it again. `make runner` builds the C++ runner.
"""

import argparse
import inspect
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.random import Generator as Stream
from parity import answers, drawn_grammar
from pydantic import ValidationError
from torch import nn

sys.path.append(str(Path(__file__).parents[1]))  # for the random grammars of the tests

from compgen.data.vocabulary import SEP_ID, UNK_ID, Vocabulary
from compgen.errors import ExhaustedError, UserError
from compgen.export.bundle_writer import export
from compgen.export.verify import parity, require
from compgen.models.config import NetworkConfig, TransformerNetwork
from compgen.models.network import Network
from compgen.models.transformer import Transformer
from compgen.recombine.compatible import compatible
from compgen.runtime.manifest import Parity
from compgen.trained.checkpoint import Checkpoint
from compgen.training.config import TransformerConfig
from tests.sampling.grammars import grammar_file

BATCHES = {1: 5, 7: 40}  # sizes, and how many sequences in each
# Of weights: draws are nearly even to nearly certain. With 1.5, one network of some sixty made of rounding, in ten
# steps of float32 in PyTorch itself, a difference of a hundredth of a probability.
SPREADS = (0.05, 0.2, 0.5)


def with_random_weights(network: nn.Module, rng: Stream) -> nn.Module:
    """A network whose weights were shaken."""
    spread = float(rng.choice(SPREADS))
    for parameter in network.parameters():
        parameter.data += spread * torch.from_numpy(rng.normal(size=parameter.shape)).float()
    return network.eval()


def vocabulary_of(rng: Stream) -> Vocabulary:
    """From one token on, some of several letters."""
    return Vocabulary.of([[f"t{number}" for number in range(int(rng.integers(1, 40)))]])


def network_config(rng: Stream, kind: str) -> NetworkConfig:
    """A shape, with options that go together."""
    while True:
        size = int(rng.integers(1, 20))
        shape = {name: int(rng.integers(1, 24)) for name in ("hidden", "encoder_hidden", "attention", "embedding")}
        flags = {name: bool(rng.integers(0, 2)) for name in ("feed", "tied", "copying", "encoder_shared")}
        memories = 1 if kind == "predictor" else int(rng.integers(0, 5))
        chosen: dict[str, Any] = {
            "memories": memories,
            "positions": int(rng.choice([0, 1, 5])),
            "output": shape["embedding"] if flags["tied"] else size,
            "activation": str(rng.choice(["tanh", "linear"])),
            "mixing": str(rng.choice(["joint", "gate", "word"])),
            "own": int(rng.choice([0, 0, 1, 4])),
            "initial": str(rng.choice(["zeros", "encoder"])),
            "latent": 0 if kind == "predictor" else int(rng.choice([0, 0, 2, 6])),
        }
        try:
            return NetworkConfig(**shape, **flags, **chosen)
        except ValidationError:
            continue  # the options do not go together


def sequences_of(rng: Stream, vocabulary: Vocabulary) -> list[list[int]]:
    """Examples to be prototypes: two sides of random tokens."""

    def side() -> list[int]:
        return rng.integers(UNK_ID + 1, len(vocabulary), int(rng.integers(1, 7))).tolist()

    return [[*side(), SEP_ID, *side()] for _ in range(int(rng.integers(2, 9)))]


def recurrent(rng: Stream, kind: str) -> Checkpoint:
    """A generator or a predictor."""
    vocabulary, config = vocabulary_of(rng), network_config(rng, kind)
    network = with_random_weights(Network(config, len(vocabulary)), rng)
    sequences, pool = sequences_of(rng, vocabulary), None
    if kind == "generator":
        rows = rng.integers(0, len(sequences), (3, 1 + config.memories)).astype(np.int32)
        pool = compatible(sequences, vocabulary, rows, "long-short", "max")
    heat = rng.choice([0.0, 0.5, 1.0, 2.0], 2).tolist()
    settings = {"network": config.model_dump(mode="json"), "neighborhood": {"kind": "long-short"}, "max_tokens": None}
    sampling = {} if pool is None else {"temperature": heat}
    longest = int(rng.integers(1, 20))
    return Checkpoint(kind, network, vocabulary, settings, longest, pool, sampling=sampling, trained_on={"data": "-"})


def transformer(rng: Stream) -> Checkpoint:
    """A Transformer that predicts."""
    heads, relative = int(rng.integers(1, 4)), int(rng.choice([0, 3]))
    size, inner, layers = 2 * heads * int(rng.integers(1, 5)), int(rng.integers(1, 24)), int(rng.integers(1, 4))
    shape = {"layers": layers, "heads": heads, "size": size, "inner": inner, "relative": relative}
    vocabulary = vocabulary_of(rng)
    network = with_random_weights(Transformer(TransformerNetwork(**shape), len(vocabulary)), rng)
    config = TransformerConfig(network=TransformerNetwork(**shape)).model_dump(mode="json")
    return Checkpoint("predictor", network, vocabulary, config, int(rng.integers(1, 14)))


def of_recurrent(kind: str, rng: Stream) -> list[Parity]:
    """Compare the runtimes of a recurrent network; raises BundleError if they differ."""
    return parity(recurrent(rng, kind), BATCHES, native=True, quiet=True)


def of_transformer(rng: Stream) -> list[Parity]:
    """Compare PyTorch, ONNX Runtime and C++, by greedy answers and by beams; raises BundleError if they differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        transformer(rng).save(folder / "model.pt")
        rows = list(export(folder / "model.pt", folder / "bundle", batches=BATCHES, quiet=True).parity)
        rows += answers("Transformer", folder / "bundle", BATCHES, {})
    require(rows, "C++ does not answer what Python does")
    return rows


def of_grammar(rng: Stream) -> list[Parity]:
    """Compare numpy and C++ on a grammar; raises BundleError if they differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        grammar_file(int(rng.integers(0, 2**31)), bool(rng.integers(0, 2))).save(folder / "model.grammar")
        export(folder / "model.grammar", folder / "bundle", batches=BATCHES, quiet=True)
        rows = list(drawn_grammar(folder / "bundle", BATCHES))
    require(rows, "C++ does not draw what numpy does")
    return rows


KINDS: dict[str, Callable[[Stream], list[Parity]]] = {
    "generator": partial(of_recurrent, "generator"),
    "predictor": partial(of_recurrent, "predictor"),
    "transformer": of_transformer,
    "grammar": of_grammar,
}


def main() -> None:
    """Print a line for each kind; exit code 1 if some model failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="models of each kind")
    parser.add_argument("--start", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    asked = parser.parse_args()
    vars(inspect)["getsourcelines"] = cache(inspect.getsourcelines)  # which TorchScript asks for again
    failed, began = 0, time.monotonic()
    print(
        "| kind | models | derive nothing | sequences compared | differing | explained by rounding | failed |\n"
        "|---|---|---|---|---|---|---|"
    )
    for at, kind in enumerate(KINDS):
        counts: Counter[str] = Counter()
        for number in range(asked.start, asked.start + asked.count) if kind in asked.kinds else ():
            torch.manual_seed(0)  # fresh weights, to which the model's own are added
            try:
                rows = KINDS[kind](np.random.default_rng([asked.seed, at, number]))
            except ExhaustedError:  # a grammar that derives nothing, which is not exported
                counts["empty"] += 1
                continue
            except UserError as error:
                counts["failed"] += 1
                print(f"--kinds {kind} --seed {asked.seed} --start {number} --count 1: {error}", file=sys.stderr)
                continue
            counts["models"] += 1
            for row in rows:
                counts.update(sequences=row.samples, differing=row.differing, explained=row.explained)
        if kind in asked.kinds:
            cells = [counts[name] for name in ("models", "empty", "sequences", "differing", "explained", "failed")]
            print(f"| {kind} | {' | '.join(f'{cell:,}' for cell in cells)} |", flush=True)
        failed += counts["failed"]
    print(f"{time.monotonic() - began:.0f} s")
    raise SystemExit(failed > 0)


if __name__ == "__main__":
    main()
