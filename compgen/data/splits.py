"""Splits at random, and those that ask for compositional generalisation: by template, length and divergence.

Each function divides all examples of a dataset anew, ignoring their splits, into `train` and `test`; examples keep
their order. `with_dev` takes a part for development out of `test`, so that the two share no source. All raise DataError
where there are no examples, or not enough for both parts.
"""

import math
from collections.abc import Callable
from inspect import signature
from typing import Any, TypeGuard, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from compgen.data.compounds import INVENTORY, Inventory, Side, remark_on_few, usual_inventory
from compgen.data.examples import SIDES, TRAIN, Dataset
from compgen.data.ragged import Ints
from compgen.data.random import Purpose, shuffle_templates, stream
from compgen.data.search import REST, Goal, search
from compgen.errors import DataError, UserError, checked_draws, whole

TEST = "test"
DEV = "dev"
_MCD_TRAIN, _MCD_TEST = 0.4, 0.1  # of all examples, as in the published MCD splits of SCAN


def at_random(dataset: Dataset, train: int | None = None, seed: int = 0) -> Dataset:
    """Return a split with examples drawn at random in `train`, by default half of all, and the rest in `test`.

    Equal examples may be in both parts.
    """
    size = _size(dataset, train)
    return _divided(dataset, stream(Purpose.RANDOM_SPLIT, seed).permutation(len(dataset))[:size])


def by_template(dataset: Dataset, train: int | None = None, seed: int = 0, side: Side = "target") -> Dataset:
    """Return a split with no target in two parts (Finegan-Dollak et al. 2018; as Shaw et al. 2021 do it on GeoQuery).

    Templates, in the order of their first occurrence, are shuffled; `train` gets whole templates until one would make
    it larger than `train` examples, by default half of all, and `test` the rest. A template is a target: names and
    numbers in it should stand as placeholders, as in GeoQuery's `m0`. With 440 examples and the seeds 1, 2, 3 these are
    the published splits of GeoQuery. By `side` equal sources stay together instead, where they have several targets.
    """
    size = _size(dataset, train)
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, tokens in enumerate(dataset.frame[side].to_list()):
        groups.setdefault(tuple(tokens), []).append(row)
    if len(groups) < 2:
        raise DataError(f"found one template, the same {side} everywhere: expected at least two to divide")
    templates = list(groups.values())
    shuffle_templates(templates, seed)
    chosen: list[int] = []
    for rows in templates:
        if len(chosen) + len(rows) > size:
            break
        chosen += rows
    if not chosen:
        raise DataError(
            f"the first template drawn has {len(templates[0]):,} examples, expected at most the {size:,} to train on: "
            "try more examples to train on, or another seed (--seed of `cgen data split`)"
        )
    return _divided(dataset, np.array(chosen))


def by_length(dataset: Dataset, train: int | None = None, side: Side = "source") -> Dataset:
    """Return the split with the shortest examples in `train`, by default half of all, and the rest in `test`.

    Of equally long examples the earlier are taken, so one length may be in both parts. The published length split of
    GeoQuery is this one for 440.
    """
    lengths = dataset.frame[side].list.len().to_numpy()
    return _divided(dataset, np.argsort(lengths, kind="stable")[: _size(dataset, train)])


def tmcd(
    dataset: Dataset,
    train: int | None = None,
    seed: int = 0,
    least: int = 2,
    divergence: float = 1.0,
    inventory: Inventory | None = None,
) -> Dataset:
    """Return a split with divergent compounds, and each test atom in `least` training examples (Shaw et al. 2021).

    From a random split with `train` examples to train on, by default half of all, pairs of examples are swapped until
    no swap raises the divergence of compounds, or it reaches `divergence`. Deviation: the published program takes the
    first swap that helps, up to 1,000 of them, and estimates its effect as if no example had a compound twice. Here the
    best swaps are taken, many at once, and the effect is exact; so splits differ, and are more divergent.

    Raises:
        DataError: the atoms do not allow it, or brackets do not match.
    """
    size = _size(dataset, train)
    return _search(dataset, size, len(dataset) - size, seed, Goal(wanted=divergence, least=least), inventory)


def mcd(
    dataset: Dataset,
    train: int | None = None,
    test: int | None = None,
    seed: int = 0,
    divergence: float = 1.0,
    atoms: float = 0.02,
    inventory: Inventory | None = None,
) -> Dataset:
    """Return a split with divergent compounds, and atoms' divergence at most `atoms` (Keysers et al. 2020).

    Parts have `train` and `test` examples, by default 40% and 10% of all as in the published splits of SCAN. The others
    are left out, which allows far more divergence. Every test atom is in training. Deviation: the paper's algorithm is
    greedy and its compounds have weights; this one swaps examples, starting from a random split, without weights.

    Raises:
        DataError: the atoms do not allow it, or brackets do not match.
    """
    count = _nonempty(dataset)
    ours = max(int(_MCD_TRAIN * count), 1) if train is None else train
    theirs = max(int(_MCD_TEST * count), 1) if test is None else test
    if ours < 1 or theirs < 1 or ours + theirs > count:
        raise DataError(f"found {count:,} examples, expected as many as in train ({ours:,}) and test ({theirs:,})")
    return _search(dataset, ours, theirs, seed, Goal(wanted=divergence, atoms=atoms), inventory)


