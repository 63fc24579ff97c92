"""Concatenation: two examples one after the other are a third (Jia and Liang 2016, rule "concat-2").

What GECA's table 2 calls "+ concat".
"""

from compgen.data.examples import Dataset, check_sides
from compgen.data.random import Purpose, stream
from compgen.data.vocabulary import SPECIALS
from compgen.errors import DataError, ExhaustedError, UserError, check_draws


class Concat:
    """An augmenter that writes one example behind another, on both sides."""

    def __init__(self, separator: str | None = "|") -> None:
        """`separator` is the token between the two; None for none.

        Raises:
            UserError: it is a symbol that data cannot hold, such as the `</s>` that Jia and Liang write.
        """
        if separator in SPECIALS:
            raise UserError(f"separator {separator}: models and vocabularies give it a meaning of their own")
        self.between = [] if separator is None else [separator]
        self.examples: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def fit(self, dataset: Dataset) -> "Concat":
        """Take the distinct examples of a dataset.

        Raises:
            DataError: there is none, or some are pairs and others are not.
        """
        check_sides(dataset.frame, "concat")
        self.examples = sorted({(tuple(source), tuple(target)) for source, target in dataset.pairs()})
        if not self.examples:
            raise DataError("concat: found no example, expected some to put together")
        return self

    def sample(self, count: int, seed: int = 0) -> Dataset:
        """The concatenations of `count` distinct pairs of examples; the two of a pair may be the same.

        Two pairs may read alike where the separator is none or stands in the data.

        Raises:
            UserError: `fit` was not called, or a number is out of range.
            ExhaustedError: there are fewer than `count`.
        """
        size = len(self.examples)
        if not size:
            raise UserError("fit the augmenter to a dataset before sampling from it")
        check_draws("concat", count, seed)
        if count > size**2:
            raise ExhaustedError(f"concat: {size:,} distinct examples give {size**2:,} pairs, fewer than {count:,}")
        pairs = stream(Purpose.CONCATENATION, seed).choice(size**2, count, replace=False)
        return Dataset.from_pairs(self._joined(*divmod(pair, size)) for pair in pairs.tolist())

    def _joined(self, first: int, second: int) -> tuple[list[str], list[str]]:
        one, two = self.examples[first], self.examples[second]
        # The target of a sentence stays empty.
        source, target = ([*a, *(self.between if a or b else []), *b] for a, b in zip(one, two, strict=True))
        return source, target
