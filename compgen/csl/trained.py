"""A grammar with the scores of its rules: what draws pairs and parses sources, and needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pydantic import ValidationError

from compgen.csl.parsing import ViterbiParser
from compgen.csl.rules import Grammar
from compgen.csl.sampling import Depth, Drawing, Sampler
from compgen.csl.targets import TargetGrammar
from compgen.csl.weights import Scores
from compgen.errors import DataError, UserError
from compgen.runtime.manifest import GrammarSettings, first_problem


@dataclass(frozen=True, eq=False)
class TrainedGrammar:
    """Rules, their scores, perhaps a grammar of well-formed targets, and how derivations are drawn.

    `unit_limit` is how many unit rules parsing may stack; `copying` lets it copy tokens that no rule reads.
    """

    grammar: Grammar
    scores: Scores
    targets: TargetGrammar | None
    drawing: Drawing
    unit_limit: int
    copying: bool = False

    @classmethod
    def of(cls, rules: str, targets: str, scores: Mapping[str, Any], settings: Mapping[str, Any]) -> "TrainedGrammar":
        """Build it from rules and target rules as text (empty: no target grammar), tables of scores, and settings.

        Raises:
            DataError: they are no such things, or do not fit together.
        """
        grammar = Grammar.parse(rules.splitlines())
        if not grammar.rules:
            raise DataError("found a grammar without rules, expected some to draw from")
        try:
            found = GrammarSettings.model_validate(settings)
            tables = _tables(grammar, scores)
            tables.weights()  # of finite scores that are far apart, too
            drawing = Drawing(
                depth=Depth(least=found.least, most=found.most),
                longest=found.longest,
                temperature=found.temperature[0],
                bias=found.bias,
                biased=found.biased,
            )
        except ValidationError as error:
            raise DataError(f"settings of a grammar: {first_problem(error)}") from None
        except (TypeError, ValueError, IndexError, UserError) as error:
            raise DataError(f"scores or settings that are not this grammar's: {error}") from error
        known = TargetGrammar.parse(targets.splitlines()) if targets else None
        return cls(grammar, tables, known, drawing, found.unit_limit, found.copying)

    @property
    def target_rules(self) -> str:
        """The target grammar as text, empty if there is none."""
        return "" if self.targets is None else self.targets.text()

    @property
    def max_length(self) -> int:
        """The most tokens of a sample: two sides, the separator and the end symbol."""
        return 2 * self.drawing.longest + 2

    @property
    def settings(self) -> dict[str, Any]:
        """How pairs are drawn and sources parsed, for JSON; with two temperatures, as all generators, here the same."""
        drawing = self.drawing
        return {
            "temperature": [drawing.temperature, drawing.temperature],
            "least": drawing.depth.least,
            "most": drawing.depth.most,
            "longest": drawing.longest,
            "bias": drawing.bias,
            "biased": drawing.biased,
            "unit_limit": self.unit_limit,
            "copying": self.copying,
        }

    def sampler(self, temperature: float | None = None) -> Sampler:
        """Return what draws pairs, at its own temperature or another.

        Raises:
            ExhaustedError: no derivation ends within the depth.
            UserError: a temperature that is not above 0.
        """
        drawing = self.drawing if temperature is None else self.drawing.model_copy(update={"temperature": temperature})
        arities = [rule.arity for rule in self.grammar.rules]
        weights = self.scores.weights(drawing.temperature, drawing.bias, drawing.biased, arities)
        return Sampler(self.grammar, drawing.depth, weights, self.targets, drawing.longest)

    def parser(self) -> ViterbiParser:
        """Return what finds the target of a source's best derivation."""
        return ViterbiParser(self.grammar, self.scores.log_probs(), self.unit_limit, self.targets, self.copying)


def _tables(grammar: Grammar, scores: Mapping[str, Any]) -> Scores:
    """Return a grammar's scores; raise ValueError, in the C++ runner's words, for arrays that are no such tables."""
    if odd := sorted(set(scores) - {"slots", "rules"}):
        raise ValueError(f"has an array {odd[0]}, which is not expected here")
    if "rules" not in scores:
        raise ValueError("has no array rules")
    states = len(scores["rules"]) if scores["rules"].ndim else 0
    if not states:
        raise ValueError("found no latent states, expected one or more")
    slots, rules = grammar.shape
    for name, shape in {"slots": (slots, states), "rules": (states, rules)}.items():
        table = scores.get(name)
        if table is None or table.shape != shape or table.dtype != np.float64:
            raise ValueError(f"{name}: expected float64 of {' x '.join(map(str, shape))}")
        if not np.isfinite(table).all():
            raise ValueError(f"{name} has numbers that are not finite")
    return Scores(**scores)
