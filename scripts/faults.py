"""Injects faults into compgen's commands: each call of the system fails once, or is where the process is killed.

    python scripts/faults.py --most 3
    python scripts/faults.py --of sample,compgen-sample --modes error
    python scripts/faults.py --all --out figures.jsonl

Each command runs on small data with a library (`injection/shim.c`) that counts the calls that open, write, sync, cut,
rename, link, delete, map or read a file in the folders of its outputs and of its temporary files. Then it runs again,
and the first call of a kind fails; again, and the second fails; until a run ends before there is such a call. `error`
fails calls as a bad disk does, or as a full one does (that write and all later ones); `kill` ends the process by
SIGKILL in place of each call in turn, a write being made by half. Each starts from an empty folder and, with `--over`,
from that of a finished run. Of the C++ runner, which can say so, each allocation of memory fails, too.

After each run:

- the exit code is 2 and standard error ends in one line that says why, without a traceback; or the exit code is 0 and
  all outputs are whole;
- each output is absent, as it was before, or whole; no temporary file is left, but by a kill, or where the call that
  fails is to delete it;
- the same command, with --resume where there is something to go on with, ends in the outputs of an undisturbed run.

The exit code is 1 if one of these does not hold; each such run is described, with what it takes to run it again.
"""

import argparse
import collections
import errno
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from injection import forks, outputs
from injection.forks import Ended, in_fork
from injection.jobs import Job, jobs, make_inputs, needed
from injection.shim import ANY, COUNT, FAIL, FAIL_FROM, KILL, KINDS, PRELOAD, STATE, Shim, build

ERRORS = {  # how calls of a kind fail, and whether all later ones do too
    "open": [(errno.EACCES, FAIL)],
    "write": [(errno.ENOSPC, FAIL_FROM), (errno.EIO, FAIL)],
    "fsync": [(errno.EIO, FAIL)],
    "truncate": [(errno.EIO, FAIL)],
    "rename": [(errno.EACCES, FAIL)],
    "link": [(errno.EPERM, FAIL)],
    "unlink": [(errno.EACCES, FAIL)],
    "mkdir": [(errno.ENOSPC, FAIL)],
    "chmod": [(errno.EPERM, FAIL)],
    "mmap": [(errno.ENOMEM, FAIL)],
    "read": [(errno.EIO, FAIL)],
    "malloc": [(errno.ENOMEM, FAIL)],
}
SAYS = ("cgen: ", "error: ")  # begins a message to the user


class UnusableError(Exception):
    """A command that cannot be judged, as it fails undisturbed or two runs differ."""


@dataclass(frozen=True)
class Fault:
    """What is done to a run: the call of a kind (`all`: of any) that fails or kills, and how."""

    kind: str
    mode: int
    error: int
    at: int
    over: bool

    def __str__(self) -> str:
        how = "kill" if self.mode == KILL else errno.errorcode[self.error] + (" on" if self.mode == FAIL_FROM else "")
        return f"{self.kind} {self.at}: {how}{', over a finished run' if self.over else ''}"


