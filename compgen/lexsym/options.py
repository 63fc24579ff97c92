"""The options of LexSym: which words are exchanged, and how."""

from typing import Literal, Self

from pydantic import Field, model_validator

from compgen.augmenters.base import Options
from compgen.lexsym.lexicon import Aligner


class LexsymOptions(Options):
    """Which words are exchanged, and how."""

    lexicon: str | None = Field(
        None,
        description="Use this lexicon instead of finding one: type, word and symbols, separated by tabs. It may have "
        "words that DATA lacks.",
        json_schema_extra={"metavar": "FILE", "reads": True},
    )
    write_lexicon: str | None = Field(
        None,
        description="Write the lexicon here, for you to read and correct.",
        json_schema_extra={"metavar": "FILE", "running": True, "writes": True},
    )
    aligner: Aligner = Field(
        "model1", description="Align words with symbols by IBM Model 1 in both directions, by occurrence in the same "
        "examples, or as published for SCAN."
    )  # fmt: skip
    mode: Literal["pairs", "paper", "reference"] = Field(
        "pairs",
        description="Find types from contexts in source and target (pairs), or in sources alone as in the paper "
        "(without its tagger) or its program. The last two exchange two words at a time.",
    )
    move: Literal["permute", "swap", "substitute"] | None = Field(
        None,
        description="Permute all words of an example that have a type (default with --mode pairs), swap two (default "
        "with other modes), or replace one.",
    )
    links: float = Field(
        0.01, ge=0, le=1, description="Leave out symbols aligned with a word in less than this share of its examples."
    )
    agreement: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Leave out types whose exchanges agree with DATA in less than this share of the cases where DATA "
        "has both examples.",
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = self.model_dump(exclude_defaults=True)
        if self.mode != "pairs" and given.keys() & {"lexicon", "write_lexicon"}:
            raise ValueError("a file of a lexicon has types, which --mode pairs alone finds")
        if self.mode != "pairs" and "agreement" in given:
            raise ValueError("--agreement is of types, which --mode pairs alone finds")
        if self.mode != "pairs" and self.move == "permute":
            raise ValueError(f"--mode {self.mode} exchanges two words at a time: leave out --move permute")
        found = next((name for name in ("aligner", "links") if name in given), None)
        if self.lexicon is not None and found:
            raise ValueError(f"--{found} is for a lexicon that is found: leave it out, or --lexicon")
        return self
