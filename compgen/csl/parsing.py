"""Inference: the target of the most probable derivation of a source (Qiu et al. 2022, section 3.1.5)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compgen.csl.charts import Chart, Open, Parser, TooManyStepsError
from compgen.csl.rules import COPIED, FIRST, UNKNOWN, Alphabet, Grammar, Rule, is_reserved
from compgen.csl.targets import WHOLE, TargetGrammar
from compgen.csl.weights import slots
from compgen.data.examples import Dataset
from compgen.errors import DataError
from compgen.runtime.manifest import LONGEST_SIDE

_COPY = Rule(COPIED, COPIED)
_ALIKE = 1e-9  # scores that differ by no more are equally good: by that much they depend on the order of sums
# Parts of a source that are looked at, ten to twenty seconds; a long part counts for more. With a rule whose source is
# NT_1 NT_2, 160 tokens have 1.4 million.
_STEPS = 2_000_000

Best = dict[Rule, tuple[float, str]]  # by the rule on top, the best score of what is below it, and the target


@dataclass(frozen=True)
class Accuracy:
    """How many of `examples` a grammar gives a target (`covered`), and how many the right one."""

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
    """Finds the best derivation of a source, by the Viterbi algorithm."""

    def __init__(
        self,
        grammar: Grammar,
        log_probs: NDArray[np.float64],
        unit_limit: int = 1,
        targets: TargetGrammar | None = None,
        copying: bool = False,
    ) -> None:
        """Prepare a parser.

        Args:
            grammar: its rules.
            log_probs: log p(rule | slot), (slots, rules).
            unit_limit: how many unit rules may be stacked.
            targets: a grammar of well-formed targets. Where the best target is not well formed, there is none, as in
                the reference.
            copying: whether tokens that no rule has in its source may be copied. In each slot, a copy is as probable
                as the average rule that copies a token, x -> x. (The paper names missing copies as the main limit on
                SMCalFlow.)
        """
        self.alphabet, self.parser = grammar.alphabet, Parser(grammar.rules, unit_limit)
        self.first = dict(zip(grammar.rules, slots(grammar), strict=True))
        self.number = {rule: number for number, rule in enumerate(grammar.rules)}
        identical = [len(rule.source) == 1 and rule.source == rule.target for rule in grammar.rules]
        self.copying = copying and any(identical)
        if self.copying:
            with np.errstate(divide="ignore"):
                copied = np.log(np.exp(log_probs[:, identical]).mean(axis=1, keepdims=True))
            log_probs = np.concatenate([log_probs, copied], axis=1)  # (slots, rules + 1)
            self.number[_COPY] = len(grammar.rules)
        self.log_probs: list[list[float]] = log_probs.tolist()
        self._read = {letter for rule in grammar.rules for letter in rule.source}
        self.checker = None
        if targets is not None:
            own = {symbol for rule in targets.rules for symbol in rule.symbols if not is_reserved(symbol)}
            self._checked = Alphabet({*grammar.alphabet.tokens, *own})  # a copy may be a token of a target rule
            self.checker = targets.checker(self._checked)

    def parse(self, source: Sequence[str]) -> list[str] | None:
        """Return the target of the best derivation, or None; the first rule decides between equally good ones.

        Derivations whose target has more than `LONGEST_SIDE` tokens do not count: with a rule such as x twice -> x x, a
        target's length doubles with each token of the source. There is none either if finding it takes more than
        `_STEPS` steps, or its check by the target grammar more than `WHOLE`.
        """
        letters = self.alphabet.encode(source)
        copied: dict[str, str] = {}  # the letters of tokens that are copied
        if self.copying:
            unread = {token: letter for token, letter in zip(source, letters, strict=True) if letter not in self._read}
            free = FIRST + len(self.alphabet.tokens)
            for token, letter in unread.items():
                copied[token] = letter if letter != UNKNOWN else chr(free + len(copied))
            letters = "".join([copied.get(token, letter) for token, letter in zip(source, letters, strict=True)])
        try:
            best = self.best(_Best(self, letters, {*copied.values()}).whole(letters), 0)
        except TooManyStepsError:
            return None
        if best is None:
            return None
        tokens = {letter: token for token, letter in copied.items()}
        target = [tokens[letter] if letter in tokens else self.alphabet.decode(letter)[0] for letter in best[1]]
        if self.checker is None:
            return target
        # The target grammar does not tell apart tokens that neither it nor a rule has.
        found = self._checked.encode(target).replace(UNKNOWN, COPIED)
        return target if self.checker.derives_soon(found, WHOLE) else None

    def evaluate(self, dataset: Dataset) -> Accuracy:
        """Parse the sources of a dataset and compare targets.

        Raises:
            DataError: the dataset is empty.
        """
        if not len(dataset):
            raise DataError("found no examples, expected some to parse")
        found = [(self.parse(source), target) for source, target in dataset.pairs()]
        covered = sum(parsed is not None for parsed, _ in found)
        return Accuracy(len(found), covered, sum(parsed == target for parsed, target in found))

    def best(self, cell: Best, slot: int) -> tuple[float, str] | None:
        """Return the score and the target of the best derivation in a cell that fills a slot, None of an empty one."""
        weights, best = self.log_probs[slot], None
        for number, (score, target) in sorted((self.number[rule], below) for rule, below in cell.items()):
            if best is None or weights[number] + score > best[0] + _ALIKE:
                best = weights[number] + score, target
        return best


class _Best(Chart[Best]):
    """For each rule, its best derivation of a span.

    That is enough: the score of a rule depends on what is below it only by the rules directly below.
    """

    def __init__(self, viterbi: ViterbiParser, source: str, copied: set[str]) -> None:
        super().__init__(viterbi.parser.unit_limit, _STEPS)
        self._viterbi, self._parser, self._copied = viterbi, viterbi.parser, copied
        self._open = self._parser.fitting(source)

    def _base(self, span: str) -> Best:
        found: Best = {Rule(span, target): (0.0, target) for target in self._parser.closed.get(span, ())}
        if span in self._copied:
            found[_COPY] = (0.0, span)
        for one in self._open:
            for cells in one.pattern.cuts(span, self._part):
                self._offer(found, one, cells)
        return found

    def _part(self, span: str) -> Best:
        """A cell, which is a step."""
        self.take(1)
        return self.cell(span)

    def _with_units(self, base: Best, below: Best) -> Best:
        found = dict(base)
        for one in self._parser.units:
            self._offer(found, one, (below,))
        return found

    def _offer(self, found: Best, one: Open, cells: Sequence[Best]) -> None:
        """Keep a rule's derivation over the best of each cell, if it is better than the one before."""
        first = self._viterbi.first[one.rule]
        below = [part for number, cell in enumerate(cells) if (part := self._viterbi.best(cell, first + number))]
        score = sum(part[0] for part in below)
        if one.rule in found and score <= found[one.rule][0] + _ALIKE:
            return
        target, parts = one.rule.target, [part[1] for part in below]
        # chr(k) is NT_k, which part k stands for, as often as it occurs.
        longer = sum((len(part) - 1) * target.count(chr(number)) for number, part in enumerate(parts, 1))
        if len(target) + longer <= LONGEST_SIDE:
            found[one.rule] = (score, one.target.format(*parts))
