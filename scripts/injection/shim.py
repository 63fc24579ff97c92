"""The shim that fails calls of the system (`shim.c`): built, told what to fail, and asked what it has counted."""

import mmap
import os
import shutil
import struct
import subprocess
from pathlib import Path

# As in shim.c, in its order.
KINDS = (
    *("open", "read", "write", "fsync", "truncate", "rename", "link", "unlink", "mkdir", "chmod", "mmap"),
    "malloc",
)
OFF, COUNT, FAIL, FAIL_FROM, KILL = range(5)
ANY = -1
ASKED = struct.Struct("4i2q")  # mode, kind, error, unused; at, leap
FOUND = struct.Struct(f"{2 + len(KINDS) + 1}q")  # hits, total, counts, looks
STATE, MEMORY, PRELOAD = "FAULTS_STATE", "FAULTS_MEMORY", "LD_PRELOAD"  # variables of the environment


def compiler() -> str | None:
    """The C compiler, if there is one."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """Compile the shim into a folder; raise FileNotFoundError where there is no compiler."""
    found = compiler()
    if found is None:
        raise FileNotFoundError("no C compiler (cc)")
    library = folder / "shim.so"
    source = Path(__file__).with_name("shim.c")
    subprocess.run([found, "-O2", "-fexceptions", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return library


class Shim:
    """The state that the shim shares with all processes of a run. Calls are failed between `arm` and `off`."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(2**14))
        with path.open("r+b") as stream:
            self.memory = mmap.mmap(stream.fileno(), 0)

    def arm(self, folder: Path, mode: int, kind: int = ANY, at: int = 0, error: int = 0, *, leap: int = 0) -> None:
        """Count from zero; with a mode other than COUNT, fail (or kill at) call `at` of a kind, counted from 1."""
        self.off()
        name = os.fsencode(folder) + b"\0"
        self.memory[ASKED.size : ASKED.size + FOUND.size] = bytes(FOUND.size)
        self.memory[ASKED.size + FOUND.size : ASKED.size + FOUND.size + len(name)] = name
        self.memory[: ASKED.size] = ASKED.pack(mode, kind, error, 0, at, leap)

    def off(self) -> None:
        """Let all calls pass, and count none."""
        self.memory[:4] = bytes(4)

    def counts(self) -> dict[str, int]:
        """How many calls of each kind there were, and `all` but those that read."""
        _, total, *counts, _ = FOUND.unpack_from(self.memory, ASKED.size)
        return {"all": total} | dict(zip(KINDS, counts, strict=True))

    def hits(self) -> int:
        """How many calls were failed."""
        found: int = FOUND.unpack_from(self.memory, ASKED.size)[0]
        return found
