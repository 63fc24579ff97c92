"""The predictor that all systems of a comparison train: which one, by which settings, and its training."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from compgen import files
from compgen.comparison.parts import inflected
from compgen.data.examples import Dataset, shares_tokens
from compgen.errors import CheckpointError, UserError
from compgen.trained.architectures import is_pretrained

# Those trained from scratch: their architecture's tag and the shipped configuration.
SCRATCH = {"seq2seq": ("recurrent", "seq2seq_small"), "transformer": ("transformer", "transformer_small")}
PRETRAINED = "t5_small"  # the configuration of a pretrained one
SMALL = 2000  # training examples: with fewer, an LSTM that copies drops half of its embeddings and outputs
_WARMUP = 400  # updates of a Transformer, or a fifth of all if they are few


class Recipe(NamedTuple):
    """A predictor: `seq2seq`, `transformer` or the folder of a pretrained model, and what its configuration changes."""

    name: str
    changes: tuple[str, ...]

    @property
    def configuration(self) -> str:
        """The shipped configuration that it is trained by."""
        return SCRATCH[self.name][1] if self.name in SCRATCH else PRETRAINED

    @property
    def exports(self) -> bool:
        """Whether it can be exported to a bundle."""
        return self.name in SCRATCH

    def changed(self, updates: int) -> list[str]:
        """What the configuration changes, so many updates included."""
        warmup = [f"optimisation.warmup={min(_WARMUP, updates // 5)}"] if self.name == "transformer" else []
        return [f"optimisation.steps={updates}", *warmup, *self.changes]

    def train(self, dataset: Dataset, augmented: Dataset | None, out: Path, *, updates: int, seed: int) -> float:
        """Train it, from where it was interrupted if it was; return the seconds that took, those before included."""
        from compgen import api

        with interrupted(out) as resume:
            options: dict[str, Any] = {"augmented": augmented, "seed": seed, "resume": resume}
            changed = self.changed(updates)
            if self.name not in SCRATCH:
                trained = api.train_pretrained(dataset, self.name, PRETRAINED, out, changed, **options)
            else:
                tag, configuration = SCRATCH[self.name]
                trained = api.train_predictor(dataset, configuration, out, changed, architecture=tag, **options)
        return float(trained["seconds"])

    def command(self, data: str, augmented: str | None, out: str, updates: int) -> str:
        """The command that trains it by hand, with seed 0."""
        verb = [self.name] if self.name in SCRATCH else ["pretrained", "--model", self.name]
        more = ["--augmented", augmented] if augmented else []
        changed = [part for one in self.changed(updates) for part in ("--set", one)]
        return shlex.join(["cgen", "train", *verb, data, *more, *changed, "-o", out])


def recipe(name: str | None, dataset: Dataset) -> Recipe:
    """Return the predictor for some training data: by default a Transformer for inflected words, else an LSTM.

    All examples are trained on. The LSTM copies where targets repeat tokens of their sources; then it learns to copy
    words that it does not know, and drops half of embeddings and outputs if there are fewer than SMALL examples. The
    Transformer knows tags of inflection from letters.

    Raises:
        UserError: there is no such predictor.
    """
    words = inflected(dataset)
    name = name or ("transformer" if words else "seq2seq")
    if name not in SCRATCH and not is_pretrained(Path(name)):
        raise UserError(
            f"no predictor {name!r}: expected {', '.join(SCRATCH)}, or the folder of a pretrained encoder-decoder as "
            "transformers saves it"
        )
    if name not in SCRATCH:
        name = str(Path(name).resolve())  # the results may be gone on with, and their commands run, from another folder
    changes = ["held_out=0.0"]
    if name == "transformer" and words:
        changes.append("network.invariant_tags=true")
    if name == "seq2seq" and shares_tokens(dataset):
        changes += ["network.copying=true", "network.token_dropout=0.02"]
        if len(dataset) < SMALL:
            changes += ["network.embedding_dropout=0.5", "network.output_dropout=0.5"]
    return Recipe(name, tuple(changes))


@contextmanager
def interrupted(out: Path) -> Iterator[bool]:
    """Yield whether a training of `out` was interrupted; UserError if what that has left cannot be gone on with."""
    partial = out.with_name(out.name + ".partial")
    there = partial.exists()
    try:
        yield there
    except CheckpointError as error:
        if not there:
            raise
        raise UserError(f"{partial}: cannot be gone on with: delete it, and the same command trains anew") from error


def remove(out: Path) -> None:
    """Delete a trained predictor, its log, and the state of an interrupted training."""
    for end in ("", ".log.jsonl", ".partial"):
        files.remove(out.with_name(out.name + end))
