"""Milliseconds that an update takes in training, and their share of the arithmetic limit.

    python scripts/bench/training.py
    python scripts/bench/training.py --against OTHER_CHECKOUT --threads 2

SCAN jump, batches as training makes them, one process for each measurement. With --against, the code of another
checkout is measured in turns with this one's. The limit is that of the products: multiply-adds of the tokens, without
padding, three times for the backward pass, at the most that a product reaches in the same run.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CASES = {
    "generator": ("recombine_small", []),
    "predictor": ("seq2seq_small", []),
    "predictor with feeding": ("seq2seq_small", ["network.feed=true"]),
    "Transformer": ("transformer_small", ["optimisation.batch=64"]),
}
HERE = Path(__file__).resolve().parents[2]


def main() -> None:
    """Print a table, or with --case measure one case here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--updates", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        print(*measure(asked.case, asked.updates, asked.threads, asked.precision))
        return
    checkouts = [HERE] if asked.against is None else [asked.against.resolve(), HERE]
    headings = ["ms an update"] if asked.against is None else ["before, ms", "now, ms", "ratio"]
    print(f"| {' | '.join(['', *headings, 'limit, ms', 'of the limit'])} |")
    print("|" + "---|" * (3 + len(headings)))
    for case in asked.cases:
        found = [[_elsewhere(checkout, case, asked) for checkout in checkouts] for _ in range(asked.repeats)]
        taken = [[times[place][0] for times in found] for place in range(len(checkouts))]
        limit = statistics.median(times[-1][1] for times in found)
        cells = [spread(times) for times in taken]
        if len(taken) == 2:
            cells.append(spread([old / new for old, new in zip(*taken, strict=True)], 2))
        now = statistics.median(taken[-1])
        print(f"| {' | '.join([case, *cells, f'{limit:.1f}', f'{limit / now:.0%}'])} |", flush=True)


def spread(values: list[float], digits: int = 1) -> str:
    """Median, and least to most."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def _elsewhere(checkout: Path, case: str, asked: argparse.Namespace) -> tuple[float, float]:
    """Measure in a process of its own, with the code of a checkout."""
    words = [sys.executable, str(Path(__file__).resolve()), "--case", case]
    words += ["--updates", str(asked.updates), "--threads", str(asked.threads), "--precision", asked.precision]
    surroundings = os.environ | {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": str(asked.threads)}
    done = subprocess.run(words, env=surroundings, check=True, capture_output=True, text=True)
    milliseconds, limit = map(float, done.stdout.split())
    return milliseconds, limit


def measure(case: str, updates: int, threads: int, precision: str) -> tuple[float, float]:
    """The median of milliseconds that an update takes, and the mean of what its products would take."""
    import torch

    torch.set_num_threads(threads)
    network, examples = setting(case)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    times, work = [], 0.0
    batches = [examples.collate(rows) for rows in examples.plan(0)[: updates + 2]]
    for sequences, memories in batches:
        began = time.perf_counter()
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=precision == "bfloat16"):
            loss = network.loss(sequences, memories).sum() / len(sequences)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        times.append(1000 * (time.perf_counter() - began))
        work += multiply_adds(network, sequences, memories)
    return statistics.median(times[2:]), 3 * 2 * work / len(batches) / _rate() / 1e6


def setting(case: str) -> tuple[Any, Any]:
    """A fresh network in training mode, and its examples."""
    import torch

    from compgen.configuration import load_config
    from compgen.data.catalog import load
    from compgen.data.vocabulary import Vocabulary
    from compgen.recombine.config import RecombineConfig
    from compgen.recombine.neighborhoods import build
    from compgen.recombine.rows import NeighborhoodExamples, as_sequences
    from compgen.trained.architectures import architecture
    from compgen.training.pairs import PairExamples
    from compgen.training.predictors import config_of

    configuration, changes = CASES[case]
    dataset = load("scan/jump").split("train")
    vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
    torch.manual_seed(0)
    if case == "generator":
        config = load_config(RecombineConfig, configuration, changes)
        sequences = as_sequences(dataset, vocabulary, config.max_tokens)
        rows = build(sequences, vocabulary, config.prototypes, config.neighborhood, 0)
        network = architecture("recurrent").build(config.network, len(vocabulary))
        return network.train(), NeighborhoodExamples(sequences, rows, config.optimisation.batch, 0)
    tag = "transformer" if case == "Transformer" else "recurrent"
    chosen = load_config(config_of(tag), configuration, changes)
    pairs = [(vocabulary.encode(source), vocabulary.encode(target)) for source, target in dataset.pairs()]
    network = architecture(tag).build(chosen.network, len(vocabulary))
    return network.train(), PairExamples(pairs, [], None, chosen.optimisation.batch, 0)


def multiply_adds(network: Any, sequences: Any, memories: Any) -> float:
    """Multiply-adds of the forward products over the tokens of a batch, padding left out."""
    read, lengths = int((sequences[:, :-1] != 0).sum()), (memories != 0).sum(dim=2)
    attended = float(((sequences[:, :-1] != 0).sum(dim=1) * lengths.sum(dim=1)).sum())  # pairs of tokens
    tokens = int(lengths.sum())
    if hasattr(network, "lstm"):
        a = network.attention
        size, embedded = network.hidden, network.embedding.embedding_dim
        given = embedded + (network.output if network.feed else 0)
        units = network.encoders[0].forwards.hidden_size
        own = tokens * (8 * units * (embedded + units) + 2 * units * 2 * a.size)
        each = (given + size) * (4 * size + a.memories * a.size) + network.combine.weight.numel()
        return own + read * (each + network.output * network.vocabulary) + 2 * attended * a.size
    c = network.config
    layer = 4 * c.size * c.size + 2 * c.size * c.inner
    inside = float((lengths**2).sum()) + float(((sequences[:, :-1] != 0).sum(dim=1) ** 2).sum())
    across = 2 * c.size * c.size * (read + tokens)
    total = c.layers * (layer * (read + tokens) + across + 2 * c.size * (inside + attended))
    return total + read * c.size * network.vocabulary


def _rate() -> float:
    """Floating-point operations a nanosecond of a product, by torch or by oneDNN: the most of several repeats."""
    import torch

    a, b = torch.randn(64, 320), torch.randn(320, 1024)
    ways = [lambda: torch.mm(a, b)]
    if hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        ways.append(lambda: torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], ""))
    best = 0.0
    for multiply in ways * 200:
        began = time.perf_counter()
        multiply()
        best = max(best, 2 * a.numel() * b.shape[1] / (time.perf_counter() - began) / 1e9)
    return best


if __name__ == "__main__":
    main()
