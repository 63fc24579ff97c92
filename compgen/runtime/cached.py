"""The state of a Transformer's decoder: keys and values of its source and of the tokens written."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from compgen.data.vocabulary import BOS_ID, NEVER_FIRST, NEVER_WRITTEN
from compgen.runtime.backend import Ints, State, check_numbers

MEMORY = ("memory_keys", "memory_values")
STEP_INPUTS = ("token", "position", "source", *MEMORY, "keys", "values")
STEP_OUTPUTS = ("log_probs", "next_keys", "next_values")


def first_state(sources: Ints, keys: NDArray[Any], values: NDArray[Any]) -> State:
    """The state before the first token.

    Args:
        sources: (B, S), with end symbols, padded with 0.
        keys, values: of the sources, (B, N, h, S, d / h) for N layers of size d with h heads.
    """
    rows, nothing = len(sources), np.ascontiguousarray(keys[:, :, :, :0])
    return {
        "token": np.full(rows, BOS_ID, dtype=np.int64),
        "position": np.zeros(rows, dtype=np.int64),
        "source": sources,
        "memory_keys": keys,
        "memory_values": values,
        "keys": nothing,
        "values": nothing,
    }


def next_state(
    name: str, state: State, log_probs: NDArray[np.floating[Any]], keys: NDArray[Any], values: NDArray[Any]
) -> State:
    """The state after a step, whose `token` is the most probable of those that are allowed.

    Args:
        name: the model, for messages.
        state: before the step.
        log_probs: (B, V) of the next token.
        keys, values: (B, N, h, L, d / h) of the L tokens written, this step's included.

    Raises:
        BundleError: `log_probs` are not finite.
    """
    check_numbers(name, log_probs)
    allowed = log_probs.copy()
    allowed[:, NEVER_WRITTEN] = -np.inf
    allowed[np.ix_(state["position"] == 0, NEVER_FIRST)] = -np.inf
    token = allowed.argmax(axis=1).astype(np.int64)
    return state | {"token": token, "position": state["position"] + 1, "keys": keys, "values": values}
