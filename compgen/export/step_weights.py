"""Weights by name, for a program with a step of its own (`cpp_runner/src/step.cpp` and `transformer.cpp`)."""

import copy
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from compgen.export.integers import rounded_by_column
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

    Args:
        network: from `folded`; what is left of the last normalisation becomes part of `project`.

    Returns:
        embedding (V, d) and source_embedding (V, d), scaled, the latter with kinds of tokens; positioned (V), 1 for
        tokens that have a position in a source, in 8-bit integers; frequency (d / 2) of sinusoids, without relative
        positions; project (d, V). Of layer k, with the prefix `encoder.k.` or `decoder.k.`: attend (d, 3, h, d / h),
        queries, keys and values; mix (d, d); expand (d, inner); contract (inner, d); with relative positions distances
        (h, 2K + 1, d / h); of the decoder remember (d, 2d), keys and values of a source, query (d, d) and
        across_mix (d, d).
    """
    config, scale = network.config, math.sqrt(network.config.size)
    embedding, norm = network.embedding.weight, network.decoder_norm
    weights = {"embedding": embedding * scale, "source_embedding": embedding * scale, "positioned": ~network.tags}
    if network.kinds is None:
        weights["positioned"] = torch.ones_like(network.tags)
    else:
        weights["source_embedding"] = embedding * scale + network.kinds(network.tags.long())
    if not config.relative:
        weights["frequency"] = network.frequency
    weights |= {"project": (embedding * norm.weight).t(), "project_bias": embedding @ norm.bias}
    for number, layer in enumerate(network.encoder):
        weights |= _layer_weights(f"encoder.{number}.", layer)
    for number, layer in enumerate(network.layers):
        name = f"decoder.{number}."
        weights |= _layer_weights(name, layer)
        weights |= _linear(f"{name}remember", layer.across.key_value)
        weights |= _linear(f"{name}query", layer.across.query)
        weights |= _linear(f"{name}across_mix", layer.across.out)
    arrays = _arrays(weights)
    return arrays | {"positioned": arrays["positioned"].astype(np.int8)}


def integer_weights(weights: Arrays) -> Arrays:
    """A Transformer's weights with the matrices of its layers in 8-bit integers, `name.int8`, and `name.scales`."""
    found: Arrays = {}
    for name, array in weights.items():
        if f"{name}_bias" not in weights or name == "project":
            found[name] = array
            continue
        integers = rounded_by_column(array.reshape(len(array), -1))
        found |= {f"{name}.int8": integers["weights"].reshape(array.shape), f"{name}.scales": integers["scales"]}
    return found


def folded(network: Transformer) -> Transformer:
    """A copy that computes the same, whose normalisations have no gain and bias, and whose scores no scale.

    They are part of the matrices after them. The last normalisation keeps its own, as the output's weights are those
    of embeddings, too.
    """
    network = copy.deepcopy(network)
    with torch.no_grad():
        for layer in (*network.encoder, *network.layers):
            _fold(layer.norm, layer.own.query, layer.own.key_value)
            _fold(layer.inner[0], layer.inner[1])
            _fold_scale(layer.own)
        for layer in network.layers:
            _fold(layer.across_norm, layer.across.query)
            _fold_scale(layer.across)
        _fold(network.encoder_norm, *(layer.across.key_value for layer in network.layers))
    return network


def _fold(norm: nn.LayerNorm, *layers: nn.Linear) -> None:
    for layer in layers:
        layer.bias.add_(layer.weight @ norm.bias)
        layer.weight.mul_(norm.weight)
    norm.weight.fill_(1)
    norm.bias.zero_()


def _fold_scale(attention: Any) -> None:
    attention.query.weight.div_(attention.scale)
    attention.query.bias.div_(attention.scale)
    attention.scale = 1.0


def _layer_weights(name: str, layer: Any) -> dict[str, Tensor]:
    own, inner = layer.own, layer.inner
    weights = _linear(f"{name}attend", own.query, own.key_value)
    # The shape tells the heads apart, so that a file does not fit another number of them.
    weights[f"{name}attend"] = weights[f"{name}attend"].reshape(own.size, 3, own.heads, -1)
    weights |= (
        _linear(f"{name}mix", own.out) | _linear(f"{name}expand", inner[1]) | _linear(f"{name}contract", inner[4])
    )
    return weights if own.distances is None else weights | {f"{name}distances": own.distances}


def _linear(name: str, *layers: nn.Linear) -> dict[str, Tensor]:
    """Linear layers side by side, as (inputs, outputs)."""
    weight, bias = (torch.cat([getattr(layer, kind) for layer in layers]) for kind in ("weight", "bias"))
    return {name: weight.t(), f"{name}_bias": bias}


def _arrays(weights: dict[str, Tensor]) -> Arrays:
    return {name: np.ascontiguousarray(weight.detach().numpy()) for name, weight in weights.items()}
