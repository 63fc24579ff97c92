"""The bundle of a recurrent network: ONNX graphs, TorchScript, its pool and its golden draws."""

from pathlib import Path

from compgen.errors import BundleError
from compgen.export.assemble import assemble, measured
from compgen.export.bundle_writer import Options
from compgen.export.golden_draws import answers_of, draws_of, write_golden
from compgen.export.int8 import approximate, verify_approximate
from compgen.export.verify import verify
from compgen.runtime.manifest import Manifest
from compgen.runtime.onnx_backend import OnnxBackend
from compgen.runtime.predict import Recurrent
from compgen.trained.checkpoint import Checkpoint


def write_bundle(checkpoint: Checkpoint, folder: Path, options: Options) -> Manifest:
    """Write a verified bundle but for its card; see `bundle_writer.export`. Return its manifest."""
    if options.int8 and options.torchscript:
        raise BundleError("int8 is for ONNX Runtime alone: an int8 bundle has no TorchScript")
    script = not options.int8 and options.torchscript is not False
    bundle, approximation = assemble(checkpoint, folder, script=script), None
    if options.int8:
        bundle = approximate(checkpoint, bundle)
        parity, approximation = verify_approximate(checkpoint, bundle, options.batches, quiet=options.quiet)
    else:
        parity = verify(checkpoint, bundle, options.batches, quiet=options.quiet)
    bundle, onnx = measured(bundle, parity, approximation), OnnxBackend(bundle, provider="cpu")
    write_golden(folder, answers_of(bundle, Recurrent(onnx)) if bundle.pool is None else draws_of(bundle, onnx))
    return bundle.manifest
