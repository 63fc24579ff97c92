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
        description="Compare these methods of `cgen augment`. By default, all that apply to DATA.",
        json_schema_extra={"metavar": "METHOD,..."},
    )
    predictor: str | None = Field(
        None,
        description="Train this predictor: seq2seq, transformer, or the folder of a pretrained model. By default, "
        "transformer for inflected words, otherwise seq2seq.",
        json_schema_extra={"metavar": "P"},
    )
    test: int | None = Field(
        None,
        ge=1,
        description="Test on N examples. By default, on the split test, or a fifth of all examples.",
        json_schema_extra={"metavar": "N"},
    )
    by: By | None = Field(
        None,
        description="Choose the test examples in this way. By default by template, or at random if targets "
        "rarely repeat.",
    )
    minutes: float = Field(
        60,
        gt=0,
        le=100_000,
        description="Finish in about this many minutes. Whatever does not fit is left out, and named.",
    )
    seeds: int = Field(
        3, ge=1, le=20, description="Train this many predictors of each system tested, or fewer if time is short."
    )
    jobs: int | None = Field(
        None, ge=1, le=4096, description="Number of processes, of one thread each. By default, one per core."
    )
    engine: Engine = Field(
        "processes", description="Run in processes here, or on a Ray cluster whose machines share DIR."
    )

    @field_validator("methods", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        """Take one string, with commas between names, as the command line does."""
        return (value,) if isinstance(value, str) else value
