"""Does a bundle give, here, what it gave where it was made? Its golden draws, drawn again in every runtime there is."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from compgen.data.vocabulary import EOS_ID, Vocabulary
from compgen.errors import UserError
from compgen.runtime import device
from compgen.runtime.backend import Backend, Decoder, Loop
from compgen.runtime.bundle import Bundle
from compgen.runtime.golden import Golden, GoldenStream, golden_of
from compgen.runtime.manifest import STEP_WEIGHTS
from compgen.runtime.predict import Recurrent, as_sources, greedy
from compgen.sampling import native
from compgen.sampling.batching import Draw, draws
from compgen.sampling.whole_loop import loop_draws

# In the log-probability of a whole sample, in nats; cpp_runner/src/verify.cpp has the same numbers. Between runtimes
# and processors a sum in float32 differs by about 1e-6; where activations are rounded to 8 bits, at times by a level.
TOLERANCE, TOLERANCE_IN_INTEGERS = 1e-4, 5e-2

Runner = Callable[[Golden], Sequence[Draw]]  # what a runtime gives in the place of each golden draw, or answer


@dataclass(frozen=True)
class Verified:
    """What came of a runtime.

    Attributes:
        runtime: its name.
        samples: how many golden draws, or answers, there are.
        equal: how many are the same, in tokens and prototypes.
        first: where the first other token is; empty if there is none.
        largest: largest difference of log-probabilities, in nats, among the equal ones.
        allowed: what that may be by rounding.
        rate: samples a second, starting included.
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
        """Whether all tokens are the same, and log-probabilities but for rounding."""
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
    runners, notes = _runners(bundle, provider, trust_code)
    allowed = TOLERANCE if bundle.manifest.approximation is None else TOLERANCE_IN_INTEGERS
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


def _runners(bundle: Bundle, provider: str, trust_code: bool) -> tuple[dict[str, Callable[[], Runner]], list[str]]:
    """The runtimes that are here, by name, each to be opened; and why others are not."""
    architecture = bundle.manifest.architecture
    if architecture == "grammar":
        return {"numpy": partial(_by_grammar, bundle)}, []
    runners: dict[str, Callable[[], Runner]] = {}
    notes: list[str] = []
    for where in _providers(bundle, provider, notes):
        if architecture == "transformer":
            runners[f"onnx, {where}"] = partial(_by_transformer, bundle, where)
        else:
            runners[f"onnx step, {where}"] = partial(_by_onnx_step, bundle, where)
            runners[f"onnx loop, {where}"] = partial(_by_onnx_loop, bundle, where)
    if architecture == "transformer":
        return runners, [*notes, "the C++ runner: it does not run a Transformer"]
    try:
        native.runner()
        steps = ["own", "graph"] if STEP_WEIGHTS in bundle.files else ["graph"]
        runners |= {f"C++ {step}": partial(_by_native, bundle, step) for step in steps}
    except UserError:
        notes.append("the C++ runner: there is none; `make cpp` builds it")
    if trust_code:
        runners["torchscript"] = partial(_by_torchscript, bundle)
    else:
        notes.append("TorchScript: it is code; --trust-code runs it")
    return runners, notes


def _providers(bundle: Bundle, provider: str, notes: list[str]) -> list[str]:
    """Where ONNX Runtime is to run; with `auto`, on CUDA if that opens a graph."""
    from compgen.runtime.onnx_backend import cuda_works

    chosen = device.choose(provider)
    if provider != "auto" or chosen == "cpu":
        return [chosen]
    if cuda_works(bundle):
        return ["cpu", chosen]
    notes.append("CUDA: ONNX Runtime finds no GPU that works")
    return ["cpu"]


def _generated(run: Callable[[GoldenStream, int, int, tuple[float, float]], Iterable[Draw]]) -> Runner:
    """A runner that draws all addresses of a stream from the first to the last, and keeps those that are golden."""

    def runner(golden: Golden) -> list[Draw]:
        found: list[Draw] = []
        for stream in golden.streams:
            wanted = [sample.index for sample in stream.samples]
            heat = (stream.temperature[0], stream.temperature[1])
            given = {draw.index: draw for draw in run(stream, wanted[0], wanted[-1] + 1, heat)}
            found += [given[index] for index in wanted]
        return found

    return runner


