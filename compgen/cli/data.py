"""`cgen data`: list data sets, look into one, compare two, convert, split, and mask names."""

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from pydantic import BaseModel, Field

from compgen.cli import mask, quality, split
from compgen.cli.common import (
    LAST_SEED,
    DataArgument,
    FormatOption,
    JsonOption,
    OutOption,
    SplitOption,
    called,
    check_input_once,
    check_out,
    load_augmented,
    load_both,
    load_split,
    load_usual,
    say,
    show,
    show_json,
    signature,
    table,
    usual_split,
    write_out,
)
from compgen.cli.lazy import App, Group
from compgen.cli.options import option, with_options
from compgen.data.content import name_of
from compgen.data.named import Columns
from compgen.errors import DataError, UserError
from compgen.record import named

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.evaluation.overlap import Overlap
    from compgen.morphology.analyses import Stems

app = App(
    cls=Group,
    no_args_is_help=True,
    help="Work with data sets: list the known ones, and show, compare, convert or split any.",
)
app.add_typer(split.app, name="split")
app.command("divergence")(split.divergence)
app.command("quality")(quality.command)
app.command("mask")(mask.mask)
app.command("unmask")(mask.unmask)


@app.command("list")
def list_() -> None:
    """List the known data sets, with the number of examples in each split, or the file that you have to download.

    Example: cgen data list
    """
    from compgen.data.catalog import DATASETS
    from compgen.data.downloads import VARIABLE

    rows = []
    for name, known in DATASETS.items():
        for part, (_, novelty) in known.splits.items():
            # At most 34 wide, so that 80 columns leave room for the last cell.
            rows.append([f"{name}/{part}", textwrap.fill(_sizes_or_need(f"{name}/{part}"), 34), novelty])
    show(
        table(("data set", "examples", "new in test"), rows, whole=2),
        f"\nFiles that a data set needs are looked for in the folder that {VARIABLE} names. To see where to get them: "
        "cgen data show NAME",
        *(f"\n{name}: {known.description}. {known.citation}." for name, known in DATASETS.items()),
    )


@app.command("show")
@with_options
def show_(
    data: DataArgument,
    columns: Columns,
    split: SplitOption = None,
    count: int = option(10, "Print N examples.", "-n", ge=0, metavar="N"),
    seed: int | None = option(
        None, "Draw the examples at random with this seed. By default, print the first ones.", ge=0, le=LAST_SEED
    ),
) -> None:
    """Print a few examples and the statistics of a data set.

    Example: cgen data show scan/jump --split test -n 3 --seed 1
    """
    dataset = load_split(data, split, columns=columns)
    frame = dataset.frame
    count = min(count, frame.height)
    rows = frame.head(count) if seed is None else frame.sample(count, seed=seed)
    for source, target, name in rows.select("source", "target", "split").iter_rows():
        print("\t".join([" ".join(source), " ".join(target), name]))
    print()
    for label, value in _statistics(dataset):
        print(f"{label:<18}{value}")


@app.command()
@with_options
def write(
    data: DataArgument,
    out: OutOption,
    columns: Columns,
    split: SplitOption = None,
    format: FormatOption = None,
    swap: bool = option(False, "Swap sources and targets."),
    variables: Literal["relative", "named"] | None = option(
        None,
        "relative: write variables of targets (A, B, ... or $0, $1, ...) as distances from the last new one (A+1, "
        "A+0), so that parts look the same at any depth. named: turn distances back into variables, also in "
        "predictions.",
    ),
    signs: Literal["apart", "marked", "joined"] | None = option(
        None,
        "apart: split brackets, commas, quotes and other signs from words, and scripts without spaces (Chinese, "
        "Japanese, Thai, ...) into letters, for good. marked: also mark with ￭ what stood close to the token before. "
        "joined: undo marked, also in predictions.",
    ),
) -> None:
    """Write a data set to a file, in the format that the file's suffix or --format names.

    Without a suffix, OUT is a folder of Parquet files, one per split, with a data card; `datasets.load_dataset(OUT)`
    opens it. The format unimorph is lemma TAB form TAB tags, for yoyodyne and the shared tasks.

    Examples: cgen data write scan/jump --split train -o jump-train.tsv

        cgen data write questions.csv --source question --target sql -o questions

        cgen data write geo/logic-query --variables relative -o relative.jsonl

        cgen data write glued.tsv --signs apart -o apart.tsv
    """
    from compgen.api_data import signs as with_signs

    check_out(out, format, data)
    predicted = signs == "joined" or variables == "named"  # perhaps, and predictions may be blank or have no tokens
    dataset = load_split(data, split, answers=predicted, columns=columns, blanks=predicted)
    if signs and signs != "joined":
        dataset = with_signs(dataset, signs)
    if variables:
        dataset = _with_variables(dataset, variables)
    if signs == "joined":
        dataset = with_signs(dataset, signs)
    if swap and not (dataset.frame["target"].list.len() > 0).all():
        raise DataError(f"{data}: found sentences, without targets, which cannot be swapped: leave out --swap")
    changes = {"swap": swap, "variables": variables, "signs": signs}
    record = {"data": named(data), "split": split, **changes, "command": called()}
    write_out(dataset.swapped() if swap else dataset, out, format, record)
    if str(out) != "-":
        say(f"{out}: {dataset.sizes()}")


