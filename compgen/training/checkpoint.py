"""Checkpoints: one `.pt` file with weights, configuration, vocabulary and, for generators, the prototype pool.

Only tensors, strings and numbers are stored and files are read weights-only, so a checkpoint from a stranger is data.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from torch import Tensor

from compgen.data.vocabulary import Vocabulary
from compgen.errors import CheckpointError
from compgen.files import atomic_path
from compgen.models.build import AnyNetwork, build, described
from compgen.models.network import Network
from compgen.models.rules import RuleTables
from compgen.runtime.pool import PrototypePool

FORMAT = "compgen-checkpoint"
VERSION = 1


@dataclass
class Checkpoint:
    """A trained network, or the tables of a grammar, with all that sampling or predicting from it needs.

    Attributes:
        kind: "generator" or "predictor".
        network: the weights, as a module.
        vocabulary: of sources and targets together.
        config: the configuration it was trained with, as JSON-able values.
        pool: prototypes and Omega (generators).
        max_length: the most tokens to decode, the end symbol included.
        sampling: defaults for sampling (`temperature`: source half and target half).
        trained_on: name, sizes, seed and the like, for manifest and model card.
    """

    kind: str
    network: AnyNetwork | RuleTables
    vocabulary: Vocabulary
    config: dict[str, Any]
    max_length: int
    pool: PrototypePool | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    trained_on: dict[str, Any] = field(default_factory=dict)

    @property
    def recurrent(self) -> Network:
        """The network of a generator, or of a recurrent predictor.

        Raises:
            CheckpointError: it is something else.
        """
        if not isinstance(self.network, Network):
            what = "grammar" if isinstance(self.network, RuleTables) else "Transformer"
            raise CheckpointError(f"the checkpoint holds a {what}: expected a recurrent network")
        return self.network

    def save(self, path: Path) -> None:
        """Write the checkpoint; the file appears whole or not at all."""
        meta = {
            "kind": self.kind,
            "vocabulary": list(self.vocabulary.tokens),
            "config": self.config,
            "max_length": self.max_length,
            "sampling": self.sampling,
            "trained_on": self.trained_on,
        }
        content: dict[str, Any] = {
            "format": FORMAT,
            "version": VERSION,
            "meta": json.dumps(meta, ensure_ascii=False),
            "weights": {name: tensor.cpu().contiguous() for name, tensor in self.network.state_dict().items()},
            "pool": {} if self.pool is None else {name: torch.from_numpy(a) for name, a in vars(self.pool).items()},
        }
        with atomic_path(path) as temporary:
            torch.save(content, temporary)

    @classmethod
    def load(cls, path: Path) -> "Checkpoint":
        """Read a checkpoint.

        Raises:
            CheckpointError: the file is missing, cut short, of another version, or not ours.
        """
        content = read_weights_only(path)
        if content.get("format") != FORMAT:
            raise CheckpointError(f"{path}: not a compgen checkpoint")
        if content.get("version") != VERSION:
            raise CheckpointError(f"{path}: checkpoint version {content.get('version')}, this compgen reads {VERSION}")
        try:
            meta = json.loads(content["meta"])
            vocabulary = Vocabulary(meta["vocabulary"])
            network = _network(meta["config"]["network"], len(vocabulary))
            network.load_state_dict(content["weights"])
            pool = PrototypePool(**{k: _array(v) for k, v in content["pool"].items()}) if content["pool"] else None
            return cls(
                meta["kind"],
                network.eval(),
                vocabulary,
                meta["config"],
                int(meta["max_length"]),
                pool,
                meta["sampling"],
                meta["trained_on"],
            )
        except (KeyError, TypeError, ValueError, RuntimeError, ValidationError) as error:
            raise CheckpointError(f"{path}: the checkpoint's content does not fit together: {error}") from error


def _network(config: dict[str, Any], vocabulary: int) -> AnyNetwork | RuleTables:
    return RuleTables(**config) if "rules" in config else build(described(config), vocabulary)


def read_weights_only(path: Path) -> dict[str, Any]:
    """A dictionary of tensors, strings and numbers from a file that torch.save wrote; no code in it is ever run."""
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise CheckpointError(f"{path}: a folder, expected a checkpoint file") from error
    except Exception as error:  # the reader of a file that is no checkpoint may stumble over anything
        raise CheckpointError(f"{path}: not a checkpoint, or cut short ({type(error).__name__})") from error
    if not isinstance(content, dict):
        raise CheckpointError(f"{path}: not a compgen checkpoint")
    return content


def _array(tensor: Tensor) -> np.ndarray[Any, Any]:
    array: np.ndarray[Any, Any] = tensor.numpy()
    return array
