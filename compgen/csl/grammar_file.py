"""Grammar files (`.grammar`): a trained grammar with its vocabulary and training examples, opened without torch.

The file is a safetensors file: `slots` and `rules` are the tables of scores, `tokens` the training examples. All else
is one JSON text in its metadata, with a SHA-256 digest of the whole content. No code in the file is ever run.
"""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from compgen.csl.trained import TrainedGrammar
from compgen.data.examples import Dataset
from compgen.data.vocabulary import SEP_ID, Vocabulary
from compgen.errors import BundleError, CheckpointError, DataError, UserError
from compgen.files import atomic_path
from compgen.runtime.bundle import arrays_of, pool_problem
from compgen.runtime.manifest import strict_json
from compgen.runtime.pool import PrototypePool
from compgen.runtime.predict import as_sources

FORMAT, VERSION = "compgen-grammar", 1
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class GrammarFile:
    """A trained grammar and what sampling and export need beside it.

    Attributes:
        vocabulary: of sources and targets together.
        tokens: the training examples, (N, T) ids padded with 0: source, separator, target, end symbol.
        trained_on: name, sizes, seed and the like, for manifest and model card.
    """

    architecture: ClassVar[str] = "grammar"
    kind: ClassVar[str] = "generator"

    trained: TrainedGrammar
    vocabulary: Vocabulary
    tokens: NDArray[np.int32]
    trained_on: dict[str, Any]

    def __post_init__(self) -> None:
        """Raise DataError unless the vocabulary has the grammar's tokens and those of the examples."""
        self.vocabulary.encode(self.trained.grammar.alphabet.tokens)
        if problem := pool_problem(self.pool, 0, len(self.vocabulary)):
            raise DataError(problem)

    @classmethod
    def of(cls, trained: TrainedGrammar, dataset: Dataset, trained_on: dict[str, Any]) -> Self:
        """Build it for a grammar that was trained on a dataset."""
        pairs = dataset.unique().pairs()
        vocabulary = Vocabulary.of([trained.grammar.alphabet.tokens, *(side for pair in pairs for side in pair)])
        encode = vocabulary.encode
        rows = as_sources([[*encode(source), SEP_ID, *encode(target)] for source, target in pairs])
        return cls(trained, vocabulary, rows.astype(np.int32), trained_on)

    @property
    def pool(self) -> PrototypePool:
        """The training examples, as what novelty is judged by; no prototypes are drawn from it."""
        none = np.empty((0, 0), dtype=np.int64)
        return PrototypePool(self.tokens, np.empty(0, dtype=np.int32), none, none)

    def save(self, path: Path) -> None:
        """Write the file; it appears whole or not at all."""
        meta = {
            "format": FORMAT,
            "version": VERSION,
            "rules": self.trained.grammar.text(),
            "targets": self.trained.target_rules,
            "settings": self.trained.settings,
            "vocabulary": list(self.vocabulary.tokens),
            "trained_on": self.trained_on,
        }
        scores = self.trained.scores
        arrays: Arrays = {"slots": scores.slots, "rules": scores.rules, "tokens": self.tokens}
        text = json.dumps(meta | {"digest": _digest(meta, arrays)}, ensure_ascii=False)
        with atomic_path(path) as temporary:
            temporary.write_bytes(save(arrays, {FORMAT: text}))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a grammar file.

        Raises:
            CheckpointError: it is missing, cut short, damaged, of another version, or not ours.
        """
        meta, arrays = _read(path)
        try:
            scores = {name: arrays[name] for name in ("slots", "rules")}
            trained = TrainedGrammar.of(meta["rules"], meta["targets"], scores, meta["settings"])
            return cls(trained, Vocabulary(meta["vocabulary"]), arrays["tokens"], dict(meta["trained_on"]))
        except (AttributeError, KeyError, TypeError, UserError, ValueError) as error:
            line = " ".join(str(error).split())[:300]
            raise CheckpointError(f"{path}: the grammar's content does not fit together: {line}") from error


def _read(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Return the JSON part without its digest, and the arrays."""
    if not path.is_file():
        found = "a folder, a pipe or a device, expected a grammar file" if path.exists() else "no such file"
        raise CheckpointError(f"{path}: {found}")
    content = path.read_bytes()
    try:
        header = strict_json(content[8 : 8 + int.from_bytes(content[:8], "little")])
        meta = strict_json(header["__metadata__"][FORMAT].encode())
        version, said, arrays = meta["version"], meta.pop("digest", None), arrays_of(path, content)
    except (AttributeError, BundleError, KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{path}: not a grammar file, or cut short; expected a file that `cgen train csl` wrote"
        ) from error
    if type(version) is not int or version != VERSION:
        raise CheckpointError(f"{path}: grammar file version {version!r:.20}, this compgen reads {VERSION}")
    if said != _digest(meta, arrays):
        raise CheckpointError(f"{path}: damaged: its content does not agree with its digest; use another copy")
    return meta, arrays


def _digest(meta: dict[str, Any], arrays: Arrays) -> str:
    """Return the SHA-256, in hexadecimal, of a JSON value and of arrays by name."""
    made = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name, array in sorted(arrays.items()):
        made.update(f"\n{name} {array.dtype} {array.shape}\n".encode())
        made.update(np.ascontiguousarray(array).tobytes())
    return made.hexdigest()
