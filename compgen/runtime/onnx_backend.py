"""A bundle run by ONNX Runtime, on CPU or CUDA: the fast path, with numpy on both sides.

`OnnxBackend` runs the single step, for continuous batching and beam search. `OnnxLoop` runs the graph that holds the
whole sampling loop, which a program without any of our code can run too.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.errors import BundleError, UserError
from compgen.runtime import device
from compgen.runtime.backend import STATE, Floats, Ints
from compgen.runtime.bundle import ENCODER, SAMPLER, START, STEP, Bundle

Feed = dict[str, NDArray[Any]]

# What a graph may ask for, and what it must give.
Interfaces = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
INTERFACES: Interfaces = {
    ENCODER: (("tokens",), ("keys", "values", "final")),
    START: (("final",), ("first_hidden", "first_cell")),
    STEP: (
        (*STATE, "uniform", "temperature"),
        ("next_token", "log_probs", "next_half", "next_hidden", "next_cell", "next_fed"),
    ),
    SAMPLER: (("memory_tokens", "uniforms", "temperature", "latent"), ("tokens", "log_prob")),
}


class OnnxGraph:
    """An ONNX Runtime session that is fed no more than it asks for (a network without memories has fewer inputs)."""

    def __init__(
        self, bundle: Bundle, name: str, threads: int, provider: str, interfaces: Interfaces = INTERFACES
    ) -> None:
        """Open a file of a bundle; raises as `OnnxBackend`, and BundleError for inputs or outputs of other names."""
        known, outputs = interfaces[name]
        self.session = _session(bundle.path / name, threads, provider)
        self.inputs = [tensor.name for tensor in self.session.get_inputs()]
        self.outputs = list(outputs)
        missing = set(outputs) - {tensor.name for tensor in self.session.get_outputs()}
        if odd := sorted(missing | (set(self.inputs) - set(known))):
            raise BundleError(f"{bundle.path / name}: inputs or outputs not those of a {name}: {', '.join(odd)}")

    def __call__(self, feed: Feed) -> Any:
        return self.session.run(self.outputs, {name: feed[name] for name in self.inputs})


class OnnxBackend:
    """The runtime's `Backend` over encoder, start and step graphs."""

    def __init__(self, bundle: Bundle, threads: int = 1, provider: str = "auto") -> None:
        """Open the bundle's graphs.

        Args:
            bundle: from `Bundle.load`.
            threads: of one call; several workers may call at the same time.
            provider: `cpu`, `cuda`, or `auto`: CUDA where it works.

        Raises:
            UserError: ONNX Runtime is missing or installed twice, or CUDA was asked for and cannot be had.
            BundleError: ONNX Runtime refuses a graph.
        """
        self.shape = bundle.manifest.decoder
        self._step = OnnxGraph(bundle, STEP, threads, provider)
        self._encoder = OnnxGraph(bundle, ENCODER, threads, provider) if bundle.manifest.prototypes else None
        # Only a network that starts from what it has read has a start graph.
        self._start = OnnxGraph(bundle, START, threads, provider) if START in bundle.manifest.graphs else None
        self.loop = OnnxLoop(bundle, threads, provider) if self.provider == device.CUDA else None

    @property
    def provider(self) -> str:
        """Where the graphs run, in ONNX Runtime's words."""
        return str(self._step.session.get_providers()[0])

    def encode(self, tokens: Ints) -> tuple[Floats, Floats, Floats]:
        assert self._encoder is not None, "a network without memories encodes nothing"
        keys, values, final = self._encoder({"tokens": tokens})
        return keys, values, final

    def start(self, final: Floats) -> tuple[Floats, Floats]:
        if self._start is None:
            hidden, cell = np.zeros((2, len(final), self.shape.hidden), dtype=self.shape.dtype)
            return hidden, cell
        hidden, cell = self._start({"final": final})
        return hidden, cell

    def step(self, state: Feed) -> tuple[Ints, Floats, Ints, Floats, Floats, Floats]:
        rows = len(state["token"])
        if rows == 1:
            # ONNX Runtime adds the products of a lone row up in another order than those of many. Two rows make the
            # last draws of a range the same as in the middle of a longer one, to the last bit of their probability.
            state = {name: part if name == "temperature" else part.repeat(2, axis=0) for name, part in state.items()}
        token, log_probs, half, hidden, cell, fed = (part[:rows] for part in self._step(state))
        return token, log_probs, half, hidden, cell, fed


class OnnxLoop:
    """`sampler.onnx`: encoder and sampling loop in one graph. What goes in and out is bound to the device's memory."""

    def __init__(self, bundle: Bundle, threads: int = 1, provider: str = "auto") -> None:
        """Open the graph; arguments and errors as for `OnnxBackend`."""
        self.dtype, self.latent = bundle.manifest.decoder.dtype, bundle.manifest.decoder.latent
        self._graph = OnnxGraph(bundle, SAMPLER, threads, provider)

    def sample(
        self, memory_tokens: Ints, uniforms: Floats, temperature: Floats, latent: Floats | None = None
    ) -> tuple[Ints, Floats]:
        """See `runtime.backend.Loop`."""
        feed = {"memory_tokens": memory_tokens, "uniforms": uniforms, "temperature": temperature, "latent": latent}
        session = self._graph.session
        where = "cuda" if session.get_providers()[0] == device.CUDA else "cpu"
        binding = session.io_binding()
        for name in self._graph.inputs:
            binding.bind_ortvalue_input(name, device.onnxruntime().OrtValue.ortvalue_from_numpy(feed[name], where, 0))
        for name in self._graph.outputs:
            binding.bind_output(name, where)
        session.run_with_iobinding(binding)
        tokens, log_prob = binding.copy_outputs_to_cpu()
        return tokens, log_prob


def _session(path: Path, threads: int, provider: str) -> Any:
    chosen = device.choose(provider)
    if chosen == "cpu":
        return _open(path, threads, device.CPU)
    try:
        return _open(path, threads, device.CUDA)
    except BundleError as error:
        if provider == "auto":
            return _open(path, threads, device.CPU)
        raise UserError(f"CUDA was asked for and cannot be had: {error}") from error


def _open(path: Path, threads: int, provider: str) -> Any:
    runtime = device.onnxruntime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # what goes wrong is raised below, in one line
    providers: list[Any] = [provider]
    if provider == device.CUDA:
        # With TF32, ONNX Runtime's default, products have ten bits, and samples would not be those of other runtimes.
        providers = [(provider, {"use_tf32": "0"})]
        # CUDA runs what it can and CPU the handful of shape computations; a missing GPU is an error, not a fallback.
        providers.append(device.CPU)
    try:
        session = runtime.InferenceSession(path.read_bytes(), options, providers=providers)
    except Exception as error:  # onnxruntime's exceptions share no base but this
        raise BundleError(f"{path}: ONNX Runtime cannot run it: {' '.join(str(error).split())[:200]}") from error
    if session.get_providers()[0] != provider:
        raise BundleError(f"{path}: ONNX Runtime offers {session.get_providers()[0]}, expected {provider}")
    return session
