"""Golden draws: what a bundle's makers got from it, so that whoever receives it can see that it gives the same there.

`golden.json` holds draws of a generator by address, or a predictor's answers to made-up sources. Draws that lie so
near to the boundary between two tokens that another processor's rounding could move them are not among them.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Id = Annotated[int, Field(ge=0, lt=2**31)]
Address = Annotated[int, Field(ge=0, le=2**61)]


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class GoldenDraw(_Strict):
    """A draw: its address, prototypes (rows of the pool), and what was written, the end symbol left out.

    `log_prob` is that of all tokens and the end symbol, before temperature.
    """

    index: Address
    prototypes: list[Id]
    tokens: list[Id]
    finished: bool = Field(description="false when the length limit came first")
    log_prob: float


class GoldenStream(_Strict):
    """Draws of one seed at one temperature, in ascending order of address."""

    seed: int = Field(ge=0, lt=2**64)
    temperature: list[float] = Field(min_length=2, max_length=2)
    samples: list[GoldenDraw]


class GoldenAnswer(_Strict):
    """What greedy decoding answers to a source, both without end symbols."""

    source: list[Id]
    target: list[Id]
    finished: bool
    log_prob: float


class Golden(_Strict):
    """`golden.json`: streams of a generator, or answers of a predictor."""

    streams: list[GoldenStream] = []
    answers: list[GoldenAnswer] = []
