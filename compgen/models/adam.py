"""Adam, without PyTorch's compiler, which `torch.optim.Adam` imports when it is made (2.5 s)."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor
from torch.optim.adam import adam


class Adam:
    """Adam (Kingma and Ba 2015) by PyTorch's own function, so that weights are those of `torch.optim.Adam` to the bit.

    `fused` changes all of a parameter in one pass, by other last bits; without it, parameters must be on the CPU.

    Attributes:
        param_groups: one group, with the parameters and the learning rate `lr` of the coming update.
    """

    def __init__(self, parameters: Iterable[Tensor], lr: float, *, fused: bool = False) -> None:
        self.param_groups: list[dict[str, Any]] = [{"params": list(parameters), "lr": lr}]
        self._fused = fused
        self._state: dict[int, dict[str, Tensor]] = {}  # by number, of those parameters that had a gradient

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.param_groups[0]["params"]:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Change the parameters that have a gradient."""
        had = [(number, one) for number, one in enumerate(self.param_groups[0]["params"]) if one.grad is not None]
        states = [self._state.setdefault(number, _start(parameter)) for number, parameter in had]
        adam(
            [parameter for _, parameter in had],
            [parameter.grad for _, parameter in had],
            [state["exp_avg"] for state in states],
            [state["exp_avg_sq"] for state in states],
            [],
            [state["step"] for state in states],
            foreach=False,
            fused=self._fused,
            amsgrad=False,
            beta1=0.9,
            beta2=0.999,
            lr=self.param_groups[0]["lr"],
            weight_decay=0.0,
            eps=1e-8,
            maximize=False,
        )

    def state_dict(self) -> dict[str, Any]:
        """Means and counts by the parameter's number, as `torch.optim.Adam` has them."""
        return {"state": {number: dict(state) for number, state in self._state.items()}}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Go on from a `state_dict`, of this class or of `torch.optim.Adam`."""
        parameters = self.param_groups[0]["params"]
        self._state = {
            number: {name: tensor.to(parameters[number].device) for name, tensor in state.items()}
            for number, state in saved["state"].items()
        }


def _start(parameter: Tensor) -> dict[str, Tensor]:
    """The state of a parameter without an update; the count is on its device, where fused updates read it."""
    return {
        "step": torch.zeros((), dtype=torch.float32, device=parameter.device),
        "exp_avg": torch.zeros_like(parameter, memory_format=torch.preserve_format),
        "exp_avg_sq": torch.zeros_like(parameter, memory_format=torch.preserve_format),
    }
