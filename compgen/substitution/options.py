"""The options of substitution: how examples are taken apart, what is put together, and what is left out."""

from typing import Self

from pydantic import Field, model_validator

from compgen.augmenters.base import Options
from compgen.csl.induction import Options as Induction
from compgen.substitution.pieces import Chains, Classes


class SubstituteOptions(Options):
    """How examples are taken apart, and what is put together."""

    classes: Classes | None = Field(
        None,
        description="Exchange pieces that have the same predicate (the token before the bracket around them, or its "
        "label), first target token, slot in the rule above, or types of first and last source word; or any (one). By "
        "default, whichever makes most templates of held-out examples.",
    )
    chains: Chains = Field(
        "no", description="Also exchange parts that have a hole; or only insert them, so that samples nest deeper."
    )
    span: int | None = Field(
        None, ge=1, description="Exchange pieces of at most this many source tokens. By default, no limit."
    )
    rounds: int = Field(1, ge=1, le=20, description="Make at most this many exchanges in a sample.")
    longest: int = Field(1000, ge=1, description="Leave out samples with more tokens than this on either side.")
    seen_heads: bool = Field(
        False, description="Leave out targets that nest a predicate directly in one that never contains it in DATA."
    )
    bigrams: int | None = Field(
        None,
        ge=0,
        description="Leave out sources with more than K pairs of adjacent tokens that DATA lacks.",
        json_schema_extra={"metavar": "K"},
    )
    agreement: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Leave out classes in which too few exchanges agree with DATA: less than this share, by two "
        "standard errors. 0 keeps all and tries no second grammar.",
    )
    grammar: str | None = Field(
        None,
        description="Use this grammar instead of inducing one: one 'source ### target' per line.",
        json_schema_extra={"metavar": "FILE", "reads": True},
    )
    spans: str | None = Field(
        None,
        description="Exchange arguments of predicates as SUBS does, by the span trees in this column of DATA.",
        json_schema_extra={"metavar": "COLUMN"},
    )
    lexicon: str | None = Field(
        None,
        description="Take the types of words from this lexicon (see `cgen augment lexsym`) instead of finding them.",
        json_schema_extra={"metavar": "FILE", "reads": True},
    )
    seed_rules: str = Field(
        "auto", description="Start induction from these rules; see `augment csl`.", json_schema_extra={"reads": True}
    )
    targets: str = Field(
        "", description="Allow only targets that this grammar derives; see `augment csl`.",
        json_schema_extra={"reads": True},
    )  # fmt: skip
    induction: Induction = Induction()

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        given = self.model_dump(exclude={"spans", "seed_rules", "targets", "induction"}, exclude_defaults=True)
        if self.spans is not None and given:
            raise ValueError(f"--spans exchanges once, as published: leave out --{next(iter(given)).replace('_', '-')}")
        instead = next((name for name in ("spans", "grammar") if getattr(self, name) is not None), None)
        if instead is not None and (self.seed_rules, self.targets) != ("auto", ""):
            unused = "targets" if self.targets else "seed-rules"
            raise ValueError(f"--{unused} is for a grammar that is induced: leave it out, or --{instead}")
        if self.lexicon is not None and self.classes not in (None, "types"):
            raise ValueError(f"--lexicon has types of words: leave it out, or --classes {self.classes}")
        return self
