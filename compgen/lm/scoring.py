"""Text scored by language models, token by token: by KenLM's at the speed of its own query, and by recurrent ones."""

import gzip
import io
import re
import subprocess
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from compgen.data.content import GZIP_MAGIC, check_line_ends, lines_as_they_come, name_of, suffix_of
from compgen.data.formats import SENTENCE_TOKEN, read_dataset
from compgen.data.named import SourceColumns
from compgen.errors import DataError, UserError, how_it_ended, tell
from compgen.files import writing
from compgen.interrupts import broken_pipes_raise
from compgen.lm.install import program
from compgen.lm.neural import NeuralModel

DATA = (".jsonl", ".json", ".csv", ".tsv", ".parquet")  # suffixes of texts that are read as data, not as lines
BEGINNING = 1 << 16  # bytes of a text by which its line ends are judged
_WORD = re.compile(SENTENCE_TOKEN)


@dataclass(frozen=True)
class Scores:
    """What M models give the T tokens of S sentences; the end of a sentence is a token.

    Attributes:
        lengths: (S) tokens of each sentence, its end included.
        log10: (M, T) log10 p(token | history in the sentence).
        matched: (M, T) the order of the n-gram found for a token; 0 if it is out of vocabulary.
        known: (M, T) words of the history that the model knows, at most its order less one.
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
        """Return the scores of some of the models."""
        rows = list(models)
        return Scores(self.lengths, self.log10[rows], self.matched[rows], self.known[rows])

    def beside(self, other: "Scores") -> "Scores":
        """Return these scores and those of more models for the same text."""
        return Scores(self.lengths, *_concatenated([self, other], axis=0))

    @classmethod
    def joined(cls, parts: Sequence["Scores"], models: int) -> "Scores":
        """Return the scores of several texts, one after another; of no text, those of a text without sentences."""
        empty = np.zeros((models, 0), np.uint8)
        rows = [cls(np.zeros(0, np.uint32), empty.astype(np.float32), empty, empty), *parts]
        return cls(np.concatenate([part.lengths for part in rows]), *_concatenated(rows, axis=1))


def _concatenated(parts: Sequence[Scores], axis: int) -> list[NDArray[Any]]:
    names = ("log10", "matched", "known")
    return [np.concatenate([getattr(part, name) for part in parts], axis=axis) for name in names]


def paths_of(models: Sequence[str | Path]) -> list[Path]:
    """Return the paths of models, which may be given as text; raise UserError for a single one, which is no list."""
    if isinstance(models, str | Path):
        raise UserError(f"models: found {str(models)!r} alone, expected a list of models: [{str(models)!r}]")
    return [*map(Path, models)]


def score(
    models: Sequence[Path], text: str | Path, threads: int = 1, *, blank: bool = False, mixed: bool = False
) -> Iterator[Scores]:
    """Score a text, a sentence a line and words as `split_words` finds them, a block of lines at a time.

    Args:
        models: KenLM's binary or ARPA files, or recurrent models (see `NeuralModel`); none to check the text only.
        text: a file, plain or compressed by gzip, or `-` for standard input; of one of DATA the sources.
        threads: the number of threads that score.
        blank: whether a blank line is a sentence without words; else it is none.
        mixed: whether the models are those of a mixture, and must know the same words.

    Raises:
        DataError: the text is missing, or has bytes that are not UTF-8, a control character or a special symbol.
        UserError: a model cannot be read, the models are `mixed` and know different words, or the program that scores
            is not installed.
    """
    neural = _neural(models, threads, mixed)
    options = [name for name, given in (("--blank", blank), ("--mixed", mixed)) if given]
    counting = [model for model in models if not is_neural(model)]
    blocks = _scored(counting, text, ["--threads", str(threads), *options], blank)
    if not neural:
        yield from blocks
        return
    if str(text) == "-":
        raise UserError("a recurrent model reads the text once more: give it as a file")
    with opened(text, blank=blank) as (stream, _):
        # It reads ahead of the blocks, in whose order bad bytes are told.
        lines = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", errors="replace", newline="\n")
        sentences = (words for words in map(split_words, lines) if words or blank)
        for block in blocks:
            yield _with_neural(block, neural, list(islice(sentences, len(block.lengths))))


def _neural(models: Sequence[Path], threads: int, mixed: bool) -> dict[int, NeuralModel]:
    """Open the recurrent models, by their places; compare the words of all models if they are `mixed`."""
    neural = {place: NeuralModel(model, threads) for place, model in enumerate(models) if is_neural(model)}
    if mixed and neural:  # compgen-ngram compares those of KenLM alone, which it opens anyway
        known = {place: model.words() for place, model in neural.items()}
        require_one_vocabulary((model, known.get(place) or words_of(model)) for place, model in enumerate(models))
    return neural


def _with_neural(block: Scores, neural: dict[int, NeuralModel], sentences: list[list[str]]) -> Scores:
    """Insert the scores of recurrent models; `matched` is 1 for known tokens, `known` is 0."""
    found = {place: model.score(sentences) for place, model in neural.items()}
    rows = iter(zip(block.log10, block.matched, block.known, strict=True))
    nothing = np.zeros(int(block.lengths.sum()), dtype=np.uint8)
    merged = [
        (*found[place], nothing) if place in found else next(rows) for place in range(len(block.log10) + len(found))
    ]
    log10, matched, known = (np.stack(column) for column in zip(*merged, strict=True))
    return Scores(block.lengths, log10, matched, known)


def _scored(models: Sequence[Path], text: str | Path, options: Sequence[str], blank: bool) -> Iterator[Scores]:
    """Score a text by KenLM's models, in the program compgen-ngram."""
    command = [str(program("compgen-ngram")), "scores", *options, "--", *map(str, models)]
    for model in models:
        if not model.is_file():
            raise UserError(f"{model}: no such file, expected a model of KenLM")
    with opened(text, blank=blank) as (stream, feed), _running(command, stream, feed) as process:
        assert process.stdout is not None and process.stderr is not None
        while block := _block(process.stdout, len(models)):
            yield block
        said = process.stderr.read()
    message = _message(said, process.returncode)
    if process.returncode and message.startswith("-, line "):  # its standard input is the text
        raise DataError(message.replace("-, line", f"{text}, {unit_of(text)}", 1))
    if process.returncode:
        raise UserError(message)
    for line in said.decode(errors="replace").splitlines():
        tell(line.removeprefix("warning: "))


