"""Damages checkpoints and opens them: each copy must be refused, or hold just what the original holds.

    python scripts/damage.py --copies 1000 --seed 0

A network's checkpoint and a grammar's file are made, both small. A copy has bits flipped, is cut short, has blocks
swapped, repeated or filled with zeros, or has bytes after its end; half of the places are in the last tenth or at the
beginning, where the file says what it holds. The exit code is 1 if a copy is opened with other content, or fails in any
other way than by a CheckpointError of one line that names the file.
"""

import argparse
import collections
import random
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
import torch

from compgen.configuration import load_config
from compgen.csl.augmenter import Csl
from compgen.csl.grammar_file import GrammarFile
from compgen.csl.options import CslOptions
from compgen.data.examples import Dataset
from compgen.data.vocabulary import Vocabulary
from compgen.errors import CheckpointError
from compgen.models.config import NetworkConfig
from compgen.models.network import Network
from compgen.recombine.compatible import compatible
from compgen.trained.checkpoint import Checkpoint

WAYS = ("flip", "cut", "swap", "zero", "repeat", "append")


def network() -> Checkpoint:
    """A generator with random weights and a pool of six sequences."""
    torch.manual_seed(3)
    vocabulary = Vocabulary.of([list("abcdefg")])
    config = NetworkConfig(hidden=12, encoder_hidden=7, embedding=8, output=8, attention=5, positions=3)
    sequences = [[5, 6, 3, 8, 9], [6, 3, 9], [5, 3, 8], [7, 5, 3, 10, 8], [7, 3, 10], [5, 7, 3, 8, 10, 11]]
    pool = compatible(sequences, vocabulary, np.array([[0, 1, 2]], dtype=np.int32), "long-short", "mean+std")
    values = {"network": config.model_dump(mode="json"), "neighborhood": {"kind": "long-short"}, "max_tokens": None}
    weights = Network(config, len(vocabulary)).eval()
    return Checkpoint("generator", weights, vocabulary, values, 9, pool, {"temperature": [1.0, 0.5]})


def grammar() -> GrammarFile:
    """A grammar that is learned from twelve pairs."""
    times = {"": 1, "twice": 2, "thrice": 3}
    pairs = [
        ([verb, *([word] if word else [])], [verb.upper()] * n)
        for verb in ("walk", "run", "look", "hop")
        for word, n in times.items()
    ]
    dataset = Dataset.from_pairs(pairs)
    trained = Csl(load_config(CslOptions, "csl_scan", ["training.steps=20", "drawing.longest=30"])).fit(dataset).trained
    assert trained is not None
    return GrammarFile.of(trained, dataset, {"data": "made up"})


def damaged(content: bytes, way: str, rng: random.Random) -> bytes:
    """A copy of a file's content that differs from it."""
    size = len(content)

    def place(below: int) -> int:
        part = rng.random()
        return rng.randrange(below * 9 // 10 if part < 0.25 else 0, max(1, below // 10) if part > 0.75 else below)

    changed = bytearray(content)
    if way == "flip":
        for _ in range(rng.choice((1, 1, 1, 2, 8))):
            changed[place(size)] ^= 1 << rng.randrange(8)
    elif way == "cut":
        del changed[place(size) :]
    elif way == "append":
        changed += rng.randbytes(rng.randrange(1, 4096))
    else:
        length = min(rng.choice((1, 4, 16, 64, 512, 4096)), size // 4)
        first, second = place(size - length), place(size - length)
        if way == "swap":
            one, two = bytes(changed[first : first + length]), bytes(changed[second : second + length])
            changed[first : first + length], changed[second : second + length] = two, one
        elif way == "zero":
            changed[first : first + length] = bytes(length)
        else:
            changed[first:first] = changed[second : second + length]
    return bytes(changed)


def held(saved: Checkpoint | GrammarFile) -> list[object]:
    """All that a file holds, to the last bit: what is opened, not its digest."""
    if isinstance(saved, GrammarFile):
        trained, scores = saved.trained, saved.trained.scores
        tables = [(a.dtype, a.shape, a.tobytes()) for a in (scores.slots, scores.rules, saved.tokens)]
        texts = (trained.grammar.text(), trained.target_rules, trained.settings)
        return [*tables, *texts, saved.vocabulary, saved.trained_on]
    pool = {} if saved.pool is None else vars(saved.pool)
    weights = {name: tensor.numpy() for name, tensor in saved.network.state_dict().items()}
    arrays = [(name, a.dtype, a.shape, a.tobytes()) for part in (weights, pool) for name, a in part.items()]
    plain = ("kind", "vocabulary", "config", "max_length", "sampling", "trained_on")
    return [*arrays, *(getattr(saved, name) for name in plain)]


def outcome(path: Path, original: Checkpoint | GrammarFile) -> str:
    """What opening a damaged file comes to."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            read = type(original).load(path)
    except CheckpointError as error:
        return "refused" if str(path) in str(error) and "\n" not in str(error) else f"bad message: {error}"
    except Exception as error:
        return f"other exception: {type(error).__name__}: {error}"
    return "identical" if held(read) == held(original) else "other content"


def main() -> None:
    """Damage, open, count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copies", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        for kind, make in enumerate((network, grammar)):
            original = make()
            path = Path(folder) / f"{make.__name__}{'.grammar' if isinstance(original, GrammarFile) else '.pt'}"
            original.save(path)
            content = path.read_bytes()
            for number in range(kind, options.copies, 2):
                rng = random.Random(f"{options.seed}-{number}")
                way = WAYS[number // 2 % len(WAYS)]
                while (copy := damaged(content, way, rng)) == content:
                    pass
                path.write_bytes(copy)
                counts[f"{make.__name__}, {way}"][outcome(path, original)] += 1
    total = sum(counts.values(), collections.Counter())
    for name, found in {**counts, "all": total}.items():
        print(f"{name}: {', '.join(f'{count} {what}' for what, count in found.most_common())}")
    sys.exit(1 if total.keys() - {"refused", "identical"} else 0)


if __name__ == "__main__":
    main()
