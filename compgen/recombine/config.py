"""The configuration of a generator: its network, its neighborhoods, its training and how it is sampled."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    PrivateAttr,
    model_validator,
)

from compgen.configuration import merged, values_of
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
        "mean",
        description="Draw prototypes no longer than this statistic of those in training (mean in the reference).",
    )
    temperature: tuple[Warmth, Warmth] = Field(
        (0.4, 0.0), description="Temperatures of the source half and of the target half; 0 is greedy."
    )


class SwapConfig(BaseModel):
    """Random permutations of token types in training rows, so that the network copies names; not in the paper.

    On a split such as *around right*, all training rows that show the held-out construction show it with *left*, in
    both prototypes and in the answer. Nothing tells the network which prototype to copy the direction from. Swaps
    permute the token types of some rows:

    - `rows`: in the example and its first prototype, by one permutation: all target types, and the source types that
      are `interchangeable`. The network can then neither recite the answer nor copy names from the second prototype,
      whose names differ. Rows whose first prototype lacks a target type of the example stay as they are.
    - `seconds`: in the second and further prototypes, except the types that the example has and the first prototype
      lacks, which can only be copied from there. The network learns to copy all other names from the first prototype.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    rows: Share = Field(0.0, description="Probability that types are permuted in a row's example and first prototype.")
    seconds: tuple[Share, Share] = Field(
        (0.0, 0.0), description="Probabilities that a source type and a target type are permuted in further prototypes."
    )

    @property
    def used(self) -> bool:
        """Whether any type is permuted."""
        return bool(self.rows or any(self.seconds))


NO_SWAPS = SwapConfig()
PAIRS = "recombine_small"  # the configuration that `auto` is for pairs, but for what is found


class RecombineConfig(Configuration):
    """A generator with n prototypes: recomb0 (learned augmentation), recomb1, recomb2 and more."""

    network: NetworkConfig
    prototypes: int = Field(2, ge=0, le=8, description="Prototypes per sample.")
    neighborhood: NeighborhoodConfig = NeighborhoodConfig()
    sampling: SamplingConfig = SamplingConfig()
    held_out_by: Literal["example", "row"] = Field(
        "example",
        description="Hold out whole examples, or neighborhood rows (as the reference does), whose examples also occur "
        "in training rows.",
        json_schema_extra={"hidden": True},  # for comparisons with the reference
    )
    deduplicate: bool = Field(True, description="Train on distinct examples, as the reference does.")
    unknown_below: int = Field(
        0,
        ge=0,
        le=MOST,
        description="Embed tokens of fewer distinct examples as <unk>, so that only copying tells them apart. Not in "
        "the paper.",
        json_schema_extra={"shown": "as --config says"},  # `auto` finds another
    )
    swap: SwapConfig = NO_SWAPS
    max_tokens: int | None = Field(
        None, ge=3, le=LONGEST, description="Cut sequences to this many tokens (45 in the reference)."
    )

    auto: bool = Field(
        False,
        description="Find settings that are not given from the training data.",
        exclude=True,
        json_schema_extra={"hidden": True},  # --config auto says it
    )
    minutes: float | None = Field(
        None,
        gt=0,
        le=MOST,
        description="With --config auto: train for about this long here, but for at least 500 updates.",
        exclude=True,
    )
    timed: bool = Field(
        True,
        description="With minutes: time the first updates, and make fewer if they are slow; otherwise, the data and "
        "the minutes alone decide their number.",
        exclude=True,
        json_schema_extra={"hidden": True},  # for comparisons
    )
    _set: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def values_set(self) -> dict[str, Any]:
        """The settings that are not to be found, if `auto`, as nested tables."""
        return {name: value for name, value in self._set.items() if name in RecombineConfig.model_fields}

    @model_validator(mode="wrap")
    @classmethod
    def _completed(cls, values: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """With `auto`, check what is set together with the settings that stand in for those to be found."""
        if not (isinstance(values, dict) and values.get("auto")):
            return handler(values)
        made = handler(merged(values_of(PAIRS), values))
        made._set = {
            name: value.model_dump(exclude_unset=True) if isinstance(value, BaseModel) else value
            for name, value in values.items()
            if name not in ("auto", "minutes", "timed")
        }
        return made

    @model_validator(mode="before")
    @classmethod
    def _memories_are_prototypes(cls, values: dict[str, Any]) -> dict[str, Any]:
        return with_memories(values, values.get("prototypes", 2))

    @model_validator(mode="after")
    def _minutes_are_for_auto(self) -> Self:
        if self.minutes is not None and not self.auto:
            raise ValueError("minutes are for the configuration auto: set optimisation.steps")
        return self

    @model_validator(mode="after")
    def _swaps_need_seconds(self) -> "RecombineConfig":
        if self.prototypes < 2 and self.swap.used:
            raise ValueError("swap needs two prototypes or more: set swap.rows to 0 and swap.seconds to [0, 0]")
        return self
