"""Export of a Transformer: encoder and step as ONNX graphs, and the check that they answer as the checkpoint does."""

import copy
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from safetensors.numpy import save

from compgen.errors import BundleError
from compgen.export.assemble import write_manifest
from compgen.export.bundle_writer import Options
from compgen.export.golden_draws import answers_of, write_golden
from compgen.export.onnx_graphs import Part, Sizes, save_graphs, trace
from compgen.export.step_weights import transformer_weights
from compgen.export.verify import BATCH, answer_distance, compare, one_thread, require, task
from compgen.models.backend import TorchTransformer
from compgen.models.transformer import Transformer, TransformerMemory, TransformerStep
from compgen.progress import Progress
from compgen.runtime.backend import Decoder
from compgen.runtime.bundle import Bundle
from compgen.runtime.cached import MEMORY, STEP_INPUTS, STEP_OUTPUTS
from compgen.runtime.manifest import ENCODER, STEP, STEP_WEIGHTS, Manifest, Parity
from compgen.runtime.onnx_transformer import OnnxTransformer
from compgen.trained.checkpoint import Checkpoint


def write_bundle(checkpoint: Checkpoint, folder: Path, options: Options) -> Manifest:
    """Write a verified bundle but for its card; see `bundle_writer.export`. Return its manifest."""
    if options.int8 or options.torchscript:
        raise BundleError("a Transformer is exported to ONNX in float32 alone: leave out int8 and torchscript")
    bundle = assemble(checkpoint, checkpoint.network, folder)
    parity = verify(checkpoint, bundle, options.batches, quiet=options.quiet)
    write_golden(folder, answers_of(bundle, OnnxTransformer(bundle, provider="cpu")))
    return bundle.manifest.model_copy(update={"parity": parity})


def assemble(checkpoint: Checkpoint, network: Transformer, folder: Path) -> Bundle:
    """Write graphs, weights and vocabulary of a checkpoint to `folder`, in the dtype of `network`."""
    graphs = save_graphs({part.file: trace(part, folder / part.file) for part in _parts(network.eval())}, folder)
    (folder / STEP_WEIGHTS).write_bytes(save(transformer_weights(network)))
    return write_manifest(checkpoint, folder, architecture="transformer", prototypes=1, graphs=graphs)


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
    truth = TorchTransformer(double)
    with (
        one_thread(),
        tempfile.TemporaryDirectory() as folder,
        Progress("verify", 3 * len(batches), quiet=quiet) as progress,
    ):
        decoders: list[tuple[str, str, Decoder]] = [
            ("onnx", "float64", OnnxTransformer(assemble(checkpoint, double, Path(folder)))),
            ("torch", "float32", TorchTransformer(checkpoint.network)),
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
