"""A Transformer's bundle run by ONNX Runtime, one token at a time."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.errors import BundleError
from compgen.runtime.backend import Ints, State
from compgen.runtime.bundle import Bundle
from compgen.runtime.cached import MEMORY, STEP_INPUTS, STEP_OUTPUTS, first_state, next_state
from compgen.runtime.manifest import ENCODER, STEP
from compgen.runtime.onnx_backend import Interfaces, OnnxGraph

INTERFACES: Interfaces = {ENCODER: (("source",), MEMORY), STEP: (STEP_INPUTS, STEP_OUTPUTS)}


class OnnxTransformer:
    """The runtime's `Decoder` over encoder and step."""

    def __init__(self, bundle: Bundle, threads: int = 1, provider: str = "auto") -> None:
        """Open the bundle's graphs; arguments and errors as for `OnnxBackend`."""
        self._encoder = OnnxGraph(bundle, ENCODER, threads, provider, INTERFACES)
        self._step = OnnxGraph(bundle, STEP, threads, provider, INTERFACES)
        self.name, self._vocabulary = self._step.name, len(bundle.vocabulary)

    def open(self, sources: Ints) -> State:
        """See `Decoder`."""
        return first_state(sources, *_checked(self._encoder, len(sources), *self._encoder({"source": sources})))

    def advance(self, state: State) -> tuple[State, NDArray[np.floating[Any]]]:
        """See `Decoder`."""
        rows = len(state["token"])
        log_probs, *written = self._step(state, log_probs=(rows, self._vocabulary))
        return next_state(self.name, state, log_probs, *_checked(self._step, rows, *written)), log_probs


def _checked(graph: OnnxGraph, rows: int, *memory: NDArray[Any]) -> tuple[NDArray[Any], ...]:
    """Return keys and values; raise BundleError unless each has so many rows of keys of heads of layers."""
    for array in memory:
        if array.ndim != 5 or len(array) != rows:
            raise BundleError(f"{graph.name}: gives keys or values of shape {array.shape}, expected {rows} x 4 sizes")
    return memory
