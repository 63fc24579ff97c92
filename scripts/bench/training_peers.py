"""Milliseconds that an update takes here, in JoeyNMT and in yoyodyne: networks of the same sizes on the same batches.

    python scripts/bench/training_peers.py --peers PYTHON --threads 1

PYTHON is an interpreter that has joeynmt, yoyodyne and what compgen needs, with the same torch. Batches of SCAN jump,
64 examples of like length as training makes them here, which is to the others' advantage. One process for each
measurement, in turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from training import CASES, setting, spread

HERE = Path(__file__).resolve().parents[2]
# Cases of this package, and the models of the others that are compared with each.
PEERS = {
    "predictor": ["joeynmt recurrent", "yoyodyne recurrent"],
    "predictor with feeding": ["joeynmt with feeding"],
    "Transformer": ["joeynmt Transformer"],
}
Loss = Callable[[Any, Any], Any]  # of sequences (B, L) and memories (B, 1, T), the sum over tokens


def main() -> None:
    """Print a table, or with --case measure one case here."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", help="an interpreter")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--updates", type=int, default=16)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.case:
        print(measure(asked.case, asked.updates, asked.threads))
        return
    print("| | ms an update | ours is faster by |\n|---|---|---|")
    for ours, others in PEERS.items():
        found = [[_elsewhere(case, asked) for case in (ours, *others)] for _ in range(asked.repeats)]
        for place, case in enumerate((ours, *others)):
            taken, ratios = [row[place] for row in found], [row[place] / row[0] for row in found]
            print(f"| {case} | {spread(taken, 0)} | {spread(ratios, 2) if place else ''} |", flush=True)


def _elsewhere(case: str, asked: argparse.Namespace) -> float:
    words = [asked.peers or sys.executable, str(Path(__file__).resolve()), "--case", case]
    words += ["--updates", str(asked.updates), "--threads", str(asked.threads)]
    surroundings = os.environ | {"PYTHONPATH": str(HERE), "OMP_NUM_THREADS": str(asked.threads)}
    return float(subprocess.run(words, env=surroundings, check=True, capture_output=True, text=True).stdout.split()[-1])


def measure(case: str, updates: int, threads: int) -> float:
    """The median of milliseconds that an update takes."""
    import torch

    torch.set_num_threads(threads)
    ours = case if case in CASES else "Transformer" if "Transformer" in case else "predictor"
    network, examples = setting(ours)
    loss: Loss = lambda sequences, memories: network.loss(sequences, memories).sum()  # noqa: E731
    if case not in CASES:
        network, loss = (yoyodyne if case.startswith("yoyodyne") else joeynmt)(case, network)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, fused=True)
    times = []
    for rows in examples.plan(0)[: updates + 2]:
        sequences, memories = examples.collate(rows)
        longest_first = (memories[:, 0] != 0).sum(dim=1).argsort(descending=True)  # as JoeyNMT wants it
        sequences, memories = sequences[longest_first], memories[longest_first]
        began = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        (loss(sequences, memories) / len(sequences)).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times[2:])


class _Vocabulary:
    """What JoeyNMT's models ask of a vocabulary, with our numbers of special symbols: its own begins otherwise."""

    pad_index, bos_index, eos_index, unk_index, sep_index = 0, 1, 2, 3, None
    specials: tuple[str, ...] = ()
    lang_tags: tuple[str, ...] = ()

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size


def joeynmt(case: str, ours: Any) -> tuple[Any, Loss]:
    """A model of JoeyNMT's, of the sizes of ours."""
    from joeynmt.model import build_model

    vocabulary: Any = _Vocabulary(ours.vocabulary)
    if "Transformer" in case:
        c = ours.config
        sizes = {"type": "transformer", "num_layers": c.layers, "num_heads": c.heads, "hidden_size": c.size,
                 "ff_size": c.inner, "dropout": c.dropout, "embeddings": {"embedding_dim": c.size}}  # fmt: skip
        encoder, decoder = sizes, sizes
    else:
        units, dropout = ours.encoders[0].forwards.hidden_size, 0.3
        common = {"type": "recurrent", "rnn_type": "lstm", "num_layers": 1, "dropout": 0.0,
                  "embeddings": {"embedding_dim": ours.embedding.embedding_dim, "dropout": dropout}}  # fmt: skip
        encoder = common | {"hidden_size": units, "bidirectional": True}
        decoder = common | {"hidden_size": ours.hidden, "attention": "luong", "hidden_dropout": dropout,
                            "init_hidden": "bridge", "input_feeding": "feeding" in case}  # fmt: skip
    model = build_model({"encoder": encoder, "decoder": decoder}, vocabulary, vocabulary).train()
    model.loss_function = ("crossentropy", 0.0)

    def loss(sequences: Any, memories: Any) -> Any:
        source, target, read = memories[:, 0], sequences[:, 1:], sequences[:, :-1]
        given = {"src": source, "src_mask": (source != 0).unsqueeze(1), "src_length": (source != 0).sum(dim=1)}
        given |= {"trg": target, "trg_input": read, "trg_mask": (target != 0).unsqueeze(1)}
        return model(return_type="loss", **given)[0]

    return model, loss


def yoyodyne(_: str, ours: Any) -> tuple[Any, Loss]:
    """A model of yoyodyne's, of the sizes of ours."""
    from torch.nn import functional
    from yoyodyne import data
    from yoyodyne.models import SoftAttentionLSTMModel, modules

    units, embedded = ours.encoders[0].forwards.hidden_size, ours.embedding.embedding_dim
    encoder = modules.LSTMEncoder(embedding_size=embedded, hidden_size=units, bidirectional=True, dropout=0.3)
    model = SoftAttentionLSTMModel(
        source_encoder=encoder, embedding_size=embedded, decoder_hidden_size=ours.hidden, decoder_dropout=0.3,
        vocab_size=ours.vocabulary, target_vocab_size=ours.vocabulary, teacher_forcing=True, compute_accuracy=False,
    ).train()  # fmt: skip

    def loss(sequences: Any, memories: Any) -> Any:
        batch = data.Batch(
            *(data.batches.PaddedTensor.from_tensor(side) for side in (memories[:, 0], sequences[:, 1:]))
        )
        batch = data.Batch(batch.source, target=batch.features)
        return functional.cross_entropy(model(batch), sequences[:, 1:], ignore_index=0, reduction="sum")

    return model, loss


if __name__ == "__main__":
    main()
