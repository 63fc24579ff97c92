"""Perplexity of a text of any length, a block at a time, and the scores of its sentences and tokens as files."""

import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import polars as pl

from compgen.errors import DataError
from compgen.files import atomic_path, open_text, writing
from compgen.lm.mixture import Floats, Mixture, Perplexity
from compgen.lm.scoring import Scores, score


def measure(
    mixture: Mixture, text: str | Path, threads: int = 1, *, sentences: Path | None = None, tokens: Path | None = None
) -> Perplexity:
    """Return the perplexity of a text for a mixture, in memory that grows by one number per sentence only.

    Args:
        mixture: models and weights.
        text: sentences, one a line: a file or `-`.
        threads: the number of threads that score.
        sentences: a file for the `tokens` (its end included), `unknown` and `loss` (nats) of each sentence, as TSV,
            compressed if it ends in .gz.
        tokens: a file, in Parquet, for each token's `sentence` and `position` from 0, `log10` of its probability,
            `matched` and `known` of the first model (see `Scores`).

    Raises:
        DataError: the text is bad or empty.
        UserError: a model cannot be read, or a file cannot be written.
    """
    result = Perplexity()
    with ExitStack() as stack:
        rows = None
        if sentences is not None:
            rows = stack.enter_context(open_text(stack.enter_context(atomic_path(sentences))))
            rows.write("tokens\tunknown\tloss\n")
        parts = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="compgen-lm-"))) if tokens else None
        for number, block in enumerate(score(mixture.models, text, threads)):
            probabilities = mixture.probabilities(block)
            if parts is not None:
                with writing(parts):
                    _tokens(block, probabilities, result.sentences).write_ipc(parts / f"{number:09}.arrow")
            result.add(block, probabilities)
            if rows is not None:
                rows.write(_sentences(block, result.losses[-1]))
        if not result.sentences:
            raise DataError(f"{text}: found no sentence to measure")
        if parts is not None and tokens is not None:
            with atomic_path(tokens) as path:
                pl.scan_ipc(sorted(parts.glob("*.arrow"))).sink_parquet(path)
    return result


def _tokens(block: Scores, probabilities: Floats, first: int) -> pl.DataFrame:
    lengths = block.lengths.astype(np.int64)
    position = np.arange(lengths.sum()) - np.repeat(block.starts, lengths)
    return pl.DataFrame(
        {
            "sentence": first + np.repeat(np.arange(len(lengths)), lengths),
            "position": position.astype(np.uint32),
            "log10": np.log10(probabilities).astype(np.float32),
            "matched": block.matched[0],
            "known": block.known[0],
        }
    )


def _sentences(block: Scores, losses: Floats) -> str:
    unknown = np.add.reduceat((block.matched[0] == 0).astype(np.int64), block.starts)
    columns = zip(block.lengths.tolist(), unknown.tolist(), losses.tolist(), strict=True)
    return "".join(f"{length}\t{count}\t{loss:.6f}\n" for length, count, loss in columns)
