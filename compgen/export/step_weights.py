"""The decoding step's weights by name, for a program that has the step in its own code (`cpp_runner/src/step.cpp`)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from compgen.models.decoding import DecodingStep
from compgen.models.network import Network


def own_step(network: Network) -> bool:
    """Whether the C++ runner's own step can decode this network; else it runs the step's graph."""
    return network.carried == network.output and (network.mixture is None or network.mixture.kind == "joint")


def step_weights(network: Network) -> dict[str, NDArray[np.floating[Any]]]:
    """Matrices as they multiply a row from the right; what a token gives is looked up, see `DecodingStep`.

    Returns:
        token_gates (V, 4H), state_gates (F + H, 4H), combine (H + nA, F), combine_bias (F), project (F, V),
        project_bias (V); with memories token_queries (V, nA), state_queries (F + H, nA), position_keys (n, A, 2K + 1)
        and position_values (n, 2K + 1, A). Without input feeding F + H is H.
    """
    step = DecodingStep(network)
    project = network.project
    output = network.embedding.weight if project is None else project.weight  # (V, F)
    weights: dict[str, Tensor] = {
        "token_gates": step.token_gates,
        "state_gates": step.state_gates,
        "combine": network.combine.weight.t(),
        "combine_bias": network.combine.bias,
        "project": output.t(),
        "project_bias": output.new_zeros(len(output)) if project is None else project.bias,
    }
    if network.attention is not None:
        weights |= {
            "token_queries": step.token_queries,
            "state_queries": step.state_queries,
            "position_keys": network.attention.position_keys.transpose(1, 2),
            "position_values": network.attention.position_values,
        }
    return {name: np.ascontiguousarray(weight.detach().numpy()) for name, weight in weights.items()}
