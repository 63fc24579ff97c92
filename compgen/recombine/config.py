"""The configuration of a generator: its network, its neighborhoods, its training and how it is sampled."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from compgen.models.config import LONGEST, MOST, NetworkConfig
from compgen.recombine.compatible import LengthBound
from compgen.recombine.neighborhoods import NeighborhoodConfig
from compgen.runtime.backend import warm
from compgen.training.config import Configuration, with_memories

Share = Annotated[float, Field(ge=0, le=1)]
Warmth = Annotated[float, AfterValidator(warm)]


class SamplingConfig(BaseModel):
    """How a generator is sampled unless the caller says otherwise."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    length_bound: LengthBound = Field(
        "mean", description="prototypes are no longer than this statistic of those in training (mean: reference)"
    )
    temperature: tuple[Warmth, Warmth] = Field(
        (0.4, 0.0), description="of the source half and of the target half; 0 is greedy"
    )


class SwapConfig(BaseModel):
    """Random permutations of token types in training rows, so that the network copies names; not in the paper.

    On a split such as *around right*, every training row that shows the held-out construction shows it with *left*:
    in both prototypes and in the answer. Nothing tells the network which prototype to copy the direction from. With
    swaps, some rows have their token types permuted:

    - `rows`: in the example and its first prototype, by the same permutation: all target types, and those source
      types that are `interchangeable`. The network can then neither recite the answer nor copy names from the second
      prototype, whose names differ. Rows whose first prototype lacks a target type of the example are left alone.
    - `seconds`: in the second and further prototypes, except the types that the example has and the first prototype
      lacks, which can only be copied from there. The network learns to take names from the first prototype, and from
      the others only what the first lacks.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Share = Field(
        0.0, description="probability that in a row's example and first prototype types change places, all that may"
    )
    seconds: tuple[Share, Share] = Field(
        (0.0, 0.0), description="probability that a source type, a target type changes places in further prototypes"
    )

    @property
    def used(self) -> bool:
        """Whether anything changes places."""
        return bool(self.rows or any(self.seconds))


NO_SWAPS = SwapConfig()


class RecombineConfig(Configuration):
    """A generator with n prototypes: recomb0 (learned augmentation), recomb1, recomb2 and more."""

    network: NetworkConfig
    prototypes: int = Field(2, ge=0, le=8)
    neighborhood: NeighborhoodConfig = NeighborhoodConfig()
    sampling: SamplingConfig = SamplingConfig()
    held_out_by: Literal["example", "row"] = Field(
        "example",
        description="what is held out to watch training: whole examples, or neighborhood rows (reference), whose "
        "examples training then sees in other rows",
    )
    deduplicate: bool = Field(
        True, description="train on distinct examples (reference), else on each as often as the data have it"
    )
    unknown_below: int = Field(
        0,
        ge=0,
        le=MOST,
        description="tokens that fewer distinct examples hold are embedded as <unk>, and told apart by copying alone; "
        "not in the paper",
    )
    swap: SwapConfig = NO_SWAPS
    max_tokens: int | None = Field(
        None, ge=3, le=LONGEST, description="cut sequences to so many tokens (45 in the reference)"
    )

    @model_validator(mode="before")
    @classmethod
    def _memories_are_prototypes(cls, values: dict[str, Any]) -> dict[str, Any]:
        return with_memories(values, values.get("prototypes", 2))

    @model_validator(mode="after")
    def _swaps_need_seconds(self) -> "RecombineConfig":
        if self.prototypes < 2 and self.swap.used:
            raise ValueError("swap needs two prototypes or more: set swap.rows to 0 and swap.seconds to [0, 0]")
        return self
