"""The whole sampling loop in PyTorch, for a GPU: a step is recorded once as a CUDA graph and then replayed."""

import threading
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from compgen.data.vocabulary import BOS_ID, EOS_ID, PAD_ID
from compgen.models.decoding import DecodingStep
from compgen.models.network import Network
from compgen.runtime.backend import STEP_INPUTS, Floats, Ints, Latent, StepOutputs

STRIDE = 8  # steps between two looks at whether all rows have ended, each of which waits for the GPU
WARM_UP = 3  # steps before recording, in which libraries choose their kernels
_REPLAYING = threading.Lock()


def latent_of(network: Network) -> Latent | None:
    """The place of a network's latent vector in `fed`, if it has one."""
    return Latent(network.output, network.latent, network.latent_norm) if network.latent else None


class TorchLoop:
    """A network's sampling loop; every replay reads and writes state tensors at fixed addresses.

    So one thread samples at a time, and others wait for it. On a CPU the step is called, not replayed.
    """

    def __init__(self, network: Network, device: str, name: str = "the checkpoint") -> None:
        torch.backends.cudnn.allow_tf32 = False  # with its ten bits samples would differ from other runtimes
        self.network, self.device, self.name = network.to(device).eval(), device, name
        self.decoding = DecodingStep(network).to(device).eval()
        self.dtype, self.latent = str(network.embedding.weight.dtype).removeprefix("torch."), latent_of(network)
        self._state: dict[str, Tensor] = {}
        self._replay: Callable[[], None] = self._step

    @torch.inference_mode()
    def sample(
        self, memory_tokens: Ints, uniforms: Floats, temperature: Floats, latent: Floats | None = None
    ) -> tuple[Ints, Floats]:
        """See `runtime.backend.Loop`."""
        first = np.zeros((uniforms.shape[1], self.network.carried), dtype=self.dtype)
        if latent is not None:
            first[:, self.network.output : self.network.output + latent.shape[1]] = latent
        with _REPLAYING:
            self._begin(*map(torch.from_numpy, (memory_tokens, uniforms, temperature, first)))
            state, length = self._state, len(uniforms)
            for step in range(length):
                self._replay()
                if step % STRIDE == STRIDE - 1 and bool(state["done"].all()):
                    break
            tokens, log_prob = (state[name].to("cpu", copy=True) for name in ("written", "log_prob"))
        return tokens.numpy(), log_prob.numpy()

    def _begin(self, *given: Tensor) -> None:
        """Set the state to that before the first step; new tensors, and a new recording, where a size has changed."""
        fresh = self._fresh(*(tensor.to(self.device) for tensor in given))
        sizes = {name: tensor.shape for name, tensor in self._state.items()}
        if sizes != {name: tensor.shape for name, tensor in fresh.items()}:
            self._state, self._replay = {name: tensor.clone() for name, tensor in fresh.items()}, self._step
            if self.device != "cpu":
                try:
                    self._replay = self._recorded()
                except BaseException:
                    self._state = {}  # the next call begins anew
                    raise
        for name, tensor in fresh.items():  # recording took steps, too
            self._state[name].copy_(tensor)

    def _fresh(self, memory_tokens: Tensor, uniforms: Tensor, temperature: Tensor, fed: Tensor) -> dict[str, Tensor]:
        length, rows = uniforms.shape
        keys, values, _, hidden, cell = self.network.begin(memory_tokens)
        whole = torch.zeros(rows, dtype=torch.int64, device=uniforms.device)
        return {
            "token": torch.full_like(whole, BOS_ID),
            "hidden": hidden,
            "cell": cell,
            "fed": fed,
            "position": whole,
            "half": whole,
            "temperature": temperature,
            "keys": keys,
            "values": values,
            "memory_tokens": memory_tokens,
            "uniforms": uniforms,  # (L, B)
            "written": whole.new_zeros((length, rows)),
            "log_prob": uniforms.new_zeros(rows),
            "done": whole > 0,
        }

    def _step(self) -> None:
        s = self._state
        at = s["position"][:1].clone()  # all rows are at the same step
        inputs = s | {"uniform": s["uniforms"].index_select(0, at)[0]}
        outputs = dict(zip(StepOutputs._fields, self.decoding(*(inputs[name] for name in STEP_INPUTS)), strict=True))
        token, log_probs = outputs["token"], outputs.pop("log_probs")
        s["log_prob"] += log_probs.gather(1, token.unsqueeze(1))[:, 0].masked_fill(s["done"], 0.0)
        s["written"].index_copy_(0, at, token.masked_fill(s["done"], PAD_ID).unsqueeze(0))
        s["done"] |= token == EOS_ID
        s["position"] += 1
        for name, value in outputs.items():
            s[name].copy_(value)

    def _recorded(self) -> Callable[[], None]:
        """The step as a CUDA graph over the present state."""
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(min(WARM_UP, len(self._state["uniforms"]))):
                self._step()
        torch.cuda.current_stream().wait_stream(side)
        self._state["position"].zero_()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        return graph.replay
