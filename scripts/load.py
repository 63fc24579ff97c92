"""Long and crowded runs: ten million samples, 64 processes, a cluster that loses workers, GECA on 50 million tokens.

    python scripts/load.py --of samples,crowd,cluster
    COMPGEN_DATA=... python scripts/load.py --of geca

Each case prints a row and says what it expects; the exit code is 1 if one is not as expected. `make runner` builds the
C++ runner, which the first two cases use. COMPGEN_DATA holds lm/eng/, for the last.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from bench.geca import ENGLISH, write_english

from compgen.sampling import native

BUNDLE = Path(__file__).parents[1] / "exported" / "recomb2"
PYTHON = (sys.executable, "-m", "compgen")
RATE = 1000  # draws a second of four workers on two cores with other work beside: for how many draws to ask


class Watched:
    """A program, its memory looked at every half second."""

    def __init__(self, command: list[object]) -> None:
        self.began, self.memory = time.monotonic(), [0.0]
        environment = native.environment()
        self.process = subprocess.Popen(list(map(str, command)), stderr=subprocess.PIPE, text=True, env=environment)

    def wait(self) -> float:
        """Seconds until it has ended; raises SystemExit if it failed."""
        said: list[str] = []
        assert self.process.stderr is not None
        reader = threading.Thread(target=lambda stream: said.extend(stream), args=(self.process.stderr,))
        reader.start()
        while self.process.poll() is None:
            self.memory.append(resident(self.process.pid) or self.memory[-1])
            time.sleep(0.5)
        reader.join()
        if self.process.returncode:
            raise SystemExit(f"{self.process.args}: {''.join(said)}")
        return time.monotonic() - self.began

    def at(self, share: float) -> float:
        """MiB after this share of its time."""
        return self.memory[round(share * (len(self.memory) - 1))]


def resident(pid: int) -> float:
    """MiB of memory that a process has, with all that it has started; 0 if it has ended."""
    pages, parent = 0, parents()
    for one in parent:
        if pid in (one, *_above(one, parent)):
            with suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
                pages += int(Path(f"/proc/{one}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def digest(*paths: Path) -> str:
    """A hash of the files' content, one after another."""
    hashed = sha256()
    for path in paths:
        with path.open("rb") as file:
            while block := file.read(2**20):
                hashed.update(block)
    return hashed.hexdigest()


def samples(folder: Path, model: Path, count: int) -> bool:
    """One run of the C++ runner: its memory may not grow after a tenth of it."""
    run = Watched([native.runner(), model, "--draws", count, "-o", folder / "many.jsonl"])
    seconds = run.wait()
    early, late, size = run.at(0.1), max(run.memory), (folder / "many.jsonl").stat().st_size / 2**30
    print(
        f"| {count:,} draws of {model.name}, C++ | {seconds:,.0f} s, {size:.1f} GiB written | {early:,.0f} MiB after a "
        f"tenth of the time, {run.at(0.5):,.0f} after half, {late:,.0f} at most |"
    )
    return late < early + 32


def crowd(folder: Path, count: int = 64, draws: int = 200) -> bool:
    """Processes side by side, each with a range of addresses: together they write what one does."""
    runner, parts = native.runner(), [folder / f"part-{number}.jsonl" for number in range(count)]
    one, part = folder / "one.jsonl", ("--draws", str(draws), "--workers", "1")
    Watched([runner, BUNDLE, "--draws", count * draws, "-o", one]).wait()
    began = time.monotonic()
    runs = [Watched([runner, BUNDLE, *part, "--start", at * draws, "-o", path]) for at, path in enumerate(parts)]
    for run in runs:
        run.wait()
    same = digest(*parts) == digest(one)
    print(
        f"| {count} processes at once, {draws} draws each, C++ | {time.monotonic() - began:,.0f} s | "
        f"{'the bytes of one run' if same else 'NOT the bytes of one run'} |"
    )
    return same


def cluster(folder: Path, minutes: float) -> bool:
    """A Ray cluster of four workers, of which one is killed every minute."""
    killed, out, draws = 0, folder / "cluster.jsonl", round(minutes * 60 * RATE)
    whole = folder / "whole.jsonl"
    Watched([*PYTHON, "sample", BUNDLE, "--draws", draws, "-o", whole]).wait()
    run = Watched([*PYTHON, "sample", BUNDLE, "--draws", draws, "-o", out, "--engine", "ray", "--workers", 4])
    ended = threading.Event()

    def kill() -> None:
        nonlocal killed
        while not ended.wait(60):
            if busy := workers(run.process.pid):
                with suppress(ProcessLookupError):  # it has just ended by itself
                    os.kill(busy[0], signal.SIGKILL)
                    killed += 1

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        seconds = run.wait()
    finally:
        ended.set()
        killer.join()
    same = digest(out) == digest(whole)
    print(
        f"| {draws:,} draws on a Ray cluster of 4 workers, {killed} of them killed | {seconds:,.0f} s | "
        f"{'the bytes of one process' if same else 'NOT the bytes of one process'} |"
    )
    return same and killed > 0


def workers(driver: int) -> list[int]:
    """Descendants of a process that are in the middle of a range: Ray names them by their task."""
    found, parent = [], parents()
    for pid in parent:
        with suppress(FileNotFoundError, ProcessLookupError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"ray::judge_range"):
                found.append(pid)
    return [pid for pid in found if driver in _above(pid, parent)]


def parents() -> dict[int, int]:
    """Of all processes, the one that started each."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(FileNotFoundError, ProcessLookupError):
            found[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def _above(pid: int, parent: dict[int, int]) -> list[int]:
    """The processes above one."""
    above = []
    while pid := parent.get(pid, 0):
        above.append(pid)
    return above


def geca(folder: Path, memory: float, millions: float) -> bool:
    """GECA on a long text, within the memory that it may use."""
    text = folder / "english.txt"
    write_english(text, millions)
    command = [*PYTHON, "augment", "geca", text, *ENGLISH, "-n", 5000, "-o", folder / "out.txt"]
    run = Watched([*command, "--memory", memory])
    seconds, most = run.wait(), max(run.memory) / 1024
    print(f"| GECA, {millions:g} million tokens, `--memory {memory:g}` | {seconds:,.0f} s | {most:.1f} GiB at most |")
    return most <= memory


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", default="samples,crowd,cluster,geca", help="cases, with commas between")
    parser.add_argument("--model", type=Path, default=BUNDLE, help="the bundle that `samples` draws from")
    parser.add_argument("--draws", type=int, default=10_000_000, help="of `samples`")
    parser.add_argument("--minutes", type=float, default=10, help="of `cluster`, about")
    parser.add_argument("--memory", type=float, default=6, help="GiB, of `geca`")
    parser.add_argument("--millions", type=float, default=50, help="of tokens, of `geca`")
    asked = parser.parse_args()
    cases: dict[str, Callable[[Path], bool]] = {
        "samples": lambda folder: samples(folder, asked.model, asked.draws),
        "crowd": crowd,
        "cluster": lambda folder: cluster(folder, asked.minutes),
        "geca": lambda folder: geca(folder, asked.memory, asked.millions),
    }
    names = asked.of.split(",")
    if unknown := sorted(set(names) - set(cases)):
        parser.error(f"no case {', '.join(unknown)}: expected some of {', '.join(cases)}")
    print("| case | time | found |\n|---|---|---|", flush=True)
    good = True
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            good &= cases[name](Path(folder))
            sys.stdout.flush()
    raise SystemExit(not good)


if __name__ == "__main__":
    main()
