"""Splits that ask for compositional generalisation, and how far a split's parts are apart.

The commands `template`, `length`, `tmcd` and `mcd` of `compgen data split`, and `compgen data divergence`.
"""

import functools
import operator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli.common import DataArgument, OutOption, SeedOption, SplitOption, console, load_split, writable_format
from compgen.record import named

if TYPE_CHECKING:
    from compgen.data.compounds import Divergences, Inventory
    from compgen.data.examples import Dataset

SIDES = ("source", "target")

TrainOption = Annotated[
    int | None,
    typer.Option("--train", min=1, metavar="N", help="Examples to train on; by default half.", show_default=False),
]
DevOption = Annotated[
    int, typer.Option("--dev", min=0, metavar="N", help="Of the test part, draw N examples as the part dev.")
]
WantedOption = Annotated[
    float,
    typer.Option(
        "--divergence", min=0, max=1, metavar="D", help="Come close to this divergence of compounds; 1: the largest."
    ),
]
CompoundsOption = Annotated[
    str | None,
    typer.Option(
        "--compounds",
        metavar="KIND",
        help="tree: function applications in targets with ( ) and , as tokens; source or target: n-grams of that side. "
        "By default tree if any target has brackets, else source.",
        show_default=False,
    ),
]
NgramOption = Annotated[
    int | None,
    typer.Option(
        "--ngram",
        min=2,
        metavar="N",
        help="Compounds of sequences are 2 to N tokens long; by default 3.",
        show_default=False,
    ),
]
PlainOption = Annotated[
    bool, typer.Option("--plain-atoms", help="Atoms of trees are names alone, without their number of arguments.")
]


