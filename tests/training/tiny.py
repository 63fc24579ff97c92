"""A dataset, a configuration and weights for tests of training."""

from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.recombine.config import RecombineConfig

TINY = [
    "network.hidden=8",
    "network.encoder_hidden=6",
    "network.embedding=6",
    "network.output=6",
    "network.attention=5",
]
SHORT = ["optimisation.steps=12", "optimisation.batch=4"]


def toy() -> Dataset:
    verbs, times = ["walk", "run", "look", "hop"], {"": 1, "twice": 2, "thrice": 3}
    pairs = [([v, *([t] if t else [])], [v.upper()] * n) for v in verbs for t, n in times.items()]
    pairs += [(["please", *source], target) for source, target in pairs]
    return Dataset.from_pairs(pairs)


def generator_config(*more):
    return load_config(
        RecombineConfig, "recombine_small", [*TINY, *SHORT, "neighborhood.cover=false", "neighborhood.delta=0.1", *more]
    )


def weights(checkpoint):
    return {name: tensor.numpy() for name, tensor in checkpoint.network.state_dict().items()}
