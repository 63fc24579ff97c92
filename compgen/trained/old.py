"""The reader of old checkpoints: before architectures had tags, and when a grammar was saved as a network's tables."""

from typing import Any

from compgen.csl.grammar_file import GrammarFile
from compgen.csl.trained import TrainedGrammar
from compgen.data.vocabulary import Vocabulary


def tag_of(meta: dict[str, Any]) -> str:
    """Return the architecture of a checkpoint's meta data, from what its network's configuration holds if need be."""
    network = meta["config"]["network"]
    inferred = "grammar" if "rules" in network else "transformer" if "layers" in network else "recurrent"
    return str(meta.get("architecture", inferred))


def grammar_of(meta: dict[str, Any], weights: dict[str, Any], tokens: Any) -> GrammarFile:
    """Return the grammar in a checkpoint, from its meta data, its tables and its training examples, as torch tensors.

    Raises:
        DataError: they do not fit together.
    """
    config, scores = meta["config"], {name: table.numpy() for name, table in weights.items()}
    trained = TrainedGrammar.of(config["rules"], config["targets"], scores, meta["sampling"])
    return GrammarFile(trained, Vocabulary(meta["vocabulary"]), tokens.numpy(), meta["trained_on"])
