"""Gives damaged files to Python and to the C++ programs, as mutate.py does with bundles: all that is read but bundles.

    python scripts/mutate_readers.py --of resume --count 3000
    python scripts/mutate_readers.py --of sources --runner build/cpp-address,undefined/compgen-sample
    python scripts/mutate_readers.py --of mixtures --ngram build/lm-address,undefined/compgen-ngram
    python scripts/mutate_readers.py --of wire

`resume`: OUT.partial, its journal, or the record of a finished run. Both programs must go on to the bytes of a run
without interruption, or refuse and change no file. `sources`: what predictors, and generators by direct inference, are
asked, in files, compressed, or on standard input. `mixtures`: of language models, with the models and texts they are
asked about. `wire`: what compgen-ngram and compgen-score say to each other. Python is called as a user calls it, but in
a process that imports once.

A mutant fails as in mutate.py: by a crash, a hang, a traceback, a sanitizer's report, a message of several lines, or if
one program takes what the other refuses or gives another result. Refusals in other words are counted, and are no
failure.
"""

import gzip
import json
import math
import os
import random
import re
import shutil
import subprocess
import tempfile
import traceback
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest import mock

from mutate import (
    OTHER_WORDS,
    Attempt,
    Python,
    Verdict,
    break_one,
    by_program,
    campaign,
    damaged_bytes,
    damaged_json,
    damaged_text,
    memory,
    options_of,
)

LINES = ["the cat sat on the mat", "a dog saw the cat", "the dog ran and the cat sat", "", "a mat was on the log"]
ODD = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\0", b"\t", b"\r", b"\r\n", b"\n", b"\n\n", b" ", b"\x0b", b"\x0c", b"\x1c"]
ODD += ["\ufeff", "\u00a0", "\u0085", "\u2028", "\u3000", "é", "→", "<unk>", "<s>", "</s>", "a" * 300, "a " * 300]
ODD += [b"\x1f\x8b", b"\x7f", b"a b\tc", b'{"source": ["a"]}', b"IN: a OUT: b", b"#", b'"', b"\\"]
HEADER = 88  # bytes of a binary model before what it says of itself


def damaged_lines(data: bytes, rng: random.Random) -> bytes:
    """Bytes put in or in place of others, a word changed, or a few bytes as they come."""
    way = rng.random()
    if way < 0.2:
        return damaged_bytes(data, rng)
    if way < 0.4:
        return damaged_text(data, rng)
    for _ in range(rng.choice((1, 1, 3))):
        odd, at = rng.choice(ODD), rng.randrange(len(data) + 1)
        data = data[:at] + (odd.encode() if isinstance(odd, str) else odd) + data[at + rng.randrange(2) :]
    return data


def packed(data: bytes, rng: random.Random) -> bytes:
    """What may be damaged further: data compressed, in one piece or two, with something behind or in between."""
    cut = rng.randrange(len(data) + 1)
    parts = [gzip.compress(part, mtime=0) for part in (data[:cut], data[cut:])]
    way = rng.choice(("one", "two", "behind", "between", "damaged", "damaged"))
    if way == "one":
        return gzip.compress(data, mtime=0)
    if way == "damaged":
        return damaged_bytes(parts[0] + parts[1], rng)
    between = rng.choice((b"\0", b"\0" * 600, b"x", b"\x1f", b"\x1f\x8b", b"\n")) if way != "two" else b""
    return parts[0] + between + parts[1] if way == "between" else parts[0] + parts[1] + between


# The command line, in a process of its own.


def cli_loop(pipe: Connection) -> None:
    """Call the command line in a folder, again and again."""
    while True:
        folder, words, given = pipe.recv()
        os.chdir(folder)
        pipe.send(called(words, given))


def called(words: list[str], given: bytes = b"") -> Verdict:
    """What a call of the command line comes to."""
    from typer.testing import CliRunner

    from compgen.cli.main import _explained, app

    result = CliRunner().invoke(app, words, input=given)
    error = result.exception
    if error is None or (isinstance(error, SystemExit) and not error.code):
        return "sampled", result.stdout_bytes.decode("utf-8", "replace")
    said = _explained(error) if isinstance(error, Exception) else None
    if said is None:
        return "traceback", "".join(traceback.format_exception(error))
    return ("refused", said) if "\n" not in said else ("a message of several lines", said)


