"""Text scored by KenLM's models, token by token, at the speed of KenLM's own query."""

import gzip
import io
import re
import subprocess
import sys
import threading
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.formats import SENTENCE_TOKEN
from compgen.errors import DataError, UserError
from compgen.lm.install import plain, program
from compgen.lm.neural import NeuralModel

GZIP_MAGIC = b"\x1f\x8b"
_WORD = re.compile(SENTENCE_TOKEN)


@dataclass(frozen=True)
class Scores:
    """What M models give the T tokens of S sentences; the end of a sentence is a token.

    Attributes:
        lengths: (S) tokens of each sentence, its end included.
        log10: (M, T) logarithms to the base 10 of the probabilities, given the history in the sentence.
        matched: (M, T) words of the n-gram that a token was found with; 0 for one out of vocabulary.
        known: (M, T) words of its history that the model knew, up to the order less one.
    """

    lengths: NDArray[np.uint32]
    log10: NDArray[np.float32]
    matched: NDArray[np.uint8]
    known: NDArray[np.uint8]

    @property
    def starts(self) -> NDArray[np.int64]:
        """(S) the first token of each sentence."""
        return np.cumsum(self.lengths, dtype=np.int64) - self.lengths

    def of(self, models: Sequence[int]) -> "Scores":
        """Those of some of the models."""
        rows = list(models)
        return Scores(self.lengths, self.log10[rows], self.matched[rows], self.known[rows])

    def beside(self, other: "Scores") -> "Scores":
        """These, and what more models give the same text."""
        return Scores(
            self.lengths,
            np.concatenate([self.log10, other.log10]),
            np.concatenate([self.matched, other.matched]),
            np.concatenate([self.known, other.known]),
        )

    @classmethod
    def joined(cls, parts: Sequence["Scores"], models: int) -> "Scores":
        """Several texts, one after another; none is a text without sentences."""
        empty = np.zeros((models, 0))
        nothing = cls(np.zeros(0, np.uint32), empty.astype(np.float32), empty.astype(np.uint8), empty.astype(np.uint8))
        rows = [nothing, *parts]
        return cls(
            np.concatenate([part.lengths for part in rows]),
            np.concatenate([part.log10 for part in rows], axis=1),
            np.concatenate([part.matched for part in rows], axis=1),
            np.concatenate([part.known for part in rows], axis=1),
        )


def score(models: Sequence[Path], text: str | Path, threads: int = 1) -> Iterator[Scores]:
    """Score a text, a sentence a line and words as `split_words` has them, a block of lines at a time.

    Blank lines are no sentences.

    Args:
        models: in KenLM's binary formats, ARPA files, or recurrent ones (see `NeuralModel`); none to check the text
            only.
        text: a file, perhaps compressed by gzip, or `-` for standard input.
        threads: that score.

    Raises:
        DataError: the text is not there, or has what is not UTF-8, a control character, or a special symbol.
        UserError: a model cannot be read, or the program that scores is not installed.
    """
    neural = {place: NeuralModel(model, threads) for place, model in enumerate(models) if is_neural(model)}
    blocks = _scored([model for model in models if not is_neural(model)], text, threads)
    if not neural:
        yield from blocks
        return
    if str(text) == "-":
        raise UserError("a recurrent model reads the text once more: give it as a file")
    with opened(text) as (stream, _):
        lines = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="\n")
        sentences = filter(None, map(split_words, lines))
        for block in blocks:
            yield _with_neural(block, neural, list(islice(sentences, len(block.lengths))))


def _with_neural(block: Scores, neural: dict[int, NeuralModel], sentences: list[list[str]]) -> Scores:
    """A block of scores with those of recurrent models inserted; `matched` is 1 for known tokens, `known` is 0."""
    found = {place: model.score(sentences) for place, model in neural.items()}
    rows = iter(zip(block.log10, block.matched, block.known, strict=True))
    nothing = np.zeros(int(block.lengths.sum()), dtype=np.uint8)
    merged = [
        (*found[place], nothing) if place in found else next(rows) for place in range(len(block.log10) + len(found))
    ]
    log10, matched, known = (np.stack(column) for column in zip(*merged, strict=True))
    return Scores(block.lengths, log10, matched, known)


