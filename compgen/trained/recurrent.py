"""Recurrent networks: generators, and predictors, which have one memory, the source."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from compgen.data.vocabulary import EOS_ID, SPARES, Vocabulary
from compgen.errors import UserError
from compgen.files import sha256
from compgen.processors import processors
from compgen.runtime.backend import Backend, Loop, check_numbers, check_tokens
from compgen.runtime.bundle import Bundle
from compgen.runtime.golden import Golden, GoldenStream
from compgen.runtime.manifest import SCRIPT
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import Recurrent, as_sources
from compgen.sampling.batching import ROWS, Draw, draws
from compgen.sampling.whole_loop import ROWS as ROWS_ON_GPU
from compgen.sampling.whole_loop import loop_draws
from compgen.trained.architectures import (
    GENERATOR,
    PREDICTOR,
    Architecture,
    GeneratorModel,
    Opened,
    Request,
    Runner,
    Runners,
    Runtime,
    torch_device,
)
from compgen.trained.native_generator import NativeGenerator
from compgen.trained.native_predictor import NativePredictor
from compgen.trained.predictor import Predictor, StepwisePredictor
from compgen.trained.replay import answered, drawn, native_runners, native_steps, providers

if TYPE_CHECKING:
    from compgen.models.config import NetworkConfig
    from compgen.models.network import Network
    from compgen.trained.checkpoint import Checkpoint


@dataclass
class RecurrentGenerator(Opened):
    """A generator by a recurrent network; see `GeneratorModel`."""

    backend: Backend
    pool: PrototypePool
    vocabulary: Vocabulary
    max_length: int
    temperature: tuple[float, float]
    identity: str
    bundle: Path | None = None
    method = "recombine"
    threaded = True

    def draws(self, asked: Request) -> Iterator[Draw]:
        """Draw by continuous batching, on a GPU by its whole loop, or search by beam."""
        if asked.beam is not None:
            if asked.temperature is not None:
                raise UserError("beam search draws nothing at random: give beam or temperature, not both")
            return self._search(asked, asked.beam, asked.batch or ROWS)
        pool = asked.pool or self.pool
        common: dict[str, Any] = {
            "seed": asked.seed,
            "start": asked.start,
            "stop": asked.stop,
            "max_length": self.max_length,
            "temperature": asked.temperature or self.temperature,
        }
        if self.backend.loop is not None:
            size, rows = len(self.vocabulary), asked.batch or ROWS_ON_GPU
            return loop_draws(self.backend.loop, pool, **common, vocabulary=size, rows=rows)
        workers, slots = asked.workers or processors(), asked.batch or ROWS
        common |= {"slots": slots, "workers": workers, "unwanted": asked.unwanted, "enough": asked.enough}
        return draws(self.backend, pool, **common)

    def _search(self, asked: Request, width: int, batch: int) -> Iterator[Draw]:
        from compgen.runtime.beam import beam_over

        pool = asked.pool or self.pool
        for first in range(asked.start, asked.stop, batch):
            addresses = np.arange(first, min(first + batch, asked.stop), dtype=np.int64)
            chosen = pool.choose(asked.seed, addresses)
            fed = self.backend.shape.fed(asked.seed, addresses)
            found = beam_over(self.backend, pool.sequences(chosen), width, self.max_length, fed=fed)
            for index, (output, score), prototypes in zip(addresses.tolist(), found, chosen.tolist(), strict=True):
                yield Draw(index, tuple(output), len(output) < self.max_length, score, tuple(prototypes))

    def answers(
        self, sources: Sequence[Sequence[str]], each: int, watch: Callable[[int], None] | None
    ) -> list[list[str]]:
        """Answer by direct inference; an empty source, and one with an unknown token, has no answer."""
        from compgen.sampling.direct import Direct

        direct = Direct(self.backend, self.pool, self.max_length, each)
        known = [number for number, source in enumerate(sources) if source and self.vocabulary.knows(source)]
        found = direct.answers([self.vocabulary.encode(sources[number]) for number in known], watch)
        answers: list[list[str]] = [[] for _ in sources]
        for number, answer in zip(known, found, strict=True):
            answers[number] = self.vocabulary.decode(answer)
        return answers


class RecurrentArchitecture(Architecture):
    """See `models.network`."""

    tag = "recurrent"
    abilities: ClassVar = {"generator": GENERATOR, "predictor": PREDICTOR}
    exporter = "compgen.export.recurrent"
    memory = "network.hidden, network.encoder_hidden or network.embedding"

    def open_saved(self, saved: "Checkpoint", path: Path, runtime: Runtime) -> GeneratorModel | Predictor:
        from compgen.models.backend import TorchBackend

        backend = TorchBackend(saved.network, torch_device(), str(path), runtime.threads)
        parts = (saved.pool, saved.vocabulary, saved.max_length, saved.sampling)
        return _opened(backend, *parts, sha256(path))

    def open_bundle(self, bundle: Bundle, runtime: Runtime) -> GeneratorModel | Predictor:
        if runtime.name == "native":
            if bundle.pool is None:
                return NativePredictor(bundle, runtime.threads)
            return NativeGenerator(bundle, runtime.threads)
        manifest, backend, folder = bundle.manifest, self._backend(bundle, runtime), bundle.path.absolute()
        parts = (bundle.pool, Vocabulary(bundle.vocabulary), manifest.max_length, manifest.sampling, bundle.identity)
        return _opened(backend, *parts, None if runtime.name == "torchscript" else folder)

    def _backend(self, bundle: Bundle, runtime: Runtime) -> Backend:
        if runtime.name == "torchscript":
            from compgen.runtime.torchscript_backend import TorchScriptBackend

            return TorchScriptBackend(bundle, runtime.threads, trust_code=runtime.trust_code)
        from compgen.runtime.onnx_backend import OnnxBackend

        return OnnxBackend(bundle, runtime.threads, runtime.provider)

    def runners(self, bundle: Bundle, runtime: Runtime) -> tuple[Runners, list[str]]:
        where, notes = providers(bundle, runtime.provider)
        runners: Runners = {}
        for name in where:
            runners[f"onnx step, {name}"] = partial(self._by_step, bundle, Runtime(provider=name))
            runners[f"onnx loop, {name}"] = partial(_by_loop, bundle, name)
        in_cpp, missing = native_runners(bundle, native_steps(bundle))
        runners, notes = runners | in_cpp, notes + missing
        if SCRIPT not in bundle.files:
            notes.append("TorchScript: the bundle has none")
        elif runtime.trust_code:
            runners["torchscript"] = partial(self._by_step, bundle, Runtime("torchscript", trust_code=True))
        else:
            notes.append("TorchScript: it is code; --trust-code runs it")
        return runners, notes

    def _by_step(self, bundle: Bundle, runtime: Runtime) -> Runner:
        backend, pool, length = self._backend(bundle, runtime), bundle.pool, bundle.manifest.max_length
        if pool is None:
            return answered(bundle, Recurrent(backend))

        def run(stream: GoldenStream, start: int, stop: int, heat: tuple[float, float]) -> Iterable[Draw]:
            return draws(backend, pool, seed=stream.seed, start=start, stop=stop, max_length=length, temperature=heat)

        return drawn(run)

    def configuration(self, values: dict[str, Any]) -> "NetworkConfig":
        from compgen.models.config import NetworkConfig

        return NetworkConfig(**values)

    def build(self, config: "NetworkConfig", vocabulary: int) -> "Network":
        from compgen.models.network import Network

        return Network(config, vocabulary)

    def spares(self, config: "NetworkConfig") -> bool:
        return config.copying

    def prepare(self, network: "Network", vocabulary: Vocabulary) -> None:
        if network.copying:
            network.treat_as_unknown([number for number, token in enumerate(vocabulary) if token in SPARES])


ARCHITECTURE = RecurrentArchitecture()


def _opened(
    backend: Backend,
    pool: PrototypePool | None,
    vocabulary: Vocabulary,
    max_length: int,
    sampling: dict[str, Any],
    identity: str,
    bundle: Path | None = None,
) -> GeneratorModel | Predictor:
    if pool is None:
        return StepwisePredictor(Recurrent(backend), vocabulary, max_length)
    first, second = sampling["temperature"]
    return RecurrentGenerator(backend, pool, vocabulary, max_length, (float(first), float(second)), identity, bundle)


def _by_loop(bundle: Bundle, provider: str) -> Runner:
    from compgen.runtime.onnx_backend import OnnxLoop

    loop, length, pool = OnnxLoop(bundle, provider=provider), bundle.manifest.max_length, bundle.pool
    if pool is None:
        return partial(_loop_answers, loop, length, len(bundle.vocabulary))

    def run(stream: GoldenStream, start: int, stop: int, heat: tuple[float, float]) -> Iterable[Draw]:
        span = {"seed": stream.seed, "start": start, "stop": stop}
        return loop_draws(loop, pool, **span, max_length=length, temperature=heat, vocabulary=len(bundle.vocabulary))

    return drawn(run)


def _loop_answers(loop: Loop, length: int, vocabulary: int, golden: Golden) -> list[Draw]:
    sources = as_sources([answer.source for answer in golden.answers])[:, None]  # (B, 1, T)
    nothing = np.zeros((length, len(sources)), dtype=loop.dtype)
    tokens, log_probs = loop.sample(sources, nothing, np.zeros(2, dtype=loop.dtype))  # (L, B), (B)
    check_tokens(loop.name, tokens, vocabulary)
    check_numbers(loop.name, log_probs)
    found = []
    for number, (row, score) in enumerate(zip(tokens.T.tolist(), log_probs.tolist(), strict=True)):
        finished = EOS_ID in row
        found.append(Draw(number, tuple(row[: row.index(EOS_ID)] if finished else row), finished, score, ()))
    return found
