"""Verification of a bundle where it is to run: its golden draws, drawn again in every runtime there is."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from compgen.errors import UserError
from compgen.runtime.bundle import Bundle
from compgen.runtime.golden import Golden, golden_of
from compgen.sampling.batching import Draw
from compgen.trained.architectures import Runner, Runtime, architecture

# In the log-probability of a whole sample, in nats; cpp_runner/src/verify.cpp has the same numbers. Between runtimes
# and processors a sum in float32 differs by about 1e-6; where activations are rounded to 8 bits, at times by a level.
TOLERANCE, TOLERANCE_IN_INTEGERS = 1e-4, 5e-2
TOLERANCE_OF_ANSWERS = 0.5  # in integers, of a predictor, whose float32 rest differs more


@dataclass(frozen=True)
class Verified:
    """The result of one runtime.

    Attributes:
        samples: the number of golden draws, or answers.
        equal: how many have the same tokens and prototypes.
        first: the first draw that differs, and where; empty if there is none.
        largest: largest difference of log-probabilities, in nats, among the equal ones.
        allowed: the largest difference that rounding may cause.
        rate: samples a second, the start of the runtime included.
        problem: why it could not be run; empty if it could.
    """

    runtime: str
    samples: int
    equal: int = 0
    first: str = ""
    largest: float = 0.0
    allowed: float = TOLERANCE
    rate: float = 0.0
    problem: str = ""

    @property
    def passed(self) -> bool:
        """Whether all tokens are the same, and all log-probabilities as far as rounding allows."""
        return not self.problem and self.equal == self.samples and self.largest <= self.allowed


def verify_bundle(
    path: str | Path, provider: str = "auto", *, trust_code: bool = False
) -> tuple[list[Verified], list[str]]:
    """Draw a bundle's golden draws again with every runtime that is here.

    Args:
        path: a bundle's folder, or the name of one that comes with compgen.
        provider: for ONNX Runtime: `auto`, `cpu` or `cuda`; with `auto`, the CPU and CUDA where it works.
        trust_code: run the bundle's TorchScript, which is code, too.

    Returns:
        a row a runtime, and for each runtime that is not here a line that says why.

    Raises:
        BundleError: it cannot be opened, or holds no golden draws.
        UserError: CUDA was asked for, of a build that has none.
    """
    bundle = Bundle.load(path)
    golden = golden_of(bundle)
    runtime = Runtime(provider=provider, trust_code=trust_code)
    runners, notes = architecture(bundle.manifest.architecture).runners(bundle, runtime)
    in_integers = TOLERANCE_OF_ANSWERS if bundle.manifest.kind == "predictor" else TOLERANCE_IN_INTEGERS
    allowed = TOLERANCE if bundle.manifest.approximation is None else in_integers
    return [_verified(name, open_runner, golden, allowed) for name, open_runner in runners.items()], notes


def _verified(name: str, open_runner: Callable[[], Runner], golden: Golden, allowed: float) -> Verified:
    expected = list(_expected(golden))
    began = time.perf_counter()
    try:
        found = open_runner()(golden)
    except UserError as error:
        return Verified(name, len(expected), problem=str(error))
    rate = len(expected) / (time.perf_counter() - began)
    pairs = list(zip(expected, found, strict=True))
    differing = [pair for pair in pairs if _content(pair[0]) != _content(pair[1])]
    largest = max((abs(a.log_prob - b.log_prob) for a, b in pairs if _content(a) == _content(b)), default=0.0)
    first = _place(*differing[0]) if differing else ""
    return Verified(name, len(expected), len(expected) - len(differing), first, largest, allowed, rate)


def _expected(golden: Golden) -> Iterable[Draw]:
    for stream in golden.streams:
        for one in stream.samples:
            yield Draw(one.index, tuple(one.tokens), one.finished, one.log_prob, tuple(one.prototypes))
    for number, answer in enumerate(golden.answers):
        yield Draw(number, tuple(answer.target), answer.finished, answer.log_prob, ())


def _content(draw: Draw) -> tuple[object, ...]:
    return draw.index, draw.tokens, draw.finished, draw.prototypes


def _place(wanted: Draw, found: Draw) -> str:
    if wanted.prototypes != found.prototypes:
        return f"{wanted.index}, prototypes"
    shared = min(len(wanted.tokens), len(found.tokens))
    at = next((place for place in range(shared) if wanted.tokens[place] != found.tokens[place]), shared)
    return f"{wanted.index}, token {at}"
