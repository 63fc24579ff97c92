"""Matrix products of training: on AMD's processors with AVX-512 by oneDNN.

PyTorch's own operations call MKL for float32. On AMD's processors it leaves AVX-512 unused, and reaches half of what
oneDNN does; on those without AVX-512, and on Intel's, it reaches more. PyTorch has oneDNN's product as well, as an
operation for its compiler; that is what is called here. Both are float32, with rounding errors of the same size.
PyTorch's own is left to small products, to float64, to GPUs, and to decoding and exports, which are compared with
other runtimes.
"""

# mypy: disable-error-code="attr-defined"
# (for torch.jit.is_scripting: TorchScript reads a comment in its functions as a type)

import platform
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from compgen.processors import of_amd

LEAST = 1 << 21  # multiply-adds: for fewer, calling oneDNN takes longer than is gained
_OPERATIONS: Any = torch.ops.mkldnn


def _available() -> bool:
    """Return whether this PyTorch has the operation, with the arguments used here, and it gives right results."""
    if platform.machine() not in ("x86_64", "AMD64") or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return False
    x, weight, more = torch.ones(2, 3), torch.full((4, 3), 2.0), torch.ones(2, 4)
    try:
        found = _OPERATIONS._linear_pointwise(x, weight, None, "none", [], "")
        added = _OPERATIONS._linear_pointwise.binary(x, more, weight, None, "add")
    except (AttributeError, RuntimeError):
        return False
    return bool((found == 6).all() and (added == 7).all())


AVAILABLE = _available()
PREFERRED = AVAILABLE and of_amd() and torch.backends.cpu.get_cpu_capability() == "AVX512"


def _fast(x: Tensor, weights: Tensor, work: int) -> bool:
    """Whether oneDNN multiplies x by weights, which takes so many multiply-adds."""
    single = x.dtype == weights.dtype == torch.float32 and x.device.type == weights.device.type == "cpu"
    return PREFERRED and single and work >= LEAST


def product(x: Tensor, weights: Tensor, plus: Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """x (M, K) times weights (K, N), plus (M, N) or (N); written to `out` (M, N) if it is given.

    Either may be the transpose of what is in memory. Not recorded by autograd.
    """
    if not _fast(x, weights, x.numel() * weights.shape[1]):
        return torch.mm(x, weights, out=out) if plus is None else torch.addmm(plus, x, weights, out=out)
    if plus is None:
        found: Tensor = _OPERATIONS._linear_pointwise(x, weights.t(), None, "none", [], "")
    else:
        found = _OPERATIONS._linear_pointwise.binary(x, plus.expand(len(x), -1), weights.t(), None, "add")
    return found if out is None else out.copy_(found)


def exact(x: Tensor) -> Tensor:
    """Return a CPU's tensor of bfloat16 in float32, for what needs more digits, and any other tensor as it is."""
    return x.float() if x.dtype == torch.bfloat16 and x.device.type == "cpu" else x


def linear(x: Tensor, weight: Tensor, bias: Tensor, training: bool) -> Tensor:
    """x (..., I) times weight (O, I) transposed, plus bias (O), as `torch.nn.functional.linear`."""
    if not torch.jit.is_scripting():  # noqa: SIM102 - TorchScript leaves out what depends on this alone
        if training and not torch.is_autocast_enabled("cpu") and _fast(x, weight, x.numel() * len(weight)):
            return _recorded(x, weight, bias)
    return functional.linear(x, weight, bias)


def _recorded(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    found: Tensor = _Linear.apply(x.reshape(-1, x.shape[-1]), weight, bias)  # type: ignore[no-untyped-call]
    return found.view(*x.shape[:-1], len(weight))


class Linear(nn.Linear):
    """A linear layer with a bias that is trained by these products."""

    def forward(self, x: Tensor) -> Tensor:
        """See `linear`."""
        return linear(x, self.weight, self.bias, self.training)


class _Linear(torch.autograd.Function):
    """`linear` of rows, forward and backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        found: Tensor = _OPERATIONS._linear_pointwise(x, weight, bias, "none", [], "")
        return found

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, d: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            product(d, weight) if of_x else None,
            product(d.t(), x) if of_weight else None,
            d.sum(dim=0) if of_bias else None,
        )


@contextmanager
def precision(device: str, rounded: bool) -> Iterator[None]:
    """The context that losses are computed in; if `rounded`, products are in bfloat16.

    On a processor without instructions for bfloat16, oneDNN's LSTM fails in it; PyTorch's own stays in float32.
    """
    with ExitStack() as stack:
        if rounded and device == "cpu" and not torch.ops.mkldnn._is_mkldnn_bf16_supported():
            stack.enter_context(warnings.catch_warnings(action="ignore"))  # of Intel's GPUs, when flags are set
            stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
        stack.enter_context(torch.autocast(device, dtype=torch.bfloat16, enabled=rounded))
        yield
