"""Parsing with a grammar whose rules have probabilities: the target of the best derivation of a source."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.csl.charts import Parser, milestones
from compgen.csl.rules import COPIED, FIRST, UNKNOWN, Grammar, Rule, template
from compgen.csl.targets import ROOT, TargetGrammar
from compgen.csl.weights import slots
from compgen.data.examples import Dataset
from compgen.errors import DataError

_COPY = Rule(COPIED, COPIED)

Best = dict[Rule, tuple[float, str]]  # by the rule on top: the best score below it, and the target


@dataclass(frozen=True)
class Accuracy:
    """How well a grammar parses `examples`: how many it gives a target (`covered`), and how many the right one."""

    examples: int
    covered: int
    right: int

    @property
    def coverage(self) -> float:
        """The share of examples that are given a target."""
        return self.covered / self.examples

    @property
    def accuracy(self) -> float:
        """The share of examples that are given the right one."""
        return self.right / self.examples

    @property
    def precision(self) -> float:
        """The share of given targets that are right."""
        return self.right / self.covered if self.covered else 0.0


class ViterbiParser:
    """The best derivation of sources, by the Viterbi algorithm (Qiu et al. 2022, section 3.1.3)."""

    def __init__(
        self,
        grammar: Grammar,
        log_probs: NDArray[np.float64],
        unit_limit: int = 1,
        targets: TargetGrammar | None = None,
        copying: bool = False,
    ) -> None:
        """A parser by log p(rule | slot), (slots, rules), as `model.learn` finds them.

        With `targets`, a target that is not well formed is none; the second best is not looked at, as in the reference.

        With `copying`, a token that the grammar does not know can be copied, and is as probable in a slot as rules that
        copy a token, x -> x, are there on average. (The paper names its want as what limits it most on SMCalFlow.)

        Raises:
            ValueError: the probabilities are of another grammar.
        """
        shape = 1 + sum(rule.arity for rule in grammar.rules), len(grammar.rules)
        if log_probs.shape != shape:
            raise ValueError(f"found log-probabilities of shape {log_probs.shape}, expected {shape}")
        self.grammar, self.parser = grammar, Parser(grammar.rules, unit_limit)
        self.number = {rule: number for number, rule in enumerate(grammar.rules)}
        self.first = dict(zip(grammar.rules, slots(grammar), strict=True))
        identical = [len(rule.source) == 1 and rule.source == rule.target for rule in grammar.rules]
        self.copying = copying and any(identical)
        if self.copying:
            with np.errstate(divide="ignore"):
                copied = np.log(np.exp(log_probs[:, identical]).mean(axis=1, keepdims=True))
            log_probs = np.concatenate([log_probs, copied], axis=1)
            self.number[_COPY] = len(grammar.rules)
        self.log_probs: list[list[float]] = log_probs.tolist()
        self.format = {rule: template(rule.target) for rule in grammar.rules}
        self.checker = None if targets is None else targets.checker(grammar.alphabet)

    def parse(self, source: tuple[str, ...] | list[str]) -> list[str] | None:
        """The target of the best derivation of a source; None if there is none. Of equal ones, the first rule's."""
        alphabet = self.grammar.alphabet
        copied: dict[str, str] = {}
        letters = alphabet.encode(source)
        if self.copying:  # unknown tokens get letters of their own
            for token, letter in zip(source, letters, strict=True):
                if letter == UNKNOWN:
                    copied.setdefault(token, chr(FIRST + len(alphabet.tokens) + len(copied)))
            letters = "".join([copied.get(token, letter) for token, letter in zip(source, letters, strict=True)])
        cells = _Cells(self, letters, copied.values())
        for part in milestones(letters):
            cells.cell(part, self.parser.unit_limit)
        target = self._best(cells.cell(letters, self.parser.unit_limit), 0)
        if target is None:
            return None
        tokens = {letter: token for token, letter in copied.items()}
        plain = target[1].translate({ord(letter): COPIED for letter in tokens})
        if self.checker is not None and (ROOT,) not in self.checker.signatures(plain):
            return None
        return [tokens[letter] if letter in tokens else alphabet.decode(letter)[0] for letter in target[1]]

    def evaluate(self, dataset: Dataset) -> Accuracy:
        """How well the examples of a dataset are parsed.

        Raises:
            DataError: there is none.
        """
        if not len(dataset):
            raise DataError("found no examples, expected some to parse")
        found = [(self.parse(source), target) for source, target in dataset.pairs()]
        covered = sum(parsed is not None for parsed, _ in found)
        return Accuracy(len(found), covered, sum(parsed == target for parsed, target in found))

    def _best(self, cell: Best, slot: int) -> tuple[float, str] | None:
        """The best of a cell to fill a slot, and its target."""
        weights = self.log_probs[slot]
        best = max(((weights[self.number[rule]] + score, rule) for rule, (score, _) in cell.items()),
                   key=lambda scored: (scored[0], -self.number[scored[1]]), default=None)  # fmt: skip
        return None if best is None else (best[0], cell[best[1]][1])


class _Cells:
    """For each span of a source, the best of what each rule derives of it.

    That is enough, as a score depends on what is below a rule by the rules on top of it alone.
    """

    def __init__(self, parser: ViterbiParser, source: str, copied: Collection[str]) -> None:
        self.best, self.parser, self.copied = parser, parser.parser, copied
        self.open = self.parser.fitting(source)
        self.cells: dict[tuple[str, int], Best] = {}

    def cell(self, span: str, level: int) -> Best:
        found = self.cells.get((span, level))
        if found is None:
            found = self.cells[span, level] = self._base(span) if level == 0 else self._with_units(span, level)
        return found

    def _base(self, span: str) -> Best:
        found: Best = {Rule(span, target): (0.0, target) for target in self.parser.closed.get(span, ())}
        if span in self.copied:
            found[_COPY] = (0.0, span)
        level = self.parser.unit_limit
        for rule, pattern, _ in self.open:
            for cells in pattern.cuts(span, lambda part: self.cell(part, level)):
                self._offer(found, rule, cells)
        return found

    def _with_units(self, span: str, level: int) -> Best:
        found = dict(self.cell(span, 0))
        under = self.cell(span, level - 1)
        if under:
            for rule in self.parser.units:
                self._offer(found, rule, (under,))
        return found

    def _offer(self, found: Best, rule: Rule, cells: tuple[Best, ...]) -> None:
        """Put a derivation in its place, if it is better than what is there."""
        first, below = self.best.first[rule], []
        for number, cell in enumerate(cells):
            part = self.best._best(cell, first + number)
            assert part is not None, "a cell that is cut out is not empty"
            below.append(part)
        score = sum(part[0] for part in below)
        if rule not in found or score > found[rule][0]:
            found[rule] = (score, self.best.format[rule].format(*(part[1] for part in below)))