def _message(written: bytes, code: int) -> str:
    """Return what compgen-ngram says in an error, or how it ended."""
    return written.decode(errors="replace").strip().removeprefix("error: ") or how_it_ended("compgen-ngram", code)


@contextmanager
def _running(command: list[str], stream: Any, feed: bool) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program on a stream, whose bytes a thread passes on if `feed`; kill it if the block raises."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe if feed else stream, stdout=pipe, stderr=pipe) as process:
        errors: list[Exception] = []
        feeder = threading.Thread(target=_feed, args=(stream, process.stdin, errors), daemon=True)
        try:
            if feed:
                feeder.start()
            yield process
            if feed:
                feeder.join()
            if errors:
                raise errors[0]
        except BaseException:
            process.kill()
            raise


def split_words(line: str) -> list[str]:
    """Return the words of a line as KenLM splits it: at spaces, tabs and carriage returns.

    Other white space, as U+00A0, is part of a word; `compgen-ngram` has the same rule, and refuses control characters,
    at which KenLM's own programs split differently.
    """
    return _WORD.findall(line)


def line_of(tokens: Sequence[str], text: str | Path) -> str:
    """Return a sentence as a line of a text.

    Raises:
        DataError: a token is empty or contains a space, so that the text would have other words.
    """
    line = " ".join(tokens)
    if split_words(line) != list(tokens):
        bad = next(token for token in tokens if split_words(token) != [token])
        raise DataError(f"{text}: a text cannot hold the token {bad!r}, expected words without spaces: change the data")
    return line + "\n"


def unit_of(text: str | Path) -> str:
    """Return what is counted where a message names a place in a text."""
    return "sentence" if _is_data(text) else "line"


def place_of(text: str | Path, sentence: int, token: int, length: int) -> str:
    """Return in words where a token is: its line and the word, or where the text cannot be read again, its number.

    Args:
        text: as for `score`, without blank lines.
        sentence, token: counted from 0.
        length: of the sentence, its end included.
    """
    if str(text) == "-" or not Path(text).is_file():
        place = f"sentence {sentence + 1}, token {token + 1} of {length}, the end of the sentence being the last"
        return f"{text}, {place}"
    with opened(text) as (stream, _):
        lines = io.TextIOWrapper(io.BufferedReader(stream), encoding="utf-8-sig", newline="\n")
        full = ((number, words) for number, line in enumerate(lines, start=1) if (words := split_words(line)))
        number, words = next(islice(full, sentence, None))
    word = f"the word {words[token]!r}" if token < len(words) else "the end of the sentence"
    return f"{text}, {unit_of(text)} {number}: {word}, token {token + 1} of {length}"


def _is_data(text: str | Path) -> bool:
    return suffix_of(text) in DATA


def score_all(models: Sequence[str | Path], text: str | Path, threads: int = 1) -> Scores:
    """Score a whole text at once, in about 12 bytes per token and model; raises as `score`."""
    return Scores.joined(list(score(paths_of(models), text, threads)), len(models))


