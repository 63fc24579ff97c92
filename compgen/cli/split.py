"""`cgen data split`: split data at random, or so that tests ask for generalisation; and `cgen data divergence`."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import BaseModel, Field

from compgen.cli.common import (
    DataArgument,
    OutOption,
    SeedOption,
    SplitOption,
    check_input_once,
    check_out,
    load_both,
    load_split,
    say,
    show_json,
    write_out,
)
from compgen.cli.lazy import App, Group
from compgen.cli.options import argument, option, with_options
from compgen.data.content import name_of
from compgen.data.named import Columns
from compgen.errors import DataError, UserError
from compgen.files import check_apart

if TYPE_CHECKING:
    from compgen.data.compounds import Divergences, Inventory
    from compgen.data.examples import Dataset

app = App(cls=Group, no_args_is_help=True, help="Split data at random, or so that the test requires generalisation.")

AMOUNT = "N|SHARE"  # examples, or below 1 a share of all
DevOption = Annotated[
    float, typer.Option("--dev", min=0, metavar=AMOUNT, help="Move this many of the test examples to a part dev.")
]
DivergenceOption = Annotated[
    float,
    typer.Option(
        "--divergence",
        min=0,
        max=1,
        metavar="D",
        help="Aim for this divergence of compounds; 1 for the largest possible.",
    ),
]


@app.command("few-shot")
@with_options
def few_shot(
    words: Annotated[
        str,
        argument(
            "WORDS", "A file of words, lemma TAB form TAB tags, as in SIGMORPHON and UniMorph, or sigmorphon/LANGUAGE."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FOLDER", help="Write one file per split to this folder.", file_okay=False
        ),
    ],
    hints: list[Annotated[int, Field(ge=1)]] = option(
        [], "Keep H past and future words in training. By default 4, 8 and 16.", metavar="H"
    ),
    seeds: int = option(5, "Make N splits for each H, at most 5.", ge=1, le=5, metavar="N"),
) -> None:
    """Train on 1,000 words with only a few past and future forms among them (Akyürek et al. 2021).

    FOLDER/LANGUAGE.hints-H.seed-S.tsv has the parts train, dev, past, other and future, as examples of
    inflection (lemma and tags to form). The splits with 4, 8 and 16 hints are the published ones. To learn analysis,
    swap the sides: `cgen data write FILE --swap -o analysis.tsv`.

    Example: cgen data split few-shot sigmorphon/turkish --hints 8 --seeds 2 -o splits
    """
    from compgen.data.catalog import find_words
    from compgen.data.downloads import check_not_downloaded
    from compgen.data.formats import write_dataset
    from compgen.data.unimorph import language_of
    from compgen.morphology.few_shot import HINTS

    if str(out) == "-":
        raise UserError("splits are several files: give the name of a folder")
    wanted = sorted(set(hints or HINTS))
    name, _, language = words.partition("/")
    published = name == "sigmorphon" and not Path(words).exists()
    path = find_words(language, "train-high") if published else Path(words)
    language = language_of(path)
    files = {
        (count, seed): out / f"{language}.hints-{count}.seed-{seed}.tsv" for count in wanted for seed in range(seeds)
    }
    for file in files.values():
        check_apart(file, path)
        check_not_downloaded(file)
    lower_as = language if published else None  # the published experiments are of words in lower case
    made = _few_shot_splits(path, language, wanted, seeds, lower_as)  # all can be made before one is written
    for key, dataset in made.items():
        write_dataset(dataset, files[key])
        say(files[key])


def _few_shot_splits(
    path: Path, language: str, wanted: Sequence[int], seeds: int, lower_as: str | None
) -> "dict[tuple[int, int], Dataset]":
    """Make a split for each number of hints and each seed, by these two numbers."""
    from compgen.data.examples import joined
    from compgen.data.unimorph import dataset, read_words
    from compgen.morphology.few_shot import HINTS, few_shot

    published = [count for count in HINTS if count <= max(set(wanted) & set(HINTS), default=0)]
    streams = [published, *([count] for count in wanted if count not in HINTS)]
    words, made = read_words(path), {}
    for hints in filter(None, streams):
        # Each split continues the random numbers of the one before, so those before it are made, too.
        for split in few_shot(words, language, hints):
            if split.hints in wanted and split.seed < seeds:
                parts = (dataset(part, name, lower_as, str(path)) for name, part in split.parts.items())
                made[split.hints, split.seed] = joined(parts)
            if (split.hints, split.seed) == (hints[-1], seeds - 1):
                break
    return made


@app.command()
@with_options
def lemma(
    data: DataArgument,
    out: OutOption,
    train: float | None = option(None, "Train on this share of the examples. By default, 0.8.", ge=0, le=1),
    test: float | None = option(None, "Instead of --train: test on this share.", ge=0, le=1),
    dev: float = option(0.1, "Keep this share for development, in a part dev; 0 is none.", ge=0, le=1),
    split: SplitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Split inflections so that no lemma is in two of the parts train, dev and test (Goldman et al. 2022).

    DATA must be examples of inflection. Without --split, all of them are split again, whatever splits they were in.

    Example: cgen data split lemma sigmorphon/georgian --split train -o georgian.tsv
    """
    from compgen.morphology.lemmas import by_lemma

    _check_parts(out, data)
    if test is not None:
        if train is not None:
            raise UserError("give --train or --test: the rest is the other part")
        train = 1 - test - dev
        if train <= 0:
            raise UserError(f"--test {test:g} and --dev {dev:g} leave nothing to train on")
    parts = by_lemma(load_split(data, split), 0.8 if train is None else train, dev, seed)
    write_out(parts, out)
    say(parts.sizes())


