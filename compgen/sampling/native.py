"""The C++ runner (`cpp_runner/`), which takes the options of `cgen sample` and gives the same samples."""

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from compgen.errors import UserError, how_it_ended
from compgen.interrupts import broken_pipes_raise
from compgen.runtime import device
from compgen.runtime.bundle import Bundle, resolve
from compgen.sampling.batching import Draw

PROGRAM = "compgen-sample"
BUILT = Path(__file__).parents[2] / "build" / "cpp" / PROGRAM  # where `make runner` puts it


def runner() -> Path:
    """The runner that COMPGEN_RUNNER names, `make runner` built, pip put beside Python, or PATH has; else UserError."""
    named = os.environ.get("COMPGEN_RUNNER")
    installed = Path(sysconfig.get_path("scripts")) / PROGRAM
    places = [Path(named)] if named else [BUILT, installed, Path(shutil.which(PROGRAM) or "")]
    found = next((place for place in places if place.is_file() and os.access(place, os.X_OK)), None)
    if found is None:
        where = f"COMPGEN_RUNNER={named}" if named else f"{BUILT}, {installed} or on PATH"
        ways = "build it with `make runner` or `pip install ./cpp_runner`"
        raise UserError(f"no C++ runner at {where}: {ways}, or leave out --runtime native")
    return found


def opened(bundle: Bundle) -> Bundle:
    """Return a bundle that the runner finds wherever the process goes; raises UserError if there is no runner."""
    runner()  # an error now, not at the first source
    return replace(bundle, path=bundle.path.absolute())


def sample(model: str, options: Mapping[str, object]) -> NoReturn:
    """Replace this process by the runner, sampling a bundle with `options` (see `_words`).

    Raises:
        UserError: there is no runner, no such bundle, or no ONNX Runtime.
    """
    named = {} if Path(model).exists() else {"--model": model}  # one that is shipped, as Python's record names it
    program, words = runner(), [_word(resolve(Path(model))), *_words({**options, **named})]
    os.execve(program, [str(program), *words], environment())


def raw(
    bundle: Bundle,
    seed: int,
    start: int,
    stop: int,
    temperature: tuple[float, float],
    options: Mapping[str, object],
) -> list[Draw]:
    """The draws of addresses start .. stop - 1, with further options of the runner.

    Raises:
        UserError: there is no runner, it fails, or the bundle's folder holds another one by now.
    """
    first, second = temperature
    asked = {"--draws": stop - start, "--start": start, "--seed": seed, "--temperature": f"{first!r},{second!r}"}
    return [_draw(line, line["index"]) for line in _lines(bundle, {"--raw": True} | asked | dict(options))]


def raw_answers(bundle: Bundle, sources: Sequence[Sequence[int]], options: Mapping[str, object]) -> list[Draw]:
    """A predictor's answers to sources of ids, each as a draw whose index is its place; errors as `raw`."""
    return [_draw(line, place) for place, line in enumerate(raw_lines(bundle, sources, options))]


def raw_lines(bundle: Bundle, sources: Sequence[Sequence[int]], options: Mapping[str, object]) -> list[dict[str, Any]]:
    """What the runner writes of answers to sources of ids: `index` is a source's place."""
    return lines(bundle, sources, {"--raw": True} | dict(options))


def lines(bundle: Bundle, sources: Sequence[Sequence[object]], options: Mapping[str, object]) -> list[dict[str, Any]]:
    """What the runner writes of answers to sources of words, none of which has spaces in it; errors as `raw`."""
    text = "".join(" ".join(map(str, source)) + "\n" for source in sources)
    return _lines(bundle, {"--input": "-"} | dict(options), "\ufeff" + text)  # the first mark is none of the text's


def _draw(line: dict[str, Any], index: int) -> Draw:
    prototypes = tuple(line.get("prototypes", ()))
    return Draw(index, tuple(line["tokens"]), line["finished"], line["log_prob"], prototypes)


def _lines(bundle: Bundle, options: Mapping[str, object], text: str = "") -> list[dict[str, Any]]:
    """The lines that the runner writes, with `text` on its standard input."""
    words = [str(runner()), _word(bundle.path), *_words(options)]
    bundle.require_same()
    pipe = subprocess.PIPE
    process = subprocess.Popen(words, stdin=pipe, stdout=pipe, stderr=pipe, env=environment())
    with process, broken_pipes_raise():  # it may end before it has read all
        written, errors = process.communicate(text.encode())
    if process.returncode:
        told = os.fsdecode(errors).strip()  # it may name a file, whose name need not be UTF-8
        raise UserError(f"the C++ runner failed: {told or how_it_ended('compgen-sample', process.returncode)}")
    return [json.loads(line) for line in written.splitlines()]


def _word(folder: Path) -> str:
    """A bundle's folder as a word that is no option, whatever its name begins with."""
    return f"./{folder}" if str(folder).startswith("-") else str(folder)


def _words(options: Mapping[str, object]) -> list[str]:
    """Options as words: a flag if true, none if None or false; a list gives an option more than once."""
    words = []
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one is not False:
                words += [name] if one is True else [name, str(one)]
    return words


def environment() -> dict[str, str]:
    """The environment, naming the installed ONNX Runtime's library unless it names another."""
    environment = dict(os.environ)
    if not environment.get("COMPGEN_ONNXRUNTIME"):  # the runner, too, takes an empty one for none
        libraries = sorted((Path(device.onnxruntime().__file__).parent / "capi").glob("libonnxruntime.so*"))
        if not libraries:
            raise UserError("the installed ONNX Runtime has no shared library: set COMPGEN_ONNXRUNTIME to one")
        environment["COMPGEN_ONNXRUNTIME"] = str(libraries[0])
    return environment
