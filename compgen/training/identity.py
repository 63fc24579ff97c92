"""What a training depends on: its settings by name, and its data. Only the same training goes on from a saved state."""

import json
from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from compgen.training.config import Configuration

DATA = "data"  # in an identity

Identity = dict[str, Any]  # what a training depends on, by name


def fingerprint(config: Configuration, seed: int, *data: object) -> Identity:
    """The identity of a training: its settings and seed by name, and a hash of its data (JSON-able)."""
    settings = dict(flat(config.model_dump(mode="json"))) | {"seed": seed}
    return settings | {DATA: sha256(json.dumps(data).encode()).hexdigest()}


def flat(table: Mapping[str, Any], name: str = "") -> Iterator[tuple[str, Any]]:
    """The values of nested tables, by names with dots."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{name}{key}.")
        else:
            yield name + key, value


def differing(old: Identity, new: Identity) -> str:
    """What differs between two trainings, in words; nothing if nothing does."""
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    told = [f"{name} was {old.get(name)!r:.40}, is {new.get(name)!r:.40}" for name in names if name != DATA]
    return "; ".join(told + ["the training data (or the base model)"] * (DATA in names))