def _by_step(bundle: Bundle, backend: Backend) -> Runner:
    if bundle.pool is None:
        return _by_decoder(bundle, Recurrent(backend))
    pool, length = bundle.pool, bundle.manifest.max_length

    def run(stream: GoldenStream, start: int, stop: int, heat: tuple[float, float]) -> Iterable[Draw]:
        return draws(backend, pool, seed=stream.seed, start=start, stop=stop, max_length=length, temperature=heat)

    return _generated(run)


def _by_decoder(bundle: Bundle, decoder: Decoder) -> Runner:
    limit = bundle.manifest.max_length

    def runner(golden: Golden) -> list[Draw]:
        answers = greedy(decoder, [answer.source for answer in golden.answers], limit)
        return [Draw(row, tuple(found), len(found) < limit, score, ()) for row, (found, score) in enumerate(answers)]

    return runner


def _by_loop(bundle: Bundle, loop: Loop) -> Runner:
    length, size = bundle.manifest.max_length, len(bundle.vocabulary)
    if bundle.pool is None:
        return partial(_loop_answers, loop, length)
    pool = bundle.pool

    def run(stream: GoldenStream, start: int, stop: int, heat: tuple[float, float]) -> Iterable[Draw]:
        span = {"seed": stream.seed, "start": start, "stop": stop}
        return loop_draws(loop, pool, **span, max_length=length, temperature=heat, vocabulary=size)

    return _generated(run)


def _loop_answers(loop: Loop, length: int, golden: Golden) -> list[Draw]:
    sources = as_sources([answer.source for answer in golden.answers])[:, None]
    nothing = np.zeros((length, len(sources)), dtype=loop.dtype)
    tokens, log_probs = loop.sample(sources, nothing, np.zeros(2, dtype=loop.dtype))
    found = []
    for number, (row, score) in enumerate(zip(tokens.T.tolist(), log_probs.tolist(), strict=True)):
        finished = EOS_ID in row
        found.append(Draw(number, tuple(row[: row.index(EOS_ID)] if finished else row), finished, score, ()))
    return found


def _by_onnx_step(bundle: Bundle, provider: str) -> Runner:
    from compgen.runtime.onnx_backend import OnnxBackend

    return _by_step(bundle, OnnxBackend(bundle, provider=provider))


def _by_onnx_loop(bundle: Bundle, provider: str) -> Runner:
    from compgen.runtime.onnx_backend import OnnxLoop

    return _by_loop(bundle, OnnxLoop(bundle, provider=provider))


def _by_transformer(bundle: Bundle, provider: str) -> Runner:
    from compgen.runtime.onnx_transformer import OnnxTransformer

    return _by_decoder(bundle, OnnxTransformer(bundle, provider=provider))


def _by_torchscript(bundle: Bundle) -> Runner:
    from compgen.runtime.torchscript_backend import TorchScriptBackend

    return _by_step(bundle, TorchScriptBackend(bundle, trust_code=True))


def _by_grammar(bundle: Bundle) -> Runner:
    from compgen.csl.backend import GrammarBackend
    from compgen.trained.opening import bundled_grammar

    backend = GrammarBackend(bundled_grammar(bundle), Vocabulary(bundle.vocabulary))
    return _generated(lambda stream, start, stop, heat: backend.draws(stream.seed, start, stop, heat[0], stop - start))


def _by_native(bundle: Bundle, step: str) -> Runner:
    options: dict[str, object] = {"--step": step, "--workers": 1}
    if bundle.pool is None:
        return lambda golden: native.raw_answers(bundle, [answer.source for answer in golden.answers], options)
    return _generated(lambda stream, start, stop, heat: native.raw(bundle, stream.seed, start, stop, heat, options))