class Campaign:
    """Runs one command with all faults, in `home`: `run` is watched, `kept` has the undisturbed outputs."""

    def __init__(self, home: Path, inputs: Path, shim: Shim, job: Job, most: int, kinds: list[str]) -> None:
        self.home, self.inputs, self.shim, self.job = home, inputs.resolve(), shim, job
        self.most, self.kinds = most, kinds
        self.run_folder, self.kept = home / "run", home / "kept"
        self.out = self.run_folder / "out"
        self.found: collections.Counter[str] = collections.Counter()
        self.described: list[str] = []
        self.recovered: dict[str, list[str]] = {}

    def words(self, resume: bool) -> list[str]:
        """The command's words."""
        places = {"{in}": str(self.inputs), "{out}": str(self.out)}
        words = [*self.job.words, *(self.job.resume if resume else ())]
        for name, place in places.items():
            words = [word.replace(name, place) for word in words]
        return words

    def call(self, *, resume: bool = False, learn: bool = False) -> Ended:
        """Run the command."""
        return forks.run(self.words(resume), self.job, self.home, learn)

    def begin(self) -> dict[str, int]:
        """Run undisturbed, twice, and keep the outputs; return the numbers of calls."""
        results = []
        for learn in (True, False):
            outputs.clear(self.run_folder)
            self.shim.arm(self.run_folder, COUNT, leap=self.job.leap)
            ended = self.call(learn=learn)
            self.shim.off()
            if ended.code:
                raise UnusableError(f"{self.job.name}: undisturbed, it fails: {ended.said}")
            results.append(self.left())
            if learn and self.job.program is None:
                forks.import_more(set((self.home / "modules").read_text().splitlines()))
        self.expected = results[0]
        odd = [name for name in {**results[0], **results[1]} if results[0].get(name) != results[1].get(name)]
        if odd or any(value.startswith("broken") for value in self.expected.values()):
            raise UnusableError(f"{self.job.name}: two undisturbed runs differ in {', '.join(odd) or self.expected}")
        if left := self.strange():
            raise UnusableError(f"{self.job.name}: undisturbed, it leaves {', '.join(left)}")
        shutil.rmtree(self.kept, ignore_errors=True)
        shutil.copytree(self.run_folder, self.kept)
        return self.shim.counts()

    def left(self) -> dict[str, str]:
        """What is in the folder of outputs, with digests."""
        return outputs.outputs(self.out, self.job.grows)

    def journal(self, name: str) -> bool:
        """Whether it is there until a run ends."""
        return re.fullmatch(self.job.journals, name) is not None

    def strange(self) -> list[str]:
        """Entries that are neither outputs nor journals."""
        left = [name for name in self.left() if name not in self.expected and not self.journal(name)]
        return left + [f"tmp/{path.name}" for path in (self.run_folder / "tmp").iterdir()]

    # -- one fault ------------------------------------------------------------------------------------------------

    def inject(self, fault: Fault) -> bool:
        """Run with a fault, judge what is left, and go on; return whether the fault came to pass."""
        outputs.copy(self.kept, self.run_folder) if fault.over else outputs.clear(self.run_folder)
        before = outputs.tree(self.run_folder)
        number = ANY if fault.kind == "all" else KINDS.index(fault.kind)
        self.shim.arm(self.run_folder, fault.mode, number, fault.at, fault.error, leap=self.job.leap)
        ended = self.call()
        self.shim.off()
        if not self.shim.hits():
            return False
        self.found["injected"] += 1
        self.found["killed"] += fault.mode == KILL
        wrong = self.judged(fault, ended) + self.again(before, fault.kind)
        for what in wrong:
            self.found[what.partition(":")[0]] += 1
        if wrong:
            said = " | ".join(ended.said.strip().splitlines()[-3:])
            self.described.append(f"{self.job.name}, {fault}: {'; '.join(wrong)} [{ended.code}: {said[:400]}]")
            print(self.described[-1], file=sys.stderr, flush=True)
        return True

    def judged(self, fault: Fault, ended: Ended) -> list[str]:
        """What is wrong right after a run that a fault has hit."""
        left = self.left()
        wrong = []
        for name, value in self.expected.items():
            journal = self.journal(name)
            if name in left and left[name] != value and not journal:
                wrong.append(f"half-written: {name}")
            elif name not in left and fault.over and not journal:
                wrong.append(f"old one lost: {name}")
        litter = self.strange()
        if litter and (fault.mode == KILL or fault.kind == "unlink" or ended.code == 0):
            self.found["left"] += 1  # by a kill, or because it could not be deleted
        elif litter:
            wrong.append(f"litter: {', '.join(litter)}")
        if fault.mode == KILL and ended.code == -9:
            return wrong
        return wrong + self.said(fault, ended, left)

    def said(self, fault: Fault, ended: Ended, left: dict[str, str]) -> list[str]:
        """What is wrong with an exit code and with what was said."""
        lines = ended.said.strip().splitlines()
        if "Traceback (most recent call last)" in ended.said:
            return ["traceback"]
        if ended.code == 0:
            self.found["done all the same"] += 1
            absent = [name for name, value in self.expected.items() if left.get(name) != value]
            return [f"exit code 0: without {', '.join(absent)}"] if absent else []
        if ended.code == -6 and fault.kind == "malloc":
            self.found["aborted"] += 1  # before main, or where a library's destructor wants memory
            return []
        if ended.code != 2:
            return [f"exit code: {ended.code}"]
        if not lines or not lines[-1].startswith(SAYS):
            return [f"message: {' '.join(lines[-2:])[:200]}"]
        return []

    def again(self, before: dict[str, str], kind: str) -> list[str]:
        """What is wrong after the same command, or its --resume. A state that is known is not run again."""
        now = outputs.tree(self.run_folder)
        if now == before:
            return []
        state = json.dumps({name: value for name, value in now.items() if "/." not in name})
        if state not in self.recovered:
            self.recovered[state] = self.recover()
        return [what for what in self.recovered[state] if kind != "unlink" or not what.startswith("journal left")]

    def recover(self) -> list[str]:
        """Go on without faults, and compare."""
        names = [path.name for path in self.out.iterdir() if not path.name.startswith(".")]
        journal = not self.job.journal or any(name.endswith(self.job.journal) for name in names)
        self.shim.arm(self.home / "nowhere", COUNT, leap=self.job.leap)
        ended = self.call(resume=bool(self.job.resume) and journal)
        self.shim.off()
        if ended.code:
            return [f"lost: going on ends with {ended.code}: {ended.said.strip()[-300:]}"]
        left = self.left()
        odd = [name for name, value in self.expected.items() if left.get(name) != value]
        # What kills leave, and states of training, which are never deleted, are no journals.
        stays = re.compile(r"(.*/)?\.|.*\.partial\.old$")
        more = [name for name in left.keys() - self.expected.keys() if not stays.match(name)]
        wrong = [f"lost: going on gives another {', '.join(odd)}"] if odd else []
        return wrong + ([f"journal left: {', '.join(more)}"] if more else [])

    # -- all faults -----------------------------------------------------------------------------------------------

    def faults(self, counts: dict[str, int], modes: list[str], over: bool) -> Iterator[Fault]:
        """All faults, or `most` of a kind, evenly spread."""
        kinds = [("error", kind, error, mode) for kind, ways in ERRORS.items() for error, mode in ways]
        for name, kind, error, mode in [*kinds, ("kill", "all", 0, KILL)]:
            if name in modes and (not self.kinds or kind in self.kinds):
                yield from (Fault(kind, mode, error, at, over) for at in spread(counts[kind], self.most))

    def all(self, modes: list[str], overs: list[bool]) -> dict[str, Any]:
        """Inject all faults; return the figures."""
        began = time.monotonic()
        counts = self.begin()
        for over in overs:
            if over:
                counts = self.counted_over()
            ended = set[tuple[str, int, int]]()
            for fault in self.faults(counts, modes, over):
                if (fault.kind, fault.mode, fault.error) not in ended and not self.inject(fault):
                    ended.add((fault.kind, fault.mode, fault.error))
        calls = {kind: number for kind, number in counts.items() if number}
        return {
            "command": self.job.name,
            "calls": calls,
            **self.found,
            "described": self.described,
            "seconds": round(time.monotonic() - began, 1),
        }

    def counted_over(self) -> dict[str, int]:
        """The numbers of calls of a run over a finished one."""
        outputs.copy(self.kept, self.run_folder)
        self.shim.arm(self.run_folder, COUNT, leap=self.job.leap)
        ended = self.call()
        self.shim.off()
        if ended.code:
            raise UnusableError(f"{self.job.name}: over a finished run, it fails: {ended.said}")
        return self.shim.counts()


