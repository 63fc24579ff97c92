"""`compgen sample`: new examples from a trained generator."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from compgen.cli.common import TrustOption, console
from compgen.record import write_record

FiltersOption = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        metavar="F,...",
        help="Keep only samples that are: novel (source and target unseen in training), unique (not drawn before in "
        "this run), rare (hold a token that is rare in training).",
    ),
]

NgramOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="rare: length of n-grams, default 1; from 2 on, n-grams that training lacks are rare too.",
        show_default=False,
    ),
]


def sample(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="A bundle folder, the name of a shipped bundle, or a checkpoint.")
    ],
    count: Annotated[
        int | None, typer.Option("-n", min=1, metavar="N", help="Stop when N samples are kept.", show_default=False)
    ] = None,
    out: Annotated[
        str, typer.Option("--output", "-o", metavar="OUT", help="A .jsonl or .tsv file (perhaps .gz), or -.")
    ] = "-",
    draws: Annotated[
        int | None,
        typer.Option("--draws", min=1, metavar="D", help="Make D draws, however many are kept.", show_default=False),
    ] = None,
    filters: FiltersOption = None,
    novelty: Annotated[
        str | None, typer.Option(help="What novel means: both (sides; default), source, or pair.", show_default=False)
    ] = None,
    rarity: Annotated[
        float | None,
        typer.Option(
            help="rare: at most this share of the distinct training examples holds the n-gram; default 0.01.",
            show_default=False,
        ),
    ] = None,
    ngram: NgramOption = None,
    rare_tokens: Annotated[
        list[str] | None,
        typer.Option(
            "--rare-token",
            metavar="TOKEN",
            help="rare: holds this token, whatever is rare in training; may be repeated, for one of several.",
            show_default=False,
        ),
    ] = None,
    best: Annotated[
        int | None,
        typer.Option("--best", min=1, metavar="K", help="Write the first K only, most probable (or by --vote) first."),
    ] = None,
    vote: Annotated[
        bool,
        typer.Option(
            "--vote",
            help="Write one target for each source, the one drawn most often, clear decisions first. Use with "
            "--draws, and without the filter unique, which would leave one vote each.",
        ),
    ] = False,
    margin: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            help="With --vote: only targets drawn at least N times more than all others of their source together. What "
            "few draws agree on is often wrong, so draw much and ask for 3.",
        ),
    ] = None,
    support: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            metavar="SHARE",
            help="Leave out samples with a new pair of neighbouring source tokens that fewer than this share of "
            "samples have: what training really lacks is made again and again, slips are not. Try 0.1.",
        ),
    ] = None,
    temperature: Annotated[
        str | None,
        typer.Option(metavar="T[,T]", help="Of source and target halves; 0 is greedy. By default the generator's."),
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1, max=1024, help="Decode by beam search of this width in place of drawing.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Names a stream of samples.", min=0, max=2**64 - 1)] = 0,
    start: Annotated[int, typer.Option(help="The first address of the stream to draw.", min=0, max=2**61)] = 0,
    runtime: Annotated[
        str | None,
        typer.Option(
            help="onnx, torchscript or native (the C++ runner, by `make cpp`) for bundles, torch for checkpoints.",
            show_default=False,
        ),
    ] = None,
    provider: Annotated[str, typer.Option(help="Of ONNX Runtime: auto, cpu or cuda.")] = "auto",
    trust_code: TrustOption = False,
    batch: Annotated[
        int | None,
        typer.Option(min=1, help="Rows decoded at a time by each worker; by default what suits runtime and device."),
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, max=1024, help="Threads, or CPUs of the Ray cluster; by default all cores.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            metavar="E",
            help="What draws: threads of this process, or ray, the CPUs of a Ray cluster: the one that RAY_ADDRESS "
            "names, else one started here. Its machines need compgen, and the bundle at the path it has here.",
        ),
    ] = "threads",
    resume: Annotated[
        bool,
        typer.Option(
            "--resume",
            help="Go on with a run to the same OUT that was interrupted or killed, given the same options. OUT is then "
            "what it would have been (from a checkpoint but for the last digit of a log_prob now and then). For "
            ".jsonl and .tsv, without --vote, --support and --best.",
        ),
    ] = False,
) -> None:
    """Draw new examples from a generator and keep those that pass the filters.

    Sample i of a seed is always the same, whatever the batch, the workers, the runtime or the machine (but for the rare
    draw that rounding decides), so a large job can be split by --start and --draws; the filter unique, --vote,
    --support and --best then hold within each part. Unfinished and malformed samples are never kept.

    While a run draws, its samples are in OUT.partial, and every two seconds OUT.partial.json says how far it is: with
    --resume a run goes on from there, however it ended. Batch, workers, runtime and engine may then be others.

    Example: compgen sample recomb2 -n 400 --filter novel,unique,rare -o samples.jsonl
    """
    import os

    from compgen import __version__
    from compgen.api import Generator
    from compgen.errors import ExhaustedError, Interrupted, UserError
    from compgen.files import check_apart, is_stream
    from compgen.sampling.choice import Choice
    from compgen.sampling.resampling import FilterConfig
    from compgen.trained.run import Run, finished

    names = filter_names(filters or [], novel=(novelty,), rare=(rarity, ngram, rare_tokens))
    if rare_tokens and not (rarity is None and ngram is None):
        raise UserError("--rare-token names what is rare: leave out --rarity and --ngram")
    config = FilterConfig(names, novelty or "both", 0.01 if rarity is None else rarity, ngram or 1)
    choice = Choice(vote, margin, support, best)
    drawing = choice.drawing(config)
    check_apart(Path(out), model)
    as_they_come = not choice.made and out != "-" and not out.endswith(".gz") and not is_stream(Path(out))
    if count is None and draws is None:
        raise UserError("say how many samples to keep (-n) or how many draws to make (--draws)")
    if resume and not as_they_come:
        raise UserError(
            "--resume is for samples that go to a .jsonl or .tsv file as they are drawn: "
            "not for standard output or .gz, nor with --vote, --support or --best"
        )
    if runtime == "native":
        from compgen.sampling import native

        if trust_code:
            raise UserError("--trust-code is for --runtime torchscript: leave it out")
        if beam is not None or provider != "auto":
            raise UserError("the native runtime draws on the CPU: leave out --beam and --provider")
        if resume or engine != "threads":
            raise UserError("the native runtime has neither --resume nor --engine: leave out --runtime native")
        native.sample(
            model,
            {
                "-n": count,
                "--draws": draws,
                "--output": out,
                "--filter": ",".join(names) or None,
                "--novelty": novelty,
                "--rarity": rarity,
                "--ngram": ngram,
                "--rare-token": rare_tokens,
                "--best": best,
                "--vote": vote,
                "--margin": margin,
                "--support": support,
                "--temperature": temperature,
                "--seed": seed,
                "--start": start,
                "--batch": batch,
                "--workers": workers,
            },
        )
    if beam is not None and workers is not None:
        raise UserError("--workers are for drawing; beam search (--beam) has none")
    if engine == "ray" and provider == "cuda":
        raise UserError("--engine ray draws on CPUs: leave out --provider cuda")
    generator = Generator.load(model, runtime, provider, trust_code=trust_code)
    options: dict[str, Any] = {
        "seed": seed,
        "start": start,
        "draws": draws,
        "rarity": config.rarity,
        "ngram": config.ngram,
        "rare_tokens": rare_tokens or [],
        "temperature": _temperature(temperature) or (generator.temperature if beam is None else None),
        "beam": beam,
    }
    asked: dict[str, Any] = {"compgen": __version__, "identity": generator.identity, "asked": count, "filters": names}
    asked |= {"novelty": config.novelty} | options | asdict(choice)
    if resume and finished(Path(out), asked):
        console().print(f"{out} is finished: nothing to go on with", highlight=False, markup=False)
        return
    running: dict[str, Any] = {"batch": batch, "workers": workers, "engine": engine}
    run = Run(generator, count, options | {"filters": drawing.names, "novelty": drawing.novelty}, running)
    end = run.to_file(Path(out), resume) if as_they_come else run.to_stream(out, choice, config)
    counts, seconds = end.counts, end.seconds
    speed = f"{counts.drawn / seconds:,.0f} draws/s, {counts.kept / seconds:,.0f} kept/s, {seconds:.1f} s"
    if engine == "threads" and beam is None and generator.threaded:
        speed += f", {workers or os.cpu_count() or 1} threads"
    chose = f"; {end.written:,} chosen" if choice.made else ""
    console().print(f"{counts}{chose} ({speed})", highlight=False)
    following = start + counts.drawn
    if out != "-":
        done = {"written": end.written, "counts": counts.to_dict(), "next": following}
        write_record(Path(out), {"model": model} | asked | done | {"seconds": round(seconds, 2)})
    if isinstance(end.stopped, KeyboardInterrupt):
        raise Interrupted(f"interrupted; {end.written:,} samples written, --start {following} goes on", *end.signals)
    if end.stopped is not None:
        raise ExhaustedError(f"{end.stopped}; {end.written:,} samples are in {out}")


def filter_names(given: list[str], novel: tuple[object, ...] = (), rare: tuple[object, ...] = ()) -> tuple[str, ...]:
    """The filters of one or more --filter; what only one of them reads must not be given without it.

    Raises:
        UserError: no such filter, or an option that no filter reads.
    """
    from compgen.errors import UserError
    from compgen.sampling.resampling import FilterConfig

    names = FilterConfig(tuple(name for words in given for name in words.split(",") if name)).names
    for name, options, words in (
        ("novel", novel, "--novelty is"),
        ("rare", rare, "--rarity, --ngram and --rare-token are"),
    ):
        if name not in names and any(option is not None for option in options):
            raise UserError(f"{words} for the filter {name}: add --filter {name}")
    return names


def _temperature(text: str | None) -> tuple[float, float] | None:
    """One temperature for both halves, or two with a comma between them."""
    from compgen.errors import UserError

    if text is None:
        return None
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) not in (1, 2):
        raise UserError(f"--temperature {text}: expected one or two numbers from 0 on, for instance 0.4,0")
    return values[0], values[-1]
