"""A generator's bundle that answers in the C++ runner, by direct inference or parsing, with the answers of Python."""

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from pathlib import Path
from typing import NoReturn

from compgen.data.vocabulary import Vocabulary, why_not_data
from compgen.errors import UserError
from compgen.runtime.bundle import Bundle
from compgen.runtime.manifest import TARGET_RULES
from compgen.runtime.pool import NEAREST
from compgen.sampling import native
from compgen.trained.architectures import Opened, Request


class NativeGenerator(Opened):
    """A network with prototypes; see `GeneratorModel`. It draws by `cgen sample --runtime native` alone.

    Each call starts the runner anew, which opens the bundle: ask for many answers at a time.

    Raises:
        UserError: there is no C++ runner.
    """

    method = "recombine"
    threaded = True
    backend = None
    bundle: Path | None = None  # it does not run in ONNX Runtime

    def __init__(self, bundle: Bundle, threads: int) -> None:
        assert bundle.pool is not None, "a generator has a pool"
        self.files, self.threads = native.opened(bundle), threads
        self.pool, self.identity = bundle.pool, bundle.identity
        self.vocabulary, self.max_length = Vocabulary(bundle.vocabulary), bundle.manifest.max_length
        first, second = bundle.manifest.sampling["temperature"]
        self.temperature = float(first), float(second)

    def draws(self, asked: Request) -> NoReturn:  # noqa: ARG002
        """Raise UserError: the runner draws by the command alone."""
        raise UserError(
            f"{self.files.path}: in the runtime native a generator answers, and draws by `cgen sample` alone: leave "
            "out the runtime"
        )

    def answers(
        self, sources: Sequence[Sequence[str]], each: int, watch: Callable[[int], None] | None
    ) -> list[list[str]]:
        """Return the target of each source, empty where there is none; `watch` hears of all at once."""
        found = self._answers(sources, each)
        if watch is not None:
            watch(len(found))
        return found

    def _answers(self, sources: Sequence[Sequence[str]], each: int) -> list[list[str]]:
        """See `RecurrentGenerator.answers`. Sources go as ids: a token may have spaces in it."""
        if each != NEAREST:
            raise UserError(
                f"found each = {each}: the C++ runner answers by {NEAREST} prototypes: leave out the runtime"
            )
        self.pool.require_direct()
        known = [number for number, source in enumerate(sources) if source and self.vocabulary.knows(source)]
        found: list[list[str]] = [[] for _ in sources]
        if known:
            asked = [self.vocabulary.encode(sources[number]) for number in known]
            options = {"--direct": True, "--workers": self.threads}
            for line in native.raw_lines(self.files, asked, options):
                found[known[line["index"]]] = self.vocabulary.decode(line["tokens"])
        return found


class NativeGrammar(NativeGenerator):
    """A grammar, which answers by its best parses."""

    method = "csl"
    threaded = False

    def _answers(self, sources: Sequence[Sequence[str]], each: int) -> list[list[str]]:
        """See `GrammarGenerator.answers`. Sources go as words, because those that no rule has may be copied."""
        del each
        if not any(sources):
            return [[] for _ in sources]
        free = self._free(sources)
        words: dict[str, str] = {}  # of tokens
        for token in dict.fromkeys(token for source in sources for token in source):
            fits = token.split() == [token] and not why_not_data(token)
            words[token] = token if fits else next(free)
        asked = [[words[token] for token in source] for source in sources]
        tokens = {word: token for token, word in words.items()}
        lines = native.lines(self.files, asked, {"--direct": True, "--workers": self.threads})
        return [[tokens.get(word, word) for word in line["target"]] for line in lines]

    def _free(self, sources: Sequence[Sequence[str]]) -> Iterator[str]:
        """Yield words that occur nowhere else, for tokens that no line can hold: no rule has them, but a copy may."""
        taken = {*self.vocabulary, *self.files.text(TARGET_RULES).split(), *(token for one in sources for token in one)}
        return (word for word in map("word{}".format, count()) if word not in taken)
