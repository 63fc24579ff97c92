"""`compgen augment`: data in, more data out."""

import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compgen.cli.common import (
    CslOption,
    DataArgument,
    FormatOption,
    LearnOption,
    OutOption,
    ResumeOption,
    SeedOption,
    SeedRulesOption,
    SetOption,
    ShortestOption,
    TargetsOption,
    UniformOption,
    console,
    load_split,
    need_torch,
    writable_format,
)
from compgen.cli.geca import geca
from compgen.cli.sample import FiltersOption, NgramOption, filter_names
from compgen.record import named, record_of, write_record

if TYPE_CHECKING:
    from compgen.csl.options import CslOptions
    from compgen.csl.trained import TrainedGrammar
    from compgen.data.examples import Dataset

app = typer.Typer(
    no_args_is_help=True, help="Make more examples from those in DATA, by one of the families of methods."
)


@app.command()
def recombine(
    data: DataArgument,
    out: Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="Where to write the new examples.")],
    count: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")] = 400,
    config: Annotated[
        str, typer.Option("--config", metavar="C", help="A shipped configuration, or a TOML file.")
    ] = "recombine_small",
    split: LearnOption = "train",
    filters: FiltersOption = ("novel,unique",),  # type: ignore[assignment]
    ngram: NgramOption = None,
    seed: SeedOption = 0,
    resume: ResumeOption = False,
    format: FormatOption = None,
) -> None:
    """Train a recombination network on DATA and sample it: `train`, then `sample`, in one go.

    The checkpoint stays beside OUT (OUT.pt), to be exported and sampled again.

    Example: compgen augment recombine pairs.tsv -n 400 -o more.tsv
    """
    from compgen.api import Recombination
    from compgen.data.formats import write_dataset
    from compgen.errors import ExhaustedError, UserError

    need_torch("training")
    names = filter_names(filters or [], rare=(ngram,))
    if str(out) == "-":
        raise UserError("the generator is kept beside OUT: give the name of a file")
    format = writable_format(out, format, data)
    checkpoint = out.with_name(out.name + ".pt")
    augmenter = Recombination(config, checkpoint, seed=seed).fit(load_split(data, split), resume=resume)
    try:
        samples = augmenter.sample(count, seed, filters=names, ngram=ngram or 1)
    except ExhaustedError as error:
        raise ExhaustedError(f"{error}; the generator is {checkpoint}, for other filters") from error
    write_dataset(samples, out, format)
    options = {"config": config, "filters": names, "max_ngram": ngram, "model": named(str(checkpoint))}
    write_record(out, {"data": named(data), "split": split, "n": count, "seed": seed} | options)
    console().print(f"{len(samples):,} examples in {out}; the generator is {checkpoint}", highlight=False, markup=False)


app.command()(geca)


@app.command()
def concat(
    data: DataArgument,
    out: OutOption,
    count: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")] = 1000,
    separator: Annotated[
        str, typer.Option("--separator", metavar="TOKEN", help="The token between the two; empty for none.")
    ] = "|",
    split: LearnOption = "train",
    seed: SeedOption = 0,
    format: FormatOption = None,
) -> None:
    """Write one example behind another, on both sides (Jia and Liang 2016, concat-2).

    Example: compgen augment concat pairs.tsv -n 500 -o more.tsv
    """
    from compgen.augmenters.concat import Concat
    from compgen.data.formats import write_dataset

    format = writable_format(out, format, data)
    samples = Concat(separator or None).fit(load_split(data, split)).sample(count, seed)
    write_dataset(samples, out, format)
    write_record(out, {"data": named(data), "split": split, "n": count, "seed": seed, "separator": separator})
    console().print(f"{len(samples):,} examples", highlight=False)


@app.command()
def stemcorrupt(
    data: DataArgument,
    out: OutOption,
    count: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")] = 10_000,
    theta: Annotated[
        float, typer.Option("--theta", help="The probability that a character of the stem is replaced, up to 1.")
    ] = 0.5,
    shortest: ShortestOption = 3,
    stemless: Annotated[
        str,
        typer.Option("--stemless", help="Examples without a stem: drop, or keep them among the samples as they are."),
    ] = "drop",
    candidates: Annotated[
        int,
        typer.Option(
            "--candidates",
            min=1,
            metavar="K",
            help="Make K times as many and keep those whose vowels go together as in DATA, for languages with vowel "
            "harmony; 16 does.",
        ),
    ] = 1,
    split: LearnOption = "train",
    seed: SeedOption = 0,
    format: FormatOption = None,
) -> None:
    """Replace characters of the stem, the same in lemma and form (Samir and Silfverberg 2023).

    Examples are of inflection: a source is the letters of a lemma and its tags, a target the letters of a form.

    Example: compgen augment stemcorrupt sigmorphon/turkish --split train-low -n 10000 -o more.tsv
    """
    from compgen.data.formats import write_dataset
    from compgen.morphology.harmony import HarmonicStemCorrupt
    from compgen.morphology.stemcorrupt import StemCorrupt

    format = writable_format(out, format, data)
    corrupt = StemCorrupt(theta, shortest, stemless)
    augmenter = corrupt if candidates == 1 else HarmonicStemCorrupt(corrupt, candidates)
    began = time.monotonic()
    samples = augmenter.fit(load_split(data, split)).sample(count, seed)
    write_dataset(samples, out, format)
    console().print(
        f"{len(samples):,} examples of {samples.frame['gold'].n_unique():,} training examples; {corrupt.dropped:,} "
        f"dropped for want of a stem; {time.monotonic() - began:.1f} s",
        highlight=False,
        soft_wrap=True,
    )
    options = {
        "theta": theta,
        "shortest": shortest,
        "stemless": stemless,
        "dropped": corrupt.dropped,
        "candidates": candidates,
        "seconds": round(time.monotonic() - began, 1),
    }
    write_record(out, {"data": named(data), "split": split, "n": count, "seed": seed, "format": format} | options)


