"""The record beside a file that compgen writes: which data, options and seed it was made with."""

import json
from pathlib import Path
from typing import Any

from compgen import __version__
from compgen.files import atomic_path, is_stream, writing

RECORD = ".run.json"  # after the name of the file that it is beside


def named(data: str | None) -> str | None:
    """The path written to the record: absolute, or `-` for a pipe; names of known data sets stay as they are."""
    if not data or not Path(data).exists():
        return data
    return "-" if Path(data).is_fifo() else str(Path(data).resolve())


def record_of(out: Path) -> Path:
    """The record beside a file, of what it was made with."""
    return Path(f"{out}{RECORD}")


def forget_record(out: Path) -> None:
    """Delete the record beside a file that has just been written anew: it told of the one that was there before."""
    if not is_stream(out) and record_of(out).exists():
        with writing(record_of(out)):
            record_of(out).unlink()


def write_record(out: Path, options: dict[str, Any]) -> None:
    """Write beside OUT what it was made with, for `cgen explain` and for later readers."""
    if str(out) != "-" and not is_stream(out):
        written = json.dumps({"compgen": __version__} | options)
        strict = json.loads(written, parse_constant=str)  # infinite numbers, which JSON does not have, as text
        with atomic_path(record_of(out)) as temporary:
            temporary.write_text(json.dumps(strict, indent=1) + "\n", encoding="utf-8")