def _scored(models: Sequence[Path], text: str | Path, threads: int) -> Iterator[Scores]:
    """The same by KenLM's models alone."""
    command = [str(program("compgen-ngram")), "--threads", str(threads), *map(str, models)]
    for model in models:
        if not model.is_file():
            raise UserError(f"{model}: no such file, expected a model of KenLM")
    with opened(text) as (stream, feed):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE if feed else stream, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None and process.stderr is not None
        errors: list[Exception] = []
        feeder = threading.Thread(target=_feed, args=(stream, process.stdin, errors), daemon=True) if feed else None
        try:
            if feeder is not None:
                feeder.start()
            while block := _block(process.stdout, len(models)):
                yield block
            message = plain(process.stderr.read().decode(errors="replace").strip())
            if feeder is not None:
                feeder.join()
            if errors:
                raise errors[0]
        except BaseException:
            process.kill()
            raise
        finally:
            process.wait()
            process.stdout.close()
            process.stderr.close()
    if process.returncode:
        if message.startswith("line "):
            raise DataError(f"{text}, {message}; expected sentences of plain words")
        raise UserError(message or f"compgen-ngram ended with code {process.returncode}")


def split_words(line: str) -> list[str]:
    """The words of a line as KenLM splits it: between spaces, tabs and carriage returns.

    Other white space, as U+00A0, is part of a word; `compgen-ngram` has the same rule, and refuses control characters,
    of which KenLM's own programs split at different ones.
    """
    return _WORD.findall(line)


def score_all(models: Sequence[Path], text: str | Path, threads: int = 1) -> Scores:
    """The same for a whole text at once: 12 bytes a token and model or so.

    Raises:
        DataError, UserError: as `score`.
    """
    return Scores.joined(list(score(models, text, threads)), len(models))


def words_of(model: Path) -> set[str]:
    """The words that a model knows, without symbols of its own.

    Raises:
        UserError: as `score`.
    """
    if is_neural(model):
        return NeuralModel(model).words()
    done = subprocess.run([program("compgen-ngram"), "--words", model], capture_output=True, check=False)
    if done.returncode:
        raise UserError(plain(done.stderr.decode(errors="replace").strip()))
    return set(done.stdout.decode().split("\n")) - {"", "<s>", "</s>", "<unk>"}


def is_neural(model: Path) -> bool:
    """Whether a model is a recurrent one: a checkpoint, or a bundle, which is a folder."""
    return model.suffix == ".pt" or model.is_dir()


@contextmanager
def opened(text: str | Path) -> Iterator[tuple[Any, bool]]:
    """A text as a stream, and whether its bytes must be passed on: a program cannot read gzip by itself.

    Raises:
        DataError: it is not there, or cut short.
    """
    if str(text) == "-":
        yield sys.stdin.buffer, False
        return
    try:
        with Path(text).open("rb", buffering=0) as stream:  # the program goes on where this process stopped reading
            if not stream.seekable():
                raise DataError(f"{text}: cannot be read twice: give it as standard input")
            packed = stream.read(2) == GZIP_MAGIC
            stream.seek(0)
            if not packed:
                yield stream, False
                return
            with gzip.open(stream) as unpacked:
                yield unpacked, True
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise DataError(f"{text}: {error.strerror}: expected a file of sentences") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{text}: cut short or broken: {error}") from error


def _feed(stream: IO[bytes], sink: IO[bytes], errors: list[Exception]) -> None:
    try:
        with suppress(BrokenPipeError), sink:  # the program's message says why it ended
            while chunk := stream.read(1 << 20):
                sink.write(chunk)
    except (EOFError, OSError, zlib.error) as error:
        errors.append(error)


def _block(stream: IO[bytes], models: int) -> Scores | None:
    head = stream.read(8)
    if len(head) < 8:
        return None
    sentences, tokens = np.frombuffer(head, dtype=np.uint32).tolist()
    size = 4 * sentences + models * 6 * tokens
    body = stream.read(size)
    if len(body) < size:
        return None
    lengths = np.frombuffer(body, np.uint32, sentences)
    rows = np.frombuffer(body, np.uint8, offset=4 * sentences).reshape(models, 6 * tokens)
    log10 = np.ascontiguousarray(rows[:, : 4 * tokens]).view(np.float32)
    return Scores(lengths, log10.reshape(models, tokens), rows[:, 4 * tokens : 5 * tokens], rows[:, 5 * tokens :])