RULES: dict[str, Callable[..., Dataset]] = {
    "random": at_random,
    "template": by_template,
    "length": by_length,
    "tmcd": tmcd,
    "mcd": mcd,
}
_COMMON = {"dataset", "train", "test", "seed"}  # parameters of rules that are not among the `options` of `divided`


def with_dev(dataset: Dataset, count: int, seed: int = 0) -> Dataset:
    """Return the dataset with `count` examples of `test`, drawn at random, moved to `dev`.

    All examples of a source are in one part, so that what is chosen on `dev` has not seen `test`. Sources with more
    examples than are still to be moved stay, so there may be fewer than `count`.
    """
    tested = dataset.frame["split"] == TEST
    rows = tested.arg_true().to_numpy()
    if not 0 <= count < len(rows):
        raise DataError(f"found {len(rows):,} examples to test on, expected more than the {count:,} for {DEV}")
    drawn = stream(Purpose.DEVELOPMENT, seed).permutation(rows)
    groups = dataset.frame[drawn].group_by("source", maintain_order=True).len()
    chosen, left = [], count
    for place, size in enumerate(groups["len"]):
        if size <= left:
            chosen.append(place)
            left -= size
    if count and not chosen:
        raise DataError(f"every source to test on has more examples than the {count:,} for {DEV}: ask for more")
    moved = tested & dataset.frame["source"].is_in(groups["source"][chosen].implode())
    return Dataset(dataset.frame.with_columns(split=pl.when(moved).then(pl.lit(DEV)).otherwise(pl.col("split"))))


def in_both(dataset: Dataset) -> tuple[int, int]:
    """Return how many examples of `test` are in `train`, too, and how many have a source that is there."""
    train, tested = (dataset.split(part).frame.select(SIDES) for part in (TRAIN, TEST))
    return tested.join(train, on=SIDES, how="semi").height, tested.join(train, on="source", how="semi").height


def divided(
    dataset: Dataset,
    by: str,
    /,
    train: float | None = None,
    test: float | None = None,
    *,
    dev: float = 0,
    seed: int = 0,
    **options: Any,
) -> Dataset:
    """Return a split by a rule of RULES.

    Args:
        dataset: what to divide; its splits are ignored.
        by: random, template, length, tmcd or mcd.
        train: how many examples to train on, or a share below 1; by default half of them, for mcd 40 %.
        test: in place of `train`; for mcd beside it, by default 10 %.
        dev: how many of the test examples to move to `dev`, or a share of all.
        seed: fixes all that is drawn.
        options: of the rule: side (template, length), least and divergence (tmcd), divergence and atoms (mcd), and
            inventory (tmcd, mcd).

    Raises:
        UserError: there is no such rule or option, or sizes that leave nothing.
    """
    if not isinstance(by, str) or by not in RULES:
        raise UserError(f"no rule {by!r:.40}: expected one of {', '.join(RULES)}")
    parameters = set(signature(RULES[by]).parameters)
    _check_options(by, parameters - _COMMON, options)
    for name, size in (("train", train), ("test", test), ("dev", dev or None)):
        if size is not None and not (_is_number(size) and size > 0):
            raise UserError(f"{name} {size!r:.40}: expected a number of examples, or a share below 1")
    _, fixed = checked_draws("split", None, seed)
    if by == "mcd":
        sizes = {name: size and count_of(size, dataset) for name, size in (("train", train), ("test", test))}
    else:
        sizes = {"train": training_size(dataset, train, test)}
    if "seed" in parameters:
        options["seed"] = fixed
    parts = RULES[by](dataset, **sizes, **options)
    return with_dev(parts, count_of(dev or 0, dataset), fixed)


def _check_options(by: str, known: set[str], options: dict[str, Any]) -> None:
    """Raise UserError for an option that a rule does not have, or for an impossible value."""
    for name, value in options.items():
        if name not in known:
            names = ", ".join(["train", "test", "dev", "seed", *sorted(known)])
            raise UserError(f"no option {name!r:.40} of {by}: expected some of {names}")
        expected, fits = _OPTIONS[name]
        if not fits(value):
            raise UserError(f"{name} {value!r:.40}: expected {expected}")


