"""Samples per second of the whole loop on a GPU, in ONNX Runtime and in PyTorch, against what the GPU can do.

    python scripts/bench/gpu.py runs/demo/recomb2.pt
    python scripts/bench/gpu.py runs/demo/recomb2.pt --device cpu --batches 64      # tries the script itself

The floor of a step is the larger of two times: its multiplications at the measured rate of float32 matrix products,
and its bytes (weights once; keys, values, tokens and state of every row) at the measured rate of copying. Encoding is
part of what is measured, not of the floor. A loop goes on until its last row has ended, so tokens are counted twice:
those of samples, and those that were decoded.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from throughput import FRESH, SEED, bundle_of, flops_a_token, resized

from compgen.data import random
from compgen.errors import UserError
from compgen.models.config import NetworkConfig
from compgen.models.cuda_graph import TorchLoop
from compgen.runtime.backend import Loop
from compgen.runtime.onnx_backend import OnnxLoop
from compgen.trained.checkpoint import Checkpoint

REPEATS = 5


def best(work: Callable[[], object], device: str) -> float:
    """Seconds of the fastest of many."""
    seconds = []
    for _ in range(20):
        began = time.perf_counter()
        work()
        if device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def rates(device: str) -> tuple[float, float]:
    """Multiplications and additions a second in float32, and bytes a second that copying reads and writes."""
    size = 4096 if device == "cuda" else 512
    a = torch.rand((size, size), device=device)
    source = torch.rand(size * size * 4, device=device)
    goal = torch.empty_like(source)
    flops = 2 * size**3 / best(lambda: a @ a, device)
    return flops, 2 * source.numel() * 4 / best(lambda: goal.copy_(source), device)


def bytes_a_step(checkpoint: Checkpoint, rows: int) -> float:
    """What a step reads and writes in float32: weights, prototypes' keys, values and tokens, and state."""
    assert checkpoint.pool is not None, "the benchmark samples a generator"
    c = NetworkConfig(**checkpoint.config["network"])
    state = c.hidden + (c.output if c.feed else 0)
    weights = state * (4 * c.hidden + c.memories * c.attention) + (c.hidden + c.memories * c.attention) * c.output
    memory = c.memories * checkpoint.pool.longest * (2 * c.attention + 2)
    return 4.0 * (weights + rows * (memory + 2 * (2 * c.hidden + c.output)))


def measure(name: str, loop: Loop, checkpoint: Checkpoint, rows: int, floor: float) -> str:
    """One line of the table."""
    pool, addresses = checkpoint.pool, np.arange(rows, dtype=np.int64)
    assert pool is not None, "the benchmark samples a generator"
    memories = pool.sequences(pool.choose(SEED, addresses))
    uniforms = np.ascontiguousarray(random.uniforms(SEED, addresses, checkpoint.max_length).T)
    warmth = np.array(checkpoint.sampling["temperature"], dtype=np.float32)
    tokens, _ = loop.sample(memories, uniforms, warmth)  # warms up, and records
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        loop.sample(memories, uniforms, warmth)
        seconds.append(time.perf_counter() - began)
    took, useful, steps = statistics.median(seconds), int((tokens != 0).sum()), int((tokens != 0).any(axis=1).sum())
    share = f"{steps * floor / took:.0%}"
    return f"| {name} | {rows:,} | {rows / took:,.0f} | {useful / took:,.0f} | {steps * rows / took:,.0f} | {share} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--batches", type=int, nargs="+", default=[1024, 4096, 16384])
    options = parser.parse_args()
    trained = Checkpoint.load(options.checkpoint)
    flops, copied = rates(options.device)
    where = torch.cuda.get_device_name() if options.device == "cuda" else "CPU"
    print(f"{where}: {flops / 1e12:.2f} TFLOP/s in float32 products, {copied / 1e9:,.0f} GB/s copying\n")
    print("| generator, runtime | batch | samples/s | tokens/s | decoded/s | of the floor |\n|---|---|---|---|---|---|")
    for name, sizes in {"this generator": {}, **{name: sizes for name, (sizes, _) in FRESH.items()}}.items():
        checkpoint = resized(trained, sizes)
        config, pool = NetworkConfig(**checkpoint.config["network"]), checkpoint.pool
        assert pool is not None, "the benchmark samples a generator"
        work = flops_a_token(config, len(checkpoint.vocabulary), float(pool.longest))
        with tempfile.TemporaryDirectory() as folder:
            bundle = bundle_of(checkpoint, Path(folder) / "bundle")
            loops: dict[str, Loop] = {"torch": TorchLoop(checkpoint.network, options.device)}
            try:
                loops["onnx"] = OnnxLoop(bundle, 1, options.device)
            except UserError as error:
                print(f"{error}\n")
            for rows in options.batches:
                floor = max(work * rows / flops, bytes_a_step(checkpoint, rows) / copied)
                for runtime, loop in loops.items():
                    try:
                        print(measure(f"{name}, {runtime}", loop, checkpoint, rows, floor), flush=True)
                    except UserError as error:
                        print(f"| {name}, {runtime} | {rows:,} | {error} | | | |", flush=True)


if __name__ == "__main__":
    main()
