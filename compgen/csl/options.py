"""How CSL is run, as configurations say: `csl_scan`, `csl_cogs`, `csl_geoquery`, `csl_smcalflow` as published."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from compgen.augmenters.base import Options
from compgen.csl.induction import Options as Induction
from compgen.csl.sampling import Drawing
from compgen.runtime.manifest import MOST_UNITS

UNITS = 1  # unit rules that parsing stacks, where no training says how many
FASTEST = 1000.0  # learning rate; one that is far larger overflows


class Training(BaseModel):
    """How probabilities are learned, with Adam."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    states: int = Field(
        64, ge=1, description="The number of latent states, S; one does not tell one slot from another."
    )
    rate: float = Field(0.05, gt=0, le=FASTEST, description="The learning rate.")
    steps: int = Field(2000, ge=0, description="The number of updates.")
    unit_limit: int = Field(UNITS, ge=0, le=MOST_UNITS, description="How many unit rules may be stacked.")
    starts: int = Field(
        1,
        ge=1,
        description="How often training begins anew from random tables; the result with the lowest loss is kept.",
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
