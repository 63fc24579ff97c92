"""`compgen augment geca`: by one process, by shares that meet in a folder, or on a cluster."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from compgen.cli.common import (
    DataArgument,
    FormatOption,
    LearnOption,
    OutOption,
    SeedOption,
    console,
    load_split,
    writable_format,
)
from compgen.record import named, write_record

if TYPE_CHECKING:
    from compgen.data.examples import Dataset
    from compgen.geca.shards import Job


def geca(
    data: DataArgument,
    out: OutOption,
    count: Annotated[
        int | None, typer.Option("-n", min=1, metavar="N", help="At most so many; by default all there are.")
    ] = None,
    span: Annotated[int, typer.Option("--span", min=1, help="Most tokens of a span.")] = 1,
    spans: Annotated[int, typer.Option("--spans", min=1, help="Most spans that are cut out together.")] = 2,
    limit: Annotated[
        int | None,
        typer.Option("--limit", min=1, help="Cut only spans that stand at most so often in the data; by default all."),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            "--window", min=0, help="Tokens on each side of a gap that must agree; by default the whole template."
        ),
    ] = None,
    variants: Annotated[int, typer.Option("--variants", min=1, help="Most examples made of one template.")] = 2,
    novelty: Annotated[
        str, typer.Option("--novelty", help="What must be new: both (source and target), source, or pair.")
    ] = "both",
    longest: Annotated[
        int, typer.Option("--longest", min=1, help="Leave out examples with more tokens on both sides together.")
    ] = 100,
    mode: Annotated[
        str,
        typer.Option(
            "--mode",
            help="published: the paper's boxed rule. reference: what its program does. Both leave out candidates that "
            "keep a span of each fragment that their template has, as the program does.",
        ),
    ] = "published",
    reach: Annotated[
        int | None,
        typer.Option("--reach", min=1, help="To how many templates a fragment may bring others; by default all."),
    ] = None,
    memory: Annotated[
        float, typer.Option("--memory", metavar="GIB", help="Memory to use; past it, tables go to disk.")
    ] = 4.0,
    shard: Annotated[
        str | None,
        typer.Option(
            "--shard",
            metavar="I/N",
            help="Do share I of N, together with the others, which are run with the same options elsewhere and meet in "
            "the folder OUT.shards; share 1 writes OUT.",
        ),
    ] = None,
    engine: Annotated[
        str,
        typer.Option("--engine", help="local, or ray: a share for each CPU of a cluster that sees OUT's folder."),
    ] = "local",
    workers: Annotated[int | None, typer.Option("--workers", min=1, help="CPUs of the engine ray to use.")] = None,
    split: LearnOption = "train",
    seed: SeedOption = 0,
    format: FormatOption = None,
) -> None:
    """Put fragments of examples where others stood that share an environment with them (Andreas 2020).

    Examples are pairs, or sentences (pairs with an empty target). The data decide how many there can be.

    Examples:

        compgen augment geca scan/jump --longest 38 -n 1000 -o more.tsv

        compgen augment geca sentences.txt --span 2 --spans 1 --limit 20 --window 2 --variants 1 -o more.txt
    """
    from compgen.data.formats import write_dataset
    from compgen.errors import UserError
    from compgen.geca.compose import Drawing
    from compgen.geca.shards import Job, run_on_ray
    from compgen.geca.tables import Config

    format = writable_format(out, format, data)
    config, drawing = Config(mode, span, spans, limit, window, longest), Drawing(variants, novelty, reach)
    share = (0, 1) if shard is None else _share(shard)
    if engine not in ("local", "ray"):
        raise UserError(f"no engine {engine!r}: expected local or ray")
    if (engine == "ray" and shard is not None) or (engine == "local" and workers):
        raise UserError("--workers is for --engine ray, and --shard for --engine local")
    if (engine == "ray" or shard is not None) and str(out) == "-":
        raise UserError("shares meet in a folder beside OUT: give the name of a file")
    began = time.monotonic()
    dataset, folder = load_split(data, split), Path(f"{out}.shards")
    job = Job(dataset, config, drawing, count, seed, _bytes(memory), folder, share[1])
    if engine == "ray":
        samples, note = run_on_ray(job, workers), ""
    elif shard is None:
        samples, note = _geca_alone(job)
    else:
        found = _geca_share(job, share)
        if found is None:
            console().print(f"share {shard} is done; share 1 writes {out}", highlight=False, markup=False)
            return
        samples, note = found, ""
    write_dataset(samples, out, format)
    job.close()
    made = [samples.frame[name].n_unique() for name in ("template", "fragment")]
    few = ""
    if count is not None and len(samples) < count:
        few = f" (with these options the data license no more of the {count:,})"
    seconds = f"; {time.monotonic() - began:.1f} s"
    console().print(
        f"{len(samples):,} examples of {made[0]:,} templates and {made[1]:,} fragments{few}{note}{seconds}",
        highlight=False,
        soft_wrap=True,
    )
    options = {"data": named(data), "split": split, "n": count, "seed": seed, "format": format, "memory": job.memory}
    write_record(out, options | asdict(config) | asdict(drawing))


def _geca_alone(job: "Job") -> "tuple[Dataset, str]":
    """The new examples, made by this process, and a few words on what was looked at."""
    from compgen.geca.augmenter import Geca
    from compgen.progress import Progress

    augmenter = Geca(job.config, job.drawing, job.memory)
    with Progress("fragments and templates, %", 100) as progress:
        augmenter.fit(job.dataset, lambda share: progress.update(int(100 * share)))
    with Progress("new examples: templates, %", 100) as progress:
        samples = augmenter.sample(job.count, job.seed, watch=lambda share: progress.update(int(100 * share)))
    tables = augmenter.tables
    assert tables is not None
    note = f"; {tables.pairs:,} pairs of {tables.templates:,} templates and {tables.fragments:,} fragments looked at"
    skipped = tables.enumerator.corpus.skipped
    return samples, note + (f", {skipped:,} examples left out as longer than {job.config.longest}" if skipped else "")


def _geca_share(job: "Job", share: tuple[int, int]) -> "Dataset | None":
    """What a share of the work comes to: the new examples for the first, None for the others."""
    from compgen.geca.shards import run_shard

    said: list[object] = []

    def watch(step: str, missing: dict[int, str]) -> None:
        if said[-1:] != [(step, missing)]:
            said.append((step, missing))
            names = ", ".join(
                f"{number + 1}/{share[1]}" + (f" (to be started again; it gave up: {reason})" if reason else "")
                for number, reason in missing.items()
            )
            console().print(f"waiting for the {step} of share {names}", highlight=False, markup=False)

    return run_shard(job, share[0], watch)


def _bytes(memory: float) -> int:
    """--memory in bytes."""
    from compgen.errors import UserError

    if not 0.01 <= memory <= 1e6:
        raise UserError(f"--memory {memory}: expected GiB, from 0.01 to 1,000,000")
    return int(memory * 2**30)


def _share(text: str) -> tuple[int, int]:
    """--shard I/N as a number from 0 and how many there are."""
    from compgen.errors import UserError
    from compgen.geca.tables import PARTITIONS

    number, _, count = text.partition("/")
    if not (number.isdecimal() and count.isdecimal() and 1 <= int(number) <= int(count) <= PARTITIONS):
        raise UserError(f"--shard {text or repr(text)}: expected I/N with I from 1 to N, up to {PARTITIONS}: say 2/4")
    return int(number) - 1, int(count)