def spread(count: int, most: int) -> list[int]:
    """The numbers from 1 to one more than `count`, by which a run must end by itself; or `most`, evenly spread."""
    if not most or count <= most:
        return list(range(1, count + 2)) if count else []
    if most == 1:
        return [(count + 1) // 2]
    return sorted({1 + round(place * (count - 1) / (most - 1)) for place in range(most)})


BAD = (
    "half-written",
    "old one lost",
    "litter",
    "traceback",
    "exit code",
    "exit code 0",
    "message",
    "lost",
    "journal left",
)


def show(rows: list[dict[str, Any]]) -> None:
    """Print a table, as Markdown."""
    columns = ("injected", "killed", "done all the same", "left", "aborted")
    wrong = [name for name in BAD if any(row.get(name) for row in rows)] or ["lost", "half-written", "traceback"]
    print(f"| command | calls | {' | '.join((*columns, *wrong))} |")
    print(f"|---|---|{'---:|' * (len(columns) + len(wrong))}")
    total = collections.Counter[str]()
    for row in rows:
        calls = ", ".join(f"{number} {kind}" for kind, number in row["calls"].items() if kind != "all")
        figures = {name: row.get(name, 0) for name in (*columns, *wrong)}
        total.update(figures)
        print(f"| {row['command']} | {calls} | {' | '.join(f'{number:,}' for number in figures.values())} |")
    print(f"| all | | {' | '.join(f'{total[name]:,}' for name in (*columns, *wrong))} |")


def preloaded(work: Path) -> None:
    """Go on in a process that has the shim."""
    library = build(work)
    (work / "state").write_bytes(bytes(2**14))
    extra = {PRELOAD: str(library), STATE: str(work / "state"), "FAULTS_WORK": str(work)}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "POLARS_MAX_THREADS", "MKL_NUM_THREADS"), "1")
    os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | extra | threads)


