"""`compgen data split`: divide data into parts that ask for generalisation."""

import functools
import operator
from pathlib import Path
from typing import Annotated

import typer

from compgen.cli import compositional
from compgen.cli.common import DataArgument, OutOption, SeedOption, SplitOption, console, load_split, writable_format

app = typer.Typer(no_args_is_help=True, help="Divide data into parts that ask for generalisation.")
app.command("template")(compositional.template)
app.command("length")(compositional.length)
app.command("tmcd")(compositional.tmcd)
app.command("mcd")(compositional.mcd)

WordsArgument = Annotated[
    str,
    typer.Argument(
        metavar="WORDS",
        help="A file of words, lemma TAB form TAB tags, as SIGMORPHON and UniMorph have it, or sigmorphon/LANGUAGE.",
        show_default=False,
    ),
]


@app.command("few-shot")
def few_shot(
    words: WordsArgument,
    out: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Where a file for each split goes.", file_okay=False),
    ],
    hints: Annotated[
        list[int] | None,
        typer.Option(
            "--hints",
            min=1,
            metavar="H",
            help="Past and future words in training; may be repeated; else 4, 8, 16.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=5, metavar="N", help="Splits of each, at most 5.")] = 5,
) -> None:
    """Keep all but a few past and future forms out of training (Akyürek et al. 2021): 1,000 words to train on.

    FOLDER/LANGUAGE.hints-H.seed-S.tsv has the parts train, validation, past, other and future, as examples of
    inflection (lemma and tags to form). The splits of 4, 8 and 16 hints are the published ones. To learn analysis, swap
    their sides: `compgen data write FILE --swap -o analysis.tsv`.

    Example: compgen data split few-shot sigmorphon/turkish --hints 8 --seeds 2 -o splits
    """
    from compgen.data.catalog import find_words
    from compgen.data.downloads import check_not_downloaded
    from compgen.data.formats import write_dataset
    from compgen.data.unimorph import dataset, language_of, read_words
    from compgen.errors import UserError
    from compgen.files import check_apart
    from compgen.morphology.few_shot import HINTS, few_shot

    if str(out) == "-":
        raise UserError("splits are several files: give the name of a folder")
    wanted = sorted(set(hints or HINTS))
    name, _, language = words.partition("/")
    path = find_words(language, "train-high") if name == "sigmorphon" and not Path(words).exists() else Path(words)
    language = language_of(path)
    published = [count for count in HINTS if count <= max(set(wanted) & set(HINTS), default=0)]
    streams = [published, *([count] for count in wanted if count not in HINTS)]
    for file in (_few_shot_file(out, language, count, seed) for count in wanted for seed in range(seeds)):
        check_apart(file, path)
        check_not_downloaded(file)
    read, made = read_words(path), {}
    for hints_of_stream in filter(None, streams):
        # Each split goes on with the random numbers of the one before, so those before it are made, too.
        for split in few_shot(read, language, hints_of_stream):
            if split.hints in wanted and split.seed < seeds:
                parts = [dataset(part, name, language, str(path)) for name, part in split.parts.items()]
                file = _few_shot_file(out, language, split.hints, split.seed)
                made[file] = functools.reduce(operator.add, parts)
            if (split.hints, split.seed) == (hints_of_stream[-1], seeds - 1):
                break
    for file, dataset_of_split in made.items():  # all can be made before one is written
        write_dataset(dataset_of_split, file)
        console().print(f"{file}", highlight=False, markup=False)


def _few_shot_file(folder: Path, language: str, hints: int, seed: int) -> Path:
    return folder / f"{language}.hints-{hints}.seed-{seed}.tsv"


@app.command()
def lemma(
    data: DataArgument,
    out: OutOption,
    train: Annotated[float, typer.Option("--train", min=0, max=1, help="Share of the examples to train on.")] = 0.8,
    validation: Annotated[float, typer.Option("--validation", min=0, max=1, help="Share to validate on.")] = 0.1,
    split: SplitOption = None,
    seed: SeedOption = 0,
) -> None:
    """Let no lemma be in two of the parts train, validation and test (Goldman et al. 2022).

    DATA are examples of inflection; without --split all of them are divided anew, whatever parts they had.

    Example: compgen data split lemma sigmorphon/georgian --split train -o georgian.tsv
    """
    from compgen.data.formats import write_dataset
    from compgen.morphology.lemmas import by_lemma

    writable_format(out, None, data)
    parts = by_lemma(load_split(data, split), train, validation, seed)
    write_dataset(parts, out)
    console().print(", ".join(f"{name} {count:,}" for name, count in parts.splits.items()), highlight=False)
