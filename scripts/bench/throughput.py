"""Samples per second: ONNX Runtime, TorchScript and eager PyTorch, against each other and the arithmetic limit.

    python scripts/bench/throughput.py runs/demo/recomb2.pt

Two tables from one run. The first decodes one batch after another by continuous batching, prototypes encoded
beforehand, one worker with all cores. The second is end to end: `compgen sample` as a user runs it (prototype choice,
encoding, filters, writing) against the plain PyTorch loop: encode the batch's prototypes, decode until every row is
done, next batch. It first checks that both give the same samples (up to draws at a float32 boundary). Medians over
repeats. The limit is the multiplications of the decoding step at the measured rate of ONNX Runtime's matrix product,
the faster of the two libraries here.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from onnx import TensorProto, helper

from compgen.api import Generator
from compgen.export.bundle_writer import export
from compgen.models.backend import TorchBackend
from compgen.models.config import NetworkConfig
from compgen.models.decoding import EOS, SEP, DecodingStep
from compgen.models.network import lstm_cell
from compgen.runtime import random
from compgen.runtime.bundle import Bundle
from compgen.runtime.filters import Filter, FilterConfig, Training
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.runtime.output import Sample, as_tsv, sample_writer
from compgen.runtime.pool import PrototypePool
from compgen.runtime.sampler import Addresses, Backend, Draw, Memories, run_slots
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
    """Multiplications and additions of one row's decoding step; what the token read gives is looked up."""
    c = config
    state = c.hidden + (c.output if c.feed else 0)
    gates = state * 4 * c.hidden
    query = state * c.memories * c.attention
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


@torch.inference_mode()
def plain_loop(checkpoint: Checkpoint, pool: PrototypePool, batch: int, count: int) -> Iterator[Draw]:
    """What one writes first: encode the prototypes of a batch, decode until all rows are done, next batch."""
    network, lstm = checkpoint.network, checkpoint.network.lstm
    assert network.attention is not None, "a generator with prototypes"
    banned = DecodingStep(network).banned
    warmth = torch.tensor(checkpoint.sampling["temperature"])
    for begin in range(0, count, batch):
        samples = np.arange(begin, min(begin + batch, count))
        rows, chosen = len(samples), pool.choose(SEED, samples)
        memory_tokens = torch.from_numpy(pool.tokens[chosen, : pool.longest].astype(np.int64))
        numbers = torch.from_numpy(random.uniforms(SEED, samples, checkpoint.max_length))
        keys, values, final = network.recall(memory_tokens)
        hidden, cell = network.start(final)
        fed, inside = torch.zeros(rows, network.output), memory_tokens != 0
        token, half = torch.ones(rows, dtype=torch.int64), torch.zeros(rows, dtype=torch.int64)
        written, done = [], torch.zeros(rows, dtype=torch.bool)
        for step in range(checkpoint.max_length):
            read = torch.cat([network.embed(token), fed], dim=1)
            gates = F.linear(read, lstm.weight_ih_l0, lstm.bias_ih_l0)
            gates = gates + F.linear(hidden, lstm.weight_hh_l0, lstm.bias_hh_l0)
            hidden, cell = lstm_cell(gates, cell)
            query = network.attention.query(torch.cat([hidden, read], dim=1)).unsqueeze(1)
            u, scores = network.attend(hidden.unsqueeze(1), query, keys, values, inside, torch.tensor([[step]]))
            fed = u[:, 0]
            log_probs = network.merge(network.write(u)[:, 0], scores, memory_tokens)
            log_probs = log_probs.masked_fill(banned[int(step == 0)], -1e9)
            heat = warmth[half]
            cdf = torch.softmax(log_probs / torch.where(heat > 0, heat, 1).unsqueeze(1), dim=1).cumsum(dim=1)
            drawn = (cdf <= numbers[:, step, None] * cdf[:, -1:]).sum(dim=1).clamp(max=network.vocabulary - 1)
            token = torch.where(heat > 0, drawn, log_probs.argmax(dim=1))
            half = half | (token == SEP)
            written.append(token)
            done |= token == EOS
            if done.all():
                break
        for row, line in enumerate(torch.stack(written, dim=1).tolist()):
            end = line.index(EOS) if EOS in line else len(line)
            yield Draw(int(samples[row]), tuple(line[:end]), EOS in line, 0.0, tuple(chosen[row].tolist()))


def written(samples: Iterable[Sample], out: Path) -> set[tuple[int, str]]:
    """Write samples to a file; returns them with their addresses."""
    kept = set()
    with sample_writer(str(out)) as write:
        for sample in samples:
            write(sample)
            kept.add((sample.index, as_tsv(sample)))
    return kept


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
        export(options.checkpoint, Path(folder) / "bundle", batches={64: 100}, quiet=True)
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
        end_to_end(checkpoint, pool, bundle, options.samples, options.threads, Path(folder) / "samples.jsonl")


def end_to_end(
    checkpoint: Checkpoint, pool: PrototypePool, bundle: Bundle, samples: int, threads: int, out: Path
) -> None:
    """Prototype choice, encoding, filters and writing included: ours against the plain loop, at batch 256."""
    training, words = Training(pool.tokens), checkpoint.vocabulary.decode

    def plain(names: tuple[str, ...], count: int) -> set[tuple[int, str]]:
        kept = Filter(FilterConfig(names), training).keep(plain_loop(checkpoint, pool, 256, count))
        return written((Sample(d.index, words(s), words(t), d.log_prob, d.prototypes) for d, s, t in kept), out)

    def ours(names: tuple[str, ...], count: int) -> set[tuple[int, str]]:
        backend = OnnxBackend(bundle, 1, "cpu")  # anew, so that every prototype is encoded within the measured time
        generator = Generator(backend, pool, checkpoint.vocabulary, checkpoint.max_length, checkpoint.sampling)
        return written(generator.stream(draws=count, seed=SEED, filters=names, batch=256, workers=threads), out)

    print("\n| end to end, batch 256 | plain loop, draws/s | compgen sample, draws/s | ratio |\n|---|---|---|---|")
    expected, found = plain((), samples), ours((), samples)
    assert len(expected & found) > 0.99 * len(expected), "the plain loop draws other samples"
    many = 16 * samples
    for names in (("novel", "unique"), ()):
        slow = samples / timed(partial(plain, names, samples))
        fast = many / timed(partial(ours, names, many))
        print(f"| filters: {', '.join(names) or 'none'} | {slow:,.0f} | {fast:,.0f} | {fast / slow:.1f} |")


if __name__ == "__main__":
    main()
