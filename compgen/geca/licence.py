"""Why a synthesised example exists: the training examples that license it (Andreas 2020, section 3, figure 1)."""

import numpy as np
import polars as pl

from compgen.augmenters.base import Pieces, Shown
from compgen.geca.compose import Composer
from compgen.geca.corpus import SEPARATOR
from compgen.geca.realise import occurrences, realise
from compgen.geca.tables import Tables

_MIDDLE = -2  # where source and target meet


def licence(composer: Composer, template: int, fragment: int) -> list[Shown]:
    """Return the example made of a template and a fragment, and three training examples that license it.

    The first has a fragment in a group, by another template than that of the third. The second has the new fragment in
    the same group. The third lends its template; it has the fragment of the first (in the mode `reference` with
    windows, perhaps another fragment in the same environment). Of several licences, the one whose examples come first
    is returned.

    Raises:
        ValueError: nothing licenses it.
    """
    tables = composer.tables
    for frame in tables.store.partitions():
        if not (frame["template"] == template).any():
            continue
        rows, evidence = composer.hosts(frame)
        own = rows.filter(pl.col("template") == template)
        lenders = tables.licences.filter(pl.col("fragment") == fragment).select("group", lender="example")
        shared = evidence.filter(pl.col("host").is_in(own[tables.host].unique().implode()))
        found = shared.join(tables.licences, on="fragment").join(lenders, on="group")
        found = found.filter(pl.col("without").is_null() | (pl.col("without") != pl.col("group")))
        if found.is_empty():
            break
        first = found.sort("example", "lender", "fragment").row(0, named=True)
        # The host's own row with the shared fragment, if it has one.
        host = own.sort(pl.col("fragment") != first["fragment"], "example").row(0, named=True)
        return [
            _marked("made", tables, host["example"], host["fragment"], fragment),
            _marked("first", tables, _sharing(tables, first["group"], first["fragment"], template), first["fragment"]),
            _marked("second", tables, first["lender"], fragment),
            _marked("template of", tables, host["example"], host["fragment"]),
        ]
    raise ValueError(f"no licence for fragment {fragment} in template {template}")


def _sharing(tables: Tables, group: int, fragment: int, template: int) -> int:
    """Return the first example that has a fragment in a group, by another template than the host's."""
    wanted = (pl.col(tables.group) == group) & (pl.col("fragment") == fragment) & (pl.col("template") != template)
    found = pl.concat(frame.filter(wanted).select("example") for frame in tables.store.partitions())
    return int(found["example"].to_numpy().min())


def _marked(label: str, tables: Tables, example: int, fragment: int, filling: int | None = None) -> Shown:
    """Show an example with the gaps of a fragment marked, or with what fills them."""
    enumerator = tables.enumerator
    which, cut = np.array([example]), np.array([fragment], dtype=np.uint64)
    new = np.array([fragment if filling is None else filling], dtype=np.uint64)
    tokens = realise(enumerator, which, cut, new).tokens
    where = occurrences(enumerator, which, cut)
    spans = enumerator.packing.unpack(new)[0]
    words = enumerator.corpus.words.gather(tokens).to_list()
    plain = list(zip(words, np.where(tokens == SEPARATOR, _MIDDLE, -1).tolist(), strict=True))
    pieces: Pieces = []
    done = moved = 0  # tokens in `pieces`; how far the rest has moved to the right
    for position, gap, length in zip(where.position.tolist(), where.gap.tolist(), where.length.tolist(), strict=True):
        start = position - int(enumerator.corpus.starts[example]) + moved
        stop = start + int(enumerator.spans.lengths[spans[gap]])
        pieces += plain[done:start]
        pieces.append((" ".join(words[start:stop]), gap))
        done, moved = stop, moved + stop - start - length
    pieces += plain[done:]
    middle = [gap for _, gap in pieces].index(_MIDDLE)
    return Shown(label, pieces[1:middle], pieces[middle + 1 : -1])