def template(
    data: DataArgument,
    out: OutOption,
    train: TrainOption = None,
    dev: DevOption = 0,
    split: SplitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Let no target be in both train and test: whole groups of equal targets are drawn (Shaw et al. 2021).

    Names in targets should stand as placeholders, like m0, or else templates that differ in names alone are two.
    On GeoQuery, --train 440 with the seeds 1, 2 and 3 gives the published splits.

    Example: compgen data split template geoquery.tsv --train 440 --dev 110 --seed 1 -o template1.tsv
    """
    from compgen.data.splits import by_template

    _write(by_template(_load(data, out, split), train, seed), out, dev, seed)


def length(
    data: DataArgument,
    out: OutOption,
    train: TrainOption = None,
    dev: DevOption = 0,
    side: Annotated[str, typer.Option("--side", metavar="SIDE", help="Whose tokens count: source or target.")] = SIDES[
        0
    ],
    split: SplitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Train on the shortest examples, test on the others (Shaw et al. 2021). The seed is for --dev alone.

    Of examples that are as long as the longest to train on, the first in DATA are trained on. SCAN's own length split
    goes by targets: --side target --train 16990.

    Example: compgen data split length geoquery.tsv --train 440 --dev 110 -o length.tsv
    """
    from compgen.data.splits import by_length
    from compgen.errors import UserError

    if side not in SIDES:
        raise UserError(f"--side {side}: expected source or target")
    _write(by_length(_load(data, out, split), train, "source" if side == SIDES[0] else "target"), out, dev, seed)


def tmcd(
    data: DataArgument,
    out: OutOption,
    train: TrainOption = None,
    dev: DevOption = 0,
    least: Annotated[
        int, typer.Option("--least", min=0, metavar="M", help="Every test atom is in so many training examples.")
    ] = 2,
    wanted: WantedOption = 1.0,
    compounds: CompoundsOption = None,
    ngram: NgramOption = None,
    plain_atoms: PlainOption = False,
    split: SplitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Let train and test differ in compounds, while training knows each test atom (TMCD; Shaw et al. 2021).

    All examples are in one part or the other. Atoms are what targets are made of, compounds which function takes what
    as its first, second ... argument. The published splits of GeoQuery have divergences of 0.13 to 0.24; the largest
    is more: ask for those with --divergence. Those of Shaw et al. have --train 440 --least 1 --plain-atoms.

    Example: compgen data split tmcd geoquery.tsv --train 440 --dev 110 --seed 1 -o tmcd1.tsv
    """
    from compgen.data.splits import tmcd

    dataset = _load(data, out, split)
    inventory = _inventory(dataset, compounds, ngram, plain_atoms)
    _write(tmcd(dataset, train, seed, least, wanted, inventory), out, dev, seed, inventory)


def mcd(
    data: DataArgument,
    out: OutOption,
    train: Annotated[
        int | None,
        typer.Option("--train", min=1, metavar="N", help="Examples to train on; by default 40%.", show_default=False),
    ] = None,
    test: Annotated[
        int | None,
        typer.Option("--test", min=1, metavar="N", help="Examples to test on; by default 10%.", show_default=False),
    ] = None,
    dev: DevOption = 0,
    atoms: Annotated[
        float, typer.Option("--atoms", min=0, max=1, metavar="D", help="The largest divergence of atoms.")
    ] = 0.02,
    wanted: WantedOption = 1.0,
    compounds: CompoundsOption = None,
    ngram: NgramOption = None,
    plain_atoms: PlainOption = False,
    split: SplitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Let train and test differ in compounds, but hardly in atoms (MCD; Keysers et al. 2020).

    Examples in neither part are left out: the more they are, the larger the divergence can be. Every atom of the test
    part is in training. SCAN takes half a minute or less.

    Example: compgen data split mcd scan/simple --seed 1 -o mcd1.tsv
    """
    from compgen.data.splits import mcd

    dataset = _load(data, out, split)
    inventory = _inventory(dataset, compounds, ngram, plain_atoms)
    parts = mcd(dataset, train, test, seed, wanted, atoms, inventory)
    found = _write(parts, out, dev, seed, inventory)
    if found is not None and found.atoms > atoms + 5e-5:  # as it is printed
        console().print(
            f"atoms diverge more than --atoms {atoms:g}: take more examples, or leave more out by smaller parts",
            highlight=False,
        )


def divergence(
    data: DataArgument,
    split: Annotated[
        list[str] | None,
        typer.Option(
            "--split",
            metavar="S",
            help="The split of DATA to test on; may be repeated. By default all but those to train on, taken together.",
        ),
    ] = None,
    train: Annotated[
        str | None, typer.Option("--train", metavar="DATA", help="Training data; by default DATA itself.")
    ] = None,
    train_split: Annotated[str, typer.Option("--train-split", metavar="S", help="Their split.")] = "train",
    compounds: CompoundsOption = None,
    ngram: NgramOption = None,
    plain_atoms: PlainOption = False,
    json: Annotated[bool, typer.Option("--json", help="Print a line of JSON in place of words.")] = False,
) -> None:
    """Print how far the parts of a split are apart, in atoms and in compounds.

    Divergence is 0 where both have the same relative frequencies, and 1 where they have nothing in common: 1 less the
    Chernoff coefficient, alpha 0.5 for atoms and 0.1 for compounds (Keysers et al. 2020).

    Example: compgen data divergence template1.tsv
    """
    from compgen.data.catalog import load
    from compgen.data.compounds import measure
    from compgen.errors import UserError

    if data == train == "-":
        raise UserError("standard input (-) can be read only once: give files")
    tested = load(data)
    trained = tested if train is None or named(train) == named(data) else load(train)
    wanted = split or [name for name in tested.splits if trained is not tested or name != train_split]
    if not wanted or (trained is tested and train_split in wanted):
        raise UserError(f"{data}: the split {train_split!r} would be compared with itself: give --train, or --split")
    test = functools.reduce(operator.add, map(tested.split, wanted))
    known = trained.split(train_split)
    found = measure(known, test, _inventory(known + test, compounds, ngram, plain_atoms))
    if not json:
        typer.echo(_said(found))
        return
    from dataclasses import asdict
    from json import dumps

    asked = {"data": data, "split": ",".join(wanted), "train": train or data, "train_split": train_split}
    typer.echo(dumps(asked | asdict(found), ensure_ascii=False))


def _load(data: str, out: Path, split: str | None) -> "Dataset":
    from compgen.data.formats import format_of
    from compgen.errors import UserError

    writable_format(out, None, data)
    if str(out) != "-" and format_of(out) in ("scan", "text"):
        raise UserError(f"{out}: it is to hold all parts of a split, and can name none: write .tsv, .jsonl or .parquet")
    return load_split(data, split)


def _inventory(dataset: "Dataset", compounds: str | None, ngram: int | None, plain_atoms: bool) -> "Inventory":
    from compgen.data.compounds import Ngrams, Trees, bracketed
    from compgen.errors import UserError

    kind = compounds or ("tree" if bracketed(dataset) else "source")
    if kind == "tree":
        if ngram is not None:
            raise UserError(
                f"--ngram {ngram}: compounds are those of trees here, expected --compounds source or target"
            )
        return Trees(arity=not plain_atoms)
    if kind not in SIDES:
        raise UserError(f"--compounds {kind}: expected tree, source or target")
    if plain_atoms:
        raise UserError(f"--plain-atoms: compounds are n-grams of the {kind} here, expected --compounds tree")
    return Ngrams("source" if kind == SIDES[0] else "target", 3 if ngram is None else ngram)


def _write(
    parts: "Dataset", out: Path, dev: int, seed: int, inventory: "Inventory | None" = None
) -> "Divergences | None":
    """Write a split, and say its sizes and divergences; these are None where there is nothing to compare."""
    from compgen.data.compounds import measure, usual_inventory
    from compgen.data.formats import write_dataset
    from compgen.data.splits import with_dev
    from compgen.errors import DataError

    written = with_dev(parts, dev, seed)
    write_dataset(written, out)
    console().print(", ".join(f"{name} {count:,}" for name, count in sorted(written.splits.items())), highlight=False)
    try:
        found = measure(parts.split("train"), parts.split("test"), inventory or usual_inventory(parts))
    except DataError as error:
        # Templates and lengths need no compounds.
        console().print(f"divergences not measured: {error}", highlight=False, markup=False)
        return None
    console().print(_said(found), highlight=False, soft_wrap=True)
    return found


def _said(found: "Divergences") -> str:
    return (
        f"divergence of atoms {found.atoms:.4f}, of compounds {found.compounds:.4f}; not in training: "
        f"{found.unseen_atoms:,} of {found.test_atoms:,} atoms and {found.unseen_compounds:,} of "
        f"{found.test_compounds:,} compounds of the test"
    )
