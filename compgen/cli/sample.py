"""`cgen sample`: new examples from a trained generator."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn

from pydantic import BaseModel, model_validator

from compgen.cli.common import TrustOption, check_together, say
from compgen.cli.options import argument, bounds, option, spelled, with_options
from compgen.cli.quality import StrictOption, judged, say_warnings
from compgen.errors import Interrupted, UserError
from compgen.files import check_apart, is_stream, reading
from compgen.processors import processors
from compgen.progress import rate
from compgen.record import named, write_record
from compgen.sampling.output import PARQUET, format_of, lines_of

if TYPE_CHECKING:
    from compgen.api import Generator
    from compgen.sampling.choice import Choice
    from compgen.sampling.resampling import Counts, FilterConfig
    from compgen.trained.run import End

NATIVE = [  # fields of Options that the C++ runner takes too, by the names of the options
    *("count", "draws", "out", "filters", "novelty", "rarity", "ngram", "rare_tokens", "prototypes", "best", "vote"),
    *("margin", "support", "temperature", "seed", "start", "batch", "workers", "resume"),
]


FEW = 0.05  # share of draws kept below which a better way is pointed out
MEASURED = 10_000  # quality is measured on at least so many samples if there are more than twice as many


class Options(BaseModel):
    """The options of `cgen sample`."""

    count: int | None = option(
        None, "Stop when N samples are kept, with a warning if fewer can be found.", "-n", ge=1, metavar="N"
    )
    out: str = option(
        "-",
        "Write to this .jsonl, .tsv (also .gz) or .parquet file, or - for standard output.",
        "--output",
        "-o",
        metavar="OUT",
    )
    draws: int | None = option(None, "Make D draws, kept or not; with -n, at most D.", ge=1, metavar="D")
    filters: tuple[str, ...] = option(
        (),
        "Keep only samples that are novel (source and target not in training), unique (not drawn before in this run) "
        "or rare (with a token that is rare in training); separate several by commas.",
        "--filter",
        metavar="F,...",
    )
    novelty: str | None = option(
        None, "What the filter novel requires to be new: both sides (default), source, or pair."
    )
    rarity: float | None = option(
        None, "Filter rare: a token is rare if at most this share of training examples have it. Default: 0.01."
    )
    ngram: int | None = option(
        None, "Filter rare: look for n-grams of N tokens. Default: 1; from 2, unseen n-grams count too.", ge=1
    )
    rare_tokens: list[str] = option(
        [],
        "Filter rare: look for this token, however frequent it is.",
        "--rare-token",
        metavar="TOKEN",
    )
    prototypes: Literal["all", "rare"] = option(
        "all",
        "rare: with the filter rare, draw only where a prototype has a rare token. This takes far fewer draws.",
        metavar="P",
    )
    best: int | None = option(
        None, "Write only the K most probable samples or, with --vote, the K clearest winners.", ge=1, metavar="K"
    )
    vote: bool = option(
        False,
        "Write one target for each source: the one drawn most often. Use with --draws and without the filter unique.",
    )
    margin: int | None = option(
        None,
        "With --vote: keep a target only if it has at least N more votes than all other targets of its source "
        "together. Try 3.",
        ge=1,
        metavar="N",
    )
    support: float | None = option(
        None,
        "Drop samples whose source has a new pair of adjacent tokens that fewer than this share of samples have. Try "
        "0.1.",
        ge=0,
        le=1,
        metavar="SHARE",
    )
    temperature: str | None = option(
        None,
        "Sampling temperature: one for both sides, or SOURCE,TARGET; 0 is greedy. By default, the model's own.",
        metavar="T[,T]",
    )
    beam: int | None = option(None, "Decode by beam search of this width instead of drawing.", **bounds("beam"))
    seed: int = option(0, "Select the stream of samples; equal seeds give equal samples.", **bounds("seed"))
    start: int = option(0, "Begin at this position in the stream of samples.", **bounds("start"))
    runtime: str | None = option(
        None,
        "For a bundle: onnx, torchscript or native (the C++ runner; build it with `make runner`). For a "
        "checkpoint: torch.",
    )
    provider: str = option("auto", "Run ONNX Runtime on auto, cpu or cuda.")
    trust_code: TrustOption = False
    batch: int | None = option(
        None, "Rows that each worker decodes at a time. By default, chosen by runtime and device.", ge=1
    )
    workers: int | None = option(
        None, "Number of threads, or of CPUs with --engine ray. By default, all.", **bounds("workers")
    )
    engine: Literal["threads", "ray"] = option(
        "threads",
        "Draw here (threads), or on a Ray cluster (ray): the one that RAY_ADDRESS names, or one started here.",
        metavar="E",
    )
    resume: bool = option(
        False,
        "Continue an interrupted run with the same options and OUT. Not with --vote, --support or --best.",
    )
    strict: StrictOption = False

    @model_validator(mode="after")
    def _consistent(self) -> "Options":
        native = self.runtime == "native"
        named_and_counted = self.rare_tokens and (self.rarity, self.ngram) != (None, None)
        not_on_cpu = (self.beam, self.provider) != (None, "auto")
        refused = {
            "--rare-token names what is rare: leave out --rarity and --ngram": named_and_counted,
            "--engine ray draws on CPUs: leave out --provider cuda": (self.engine, self.provider) == ("ray", "cuda"),
            "--trust-code is for --runtime torchscript: leave it out": native and self.trust_code,
            "the native runtime draws on the CPU: leave out --beam and --provider": native and not_on_cpu,
            "the native runtime has no --engine: leave out --runtime native": native and self.engine != "threads",
            "the native runtime writes .jsonl and .tsv: give such a file by -o": native and self.out.endswith(PARQUET),
            "the native runtime measures no quality: leave out --strict": native and self.strict,
            "--strict is for samples in a file: give one by -o": self.strict and self.out == "-",
        }
        check_together(refused)
        return self


@with_options
def sample(
    model: Annotated[
        str, argument("MODEL", "A bundle folder, the name of a shipped bundle, a checkpoint or a grammar file.")
    ],
    options: Options,
) -> None:
    """Draw new examples from a generator and keep those that pass the filters.

    Sample i of a seed is the same for any batch size, number of workers, runtime and machine (except in the rare case
    that rounding decides a draw), so you can split a large job with --start and --draws. The filter unique, --vote,
    --support and --best then apply within each part. Unfinished and malformed samples are never kept. Continue an
    interrupted run with --resume; batch, workers, runtime and engine may differ.

    Example: cgen sample recomb2 -n 400 --filter novel,unique,rare -o samples.jsonl
    """
    from compgen.api import Generator
    from compgen.sampling.choice import Choice
    from compgen.sampling.partial import forget_journal
    from compgen.trained.run import Run, finished

    config = _filters(options)
    choice = Choice(options.vote, options.margin, options.support, options.best)
    drawing = choice.drawing(config)
    out = Path(options.out)
    check_apart(out, model)
    _require_end(model, options)
    to_file = not choice.made and options.out != "-" and out.suffix != ".gz" and not is_stream(out)
    if options.resume and not to_file:
        raise UserError(
            "--resume is for samples that are written to a file as they are drawn: "
            "not for standard output or .gz, nor with --vote, --support or --best"
        )
    if options.runtime == "native":
        _sample_natively(model, options, config.names)
    generator = Generator.load(model, options.runtime, options.provider, trust_code=options.trust_code)
    config = replace(config, rare_tokens=tuple(generator.vocabulary.encode(options.rare_tokens)))
    drawn = _drawn(options, config, generator)
    asked = _asked(options, config, choice, generator, drawn)
    if options.resume and finished(out, asked):
        forget_journal(out)
        say(f"{out} is finished: nothing to continue")
        return
    running = {"batch": options.batch, "workers": options.workers, "engine": options.engine}
    watched = _Quality(generator, options, to_file)
    kept: dict[str, Any] = {"filters": drawing.names, "novelty": drawing.novelty}
    if drawing.voting:
        kept["voting"] = True  # absent otherwise, as in the journals that --resume compares these options with
    run = Run(generator, options.count, drawn | kept, running, watched.check)
    end = run.to_file(out, options.resume) if to_file else run.to_stream(options.out, choice, config)
    _report(end, options, choice, generator)
    following = options.start + end.counts.drawn
    if options.out != "-":
        write_record(out, {"model": named(model)} | asked | _done(end, out, following, watched))
    if isinstance(end.stopped, KeyboardInterrupt):
        raise Interrupted(f"interrupted; {end.written:,} samples written, --start {following} goes on", *end.signals)
    if end.stopped is not None:
        say_warnings([f"{end.stopped}; {end.written:,} samples are in {options.out}, fewer than asked for"])


def _require_end(model: str, options: Options) -> None:
    """Raise UserError if nothing says how many samples to draw; before, if the model is no generator."""
    from compgen.api import Generator

    if options.count is options.draws is None:
        Generator.load(model, options.runtime, options.provider, trust_code=options.trust_code)
        raise UserError("say how many samples to keep (-n) or how many draws to make (--draws)")


class _Quality:
    """The quality of a finished file of samples; `figures` are for its record, None as long as there are none."""

    def __init__(self, generator: "Generator", options: Options, resumable: bool) -> None:
        self.generator, self.options, self.resumable = generator, options, resumable
        self.figures: dict[str, Any] | None = None

    def check(self, path: Path, counts: "Counts", why: str) -> None:
        """Measure the samples in a file that will become OUT; `why` says why they are fewer than asked for, if so.

        Raises:
            UserError: there is a warning, and --strict.
        """
        from compgen.data.content import lines_as_they_come
        from compgen.data.examples import Dataset
        from compgen.data.formats import FORMATS
        from compgen.data.named import USUALLY

        options = self.options
        if not len(self.generator.pool.tokens) and not options.strict:
            say("the model holds no training examples to compare samples with: their quality is not measured")
            return
        lines, stride = _thinned(line for lines in lines_as_they_come(path) for line in lines)
        if stride > 1:
            say(f"quality is measured on one sample in {stride:,}; `cgen data quality` measures all")
        kept = f"{options.out} is not written"
        if self.resumable:
            kept += f"; the samples are in {path}: --resume without --strict makes it of them"
        choosing = options.vote or options.support is not None
        asked = options.best if options.best is not None else None if choosing else options.count
        asked = asked if stride == 1 else None  # the number of some of them says nothing
        format = FORMATS[lines_of(format_of(Path(options.out))).removeprefix(".")]
        made = Dataset(format.read("\n".join(lines).encode(), options.out, USUALLY).frame)
        more = [*counts.warnings(), *([why] if why and options.strict else [])]  # else printed at the end
        found = judged(made, self.generator.examples(), asked, more, kept if options.strict else None)
        self.figures = found.to_dict()


def _thinned(lines: Iterable[str]) -> tuple[list[str], int]:
    """Return every k-th line, and k: the least power of two that leaves at most 2 MEASURED lines."""
    kept, stride = list[str](), 1
    for number, line in enumerate(lines):
        if number % stride == 0:
            kept.append(line)
            if len(kept) > 2 * MEASURED:
                kept, stride = kept[::2], 2 * stride
    return kept, stride


def _filters(options: Options) -> "FilterConfig":
    """The filters that options describe.

    Raises:
        UserError: there is no such filter, or an option is given without the filter that it belongs to.
    """
    from compgen.sampling.resampling import RARITY, FilterConfig, filter_names

    rarity = RARITY if options.rarity is None else options.rarity
    names = filter_names(options.filters)
    if options.prototypes != "all" and "rare" not in names:
        raise UserError("--prototypes is for the filter rare: add --filter rare")
    if options.prototypes != "all" and (options.ngram or 1) > 1:
        raise UserError("--prototypes rare is for single tokens: leave out --ngram")
    if options.novelty is not None and "novel" not in names:
        raise UserError("--novelty is for the filter novel: add --filter novel")
    rare = options.rarity is not None or options.ngram is not None or options.rare_tokens
    if rare and "rare" not in names:
        raise UserError("--rarity, --ngram and --rare-token are for the filter rare: add --filter rare")
    return FilterConfig(names, "both" if options.novelty is None else options.novelty, rarity, options.ngram or 1)


def _sample_natively(model: str, options: Options, names: Sequence[str]) -> NoReturn:
    """Become the C++ runner, which measures no quality."""
    from compgen.sampling import native

    if options.out != "-":
        say(f"the native runtime measures no quality: `cgen data quality {options.out} --train DATA` does")
    values = options.model_dump(include=set(NATIVE)) | {"filters": ",".join(names) or None}
    native.sample(model, {spelled(name, Options.model_fields[name]): values[name] for name in NATIVE})


def _drawn(options: Options, config: "FilterConfig", generator: "Generator") -> dict[str, Any]:
    """The options that decide which samples are drawn, besides the filters."""
    temperature = _temperature(options.temperature) or (generator.temperature if options.beam is None else None)
    chosen = options.model_dump(include={"seed", "start", "draws", "rare_tokens", "prototypes", "beam"})
    return chosen | {"rarity": config.rarity, "ngram": config.ngram, "temperature": temperature}


def _asked(
    options: Options, config: "FilterConfig", choice: "Choice", generator: "Generator", drawn: dict[str, Any]
) -> dict[str, Any]:
    """All options that decide what is written, for the record."""
    from compgen import __version__

    asked = {"compgen": __version__, "identity": generator.identity, "asked": options.count, "filters": config.names}
    return asked | {"novelty": config.novelty} | drawn | asdict(choice)


def _done(end: "End", out: Path, following: int, watched: _Quality) -> dict[str, Any]:
    """What the record says of a run; by `bytes`, --resume sees whether OUT has been truncated since."""
    with reading(out):
        size = out.stat().st_size
    done = {"written": end.written, "bytes": size, "counts": end.counts.to_dict(), "next": following}
    return done | {"quality": watched.figures, "seconds": round(end.seconds, 2)}


def _report(end: "End", options: Options, choice: "Choice", generator: "Generator") -> None:
    """Say what was drawn and kept, and how fast."""
    counts, seconds = end.counts, end.seconds
    speed = f"{rate(counts.drawn, seconds)} draws/s, {rate(counts.kept, seconds)} kept/s, {seconds:.1f} s"
    if options.engine == "threads" and options.beam is None and generator.threaded:
        speed += f", {options.workers or processors()} threads"
    chosen = f"; {end.written:,} chosen" if choice.made else ""
    say(f"{counts}{chosen} ({speed})")
    if 2 * end.alone > end.written:
        more = "make more draws (--draws in place of -n)" if options.draws is None else "make more --draws"
        once = f"{end.alone:,} of {end.written:,} sources were drawn once, so that nothing voted against their targets"
        say_warnings([f"{once}: {more}, or ask for clear votes (--margin 3)"])
    if _wasteful(options, counts) and generator.pool.prototypes:
        say("few draws were kept: --prototypes rare draws only where a prototype is rare, which wastes far fewer")


def _wasteful(options: Options, counts: "Counts") -> bool:
    """Whether so few draws were kept that drawing from rare prototypes alone would have spared most of the others."""
    usual = (options.prototypes, options.rarity, options.ngram or 1) == ("all", None, 1)
    return usual and any("rare" in names for names in options.filters) and counts.kept < FEW * counts.drawn


def _temperature(text: str | None) -> tuple[float, float] | None:
    """One temperature for both halves, or two with a comma between them."""
    if text is None:
        return None
    try:
        parts = [part.strip() for part in text.split(",")]
        values = [float(part) for part in parts if part.isascii()]  # the C++ runner knows no other digits
    except ValueError:
        values = []
    if len(values) not in (1, 2) or len(values) < len(parts):
        raise UserError(f"--temperature {text}: expected one or two numbers from 0 on, for instance 0.4,0")
    return values[0], values[-1]
