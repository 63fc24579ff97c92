"""What an experiment with synthetic sentences has found (`lm.experiment`): its figures, and the answer in words."""

from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np

from compgen.evaluation.significance import Paired
from compgen.lm.estimation import fixed_discounts
from compgen.lm.mixture import Floats, Mixture, Perplexity

LEAST = 0.00005  # a gain that is not 0.00 % when printed; below it, sums may only be rounded otherwise
SURE = 0.05  # the p-value below which a gain is believed


@dataclass(frozen=True)
class Trial:
    """One seed.

    Attributes:
        seed: of the synthetic sentences and of the resampling.
        synthetic: the number of synthetic sentences of each kind.
        mixture, control: the perplexities of the mixture and of the control, on `validation` and on `test`.
        against_control, against_base: paired tests of sentence losses on the test text.
        interpolated: the mixture.
    """

    seed: int
    synthetic: list[int]
    mixture: dict[str, Perplexity]
    control: dict[str, Perplexity]
    against_control: Paired
    against_base: Paired
    interpolated: Mixture


@dataclass(frozen=True)
class Report:
    """All seeds.

    Attributes:
        base: perplexities of the base model, on `validation` and on `test`.
        trials: one per seed.
        against_control, against_base: paired tests of sentence losses on the test text, averaged over the seeds.
        fallbacks: for each estimated model, by name, the orders with fixed discounts (see `Estimation`).
        learnt: whether all sentences of the test text are in the training text, so that it tests memory alone.
    """

    base: dict[str, Perplexity]
    trials: list[Trial]
    against_control: Paired
    against_base: Paired
    fallbacks: dict[str, list[int]]
    learnt: bool = False

    @property
    def gain(self) -> float:
        """The share by which the mixtures' perplexity on the test text is below the controls', mean of the seeds."""
        return 1 - mean(trial.mixture["test"].including / trial.control["test"].including for trial in self.trials)

    @property
    def fallback(self) -> str:
        """Which models have fixed discounts for which orders, as a sentence."""
        models: dict[str, list[str]] = {}
        for name, orders in self.fallbacks.items():
            if orders:
                models.setdefault(fixed_discounts(orders), []).append(name)
        if not models:
            return "Discounts: all estimated."
        fixed = "; ".join(f"{grams} of {', '.join(names)}" for grams, names in models.items())
        return f"Discounts: fixed (KenLM's --discount_fallback) for {fixed}; all others estimated."

    @property
    def decisive(self) -> str:
        """The tests that the verdict rests on, as a sentence."""
        seeds = f"{len(self.trials)} seeds" if len(self.trials) > 1 else "1 seed"
        control, base = (found.bootstrap_p for found in (self.against_control, self.against_base))
        decided = "Would be decided" if self.learnt else "Decided"
        return (
            f"{decided} by the bootstrap over {len(losses(self.base)):,} test sentences, losses averaged over {seeds}: "
            f"p {control:.2g} against the control, {base:.2g} against the base model; believed below {SURE}."
        )

    @property
    def verdict(self) -> str:
        """The answer, as a sentence."""
        if self.learnt:
            return "No answer: all sentences of the test text are in the training text, so they test memory alone."
        gain = self.gain
        sure = self.against_control.bootstrap_p < SURE and abs(gain) >= LEAST
        better = self.against_base.mean < 0 and self.against_base.bootstrap_p < SURE
        if sure and gain > 0 and better:
            return f"Synthetic sentences help: {gain:.2%} below the control."
        if sure and gain > 0:
            return "Synthetic sentences do not help: better than the control, but not than the base model alone."
        if sure:
            return f"Synthetic sentences harm: {-gain:.2%} above the control."
        alone = mean(trial.control["test"].including for trial in self.trials) / self.base["test"].including - 1
        return (
            f"No effect that can be told from chance: {-gain:+.2%} against the control, which is {alone:+.2%} against "
            "the base model."
        )


def losses(sides: dict[str, Perplexity]) -> Floats:
    """Return the loss of each sentence of the test text."""
    return np.concatenate(sides["test"].losses)


def summary(report: Report) -> dict[str, Any]:
    """Return the report for JSON."""

    def figures(sides: dict[str, Perplexity]) -> dict[str, Any]:
        return {part: side.to_dict() for part, side in sides.items()}

    rows = [
        {
            "seed": trial.seed,
            "synthetic": trial.synthetic,
            "weights": trial.interpolated.weights.round(4).tolist(),
            "mixture": figures(trial.mixture),
            "control": figures(trial.control),
            "against_control": vars(trial.against_control),
            "against_base": vars(trial.against_base),
        }
        for trial in report.trials
    ]
    return {
        "base": figures(report.base),
        "trials": rows,
        "gain_over_control": report.gain,
        "against_control": vars(report.against_control),
        "against_base": vars(report.against_base),
        "fallback_orders": report.fallbacks,
        "verdict": report.verdict,
        "decisive": report.decisive,
    }
