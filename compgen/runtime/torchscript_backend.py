"""A bundle run by TorchScript, for places that deploy it already. torch is imported only when a backend is made."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.errors import BundleError, UserError
from compgen.runtime.backend import STEP_INPUTS, Floats, Ints
from compgen.runtime.bundle import SCRIPT, Bundle


class TorchScriptBackend:
    """The runtime's `Backend` over `sampler.ts`, and its whole sampling loop as `sample`."""

    def __init__(self, bundle: Bundle, threads: int = 1, device: str = "cpu") -> None:
        """Load the module.

        Args:
            bundle: from `Bundle.load`.
            threads: of one call; torch has one such number for the whole process.
            device: where to run, in torch's words.

        Raises:
            UserError: torch is not installed.
            BundleError: torch refuses the file.
        """
        try:
            import torch
        except ModuleNotFoundError as error:
            raise UserError("TorchScript needs torch: pip install 'compgen[train]', or use the onnx runtime") from error
        torch.set_num_threads(threads)
        self.shape, self.loop = bundle.manifest.decoder, None
        self.dtype, self.latent = self.shape.dtype, self.shape.latent
        self.device, self._torch = device, torch
        path = bundle.path / SCRIPT
        if not path.is_file():
            raise BundleError(f"{bundle.path}: was exported without TorchScript; use the onnx runtime")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # of TorchScript as a whole; it is a legacy format
                self._module: Any = torch.jit.load(str(path), map_location=device)  # type: ignore[no-untyped-call]
        except RuntimeError as error:
            raise BundleError(f"{path}: torch cannot load it: {' '.join(str(error).split())[:200]}") from error

    def encode(self, tokens: Ints) -> tuple[Floats, Floats, Floats]:
        keys, values, final = self._call(self._module.encode, tokens)
        return keys, values, final

    def start(self, final: Floats) -> tuple[Floats, Floats]:
        hidden, cell = self._call(self._module.start, final)
        return hidden, cell

    def step(self, state: dict[str, NDArray[Any]]) -> tuple[Ints, Floats, Ints, Floats, Floats, Floats]:
        rows = len(state["token"])
        nothing = np.empty((rows, 0, 0, 0), self.shape.dtype)
        inputs = {"keys": nothing, "values": nothing, "memory_tokens": np.empty((rows, 0, 0), np.int64)} | state
        arrays = (inputs[name] for name in STEP_INPUTS)
        token, log_probs, half, hidden, cell, fed = self._call(self._module.step, *arrays)
        return token, log_probs, half, hidden, cell, fed

    def sample(
        self, memory_tokens: Ints, uniforms: Floats, temperature: Floats, latent: Floats | None = None
    ) -> tuple[Ints, Floats]:
        """See `runtime.backend.Loop`."""
        inputs = [memory_tokens, uniforms, temperature, *([] if latent is None else [latent])]
        tokens, log_prob = self._call(self._module, *inputs)
        return tokens, log_prob

    def _call(self, method: Any, *arrays: NDArray[Any]) -> list[NDArray[Any]]:
        with self._torch.inference_mode():
            outputs = method(*(self._torch.from_numpy(array).to(self.device) for array in arrays))
        return [output.cpu().numpy() for output in outputs]
