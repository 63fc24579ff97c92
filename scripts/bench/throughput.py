"""Samples per second: ONNX Runtime, TorchScript and eager PyTorch, against each other and the arithmetic limit.

    python scripts/bench/throughput.py runs/demo/recomb2.pt

Two tables from one run. The first decodes one batch after another by continuous batching, prototypes encoded
beforehand, one worker with all cores. The second is end to end: `compgen sample` as a user runs it (prototype choice,
encoding, filters, writing) against the plain PyTorch loop: encode the batch's prototypes, decode until every row is
done, next batch. Medians over repeats. The limit is the multiplications of the decoding step at the measured rate of
ONNX Runtime's matrix product, the faster of the two libraries here.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from onnx import TensorProto, helper

from compgen.export.bundle_writer import export
from compgen.models.backend import TorchBackend
from compgen.models.config import NetworkConfig
from compgen.runtime import random
from compgen.runtime.bundle import Bundle
from compgen.runtime.filters import Filter, FilterConfig, Training
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.runtime.output import Sample, sample_writer
from compgen.runtime.pool import PrototypePool
from compgen.runtime.sampler import Addresses, Backend, Draw, Memories, draws, run_slots
from compgen.runtime.torchscript_backend import TorchScriptBackend
from compgen.training.checkpoint import Checkpoint

SEED, REPEATS = 11, 3


def cpu_model() -> str:
    """What /proc/cpuinfo calls the processor, with its frequency-independent identity."""
    fields = dict(
        (part.strip() for part in line.split(":", 1))
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if ":" in line
    )
    return f"{fields.get('model name')} (family {fields.get('cpu family')}, model {fields.get('model')})"


def rate(multiply: Callable[[], object], flops: float) -> float:
    """GFLOP/s of a matrix product, the best of many."""
    best = float("inf")
    for _ in range(60):
        began = time.perf_counter()
        multiply()
        best = min(best, time.perf_counter() - began)
    return flops / best / 1e9


def matrix_rates(hidden: int, threads: int) -> tuple[float, float]:
    """GFLOP/s of PyTorch and of ONNX Runtime at the shape of the decoder's gates."""
    m, k, n = 256, 2 * hidden, 4 * hidden
    a, b = np.random.default_rng(0).random((2, max(m, k), max(k, n)), dtype=np.float32)
    a, b = np.ascontiguousarray(a[:m, :k]), np.ascontiguousarray(b[:k, :n])
    node = helper.make_node("MatMul", ["a", "b"], ["c"])
    kind = TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "product",
        [helper.make_tensor_value_info("a", kind, [m, k])],
        [helper.make_tensor_value_info("c", kind, [m, n])],
        [helper.make_tensor("b", kind, [k, n], b.tobytes(), raw=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    flops = 2.0 * m * k * n
    return rate(lambda: x @ y, flops), rate(lambda: session.run(None, {"a": a}), flops)


def flops_a_token(config: NetworkConfig, vocabulary: int, time_steps: int) -> float:
    """Multiplications and additions of one row's decoding step."""
    c = config
    read = c.embedding + (c.output if c.feed else 0)
    gates = (read + c.hidden) * 4 * c.hidden
    query = (c.hidden + read) * c.memories * c.attention
    attend = c.memories * 2 * c.attention * (time_steps + 2 * c.positions + 1)
    write = (c.hidden + c.memories * c.attention) * c.output + c.output * vocabulary
    return 2.0 * (gates + query + attend + write)


def decode(
    backend: Backend, pool: PrototypePool, memories: Memories, checkpoint: Checkpoint, batch: int, count: int
) -> tuple[int, int]:
    """Continuous batching; returns samples and tokens."""
    first, second = checkpoint.sampling["temperature"]
    samples = tokens = 0
    for finished in run_slots(
        backend, pool, memories, Addresses(0, count), seed=SEED, slots=batch,
        max_length=checkpoint.max_length, temperature=(first, second),
    ):  # fmt: skip
        samples += len(finished)
        tokens += sum(len(draw.tokens) + 1 for draw in finished)
    return samples, tokens


def plain_loop(
    backend: TorchBackend, pool: PrototypePool, checkpoint: Checkpoint, batch: int, count: int
) -> Iterator[Draw]:
    """What one writes first: encode the prototypes of a batch, decode until all rows are done, next batch."""
    warmth = np.array(checkpoint.sampling["temperature"], dtype=np.float32)
    for begin in range(0, count, batch):
        samples = np.arange(begin, min(begin + batch, count))
        rows, chosen = len(samples), pool.choose(SEED, samples)
        tokens = pool.tokens[chosen, : pool.longest].astype(np.int64)
        memory = np.stack([backend.encode(tokens[:, k])[0][:, k] for k in range(pool.prototypes)], axis=1)
        numbers = random.uniforms(SEED, samples, checkpoint.max_length)
        state = {
            "token": np.ones(rows, dtype=np.int64),
            "half": np.zeros(rows, dtype=np.int64),
            "hidden": np.zeros((rows, backend.shape.hidden), dtype=np.float32),
            "cell": np.zeros((rows, backend.shape.hidden), dtype=np.float32),
            "fed": np.zeros((rows, backend.shape.output), dtype=np.float32),
        }
        written, done = [], np.zeros(rows, dtype=bool)
        for step in range(checkpoint.max_length):
            fixed = {"memory": memory, "memory_tokens": tokens, "temperature": warmth}
            position = np.full(rows, step)
            token, _, half, hidden, cell, fed = backend.step(
                state | fixed | {"position": position, "uniform": numbers[:, step]}
            )
            state = {"token": token, "half": half, "hidden": hidden, "cell": cell, "fed": fed}
            written.append(token)
            done |= token == 2
            if done.all():
                break
        for row, line in enumerate(np.stack(written, axis=1).tolist()):
            end = line.index(2) if 2 in line else len(line)
            yield Draw(int(samples[row]), tuple(line[:end]), 2 in line, 0.0, tuple(chosen[row].tolist()))


def through_filters(found: Iterator[Draw], training: Training, checkpoint: Checkpoint, out: Path) -> int:
    """Filter and write draws as `compgen sample` does; returns how many were kept."""
    judge = Filter(FilterConfig(("novel", "unique")), training)
    with sample_writer(str(out)) as write:
        for draw, source, target in judge.keep(found):
            words = checkpoint.vocabulary.decode
            write(Sample(draw.index, words(source), words(target), draw.log_prob, draw.prototypes))
    return judge.counts.kept


def timed(work: Callable[[], object]) -> float:
    """Median seconds over the repeats."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def main() -> None:
    """Run both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--samples", type=int, default=4096, help="draws a measurement at batch 64 and more")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    checkpoint = Checkpoint.load(options.checkpoint)
    assert checkpoint.pool is not None, "the benchmark samples a generator"
    pool, config = checkpoint.pool, NetworkConfig(**checkpoint.config["network"])
    with tempfile.TemporaryDirectory() as folder:
        export(options.checkpoint, Path(folder) / "bundle", samples=100, batches=(64,), quiet=True)
        bundle = Bundle.load(Path(folder) / "bundle")
        backends: dict[str, Backend] = {
            "onnx": OnnxBackend(bundle, options.threads, "cpu"),
            "torchscript": TorchScriptBackend(bundle, options.threads),
            "torch": TorchBackend(checkpoint.network),
        }
        by_torch, by_onnx = matrix_rates(config.hidden, options.threads)
        flops = flops_a_token(config, len(checkpoint.vocabulary), pool.longest)
        limit = by_onnx * 1e9 / flops
        print(f"{cpu_model()}, {options.threads} threads; matrix product {by_torch:.0f} GFLOP/s (PyTorch), ", end="")
        print(
            f"{by_onnx:.0f} (ONNX Runtime); {flops / 1e6:.2f} MFLOP a token; limit {limit / 1e3:.0f} thousand tokens/s"
        )
        print("\n| runtime | batch | samples/s | tokens/s | of the limit | x eager |\n|---|---|---|---|---|---|")
        for batch in (1, 64, 256, 1024):
            count = 64 if batch == 1 else max(options.samples, 2 * batch)
            speeds: dict[str, tuple[float, float]] = {}
            for name, backend in backends.items():
                memories = Memories(backend, pool)
                samples, tokens = decode(backend, pool, memories, checkpoint, batch, count)  # encodes, and warms up
                seconds = timed(lambda b=backend, m=memories, k=batch, n=count: decode(b, pool, m, checkpoint, k, n))
                speeds[name] = samples / seconds, tokens / seconds
            for name, (samples_s, tokens_s) in speeds.items():
                ratio = samples_s / speeds["torch"][0]
                print(
                    f"| {name} | {batch} | {samples_s:,.0f} | {tokens_s:,.0f} | {tokens_s / limit:.0%} | {ratio:.1f} |"
                )
                sys.stdout.flush()
        training, out, count = Training(pool.tokens), Path(folder) / "samples.jsonl", 4 * options.samples
        first, second = checkpoint.sampling["temperature"]
        eager = TorchBackend(checkpoint.network)
        one_each = OnnxBackend(bundle, 1, "cpu")

        def plain() -> None:
            through_filters(plain_loop(eager, pool, checkpoint, 256, options.samples), training, checkpoint, out)

        def ours() -> None:
            found = draws(
                one_each, pool, seed=SEED, start=0, stop=count, max_length=checkpoint.max_length,
                temperature=(first, second), slots=256, workers=options.threads,
            )  # fmt: skip
            through_filters(found, training, checkpoint, out)

        plain()
        slow, fast = options.samples / timed(plain), count / timed(ours)
        print("\nend to end, batch 256, filters and writing included, samples/s:")
        print(f"plain PyTorch loop {slow:,.0f}; compgen sample {fast:,.0f}; ratio {fast / slow:.1f}")


if __name__ == "__main__":
    main()