def alike(ours: Verdict, theirs: Verdict, expected: str | None = None) -> str:
    """`sampled` or `refused` if both programs say so, with the results expected; else what is wrong."""
    for who, (verdict, _) in (("Python", ours), ("C++", theirs)):
        if verdict not in ("sampled", "refused"):
            return f"{who}: {verdict}"
    if ours[0] != theirs[0]:
        return f"Python {ours[0]}, C++ {theirs[0]}"
    if ours[0] == "refused":
        return "refused" if ours[1].strip() == theirs[1].strip().removeprefix("error: ") else OTHER_WORDS
    if ours[1] != theirs[1]:
        return "other results"
    return "sampled" if expected in (None, ours[1]) else "not what is expected"


def files_of(folder: Path) -> dict[str, bytes]:
    """The files of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


# Samples that are gone on with.


@dataclass(frozen=True)
class Begun:
    """A run that was interrupted, or is finished: how it is called, what it left, and what it comes to."""

    words: tuple[str, ...]  # of both programs
    network: bool
    left: dict[str, bytes]
    whole: str


def begun_runs(folder: Path) -> list[Begun]:
    """Runs of a small network and of a grammar, each interrupted and finished."""
    from tests.export.tiny import exported
    from tests.sampling.grammars import exported_grammar

    generator, grammar = exported(), exported_grammar(folder)
    asked: list[tuple[Path, str, tuple[str, ...]]] = [
        (generator, "s.jsonl", ("--draws", "60")),
        (generator, "s.jsonl", ("-n", "15", "--seed", "3", "--start", "11", "--filter", "unique,novel")),
        (generator, "s.tsv", ("-n", "20", "--temperature", "1,0.4", "--filter", "unique")),
        (grammar, "s.jsonl", ("--draws", "300", "--filter", "unique,novel", "--temperature", "0.7")),
    ]
    runs = []
    for number, (bundle, name, options) in enumerate(asked):
        workers = ("--workers", "1") if bundle == generator else ()
        words = (str(bundle), *options, "-o", name, *workers, "--resume")
        for finished in (False, True):
            work = folder / f"{number}-{finished}"
            work.mkdir()
            os.chdir(work)
            if not finished:
                _interrupt(list(words))
            left = files_of(work)
            verdict, said = called(["sample", *words])
            assert verdict == "sampled", said
            runs.append(Begun(words, bundle == generator, left if not finished else files_of(work), _made(work)))
    return runs


def _interrupt(words: list[str]) -> None:
    """Begin a run that ends when some samples are written and saved, and one more is written."""
    from compgen.sampling.partial import PartialFile

    write, written = PartialFile.write, []

    def interrupted(self: PartialFile, sample: Any) -> None:
        write(self, sample)
        written.append(sample)
        if len(written) == 7:
            self.save()
        if len(written) == 8:
            self.stream.flush()
            raise KeyboardInterrupt

    with mock.patch.object(PartialFile, "write", interrupted):
        called(["sample", *words])


def _made(folder: Path) -> str:
    """The samples in a folder, and their record without what differs from run to run."""
    found = files_of(folder)
    record = next((json.loads(data) for name, data in found.items() if name.endswith(".run.json")), {})
    record = {name: value for name, value in record.items() if name not in ("seconds", "quality")}
    rows = [found[name].decode("utf-8", "replace") for name in sorted(found) if not name.endswith(".json")]
    return json.dumps([sorted(found), rows, record])


def resumed(options: Namespace, folder: Path) -> tuple[int, Attempt]:
    """Go on with damaged files."""
    from compgen.sampling import native

    runs, python = begun_runs(folder), Python(cli_loop)

    def attempt(number: int, rng: random.Random, work: Path) -> tuple[str, str, Verdict, Verdict]:
        run = runs[number] if number < 0 else rng.choice(runs)
        files, what = dict(run.left), "nothing"
        if number >= 0:
            what = rng.choice([name for name in files if not name.endswith((".jsonl", ".tsv"))])
            files[what] = _damaged_run(what, files[what], rng)
        for name in ("python", "native"):
            (work / name).mkdir()
            for file, data in files.items():
                (work / name / file).write_bytes(data)
        command = [options.runner, *run.words, *(("--step", "graph") if run.network else ())]
        ours = python(str(work / "python"), ["sample", *run.words], b"")
        theirs = by_program(command, b"", native.environment(), work / "native")
        made = []
        for name, verdict in (("python", ours), ("native", theirs)):
            if verdict[0] == "refused" and files_of(work / name) != files:
                return what, f"{name}: files changed, though it refused", ours, theirs
            made.append((verdict[0], _made(work / name)) if verdict[0] == "sampled" else verdict)
        if number >= 0 and what.endswith(".run.json"):  # of a record only what was asked for is looked at
            made = [(verdict, "" if verdict == "sampled" else said) for verdict, said in made]
            return what, alike(made[0], made[1]), ours, theirs
        return what, alike(made[0], made[1], run.whole), ours, theirs

    return len(runs), attempt


def _damaged_run(name: str, data: bytes, rng: random.Random) -> bytes:
    if not name.endswith(".json"):
        return damaged_lines(data, rng)
    return damaged_bytes(data, rng) if rng.random() < 0.15 else damaged_json(data, rng)


# What predictors are asked.


def asked_predictors(options: Namespace, folder: Path) -> tuple[int, Attempt]:
    """Answer damaged sources, by predictors and by direct inference."""
    from compgen.export.bundle_writer import export
    from compgen.runtime.bundle import Bundle
    from compgen.sampling import native
    from tests.export.test_transformer import saved
    from tests.export.tiny import exported

    export(
        saved(folder / "model.pt", seed=39, spread=1.0, size=16), folder / "transformer", batches={7: 20}, quiet=True
    )
    bundles = [exported("predictor", initial="encoder"), folder / "transformer", exported(), exported(memories=1)]
    python = Python(cli_loop)

    def attempt(number: int, rng: random.Random, work: Path) -> tuple[str, str, Verdict, Verdict]:
        bundle = rng.choice(bundles)
        vocabulary = Bundle.load(bundle).vocabulary[5:]
        lines = [" ".join(rng.choices(vocabulary, k=rng.randrange(1, 6))) for _ in range(5)]
        further = rng.choice(("x y", "x y", vocabulary[0]))
        data = "".join(f"{line}{rng.choice(('', chr(9) + further))}\n" for line in lines).encode()
        if number >= 0 and rng.random() < 0.75:
            data = damaged_lines(data, rng)
        place = rng.choice(("s.txt", "s.tsv", "s.tsv.gz", "-", "-"))
        if number >= 0 and rng.random() < (0.8 if place == "s.tsv.gz" else 0.2):
            data = packed(data, rng)
        elif number < 0 and place == "s.tsv.gz":
            data = gzip.compress(data)
        asked = [str(bundle), place]
        if place != "-":
            (work / place).write_bytes(data)
        how = ["--direct"] if bundle in bundles[2:] else ["--best", "2"] if rng.random() < 0.3 else []
        ours = python(str(work), ["predict", *asked, "-o", "python.jsonl", *how], data)
        command = [options.runner, bundle, "--input", place, "-o", "native.jsonl", "--step", "graph", "--workers", 1]
        theirs = by_program([*command, *how], data, native.environment(), work)
        ours = _answers(ours, work / "python.jsonl")
        theirs = _answers(theirs, work / "native.jsonl")
        outcome = alike(ours, theirs)
        if ours[0] == "sampled" and re.search("is not in the vocabulary", theirs[1]):
            outcome = "refused"  # the runner answers lines of known tokens, and nothing else
        return place, outcome, ours, theirs

    return 8, attempt


def _answers(verdict: Verdict, out: Path) -> Verdict:
    if verdict[0] != "sampled":
        return verdict
    rows = map(json.loads, out.read_text("utf-8").split("\n")[:-1])
    return "sampled", json.dumps([[row["source"], row["target"]] for row in rows])


# Mixtures of language models, their models, and texts.


def language_models(folder: Path) -> list[str]:
    """Write a model of each of KenLM's kinds into a folder; return their names there, in the order of KINDS."""
    from tests.lm.test_native import KINDS, models

    made = models.__wrapped__ if hasattr(models, "__wrapped__") else models._get_wrapped_function()
    kinds = made(_Made(folder))
    names = []
    for kind in KINDS:
        names.append(kinds[kind].name)
        shutil.copy(kinds[kind], folder / kinds[kind].name)
    return names


