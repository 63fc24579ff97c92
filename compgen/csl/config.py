"""How CSL is run, as configurations say: `csl_scan`, `csl_cogs`, `csl_geoquery`, `csl_smcalflow` as published."""

import math
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from compgen.csl.induction import Options
from compgen.csl.sampling import Drawing
from compgen.errors import ConfigError

MOST_UNITS = 10
UNITS = 1  # unit rules on top of each other in parsing, where no training says how many


@dataclass(frozen=True)
class Training:
    """How probabilities are learned, with Adam.

    Attributes:
        states: S, latent states; one does not tell one slot from another.
        rate: of learning.
        steps: updates.
        unit_limit: unit rules on top of each other.
        starts: how often training begins anew from random tables; the most probable result is kept.
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
        if not (counts and 0 < self.rate < math.inf):
            raise ConfigError(
                f"training of a grammar: found {self}, expected states and starts >= 1, unit_limit <= {MOST_UNITS}, "
                "none below 0"
            )


class CslConfig(BaseModel):
    """How a grammar is induced, how its probabilities are learned, and how derivations are drawn.

    Without `training` all rules that fit somewhere are as probable. `seed_rules` and `targets` are what the command
    line calls them, and empty for none. `copying` lets the grammar copy unknown tokens when it parses.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    seed_rules: str = ""
    targets: str = ""
    copying: bool = False
    induction: Options = Options()
    training: Training | None = Training()
    drawing: Drawing = Drawing()