def _is_number(value: object) -> TypeGuard[float]:
    real = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    return real and math.isfinite(cast(float, value))


# What an option of a rule may be, in words and as a test.
_SHARE: tuple[str, Callable[[Any], bool]] = ("a number from 0 to 1", lambda one: _is_number(one) and 0 <= one <= 1)
_OPTIONS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "side": ("source or target", lambda one: isinstance(one, str) and one in SIDES),
    "least": ("a whole number of 0 or more", lambda one: (number := whole(one)) is not None and number >= 0),
    "divergence": _SHARE,
    "atoms": _SHARE,
    "inventory": (INVENTORY, lambda one: isinstance(one, Inventory | None)),
}


def remarks(parts: Dataset) -> list[str]:
    """Say of a split how many of its test examples, or their sources, are in training."""
    shared, heard = in_both(parts)
    tested = parts.splits.get(TEST, 0)
    found = []
    if shared:
        found.append(
            f"{shared:,} of {tested:,} test examples are in train, too, as DATA repeats them, so they test memory: "
            "split what `cgen check DATA --fix OUT` leaves, or split by template"
        )
    if heard > shared:
        found.append(
            f"{heard - shared:,} of {tested:,} test examples have a source that is in train with another target: "
            "a split by template with --side source (side) keeps equal sources together"
        )
    return found


def training_size(dataset: Dataset, train: float | None, test: float | None) -> int | None:
    """Return how many examples to train on, of numbers or shares of examples to train or to test on; None for neither.

    Raises:
        UserError: both are given, or no example is left to train on.
    """
    if test is None:
        return None if train is None else count_of(train, dataset)
    if train is not None:
        raise UserError("give train or test: the rest is the other part")
    left = len(dataset) - count_of(test, dataset)
    if left < 1:
        raise UserError(f"test {test:g}: expected fewer than the {len(dataset):,} examples that there are")
    return left


def count_of(asked: float, dataset: Dataset) -> int:
    """Return how many examples are asked for: a share of a dataset if it is below 1, else the number itself.

    Raises:
        DataError: no whole number, or a share that is none or all of two examples or more.
    """
    if asked < 1:
        count, there = round(asked * len(dataset)), len(dataset)
        if asked and there > 1 and count in (0, there):
            raise DataError(
                f"a share of {asked:g} is {count:,} of {there:,} examples, expected 1 or more, and not all: give "
                "another share, or a number of examples"
            )
        return count
    if not float(asked).is_integer():
        raise DataError(f"found a size of {asked:g}, expected a whole number of examples, or a share below 1")
    return int(asked)


def _nonempty(dataset: Dataset) -> int:
    if not len(dataset):
        raise DataError("found no examples, expected some to divide")
    return len(dataset)


def _size(dataset: Dataset, train: int | None) -> int:
    """Return the size of the training part, where the rest is the test part."""
    count = _nonempty(dataset)
    if count == 1:
        raise DataError("found 1 example, expected two or more to divide")
    size = count // 2 if train is None else train
    if not 0 < size < count:
        raise DataError(f"found {count:,} examples, expected more than the {size:,} to train on, and those at least 1")
    return size


def _divided(dataset: Dataset, train: Ints) -> Dataset:
    """Return the dataset with these rows in `train` and all others in `test`."""
    names = np.full(len(dataset), TEST, dtype=object)
    names[train] = TRAIN
    return _named(dataset, names)


def _named(dataset: Dataset, splits: NDArray[np.object_]) -> Dataset:
    return Dataset(dataset.frame.with_columns(pl.Series("split", splits.tolist(), dtype=pl.String)))


def _search(dataset: Dataset, train: int, test: int, seed: int, goal: Goal, inventory: Inventory | None) -> Dataset:
    """Return the result of a search that starts from a random split, without the examples in neither part."""
    if not (0 <= goal.wanted <= 1 and goal.atoms >= 0 and goal.least >= 0):
        raise DataError(
            f"found a divergence of {goal.wanted:g}, one of atoms of {goal.atoms:g}, each atom {goal.least} times: "
            "expected a divergence between 0 and 1, and no negative number"
        )
    inventory = inventory or usual_inventory(dataset)
    compounds = inventory.compounds(dataset)
    if not any(compounds):
        raise DataError(
            "found no compounds in any example, expected function applications in brackets, or n-grams: choose others "
            "(--compounds of `cgen data split`, inventory in Python)"
        )
    remark_on_few(compounds)
    part = np.repeat(np.arange(3), [train, test, len(dataset) - train - test])
    part = stream(Purpose.DIVERGENCE_SPLIT, seed).permutation(part)
    found = search(inventory.atoms(dataset), compounds, part, goal)
    divided = _named(dataset, np.array([TRAIN, TEST, ""], dtype=object)[found])
    return Dataset(divided.frame.filter(found != REST))