def _check_parts(out: Path, data: str) -> None:
    """Check, before any work, that OUT can be written, is not DATA, and can hold all parts of a split."""
    from compgen.data.formats import format_of

    check_out(out, None, data)
    if str(out) != "-" and format_of(out) in ("scan", "text", "unimorph"):
        raise UserError(
            f"{out}: it is to hold all parts of a split, but its format has no names of parts: "
            "write .tsv, .csv, .jsonl or .parquet"
        )


class CompoundOptions(BaseModel):
    """What atoms and compounds are."""

    compounds: Literal["tree", "source", "target"] | None = option(
        None,
        "Take as compounds: function applications in targets with ( ) and , as tokens, or with labelled brackets as "
        "[SL:TASK buy milk ] (tree); or n-grams of the source or target. By default, tree if most distinct targets "
        "have matching brackets, otherwise source.",
        metavar="KIND",
    )
    ngram: int | None = option(
        None, "For source or target: take n-grams of 2 to N tokens. By default, 3.", ge=2, metavar="N"
    )
    plain_atoms: bool = option(False, "For tree: take names alone as atoms, without their number of arguments.")

    def inventory(self, dataset: "Dataset") -> "Inventory":
        """The atoms and compounds of a dataset.

        Raises:
            UserError: an option does not apply to compounds of this kind.
        """
        from compgen.data.compounds import Ngrams, Trees, bracketed

        kind = self.compounds or ("tree" if bracketed(dataset) else "source")
        if kind != "tree":
            if self.plain_atoms:
                raise UserError(f"--plain-atoms: compounds are n-grams of the {kind} here, expected --compounds tree")
            return Ngrams(kind, 3 if self.ngram is None else self.ngram)
        if self.ngram is not None:
            raise UserError(
                f"--ngram {self.ngram}: compounds are those of trees here, expected --compounds source or target"
            )
        return Trees(arity=not self.plain_atoms)


