"""Transformers: predictors whose bundle has two graphs, and runs in ONNX Runtime alone."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from compgen.data.unimorph import is_tag
from compgen.data.vocabulary import Vocabulary
from compgen.errors import UserError
from compgen.runtime.bundle import Bundle
from compgen.trained.architectures import PREDICTOR, Architecture, Runner, Runners, Runtime, torch_device
from compgen.trained.native_predictor import NativePredictor
from compgen.trained.predictor import StepwisePredictor
from compgen.trained.replay import answered, native_runners, native_steps, providers

if TYPE_CHECKING:
    from compgen.models.config import TransformerNetwork
    from compgen.models.transformer import Transformer
    from compgen.runtime.onnx_transformer import OnnxTransformer
    from compgen.trained.checkpoint import Checkpoint


class TransformerArchitecture(Architecture):
    """See `models.transformer`."""

    tag = "transformer"
    abilities: ClassVar = {"predictor": PREDICTOR}
    exporter = "compgen.export.transformer"
    memory = "network.size, network.inner or network.layers"

    def open_saved(self, saved: "Checkpoint", path: Path, runtime: Runtime) -> StepwisePredictor:
        from compgen.models.backend import TorchTransformer

        decoder = TorchTransformer(saved.network, torch_device(), str(path), runtime.threads)
        return StepwisePredictor(decoder, saved.vocabulary, saved.max_length)

    def open_bundle(self, bundle: Bundle, runtime: Runtime) -> StepwisePredictor:
        if runtime.name == "torchscript":
            raise UserError(f"{bundle.path}: a Transformer's bundle runs in onnx and native alone")
        if runtime.name == "native":
            return NativePredictor(bundle, runtime.threads)
        decoder = _onnx(bundle, runtime.provider, runtime.threads)
        return StepwisePredictor(decoder, Vocabulary(bundle.vocabulary), bundle.manifest.max_length)

    def runners(self, bundle: Bundle, runtime: Runtime) -> tuple[Runners, list[str]]:
        where, notes = providers(bundle, runtime.provider)
        runners: Runners = {f"onnx, {name}": partial(_by_onnx, bundle, name) for name in where}
        in_cpp, missing = native_runners(bundle, native_steps(bundle))
        return runners | in_cpp, notes + missing

    def configuration(self, values: dict[str, Any]) -> "TransformerNetwork":
        from compgen.models.config import TransformerNetwork

        return TransformerNetwork(**values)

    def build(self, config: "TransformerNetwork", vocabulary: int) -> "Transformer":
        from compgen.models.transformer import Transformer

        return Transformer(config, vocabulary)

    def prepare(self, network: "Transformer", vocabulary: Vocabulary) -> None:
        network.treat_as_tags([number for number, token in enumerate(vocabulary) if is_tag(token)])


ARCHITECTURE = TransformerArchitecture()


def _onnx(bundle: Bundle, provider: str, threads: int = 1) -> "OnnxTransformer":
    from compgen.runtime.onnx_transformer import OnnxTransformer

    return OnnxTransformer(bundle, threads, provider)


def _by_onnx(bundle: Bundle, provider: str) -> Runner:
    return answered(bundle, _onnx(bundle, provider))