@dataclass(frozen=True)
class _Made:
    """What gives a fixture of pytest its folder."""

    folder: Path

    def mktemp(self, name: str) -> Path:
        (self.folder / name).mkdir()
        return self.folder / name


def recurrent_model(out: Path) -> None:
    """Export a small language model, of the words of KenLM's."""
    import numpy as np

    from compgen.data.vocabulary import Vocabulary
    from compgen.export.bundle_writer import export
    from compgen.recombine.compatible import compatible
    from tests.export.tiny import make
    from tests.lm.conftest import LINES

    vocabulary = Vocabulary.of([line.split() for line in LINES])
    checkpoint = make(vocabulary=vocabulary, memories=0, copying=False, feed=False)
    pool = compatible([[5, 6, 3], [7, 3]], checkpoint.vocabulary, np.array([[0]], np.int32), "long-short", "max")
    replace(checkpoint, pool=pool).save(out.with_suffix(".pt"))
    export(out.with_suffix(".pt"), out, batches={7: 20}, quiet=True)


def mixed(options: Namespace, folder: Path) -> tuple[int, Attempt]:
    """Measure texts by mixtures, of which something is damaged."""
    names, python = language_models(folder), Python(cli_loop)
    recurrent_model(folder / "bundle")
    environment = _with_scorer(options)

    def attempt(number: int, rng: random.Random, work: Path) -> tuple[str, str, Verdict, Verdict]:
        chosen = rng.choices([*names, "bundle"], k=rng.randrange(1, 4))
        files = {name: (folder / name).read_bytes() for name in chosen if name != "bundle"}
        if "bundle" in chosen:
            shutil.copytree(folder / "bundle", work / "bundle")
        files["mix.json"] = json.dumps(_mixture(chosen, rng)).encode()
        files["text.txt"] = "\n".join(rng.choices([*LINES, "a b", "zebra", "c d a"], k=6)).encode()
        what = rng.choice(["mix.json", "mix.json", "text.txt", "text.txt", *chosen]) if number >= 0 else "nothing"
        if what == "bundle":
            break_one(work / "bundle", rng)
        elif what in files:
            files[what] = _damaged_model(what, files[what], rng)
        for name, data in files.items():
            (work / name).write_bytes(data)
        ways = (["perplexity", "mix.json", "text.txt", "--json"], ["rescore", "mix.json", "text.txt"])
        words = rng.choice(ways)
        ours = python(str(work), ["lm", *words, "--threads", "1"], b"")
        given, place = files["text.txt"], [*words]
        if rng.random() < 0.3 and words[0] == "rescore":
            place = ["rescore", "mix.json"]
        theirs = by_program([options.ngram, *place, "--threads", rng.choice((1, 3))], given, environment, work)
        ours, theirs = _rounded(ours), _rounded(theirs)
        if place != words and theirs[0] == "refused":
            theirs = ("refused", theirs[1].replace("error: -", "text.txt"))
        if "=====" in theirs[1] or "without an answer" in theirs[1]:
            theirs = ("crash of compgen-score", theirs[1])
        return what, alike(ours, theirs), ours, theirs

    return 12, attempt


