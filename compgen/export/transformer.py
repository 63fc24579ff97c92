"""Export of a Transformer: encoder and step as ONNX graphs, and the check that they answer as the checkpoint does."""

import copy
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from compgen.errors import BundleError
from compgen.export.assemble import measured, settings_of, write_manifest
from compgen.export.bundle_writer import Options
from compgen.export.golden_draws import answers_of, write_golden
from compgen.export.int8 import Opener, compared
from compgen.export.integers import LARGE, products, rounded_by_column, with_integers
from compgen.export.onnx_functions import int8_rows
from compgen.export.onnx_graphs import Part, Sizes, save_graphs, trace
from compgen.export.step_weights import folded, integer_weights, transformer_weights
from compgen.export.verify import BATCH, THREADS, Runner, Task, answer_distance, compare, require, task
from compgen.models.backend import TorchTransformer
from compgen.models.transformer import Transformer, TransformerMemory, TransformerStep
from compgen.progress import Progress
from compgen.runtime.backend import Decoder
from compgen.runtime.bundle import MOST_DEPTH, Bundle
from compgen.runtime.cached import MEMORY, STEP_INPUTS, STEP_OUTPUTS
from compgen.runtime.manifest import ENCODER, STEP, STEP_WEIGHTS, Approximation, Manifest, Parity
from compgen.runtime.onnx_transformer import OnnxTransformer
from compgen.trained.checkpoint import Checkpoint


def write_bundle(checkpoint: Checkpoint, folder: Path, options: Options) -> Manifest:
    """Write a verified bundle but for its card; see `bundle_writer.export`. Return its manifest."""
    if options.torchscript:
        raise BundleError("a Transformer is exported to ONNX alone: leave out torchscript")
    network, approximation = checkpoint.network, None
    size, inner = network.config.size, network.config.inner
    if options.int8 and max(size, inner) > MOST_DEPTH:
        raise BundleError(f"a matrix of {size} x {inner} is too large for int8")
    if options.int8 and size * max(size, inner) < LARGE:
        raise BundleError(f"no matrix of {size} x {max(size, inner)} is large enough for int8 to be faster")
    bundle = assemble(checkpoint, network, folder, int8=options.int8)
    if options.int8:
        parity, approximation = verify_approximate(checkpoint, bundle, options.batches, quiet=options.quiet)
    else:
        parity = verify(checkpoint, bundle, options.batches, quiet=options.quiet)
    bundle = measured(bundle, parity, approximation)
    write_golden(folder, answers_of(bundle, OnnxTransformer(bundle, provider="cpu")))
    return bundle.manifest


def assemble(checkpoint: Checkpoint, network: Transformer, folder: Path, *, int8: bool = False) -> Bundle:
    """Write graphs, weights and vocabulary of a checkpoint to `folder`, in the dtype of `network`.

    With `int8` all matrices of its layers are in 8-bit integers, and each row of activations has its own scale. The
    embeddings, which are also the output's weights, stay in floating point.
    """
    network = folded(network.eval())
    models = {part.file: trace(part, folder / part.file) for part in _parts(network)}
    weights = transformer_weights(network)
    if int8:
        models = {name: _in_integers(model, network) for name, model in models.items()}
        weights = integer_weights(weights)
    graphs = save_graphs(models, folder)
    (folder / STEP_WEIGHTS).write_bytes(save(weights))
    return write_manifest(checkpoint, folder, **settings_of(checkpoint), prototypes=1, graphs=graphs)


def _in_integers(model: Any, network: Transformer) -> Any:
    """A graph whose layers multiply by integers."""
    output = network.embedding.weight.detach().numpy().T
    integers = {
        product: (activation, rounded_by_column(matrix))
        for product, (activation, matrix) in products(model).items()
        if not np.array_equal(matrix, output)
    }
    return with_integers(model, integers, int8_rows)


def _parts(network: Transformer) -> list[Part]:
    config = network.config
    kept: Sizes = ["B", config.layers, config.heads, "S", config.size // config.heads]
    past, longer = ([*kept[:3], size, kept[4]] for size in ("P", "L"))
    inputs: dict[str, Sizes] = {"token": ["B"], "position": ["B"], "source": ["B", "S"]}
    inputs |= dict.fromkeys(MEMORY, kept) | {"keys": past, "values": past}
    outputs: dict[str, Sizes] = {"log_probs": ["B", network.vocabulary], "next_keys": longer, "next_values": longer}
    assert tuple(inputs) == STEP_INPUTS and tuple(outputs) == STEP_OUTPUTS
    return [
        Part(ENCODER, TransformerMemory(network), {"source": ["B", "S"]}, dict.fromkeys(MEMORY, kept)),
        Part(STEP, TransformerStep(network), inputs, outputs),
    ]


def verify(checkpoint: Checkpoint, bundle: Bundle, batches: Mapping[int, int], *, quiet: bool = False) -> list[Parity]:
    """Compare the answers of ONNX Runtime, in float64 and in float32, with those of PyTorch in float64.

    Args:
        checkpoint: what was exported.
        bundle: its export.
        batches: sizes of batches, and how many made-up sources to answer in each.
        quiet: without progress.

    Raises:
        BundleError: an answer differs in float64, or in float32 without rounding as the reason, or too many differ.
    """
    samples = max(batches.values())
    work, double = task(checkpoint, samples), copy.deepcopy(checkpoint.network).double()
    truth = TorchTransformer(double, threads=THREADS)
    with (
        tempfile.TemporaryDirectory() as folder,
        Progress("verify", 3 * len(batches), quiet=quiet) as progress,
    ):
        decoders: list[tuple[str, str, Decoder]] = [
            ("onnx", "float64", OnnxTransformer(assemble(checkpoint, double, Path(folder)))),
            ("torch", "float32", TorchTransformer(checkpoint.network, threads=THREADS)),
            ("onnx", "float32", OnnxTransformer(bundle)),
        ]
        expected, rows = work.answers(truth, samples, BATCH), list[Parity]()
        for name, dtype, decoder in decoders:
            runner = {name: partial(work.answers, decoder)}
            rows += compare(
                expected, dtype, runner, batches, partial(answer_distance, work, truth), progress, len(rows)
            )
    require(rows, "the export does not compute what its checkpoint does")
    return rows


def verify_approximate(
    checkpoint: Checkpoint, bundle: Bundle, batches: Mapping[int, int], *, quiet: bool = False
) -> tuple[list[Parity], Approximation]:
    """Compare an approximate bundle with itself, and measure how far it is from its checkpoint; see `verify`.

    Raises:
        BundleError: more answers depend on their batch or the number of threads than rounding explains.
    """
    samples = max(batches.values())
    work, decoder = task(checkpoint, samples), OnnxTransformer(bundle, provider="cpu")
    exact = TorchTransformer(checkpoint.network, threads=THREADS)
    runners: dict[str, Runner] = {
        name: partial(work.answers, OnnxTransformer(bundle, threads, "cpu"))
        for name, threads in (("onnx", 1), ("onnx, 2 threads", 2))
    }
    forced = (_opened(work, one) for one in (exact, decoder))
    own, written = (partial(work.answers, one) for one in (decoder, exact))
    return compared(
        samples, own, written, forced, runners, batches, partial(answer_distance, work, decoder), quiet=quiet
    )


def _opened(work: Task, decoder: Decoder) -> Opener:
    return lambda rows: (decoder.open(work.memory_tokens[rows, 0]), decoder.advance)
