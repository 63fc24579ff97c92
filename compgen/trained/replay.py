"""Golden draws made again: what the runners of the architectures share."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from compgen.errors import UserError
from compgen.runtime import device
from compgen.runtime.backend import Decoder
from compgen.runtime.bundle import Bundle
from compgen.runtime.golden import Golden, GoldenStream
from compgen.runtime.manifest import STEP_WEIGHTS
from compgen.runtime.predict import greedy
from compgen.sampling import native
from compgen.sampling.batching import Draw
from compgen.trained.architectures import Runner, Runners


def drawn(run: Callable[[GoldenStream, int, int, tuple[float, float]], Iterable[Draw]]) -> Runner:
    """Return a runner that draws all addresses from a stream's first to its last, and keeps the golden ones."""

    def runner(golden: Golden) -> list[Draw]:
        found: list[Draw] = []
        for stream in golden.streams:
            wanted = [sample.index for sample in stream.samples]
            heat = (stream.temperature[0], stream.temperature[1])
            given = {draw.index: draw for draw in run(stream, wanted[0], wanted[-1] + 1, heat)}
            found += [given[index] for index in wanted]
        return found

    return runner


def answered(bundle: Bundle, decoder: Decoder) -> Runner:
    """Return a runner that answers golden sources by greedy decoding."""
    limit = bundle.manifest.max_length

    def runner(golden: Golden) -> list[Draw]:
        answers = greedy(decoder, [answer.source for answer in golden.answers], limit)
        return [Draw(row, tuple(found), len(found) < limit, score, ()) for row, (found, score) in enumerate(answers)]

    return runner


def native_runners(bundle: Bundle, options: Mapping[str, Mapping[str, object]]) -> tuple[Runners, list[str]]:
    """Return the C++ runner by names, with options for each; and a line if there is no runner."""
    try:
        native.runner()
    except UserError:
        return {}, ["the C++ runner: there is none; `make runner` builds it"]
    return {name: partial(_by_native, bundle, given) for name, given in options.items()}, []


def native_steps(bundle: Bundle) -> dict[str, dict[str, str]]:
    """Return the options of the C++ runner by each of a network's steps that it has: its own, and the graph's."""
    steps = ["own", "graph"] if STEP_WEIGHTS in bundle.files else ["graph"]
    return {f"C++ {step}": {"--step": step} for step in steps}


def _by_native(bundle: Bundle, options: Mapping[str, object]) -> Runner:
    single = {"--workers": 1} | dict(options)
    if bundle.pool is None:
        return lambda golden: native.raw_answers(bundle, [answer.source for answer in golden.answers], single)
    return drawn(lambda stream, start, stop, heat: native.raw(bundle, stream.seed, start, stop, heat, single))


def providers(bundle: Bundle, provider: str) -> tuple[list[str], list[str]]:
    """Return where ONNX Runtime is to run, with `auto` on CUDA too if that opens a graph; and a line if it does not."""
    from compgen.runtime.onnx_backend import cuda_works

    chosen = device.choose(provider)
    if provider != "auto" or chosen == "cpu":
        return [chosen], []
    if cuda_works(bundle):
        return ["cpu", chosen], []
    return ["cpu"], ["CUDA: ONNX Runtime finds no GPU that works"]