def programs() -> tuple[bool, Path | None, dict[str, str]]:
    """Whether KenLM's programs are installed; the C++ runner, if it is built, and its environment."""
    from compgen.errors import UserError
    from compgen.lm.install import PROGRAMS, program
    from compgen.sampling import native

    kenlm, runner, environment = True, None, dict[str, str]()
    try:
        runner, environment = native.runner(), native.environment()
    except UserError as error:
        print(f"left out: commands of the C++ runner: {error}", file=sys.stderr)
    try:
        for name in PROGRAMS:
            program(name)
    except UserError as error:
        print(f"left out: commands with language models: {error}", file=sys.stderr)
        kenlm = False
    return kenlm, runner, environment


def arguments() -> argparse.Namespace:
    """What is asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--of", metavar="NAME,...", help="only these commands; their names are in the table")
    parser.add_argument("--all", action="store_true", help="the slow ones, too")
    parser.add_argument("--modes", default="error,kill", help="error, kill, or both (the default)")
    parser.add_argument("--kinds", metavar="KIND,...", help=f"only these calls, of {', '.join(KINDS)}; all: of kills")
    parser.add_argument("--over", action="store_true", help="over a finished run, too")
    parser.add_argument("--most", type=int, default=0, metavar="N", help="so many calls of a kind, evenly spread")
    parser.add_argument("--inputs", type=Path, help="the folder of what the commands read; made if it is not there")
    parser.add_argument("--out", type=Path, help="append the figures of each command as a line of JSON")
    options = parser.parse_args()
    for flag, known in (("modes", ("error", "kill")), ("kinds", (*KINDS, "all"))):
        if unknown := set((getattr(options, flag) or known[0]).split(",")) - set(known):
            parser.error(f"--{flag} {', '.join(sorted(unknown))}: expected {', '.join(known)}")
    return options


def main() -> int:
    """Inject and count."""
    options = arguments()
    if "FAULTS_WORK" not in os.environ:
        try:
            preloaded(Path(tempfile.mkdtemp(prefix="compgen-faults-")))
        except FileNotFoundError as error:
            print(f"faults cannot be injected: {error}", file=sys.stderr)
            return 2
    work = Path(os.environ["FAULTS_WORK"])
    try:
        return campaigns(work, options)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def campaigns(work: Path, options: argparse.Namespace) -> int:
    """Run the campaigns of all commands that are asked for."""
    shim = Shim(work / "state")
    kenlm, runner, environment = in_fork(programs)
    os.environ.update(environment)
    given = options.inputs or work / "in"
    found = [job for job in jobs(runner) if kenlm or not job.kenlm]
    usual = [job.name for job in found if not job.careless and (options.all or not job.slow)]
    names = options.of.split(",") if options.of else usual
    if unknown := set(names) - {job.name for job in found}:
        raise SystemExit(f"no command {', '.join(unknown)}: expected {', '.join(job.name for job in found)}")
    overs = [False, True] if options.over else [False]
    in_fork(make_inputs, given, needed([job for job in found if job.name in names]))
    rows, unusable = list[dict[str, Any]](), False
    for job in (job for job in found if job.name in names):
        campaign = Campaign(work, given, shim, job, options.most, options.kinds.split(",") if options.kinds else [])
        try:
            rows.append(campaign.all(options.modes.split(","), overs))
        except UnusableError as error:
            print(error, file=sys.stderr, flush=True)
            unusable = True
            continue
        print(f"{job.name}: {rows[-1].get('injected', 0)} faults, {rows[-1]['seconds']} s", file=sys.stderr, flush=True)
        if options.out:
            with options.out.open("a", encoding="utf-8") as stream:
                stream.write(json.dumps(rows[-1]) + "\n")
    show(rows)
    return int(unusable or any(row.get(name) for row in rows for name in BAD))


if __name__ == "__main__":
    sys.exit(main())