def words_of(model: Path) -> set[str]:
    """Return the words that a model knows, without its special symbols; raises UserError as `score`."""
    if is_neural(model):
        return NeuralModel(model).words()
    done = subprocess.run([program("compgen-ngram"), "words", "--", model], capture_output=True, check=False)
    if done.returncode:
        raise UserError(_message(done.stderr, done.returncode))
    try:
        words = done.stdout.decode()
    except UnicodeDecodeError:
        raise UserError(f"{model}: found words that are not UTF-8; expected a model of a text in UTF-8") from None
    return set(words.split("\n")) - {"", "<s>", "</s>", "<unk>"}


def require_one_vocabulary(known: Iterable[tuple[object, Set[str]]]) -> None:
    """Raise UserError unless all models, given with their names, know the same words: else no mixture sums to one."""
    each = iter(known)
    name, words = next(each)
    for model, found in each:
        if found != words:
            raise UserError(
                f"mixed vocabularies: {name} knows {len(words):,} words, {model} {len(found):,} or others; "
                "estimate both from texts with the same words, for instance the second from the first's text and more"
            )


def is_neural(model: Path) -> bool:
    """Whether a model is a recurrent one: a checkpoint, or a bundle, which is a folder."""
    return model.suffix == ".pt" or model.is_dir()


@contextmanager
def opened(text: str | Path, *, blank: bool = False) -> Iterator[tuple[Any, bool]]:
    """Open a text as a stream; also return whether its bytes must be passed on, as a program cannot read gzip.

    Data with a source in each row, by their suffix, become a text of the sources; with `blank`, blank lines among them
    stay.

    Raises:
        DataError: the file is missing, cut short, or not in its format.
    """
    if _is_data(text):
        with tempfile.TemporaryDirectory(prefix="compgen-lm-") as folder:
            lines = Path(folder) / "text"
            _write_sources(text, lines, blank)
            with opened(lines) as found:
                yield found
        return
    try:
        if str(text) == "-":
            given = cast(io.BufferedReader, sys.stdin.buffer)
            packed = given.peek(2)[:2] == GZIP_MAGIC
            unpacked = gzip.GzipFile(fileobj=given) if packed else given
            check_line_ends(unpacked.peek(BEGINNING), name_of(text))
            yield unpacked, True  # what was peeked at, no program can read
            return
        with Path(text).open("rb", buffering=0) as stream:  # a program that gets it reads on from here
            if not stream.seekable():
                raise DataError(f"{text}: cannot be read twice: give it as standard input")
            beginning = stream.read(BEGINNING)
            stream.seek(0)
            if beginning[:2] != GZIP_MAGIC:
                check_line_ends(beginning, str(text))
                yield stream, False
                return
            with gzip.open(stream) as content:
                check_line_ends(content.peek(BEGINNING), str(text))
                yield content, True
    except (FileNotFoundError, IsADirectoryError, PermissionError) as error:
        raise DataError(f"{text}: {error.strerror}: expected a file of sentences") from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{text}: cut short or broken: expected a whole file of gzip") from error


def _write_sources(text: str | Path, lines: Path, blank: bool) -> None:
    """Write the sources of data as lines, see `opened`. Raises DataError if there are several splits."""
    dataset = read_dataset(text, columns=SourceColumns())
    if len(dataset.splits) > 1:
        raise DataError(
            f"{text}: found the splits {dataset.sizes()}, expected one, as a model learns from one and is tested on "
            f"another: cgen data write {text} --split {next(iter(dataset.splits))} -o OUT"
        )
    sources = dataset.frame["source"].to_list()
    if blank:
        sources = _with_blank(sources, _filled(text))
    with writing(lines), lines.open("w", encoding="utf-8") as stream:
        stream.writelines(line_of(tokens, text) for tokens in sources)


def _filled(text: str | Path) -> list[bool]:
    """Which lines of a file have something; none if its rows are not lines."""
    if suffix_of(text) not in (".tsv", ".jsonl"):
        return []
    return [bool(line.strip()) for lines in lines_as_they_come(str(text)) for line in lines]


def _with_blank(sources: list[list[str]], filled: list[bool]) -> list[list[str]]:
    """Sources, with one of no words for each line that is not `filled`. A line of names of columns is none of them."""
    names = sum(filled) - len(sources)
    if names not in (0, 1):
        return sources
    if names:
        del filled[filled.index(True)]
    following = iter(sources)
    return [next(following) if full else [] for full in filled]


def _feed(stream: io.BufferedReader | gzip.GzipFile, sink: IO[bytes], errors: list[Exception]) -> None:
    try:
        with broken_pipes_raise(), suppress(BrokenPipeError), sink:  # the program's message says why it ended
            while chunk := stream.read1(1 << 20):
                sink.write(chunk)
    except (EOFError, OSError, zlib.error) as error:
        errors.append(error)


def _block(stream: IO[bytes], models: int) -> Scores | None:
    """Read a block that compgen-ngram wrote; None at the end. T tokens of M models take M rows of 6 T bytes."""
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