def _mixture(models: list[str], rng: random.Random) -> dict[str, Any]:
    from compgen.lm.mixture import FORMAT

    rows = [[rng.random() + 0.01 for _ in models] for _ in range(rng.choice((1, 9)))]
    return {"format": FORMAT, "models": models, "weights": [[w / math.fsum(row) for w in row] for row in rows]}


def _damaged_model(name: str, data: bytes, rng: random.Random) -> bytes:
    if name.endswith(".json"):
        return damaged_bytes(data, rng) if rng.random() < 0.1 else damaged_json(data, rng)
    if name.endswith(".txt"):
        data = damaged_lines(data, rng) if rng.random() < 0.8 else data
        return packed(data, rng) if rng.random() < 0.3 else data
    if name.endswith(".arpa"):
        return damaged_lines(data, rng) if rng.random() < 0.6 else _other_numbers(data, rng)
    return _damaged_head(data, rng) if rng.random() < 0.3 else _damaged_tables(data, rng)


def _damaged_tables(data: bytes, rng: random.Random) -> bytes:
    """A binary model with other bytes behind its first ones."""
    if rng.random() < 0.2:
        return damaged_bytes(data, rng)
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5, 40))):
        at = rng.randrange(HEADER, len(data))
        size = min(rng.choice((1, 1, 4, 8, 24, 200)), len(data) - at)
        changed[at : at + size] = rng.choice((b"\xff", b"\0", b"\1", b"\x55", b"\x80", rng.randbytes(1))) * size
    return bytes(changed)


def _damaged_head(data: bytes, rng: random.Random) -> bytes:
    """A binary model that says something else of itself."""
    changed = bytearray(data)
    size = HEADER + 20 + 8 * data[HEADER] + 8  # with the number of words
    for _ in range(rng.randrange(1, 4)):
        changed[rng.randrange(size)] = rng.choice((0, 1, 2, 127, 128, 255, rng.randrange(256)))
    return bytes(changed)


