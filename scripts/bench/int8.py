"""Milliseconds of a decoding step, float32 against int8, on one thread in batches of 256.

    python scripts/bench/int8.py runs/demo/recomb2.pt

Besides the trained generator, networks of fresh random weights over its prototypes. Steps and plain matrix products of
both kinds take turns, so that what else the machine does falls on all alike; medians over the repeats, and quartiles of
the ratio. The limit is the multiplications of the step at the measured rates of products of the gates' shape: for int8
those in integers at the rate of integers, and the others, attention's above all, at that of float32.
"""

import argparse
import copy
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from throughput import FRESH, SEED, as_integers, cpu_model, flops_a_token, flops_in_integers, product, untrained

from compgen.data import random
from compgen.export.assemble import assemble
from compgen.export.int8 import approximate
from compgen.models.config import NetworkConfig
from compgen.runtime.backend import StepInputs
from compgen.runtime.bundle import Bundle
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.runtime.predict import advance, opening, step_inputs
from compgen.trained.checkpoint import Checkpoint

BATCH, WARM_UP, AT = 256, 5, 6  # AT: the step that is measured, counted from 0


def bundles(checkpoint: Checkpoint, folder: Path) -> tuple[Bundle, Bundle]:
    """The generator in float32 and in int8."""
    exact = folder / "float32"
    exact.mkdir()
    bundle = assemble(checkpoint, exact, script=False)
    shutil.copytree(exact, folder / "int8")
    return bundle, approximate(checkpoint, replace(bundle, path=folder / "int8"))


def some_inputs(backend: OnnxBackend, checkpoint: Checkpoint) -> StepInputs:
    """The inputs of a step in the middle of sequences."""
    pool, samples = checkpoint.pool, np.arange(BATCH)
    assert pool is not None, "the benchmark samples a generator"
    state = opening(backend, pool.sequences(pool.choose(SEED, samples)), half=0)
    for _ in range(AT):
        state, _ = advance(backend, state)
    return step_inputs(state, random.uniforms(SEED, samples, AT + 1)[:, AT], np.ones(2, np.float32))


def in_turn(works: list[Callable[[], object]], repeats: int) -> NDArray[np.float64]:
    """Seconds of each work in each repeat (works, repeats), one after another."""
    seconds = np.zeros((len(works), repeats))
    for repeat in range(-WARM_UP, repeats):
        for row, work in enumerate(works):
            began = time.perf_counter()
            work()
            if repeat >= 0:
                seconds[row, repeat] = time.perf_counter() - began
    return seconds


def row(name: str, checkpoint: Checkpoint, repeats: int) -> str:
    """One line of the table."""
    assert checkpoint.pool is not None, "the benchmark samples a generator"
    config = NetworkConfig(**checkpoint.config["network"])
    with tempfile.TemporaryDirectory() as folder:
        exact, fast = bundles(copy.deepcopy(checkpoint), Path(folder))
        backends = [OnnxBackend(bundle, 1, "cpu") for bundle in (exact, fast)]
        inputs = some_inputs(backends[0], checkpoint)
        inner, outer = config.hidden + (config.output if config.feed else 0), 4 * config.hidden
        rng = np.random.default_rng(SEED)
        factors = rng.random((BATCH, inner), dtype=np.float32), rng.random((inner, outer), dtype=np.float32)
        products = [product(*factors, threads=1), product(*as_integers(*factors), threads=1)]
        seconds = in_turn([*(lambda b=b: b.step(inputs) for b in backends), *products], repeats)
        in_integers = BATCH * flops_in_integers(fast)
    in_all = BATCH * flops_a_token(config, len(checkpoint.vocabulary), checkpoint.pool.longest)
    slow, quick, by_float, by_integer = np.median(seconds, axis=1)
    one = 2.0 * BATCH * inner * outer  # multiplications and additions of a product of the gates' shape
    limits = (in_all * by_float / one, (in_all - in_integers) * by_float / one + in_integers * by_integer / one)
    low, high = np.quantile(seconds[0] / seconds[1], (0.25, 0.75))
    return (
        f"| {name}, {config.hidden} / {config.embedding} / {config.attention} | {slow * 1e3:.2f} | {quick * 1e3:.2f} "
        f"| {slow / quick:.2f} ({low:.2f}-{high:.2f}) | {limits[0] / slow:.0%} | {limits[1] / quick:.0%} "
        f"| {one / by_float / 1e9:.0f} / {one / by_integer / 1e9:.0f} |"
    )


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--repeats", type=int, default=60)
    options = parser.parse_args()
    torch.set_num_threads(1)
    checkpoint = Checkpoint.load(options.checkpoint)
    print(f"{cpu_model()}, one thread, batch {BATCH}\n")
    print(
        "| network, H / E / A | float32, ms | int8, ms | ratio | float32 of limit | int8 of limit | products, Gop/s |"
    )
    print("|---|---|---|---|---|---|---|")
    print(row("trained", checkpoint, options.repeats), flush=True)
    for sizes, _ in FRESH.values():
        print(row("random", untrained(checkpoint, sizes), options.repeats), flush=True)


if __name__ == "__main__":
    main()
