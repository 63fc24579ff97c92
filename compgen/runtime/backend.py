"""What runs a network: the interface that the sampler sees, whichever runtime is behind it."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from compgen.data import random
from compgen.errors import BundleError

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]

STATE = ("token", "hidden", "cell", "fed", "position", "half", "keys", "values", "memory_tokens")
STEP_INPUTS = (*STATE[:6], "uniform", "temperature", *STATE[6:])  # in the order in which torch modules take them
COLDEST = 1e-3  # the least temperature but 0; a probability to the power 1/T must not leave float32
HOTTEST = 1e3  # at 1e7 and more what may not come, whose logit is -1e9, would come


def warm(temperature: float) -> float:
    """A temperature, if it is one to sample at: 0 (greedy), or from COLDEST to HOTTEST.

    Raises:
        ValueError: it is not.
    """
    if temperature != 0 and not COLDEST <= temperature <= HOTTEST:
        raise ValueError(f"temperature {temperature}: expected 0 (greedy), or from {COLDEST} to {HOTTEST:g}")
    return temperature


@dataclass(frozen=True)
class Latent:
    """Where in `fed` the latent edit vector is: numbers start .. start + size - 1; and its largest norm."""

    start: int
    size: int
    norm: float

    def draw(self, seed: int, samples: Ints) -> Floats:
        """The vectors of some sample addresses, (B, size)."""
        return random.latents(seed, samples, self.size, self.norm)


@dataclass(frozen=True)
class Shape:
    """What a decoder's state looks like."""

    hidden: int
    output: int  # of `fed`
    dtype: str  # float32 or float64
    latent: Latent | None = None

    def fed(self, seed: int, samples: Ints) -> Floats:
        """`fed` (B, output) before the first step of some sample addresses."""
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
        """The network's latent edit vector, if it has one."""

    def sample(
        self, memory_tokens: Ints, uniforms: Floats, temperature: Floats, latent: Floats | None = None
    ) -> tuple[Ints, Floats]:
        """Memories (B, n, T), uniforms (L, B), temperature (2) to tokens (L, B) and log-probabilities (B).

        After a row's end symbol its tokens are 0. Where the network has a latent vector it is given, (B, Z).
        """


State = dict[str, NDArray[Any]]


class Decoder(Protocol):
    """Something that writes targets of sources, whatever its network is. All of its state has a row a hypothesis."""

    @property
    def name(self) -> str:
        """The model, as messages name it: its file."""

    def open(self, sources: Ints) -> State:
        """Sources (B, T) of ids, each with its end symbol, padded with 0, to the state before the first token."""

    def advance(self, state: State) -> tuple[State, NDArray[np.floating[Any]]]:
        """One greedy step: the new state, whose `token` (B) is the most probable one, and log-probabilities (B, V).

        Another token may be put in its place before the next step. Raises BundleError for probabilities that are no
        numbers, which a damaged network gives.
        """


class Backend(Protocol):
    """Something that can run a network: ONNX Runtime, TorchScript or PyTorch. Arrays in, arrays out."""

    shape: Shape

    @property
    def name(self) -> str:
        """The model, as messages name it: its file."""

    @property
    def loop(self) -> Loop | None:
        """The whole loop on an accelerator, where each step from here would cross to it and back; else None."""

    def encode(self, tokens: Ints) -> tuple[Floats, Floats, Floats]:
        """Tokens (B, T) to keys and values (B, n, T, A) and last encoder states (B, n, D)."""

    def start(self, final: Floats) -> tuple[Floats, Floats]:
        """Last encoder states (B, n, D) to the first hidden and cell (B, H)."""

    def step(self, state: dict[str, NDArray[Any]]) -> tuple[Ints, Floats, Ints, Floats, Floats, Floats]:
        """Named inputs of the decoding step to token, log-probabilities, half, hidden, cell, fed."""


def check_tokens(name: str, tokens: Ints, vocabulary: int) -> None:
    """Refuse tokens that a vocabulary of so many does not have: they come from a damaged network.

    Raises:
        BundleError: there is one; the message begins with `name`, the model's.
    """
    if tokens.size and (tokens.min() < 0 or tokens.max() >= vocabulary):
        raise BundleError(f"{name}: the network gives a token outside the vocabulary")


def check_numbers(name: str, log_probs: Floats) -> None:
    """Refuse log-probabilities that are no finite numbers: they, too, come from a damaged network.

    Raises:
        BundleError: there is one; the message begins with `name`, the model's.
    """
    if not np.isfinite(log_probs).all():
        raise BundleError(f"{name}: the network gives a probability that is no number")
