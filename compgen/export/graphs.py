"""The parts of a model, each as a module whose inputs and outputs a bundle names.

One list of inputs and outputs serves tracing, the manifest and the runtime's check, so that they cannot disagree.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from compgen.models.decoding import DecodingStep
from compgen.models.network import Network
from compgen.runtime.manifest import ENCODER, START, STEP

Sizes = list[str | int]  # a letter is a size that the caller chooses: B rows, T memory tokens, L steps


@dataclass(frozen=True)
class Part:
    """One graph: the module, example inputs to trace it with, and the shape of every input and output."""

    file: str
    module: nn.Module
    example: dict[str, Tensor]
    inputs: dict[str, Sizes]
    outputs: dict[str, Sizes]


class _Encode(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return self.network.encode(tokens)


class _Start(nn.Module):
    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, final: Tensor) -> tuple[Tensor, Tensor]:
        return self.network.start(final)


class _StepAlone(nn.Module):
    """The decoding step of a network without memories, which has no inputs for them."""

    def __init__(self, decoding: DecodingStep) -> None:
        super().__init__()
        self.decoding = decoding

    def forward(
        self,
        token: Tensor,
        hidden: Tensor,
        cell: Tensor,
        fed: Tensor,
        position: Tensor,
        half: Tensor,
        uniform: Tensor,
        temperature: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        no_memory = torch.zeros((1, 0, 0, 0), dtype=hidden.dtype)
        no_tokens = torch.zeros((1, 0, 0), dtype=torch.int64)
        outputs: tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor] = self.decoding(
            token, hidden, cell, fed, position, half, uniform, temperature, no_memory, no_memory, no_tokens
        )
        return outputs


def parts(network: Network) -> list[Part]:
    """The graphs of a network: encoder and start where it has them, and the step."""
    found = []
    if network.attention is not None:
        found.append(_encoder(network))
    if network.bridge is not None:
        found.append(_start(network))
    return [*found, _step(network)]


def _encoder(network: Network) -> Part:
    n, size, final = _memory_sizes(network)
    return Part(
        ENCODER,
        _Encode(network),
        {"tokens": torch.tensor([[5, 3, 2], [5, 2, 0]])},
        {"tokens": ["B", "T"]},
        {"keys": ["B", n, "T", size], "values": ["B", n, "T", size], "final": ["B", n, final]},
    )


def _start(network: Network) -> Part:
    n, _, final = _memory_sizes(network)
    example = torch.zeros((2, n, final), dtype=network.embedding.weight.dtype)
    state: Sizes = ["B", network.hidden]
    return Part(
        START,
        _Start(network),
        {"final": example},
        {"final": ["B", n, final]},
        {"first_hidden": state, "first_cell": state},
    )


def _step(network: Network) -> Part:
    decoding = DecodingStep(network).eval()
    state: Sizes = ["B", network.hidden]
    fed: Sizes = ["B", network.carried]
    inputs: dict[str, Sizes] = {
        "token": ["B"],
        "hidden": state,
        "cell": state,
        "fed": fed,
        "position": ["B"],
        "half": ["B"],
        "uniform": ["B"],
        "temperature": [2],
    }
    module: nn.Module = _StepAlone(decoding)
    if network.attention is not None:
        n, size, _ = _memory_sizes(network)
        inputs |= {"keys": ["B", n, "T", size], "values": ["B", n, "T", size], "memory_tokens": ["B", n, "T"]}
        module = decoding
    outputs: dict[str, Sizes] = {
        "next_token": ["B"],
        "log_probs": ["B", network.vocabulary],
        "next_half": ["B"],
        "next_hidden": state,
        "next_cell": state,
        "next_fed": fed,
    }
    dtype = network.embedding.weight.dtype
    example = {name: torch.ones(_concrete(sizes), dtype=_dtype(name, dtype)) for name, sizes in inputs.items()}
    return Part(STEP, module, example, inputs, outputs)


def _memory_sizes(network: Network) -> tuple[int, int, int]:
    """n, the size of a key or a value, and the size of a last encoder state."""
    attention = network.attention
    assert attention is not None, "only a network with memories has these sizes"
    return network.memories, attention.size, attention.key_value.in_features


def _concrete(sizes: Sizes) -> list[int]:
    return [{"B": 2, "T": 3}[size] if isinstance(size, str) else size for size in sizes]


def _dtype(name: str, floating: torch.dtype) -> torch.dtype:
    return torch.int64 if name in {"token", "position", "half", "memory_tokens"} else floating