@app.command()
def csl(
    data: DataArgument,
    out: OutOption,
    count: Annotated[int, typer.Option("-n", min=1, metavar="N", help="How many.")] = 10_000,
    config: CslOption = "csl",
    set_: SetOption = None,
    seed_rules: SeedRulesOption = None,
    targets: TargetsOption = None,
    uniform: UniformOption = False,
    rules: Annotated[
        Path | None, typer.Option("--rules", metavar="FILE", help="Write the induced grammar here, a rule a line.")
    ] = None,
    split: LearnOption = "train",
    seed: SeedOption = 0,
    format: FormatOption = None,
) -> None:
    """Induce a synchronous grammar from DATA and draw from it (CSL, Qiu et al. 2022).

    The grammar has as few and as small rules as derive all examples. Samples may repeat, and may be known: train on
    them beside DATA, p_aug=0.5 say.

    Examples:

        compgen augment csl scan/jump --config csl_scan --rules jump.rules -o more.tsv

        compgen augment csl geo.tsv --config csl_geoquery -o more.tsv

        compgen augment csl smcalflow-cs/8 --config csl_smcalflow -o more.tsv

        compgen augment csl cogs/variable-free --config csl_cogs -o more.tsv
    """
    from compgen.data.formats import write_dataset
    from compgen.errors import UserError
    from compgen.files import atomic_path, check_apart, check_writable

    described = csl_config(config, set_, seed_rules, targets, uniform)
    read = (data, config, described.seed_rules, described.targets)
    format = writable_format(out, format, *read)
    if rules is not None:
        if str(rules) == "-" or rules.resolve() in (out.resolve(), record_of(out).resolve()):
            raise UserError(f"--rules {rules}: expected the name of a file, and another than OUT's")
        check_apart(rules, *read)
        check_writable(rules)
    dataset = load_split(data, split)
    began = time.monotonic()
    trained = trained_grammar(described, dataset, seed)
    grammar = trained.grammar
    samples = trained.sampler().sample(count, seed)
    if rules is not None:
        with atomic_path(rules) as temporary:
            temporary.write_text(grammar.text(), "utf-8")
    write_dataset(samples, out, format)
    console().print(
        f"{len(samples):,} examples, {len(samples.unique()):,} of them distinct; {time.monotonic() - began:.1f} s",
        highlight=False,
    )
    options = {
        "config": named(config),
        "set": set_ or [],
        "seed_rules": named(described.seed_rules),
        "targets": named(described.targets),
        "uniform": uniform,
        "format": format,
    }
    made = {"rules": len(grammar.rules), "seconds": round(time.monotonic() - began, 1)}
    write_record(out, {"data": named(data), "split": split, "n": count, "seed": seed} | options | made)


def trained_grammar(
    config: "CslOptions", dataset: "Dataset", seed: int, unlabelled: "Dataset | None" = None
) -> "TrainedGrammar":
    """A grammar of a dataset, and perhaps of more sources; says how far it is."""
    from compgen.csl.augmenter import Csl
    from compgen.progress import Progress

    augmenter, began, steps = Csl(config), time.monotonic(), itertools.count(1)
    with Progress("induce", config.induction.partitions * config.induction.steps) as progress:
        grammar = augmenter.induce(dataset, lambda step: progress.update(next(steps), f"{step.rules:,} rules"))
    console().print(f"{len(grammar.rules):,} rules; {time.monotonic() - began:.1f} s", highlight=False)
    rounds = 0 if config.training is None else config.training.starts * config.training.steps
    with Progress("learn", rounds) as progress:
        trained = augmenter.learn(dataset, seed, lambda step, loss: progress.update(step, f"loss {loss:.4f}"))
    if unlabelled is None:
        return trained
    with Progress("learn again", rounds) as progress:
        labelled = augmenter.relearn(
            dataset, unlabelled, seed, lambda step, loss: progress.update(step, f"loss {loss:.4f}")
        )
    console().print(f"{labelled:,} of {len(unlabelled):,} unlabelled sources have a parse", highlight=False)
    assert augmenter.trained is not None
    return augmenter.trained


def csl_config(
    name: str, changes: list[str] | None, seed_rules: str | None, targets: str | None, uniform: bool
) -> "CslOptions":
    """The configuration that the options of CSL describe."""
    from compgen.configuration import load_config
    from compgen.csl.options import CslOptions
    from compgen.errors import UserError

    if uniform and any(change.startswith("training.") for change in changes or []):
        raise UserError("--uniform learns no probabilities: leave out --set training")
    if not uniform:
        need_torch("learning probabilities")
    config = load_config(CslOptions, name, changes or [])
    given = {"seed_rules": seed_rules, "targets": targets}
    update: dict[str, Any] = {
        key: "" if value == "none" else value for key, value in given.items() if value is not None
    }
    return config.model_copy(update=update | ({"training": None} if uniform else {}))
