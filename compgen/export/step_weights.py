"""Weights by name, for a program with a step of its own (`cpp_runner/src/step.cpp` and `transformer.cpp`)."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from compgen.models.decoding import DecodingStep
from compgen.models.network import Network
from compgen.models.transformer import Transformer

Arrays = dict[str, NDArray[Any]]


def own_step(network: Network) -> bool:
    """Whether the C++ runner's own step can decode this network; else it runs the step's graph."""
    return network.carried == network.output and (network.mixture is None or network.mixture.kind == "joint")


def step_weights(network: Network) -> Arrays:
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
    return _arrays(weights)


def transformer_weights(network: Transformer) -> Arrays:
    """A Transformer's matrices as they multiply a row from the right, each with its bias, `..._bias`.

    Normalisations are part of the matrices after them, but for mean and variance; queries are scaled.

    Returns:
        embedding (V, d) and source_embedding (V, d), scaled, the latter with kinds of tokens; positioned (V), 1 for
        tokens that have a position in a source, in 8-bit integers; frequency (d / 2) of sinusoids, without relative
        positions; project (d, V). Of layer k,
        `encoder.k.` and `decoder.k.`: attend (d, 3, h, d / h), queries, keys and values; mix (d, d); expand (d, inner);
        contract (inner, d); with relative positions distances (h, 2K + 1, d / h); of the decoder remember
        (d, 2d), keys and values of a source, query (d, d) and across_mix (d, d).
    """
    config, scale = network.config, math.sqrt(network.config.size)
    embedding = network.embedding.weight
    weights = {"embedding": embedding * scale, "source_embedding": embedding * scale, "positioned": ~network.tags}
    if network.kinds is None:
        weights["positioned"] = torch.ones_like(network.tags)
    else:
        weights["source_embedding"] = embedding * scale + network.kinds(network.tags.long())
    if not config.relative:
        weights["frequency"] = network.frequency
    weights |= _multiplied("project", network.decoder_norm, (embedding, embedding.new_zeros(len(embedding))))
    for number, layer in enumerate(network.encoder):
        weights |= _layer_weights(f"encoder.{number}.", layer)
    for number, layer in enumerate(network.layers):
        name = f"decoder.{number}."
        weights |= _layer_weights(name, layer)
        remembered = layer.across.key_value
        weights |= _multiplied(f"{name}remember", network.encoder_norm, (remembered.weight, remembered.bias))
        weights |= _multiplied(f"{name}query", layer.across_norm, _scaled(layer.across))
        weights |= _multiplied(f"{name}across_mix", None, (layer.across.out.weight, layer.across.out.bias))
    arrays = _arrays(weights)
    return arrays | {"positioned": arrays["positioned"].astype(np.int8)}


def _layer_weights(name: str, layer: Any) -> dict[str, Tensor]:
    own, inner = layer.own, layer.inner
    weights = _multiplied(f"{name}attend", layer.norm, _scaled(own), (own.key_value.weight, own.key_value.bias))
    # The shape tells the heads apart, so that a file does not fit another number of them.
    weights[f"{name}attend"] = weights[f"{name}attend"].reshape(own.size, 3, own.heads, -1)
    weights |= _multiplied(f"{name}mix", None, (own.out.weight, own.out.bias))
    weights |= _multiplied(f"{name}expand", inner[0], (inner[1].weight, inner[1].bias))
    weights |= _multiplied(f"{name}contract", None, (inner[4].weight, inner[4].bias))
    return weights if own.distances is None else weights | {f"{name}distances": own.distances}


def _scaled(attention: Any) -> tuple[Tensor, Tensor]:
    """Weights and bias of queries, divided as scores are."""
    scale = math.sqrt(attention.size // attention.heads)
    return attention.query.weight / scale, attention.query.bias / scale


def _multiplied(name: str, norm: nn.LayerNorm | None, *layers: tuple[Tensor, Tensor]) -> dict[str, Tensor]:
    """Linear layers side by side, as (inputs, outputs), with the gain and bias of a normalisation before them."""
    weight, bias = (torch.cat(parts) for parts in zip(*layers, strict=True))
    if norm is not None:
        weight, bias = weight * norm.weight, bias + weight @ norm.bias
    return {name: weight.t(), f"{name}_bias": bias}


def _arrays(weights: dict[str, Tensor]) -> Arrays:
    return {name: np.ascontiguousarray(weight.detach().numpy()) for name, weight in weights.items()}
