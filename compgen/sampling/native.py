"""The C++ runner (`cpp_runner/`), which takes the options of `compgen sample` and gives the same samples."""

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from compgen.errors import UserError
from compgen.runtime import device
from compgen.runtime.bundle import Bundle, resolve
from compgen.sampling.batching import Draw

PROGRAM = "compgen-sample"
BUILT = Path(__file__).parents[2] / "build" / "cpp" / PROGRAM  # where `make cpp` puts it


def runner() -> Path:
    """The runner: what the environment variable COMPGEN_RUNNER names, or `make cpp` built, or PATH has.

    Raises:
        UserError: there is none.
    """
    named = os.environ.get("COMPGEN_RUNNER")
    found = Path(named) if named else BUILT if BUILT.is_file() else Path(shutil.which(PROGRAM) or "")
    if not (found.is_file() and os.access(found, os.X_OK)):
        where = f"COMPGEN_RUNNER={named}" if named else f"{BUILT} or {PROGRAM} on PATH"
        raise UserError(f"no C++ runner at {where}: build it with `make cpp`, or leave out --runtime native")
    return found


def sample(model: str, options: Mapping[str, object]) -> NoReturn:
    """Become the runner, sampling a bundle with the options that are set: true, or neither None nor false.

    A list is an option given more than once.

    Raises:
        UserError: there is no runner, no such bundle, or no ONNX Runtime.
    """
    program, words = runner(), [str(resolve(Path(model))), *_words(options)]
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
        UserError: there is no runner, or it fails.
    """
    first, second = temperature
    asked = {"--raw": True, "--draws": stop - start, "--start": start, "--seed": seed}
    lines = _lines(bundle, asked | {"--temperature": f"{first!r},{second!r}"} | dict(options))
    return [
        Draw(line["index"], tuple(line["tokens"]), line["finished"], line["log_prob"], tuple(line["prototypes"]))
        for line in map(json.loads, lines)
    ]


def raw_answers(bundle: Bundle, sources: Sequence[Sequence[int]], options: Mapping[str, object]) -> list[Draw]:
    """A predictor's answers to sources of ids, each as a draw whose index is its place; errors as `raw`."""
    text = "".join(" ".join(bundle.vocabulary[token] for token in source) + "\n" for source in sources)
    lines = map(json.loads, _lines(bundle, {"--raw": True, "--input": "-"} | dict(options), text))
    return [
        Draw(number, tuple(line["tokens"]), line["finished"], line["log_prob"], ()) for number, line in enumerate(lines)
    ]


def _lines(bundle: Bundle, options: Mapping[str, object], text: str = "") -> list[str]:
    words = [str(runner()), str(bundle.path), *_words(options)]
    done = subprocess.run(words, input=text, capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        raise UserError(f"the C++ runner failed: {done.stderr.strip()}")
    return done.stdout.splitlines()


def _words(options: Mapping[str, object]) -> list[str]:
    """Options as the runner takes them: flags that are true alone, those that are None or false not at all."""
    words = []
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            if one is not None and one is not False:
                words += [name] if one is True else [name, str(one)]
    return words


def environment() -> dict[str, str]:
    """The environment, with the installed ONNX Runtime's library in it unless another is named."""
    environment = dict(os.environ)
    if "COMPGEN_ONNXRUNTIME" not in environment:
        libraries = sorted((Path(device.onnxruntime().__file__).parent / "capi").glob("libonnxruntime.so*"))
        if not libraries:
            raise UserError("the installed ONNX Runtime has no shared library: set COMPGEN_ONNXRUNTIME to one")
        environment["COMPGEN_ONNXRUNTIME"] = str(libraries[0])
    return environment
