"""`cgen predict`: targets for sources alone."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from pydantic import BaseModel, model_validator

from compgen.cli.answering import TOGETHER, Answering, Ranked, second_model
from compgen.cli.common import TrustOption, check_order, check_together, say
from compgen.cli.options import argument, bounds, option, with_options
from compgen.data.named import Columns
from compgen.errors import DataError, UserError
from compgen.files import STDOUT, atomic_path, check_apart, check_writable, is_stream, open_text, writing
from compgen.progress import Progress
from compgen.record import named, write_record

if TYPE_CHECKING:
    from compgen.data.sources import Source


class Options(BaseModel):
    """The options of `cgen predict`."""

    out: str = option(
        "-",
        "Write to this .txt, .tsv or .jsonl file, or .unimorph for words (also .gz), or print lines (-).",
        "--output",
        "-o",
        metavar="OUT",
    )
    best: int | None = option(
        None,
        "Write the N best targets of each source, found by beam search; .jsonl has their scores.",
        metavar="N",
        **bounds("best"),
    )
    beam: int = option(1, "Width of beam search, at least N of --best; 1 is greedy decoding.", **bounds("beam"))
    format: Literal["text", "tsv", "jsonl", "unimorph"] | None = option(
        None,
        "Format of INPUT: text, tsv, jsonl or unimorph. By default, its suffix decides or, for a pipe, its first line.",
        metavar="F",
    )
    split: str | None = option(None, "Use only the sources of this split of INPUT.", metavar="S")
    others: list[str] = option(
        [],
        "Answer together with this predictor: each proposes targets, and the mean of their log-probabilities decides.",
        "--with",
        metavar="MODEL",
    )
    direct: bool = option(False, "Let a generator or a grammar answer, as in `cgen evaluate`.")
    otherwise: str | None = option(
        None, "With --direct: use this predictor for sources without an answer.", metavar="PREDICTOR"
    )
    runtime: str | None = option(
        None, "For a bundle: onnx, native (the C++ runner) or torchscript. For anything else: torch."
    )
    trust_code: TrustOption = False

    @model_validator(mode="after")
    def _consistent(self) -> "Options":
        refused = {
            f"--best {self.best} needs a beam as wide: leave out --beam {self.beam}": 1 < self.beam < (self.best or 1),
            "direct inference gives one answer, greedily: leave out --beam and --best": self.direct
            and (self.beam > 1 or self.best is not None),
            "--otherwise answers what a generator cannot: add --direct": self.otherwise is not None and not self.direct,
            "predictors answer together, generators do not: leave out --direct or --with": self.direct and self.others,
        }
        check_together(refused)
        return self


@with_options
def predict(
    model: Annotated[
        str,
        argument(
            "MODEL", "A checkpoint, a bundle or a folder of `cgen train pretrained`; with --direct, also a grammar."
        ),
    ],
    options: Options,
    columns: Columns,
    data: Annotated[
        str,
        typer.Argument(metavar="INPUT", help="Sources: a file, - for standard input (the default), or NAME/SPLIT."),
    ] = "-",
) -> None:
    """Predict the targets of sources. Each line is answered as it comes.

    INPUT has one source per line, as tokens separated by spaces (.txt, -), or is any other data; targets are ignored,
    and may be missing. Words to inflect are lemma TAB tags, or lemma TAB form TAB tags (.tsv, .unimorph, or no suffix),
    or tables with columns of these names. Data with column names, or with --split, are read to the end before they are
    answered.

    OUT has the predicted tokens, separated by spaces (.txt, -; with --best, targets are separated by TABs), or source
    TAB predicted (.tsv; with --best, a row for each target), or also log-probabilities and INPUT's other columns, such
    as an id (.jsonl). Words are written as words, in .tsv and .unimorph as lemma TAB form TAB tags. A predictor of
    analyses reads forms as they are written.

    Examples:

    \b
        cgen predict predictor.pt questions.txt -o answers.jsonl --best 3
        paste questions.txt <(cgen predict predictor.pt questions.txt)
        cgen predict inflector.pt lemmas-and-tags.tsv -o inflected.tsv
        cgen predict seed0.pt questions.txt --with seed1.pt --with seed2.pt -o answers.txt
    """
    from compgen.data.sources import as_forms, read_sources
    from compgen.data.unimorph import ANALYSIS, INFLECTION

    check_order(model, data)
    suffix = _checked_out(options.out, data, model, options.otherwise, *options.others)
    answering, task, identities = _opened(model, options)
    began, done = time.monotonic(), 0
    quiet = options.out == "-" and sys.stdout.isatty()
    with _writer(options.out) as write, Progress("predict", None, quiet=quiet) as progress:
        for sources in read_sources(data, options.format, columns, options.split, task == INFLECTION):
            if task == ANALYSIS:
                sources = as_forms(sources, model)
            write("".join(map(_LINES[suffix], sources, _answers(answering, sources))))
            done += len(sources)
            progress.update(done)
    seconds = round(time.monotonic() - began, 1)
    if options.direct:
        say(f"{model}: {answering.answered:,} answered")
    if options.out != "-":
        asked: dict[str, Any] = {"model": named(model), "others": [*map(named, options.others)], "input": named(data)}
        asked |= options.model_dump(exclude={"out", "trust_code", "others"}) | columns.given
        asked |= {"beam": max(options.beam, options.best or 1), "otherwise": named(options.otherwise)}
        write_record(Path(options.out), asked | identities | {"sources": done, "seconds": seconds})
        say(f"{options.out}: {done:,} sources, {seconds} s")


def _opened(model: str, options: Options) -> tuple[Answering, str | None, dict[str, Any]]:
    """Return what answers, what MODEL learnt of words, if anything, and which models these are, for the record."""
    from compgen.api import Generator, Predictor
    from compgen.data.unimorph import WORDS
    from compgen.trained.committee import Committee

    kind = Generator if options.direct else Predictor
    names = [model, *options.others]
    systems = [kind.load(one, options.runtime, trust_code=options.trust_code) for one in names]
    members = [one for one in systems if isinstance(one, Predictor)]
    system, name = (Committee(members, names), TOGETHER) if options.others else (systems[0], model)
    second = second_model(options.otherwise, options.runtime)
    answering = Answering(name, system, options.otherwise, second, options.best or 1, options.beam, " so far")
    first, *others = (system.identity for system in systems)
    identities = {"identity": first, "identity_of_others": others, "identity_of_otherwise": second and second.identity}
    return answering, getattr(systems[0], "trained_on", {}).get(WORDS), identities


def _checked_out(out: str, *read: str | None) -> str:
    """Return the suffix that says how predictions are written, once OUT is known to be writable."""
    if out == "-":
        return ".txt"
    path = Path(out)
    suffix = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if suffix not in _LINES:
        if is_stream(path):
            return ".txt"
        raise UserError(f"{out}: predictions are written as {', '.join(_LINES)} (perhaps .gz), found suffix {suffix!r}")
    check_apart(path, *read)
    check_writable(path)
    return suffix


@contextmanager
def _writer(out: str) -> Iterator[Callable[[str], None]]:
    """Yield a function that writes text to a file that appears whole, or at once to standard output."""
    if out != "-":
        with atomic_path(Path(out)) as temporary, open_text(temporary) as stream:
            yield lambda text: print(text, end="", file=stream)
        return

    def write(text: str) -> None:
        with writing(STDOUT):
            sys.stdout.buffer.write(text.encode())
            sys.stdout.buffer.flush()

    yield write


def _answers(answering: Answering, sources: "list[Source]") -> list[Ranked]:
    """Return the targets of each source, an empty one for a source without tokens."""
    asked = [source.tokens for source in sources if source.tokens]
    found = iter(answering.to(asked) if asked else [])
    return [next(found) if source.tokens else [([], None)] for source in sources]


def _text(source: "Source", ranked: Ranked) -> str:
    """Return a line: the targets, with TABs between them."""
    return "\t".join(_written(source, target) for target, _ in ranked) + "\n"


def _tsv(source: "Source", ranked: Ranked) -> str:
    """Return a line for each target, with the source; a form stands between lemma and tags."""
    from compgen.data.sources import as_word

    if not source.tokens:
        return "\n"
    first, *rest = source.written
    if source.analysed:
        analyses = (as_word(target) for target, _ in ranked)
        return "".join(f"{lemma}\t{first}\t{tags}\n" for lemma, tags in analyses)
    return "".join("\t".join([first, _written(source, target), *rest]) + "\n" for target, _ in ranked)


def _unimorph(source: "Source", ranked: Ranked) -> str:
    """Return a line for each target of a word."""
    if source.tokens and not (source.inflected or source.analysed):
        raise DataError(
            f"unimorph holds words: found the source {source.written[0]!r:.60}, expected lemma TAB tags, or for what "
            "analyses words their forms: write .tsv or .jsonl"
        )
    return _tsv(source, ranked)


def _jsonl(source: "Source", ranked: Ranked) -> str:
    """Return an object for each target."""
    lines = []
    for rank, (target, score) in enumerate(ranked, start=1):
        record: dict[str, object] = {"source": source.tokens, "target": target}
        if score is not None:
            record |= {"rank": rank, "log_prob": round(score, 4)}
        record = {**source.more, **record}
        lines.append(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
    return "".join(lines)


def _written(source: "Source", target: list[str]) -> str:
    """Return a target as it is written: the letters of a word together, other tokens separated by spaces."""
    from compgen.data.sources import as_word
    from compgen.data.unimorph import joined

    if source.analysed:
        return " ".join(as_word(target))
    for token in () if source.inflected else (*source.tokens, *target):
        if token.split() != [token]:
            raise DataError(f"lines cannot hold the token {token!r}, which is empty or has spaces in it: write .jsonl")
    return joined(target) if source.inflected else " ".join(target)


_LINES = {".txt": _text, ".tsv": _tsv, ".jsonl": _jsonl, ".unimorph": _unimorph}
