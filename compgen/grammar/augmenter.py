"""CSL behind the interface of all augmenters: `fit` induces a grammar and learns its probabilities, `sample` draws."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError
from compgen.grammar.induction import OPTIONS, Options, Step, induce
from compgen.grammar.rules import Grammar, examples
from compgen.grammar.sampling import DRAWINGS, Drawing
from compgen.grammar.targets import ROOT, TargetGrammar
from compgen.grammar.trained import TrainedGrammar
from compgen.grammar.weights import Scores

if TYPE_CHECKING:  # torch alone takes seconds
    from compgen.grammar.model import Training

UNITS = 1  # unit rules on top of each other in parsing, where no training says how many
KINDS = tuple(OPTIONS)  # the data sets for which settings were published


@dataclass(frozen=True)
class Settings:
    """How a grammar is induced, how its probabilities are learned, and how derivations are drawn.

    Without `training` all rules that fit somewhere are as probable.
    """

    options: Options
    drawing: Drawing
    training: "Training | None"

    @classmethod
    def of(cls, kind: str, learned: bool = True) -> "Settings":
        """Those published for a data set: one of KINDS.

        Raises:
            UserError: there are none of this name.
        """
        if kind not in KINDS:
            raise UserError(f"no settings {kind!r}: expected one of {', '.join(KINDS)}")
        training = None
        if learned:
            from compgen.grammar.model import TRAININGS

            training = TRAININGS[kind]
        return cls(OPTIONS[kind], DRAWINGS[kind], training)


class Csl:
    """A quasi-synchronous grammar, induced, and sampled (Qiu et al. 2022).

    Attributes, after `fit`:
        grammar: its rules.
        steps: of the induction.
        trained: the grammar with the scores of its rules, all alike if they were not learned.
    """

    def __init__(self, settings: Settings, seeds: Grammar | None = None, targets: TargetGrammar | None = None) -> None:
        """An augmenter with seed rules, perhaps, and a grammar of well-formed targets, perhaps."""
        self.settings, self.seeds, self.targets = settings, seeds, targets
        self.grammar: Grammar | None = None
        self.steps: list[Step] = []
        self.trained: TrainedGrammar | None = None

    def fit(self, dataset: Dataset, seed: int = 0) -> "Csl":
        """`induce`, and `learn` with a seed, which say what they raise."""
        self.induce(dataset)
        self.learn(dataset, seed)
        return self

    def induce(self, dataset: Dataset, watch: Callable[[Step], None] = lambda _: None) -> Grammar:
        """Induce a grammar from all examples of a dataset; `watch` hears of each step.

        Raises:
            DataError: an example has an empty side, or a token that no rule can have; or the target grammar does not
                derive the target of some, which the message names.
        """
        if self.targets is not None:
            _check_targets(dataset, self.targets)
        self.grammar, self.steps = induce(dataset, self.settings.options, self.seeds, self.targets, watch)
        return self.grammar

    def learn(
        self, dataset: Dataset, seed: int = 0, watch: Callable[[int, float], None] = lambda _step, _loss: None
    ) -> TrainedGrammar:
        """Learn the grammar's probabilities from the same examples, if that is asked for; `watch` as for `model.learn`.

        Raises:
            UserError: there is no grammar yet.
        """
        if self.grammar is None:
            raise UserError("induce a grammar before learning its probabilities")
        training, scores = self.settings.training, Scores.uniform(self.grammar)
        if training is not None:
            from compgen.grammar.model import learn

            scores, _ = learn(self.grammar, self.grammar.alphabet.examples(dataset), training, seed, watch)
        units = UNITS if training is None else training.unit_limit
        self.trained = TrainedGrammar(self.grammar, scores, self.targets, self.settings.drawing, units)
        return self.trained

    def sample(self, count: int, seed: int = 0) -> Dataset:
        """`count` samples, repeated ones and known ones among them, as published.

        Sample i of a seed is a function of the grammar, its probabilities and i alone.

        Raises:
            UserError: `fit` was not called.
            ExhaustedError: no derivation ends within the depth, or so few do that one sample took a thousand attempts.
        """
        if self.trained is None:
            raise UserError("fit the augmenter to a dataset before sampling from it")
        return self.trained.sampler().sample(count, seed)


def _check_targets(dataset: Dataset, targets: TargetGrammar) -> None:
    """Raise DataError unless a target grammar derives all targets of a dataset."""
    alphabet, rules = examples(dataset)
    checker = targets.checker(alphabet)
    distinct = dict.fromkeys(rule.target for rule in rules)
    wrong = [target for target in distinct if (ROOT,) not in checker.signatures(target)]
    if wrong:
        some = "; ".join(" ".join(alphabet.decode(target)) for target in wrong[:3]) + ("; ..." if wrong[3:] else "")
        raise DataError(f"the target grammar derives {len(wrong):,} of {len(distinct):,} targets not: {some}")
