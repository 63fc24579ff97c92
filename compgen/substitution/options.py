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
        description="Pieces are exchanged for others of their class: the predicate above (the token before the bracket "
        "they are in), the first target token, the slot of the rule above, the types of the first and the last source "
        "word, or one for all. By default what gives most templates of held-out examples.",
    )
    chains: Chains = Field(
        "no", description="Exchange parts with a hole, too, or insert them alone: samples nest deeper."
    )
    span: int | None = Field(None, ge=1, description="The most source tokens of a piece; by default any number.")
    rounds: int = Field(1, ge=1, le=20, description="Exchanges in one sample, at most.")
    longest: int = Field(1000, ge=1, description="Leave out samples with more tokens on a side.")
    seen_heads: bool = Field(
        False, description="Leave out targets with a predicate directly under one that it never is under in DATA."
    )
    bigrams: int | None = Field(
        None,
        ge=0,
        description="Leave out sources with more than K pairs of neighbours that DATA lacks.",
        json_schema_extra={"metavar": "K"},
    )
    agreement: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Leave out classes whose exchanges, where they make another example's source, are right less often "
        "(by two standard errors); 0: keep all, and one grammar.",
    )
    grammar: str | None = Field(
        None,
        description="Use this grammar instead of inducing one, 'source ### target' a line.",
        json_schema_extra={"metavar": "FILE"},
    )
    spans: str | None = Field(
        None,
        description="A column of DATA with span trees, whose arguments of predicates are exchanged as SUBS does.",
        json_schema_extra={"metavar": "COLUMN"},
    )
    lexicon: str | None = Field(
        None,
        description="Types of words, from a lexicon of `cgen augment lexsym`, instead of finding them.",
        json_schema_extra={"metavar": "FILE"},
    )
    seed_rules: str = Field("auto", description="Rules to begin with, as for `augment csl`.")
    targets: str = Field("", description="A grammar of well-formed targets, as for `augment csl`.")
    induction: Induction = Induction()

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        ways = (
            "classes",
            "chains",
            "span",
            "rounds",
            "longest",
            "seen_heads",
            "bigrams",
            "agreement",
            "grammar",
            "lexicon",
        )
        given = [name for name in ways if getattr(self, name) != type(self).model_fields[name].default]
        if self.spans is not None and given:
            raise ValueError(f"--spans exchanges once, as published: leave out --{given[0].replace('_', '-')}")
        instead = next((name for name in ("spans", "grammar") if getattr(self, name) is not None), None)
        if instead is not None and (self.seed_rules, self.targets) != ("auto", ""):
            unused = "targets" if self.targets else "seed-rules"
            raise ValueError(f"--{unused} is for a grammar that is induced: leave it out, or --{instead}")
        if self.lexicon is not None and self.classes not in (None, "types"):
            raise ValueError(f"--lexicon has types of words: leave it out, or --classes {self.classes}")
        return self
