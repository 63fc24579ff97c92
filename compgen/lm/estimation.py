"""Estimation of n-gram models, modified Kneser-Ney, by KenLM's lmplz."""

import contextlib
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from compgen.data.content import name_of
from compgen.errors import DataError, UserError, how_it_ended
from compgen.files import atomic_path, check_apart, check_writable, writing
from compgen.lm.install import plain, program
from compgen.lm.scoring import line_of, opened, score, split_words, unit_of

MAX_ORDER = 9  # with which the programs are built
KINDS = ("probing", "trie")
ASLEEP = 120.0  # seconds: a thread that waits for a disk or a processor does not count as asleep, but in a FUSE folder
FIX = "give --discount-fallback (in Python fallback=True), which fixes the discounts that cannot be estimated"
# What lmplz says of discounts, without its advice; it counts orders from 0 where it falls back, and from 1 elsewhere.
_REASON = re.compile(r"((?:Could not calculate|\d-gram discount).*?)(?:; Is this|\.  This means|$)", re.M)
_TOO_LITTLE = ("config.minimum_block", "vocab_usage")  # in what lmplz says where it has no memory to sort in
_FELL_BACK = re.compile(r"^Substituting fallback discounts for order (\d)", re.M)
_STATISTICS = re.compile(r"^(\d+) (\d+)(?:/\d+)? D1=(\S+) D2=(\S+) D3\+=(\S+)", re.M)


@dataclass(frozen=True)
class Estimation:
    """How a model is estimated and stored.

    Attributes:
        order: of the longest n-grams.
        prune: for orders from 1, the count up to which n-grams are left out; the last holds for all higher orders too.
        fallback: take fixed discounts (D1 0.5, D2 1, D3+ 1.5) for an order whose own cannot be estimated, as where a
            text is small or repeats itself; `estimate` says for which orders.
        memory: for sorting, as lmplz reads it: 2G, 50%; it is reserved at once.
        kind: of binary files: `probing` (fast) or `trie` (small).
        quantise: bits of a probability and of a back-off in a trie; None for floats.
    """

    order: int = 5
    prune: tuple[int, ...] = ()
    fallback: bool = False
    memory: str = "1G"
    kind: str = "probing"
    quantise: int | None = None

    def __post_init__(self) -> None:
        bits = self.quantise is None or (self.kind == "trie" and 2 <= self.quantise <= 25)
        rising = len(self.prune) <= self.order and all(a <= b for a, b in pairwise((0, *self.prune)))
        size = re.fullmatch(r"0*[1-9]\d*(\.\d+)?[bkKMGTPEZY%]?", self.memory)
        for holds, message in (
            (2 <= self.order <= MAX_ORDER, f"order {self.order}: expected 2 to {MAX_ORDER}"),
            (size, f"memory {self.memory}: expected a size such as 2G, or a share such as 50%"),
            (self.kind in KINDS, f"no kind {self.kind!r} of binary model: expected {' or '.join(KINDS)}"),
            (bits, f"quantise {self.quantise}: expected 2 to 25 bits, and the kind trie"),
            (rising, f"prune {self.prune}: expected up to {self.order} counts, none below the one before it"),
        ):
            if not holds:
                raise UserError(message)


def estimate(
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    estimation: Estimation | None = None,
    temporary: str | Path | None = None,
) -> dict[str, Any]:
    """Estimate a model from sentences, one a line, and write it to `out`: ARPA if its suffix is .arpa, else binary.

    Args:
        texts: one, or several that are taken as one, plain or compressed by gzip; of data (`scoring.DATA`) the sources.
        out: the file to write.
        estimation: how.
        temporary: a folder for sorting; the system's by default.

    Returns:
        The numbers of `sentences`, `tokens`, `ngrams` of each order; their `discounts` (D1, D2, D3+), the orders with
        fixed ones (`fallback_orders`), `seconds`, and the fields of `estimation`.

    Raises:
        DataError: a text is missing, bad or empty, or too small for its discounts.
        UserError: the programs are not installed, or fail; `out` is one of the texts or cannot be written; or
            `estimation` has options of binary models and `out` is ARPA.
    """
    given = [texts] if isinstance(texts, str | Path) else texts
    estimation, paths, out = estimation or Estimation(), [*map(Path, given)], Path(out)
    _check_suffix(out, estimation)
    check_apart(out, *paths)
    if temporary is not None and not Path(temporary).is_dir():
        raise UserError(f"{temporary}: no such folder to sort in")
    check_writable(out)
    lmplz = program("lmplz")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="compgen-lm-", dir=temporary) as name:
        work = Path(name)
        text, arpa = work / "text", work / "model.arpa"
        with writing(work):
            sentences, tokens = _gathered(paths, text)
        command = [lmplz, "-o", estimation.order, "-S", estimation.memory, "-T", f"{work}/", "--text", text]
        command += ["--arpa", arpa, *(["--discount_fallback"] if estimation.fallback else [])]
        command += ["--prune", *estimation.prune] if estimation.prune else []
        talk = _run(command, paths, estimation)
        with atomic_path(out) as made:
            if out.suffix == ".arpa":
                shutil.copyfile(arpa, made)
            else:
                bits = ["-q", estimation.quantise, "-b", estimation.quantise] if estimation.quantise else []
                build = [program("build_binary"), "-T", f"{work}/", *bits, estimation.kind, arpa, made]
                _run(build, paths, estimation)
    statistics = _STATISTICS.findall(talk)
    return {
        "sentences": sentences,
        "tokens": tokens,
        "ngrams": [int(row[1]) for row in statistics],
        "discounts": [[float(value) for value in row[2:]] for row in statistics],
        "fallback_orders": [int(order) + 1 for order in _FELL_BACK.findall(talk)],
        "seconds": round(time.monotonic() - began, 2),
        **asdict(estimation),
    }


