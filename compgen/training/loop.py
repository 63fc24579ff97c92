"""The training loop, one for generators and predictors.

It logs JSON lines beside the output. It saves its whole state regularly and when it is interrupted, and a resumed run
reaches the very weights of an uninterrupted one: batches are a function of (seed, epoch), and the saved state holds
that of the random numbers.
"""

import json
import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch
from torch import Tensor

from compgen.data.vocabulary import PAD_ID
from compgen.errors import CheckpointError, Interrupted, UserError
from compgen.files import check_writable, lock, writing
from compgen.interrupts import interruptible
from compgen.models.adam import Adam
from compgen.models.products import precision
from compgen.models.seeding import undrawn
from compgen.models.trainable import Trainable
from compgen.progress import Progress, note
from compgen.trained.checkpoint import read_sealed, write_sealed
from compgen.training.batches import Rows
from compgen.training.config import OptimisationConfig
from compgen.training.identity import Identity, differing
from compgen.training.learning import AFTER, LEAST_UPDATES, losses, trouble

LOG_EVERY = 50  # updates
SAVE_EVERY = 60.0  # seconds
FLOOR = 0.05  # share of the learning rate at which a linear schedule ends


class Examples(Protocol):
    """Training data in batches.

    Attributes:
        chosen: what was chosen by the weights, which an interrupted training goes on with; by epoch.
    """

    chosen: dict[int, list[int]]

    def plan(self, epoch: int) -> list[Rows]:
        """The batches of an epoch, as arrays of row numbers; a function of the epoch, a seed, and `chosen`."""

    def collate(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Sequences (B, L) and memories (B, n, T) of rows, as ids padded with 0."""


@dataclass(frozen=True)
class Outcome:
    """The result of a training."""

    steps: int
    seconds: float
    train_loss: float  # nats a token, mean over the last log interval
    held_out: float | None  # the kept weights' held-out score
    trouble: str = ""  # what says that nothing was learned, see `training.learning`


def train(
    network: Trainable,
    examples: Examples,
    config: OptimisationConfig,
    out: Path,
    *,
    identity: Identity,
    score: Callable[[Trainable], float] | None = None,
    resume: bool = False,
    device: str = "cpu",
    quiet: bool = False,
) -> Outcome:
    """Train `network` in place.

    The loss is the sum over tokens, mean over the batch, as in the reference's generator on SCAN; that of its other
    networks is the mean over tokens. `score`, if given, is called after each epoch (lower is better); the plateau
    schedule and the choice of the best weights depend on it. The log is in `OUT.log.jsonl`. The state is in
    `OUT.partial`, also when training is done: `discard_state` deletes it once the weights are safe elsewhere. `resume`
    goes on from a state of the same `identity` (see `training.identity`).

    Raises:
        Interrupted: training was interrupted (its state is saved).
        CheckpointError: `resume` without a usable state, or with one of another identity.
        UserError: the log cannot be written, another training writes it, or the loss is not finite any more.
    """
    run = _Run(network.to(device), examples, config, out, identity, score, device, quiet)
    if resume:
        run.check_saved()
    with run.alone():
        if resume:
            run.restore()
        else:
            run.begin()
        return run.go()


def find_device(name: str) -> str:
    """Return `cpu` or `cuda` for `auto`, `cpu` or `cuda`; `auto` is CUDA where there is a device for it.

    Raises:
        UserError: another name, or CUDA where there is none.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"no device {name!r}: expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("no CUDA device here: use cpu or auto")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


def discard_state(out: Path) -> None:
    """Delete the state of a training whose checkpoint `out` is written."""
    _partial(out).unlink(missing_ok=True)


def _partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


def _optimiser(network: Trainable, config: OptimisationConfig) -> Adam | torch.optim.Optimizer:
    if config.optimiser == "adam":
        return Adam(network.parameters(), lr=config.learning_rate, fused=True)
    # T5's: steps relative to a weight's size (at least 1e-3) and clipped at 1, decay 1 - t^-0.8, no momentum.
    # The floor of squared gradients is 1e-30. PyTorch takes its root; the square of 1e-30 would be 0 in float32.
    return torch.optim.Adafactor(network.parameters(), lr=config.learning_rate, eps=(1e-15, 1e-3))


@dataclass
class _Run:
    """State of one training."""

    # What a resumed run takes over as it is; weights, optimiser and random numbers come on top.
    KEPT: ClassVar = ("identity", "step", "factor", "stalled", "best", "best_weights", "spent", "mean")
    UNLOGGED: ClassVar = {"losses", "tokens", "first", "trouble"}  # which states of earlier versions do not have

    network: Trainable
    examples: Examples
    config: OptimisationConfig
    out: Path
    identity: Identity
    score: Callable[[Trainable], float] | None
    device: str
    quiet: bool
    step: int = 0
    factor: float = 1.0  # of the learning rate, by the plateau schedule
    stalled: int = 0  # epochs without improvement
    best: float = float("inf")  # held-out score
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    spent: float = 0.0  # seconds, up to the last save
    mean: float = float("nan")  # loss of the last log interval, nats a token
    losses: list[Tensor] = field(default_factory=list)  # since the last line of the log
    tokens: int = 0  # since then
    earlier: int = 0  # of these, the tokens before an interruption, whose time is not known
    first: float = float("nan")  # loss of this run's first log interval
    trouble: str | None = None  # unknown so far

    def __post_init__(self) -> None:
        self.partial, self.log = _partial(self.out), self.out.with_name(self.out.name + ".log.jsonl")
        self.optimiser = _optimiser(self.network, self.config)
        self.per_epoch = len(self.examples.plan(0))
        self.total = self.config.steps or self.config.epochs * self.per_epoch

    # -- one update -----------------------------------------------------------------------------------------------

    def rate(self) -> float:
        """The learning rate of the coming update."""
        rate = self.config.learning_rate * self.factor
        if self.config.warmup:
            rate *= min(1.0, (self.step + 1) / self.config.warmup)
        if self.config.schedule == "linear":
            rate *= max(FLOOR, 1 - self.step / self.total)
        return rate

    def update(self, rows: Rows) -> None:
        """Update the weights; the loss stays on the device, so that nothing waits for it."""
        sequences, memories = self.examples.collate(rows)
        self.tokens += int((sequences[:, 1:] != PAD_ID).sum())
        with precision(self.device, self.config.precision == "bfloat16"):
            loss = self.network.loss(sequences.to(self.device), memories.to(self.device)).sum()
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate()
        self.optimiser.zero_grad()
        (loss / len(rows)).backward()  # type: ignore[no-untyped-call]
        if self.config.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip)
        self.optimiser.step()
        self.step += 1
        self.losses.append(loss.detach())

    # -- the loop -------------------------------------------------------------------------------------------------

    def go(self) -> Outcome:
        """Train to the end."""
        self.mark = self.saved = time.monotonic()  # of the last line of the log, and of the last save
        # Trainings that run side by side are told apart by the name of what they write.
        progress = Progress(f"train {self.out.name}", self.total, self.step, quiet=self.quiet)
        with interruptible() as interrupted, progress:
            for rows in self.batches():
                self.update(rows)
                if self.step % LOG_EVERY == 0 or self.step == self.total:
                    self.report(progress)
                    self.look(rows)
                if self.step == self.total:
                    self.check_last(rows)
                if self.step % self.per_epoch == 0 or self.step == self.total:
                    self.end_epoch()
                if interrupted or time.monotonic() - self.saved > SAVE_EVERY:
                    self.save()
                if interrupted:
                    raise Interrupted(
                        f"stopped after update {self.step} of {self.total}; --resume goes on", interrupted[0]
                    )
        self.save()
        self.keep()
        held_out = None if self.score is None else self.best if self.config.keep == "best" else self.score(self.network)
        return Outcome(self.step, self.spent, self.mean, held_out, self.trouble or "")

    def keep(self) -> None:
        """Give the network the weights that are kept."""
        if self.config.keep == "best" and self.best_weights:
            self.network.load_state_dict(self.best_weights)
        self.network.eval()

    def batches(self) -> Iterator[Rows]:
        """The batches that are left, epoch after epoch."""
        self.network.train()
        while self.step < self.total:
            epoch, position = divmod(self.step, self.per_epoch)
            for rows in self.examples.plan(epoch)[position:]:
                if self.step >= self.total:
                    return
                yield rows

    def report(self, progress: Progress) -> None:
        """Log and show the mean loss since the last report.

        Raises:
            UserError: it is not finite.
        """
        self.mean = float(torch.stack(self.losses).sum()) / max(1, self.tokens)
        self.require_finite(self.mean)
        if math.isnan(self.first):
            self.first = self.mean
        speed = (self.tokens - self.earlier) / (time.monotonic() - self.mark)
        self.write_log(loss=self.mean, tokens_per_second=speed, seconds=self.seconds())
        progress.update(self.step, f"loss {self.mean:.4f}, {speed:,.0f} tokens/s")
        self.losses, self.tokens, self.earlier, self.mark = [], 0, 0, time.monotonic()

    def require_finite(self, loss: float) -> None:
        """Raise UserError for a loss that is not finite."""
        if not math.isfinite(loss):
            raise UserError(
                f"training diverged: the loss is {loss} by update {self.step:,}; try a lower "
                f"optimisation.learning_rate than {self.config.learning_rate:g}"
            )

    def look(self, rows: Rows) -> None:
        """After a minute and a twentieth of the updates, or at the end if that is sooner, say if nothing is learned."""
        soon = self.seconds() < AFTER or self.step < max(self.config.warmup, self.total // 20)
        if self.trouble is not None or self.step < LEAST_UPDATES or (soon and self.step < self.total):
            return
        sequences, memories = (tensor.to(self.device) for tensor in self.examples.collate(rows))
        self.trouble = trouble(self.network, sequences, memories, self.first, self.mean, self.config.learning_rate)
        if self.trouble:
            note(f"warning: after {self.step:,} updates {self.trouble}", self.quiet)

    def check_last(self, rows: Rows) -> None:
        """Raise UserError if the last update diverged: the losses so far are those before it."""
        sequences, memories = (tensor.to(self.device) for tensor in self.examples.collate(rows))
        with precision(self.device, self.config.precision == "bfloat16"):
            self.require_finite(float(losses(self.network, sequences, memories).mean()))

    def seconds(self) -> float:
        """What training has taken so far, the parts before interruptions included."""
        return self.spent + time.monotonic() - self.saved

    def end_epoch(self) -> None:
        """Score the weights on held-out data; adapt the plateau schedule and keep the best weights."""
        if self.score is None or (self.config.keep == "last" and self.config.schedule != "plateau"):
            return
        # Scoring must not move the random numbers of training: a run that scores less often would differ.
        with undrawn(self.device):
            score = self.score(self.network.eval())
        self.network.train()
        self.write_log(held_out=score)
        self.stalled = 0 if score < self.best - self.config.tolerance else self.stalled + 1
        if self.stalled >= max(1, self.config.patience) and self.config.schedule == "plateau":
            self.factor, self.stalled = self.factor * self.config.decay, 0
        if score < self.best:
            self.best = score
            self.best_weights = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}

    # -- what is written ------------------------------------------------------------------------------------------

    def write_log(self, **figures: float) -> None:
        """Append a line to the log."""
        rounded = {name: round(value, 5) for name, value in figures.items()}
        line = {"step": self.step, "epoch": round(self.step / self.per_epoch, 3), "lr": self.rate()} | rounded
        with writing(self.log), self.log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def save(self) -> None:
        """Write everything that a resumed run needs."""
        self.spent, self.saved = self.seconds(), time.monotonic()
        state = {name: getattr(self, name) for name in self.KEPT} | {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "chosen": self.examples.chosen,
            "random": torch.random.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state() if self.device == "cuda" else None,
            "losses": torch.tensor([float(loss) for loss in self.losses]),
            "tokens": self.tokens,
            "first": self.first,
            "trouble": self.trouble,
        }
        write_sealed(state, self.partial)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other trainings away from the log, and so from the state, whose file is replaced with each save.

        A log without a line, of a training that could not begin, does not stay.
        """
        check_writable(self.partial)  # now, not when it is first saved
        with writing(self.log):
            stream = self.log.open("ab")
        with stream:
            lock(stream, self.log)
            try:
                yield
            finally:
                if not os.fstat(stream.fileno()).st_size:
                    self.log.unlink(missing_ok=True)

    def begin(self) -> None:
        """Make room for a new run's log; keep the state of an interrupted training under another name."""
        if self.partial.exists():
            old = self.partial.with_name(self.partial.name + ".old")
            with writing(old):
                self.partial.replace(old)
            note(f"{self.out}: a training was interrupted here; its state is now {old} (--resume would have used it)")
        with writing(self.log):
            self.log.write_text("", encoding="utf-8")

    def check_saved(self) -> None:
        """Raise CheckpointError if there is no state to go on from."""
        if not self.partial.exists():
            raise CheckpointError(f"{self.partial}: no such file: no training was interrupted; leave out --resume")

    def restore(self) -> None:
        """Go on from the saved state; raise CheckpointError if it is gone, or of another identity."""
        self.check_saved()
        state = _state(self.partial)
        if not isinstance(state["identity"], dict):
            raise CheckpointError(f"{self.partial}: saved by an earlier version: leave out --resume")
        if changes := differing(state["identity"], self.identity):
            raise CheckpointError(
                f"{self.partial}: saved by a training that differs: {changes}; give the same, or leave out "
                "--resume to begin anew"
            )
        for name in self.KEPT:
            setattr(self, name, state[name])
        self.examples.chosen = state["chosen"]
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        torch.random.set_rng_state(state["random"])
        if state["random_cuda"] is not None:
            torch.cuda.set_rng_state(state["random_cuda"])
        self.losses = list(state.get("losses", torch.empty(0)).to(self.device))
        self.tokens, self.first = state.get("tokens", 0), state.get("first", math.nan)
        self.trouble, self.earlier = state.get("trouble"), self.tokens
        self.cut_log()

    def cut_log(self) -> None:
        """Leave only whole lines of updates up to this one in the log: the others are written again."""
        with writing(self.log):
            lines = self.log.read_bytes().splitlines(keepends=True)
            os.truncate(self.log, sum(map(len, takewhile(lambda line: _step(line) <= self.step, lines))))


def saved_identity(out: Path) -> Identity:
    """What the interrupted training of `out` depends on; nothing if there is none, or of an earlier version."""
    identity = _state(_partial(out))["identity"] if _partial(out).exists() else {}
    return identity if isinstance(identity, dict) else {}


def _state(path: Path) -> dict[str, Any]:
    keys = {*_Run.KEPT, "network", "optimiser", "chosen", "random", "random_cuda"}
    try:
        return read_sealed(path, keys, _Run.UNLOGGED)
    except CheckpointError as error:
        raise CheckpointError(f"{error}; without --resume the training begins anew") from error


def _step(line: bytes) -> float:
    """The update of a line of the log; infinite if the line is cut short, be it by its end alone."""
    if not line.endswith(b"\n"):
        return math.inf
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
        return math.inf