class SplitOptions(BaseModel):
    """The options of splits that all examples are in."""

    out: OutOption
    train: float | None = option(
        None, "Train on this many examples, or this share. By default, half.", gt=0, metavar=AMOUNT
    )
    test: float | None = option(
        None,
        "Instead of --train: test on this many examples, or this share, including those of --dev.",
        gt=0,
        metavar=AMOUNT,
    )
    dev: DevOption = 0
    split: SplitOption = None
    seed: SeedOption = 0

    def load(self, data: str, columns: Columns) -> "Dataset":
        """Load DATA, once OUT is known to be a file that can hold all parts of a split."""
        _check_parts(self.out, data)
        dataset = load_split(data, self.split, columns=columns)
        if not self.split and len(dataset.splits) > 1:
            said = f"all its splits ({dataset.sizes()}) are pooled and split again; --split NAME takes only one"
            say(f"{name_of(data)}: {said}")
        return dataset

    def write(self, dataset: "Dataset", by: str, **rule: Any) -> "Divergences | None":
        """Split a dataset by a rule with its options, write that, and print its sizes and divergences.

        Return the divergences; None without compounds.
        """
        from compgen.data.compounds import measure, usual_inventory
        from compgen.data.splits import divided, remarks

        parts = divided(dataset, by, self.train, self.test, dev=self.dev, seed=self.seed, **rule)
        write_out(parts, self.out)
        left = len(dataset) - len(parts)
        sizes = [f"{name} {count:,}" for name, count in sorted(parts.splits.items())]
        say(", ".join(sizes) + (f"; in no part: {left:,}" if left else ""))
        for remark in remarks(parts):
            say(f"warning: {remark}")
        tested = parts.split(*(name for name in parts.splits if name != "train"))  # with `dev`
        try:
            found = measure(parts.split("train"), tested, rule.get("inventory") or usual_inventory(parts))
        except DataError as error:
            # Templates and lengths need no compounds.
            say(f"divergences not measured: {error}")
            return None
        say(_in_words(found))
        return found


class TemplateOptions(SplitOptions):
    """The options of `cgen data split template`."""

    side: Literal["source", "target"] = option(
        "target", "Keep examples with equal sources, or with equal targets, together.", metavar="SIDE"
    )


class LengthOptions(SplitOptions):
    """The options of `cgen data split length`."""

    side: Literal["source", "target"] = option("source", "Measure length in tokens of this side.", metavar="SIDE")


class TmcdOptions(SplitOptions, CompoundOptions):
    """The options of `cgen data split tmcd`."""

    least: int = option(2, "Require every test atom to be in at least M training examples.", ge=0, metavar="M")
    divergence: DivergenceOption = 1.0


class McdOptions(SplitOptions, CompoundOptions):
    """The options of `cgen data split mcd`."""

    train: float | None = option(
        None, "Train on this many examples, or this share. By default, 40%.", gt=0, metavar=AMOUNT
    )
    test: float | None = option(
        None, "Test on this many examples, or this share. By default, 10%.", gt=0, metavar=AMOUNT
    )
    atoms: float = option(0.02, "Allow at most this divergence of atoms.", ge=0, le=1, metavar="D")
    divergence: DivergenceOption = 1.0


@app.command("random")
@with_options
def random_(data: DataArgument, options: SplitOptions, columns: Columns) -> None:
    """Split examples at random: the test requires no generalisation except to new examples.

    Equal examples may be in both parts. Give the size of a part as a number of examples, or as a share below 1.

    Example: cgen data split random pairs.tsv --test 0.2 --dev 100 --seed 1 -o parts.tsv
    """
    options.write(options.load(data, columns), "random")


@app.command()
@with_options
def template(data: DataArgument, options: TemplateOptions, columns: Columns) -> None:
    """Keep equal targets together, so that no target is in both train and test (Shaw et al. 2021).

    If sources have several targets, use --side source, so that no test source is in training. Names in targets should
    be placeholders, like m0; otherwise, templates that differ only in a name count as two (see `cgen data mask`).
    On GeoQuery, --train 440 with seeds 1, 2 and 3 gives the published splits.

    Example: cgen data split template geoquery.tsv --train 440 --dev 110 --seed 1 -o template1.tsv
    """
    options.write(options.load(data, columns), "template", side=options.side)


