"""A bundle run by TorchScript. torch is imported only when a backend is made."""

import io
import warnings
from typing import Any

from numpy.typing import NDArray

from compgen.errors import BundleError, UserError
from compgen.runtime.backend import Floats, Ints, StepInputs, StepOutputs
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import SCRIPT
from compgen.runtime.torch_threads import torch_threads


class TorchScriptBackend:
    """The runtime's `Backend` over `sampler.ts`, and its whole sampling loop as `sample`."""

    def __init__(self, bundle: Bundle, threads: int = 1, *, trust_code: bool = False) -> None:
        """Load the module on the CPU. It is code: loading it runs whatever its author put in.

        Args:
            bundle: from `Bundle.load`.
            threads: of one call.
            trust_code: whether the user trusts the author of the bundle; nothing is loaded without it.

        Raises:
            UserError: torch is not installed, or the code is not trusted.
            BundleError: the manifest lists no module, or torch refuses it.
        """
        self.name = str(bundle.path / SCRIPT)
        if SCRIPT not in bundle.files:
            raise BundleError(f"{bundle.path}: was exported without TorchScript; use the onnx runtime")
        if not trust_code:
            raise UserError(
                f"{self.name}: TorchScript is code, which loading runs: use the onnx runtime, or say --trust-code "
                "(trust_code=True) if you trust whoever made the bundle"
            )
        try:
            import torch
        except ModuleNotFoundError as error:
            raise UserError("TorchScript needs torch: pip install 'compgen[train]', or use the onnx runtime") from error
        self.shape, self.loop = bundle.manifest.decoder, None
        self.dtype, self.latent = self.shape.dtype, self.shape.latent
        self.threads, self._torch = threads, torch
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript as a whole; it is a legacy format
                self._module: Any = torch.jit.load(  # type: ignore[no-untyped-call]
                    io.BytesIO(bundle.file(SCRIPT)), map_location="cpu"
                )
        except (RuntimeError, ValueError) as error:
            raise BundleError(f"{self.name}: torch cannot load it: {' '.join(str(error).split())[:200]}") from error

    def encode(self, tokens: Ints) -> tuple[Floats, Floats, Floats]:
        keys, values, final = self._call(self._module.encode, tokens)
        return keys, values, final

    def start(self, final: Floats) -> tuple[Floats, Floats]:
        hidden, cell = self._call(self._module.start, final)
        return hidden, cell

    def step(self, inputs: StepInputs) -> StepOutputs:
        return StepOutputs(*self._call(self._module.step, *inputs))

    def sample(
        self, memory_tokens: Ints, uniforms: Floats, temperature: Floats, latent: Floats | None = None
    ) -> tuple[Ints, Floats]:
        """See `runtime.backend.Loop`."""
        inputs = [memory_tokens, uniforms, temperature, *([] if latent is None else [latent])]
        tokens, log_prob = self._call(self._module, *inputs)
        return tokens, log_prob

    def _call(self, method: Any, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        try:
            with torch_threads(self.threads), self._torch.inference_mode():
                outputs = method(*map(self._torch.from_numpy, arrays))
            return [output.numpy() for output in outputs]
        except RuntimeError as error:
            raise BundleError(f"{self.name}: torch cannot run it: {' '.join(str(error).split())[:200]}") from error
