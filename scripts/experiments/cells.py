"""The steps of an experiment: commands of `cgen`, whose messages go to a cell's log, and trainings that resume."""

import os
import subprocess
import sys
from pathlib import Path


def call(folder: Path, *words: str) -> str:
    """Run a command of `cgen`, write its messages to the cell's log, and return its output."""
    print("cgen", *words, file=sys.stderr, flush=True)
    environment = os.environ | {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    with (folder / "log.txt").open("a") as log:
        command = [sys.executable, "-m", "compgen", *words]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"cgen {' '.join(words)} failed; see {folder / 'log.txt'}")
    return done.stdout


def train(folder: Path, out: Path, *words: str) -> None:
    """Train one model, from where it stopped if it was interrupted."""
    if not out.exists():
        resume = ["--resume"] if out.with_name(out.name + ".partial").exists() else []
        call(folder, "train", *words, "-o", str(out), *resume)


def settings(**values: object) -> tuple[str, ...]:
    """The options that change settings; `a__b` is the key a.b."""
    return tuple(word for key, value in values.items() for word in ("--set", f"{key.replace('__', '.')}={value}"))


def require_same(path: Path, words: list[str]) -> None:
    """Keep the options that all results beside a file depend on in it; stop if it has others."""
    text = f"{' '.join(words)}\n"
    if path.exists() and path.read_text() != text:
        found = path.read_text().strip() or "none"
        raise SystemExit(f"{path.parent}: holds results with other {path.stem} options ({found}): give another folder")
    path.write_text(text)
