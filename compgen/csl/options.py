"""How CSL is run, as configurations say: `csl_scan`, `csl_cogs`, `csl_geoquery`, `csl_smcalflow` as published."""

from dataclasses import dataclass
from typing import ClassVar, Self

from pydantic import ConfigDict, Field, field_validator, model_validator

from compgen.augmenters.base import Options
from compgen.csl.induction import Options as Induction
from compgen.csl.sampling import Drawing
from compgen.errors import ConfigError
from compgen.runtime.manifest import MOST_UNITS

UNITS = 1  # unit rules that parsing stacks, where no training says how many
FASTEST = 1000.0  # learning rate; one that is far larger overflows


@dataclass(frozen=True)
class Training:
    """How probabilities are learned, with Adam.

    Attributes:
        states: S, latent states; one does not tell one slot from another.
        rate: the learning rate.
        steps: updates.
        unit_limit: how many unit rules may be stacked.
        starts: how often training begins anew from random tables; the result with the lowest loss is kept.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    states: int = 64
    rate: float = 0.05
    steps: int = 2000
    unit_limit: int = UNITS
    starts: int = 1

    def __post_init__(self) -> None:
        """Raise ConfigError where a number is out of range."""
        counts = self.states >= 1 and self.starts >= 1 and self.steps >= 0 and 0 <= self.unit_limit <= MOST_UNITS
        if not (counts and 0 < self.rate <= FASTEST):
            raise ConfigError(
                f"training of a grammar: found {self}, expected states and starts >= 1, unit_limit <= {MOST_UNITS}, "
                f"a rate above 0 and <= {FASTEST:g}, none below 0"
            )


class CslOptions(Options):
    """How a grammar is induced, how its probabilities are learned, and how derivations are drawn."""

    seed_rules: str = Field(
        "",
        description="Start induction from these rules: matches (phrases that source and target share), names (the "
        "same, together with a function that only takes such phrases: texas, stateid ( texas )), companions (words "
        "that occur in the same examples), auto (names, or companions if little is shared), inflections (forms of "
        "target words, found by word alignment), smcalflow (phrases that its programs copy), a file with one 'source "
        "### target' per line, or none. By default, the configuration decides.",
        json_schema_extra={"metavar": "R", "reads": True},
    )
    targets: str = Field(
        "",
        description="Allow only targets that this grammar derives: geoquery or cogs (shipped), smcalflow (from the "
        "brackets in DATA), a file with one 'LHS => token ##NAME' per line, or none. By default, the configuration "
        "decides.",
        json_schema_extra={"metavar": "G", "reads": True},
    )
    uniform: bool = Field(
        False, description="Give all rules that fit in a place the same probability, instead of learning probabilities."
    )
    unlabelled: str | None = Field(
        None,
        description="Make samples more like these sources: parse them, and learn the probabilities again with the "
        "parses (hard EM). Any targets are ignored.",
        json_schema_extra={"metavar": "DATA", "reads": True},
    )
    rules: str | None = Field(
        None,
        description="Write the induced grammar here, one rule per line.",
        json_schema_extra={"metavar": "FILE", "running": True, "writes": True},
    )
    induction: Induction = Induction()
    training: Training | None = Training()
    drawing: Drawing = Drawing()

    @field_validator("seed_rules", "targets")
    @classmethod
    def _none(cls, value: str) -> str:
        return "" if value == "none" else value

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if self.uniform and self.unlabelled is not None:
            raise ValueError("--unlabelled is for learning probabilities: leave out --uniform")
        return self

    @property
    def learning(self) -> Training | None:
        """How probabilities are learned; None if they are not."""
        return None if self.uniform else self.training
