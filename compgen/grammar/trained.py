"""A grammar with the scores of its rules: what draws pairs and parses sources, and needs no torch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from compgen.errors import DataError
from compgen.grammar.parsing import ViterbiParser
from compgen.grammar.rules import Grammar
from compgen.grammar.sampling import Depth, Drawing, Sampler
from compgen.grammar.targets import TargetGrammar
from compgen.grammar.weights import Scores


@dataclass(frozen=True, eq=False)
class TrainedGrammar:
    """Rules, their scores, perhaps a grammar of well-formed targets, and how derivations are drawn.

    `unit_limit` is how many unit rules parsing puts on top of each other; `copying` lets it copy unknown tokens.
    """

    grammar: Grammar
    scores: Scores
    targets: TargetGrammar | None
    drawing: Drawing
    unit_limit: int
    copying: bool = False

    @classmethod
    def of(cls, rules: str, targets: str, scores: Mapping[str, Any], settings: Mapping[str, Any]) -> "TrainedGrammar":
        """From rules and target rules as text (no target rules are no target grammar), tables of scores, and settings.

        Raises:
            DataError: they are no such things, or do not fit together.
        """
        grammar = Grammar.parse(rules.splitlines())
        found = dict(settings)
        try:
            tables = Scores(**scores)
            tables.weights().check(grammar)
            heat, units, copying = found.pop("temperature")[0], found.pop("unit_limit"), found.pop("copying")
            depth = Depth(**{name: found.pop(name) for name in ("least", "most")})
            drawing = Drawing(depth, temperature=heat, **found)
        except (TypeError, KeyError, ValueError, IndexError) as error:
            raise DataError(f"scores or settings that are not this grammar's: {error}") from error
        known = TargetGrammar.parse(targets.splitlines()) if targets else None
        return cls(grammar, tables, known, drawing, units, copying)

    @property
    def target_rules(self) -> str:
        """The target grammar as text, empty if there is none."""
        return "" if self.targets is None else self.targets.text()

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
        """What draws pairs, at another temperature perhaps.

        Raises:
            ExhaustedError: no derivation ends in time.
            UserError: a temperature that is not above 0.
        """
        drawing = self.drawing if temperature is None else replace(self.drawing, temperature=temperature)
        arities = [rule.arity for rule in self.grammar.rules]
        weights = self.scores.weights(drawing.temperature, drawing.bias, drawing.biased, arities)
        return Sampler(self.grammar, drawing.depth, weights, self.targets, drawing.longest)

    def parser(self) -> ViterbiParser:
        """What finds the target of a source's best derivation."""
        return ViterbiParser(self.grammar, self.scores.log_probs(), self.unit_limit, self.targets, self.copying)
