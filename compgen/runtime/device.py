"""Which ONNX Runtime is installed and where it can run, said plainly before anything fails in an obscure way."""

import importlib
from importlib import metadata
from typing import Any

from compgen.errors import UserError

DISTRIBUTIONS = ("onnxruntime", "onnxruntime-gpu")
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
PROVIDERS = ("auto", "cpu", "cuda")


def onnxruntime() -> Any:
    """The onnxruntime module.

    Raises:
        UserError: neither distribution of it is installed, or both: they overwrite each other's files.
    """
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
    """`cpu` or `cuda` for a wish of `auto`, `cpu` or `cuda`; `cuda` is only known to work once a session opens.

    Raises:
        UserError: an unknown name, or CUDA asked for with a build that has none.
    """
    if provider not in PROVIDERS:
        raise UserError(f"no provider {provider!r}: expected one of {', '.join(PROVIDERS)}")
    if provider == "cpu":
        return provider
    runtime = onnxruntime()
    built = CUDA in runtime.get_available_providers()
    if provider == "cuda" and not built:
        raise UserError("CUDA was asked for, but this ONNX Runtime is a CPU build: pip install 'compgen[gpu]'")
    if built and hasattr(runtime, "preload_dlls"):
        runtime.preload_dlls()  # finds the CUDA libraries that pip installed, where there are any
    return "cuda" if built else "cpu"
