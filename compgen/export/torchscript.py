"""TorchScript export: one module with the parts of a sampler as methods and the whole sampling loop as `forward`.

PyTorch has deprecated TorchScript and says so at every call; people deploy it all the same. The warnings are
silenced here and nowhere else in exporting.
"""

import io
import warnings
import zipfile
from pathlib import Path

import torch
from torch import Tensor, nn

from compgen.data.vocabulary import BOS_ID, EOS_ID
from compgen.models.decoding import DecodingStep
from compgen.models.network import Network


class Sampler(nn.Module):
    """A network as TorchScript deploys it."""

    def __init__(self, network: Network, half: int) -> None:
        super().__init__()
        self.decoding = DecodingStep(network)
        self.hidden, self.carried, self.memories = network.hidden, network.carried, network.memories
        self.output, self.latent = network.output, network.latent
        self.begin, self.end, self.first_half = BOS_ID, EOS_ID, half

    @torch.jit.export
    def encode(self, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tokens (B, T) to keys and values (B, n, T, A) and last encoder states (B, n, D)."""
        keys, values, final = self.decoding.network.encode(tokens)
        return keys, values, final

    @torch.jit.export
    def start(self, final: Tensor) -> tuple[Tensor, Tensor]:
        """Last encoder states (B, n, D) to the first hidden and cell (B, H)."""
        hidden, cell = self.decoding.network.start(final)
        return hidden, cell

    @torch.jit.export
    def step(
        self,
        token: Tensor,
        hidden: Tensor,
        cell: Tensor,
        fed: Tensor,
        position: Tensor,
        half: Tensor,
        uniform: Tensor,
        temperature: Tensor,
        keys: Tensor,
        values: Tensor,
        memory_tokens: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One decoding step; see `DecodingStep`."""
        token, log_probs, half, hidden, cell, fed = self.decoding(
            token, hidden, cell, fed, position, half, uniform, temperature, keys, values, memory_tokens
        )
        return token, log_probs, half, hidden, cell, fed

    def forward(
        self, memory_tokens: Tensor, uniforms: Tensor, temperature: Tensor, latent: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Decode to the end: memories (B, n, T), uniforms (L, B), temperature (2) to tokens (L, B), log_prob (B).

        Without memories (n = 0) only the other inputs matter. Tokens after a row's end symbol are 0. A network with
        latent vectors wants them, (B, Z).
        """
        length, rows = uniforms.shape[0], uniforms.shape[1]
        device = uniforms.device
        hidden = torch.zeros((rows, self.hidden), dtype=uniforms.dtype, device=device)
        cell = hidden
        keys = torch.zeros((rows, 0, 0, 0), dtype=uniforms.dtype, device=device)  # where there are no memories
        values = keys
        if self.memories > 0:
            keys, values, final = self.decoding.network.recall(memory_tokens)
            hidden, cell = self.start(final)
        fed = torch.zeros((rows, self.carried), dtype=uniforms.dtype, device=device)
        if latent is not None:
            fed[:, self.output : self.output + self.latent] = latent
        token = torch.full((rows,), self.begin, dtype=torch.int64, device=device)
        half = torch.full((rows,), self.first_half, dtype=torch.int64, device=device)
        done = torch.zeros(rows, dtype=torch.bool, device=device)
        log_prob = torch.zeros(rows, dtype=uniforms.dtype, device=device)
        tokens = torch.zeros((length, rows), dtype=torch.int64, device=device)
        for i in range(length):
            position = torch.full((rows,), i, dtype=torch.int64, device=device)
            token, log_probs, half, hidden, cell, fed = self.step(
                token, hidden, cell, fed, position, half, uniforms[i], temperature, keys, values, memory_tokens
            )
            gained = log_probs.gather(1, token.unsqueeze(1)).squeeze(1)
            log_prob = log_prob + gained.masked_fill(done, 0.0)
            tokens[i] = token.masked_fill(done, 0)
            done = done | (token == self.end)
            if bool(done.all()):
                break
        return tokens, log_prob


def write_script(network: Network, half: int, path: Path) -> None:
    """Compile a network in evaluation mode and save it; half as for the ONNX graphs."""
    saved = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.jit.save(torch.jit.script(Sampler(network, half).eval()), saved)
    _copy_without_sources(saved, path)


def _copy_without_sources(saved: io.BytesIO, path: Path) -> None:
    """Copy an archive without its debug records, which name source files by their paths on this machine."""
    with zipfile.ZipFile(saved) as source, zipfile.ZipFile(path, "w") as goal:
        for entry in source.infolist():
            if not entry.filename.endswith(".debug_pkl"):
                goal.writestr(entry, source.read(entry))
