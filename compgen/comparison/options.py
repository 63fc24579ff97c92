"""The options of a comparison, for the command line and for Python."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

By = Literal["template", "length", "tmcd", "random"]
Engine = Literal["processes", "ray"]
RUNNING = {"minutes", "jobs", "engine"}  # options that may change when a comparison is resumed


class CompareOptions(BaseModel):
    """The options of a comparison."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    methods: tuple[str, ...] = Field(
        (),
        description="Augmenters to compare; by default all that apply.",
        json_schema_extra={"metavar": "AUGMENTER,..."},
    )
    predictor: str | None = Field(
        None,
        description="seq2seq, transformer, or the folder of a pretrained model; by default transformer for inflected "
        "words, else seq2seq.",
        json_schema_extra={"metavar": "P"},
    )
    test: int | None = Field(
        None,
        ge=1,
        description="Examples to test on; by default the split test, or a fifth of all.",
        json_schema_extra={"metavar": "N"},
    )
    by: By | None = Field(
        None, description="How to choose them; by default by template, or at random where targets rarely repeat."
    )
    minutes: float = Field(60, gt=0, le=100_000, description="Time allowed; what does not fit is left out, and named.")
    seeds: int = Field(3, ge=1, le=20, description="Predictors of each system tested, or fewer, as time allows.")
    jobs: int | None = Field(
        None, ge=1, le=4096, description="Processes, of one thread each; by default one for each core."
    )
    engine: Engine = Field("processes", description="ray: over the machines of a Ray cluster that share DIR.")

    @field_validator("methods", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Take one string, with commas between names, as the command line does."""
        return (value,) if isinstance(value, str) else value
