"""Grammars with learned probabilities (CSL): they draw derivations and answer by their best parse, without torch."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from compgen.data.vocabulary import SEP_ID, Vocabulary
from compgen.errors import BundleError, DataError, UserError
from compgen.files import sha256
from compgen.runtime.bundle import Bundle, arrays_of
from compgen.runtime.manifest import RULES, SCORES, TARGET_RULES
from compgen.runtime.pool import PrototypePool
from compgen.sampling.batching import Draw
from compgen.trained.architectures import (
    GENERATOR,
    Architecture,
    GeneratorModel,
    Request,
    Runner,
    Runners,
    Runtime,
)
from compgen.trained.native_generator import NativeGrammar
from compgen.trained.replay import drawn, native_runners

if TYPE_CHECKING:  # polars alone takes a tenth of a second
    from compgen.csl.grammar_file import GrammarFile
    from compgen.csl.sampling import Sampler
    from compgen.csl.trained import TrainedGrammar

ROWS = 4096  # derived together
MOST_ROWS = 1 << 16  # more take memory and gain nothing; samples do not depend on it
MOST_TOKENS = 1 << 22  # of a side of all rows together, by default: a grammar of few lines may write long ones


class GrammarGenerator:
    """Pairs from a grammar, in the ids of a vocabulary that has all its tokens; see `GeneratorModel`."""

    method = "csl"
    threaded = False
    backend = None
    bundle: Path | None = None

    def __init__(
        self, trained: "TrainedGrammar", vocabulary: Vocabulary, pool: PrototypePool, identity: str = ""
    ) -> None:
        self.trained, self.vocabulary, self.pool, self.identity = trained, vocabulary, pool, identity
        self.max_length = trained.max_length
        self.temperature = (trained.drawing.temperature, trained.drawing.temperature)
        self._ids = np.array(vocabulary.encode(trained.grammar.alphabet.tokens), dtype=np.int64)

    def draws(self, asked: Request) -> Iterator[Draw]:
        """Draw derivations in one thread.

        Raises:
            UserError: what a grammar cannot do, now; or as `csl.sampling`, now where no derivation ends.
        """
        heat, other = asked.temperature or self.temperature
        if heat != other:
            raise UserError(f"a grammar has one temperature, found {heat:g} and {other:g}")
        if heat <= 0:
            raise UserError(f"a grammar draws at a temperature above 0, found {heat:g}")
        if asked.beam is not None or asked.workers is not None:
            raise UserError("a grammar draws in one thread: leave out beam and workers")
        return self._draws(asked, self.trained.sampler(heat))

    def _draws(self, asked: Request, sampler: "Sampler") -> Iterator[Draw]:
        rows = min(asked.batch or min(ROWS, MOST_TOKENS // self.trained.drawing.longest), MOST_ROWS)
        for block in sampler.blocks(asked.seed, asked.start, asked.stop, rows):
            sources, targets = (self._ids[numbers].tolist() for numbers in block.numbers)
            ends = (np.cumsum(lengths).tolist() for lengths in block.lengths)
            one = other = 0
            for index, (end, last, score) in enumerate(zip(*ends, block.log_probs.tolist(), strict=True), block.start):
                tokens = (*sources[one:end], SEP_ID, *targets[other:last])
                one, other = end, last
                yield Draw(index, tokens, True, score, ())

    def answers(
        self, sources: Sequence[Sequence[str]], each: int = 1, watch: Callable[[int], None] | None = None
    ) -> list[list[str]]:
        """Return the target of each source's best derivation, empty where there is none; `each` has no part."""
        del each
        parser = self.trained.parser()
        found = []
        for number, source in enumerate(sources, 1):
            found.append(parser.parse(list(source)) or [])
            if watch is not None:
                watch(number)
        return found


class GrammarArchitecture(Architecture):
    """See `csl`."""

    tag = "grammar"
    abilities: ClassVar = {"generator": GENERATOR}
    exporter = "compgen.export.grammar"

    def open_saved(self, saved: "GrammarFile", path: Path, runtime: Runtime) -> GrammarGenerator:
        if path.suffix == ".grammar":
            _require_no_runtime(path, runtime)
        return GrammarGenerator(saved.trained, saved.vocabulary, saved.pool, sha256(path))

    def open_bundle(self, bundle: Bundle, runtime: Runtime) -> GeneratorModel:
        if runtime.name == "native":
            return NativeGrammar(bundle, runtime.threads)
        _require_no_runtime(bundle.path, runtime)
        return self._in_python(bundle)

    def _in_python(self, bundle: Bundle) -> GrammarGenerator:
        from compgen.csl.trained import TrainedGrammar

        rules, targets = bundle.text(RULES), bundle.text(TARGET_RULES)
        scores = arrays_of(bundle.path / SCORES, bundle.file(SCORES))
        assert bundle.pool is not None, "a generator has a pool"
        try:
            trained = TrainedGrammar.of(rules, targets, scores, bundle.manifest.sampling)
            return GrammarGenerator(trained, Vocabulary(bundle.vocabulary), bundle.pool, bundle.identity)
        except DataError as error:
            raise BundleError(f"{bundle.path}: {error}") from error

    def runners(self, bundle: Bundle, runtime: Runtime) -> tuple[Runners, list[str]]:
        if runtime.provider not in ("auto", "cpu"):
            raise UserError(
                f"{bundle.path}: a grammar runs on the CPU, found provider {runtime.provider!r}: leave it out"
            )
        in_cpp, missing = native_runners(bundle, {"C++": {}})
        return {"numpy": lambda: self._by_numpy(bundle)} | in_cpp, missing

    def _by_numpy(self, bundle: Bundle) -> Runner:
        model = self._in_python(bundle)
        return drawn(
            lambda stream, start, stop, heat: model.draws(Request(stream.seed, start, stop, heat, batch=stop - start))
        )


ARCHITECTURE = GrammarArchitecture()


def _require_no_runtime(path: Path, runtime: Runtime) -> None:
    if runtime.name == "native":
        raise UserError(f"{path}: a grammar that is not exported: export it first for --runtime native")
    if runtime.name is not None or runtime.provider != "auto":
        raise UserError(f"{path}: a grammar needs no runtime: leave out runtime and provider")