def _with_variables(dataset: "Dataset", form: Literal["relative", "named"]) -> "Dataset":
    """Change how variables are written; print in how many targets."""
    from compgen.data.variables import named_targets, relative_targets

    left = 0
    if form == "relative":
        changed, count = relative_targets(dataset)
    else:
        changed, count, left = named_targets(dataset)
    left_over = f"; {left:,} distances that belong to no variable" if left else ""
    say(f"{count:,} targets with {form} variables now{left_over}")
    return changed


@app.command()
@with_options
def cogs(
    data: DataArgument,
    to: Annotated[str, typer.Option("--to", metavar="FORM", help="Convert to this form: lf or variable-free.")],
    out: OutOption,
    split: SplitOption = None,
    format: FormatOption = None,
    keep: bool = option(
        False, "Leave targets that cannot be converted as they are, instead of stopping with an error."
    ),
) -> None:
    """Convert targets of COGS, such as predictions, from variable-free form (Qiu et al. 2022) to logical form, or back.

    Sources must be the sentences, as they define the variables. The variable `x _ 1` of the published files is a single
    token here, x_1. The logical form of a single noun or verb cannot be determined.

    Example: cgen data cogs predicted.tsv --to lf --keep -o logical.tsv
    """
    from compgen.data.cogs_forms import converted

    check_out(out, format, data)
    dataset, kept = converted(load_split(data, split, answers=True), to, name_of(data), keep)
    write_out(dataset, out, format)
    say(f"{len(dataset) - kept:,} targets converted, {kept:,} left as they were")


class OverlapOptions(BaseModel):
    """The options of `cgen data overlap`."""

    split: str | None = option(None, "Look for this split of DATA. By default, test or the only one.", metavar="S")
    train: str | None = option(None, "Look in this training data. By default, DATA itself.", metavar="DATA")
    train_split: list[str] = option(
        [], "Use this split of the training data. By default, train or the only one.", metavar="S"
    )
    augmented: list[str] = option([], "Also look in the training data and these examples together.", metavar="DATA")
    as_json: JsonOption = False


@app.command()
@with_options
def overlap(data: DataArgument, options: OverlapOptions) -> None:
    """Print how much of a test set is in the training data, and in training and augmented data together.

    Example overlap is the share of distinct test examples (source and target) that are training examples.
    Co-occurrence overlap is the share of token pairs occurring together in a source or target of the test set that also
    do so in the training set. The first row is for the training data alone; each --augmented gets a row of its own.

    Example: cgen data overlap scan/jump --augmented augmented.jsonl
    """
    from compgen.evaluation.overlap import overlap as measure

    check_input_once(data, options.train, *options.augmented)
    tested, trained = load_both(data, options.train)
    wanted = options.split or usual_split(tested, "test")
    seen = options.train_split or [usual_split(trained, "train")]
    if trained is tested and wanted in seen:
        raise UserError(f"{data}: the split {wanted!r} would be compared with itself: give --train, or other splits")
    test, known = tested.split(wanted), trained.split(*seen)
    rows: list[tuple[str | None, Overlap]] = [(None, measure(test, known))]
    rows += [(name, measure(test, known + load_augmented(name))) for name in options.augmented]
    asked = {"data": data, "split": wanted, "train": options.train or data, "train_split": ",".join(seen)}
    if options.as_json:
        for name, found in rows:
            show_json(asked | {"augmented": name} | found.to_dict())
    else:
        _print_overlaps(rows, signature(asked))


