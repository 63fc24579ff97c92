"""From a configuration to the network that it describes."""

from typing import Any

from compgen.models.config import NetworkConfig, TransformerNetwork
from compgen.models.network import Network
from compgen.models.pretrained import Pretrained
from compgen.models.transformer import Transformer

AnyNetwork = Network | Transformer
Trainable = AnyNetwork | Pretrained


def build(config: NetworkConfig | TransformerNetwork, vocabulary: int) -> AnyNetwork:
    """A network for a vocabulary of some size, with new weights."""
    if isinstance(config, TransformerNetwork):
        return Transformer(config, vocabulary)
    return Network(config, vocabulary)


def described(values: dict[str, Any]) -> NetworkConfig | TransformerNetwork:
    """The configuration that JSON values stand for: a Transformer's has `layers`.

    Raises:
        ValidationError: they stand for none.
    """
    return TransformerNetwork(**values) if "layers" in values else NetworkConfig(**values)
