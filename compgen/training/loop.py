"""The training loop: one loop for generators and predictors, that a person can leave alone.

It logs JSON lines beside the output, saves its whole state now and then and when it is interrupted, and goes on from
there to the very weights an uninterrupted run would have reached: batches are a function of (seed, epoch), and the
saved state holds the random numbers' state with everything else.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from compgen.data.random import Stream
from compgen.errors import CheckpointError, Interrupted, UserError
from compgen.files import writing
from compgen.interrupts import interruptible
from compgen.models.trainable import Trainable
from compgen.progress import Progress
from compgen.trained.checkpoint import read_sealed, write_sealed
from compgen.training.config import Configuration, OptimisationConfig

LOG_EVERY = 50  # updates
SAVE_EVERY = 60.0  # seconds
FLOOR = 0.05  # share of the learning rate at which a linear schedule ends
STATE = {"identity", "step", "factor", "stalled", "best", "best_weights", "spent", "mean", "network", "optimiser"}
STATE |= {"random", "random_cuda"}  # what is saved of a training

Rows = NDArray[np.int64]


class Examples(Protocol):
    """Training data: which rows go together, and what a network makes of them."""

    def plan(self, epoch: int) -> list[Rows]:
        """The batches of an epoch, each an array of row numbers; a function of the epoch (and a seed) alone."""

    def collate(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Sequences (B, L) and memories (B, n, T) of some rows, as ids padded with 0."""


@dataclass(frozen=True)
class Outcome:
    """What a finished training did."""

    steps: int
    seconds: float
    train_loss: float  # nats a token, mean over the last log interval
    held_out: float | None  # the kept weights' held-out score


def train(
    network: Trainable,
    examples: Examples,
    config: OptimisationConfig,
    out: Path,
    *,
    identity: str,
    score: Callable[[Trainable], float] | None = None,
    resume: bool = False,
    device: str = "cpu",
    quiet: bool = False,
) -> Outcome:
    """Train `network` in place.

    Loss is the sum over tokens, mean over the batch, as in the reference. `score`, if given, is called after each epoch
    (lower is better); the plateau schedule and keeping the best weights go by it. The log is in `OUT.log.jsonl`, the
    state in `OUT.partial`, also when training is done: `discard_state` drops it once the weights are safe elsewhere.
    A state is only gone on from by a run of the same `identity` (see `fingerprint`).

    Raises:
        Interrupted: training was interrupted (its state is saved).
        CheckpointError: `resume` without a usable state, or one of another identity.
        UserError: the log cannot be written, or the loss is no number any more.
    """
    run = _Run(network.to(device), examples, config, out, identity, score, device, quiet)
    if resume:
        run.restore()
    else:
        run.begin()
    return run.go()


