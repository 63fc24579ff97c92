"""The C++ runner (`cpp_runner/`), which takes the options of `compgen sample` and gives the same samples."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from compgen.errors import UserError
from compgen.runtime import device
from compgen.runtime.bundle import resolve

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

    Raises:
        UserError: there is no runner, no such bundle, or no ONNX Runtime.
    """
    program, words = runner(), [str(resolve(Path(model)))]
    for name, value in options.items():
        if value is not None and value is not False:
            words += [name] if value is True else [name, str(value)]
    environment = dict(os.environ)
    if "COMPGEN_ONNXRUNTIME" not in environment:
        libraries = sorted((Path(device.onnxruntime().__file__).parent / "capi").glob("libonnxruntime.so*"))
        if not libraries:
            raise UserError("the installed ONNX Runtime has no shared library: set COMPGEN_ONNXRUNTIME to one")
        environment["COMPGEN_ONNXRUNTIME"] = str(libraries[0])
    os.execve(program, [str(program), *words], environment)
