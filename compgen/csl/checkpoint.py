"""CSL's grammars (Qiu et al. 2022) as checkpoints, which are exported and sampled as other generators are."""

from typing import Any

import numpy as np
import torch

from compgen.csl.trained import TrainedGrammar
from compgen.data.examples import Dataset
from compgen.data.padding import padded
from compgen.data.vocabulary import EOS_ID, SEP_ID, Vocabulary
from compgen.errors import CheckpointError, DataError
from compgen.models.rules import RuleTables
from compgen.runtime.pool import PrototypePool
from compgen.training.checkpoint import Checkpoint


def checkpoint_of(trained: TrainedGrammar, dataset: Dataset, trained_on: dict[str, Any]) -> Checkpoint:
    """A grammar that was trained on a dataset, as a checkpoint."""
    (slots, states), rules = trained.scores.slots.shape, trained.scores.rules.shape[1]
    tables = RuleTables(slots, states, rules)
    with torch.no_grad():
        tables.slots.copy_(torch.from_numpy(trained.scores.slots))
        tables.rules.copy_(torch.from_numpy(trained.scores.rules))
    pairs = dataset.unique().pairs()
    vocabulary = Vocabulary.of([trained.grammar.alphabet.tokens, *(side for pair in pairs for side in pair)])
    encode = vocabulary.encode
    rows = padded([[*encode(source), SEP_ID, *encode(target), EOS_ID] for source, target in pairs])
    none = np.empty((0, 0), dtype=np.int64)
    return Checkpoint(
        kind="generator",
        network=tables,
        vocabulary=vocabulary,
        config={
            "network": {"slots": slots, "states": states, "rules": rules},
            "rules": trained.grammar.text(),
            "targets": trained.target_rules,
        },
        max_length=2 * trained.drawing.longest + 2,
        pool=PrototypePool(rows.astype(np.int32), np.empty(0, dtype=np.int32), none, none),
        sampling=trained.settings,
        trained_on=trained_on,
    )


def grammar_of(checkpoint: Checkpoint) -> TrainedGrammar:
    """The grammar in a checkpoint.

    Raises:
        CheckpointError: there is none.
    """
    if not isinstance(checkpoint.network, RuleTables):
        raise CheckpointError("the checkpoint holds a network: expected a grammar")
    scores = {name: table.detach().numpy() for name, table in checkpoint.network.named_parameters()}
    try:
        return TrainedGrammar.of(checkpoint.config["rules"], checkpoint.config["targets"], scores, checkpoint.sampling)
    except (KeyError, DataError) as error:
        raise CheckpointError(f"the checkpoint's content does not fit together: {error}") from error
