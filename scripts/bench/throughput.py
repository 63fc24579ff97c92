"""Samples per second of every runtime, against each other and the arithmetic limit.

    pip install --target build/openvino openvino
    python scripts/bench/throughput.py runs/demo/recomb2.pt --peer build/openvino

One run prints two tables. The first decodes by continuous batching over few prototypes, encoded beforehand, in every
runtime and at several batch sizes: the generator itself, and networks of fresh weights in the sizes of the paper's
SCAN and morphology generators, whose sequences mean nothing. ONNX Runtime and the C++ runner have a worker a core, as
`cgen sample` has; PyTorch has one worker and all cores. Tokens are those of samples; the limit is what they need
in multiplications, without padding, at the measured rate of ONNX Runtime's matrix product. An int8 bundle has a limit
of its own: what it multiplies in integers at the rate of the product of integers, and the rest as in float32. What
the C++ runner takes to start is taken off. OpenVINO runs the same step graph by the same batching, told to compute in
float32; without --peer its rows are left out.

The second is end to end for the generator itself: `cgen sample` as a user runs it (start of the program, choice of
prototypes, encoding, filters, writing) against the plain PyTorch loop: encode the batch's prototypes, decode until
every row is done, next batch. It first checks that all give the same samples (up to draws at a float32 boundary).

Medians over repeats. Without the C++ runner (`make runner`) its rows are left out.
"""

import argparse
import importlib.util
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from compgen.data import random
from compgen.data.vocabulary import EOS_ID, SEP_ID
from compgen.errors import UserError
from compgen.export.assemble import assemble, seal
from compgen.export.int8 import approximate
from compgen.models.backend import TorchBackend
from compgen.models.config import NetworkConfig
from compgen.models.decoding import DecodingStep
from compgen.models.network import Network
from compgen.models.recurrence import Memory, Notes, lstm_cell
from compgen.runtime.backend import Backend
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import STEP
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.runtime.pool import PrototypePool
from compgen.runtime.torchscript_backend import TorchScriptBackend
from compgen.sampling import native
from compgen.sampling.batching import Addresses, Draw, Memories, run_slots
from compgen.sampling.output import Sample, sample_writer
from compgen.sampling.resampling import Filter, FilterConfig, Training
from compgen.trained.checkpoint import Checkpoint

SEED, REPEATS, SECONDS = 11, 3, 1.0
PROTOTYPES = 64  # of the first table
OWN: tuple[dict[str, int], list[int]] = ({}, [1, 64, 256, 1024])
FRESH: dict[str, tuple[dict[str, int], list[int]]] = {  # sizes, and batches of the runtimes in Python
    "scan": (
        {"hidden": 512, "encoder_hidden": 512, "embedding": 64, "output": 64, "attention": 128},
        [64, 256],
    ),
    "morphology": (
        {"hidden": 1024, "encoder_hidden": 512, "embedding": 1024, "output": 1024, "attention": 1024},
        [64, 256],
    ),
}


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


class Rates(NamedTuple):
    """GFLOP/s of matrix products: of PyTorch, of ONNX Runtime, and of ONNX Runtime in integers."""

    torch: float
    onnx: float
    integers: float


def matrix_rates(hidden: int, threads: int) -> Rates:
    """The rates at the shape of the decoder's gates."""
    m, k, n = 256, 2 * hidden, 4 * hidden
    a, b = np.random.default_rng(0).random((2, max(m, k), max(k, n)), dtype=np.float32)
    a, b = np.ascontiguousarray(a[:m, :k]), np.ascontiguousarray(b[:k, :n])
    x, y = torch.from_numpy(a), torch.from_numpy(b)
    works = (lambda: x @ y, product(a, b, threads), product(*as_integers(a, b), threads))
    return Rates(*(rate(work, 2.0 * m * k * n) for work in works))


