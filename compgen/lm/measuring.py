"""Perplexity of a text of any length, a block at a time; the scores of its sentences and tokens; hypotheses rescored.

`compgen-ngram perplexity` and `compgen-ngram rescore` do the same without Python, and write the same digits.
"""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from polars.io.plugins import register_io_source

from compgen.data.content import suffix_of
from compgen.errors import DataError, UserError
from compgen.files import atomic_path, check_apart, open_text, writing
from compgen.lm.mixture import LN10, Floats, Mixture, Perplexity
from compgen.lm.scoring import DATA, Scores, score


def measure(
    mixture: Mixture | str | Path,
    text: str | Path,
    threads: int = 1,
    *,
    sentences: str | Path | None = None,
    tokens: str | Path | None = None,
) -> Perplexity:
    """Return the perplexity of a text for a mixture, in memory that grows by one number per sentence only.

    Args:
        mixture: models and weights, or the file of a mixture or a model.
        text: sentences, one a line: a file or `-`; of data (`scoring.DATA`) the sources.
        threads: the number of threads that score.
        sentences: a file for the `tokens` (its end included), `unknown` and `loss` (nats) of each sentence, as TSV,
            compressed if it ends in .gz.
        tokens: a file, in Parquet or, by its suffix, .tsv (perhaps .gz), for each token's `sentence` and `position`
            from 0, `log10` of its probability, `matched` and `known` of the first model (see `Scores`).

    Raises:
        DataError: the text is bad or empty.
        UserError: a model cannot be read, models of the mixture know different words, or a file cannot be written, is
            read, too, or has the suffix of a format that it would not be in.
    """
    _check_suffix("sentences", sentences, ".tsv")
    _check_suffix("tokens", tokens, ".tsv", ".parquet")
    result, given = Perplexity(), () if isinstance(mixture, Mixture) else (mixture,)
    mixture = mixture if isinstance(mixture, Mixture) else Mixture.open(mixture)
    for out in (sentences, tokens):
        if out is not None:
            check_apart(Path(out), text, *given, *mixture.models)
    with ExitStack() as stack:
        rows = None
        if sentences is not None:
            rows = stack.enter_context(open_text(stack.enter_context(atomic_path(Path(sentences)))))
            rows.write("tokens\tunknown\tloss\n")
        keep = stack.enter_context(_kept(Path(tokens))) if tokens is not None else None
        for block in score(mixture.models, text, threads, mixed=True):
            log_probs = mixture.log_probs(block)
            if keep is not None:
                keep(_tokens(block, log_probs, result.sentences))
            result.add(block, log_probs)
            if rows is not None:
                columns = zip(block.lengths.tolist(), _unknown(block), result.losses[-1].tolist(), strict=True)
                rows.writelines(f"{length}\t{count}\t{loss:.6f}\n" for length, count, loss in columns)
        if not result.sentences:
            raise DataError(f"{text}: found no sentence to measure")
    return result


def _check_suffix(what: str, out: str | Path | None, *written: str) -> None:
    """Raise UserError for the suffix of a format that is not written: a file of that name would be in another."""
    suffix = suffix_of(out or "")
    if suffix in DATA and suffix not in written:
        raise UserError(f"{out}: {what} are written as {' or '.join(written)}, found the suffix {suffix!r}")


class Rescored(NamedTuple):
    """What a hypothesis is worth.

    Attributes:
        log_prob: ln p of its tokens, the end of the sentence included.
        tokens, unknown: how many, and how many of them are out of vocabulary.
    """

    log_prob: float
    tokens: int
    unknown: int


def rescore(mixture: Mixture | str | Path, text: str | Path, threads: int = 1) -> Iterator[Rescored]:
    """Score each line of a text for a mixture, blank lines included. Lines may be n-best lists of hypotheses.

    Raises:
        DataError: the text is bad.
        UserError: a model cannot be read, or models of the mixture know different words.
    """
    mixture = mixture if isinstance(mixture, Mixture) else Mixture.open(mixture)
    for block in score(mixture.models, text, threads, blank=True, mixed=True):
        log_probs = np.add.reduceat(mixture.log_probs(block), block.starts)
        yield from map(Rescored._make, zip(log_probs.tolist(), block.lengths.tolist(), _unknown(block), strict=True))


@contextmanager
def _kept(tokens: Path) -> Iterator[Callable[[pl.DataFrame], None]]:
    """Yield a function that adds tokens to a file, which appears whole: text by its suffix, or else Parquet."""
    if tokens.suffix == ".tsv" or tokens.name.endswith(".tsv.gz"):
        with atomic_path(tokens) as path, open_text(path) as rows:
            rows.write("sentence\tposition\tlog10\tmatched\tknown\n")

            def write(frame: pl.DataFrame) -> None:
                rows.write(frame.write_csv(include_header=False, separator="\t", float_precision=6))

            yield write
        return
    with tempfile.TemporaryDirectory(prefix="compgen-lm-") as folder:
        parts: list[Path] = []

        def keep(frame: pl.DataFrame) -> None:
            parts.append(Path(folder) / f"{len(parts):09}.arrow")
            with writing(parts[-1]), parts[-1].open("wb") as stream:  # Polars takes no path that is not UTF-8
                frame.cast({"log10": pl.Float32}).write_ipc(stream)

        def again(*_: object) -> Iterator[pl.DataFrame]:
            for part in parts:
                with part.open("rb") as stream:
                    yield pl.read_ipc(stream)

        yield keep
        with atomic_path(tokens) as path, path.open("wb") as table:
            register_io_source(again, schema=next(again()).schema).sink_parquet(table)


def _tokens(block: Scores, log_probs: Floats, first: int) -> pl.DataFrame:
    lengths = block.lengths.astype(np.int64)
    position = np.arange(lengths.sum()) - np.repeat(block.starts, lengths)
    return pl.DataFrame(
        {
            "sentence": first + np.repeat(np.arange(len(lengths)), lengths),
            "position": position.astype(np.uint32),
            "log10": log_probs / LN10,
            "matched": block.matched[0],
            "known": block.known[0],
        }
    )


def _unknown(block: Scores) -> list[int]:
    """Return how many tokens of each sentence are out of vocabulary."""
    counts: list[int] = np.add.reduceat((block.matched[0] == 0).astype(np.int64), block.starts).tolist()
    return counts
