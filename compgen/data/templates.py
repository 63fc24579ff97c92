"""Templates: what examples of one kind have in common. Selections and figures of diversity go by them."""

import polars as pl

from compgen.data.examples import SIDES, Dataset
from compgen.data.unimorph import is_analysis, split_tags
from compgen.errors import DataError

BLANK = "\x1f"  # what no token has: tokens are joined by it, and it alone stands for a copied one in a template


def tags(dataset: Dataset) -> pl.Series:
    """Return the tags of the source of each example of inflection, in order.

    Raises:
        DataError: a source has none.
    """
    found = []
    for source in dataset.frame["source"].to_list():
        letters, named = split_tags(source)
        if not named:
            raise DataError(
                f"found the source {' '.join(letters)!r} without a tag, expected words of inflection; for other data "
                "give --template shape, length or template (a column), or choose --by random, highloss or lowloss"
            )
        found.append(" ".join(named))
    return pl.Series("template", found, dtype=pl.String)


def lengths(dataset: Dataset) -> pl.Series:
    """Return the number of tokens of each source."""
    return dataset.frame["source"].list.len().alias("template")


def shapes(dataset: Dataset) -> pl.Series:
    """Return the target of each example, with a blank (BLANK) for each token that is in the source too.

    Of sentences, return the source.
    """
    frame = dataset.frame.select(SIDES)
    if not (frame["target"].list.len() > 0).any():
        return frame["source"].list.join(BLANK).alias("template")
    rows = frame.with_row_index("row")
    held = rows.select("row", token="source").explode("token").unique().with_columns(shared=True)
    tokens = (
        rows.select("row", token="target")
        .explode("token")
        .join(held, on=["row", "token"], how="left", maintain_order="left")
    )
    blanked = tokens.select("row", token=pl.when("shared").then(pl.lit(BLANK)).otherwise("token"))
    joined = blanked.group_by("row").agg(template=pl.col("token").str.join(" "))
    found = rows.select("row").join(joined, on="row", how="left", maintain_order="left")  # empty targets have no token
    return found["template"].fill_null("")


def usual(dataset: Dataset) -> pl.Series:
    """Return tags if all sources are the letters of a lemma and tags, else shapes."""
    for source in dataset.frame["source"].to_list():
        if not is_analysis(source):
            return shapes(dataset)
    return tags(dataset)
