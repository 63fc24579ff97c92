"""Select synthetic examples to train on: diverse ones, uncertain ones, or both (Samir and Silfverberg 2023, 4.2).

A template is what examples should differ in (`compgen.data.templates`): for inflection the tags. Strategies:

- `random`: draw examples uniformly.
- `umt`, `emt`: draw a template, uniformly (alpha = 0) or by its frequency (alpha = 1), then an example of it.
- `highloss`, `lowloss`: take the examples that a predictor finds least, or most probable.
- `umt+loss`, `emt+loss`: draw a template, then take its least probable example.

Nothing is taken twice. The paper writes the probability of an example as that of its template; what it describes, and
what is done here, is to draw templates.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.examples import Dataset
from compgen.data.ragged import Ints
from compgen.data.random import Purpose, Stream, stream
from compgen.data.templates import lengths, shapes, tags, usual
from compgen.errors import DataError, UserError

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Strategy:
    """How examples are selected."""

    alpha: float | None = None  # templates are drawn from p^alpha, p their frequency; None ignores templates
    sign: int = 0  # 1 takes the least probable examples first, -1 the most probable; 0 ignores losses


STRATEGIES = {
    "random": Strategy(),
    "umt": Strategy(0.0),
    "emt": Strategy(1.0),
    "highloss": Strategy(None, 1),
    "lowloss": Strategy(None, -1),
    "umt+loss": Strategy(0.0, 1),
    "emt+loss": Strategy(1.0, 1),
}

KINDS: dict[str, Callable[[Dataset], pl.Series]] = {"tags": tags, "shape": shapes, "length": lengths}  # of templates


def templates_of(
    candidates: Dataset, count: int, strategy: str, templates: pl.Series | None = None
) -> pl.Series | None:
    """Check the arguments of `select` (but losses), and return the templates that it needs; None if none."""
    size = len(candidates)
    if not isinstance(strategy, str) or strategy not in STRATEGIES:
        raise UserError(f"no strategy {strategy!r}: expected one of {', '.join(STRATEGIES)}")
    if count < 1:
        raise UserError(f"found a count of {count}, expected 1 or more")
    if count > size:
        raise DataError(f"{count:,} examples cannot be selected of {size:,} candidates: ask for at most {size:,}")
    if STRATEGIES[strategy].alpha is None:
        return None
    column = usual(candidates) if templates is None else templates
    if len(column) != size:
        raise UserError(f"{size:,} candidates have {len(column):,} templates")
    if missing := column.null_count():
        raise UserError(f"{missing:,} of {size:,} candidates have no template: expected one of each")
    return column


def select(
    candidates: Dataset,
    count: int,
    strategy: str = "umt+loss",
    *,
    templates: pl.Series | None = None,
    losses: Floats | None = None,
    seed: int = 0,
) -> Dataset:
    """Select `count` synthetic examples, in the order in which they are taken.

    Args:
        candidates: synthetic examples of any augmenter.
        count: how many to take.
        strategy: one of STRATEGIES.
        templates: of each candidate; by default its tags, or its shape where there are no tags.
        losses: of each candidate (`Predictor.losses`), for the strategies that use them.
        seed: of the random draws.
    """
    size = len(candidates)
    column = templates_of(candidates, count, strategy, templates)
    how = STRATEGIES[strategy]
    if how.sign and (losses is None or len(losses) != size):
        found = "none" if losses is None else f"{len(losses):,}"
        raise UserError(f"{strategy} needs a loss of each of the {size:,} candidates: found {found}")
    random = stream(Purpose.SELECTION, seed)
    order = random.permutation(size)  # also breaks ties
    if losses is not None and how.sign:
        order = order[np.argsort(-how.sign * losses[order], kind="stable")]
    if column is not None and how.alpha is not None:
        numbers = column.rank("dense").to_numpy().astype(np.int64) - 1
        order = _by_template(numbers, order, count, how.alpha, random)
    return Dataset(candidates.frame[order[:count]])


def templates_by(candidates: Dataset, kind: str) -> pl.Series:
    """Return the templates of candidates by kind: tags, shape, length or template, the column of that name, as text.

    Raises:
        UserError: there is no such kind, or a candidate has no template.
    """
    if isinstance(kind, str) and kind in KINDS:
        return KINDS[kind](candidates)
    if kind != "template":
        raise UserError(f"no template {kind!r:.40}: expected one of {', '.join(KINDS)}, template")
    found: pl.Series | None = candidates.frame.get_column("template", default=None)
    if found is None or found.has_nulls() or found.dtype.is_nested():
        raise UserError("expected a `template` with every example, as JSON lines and Parquet can have")
    return found.cast(str)


def _by_template(templates: Ints, order: Ints, count: int, alpha: float, random: Stream) -> Ints:
    """Draw templates (numbers from 0) from p^alpha, and take the next of each in `order`."""
    sizes = np.bincount(templates)
    queues = order[np.argsort(templates[order], kind="stable")]  # template by template, each in order
    starts = np.cumsum(sizes) - sizes
    taken = np.zeros(len(sizes), dtype=np.int64)
    found: list[Ints] = []
    missing = count
    while missing:
        weight = np.where(taken < sizes, sizes.astype(np.float64) ** alpha, 0.0)
        drawn = random.choice(len(sizes), size=missing, p=weight / weight.sum())
        # Draws of used-up templates are dropped: the rest are draws from the other templates.
        earlier = pl.DataFrame({"template": drawn}).select(pl.int_range(pl.len()).over("template"))
        place = taken[drawn] + earlier.to_series().to_numpy()  # how many of the template are taken, or drawn before
        kept = place < sizes[drawn]
        found.append(queues[starts[drawn[kept]] + place[kept]])
        taken += np.bincount(drawn, minlength=len(sizes))
        missing -= int(kept.sum())
    return np.concatenate(found)
