"""What training configurations hold: updates, held-out data, and how original and augmented examples are mixed."""

from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from compgen.models.config import LONGEST, MOST, NetworkConfig, TransformerNetwork

MOST_AUGMENTED = 0.999  # of an epoch, which has each original once: a thousand augmented examples for each


class OptimisationConfig(BaseModel):
    """How a network's weights are found: by Adam, as in the paper; by Adafactor, where they are pretrained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(8, ge=1, le=MOST, description="Stop after this many passes over the training data.")
    steps: int | None = Field(None, ge=1, le=MOST, description="Stop after this many updates, whatever `epochs` says.")
    batch: int = Field(32, ge=1, le=MOST, description="Number of examples in an update.")
    optimiser: Literal["adam", "adafactor"] = Field(
        "adam", description="adam, or adafactor, with which T5 was trained."
    )
    learning_rate: float = Field(0.002, gt=0, allow_inf_nan=False, description="The rate after warmup.")
    warmup: int = Field(0, ge=0, le=MOST, description="Number of updates in which the rate rises from 0.")
    schedule: Literal["plateau", "linear", "constant"] = Field(
        "plateau",
        description="How the rate changes. plateau: shrink when the held-out loss stalls (as in the reference); "
        "linear: fall to 5%; constant: stay.",
    )
    patience: int = Field(
        4, ge=0, le=MOST, description="plateau: epochs without improvement before the rate shrinks; 0 means 1, too."
    )
    tolerance: float = Field(
        0.0025, ge=0, description="plateau: the least gain in held-out score that counts as improvement."
    )
    decay: float = Field(0.5, gt=0, lt=1, description="plateau: multiply the rate by this factor.")
    clip: float | None = Field(1.0, gt=0, description="Clip gradients to this norm; inf for no clipping.")
    keep: Literal["best", "last"] = Field(
        "best", description="Keep the weights with the best held-out score, or the last ones."
    )
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="Precision of matrix products. bfloat16 is faster if the processor has instructions for it, but "
        "less exact.",
    )


class Configuration(BaseModel):
    """What every kind of training has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimisation: OptimisationConfig = OptimisationConfig()
    held_out: float = Field(
        0.1,
        ge=0,
        lt=1,
        description="Hold out this share of the training data to monitor training; 0 for none.",
        json_schema_extra={"shown": "as --config says"},  # `auto` finds another
    )


class PredictorConfig(Configuration):
    """A predictor of targets from sources."""

    p_aug: float | None = Field(
        None,
        ge=0,
        le=MOST_AUGMENTED,
        description="Probability that an example is drawn from the augmented data. If not set, both are joined.",
    )
    held_out_augmented: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="Also hold out this share of the augmented pairs: like the test, they ask for what the training "
        "data lack.",
    )
    deduplicate: bool = Field(True, description="Train on distinct original pairs, as the reference does.")
    max_length: int | None = Field(
        None,
        ge=2,
        le=LONGEST,
        description="Decode at most this many tokens. If not set, twice the longest target seen.",
    )


class PretrainedConfig(PredictorConfig):
    """A pretrained encoder-decoder, fine-tuned; defaults as for T5 in Qiu et al. (2022)."""

    p_aug: float | None = Field(
        0.5,
        ge=0,
        le=MOST_AUGMENTED,
        description="Probability that an example is drawn from the augmented data, if there is any.",
    )
    deduplicate: bool = Field(False, description="Train on distinct original pairs.")
    max_length: int = Field(
        256, ge=2, le=LONGEST, description="Largest number of pieces in a target, the end included."
    )
    source_length: int = Field(
        512, ge=2, le=LONGEST, description="Largest number of pieces in a source, prefix and end included."
    )
    prefix: str = Field("semanticparse: ", description="Text put before each source.")


class NetworkPredictorConfig(PredictorConfig):
    """A predictor whose network is trained from scratch."""

    architecture: ClassVar[str]  # its tag in `trained.architectures`
    network: Any


class TransformerConfig(NetworkPredictorConfig):
    """A Transformer."""

    architecture: ClassVar[str] = "transformer"

    network: TransformerNetwork = TransformerNetwork()


class Seq2SeqConfig(NetworkPredictorConfig):
    """A recurrent network that attends to its source."""

    architecture: ClassVar[str] = "recurrent"

    network: NetworkConfig

    @model_validator(mode="before")
    @classmethod
    def _one_memory(cls, values: dict[str, Any]) -> dict[str, Any]:
        return with_memories(values, 1)

    @model_validator(mode="after")
    def _no_latent(self) -> Self:
        if self.network.latent:
            raise ValueError("a predictor has no latent vector: it answers, it does not vary; set network.latent to 0")
        return self


def with_memories(values: dict[str, Any], memories: int) -> dict[str, Any]:
    """Raw configuration values with the network's number of memories filled in.

    Raises:
        ValueError: another number is given.
    """
    network = values.get("network")
    if isinstance(network, dict) and "memories" in network and network["memories"] != memories:
        raise ValueError(f"network.memories is {memories} here, found {network['memories']!r}: leave it out")
    return values | {"network": network | {"memories": memories}} if isinstance(network, dict) else values