def as_integers(a: NDArray[Any], b: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Activations and weights between 0 and 1 in the types of int8 bundles."""
    return (a * 127 + 128).astype(np.uint8), (b * 64).astype(np.int8)


def product(a: NDArray[Any], b: NDArray[Any], threads: int) -> Callable[[], object]:
    """The product of activations and weights by ONNX Runtime, in float32 or in the integers of int8 bundles."""
    integers = b.dtype == np.int8
    operator, extra, out = (
        ("MatMulInteger", ["zero"], TensorProto.INT32) if integers else ("MatMul", [], TensorProto.FLOAT)
    )
    constants = [numpy_helper.from_array(b, "b"), numpy_helper.from_array(np.array(128, np.uint8), "zero")]
    graph = helper.make_graph(
        [helper.make_node(operator, ["a", "b", *extra], ["c"])],
        "product",
        [helper.make_tensor_value_info("a", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)],
        [helper.make_tensor_value_info("c", out, [len(a), b.shape[1]])],
        constants[: 1 + integers],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {"a": a})


def flops_a_token(config: NetworkConfig, vocabulary: int, time_steps: float) -> float:
    """Multiplications and additions of one row's decoding step over memories of so many tokens.

    What the token read gives is looked up.
    """
    c = config
    state = c.hidden + (c.output if c.feed else 0)
    gates = state * 4 * c.hidden
    query = state * c.memories * c.attention
    attend = c.memories * 2 * c.attention * time_steps * 1.5  # half for adding what stands for a token's position
    write = (c.hidden + c.memories * c.attention) * c.output + c.output * vocabulary
    return 2.0 * (gates + query + attend + write)


def flops_in_integers(bundle: Bundle) -> float:
    """Those of an int8 bundle that are of integers."""
    tensors = onnx.load(bundle.path / STEP).graph.initializer
    return 2.0 * sum(math.prod(tensor.dims) for tensor in tensors if tensor.data_type == TensorProto.INT8)


def untrained(checkpoint: Checkpoint, sizes: dict[str, int]) -> Checkpoint:
    """A generator of other sizes, with fresh weights."""
    torch.manual_seed(SEED)
    config = NetworkConfig(**checkpoint.config["network"] | sizes)
    network = Network(config, len(checkpoint.vocabulary)).eval()
    return replace(checkpoint, network=network, config=checkpoint.config | {"network": config.model_dump(mode="json")})


def resized(checkpoint: Checkpoint, sizes: dict[str, int]) -> Checkpoint:
    """A generator of other sizes over few prototypes, with fresh weights; its own weights if there are no sizes."""
    assert checkpoint.pool is not None, "the benchmark samples a generator"
    tokens = checkpoint.pool.tokens[:PROTOTYPES]
    places = np.zeros((1, checkpoint.pool.prototypes), dtype=np.int64)
    pool = PrototypePool(tokens, np.arange(len(tokens), dtype=np.int32), places, places + len(tokens))
    return replace(untrained(checkpoint, sizes) if sizes else checkpoint, pool=pool)


class Inside:
    """A runtime in this process, with prototypes encoded beforehand."""

    def __init__(self, backend: Backend, checkpoint: Checkpoint, workers: int) -> None:
        assert checkpoint.pool is not None, "the benchmark samples a generator"
        self.backend, self.checkpoint, self.pool, self.workers = backend, checkpoint, checkpoint.pool, workers
        self.memories = Memories(backend, checkpoint.pool)
        self.memories.prepare(checkpoint.pool.members.astype(np.int64))

    def decode(self, batch: int, count: int) -> tuple[int, float]:
        """Tokens of the samples 0 .. count - 1, the end symbols included, and seconds."""
        addresses = Addresses(0, count)
        began = time.perf_counter()
        if self.workers == 1:  # in this thread, the one whose number of threads PyTorch was told
            return self._work(addresses, batch), time.perf_counter() - began
        with ThreadPoolExecutor(self.workers) as threads:
            tokens = sum(threads.map(lambda _: self._work(addresses, batch), range(self.workers)))
        return tokens, time.perf_counter() - began

    def _work(self, addresses: Addresses, batch: int) -> int:
        first, second = self.checkpoint.sampling["temperature"]
        finished = run_slots(
            self.memories, addresses, seed=SEED, slots=batch,
            max_length=self.checkpoint.max_length, temperature=(first, second),
        )  # fmt: skip
        return sum(len(draw.tokens) + draw.finished for draws in finished for draw in draws)


class OpenVino(OnnxBackend):
    """A bundle's graphs in OpenVINO, for so many calls at a time, each on one thread."""

    def __init__(self, bundle: Bundle, threads: int) -> None:
        super().__init__(bundle, 1, "cpu")
        for graph in filter(None, (self._step, self._encoder, self._start)):
            graph.session = OpenVinoSession(graph.name, threads)


class OpenVinoSession:
    """What `OnnxGraph` asks of a session."""

    def __init__(self, path: str, threads: int) -> None:
        import openvino

        options = {"INFERENCE_PRECISION_HINT": "f32", "NUM_STREAMS": threads, "INFERENCE_NUM_THREADS": threads}
        self._compiled = openvino.Core().compile_model(path, "CPU", options)
        self._of_thread = threading.local()

    def run(self, outputs: list[str], inputs: dict[str, NDArray[Any]]) -> list[NDArray[Any]]:
        """The outputs of those names."""
        if not hasattr(self._of_thread, "request"):
            self._of_thread.request = self._compiled.create_infer_request()
        found = self._of_thread.request.infer(inputs, share_inputs=True)
        return [np.array(found[name]) for name in outputs]


class Native:
    """The C++ runner, less what it takes to start and to encode; it writes its draws to a file."""

    def __init__(self, bundle: Bundle, checkpoint: Checkpoint, step: str, workers: int) -> None:
        first, second = checkpoint.sampling["temperature"]
        self.out, self.max_length = bundle.path.with_suffix(".jsonl"), checkpoint.max_length
        self.command = [str(native.runner()), str(bundle.path), "--raw", "-o", str(self.out), "--seed", str(SEED)]
        self.command += ["--step", step, "--workers", str(workers), "--temperature", f"{first!r},{second!r}"]

    def decode(self, batch: int, count: int) -> tuple[int, float]:
        """As `Inside.decode`."""
        few, start = self._run(batch, 4 * PROTOTYPES)
        many, whole = self._run(batch, 4 * PROTOTYPES + count)
        return many - few, whole - start

    def _run(self, batch: int, count: int) -> tuple[int, float]:
        command = [*self.command, "--batch", str(batch), "--draws", str(count)]
        began = time.perf_counter()
        subprocess.run(command, check=True, env=native.environment())
        seconds = time.perf_counter() - began
        lengths = (len(json.loads(line)["tokens"]) for line in self.out.read_text("utf-8").splitlines())
        return sum(min(length + 1, self.max_length) for length in lengths), seconds


@torch.inference_mode()
def plain_loop(checkpoint: Checkpoint, pool: PrototypePool, batch: int, count: int) -> Iterator[Draw]:
    """The obvious way: encode the prototypes of a batch, decode until all rows are done, then take the next batch."""
    network, lstm = checkpoint.network, checkpoint.network.lstm
    assert network.attention is not None, "a generator with prototypes"
    banned = DecodingStep(network).forbidden
    warmth = torch.tensor(checkpoint.sampling["temperature"])
    for begin in range(0, count, batch):
        samples = np.arange(begin, min(begin + batch, count))
        rows, chosen = len(samples), pool.choose(SEED, samples)
        memory_tokens = torch.from_numpy(pool.sequences(chosen))
        numbers = torch.from_numpy(random.uniforms(SEED, samples, checkpoint.max_length))
        keys, values, final = network.recall(memory_tokens)
        hidden, cell = network.start(final)
        memory = Memory(keys, values, memory_tokens != 0)
        fed, notes = torch.zeros(rows, network.output), Notes(keys, memory.inside)
        token, half = torch.ones(rows, dtype=torch.int64), torch.zeros(rows, dtype=torch.int64)
        written, done = [], torch.zeros(rows, dtype=torch.bool)
        for step in range(checkpoint.max_length):
            read = torch.cat([network.embed(token), fed], dim=1)
            gates = F.linear(read, lstm.weight_ih_l0, lstm.bias_ih_l0)
            gates = gates + F.linear(hidden, lstm.weight_hh_l0, lstm.bias_hh_l0)
            hidden, cell = lstm_cell(gates, cell)
            query = network.attention.query(torch.cat([hidden, read], dim=1)).unsqueeze(1)
            state, now = hidden.unsqueeze(1), torch.tensor([[step]])
            u, scores = network.attend(state, query, memory, notes, now)
            fed = u[:, 0]
            log_probs = network.merge(network.slots(state, u, scores)[:, 0], memory_tokens.flatten(1))
            log_probs = log_probs.masked_fill(banned[int(step == 0)], -1e9)
            heat = warmth[half]
            cdf = torch.softmax(log_probs / torch.where(heat > 0, heat, 1).unsqueeze(1), dim=1).cumsum(dim=1)
            drawn = (cdf <= numbers[:, step, None] * cdf[:, -1:]).sum(dim=1).clamp(max=network.vocabulary - 1)
            token = torch.where(heat > 0, drawn, log_probs.argmax(dim=1))
            half = half | (token == SEP_ID)
            written.append(token)
            done |= token == EOS_ID
            if done.all():
                break
        for row, line in enumerate(torch.stack(written, dim=1).tolist()):
            end = line.index(EOS_ID) if EOS_ID in line else len(line)
            yield Draw(int(samples[row]), tuple(line[:end]), EOS_ID in line, 0.0, tuple(chosen[row].tolist()))


def timed(work: Callable[[], object]) -> float:
    """Median seconds over the repeats."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def has_runner() -> bool:
    """Whether the C++ runner is there; says so if it is not."""
    try:
        native.runner()
    except UserError as error:
        print(f"{error}\n")
        return False
    return True


def bundle_of(checkpoint: Checkpoint, folder: Path) -> Bundle:
    """The checkpoint exported, without the usual check of what it computes."""
    folder.mkdir()
    bundle = assemble(checkpoint, folder)
    seal(folder, bundle.manifest)
    return bundle


def decoding(name: str, checkpoint: Checkpoint, batches: list[int], threads: int, repeats: int) -> None:
    """The first table's rows of one generator."""
    assert checkpoint.pool is not None, "the benchmark samples a generator"
    config = NetworkConfig(**checkpoint.config["network"])
    flops = flops_a_token(config, len(checkpoint.vocabulary), float((checkpoint.pool.tokens != 0).sum(axis=1).mean()))
    with tempfile.TemporaryDirectory() as folder:
        bundle = bundle_of(checkpoint, Path(folder) / "bundle")
        runtimes: dict[str, tuple[Inside | Native, list[int]]] = {
            "torch": (Inside(TorchBackend(checkpoint.network), checkpoint, 1), batches),
            "torchscript": (Inside(TorchScriptBackend(bundle, threads, trust_code=True), checkpoint, 1), batches),
            "onnx": (Inside(OnnxBackend(bundle, 1, "cpu"), checkpoint, threads), batches),
        }
        if importlib.util.find_spec("openvino") is not None:
            runtimes["OpenVINO"] = (Inside(OpenVino(bundle, threads), checkpoint, threads), batches)
        rough = approximate(checkpoint, bundle_of(checkpoint, Path(folder) / "int8"))
        seal(rough.path, rough.manifest)
        in_integers = flops_in_integers(rough)
        if has_runner():
            runtimes["C++, onnx"] = (Native(bundle, checkpoint, "graph", threads), [64, 256])
            runtimes["C++, own step"] = (Native(bundle, checkpoint, "own", threads), [60, 120, 240])
            runtimes["C++, own step, int8"] = (Native(rough, checkpoint, "own", threads), [60, 120, 240])
        rates, rows = [matrix_rates(config.hidden, threads)], []
        for runtime, (run, sizes) in runtimes.items():
            rows += [(runtime, batch, *speed(run, batch, repeats)) for batch in sizes]
            rates.append(matrix_rates(config.hidden, threads))  # the best of several moments
    best = Rates(*(max(found) for found in zip(*rates, strict=True)))
    limit = 1e9 / (flops / best.onnx)
    own = 1e9 / ((flops - in_integers) / best.onnx + in_integers / best.integers)
    eager = max(tokens_s for runtime, _, _, tokens_s in rows if runtime == "torch")
    products = f"products {best.onnx:.0f} GFLOP/s, in PyTorch {best.torch:.0f}"
    print(f"| *{name}: {flops / 1e6:.2f} MFLOP a token; {products}* | | | *{limit:,.0f}* | *100%* | |")
    print(f"| *the same in int8: products {best.integers:.0f} Gop/s* | | | *{own:,.0f}* | *100%* | |")
    for runtime, batch, samples_s, tokens_s in rows:
        share, ratio = f"{tokens_s / (own if 'int8' in runtime else limit):.0%}", f"{tokens_s / eager:.1f}"
        print(f"| {runtime} | {batch} | {samples_s:,.0f} | {tokens_s:,.0f} | {share} | {ratio} |", flush=True)


def speed(run: Inside | Native, batch: int, repeats: int) -> tuple[float, float]:
    """Samples/s and tokens/s: medians of runs of some seconds."""
    trial = 4 * batch if batch > 1 else 32
    while (seconds := run.decode(batch, trial)[1]) < SECONDS / 4:
        trial *= 4
    count = max(trial, int(trial * SECONDS / seconds))
    found = [run.decode(batch, count) for _ in range(repeats)]
    took = statistics.median(seconds for _, seconds in found)
    return count / took, found[0][0] / took


def main() -> None:
    """Run both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--samples", type=int, default=4096, help="draws of the plain loop; ours makes 16 times more")
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--repeats", type=int, default=REPEATS, help="of each row of the first table")
    parser.add_argument("--sizes", nargs="+", choices=["own", *FRESH], default=["own", *FRESH])
    parser.add_argument("--tables", nargs="+", choices=["decoding", "end"], default=["decoding", "end"])
    parser.add_argument("--peer", type=Path, help="folder that OpenVINO was installed to")
    options = parser.parse_args()
    if options.peer:
        sys.path.append(str(options.peer))
    torch.set_num_threads(options.threads)
    checkpoint = Checkpoint.load(options.checkpoint)
    print(f"{cpu_model()}, {options.threads} threads\n")
    if "decoding" in options.tables:
        print("| runtime | batch | samples/s | tokens/s | of the limit | x eager's best |\n|---|---|---|---|---|---|")
        for name in options.sizes:
            sizes, batches = FRESH.get(name, OWN)
            sized = resized(checkpoint, sizes)
            decoding(f"{name}, {sized.network.hidden} units", sized, batches, options.threads, options.repeats)
    if "end" in options.tables:
        with tempfile.TemporaryDirectory() as folder:
            bundle = bundle_of(checkpoint, Path(folder) / "bundle")
            end_to_end(checkpoint, bundle, options.samples, options.threads, Path(folder))


def end_to_end(checkpoint: Checkpoint, bundle: Bundle, samples: int, threads: int, folder: Path) -> None:
    """Everything from the start of the program to the file included: ours against the plain loop, at batch 256."""
    pool = checkpoint.pool
    assert pool is not None, "the benchmark samples a generator"
    training, words, out = Training(pool), checkpoint.vocabulary.decode, folder / "samples.jsonl"

    def plain(names: str, count: int) -> None:
        kept = Filter(FilterConfig(tuple(filter(None, names.split(",")))), training)
        with sample_writer(str(out)) as write:
            for draw, source, target in kept.keep(plain_loop(checkpoint, pool, 256, count)):
                write(Sample(draw.index, words(source), words(target), draw.log_prob, draw.prototypes))

    def ours(runtime: str, names: str, count: int) -> None:
        command = [sys.executable, "-m", "compgen", "sample", str(bundle.path), "--draws", str(count), "-o", str(out)]
        command += ["--seed", str(SEED), "--runtime", runtime, "--workers", str(threads)]
        command += ["--filter", names] if names else []
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)

    def same(expected: set[tuple[int, str]]) -> None:
        assert len(expected & pairs_in(out)) > 0.99 * len(expected), "the plain loop draws other samples"

    runtimes = ["onnx", *(["native"] if has_runner() else [])]
    plain("", samples)
    expected = pairs_in(out)
    for runtime in runtimes:
        ours(runtime, "", samples)
        same(expected)
    print("\n| end to end | draws/s | x the plain loop |\n|---|---|---|")
    many = 16 * samples
    for names in ("novel,unique", ""):
        slow = samples / timed(partial(plain, names, samples))
        print(f"| plain loop, batch 256; filters: {names or 'none'} | {slow:,.0f} | 1.0 |", flush=True)
        for runtime in runtimes:
            fast = many / timed(partial(ours, runtime, names, many))
            print(f"| cgen sample --runtime {runtime} | {fast:,.0f} | {fast / slow:.1f} |", flush=True)


def pairs_in(path: Path) -> set[tuple[int, str]]:
    """Addresses and texts of the samples in a file."""
    samples = map(json.loads, path.read_text("utf-8").splitlines())
    return {(sample["index"], " ".join([*sample["source"], "→", *sample["target"]])) for sample in samples}


if __name__ == "__main__":
    main()
