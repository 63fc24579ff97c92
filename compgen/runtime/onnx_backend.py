"""A bundle run by ONNX Runtime, on CPU or CUDA.

`OnnxBackend` runs the single step, for continuous batching and beam search. `OnnxLoop` runs the graph of the whole
sampling loop, which programs without this package can run, too.
"""

import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.errors import BundleError, UserError
from compgen.runtime import device
from compgen.runtime.backend import STEP_INPUTS, STEP_OUTPUTS, Floats, Ints, StepInputs, StepOutputs
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import ENCODER, SAMPLER, START, STEP

Feed = dict[str, NDArray[Any]]

# The inputs that a graph may have, and the outputs that it must have.
Interfaces = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]
INTERFACES: Interfaces = {
    ENCODER: (("tokens",), ("keys", "values", "final")),
    START: (("final",), ("first_hidden", "first_cell")),
    STEP: (STEP_INPUTS, STEP_OUTPUTS),
    SAMPLER: (("memory_tokens", "uniforms", "temperature", "latent"), ("tokens", "log_prob")),
}
WHOLE = ("tokens", "next_token", "next_half")  # outputs of whole numbers
REALS = {"float32": "tensor(float)", "float64": "tensor(double)"}  # ONNX Runtime's names of types


class OnnxGraph:
    """An ONNX Runtime session that is fed the inputs it has (those of a network without memories are fewer)."""

    def __init__(
        self, bundle: Bundle, name: str, threads: int, provider: str, interfaces: Interfaces = INTERFACES
    ) -> None:
        """Open a file of a bundle; raise as `OnnxBackend`, and BundleError for names or types that are not its own."""
        known, outputs = interfaces[name]
        self.name = str(bundle.path / name)
        # ONNX Runtime before 1.26 fuses transposed products in float64, too, and then has no kernel for them.
        skipped = ["MatmulTransposeFusion"] if bundle.manifest.dtype == "float64" else []
        self.session = _session(self.name, bundle.file(name), threads, provider, skipped)
        self.inputs = [tensor.name for tensor in self.session.get_inputs()]
        self.outputs = list(outputs)
        missing = set(outputs) - {tensor.name for tensor in self.session.get_outputs()}
        if odd := sorted(missing | (set(self.inputs) - set(known))):
            raise BundleError(f"{self.name}: inputs or outputs not those of a {name}: {', '.join(odd)}")
        found = {tensor.name: tensor.type for tensor in self.session.get_outputs()}
        real = bundle.manifest.dtype if bundle.manifest.shape is None else bundle.manifest.shape.dtype
        for output in outputs:
            wanted = "tensor(int64)" if output in WHOLE else REALS.get(real, "tensor(float)")
            if found[output] != wanted:
                raise BundleError(f"{self.name}: gives {output} as {found[output]}, expected {wanted}")

    def __call__(self, feed: Feed, **shapes: tuple[int, ...]) -> list[NDArray[Any]]:
        """Return the outputs; raise BundleError if it cannot run, or an output has not the shape given by name.

        A graph may declare one size and give another.
        """
        inputs = {name: feed[name] for name in self.inputs}
        with refused(self.name):
            outputs: list[NDArray[Any]] = self.session.run(self.outputs, inputs)
        for name, output in zip(self.outputs, outputs, strict=True):
            if name in shapes and output.shape != shapes[name]:
                raise BundleError(f"{self.name}: gives {name} of shape {output.shape}, expected {shapes[name]}")
        return outputs


@contextmanager
def refused(name: str, how: str = "") -> Iterator[None]:
    """Turn what ONNX Runtime raises into a BundleError of one line that names the file, and `how` it was run."""
    try:
        yield
    except Exception as error:  # onnxruntime's exceptions share no base but this
        raise BundleError(f"{name}: ONNX Runtime cannot run it{how}: {' '.join(str(error).split())[:200]}") from error


