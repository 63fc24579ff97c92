"""Which ONNX Runtime is installed, and which devices it can run on."""

import importlib
import os
from importlib import metadata
from typing import Any

from compgen.errors import UserError

DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
PROVIDERS = ("auto", "cpu", "cuda")


def onnxruntime() -> Any:
    """Return the onnxruntime module; raise UserError if neither distribution of it is installed, or both.

    Recent builds gather usage data for their makers and write it to $HOME, unless ORT_DISABLE_TELEMETRY is set. It is
    set here, as in the C++ runner.
    """
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    found = [name for name in DISTRIBUTIONS if _installed(name)]
    if len(found) > 1:
        raise UserError(
            "onnxruntime and onnxruntime-gpu are both installed and overwrite each other: uninstall both, "
            "then pip install 'compgen[cpu]' or 'compgen[gpu]'"
        )
    try:
        return importlib.import_module("onnxruntime")
    except ModuleNotFoundError as error:
        raise UserError(
            "running a bundle needs ONNX Runtime: pip install 'compgen[cpu]' (or 'compgen[gpu]')"
        ) from error


def _installed(distribution: str) -> bool:
    try:
        metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return False
    return True


def choose(provider: str) -> str:
    """Return `cpu` or `cuda` for `auto`, `cpu` or `cuda`. Whether `cuda` works is known once a session opens.

    Raises:
        UserError: another name, or CUDA asked for with a build that has none.
    """
    if provider not in PROVIDERS:
        raise UserError(f"no provider {provider!r}: expected one of {', '.join(PROVIDERS)}")
    if provider == "cpu":
        return provider
    runtime = onnxruntime()
    built = CUDA in runtime.get_available_providers()
    if provider == "cuda" and not built:
        raise UserError(
            "CUDA was asked for, but this ONNX Runtime is a CPU build: pip uninstall onnxruntime, "
            "then pip install 'compgen[gpu]'"
        )
    if built and hasattr(runtime, "preload_dlls"):
        runtime.preload_dlls()  # finds the CUDA libraries that pip installed, where there are any
    return "cuda" if built else "cpu"
