"""The loops of training in C++, where the runner's library is built: those of `fed_loop` and `packed`.

They do what the loops in Python do, in float32 on a CPU, step by step on the same buffers; what is left to PyTorch are
products over all steps at once. Small operations, some thousands an update, then cost next to nothing, and each thread
has rows, or a direction, of its own from the first step to the last. Sums are rounded otherwise than PyTorch's are.
"""

import ctypes
import os
import sysconfig
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from compgen.errors import UserError

LIBRARY = "libcompgen-training.so"
LAYOUT = 2  # of the structures below; those of `cpp_runner/src/recurrence.h` are the same
BUILT = Path(__file__).parents[2] / "build" / "cpp" / LIBRARY  # where `make training` and `make runner` put it
INSTALLED = Path(sysconfig.get_path("data")) / "lib" / LIBRARY  # where pip puts it
NO_SUCH_INSTRUCTIONS = 2  # returned by a function for an unknown COMPGEN_INSTRUCTIONS
NAMED = "COMPGEN_TRAINING"  # environment variable: the path of another library, or `none` for the loops in Python


def _fields(numbers: str, arrays: str) -> list[tuple[str, type]]:
    return [(name, ctypes.c_int64) for name in numbers.split()] + [(name, ctypes.c_void_p) for name in arrays.split()]


class FedLoop(ctypes.Structure):
    """Sizes and arrays of the decoder's recurrence; see `cpp_runner/src/recurrence.h`."""

    _fields_ = _fields(
        "length rows hidden fed memories size tokens tanh threads",
        "w_gates w_queries w_combine bias keys values inside position_keys position_values keep_hidden keep_fed states "
        "gates cells squashed asked combined scores weights outputs of_states of_scores d_gates d_asked d_scores "
        "d_combined d_outputs d_hidden d_cell d_fed",
    )


class Packed(ctypes.Structure):
    """Sizes and arrays of the encoder that reads no padding."""

    _fields_ = _fields("total size steps threads", "counts weights gates states cells tanhs d_states d_gates")


@cache
def library(named: str) -> ctypes.CDLL | None:
    """Return the library at a path, or in the usual places if that is empty; None if it is not there, or for `none`.

    Raises:
        UserError: a path is named, and there is no library of this version.
    """
    places = [Path(named)] if named else [BUILT, INSTALLED]
    path = next((place for place in places if place.is_file()), None)
    if named == "none" or (path is None and not named):
        return None
    try:
        found = ctypes.CDLL(str(path or named))
        if found.compgen_training_layout() == LAYOUT:
            return found
        why = "of another version"
    except OSError as error:  # none, or of another processor
        why = str(error)
    except AttributeError:
        why = "another library"
    if named:
        raise UserError(f"{NAMED}={named}: {why}; expected {LIBRARY} of this version, or none")
    return None


def runs(x: Tensor) -> bool:
    """Return whether the compiled loops run on tensors like `x`."""
    found = library(os.environ.get(NAMED, ""))
    return found is not None and x.dtype == torch.float32 and x.device.type == "cpu"


def call(
    function: str, kind: type[ctypes.Structure], numbers: Mapping[str, int], arrays: Mapping[str, Tensor | None]
) -> None:
    """Call a loop on contiguous arrays; those that it writes to share no memory with others.

    Raises:
        MemoryError: no memory or no thread is left for it.
        UserError: COMPGEN_INSTRUCTIONS names an instruction set that the library or the processor does not have.
    """
    found = library(os.environ.get(NAMED, ""))
    assert found is not None, "see runs"
    assert all(some is None or some.is_contiguous() for some in arrays.values()), "arrays lie by rows"
    pointers = {name: some.data_ptr() for name, some in arrays.items() if some is not None and some.numel()}
    failed = found[function](ctypes.byref(kind(**numbers, **pointers, threads=torch.get_num_threads())))
    if failed == NO_SUCH_INSTRUCTIONS:
        named = os.environ.get("COMPGEN_INSTRUCTIONS")
        raise UserError(
            f"COMPGEN_INSTRUCTIONS={named}: expected amx, vnni, avx512, avx2 or portable, if the processor has it"
        )
    if failed:
        raise MemoryError(f"{function}: no memory or no thread is left")