def write_sentences(sentences: Iterable[Sequence[str]], path: Path) -> Path:
    """Write sentences as a text, one a line; return the path.

    Raises:
        DataError: a token is empty or contains a space, so that the text would have other words.
    """
    with atomic_path(path) as temporary:
        temporary.write_text("".join(line_of(tokens, path) for tokens in sentences), encoding="utf-8")
    return path


def _gathered(texts: Sequence[Path], goal: Path) -> tuple[int, int]:
    """Check all texts and join them in one plain file; return the numbers of sentences and tokens."""
    sentences = tokens = 0
    empty = []
    part = goal.with_name("part")
    with goal.open("w", encoding="utf-8") as whole:
        for text in texts:
            with opened(text) as (source, _), part.open("wb") as copy:
                shutil.copyfileobj(source, copy)
            before = tokens
            try:
                for block in score([], part):
                    sentences += len(block.lengths)
                    tokens += int(block.lengths.sum()) - len(block.lengths)
            except DataError as error:
                raise DataError(str(error).replace(f"{part}, line", f"{text}, {unit_of(text)}")) from None
            empty += [str(text)] * (tokens == before)
            # lmplz takes a byte order mark for a letter and a blank line for a sentence.
            with part.open(encoding="utf-8-sig", newline="\n") as lines:
                whole.writelines(" ".join(words) + "\n" for words in map(split_words, lines) if words)
    if empty or not tokens:
        raise DataError(f"{', '.join(empty)}: found no word, expected sentences to estimate a model from")
    return sentences, tokens


def _check_suffix(out: Path, estimation: Estimation) -> None:
    """Raise UserError for a model's name that promises another file than would be written."""
    if out.suffix == ".gz":
        raise UserError(f"{out}: models are not compressed: leave out .gz, or make it binary")
    if out.suffix == ".pt":
        raise UserError(f"{out}: .pt is of recurrent models: choose another suffix, such as .bin")
    if out.suffix == ".arpa" and (estimation.kind, estimation.quantise) != (Estimation.kind, None):
        raise UserError(f"{out}: kind and quantise are of binary models, and .arpa is text: leave one out")


def _run(command: Sequence[object], texts: Sequence[Path], estimation: Estimation) -> str:
    """Run a program of KenLM's; return its messages."""
    words = [str(word) for word in command]
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, text=True, errors="replace", **pipes) as process:  # names of files need not be UTF-8
        said = _said(process, Path(words[0]).name)
    if process.returncode == 0:
        return said
    if "BadDiscountException" in said:
        names = ", ".join(map(name_of, texts))
        found = _REASON.search(said)
        reason = found[1] if found else ""
        raise DataError(
            f"{names}: too small or too regular for the discounts of a {estimation.order}-gram model"
            f"{f' (KenLM: {reason})' if reason else ''}: {_advice(reason)}"
        )
    if any(sign in said for sign in _TOO_LITTLE):
        raise UserError(f"memory {estimation.memory}: too little for lmplz, expected 32M or more, as 1G")
    name, last = Path(words[0]).name, [line for line in plain(said).splitlines() if line.strip()][-3:]
    if name == "lmplz" and "Cannot allocate memory" in said:
        raise UserError(f"memory {estimation.memory}: more than lmplz can have on this machine, expected less")
    if not last or process.returncode == -signal.SIGKILL:  # what was said last was of its progress
        raise UserError(how_it_ended(name, process.returncode))
    raise UserError(f"{name} failed: {' '.join(last)}")


def _advice(reason: str) -> str:
    """What helps where discounts cannot be estimated, by KenLM's words.

    1-grams are counted by the different words before them: neither repeated sentences nor the order change that.
    """
    return f"{FIX}, or more text" if "1-gram" in reason else f"leave out repeated sentences, lower --order, or {FIX}"


def _said(process: "subprocess.Popen[str]", name: str) -> str:
    """What a program says until it ends; it is called by its name.

    Threads of lmplz wait for each other without end where the main one could not write a file: such a program is ended.

    Raises:
        UserError: all its threads sleep, and none has worked for ASLEEP seconds.
    """
    before, since = None, time.monotonic()
    try:
        while True:
            with contextlib.suppress(subprocess.TimeoutExpired):
                return process.communicate(timeout=ASLEEP / 10)[1]
            worked = _ticks_asleep(process.pid)
            if worked is None or worked != before:
                before, since = worked, time.monotonic()
            elif time.monotonic() > since + ASLEEP:
                raise UserError(
                    f"{name} has stopped working, as it does where it cannot write a file: is there room for temporary "
                    "ones? TMPDIR names their folder"
                )
    except BaseException:
        process.kill()
        raise


def _ticks_asleep(pid: int) -> int | None:
    """The processor's ticks that a process has had, if all its threads sleep and the system says so (Linux does)."""
    try:
        texts = [(task / "stat").read_text("utf-8") for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return None
    found = [text.rpartition(")")[2].split() for text in texts]  # from the third field of proc(5) on
    return sum(int(one[11]) + int(one[12]) for one in found) if all(one[0] == "S" for one in found) else None


def fixed_discounts(orders: Sequence[int]) -> str:
    """Name the orders of n-grams with fixed discounts: `3-grams, 5-grams`."""
    return ", ".join(f"{order}-grams" for order in orders)
