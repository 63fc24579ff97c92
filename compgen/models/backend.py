"""Networks run by PyTorch itself: for checkpoints, and as the truth that exports are compared with."""

from typing import Any

import torch
from numpy.typing import NDArray

from compgen.models.cuda_graph import TorchLoop, latent_of
from compgen.models.decoding import DecodingStep
from compgen.models.network import Network
from compgen.models.transformer import Transformer, TransformerStep
from compgen.runtime.backend import Floats, Ints, Shape, State, StepInputs, StepOutputs
from compgen.runtime.cached import STEP_INPUTS as TRANSFORMER_INPUTS
from compgen.runtime.cached import first_state, next_state
from compgen.runtime.torch_threads import torch_threads


class TorchBackend:
    """A network in evaluation mode as the runtime's `Backend`."""

    def __init__(
        self, network: Network, device: str = "cpu", name: str = "the checkpoint", threads: int | None = None
    ) -> None:
        """Run a network on a device, by `threads` in each call: as many as torch has if None."""
        self.network = network.to(device).eval()
        self.device, self.name, self.threads = device, name, threads
        self.decoding = DecodingStep(network).to(device).eval()
        dtype = str(network.embedding.weight.dtype).removeprefix("torch.")
        self.shape = Shape(network.hidden, network.carried, dtype, latent_of(network))
        self.loop = TorchLoop(network, device, name) if device != "cpu" else None

    def _tensor(self, array: NDArray[Any]) -> torch.Tensor:
        return torch.from_numpy(array).to(self.device)

    @torch.inference_mode()
    def encode(self, tokens: Ints) -> tuple[Floats, Floats, Floats]:
        """See `Backend`."""
        with torch_threads(self.threads):
            keys, values, final = (output.cpu().numpy() for output in self.network.encode(self._tensor(tokens)))
        return keys, values, final

    @torch.inference_mode()
    def start(self, final: Floats) -> tuple[Floats, Floats]:
        """See `Backend`."""
        with torch_threads(self.threads):
            hidden, cell = self.network.start(self._tensor(final))
        return hidden.cpu().numpy(), cell.cpu().numpy()

    @torch.inference_mode()
    def step(self, inputs: StepInputs) -> StepOutputs:
        """See `Backend`."""
        with torch_threads(self.threads):
            return StepOutputs(*(output.cpu().numpy() for output in self.decoding(*map(self._tensor, inputs))))


class TorchTransformer:
    """A Transformer in evaluation mode as the runtime's `Decoder`."""

    def __init__(
        self, network: Transformer, device: str = "cpu", name: str = "the checkpoint", threads: int | None = None
    ) -> None:
        """Run a network on a device, by `threads` in each call: as many as torch has if None."""
        self.network, self.device = network.to(device).eval(), device
        self.name, self.threads = name, threads
        self.step = TransformerStep(self.network)

    @torch.inference_mode()
    def open(self, sources: Ints) -> State:
        """See `Decoder`."""
        with torch_threads(self.threads):
            keys, values = self.network.recall(torch.from_numpy(sources).to(self.device))
        return first_state(sources, keys.cpu().numpy(), values.cpu().numpy())

    @torch.inference_mode()
    def advance(self, state: State) -> tuple[State, Floats]:
        """See `Decoder`."""
        with torch_threads(self.threads):
            found = self.step(*(torch.from_numpy(state[name]).to(self.device) for name in TRANSFORMER_INPUTS))
        log_probs, keys, values = (tensor.cpu().numpy() for tensor in found)
        return next_state(self.name, state, log_probs, keys, values), log_probs