class OnnxBackend:
    """The runtime's `Backend` over encoder, start and step graphs."""

    def __init__(self, bundle: Bundle, threads: int = 1, provider: str = "auto") -> None:
        """Open the bundle's graphs; `threads` are those of one call, `provider` is `cpu`, `cuda` or `auto`.

        Raises:
            UserError: ONNX Runtime is missing or installed twice, or CUDA was asked for and does not work.
            BundleError: ONNX Runtime refuses a graph.
        """
        self.shape, self._manifest, self._vocabulary = bundle.manifest.decoder, bundle.manifest, len(bundle.vocabulary)
        self._step = OnnxGraph(bundle, STEP, threads, provider)
        self.name = self._step.name
        self._encoder = OnnxGraph(bundle, ENCODER, threads, provider) if bundle.manifest.prototypes else None
        # Only a network that starts from the encoders' last states has a start graph.
        self._start = OnnxGraph(bundle, START, threads, provider) if START in bundle.manifest.graphs else None
        self.loop = OnnxLoop(bundle, threads, provider) if self.provider == device.CUDA else None

    @property
    def provider(self) -> str:
        """ONNX Runtime's name of the device that the graphs run on."""
        return str(self._step.session.get_providers()[0])

    def encode(self, tokens: Ints) -> tuple[Floats, Floats, Floats]:
        assert self._encoder is not None, "a network without memories encodes nothing"
        rows, length = tokens.shape
        n, a, d = self._manifest.prototypes, self._manifest.attention, self._manifest.final_size
        keys, values, final = self._encoder(
            {"tokens": tokens}, keys=(rows, n, length, a), values=(rows, n, length, a), final=(rows, n, d)
        )
        return keys, values, final

    def start(self, final: Floats) -> tuple[Floats, Floats]:
        if self._start is None:
            hidden, cell = np.zeros((2, len(final), self.shape.hidden), dtype=self.shape.dtype)
            return hidden, cell
        first = (len(final), self.shape.hidden)
        hidden, cell = self._start({"final": final}, first_hidden=first, first_cell=first)
        return hidden, cell

    def step(self, inputs: StepInputs) -> StepOutputs:
        feed, rows = inputs._asdict(), len(inputs.token)
        if rows == 1:
            # ONNX Runtime adds up the products of a single row in another order than those of many. With two rows the
            # last draws of a range are the same as in the middle of a longer one, to the last bit of a probability.
            feed = {name: part if name == "temperature" else part.repeat(2, axis=0) for name, part in feed.items()}
        one, state = (len(feed["token"]),), (len(feed["token"]), self.shape.hidden)
        shapes = (one, (*one, self._vocabulary), one, state, state, (*one, self.shape.output))
        outputs = self._step(feed, **dict(zip(STEP_OUTPUTS, shapes, strict=True)))
        return StepOutputs(*(part[:rows] for part in outputs))


class OnnxLoop:
    """`sampler.onnx`: encoder and sampling loop in one graph. Inputs and outputs are bound to the device's memory."""

    def __init__(self, bundle: Bundle, threads: int = 1, provider: str = "auto") -> None:
        """Open the graph; arguments and errors as for `OnnxBackend`."""
        self.dtype, self.latent = bundle.manifest.decoder.dtype, bundle.manifest.decoder.latent
        self._graph = OnnxGraph(bundle, SAMPLER, threads, provider)
        self.name = self._graph.name

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
        # A tensor of 2^31 numbers is too large for CUDA's Transpose: 16,384 rows of two prototypes and 1,024 units.
        with refused(self.name, f" with a batch of {uniforms.shape[1]:,} (a smaller one may do)"):
            session.run_with_iobinding(binding)
            tokens, log_prob = binding.copy_outputs_to_cpu()
        if tokens.shape != uniforms.shape or log_prob.shape != uniforms.shape[1:]:
            raise BundleError(f"{self.name}: gives tokens {tokens.shape}, expected {uniforms.shape}")
        return tokens, log_prob


def cuda_works(bundle: Bundle) -> bool:
    """Whether ONNX Runtime can open the bundle's step on a GPU."""
    try:
        _open(STEP, bundle.file(STEP), 1, device.CUDA)
    except BundleError:
        return False
    return True


def _session(name: str, content: bytes, threads: int, provider: str, skipped: Sequence[str]) -> Any:
    if device.choose(provider) == "cuda":
        try:
            return _open(name, content, threads, device.CUDA, skipped)
        except BundleError as error:
            if provider != "auto":
                raise UserError(f"CUDA was asked for and cannot be had: {error}") from error
    return _open(name, content, threads, device.CPU, skipped)


def _open(name: str, content: bytes, threads: int, provider: str, skipped: Sequence[str] = ()) -> Any:
    runtime = device.onnxruntime()
    runtime.set_default_logger_severity(4)  # a refused graph is one message of ours, below
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4
    # A predictor has a session for its encoder and one for its steps. Threads of the one that spin, waiting for work,
    # take processors from the other: an LSTM answers in half the time without, and beside other programs in a third.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.add_session_config_entry("session.load_model_format", "ONNX")
    providers: list[Any] = [provider]
    if provider == device.CUDA:
        # With TF32, ONNX Runtime's default, products have ten bits, and samples would differ from other runtimes'.
        # The CPU runs the few shape computations; a missing GPU is an error, not a fallback.
        providers = [(provider, {"use_tf32": "0"}), device.CPU]
    # Before it raises, ONNX Runtime's Python prints to standard output that it tries once more.
    with refused(name), redirect_stdout(io.StringIO()):
        session = runtime.InferenceSession(content, options, providers=providers, disabled_optimizers=list(skipped))
    if session.get_providers()[0] != provider:
        raise BundleError(f"{name}: ONNX Runtime offers {session.get_providers()[0]}, expected {provider}")
    return session
