"""Plots, by matplotlib, which is imported only when something is drawn."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.errors import UserError
from compgen.files import atomic_path

FORMATS = (".png", ".svg", ".pdf")
CELL = 0.26  # inches per token


def check_picture(out: Path) -> None:
    """Raise a UserError, before any work, if the suffix is not in FORMATS or matplotlib is not installed."""
    if out.suffix not in FORMATS:
        raise UserError(f"{out}: expected the name of a picture, ending in {', '.join(FORMATS)}")
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        raise UserError("pictures need matplotlib: pip install 'compgen[plot]'") from error


def heat_maps(
    rows: Sequence[str], panels: Sequence[tuple[str, Sequence[str], NDArray[np.floating[Any]]]], out: Path
) -> str:
    """Draw tables of numbers from 0 (white) to 1 (black) side by side.

    Args:
        rows: labels of the rows, for all panels.
        panels: the title, the labels of the columns, and the numbers (rows, columns) of each.
        out: the file, in the format of its suffix. In .svg labels are text, in the viewer's fonts.

    Returns:
        The characters missing from the fonts here, drawn as boxes.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows, panels = _labels(rows), [(title, _labels(columns), values) for title, columns, values in panels]
    widths = [len(columns) for _, columns, _ in panels]
    size = (CELL * sum(widths) + 1.5 + 0.4 * len(panels), CELL * len(rows) + 1.8)
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True, squeeze=False, gridspec_kw={"width_ratios": widths})[0]
    for number, (axis, (title, columns, values)) in enumerate(zip(axes, panels, strict=True)):
        axis.imshow(values, cmap="Greys", vmin=0, vmax=1, aspect="auto")
        axis.set_title(title, fontsize=9)
        axis.set_xticks(range(len(columns)), columns, rotation=90, fontsize=8, parse_math=False)
        axis.tick_params(length=0)
        if number == 0:
            axis.set_yticks(range(len(rows)), rows, fontsize=8, parse_math=False)
    with warnings.catch_warnings(record=True) as said, rc_context({"svg.fonttype": "none"}):
        warnings.simplefilter("always")
        with atomic_path(out) as temporary:
            figure.savefig(temporary, format=out.suffix[1:], dpi=150)
    missing = (re.match(r"Glyph (\d+) .* missing from font", str(warning.message)) for warning in said)
    return "" if out.suffix == ".svg" else "".join(sorted({chr(int(found[1])) for found in missing if found}))


def _labels(tokens: Sequence[str]) -> list[str]:
    """Tokens with unprintable characters, which would corrupt the file, replaced by U+FFFD."""
    return ["".join(letter if letter.isprintable() else "\ufffd" for letter in token) for token in tokens]
