"""CSL behind the interface of all augmenters: `fit` induces a grammar and learns its probabilities, `sample` draws."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from compgen.csl import smcalflow
from compgen.csl.config import UNITS, CslConfig
from compgen.csl.induction import Step, induce
from compgen.csl.rules import Grammar, examples
from compgen.csl.seeds import companions, exact_matches, inflections
from compgen.csl.targets import ROOT, TargetGrammar
from compgen.csl.trained import TrainedGrammar
from compgen.csl.weights import Scores
from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError, check_draws

CONFIGS = Path(__file__).parents[1] / "configs"
SEED_RULES: dict[str, Callable[[Dataset], Grammar]] = {
    "matches": exact_matches,
    "companions": companions,
    "inflections": inflections,
    "smcalflow": smcalflow.seed_rules,
}


def seed_rules(name: str, dataset: Dataset) -> Grammar | None:
    """Seed rules by name, found in a dataset, or from a file; none for no name.

    Raises:
        DataError: what is found or read is no grammar.
    """
    if not name:
        return None
    return SEED_RULES[name](dataset) if name in SEED_RULES else Grammar.read(name)


def target_grammar(name: str, dataset: Dataset) -> TargetGrammar | None:
    """A target grammar by name, shipped or found in a dataset, or from a file; none for no name.

    Raises:
        DataError: what is found or read is no grammar.
    """
    if not name:
        return None
    if name == "smcalflow":
        return smcalflow.target_grammar(dataset)
    shipped = CONFIGS / f"csl_{name}.cfg"
    return TargetGrammar.read(shipped if shipped.exists() else name)


class Csl:
    """A quasi-synchronous grammar, induced, and sampled (Qiu et al. 2022).

    Attributes, after `fit`:
        grammar: its rules.
        steps: of the induction.
        trained: the grammar with the scores of its rules, all alike if they were not learned.
    """

    def __init__(self, config: CslConfig) -> None:
        """An augmenter that has seen no data yet."""
        self.config = config
        self.targets: TargetGrammar | None = None
        self.grammar: Grammar | None = None
        self.steps: list[Step] = []
        self.trained: TrainedGrammar | None = None

    def fit(self, dataset: Dataset, seed: int = 0, unlabelled: Dataset | None = None) -> "Csl":
        """`induce`, `learn` with a seed, and `relearn` if there are unlabelled sources; they say what they raise."""
        self.induce(dataset)
        self.learn(dataset, seed)
        if unlabelled is not None:
            self.relearn(dataset, unlabelled, seed)
        return self

    def induce(self, dataset: Dataset, watch: Callable[[Step], None] = lambda _: None) -> Grammar:
        """Induce a grammar from all examples of a dataset; `watch` hears of each step.

        Raises:
            DataError: an example has an empty side, or a token that no rule can have; or the target grammar does not
                derive the target of some, which the message names.
        """
        self.targets = target_grammar(self.config.targets, dataset)
        if self.targets is not None:
            _check_targets(dataset, self.targets)
        seeds = seed_rules(self.config.seed_rules, dataset)
        self.grammar, self.steps = induce(dataset, self.config.induction, seeds, self.targets, watch)
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
        training, scores = self.config.training, Scores.uniform(self.grammar)
        if training is not None:
            from compgen.csl.model import learn

            scores, _ = learn(self.grammar, self.grammar.alphabet.examples(dataset), training, seed, watch)
        units = UNITS if training is None else training.unit_limit
        parts = (self.grammar, scores, self.targets, self.config.drawing, units, self.config.copying)
        self.trained = TrainedGrammar(*parts)
        return self.trained

    def relearn(
        self,
        dataset: Dataset,
        unlabelled: Dataset,
        seed: int = 0,
        watch: Callable[[int, float], None] = lambda _step, _loss: None,
    ) -> int:
        """Learn the probabilities anew from the examples and from unlabelled sources with what they are parsed to.

        This is one round of hard EM (Qiu et al. 2022, appendix C.7), for sources that are as the samples should be.

        Returns:
            How many of the sources have a parse; the others are left out.

        Raises:
            UserError: nothing was learned yet.
        """
        if self.trained is None or self.config.training is None:
            raise UserError("learn probabilities before parsing unlabelled sources by them")
        # What is copied is in no rule, so that nothing could be learned from it.
        parser = replace(self.trained, copying=False).parser()
        parsed = ((source, parser.parse(source)) for source, _ in unlabelled.pairs())
        labelled = Dataset.from_pairs((source, target) for source, target in parsed if target is not None)
        self.learn(dataset + labelled, seed, watch)
        return len(labelled)

    def sample(self, count: int, seed: int = 0) -> Dataset:
        """`count` samples, repeated ones and known ones among them, as published.

        Sample i of a seed is a function of the grammar, its probabilities and i alone.

        Raises:
            UserError: `fit` was not called, or a number is out of range.
            ExhaustedError: no derivation ends within the depth, or so few do that one sample took a thousand attempts.
        """
        if self.trained is None:
            raise UserError("fit the augmenter to a dataset before sampling from it")
        check_draws("CSL", count, seed)
        return self.trained.sampler().sample(count, seed)


def _check_targets(dataset: Dataset, targets: TargetGrammar) -> None:
    """Raise DataError unless all targets of a dataset are derivable from a target grammar."""
    alphabet, rules = examples(dataset)
    checker = targets.checker(alphabet)
    distinct = dict.fromkeys(rule.target for rule in rules)
    wrong = [target for target in distinct if (ROOT,) not in checker.signatures(target)]
    if wrong:
        some = "; ".join(" ".join(alphabet.decode(target)) for target in wrong[:3]) + ("; ..." if wrong[3:] else "")
        raise DataError(
            f"{len(wrong):,} of {len(distinct):,} targets are not derivable from the target grammar: {some}"
        )