def _print_overlaps(rows: "list[tuple[str | None, Overlap]]", asked: str) -> None:
    """Print a row for each (augmented data, overlap), and what was asked for with the metrics' signature."""
    from compgen.evaluation.overlap import SIGNATURE

    cells = []
    for name, found in rows:
        examples = f"{found.example_overlap:.4f} ({found.shared_examples:,} of {found.examples:,})"
        pairs = f"{found.cooccurrence_overlap:.4f} ({found.shared_cooccurrences:,} of {found.cooccurrences:,})"
        cells.append(["train" if name is None else f"train + {name}", examples, pairs])
    show(table(("looked in", "example overlap", "co-occurrence overlap"), cells), f"{asked}|{SIGNATURE}")


class StemsOptions(BaseModel):
    """The options of `cgen data stems`."""

    split: str | None = option(None, "Use this split of DATA. By default, train or the only one.", metavar="S")
    augmented: str | None = option(None, "Add the first examples of this data set to DATA.", metavar="DATA")
    size: list[Annotated[int, Field(ge=0)]] = option(
        [],
        "Add K of the augmented examples. By default 0, 128, 512, 2048 and 10000, up to the number there are.",
        metavar="K",
    )
    shortest: int = option(3, "Count a shared substring as stem if it has at least this many code points.", ge=1)
    harmony: str | None = option(
        None, "Count vowels that violate the harmony of this language: turkish or finnish.", metavar="LANGUAGE"
    )
    as_json: JsonOption = False


@app.command()
@with_options
def stems(data: DataArgument, options: StemsOptions) -> None:
    """Print how well stems predict affixes and tags, in inflections and with augmented ones added.

    Mutual information is empirical, in bits. Beside it are its value by chance (with one side permuted) and the share
    of the remainder (0 independent, 1 determined; - if chance leaves no remainder: where each stem occurs once, whole
    stems tell nothing, but their last characters do). See theorem 1 of Samir and Silfverberg (2023).

    Example: cgen data stems sigmorphon/turkish --split train-low --augmented more.tsv --harmony turkish
    """
    from compgen.morphology.analyses import stems as analyse

    check_input_once(data, options.augmented)
    dataset, wanted = load_usual(data, options.split, "train")
    more = None if options.augmented is None else load_augmented(options.augmented)
    available, largest = 0 if more is None else len(more), max(options.size, default=0)
    if largest > available:
        raise UserError(f"--size {largest:,}: expected at most {available:,}, the number of augmented examples")
    rows = analyse(dataset, more, options.size, options.shortest, options.harmony)
    if not options.as_json:
        _print_stems(rows)
        return
    asked = {"data": data, "split": wanted, "with": options.augmented, "shortest": options.shortest}
    for row in rows:
        dependences = [{"of": of, "and": other} | asdict(found) for (of, other), found in row.dependences.items()]
        show_json(asked | asdict(row) | {"dependences": dependences})


def _print_stems(rows: "list[Stems]") -> None:
    """Print two tables: a row for each size, and a row for each size and pair of variables."""
    sizes_, pairs = [], []
    for row in rows:
        counts = [f"{count:,}" for count in (row.augmented, row.examples, row.stemless, row.stems)]
        vowels = [f"{row.harmony.violations:,} of {row.harmony.judged:,}"] if row.harmony else []
        sizes_.append([*counts, row.tags, f"{row.tags_share:.1%}", *vowels])
        for (of, other), found in row.dependences.items():
            adjusted = "-" if found.adjusted is None else f"{found.adjusted:.3f}"
            pairs.append([counts[0], of, other, f"{found.bits:.3f}", f"{found.chance:.3f}", adjusted])
    headings = ["augmented", "examples", "no stem", "stems", "commonest tags", ""]
    headings += ["out of harmony"] * any(row.harmony for row in rows)
    show(table(headings, sizes_), "", table(("augmented", "of", "and", "bits", "by chance", "adjusted"), pairs), "")


def _sizes_or_need(name: str) -> str:
    """The sizes of a known data set's splits, or the file that is missing."""
    from compgen.data.catalog import load
    from compgen.data.downloads import MissingFileError

    try:
        return load(name).sizes()
    except MissingFileError as error:
        return f"needs {error.name}"
    except DataError:
        return "cannot be read; see show"


def _statistics(dataset: "Dataset") -> list[tuple[str, str]]:
    """What `show` prints below the examples, as (label, value)."""
    rows = [("examples", dataset.sizes()), ("distinct", dataset.unique().sizes())]
    for side in ("source", "target"):
        lengths = dataset.frame[side].list.len().to_list()
        words = dataset.frame[side].explode().drop_nulls().n_unique()
        rows.append((f"{side} length", f"mean {sum(lengths) / len(lengths):.1f}, max {max(lengths)}"))
        rows.append((f"{side} vocabulary", f"{words:,}"))
    return rows