@app.command()
@with_options
def length(data: DataArgument, options: LengthOptions, columns: Columns) -> None:
    """Train on the shortest examples and test on the others (Shaw et al. 2021).

    Among examples of the same length, those that come first in DATA go to train. The seed matters only for --dev.
    SCAN's own length split is by targets: --side target --train 16990.

    Example: cgen data split length geoquery.tsv --train 440 --dev 110 -o length.tsv
    """
    options.write(options.load(data, columns), "length", side=options.side)


@app.command()
@with_options
def tmcd(data: DataArgument, options: TmcdOptions, columns: Columns) -> None:
    """Make train and test differ in compounds, with every test atom in training (TMCD; Shaw et al. 2021).

    Every example goes to one part or the other. Atoms are the symbols of targets; compounds say which function takes
    what as its first, second ... argument. The published splits of GeoQuery have divergences of 0.13 to 0.24, below the
    largest possible; use --divergence to ask for that. Shaw et al. used --train 440 --least 1 --plain-atoms.

    Example: cgen data split tmcd geoquery.tsv --train 440 --dev 110 --seed 1 -o tmcd1.tsv
    """
    dataset = options.load(data, columns)
    rule = options.model_dump(include={"least", "divergence"})
    options.write(dataset, "tmcd", inventory=options.inventory(dataset), **rule)


@app.command()
@with_options
def mcd(data: DataArgument, options: McdOptions, columns: Columns) -> None:
    """Make train and test differ in compounds, but hardly in atoms (MCD; Keysers et al. 2020).

    Some examples are left out of both parts: the more, the larger the divergence can be. Every atom of the test part is
    in training. SCAN takes half a minute or less.

    Example: cgen data split mcd scan/simple --seed 1 -o mcd1.tsv
    """
    dataset = options.load(data, columns)
    rule = options.model_dump(include={"atoms", "divergence"})
    found = options.write(dataset, "mcd", inventory=options.inventory(dataset), **rule)
    if found is not None and found.atoms > options.atoms + 5e-5:  # as it is printed
        say(
            f"atoms diverge by more than --atoms {options.atoms:g}: give more examples, or leave out more of them by "
            "smaller parts"
        )


class DivergenceOptions(CompoundOptions):
    """The options of `cgen data divergence`."""

    split: list[str] = option(
        [], "Test on this split of DATA. By default, on all splits but the training split, taken together.", metavar="S"
    )
    train: str | None = option(None, "The training data. By default, DATA itself.", metavar="DATA")
    train_split: str = option("train", "Use this split of the training data.", metavar="S")
    as_json: bool = option(False, "Print a line of JSON instead of words.", "--json")


@with_options
def divergence(data: DataArgument, options: DivergenceOptions) -> None:
    """Print how much the parts of a split diverge in atoms and in compounds.

    Divergence is 0 if both parts have the same relative frequencies, and 1 if they have nothing in common. It is 1
    minus the Chernoff coefficient, with alpha 0.5 for atoms and 0.1 for compounds (Keysers et al. 2020).

    Example: cgen data divergence template1.tsv
    """
    from compgen.data.compounds import measure, remark_on_few

    check_input_once(data, options.train)
    train_split = options.train_split
    tested, trained = load_both(data, options.train)
    wanted = options.split or [name for name in tested.splits if trained is not tested or name != train_split]
    if not wanted or (trained is tested and train_split in wanted):
        raise UserError(f"{data}: the split {train_split!r} would be compared with itself: give --train, or --split")
    test, known = tested.split(*wanted), trained.split(train_split)
    inventory = options.inventory(known + test)
    remark_on_few(inventory.compounds(known + test))
    found = measure(known, test, inventory)
    if not options.as_json:
        print(_in_words(found))
        return
    asked = {"data": data, "split": ",".join(wanted), "train": options.train or data, "train_split": train_split}
    show_json(asked | asdict(found))


def _in_words(found: "Divergences") -> str:
    return (
        f"divergence of atoms {found.atoms:.4f}, of compounds {found.compounds:.4f}; not in training: "
        f"{found.unseen_atoms:,} of {found.test_atoms:,} atoms and {found.unseen_compounds:,} of "
        f"{found.test_compounds:,} compounds of the test"
    )