def _other_numbers(data: bytes, rng: random.Random) -> bytes:
    """A text with one of its numbers replaced."""
    places = list(re.finditer(rb"-?\d+(?:\.\d+)?", data))
    place = rng.choice(places)
    odd = rng.choice(
        ("0", "1", "-1", "nan", "inf", "-inf", "1e39", "-1e39", "-99", "2147483648", "18446744073709551616", "")
    )
    return data[: place.start()] + odd.encode() + data[place.end() :]


def _rounded(verdict: Verdict) -> Verdict:
    """Results with numbers of 8 digits: the last of 12 depend on the order of sums."""
    if verdict[0] != "sampled":
        return verdict
    return "sampled", re.sub(r"-?\d+\.\d+(?:e[+-]?\d+)?", lambda found: f"{float(found[0]):.8g}", verdict[1]).strip()


def _with_scorer(options: Namespace) -> dict[str, str]:
    from compgen.sampling import native

    return native.environment() | {"COMPGEN_SCORER": str(options.runner.with_name("compgen-score"))}


# What compgen-ngram and compgen-score say to each other.

FAKE = "#!/bin/sh\ncat {reply}\ncat {errors} >&2\nexit {code}\n"  # it does not wait to be asked


def wired(options: Namespace, folder: Path) -> tuple[int, Attempt]:
    """Give compgen-score damaged requests, and compgen-ngram damaged answers."""
    recurrent_model(folder / "bundle")
    environment, scorer = _with_scorer(options), options.runner.with_name("compgen-score")
    text = "\n".join(["a b c", "zebra", "", "g a"]).encode() + b"\n"
    sentences, lines = 4, b"a b c \nzebra \n\ng a \n"
    request = sentences.to_bytes(4, "little") + len(lines).to_bytes(4, "little") + lines
    reply = _raw([scorer, folder / "bundle"], request, environment)

    def attempt(number: int, rng: random.Random, work: Path) -> tuple[str, str, Verdict, Verdict]:
        if rng.random() < 0.5:
            given = request * rng.randrange(1, 3)
            given = damaged_bytes(given, rng) if number >= 0 else given
            found = by_bytes([scorer, folder / "bundle", "--threads", rng.choice((1, 3))], given, environment)
            return "request", found[0], found, found
        damaged = damaged_bytes(reply, rng) if number >= 0 else reply
        errors = rng.choice((b"", b"", b"error: a\nb\n", b"\xff", b"warning: x\n" * 9)) if number >= 0 else b""
        (work / "reply").write_bytes(damaged), (work / "errors").write_bytes(errors)
        (work / "request").write_bytes(request)
        fake, code = work / "scorer", rng.choice((0, 1, 2)) if number >= 0 else 0
        names = {name: str(work / name) for name in ("request", "reply", "errors")}
        fake.write_text(FAKE.format(code=code, **names))
        fake.chmod(0o700)
        asked = [options.ngram, "rescore", folder / "bundle", "--threads", 1]
        found = by_bytes(asked, text, environment | {"COMPGEN_SCORER": str(fake)})
        return "answer", found[0], found, found

    return 4, attempt


def _raw(command: list[Any], given: bytes, environment: dict[str, str]) -> bytes:
    return subprocess.run(list(map(str, command)), input=given, capture_output=True, env=environment, check=True).stdout


def by_bytes(command: list[Any], given: bytes, environment: dict[str, str]) -> Verdict:
    """As `by_program`, of a program that writes no text."""
    found = by_program(command, given, environment)
    return ("sampled", "") if found[0] == "output that is no UTF-8" else found


KINDS: dict[str, Callable[[Namespace, Path], tuple[int, Attempt]]] = {
    "resume": resumed,
    "sources": asked_predictors,
    "mixtures": mixed,
    "wire": wired,
}


def main() -> None:
    """Try what is whole, then what is damaged."""
    parser = options_of(__doc__, "--count")
    parser.add_argument("--of", choices=KINDS, required=True)
    parser.add_argument("--ngram", type=Path, help="compgen-ngram; by default the one that `cgen lm` uses")
    options = parser.parse_args()
    from compgen.lm.install import program
    from compgen.sampling import native

    options.runner = (options.runner or native.runner()).absolute()
    if options.of in ("mixtures", "wire"):
        options.ngram = (options.ngram or program("compgen-ngram")).absolute()
    if options.keep:
        options.keep = options.keep.absolute()
    with tempfile.TemporaryDirectory(dir=memory()) as name:
        whole, attempt = KINDS[options.of](options, Path(name))
        campaign(options, Path(name), whole, attempt)


if __name__ == "__main__":
    main()
