"""The interfaces of what runs a network, and the state of decoding, whichever runtime is behind them."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from compgen.data import random
from compgen.errors import BundleError

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
State = dict[str, NDArray[Any]]  # of a decoder, by name; each array has a row a hypothesis


class StepInputs(NamedTuple):
    """What one decoding step reads, in the order in which modules and graphs take it.

    B rows, n memories of T tokens or fewer, H hidden units, F size of the output u, Z of the latent vector, A of
    attention, C = F + Z + S + S * A numbers carried, where S is how many tokens written a step may attend to.
    """

    token: Ints  # (B) the last token written; at first the start symbol
    hidden: Floats  # (B, H) of the LSTM
    cell: Floats  # (B, H)
    fed: Floats  # (B, C) u of the step before, z, and a ring of the last S tokens and their notes; at first 0 but for z
    position: Ints  # (B) the number of this step, from 0
    half: Ints  # (B) 0 in the source, 1 once the separator is written
    uniform: Floats  # (B) in [0, 1): decides what is drawn
    temperature: Floats  # (2) of the source half and of the target half; 0 takes the most probable token
    keys: Floats  # (B, n, T, A); a network without memories (n = 0) has no graph inputs for these three
    values: Floats  # (B, n, T, A)
    memory_tokens: Ints  # (B, n, T), padded with 0


class StepOutputs(NamedTuple):
    """What one decoding step gives; sizes as for `StepInputs`, V the vocabulary's."""

    token: Ints  # (B)
    log_probs: Floats  # (B, V) before any token is forbidden and before temperature
    half: Ints  # (B)
    hidden: Floats  # (B, H)
    cell: Floats  # (B, H)
    fed: Floats  # (B, C)


STEP_INPUTS = StepInputs._fields
STEP_OUTPUTS = tuple(name if name == "log_probs" else f"next_{name}" for name in StepOutputs._fields)  # in graphs
STATE = tuple(name for name in STEP_INPUTS if name not in ("uniform", "temperature"))  # what a row keeps
REPLACED = tuple(name for name in StepOutputs._fields if name != "log_probs")  # what a step replaces in the state

COLDEST = 1e-3  # the least temperature but 0; a probability to the power 1/T must not leave float32
HOTTEST = 1e3  # at 1e7 and more forbidden tokens, whose logit is -1e9, would be drawn


def warm(temperature: float) -> float:
    """Return a temperature to sample at; raise ValueError unless it is 0 (greedy) or from COLDEST to HOTTEST."""
    if temperature != 0 and not COLDEST <= temperature <= HOTTEST:
        raise ValueError(f"temperature {temperature}: expected 0 (greedy), or from {COLDEST} to {HOTTEST:g}")
    return temperature


@dataclass(frozen=True)
class Latent:
    """The place of the latent vector in `fed`, numbers start .. start + size - 1, and its largest norm."""

    start: int
    size: int
    norm: float

    def draw(self, seed: int, samples: Ints) -> Floats:
        """Return the vectors (B, size) of sample addresses (B)."""
        return random.latents(seed, samples, self.size, self.norm)


@dataclass(frozen=True)
class Shape:
    """The sizes of a decoder's state."""

    hidden: int
    output: int  # C, the size of `fed`
    dtype: str  # float32 or float64
    latent: Latent | None = None

    def fed(self, seed: int, samples: Ints) -> Floats:
        """Return `fed` (B, C) before the first step of sample addresses (B)."""
        first = np.zeros((len(samples), self.output), dtype=self.dtype)
        if self.latent is not None:
            first[:, self.latent.start : self.latent.start + self.latent.size] = self.latent.draw(seed, samples)
        return first


class Loop(Protocol):
    """A whole sampling loop behind one call."""

    @property
    def name(self) -> str:
        """The model, as messages name it: its file."""

    @property
    def dtype(self) -> str:
        """float32 or float64."""

    @property
    def latent(self) -> Latent | None:
        """The place of the network's latent vector, if it has one."""

    def sample(
        self, memory_tokens: Ints, uniforms: Floats, temperature: Floats, latent: Floats | None = None
    ) -> tuple[Ints, Floats]:
        """Sample from memories (B, n, T), uniforms (L, B), temperature (2), and latent vectors (B, Z) if there are any.

        Returns:
            tokens (L, B), 0 after a row's end symbol, and log-probabilities (B).
        """


class Decoder(Protocol):
    """Writes targets of sources, whatever its network is."""

    @property
    def name(self) -> str:
        """The model, as messages name it: its file."""

    def open(self, sources: Ints) -> State:
        """Return the state before the first token, of sources (B, T) with their end symbols, padded with 0."""

    def advance(self, state: State) -> tuple[State, NDArray[np.floating[Any]]]:
        """Take one greedy step; return the state, whose `token` (B) is the most probable, and log-probabilities (B, V).

        Another token may replace it before the next step. A damaged network's probabilities that are no numbers raise
        BundleError.
        """


class Backend(Protocol):
    """Runs a recurrent network: ONNX Runtime, TorchScript or PyTorch. Arrays in, arrays out."""

    shape: Shape

    @property
    def name(self) -> str:
        """The model, as messages name it: its file."""

    @property
    def loop(self) -> Loop | None:
        """The whole loop on an accelerator, where single steps would cross to it and back; else None."""

    def encode(self, tokens: Ints) -> tuple[Floats, Floats, Floats]:
        """Encode tokens (B, T): keys and values (B, n, T, A) and last encoder states (B, n, D)."""

    def start(self, final: Floats) -> tuple[Floats, Floats]:
        """Return the first hidden and cell state (B, H) from last encoder states (B, n, D)."""

    def step(self, inputs: StepInputs) -> StepOutputs:
        """Take one decoding step."""


def check_tokens(name: str, tokens: Ints, vocabulary: int) -> None:
    """Raise BundleError for a token outside a vocabulary of this size, which comes from a damaged network."""
    if tokens.size and (tokens.min() < 0 or tokens.max() >= vocabulary):
        raise BundleError(f"{name}: the network gives a token outside the vocabulary")


def check_numbers(name: str, log_probs: Floats) -> None:
    """Raise BundleError for log-probabilities that are not finite, which come from a damaged network."""
    if not np.isfinite(log_probs).all():
        raise BundleError(f"{name}: the network gives a probability that is no number")