def find_device(name: str) -> str:
    """`cpu` or `cuda` for `auto` (CUDA where there is a device for it), `cpu` or `cuda`.

    Raises:
        UserError: another name, or CUDA where there is none.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise UserError(f"no device {name!r}: expected auto, cpu or cuda")
    if name == "cuda" and not torch.cuda.is_available():
        raise UserError("no CUDA device here: use cpu or auto")
    return "cuda" if name != "cpu" and torch.cuda.is_available() else "cpu"


def fingerprint(config: Configuration, seed: int, *data: object) -> str:
    """What makes a training what it is, as one string: its configuration, its seed and its data (JSON-able)."""
    return sha256(json.dumps([config.model_dump(mode="json"), seed, *data]).encode()).hexdigest()


def discard_state(out: Path) -> None:
    """Drop the state of a training whose checkpoint `out` is written."""
    _partial(out).unlink(missing_ok=True)


def _partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


def _optimiser(network: Trainable, config: OptimisationConfig) -> torch.optim.Optimizer:
    if config.optimiser == "adam":
        return torch.optim.Adam(network.parameters(), lr=config.learning_rate, fused=True)
    # T5's: steps relative to a weight's size (at least 1e-3) and clipped at 1, decay 1 - t^-0.8, no momentum.
    # The floor of squared gradients is 1e-30. PyTorch takes its root; the square of 1e-30 would be 0 in float32.
    return torch.optim.Adafactor(network.parameters(), lr=config.learning_rate, eps=(1e-15, 1e-3))


class _Run:
    """State of one training; everything that a resumed run needs is in `state`."""

    def __init__(
        self,
        network: Trainable,
        examples: Examples,
        config: OptimisationConfig,
        out: Path,
        identity: str,
        score: Callable[[Trainable], float] | None,
        device: str,
        quiet: bool,
    ) -> None:
        self.network, self.examples, self.config, self.score = network, examples, config, score
        self.device, self.quiet, self.identity = device, quiet, identity
        self.partial, self.log = _partial(out), out.with_name(out.name + ".log.jsonl")
        self.optimiser = _optimiser(network, config)
        self.per_epoch = len(examples.plan(0))
        self.total = config.steps or config.epochs * self.per_epoch
        self.step = 0
        self.factor = 1.0  # of the learning rate, by the plateau schedule
        self.stalled = 0
        self.best = float("inf")
        self.best_weights: dict[str, Tensor] = {}
        self.spent = 0.0
        self.mean = float("nan")  # loss of the last log interval, nats a token

    # -- one update -----------------------------------------------------------------------------------------------

    def rate(self) -> float:
        """The learning rate of the coming update."""
        rate = self.config.learning_rate * self.factor
        if self.config.warmup:
            rate *= min(1.0, (self.step + 1) / self.config.warmup)
        if self.config.schedule == "linear":
            rate *= max(FLOOR, 1 - self.step / self.total)
        return rate

    def update(self, rows: Rows) -> tuple[Tensor, int]:
        """One update; returns the summed loss (on the device, so that nothing waits for it) and its tokens."""
        sequences, memories = self.examples.collate(rows)
        tokens = int((sequences[:, 1:] != 0).sum())
        with torch.autocast(self.device, dtype=torch.bfloat16, enabled=self.device == "cuda"):
            loss = self.network.loss(sequences.to(self.device), memories.to(self.device)).sum()
        for group in self.optimiser.param_groups:
            group["lr"] = self.rate()
        self.optimiser.zero_grad(set_to_none=True)
        (loss / len(rows)).backward()  # type: ignore[no-untyped-call]
        if self.config.clip is not None:
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.config.clip)
        self.optimiser.step()
        self.step += 1
        return loss.detach(), tokens

    # -- the loop -------------------------------------------------------------------------------------------------

    def go(self) -> Outcome:
        began, saved = time.monotonic(), time.monotonic()
        before = self.spent
        losses: list[Tensor] = []
        tokens, mark = 0, time.monotonic()
        with interruptible() as interrupted, Progress("train", self.total, self.step, quiet=self.quiet) as progress:
            for rows in self.batches():
                loss, count = self.update(rows)
                losses.append(loss)
                tokens += count
                if self.step % LOG_EVERY == 0 or self.step == self.total:
                    self.mean = float(torch.stack(losses).sum()) / max(1, tokens)
                    if not math.isfinite(self.mean):
                        raise UserError(
                            f"training went astray: the loss is {self.mean} by update {self.step:,}; try a lower "
                            f"optimisation.learning_rate than {self.config.learning_rate:g}"
                        )
                    speed = tokens / (time.monotonic() - mark)
                    self.write_log(loss=self.mean, tokens_per_second=speed, seconds=before + time.monotonic() - began)
                    progress.update(self.step, f"loss {self.mean:.4f}, {speed:,.0f} tokens/s")
                    losses, tokens, mark = [], 0, time.monotonic()
                if self.step % self.per_epoch == 0 or self.step == self.total:
                    self.end_epoch()
                if interrupted or time.monotonic() - saved > SAVE_EVERY:
                    self.spent = before + time.monotonic() - began
                    self.save()
                    saved = time.monotonic()
                if interrupted:
                    raise Interrupted(
                        f"stopped after update {self.step} of {self.total}; --resume goes on", interrupted[0]
                    )
        self.spent = before + time.monotonic() - began
        self.save()
        if self.config.keep == "best" and self.best_weights:
            self.network.load_state_dict(self.best_weights)
        self.network.eval()
        held_out = None if self.score is None else self.best if self.config.keep == "best" else self.score(self.network)
        return Outcome(self.step, self.spent, self.mean, held_out)

    def batches(self) -> Iterator[Rows]:
        """The batches that are left, epoch after epoch."""
        self.network.train()
        while self.step < self.total:
            epoch, position = divmod(self.step, self.per_epoch)
            for rows in self.examples.plan(epoch)[position:]:
                if self.step >= self.total:
                    return
                yield rows

    def end_epoch(self) -> None:
        """Score the weights on held-out data, and let the schedule and the choice of weights know."""
        if self.score is None or (self.config.keep == "last" and self.config.schedule != "plateau"):
            return
        # Scoring must not move the random numbers of training: a run that scores less often would differ.
        state = torch.random.get_rng_state()
        score = self.score(self.network.eval())
        torch.random.set_rng_state(state)
        self.network.train()
        self.write_log(held_out=score)
        if score < self.best - self.config.tolerance:
            self.stalled = 0
        else:
            self.stalled += 1
            if self.config.schedule == "plateau" and self.stalled >= self.config.patience:
                self.factor, self.stalled = self.factor * self.config.decay, 0
        if score < self.best:
            self.best = score
            self.best_weights = {name: tensor.clone() for name, tensor in self.network.state_dict().items()}

    # -- what is written ------------------------------------------------------------------------------------------

    def write_log(self, **figures: float) -> None:
        rounded = {name: round(value, 5) for name, value in figures.items()}
        line = {"step": self.step, "epoch": round(self.step / self.per_epoch, 3), "lr": self.rate()} | rounded
        with writing(self.log), self.log.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(line) + "\n")

    def save(self) -> None:
        state = {
            "identity": self.identity,
            "step": self.step,
            "factor": self.factor,
            "stalled": self.stalled,
            "best": self.best,
            "best_weights": self.best_weights,
            "spent": self.spent,
            "mean": self.mean,
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "random": torch.random.get_rng_state(),
            "random_cuda": torch.cuda.get_rng_state() if self.device == "cuda" else None,
        }
        write_sealed(state, self.partial)

    def begin(self) -> None:
        """Make room for a new run's log."""
        with writing(self.log):
            self.log.parent.mkdir(parents=True, exist_ok=True)
            self.log.write_text("", encoding="utf-8")

    def restore(self) -> None:
        if not self.partial.exists():
            raise CheckpointError(f"{self.partial}: no such file: no training was interrupted; leave out --resume")
        state = read_sealed(self.partial, STATE)
        if state["identity"] != self.identity:
            raise CheckpointError(f"{self.partial}: saved by a training with another configuration, data or seed")
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.step, self.factor, self.stalled = state["step"], state["factor"], state["stalled"]
        self.best, self.best_weights, self.spent = state["best"], state["best_weights"], state["spent"]
        self.mean = state["mean"]
        torch.random.set_rng_state(state["random"])
        if state["random_cuda"] is not None:
            torch.cuda.set_rng_state(state["random_cuda"])


def bucketed(lengths: NDArray[np.int64], batch: int, rng: Stream) -> list[Rows]:
    """Batches of rows of like length, in random order. Lengths are jittered so that batches differ between epochs."""
    jitter = rng.uniform(0, max(1.0, float(lengths.std()) / 2), len(lengths))
    order = np.argsort(lengths + jitter, kind="stable")
    batches = np.array_split(order, max(1, round(len(order) / batch)))
    return [batches[i] for i in rng.permutation(len(batches))]


def pad(sequences: Sequence[Sequence[int]]) -> Rows:
    """Sequences as one array (N, longest), padded with 0."""
    table = np.zeros((len(sequences), max(map(len, sequences), default=0)), dtype=np.int64)
    for row, sequence in enumerate(sequences):
        table[row, : len(sequence)] = sequence
    return table
