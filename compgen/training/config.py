"""What training configurations hold: updates, held-out data, and how original and augmented examples are mixed."""

from typing import Any, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from compgen.models.config import LONGEST, MOST, NetworkConfig, TransformerNetwork

MOST_AUGMENTED = 0.999  # of an epoch, which has each original once: a thousand augmented examples for each


class OptimisationConfig(BaseModel):
    """How a network's weights are found: by Adam, as in the paper; by Adafactor, where they are pretrained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    epochs: int = Field(8, ge=1, le=MOST)
    steps: int | None = Field(None, ge=1, le=MOST, description="stop after so many updates, whatever `epochs` says")
    batch: int = Field(32, ge=1, le=MOST)
    optimiser: Literal["adam", "adafactor"] = "adam"
    learning_rate: float = Field(0.002, gt=0, allow_inf_nan=False)
    warmup: int = Field(0, ge=0, le=MOST, description="updates in which the rate rises from 0")
    schedule: Literal["plateau", "linear", "constant"] = Field(
        "plateau",
        description="plateau: shrink the rate when held-out loss stalls (reference); linear: fall to 5% of it; or "
        "constant",
    )
    patience: int = Field(
        4, ge=0, le=MOST, description="plateau: epochs without improvement before the rate shrinks; 0 means 1, too"
    )
    tolerance: float = Field(0.0025, ge=0, description="plateau: what counts as improvement, in held-out score")
    decay: float = Field(0.5, gt=0, lt=1, description="plateau: factor of the rate")
    clip: float | None = Field(1.0, gt=0, description="largest gradient norm; inf for none")
    keep: Literal["best", "last"] = Field("best", description="weights kept: best held-out score, or the last")
    precision: Literal["float32", "bfloat16"] = Field(
        "float32",
        description="of products: bfloat16 is faster where the processor has instructions for it, and less exact",
    )


class Configuration(BaseModel):
    """What every kind of training has."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimisation: OptimisationConfig = OptimisationConfig()
    held_out: float = Field(
        0.1, ge=0, lt=1, description="share of training data held out to watch training; 0 for none"
    )


class PredictorConfig(Configuration):
    """A predictor of targets from sources."""

    p_aug: float | None = Field(
        None,
        ge=0,
        le=MOST_AUGMENTED,
        description="chance that an example is drawn from the augmented data; unset: union",
    )
    held_out_augmented: float = Field(
        0.0,
        ge=0,
        lt=1,
        description="share of augmented pairs held out, too: they ask for what training data lack, as the test will",
    )
    deduplicate: bool = Field(True, description="train on distinct original pairs (reference)")
    max_length: int | None = Field(
        None, ge=2, le=LONGEST, description="most tokens decoded; unset: twice the longest target seen"
    )


class PretrainedConfig(PredictorConfig):
    """A pretrained encoder-decoder, fine-tuned; defaults as for T5 in Qiu et al. (2022)."""

    p_aug: float | None = Field(
        0.5, ge=0, le=MOST_AUGMENTED, description="chance that an example is drawn from augmented data, if there is any"
    )
    deduplicate: bool = Field(False, description="train on distinct original pairs")
    max_length: int = Field(256, ge=2, le=LONGEST, description="most pieces of a target, its end included")
    source_length: int = Field(512, ge=2, le=LONGEST, description="most pieces of a source, prefix and end included")
    prefix: str = Field("semanticparse: ", description="stands before each source")


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
