"""The predictor that all systems of a comparison train: which one, and its training."""

from pathlib import Path
from typing import Any

from compgen import files
from compgen.compare.parts import inflected
from compgen.data.examples import Dataset
from compgen.errors import UserError

# Of those trained from scratch: the shipped configuration, and what is changed for inflected words.
CONFIGURATIONS = {
    "seq2seq": ("seq2seq_small", ()),
    "transformer": ("transformer_small", ("network.invariant_tags=true",)),
}
PRETRAINED = "t5_small"  # the configuration of a pretrained one


def usual_predictor(dataset: Dataset) -> str:
    """Return the predictor for some data unless another is asked for: a Transformer for inflected words."""
    return "transformer" if inflected(dataset) else "seq2seq"


def check_predictor(name: str) -> None:
    """Raise UserError unless `name` is a predictor that can be trained here."""
    if name not in CONFIGURATIONS and not Path(name).is_dir():
        raise UserError(
            f"no predictor {name!r}: expected {', '.join(CONFIGURATIONS)}, or the folder of a pretrained "
            "encoder-decoder as transformers saves it"
        )


def configuration_of(name: str) -> str:
    """Return the shipped configuration that a predictor is trained by."""
    return CONFIGURATIONS[name][0] if name in CONFIGURATIONS else PRETRAINED


def overrides(name: str, updates: int, words: bool) -> list[str]:
    """Return what is changed of the configuration: the number of updates, and that all examples are trained on."""
    changed = [f"optimisation.steps={updates}", "held_out=0.0"]
    if name not in CONFIGURATIONS:
        return changed
    if name == "transformer":
        changed.append(f"optimisation.warmup={min(400, updates // 5)}")
    return changed + list(CONFIGURATIONS[name][1] if words else ())


def train(
    name: str, dataset: Dataset, augmented: Dataset | None, out: Path, *, updates: int, seed: int
) -> dict[str, Any]:
    """Train a predictor, from where it was interrupted if it was; return what it was trained on."""
    from compgen import api

    changed = overrides(name, updates, inflected(dataset))
    resume = out.with_name(out.name + ".partial").exists()
    options: dict[str, Any] = {"augmented": augmented, "seed": seed, "resume": resume, "quiet": True, "device": "auto"}
    if name not in CONFIGURATIONS:
        return api.train_pretrained(dataset, name, PRETRAINED, out, changed, **options)
    tag = {"seq2seq": "recurrent", "transformer": "transformer"}[name]
    return api.train_predictor(dataset, CONFIGURATIONS[name][0], out, changed, architecture=tag, **options)


def remove(out: Path) -> None:
    """Delete a trained predictor and its log."""
    files.remove(out)
    files.remove(out.with_name(out.name + ".log.jsonl"))


def command(name: str, data: str, augmented: str | None, out: str, updates: int, words: bool) -> str:
    """Return the command that trains the predictor by hand, with seed 0."""
    verb = ["train", name] if name in CONFIGURATIONS else ["train", "pretrained", "--model", name]
    more = ["--augmented", augmented] if augmented else []
    changed = [part for one in overrides(name, updates, words) for part in ("--set", one)]
    return " ".join(["cgen", *verb, data, *more, *changed, "-o", out])
