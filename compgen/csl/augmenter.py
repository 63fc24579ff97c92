"""CSL as an augmenter: `fit` induces a grammar and learns its probabilities, `sample` draws derivations."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl

from compgen.augmenters.base import Augmenter, Shown
from compgen.csl import smcalflow
from compgen.csl.forests import first_uses, forests, lowest
from compgen.csl.induction import Step, induce
from compgen.csl.options import UNITS, CslOptions
from compgen.csl.rules import Grammar, Rule, check_examples, refused
from compgen.csl.seeds import companions, exact_matches, inflections, names
from compgen.csl.sense import ODD, ODDER, OWN, odd, with_own_rules
from compgen.csl.targets import TargetGrammar
from compgen.csl.trained import TrainedGrammar
from compgen.csl.weights import Scores
from compgen.data.catalog import load
from compgen.data.examples import SIDES, Dataset, shares_tokens
from compgen.errors import DataError, ExhaustedError, UserError
from compgen.files import atomic_path, require_name
from compgen.progress import Watch
from compgen.runtime.manifest import MOST_UNITS

TRIED = 100  # draws, of which one should be new
CONFIGS = Path(__file__).parents[1] / "configs"
SEED_RULES: dict[str, Callable[[Dataset], Grammar]] = {
    "matches": exact_matches,
    "names": names,
    "companions": companions,
    "inflections": inflections,
    "smcalflow": smcalflow.seed_rules,
}


def seed_rules(name: str, dataset: Dataset) -> Grammar | None:
    """Seed rules by name, found in a dataset, or from a file; none for no name.

    `auto` is `names` if the sides share tokens, else `companions`.

    Raises:
        DataError: what is found or read is no grammar.
        UserError: there is no such file.
    """
    if not name:
        return None
    if name == "auto":
        name = "names" if shares_tokens(dataset) else "companions"
    if name in SEED_RULES:
        return SEED_RULES[name](dataset)
    if not Path(name).exists():
        raise UserError(f"{name}: no such file, and none of {', '.join(SEED_RULES)}, auto and none")
    return Grammar.read(name)


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


class Csl(Augmenter[CslOptions]):
    """Induce a synchronous grammar from DATA and draw from it (CSL, Qiu et al. 2022).

    The grammar has as few and as small rules as will derive all examples. Samples may repeat, and may be training
    examples. Train on them together with DATA, for example with p_aug=0.5.

    Attributes, after `fit`:
        seeds: the rules that induction began with, beside one for each example.
        grammar: its rules.
        steps: of the induction.
        trained: the grammar with the scores of its rules, all alike if they were not learned.
    """

    name = "csl"
    options_type = CslOptions
    columns: ClassVar[dict[str, Any]] = {"index": pl.Int64, "log_prob": pl.Float64}
    usual = 10_000
    moment = 1000
    copies = True
    beyond = (
        "`cgen train csl DATA -o G.grammar` and `cgen sample G.grammar -n N -o OUT` write any number as they are drawn"
    )
    configuration = "csl"
    clashes: ClassVar[dict[str, str]] = {"uniform": "training"}
    configurations = (
        "csl_scan, csl_cogs, csl_geoquery or csl_smcalflow (as published), csl (for other pairs) or "
        "csl_scan_companions (beyond the paper)"
    )
    example = """cgen augment csl scan/jump --config csl_scan --rules jump.rules -o more.tsv

        cgen augment csl geo.tsv --config csl_geoquery -o more.tsv

        cgen augment csl cogs/variable-free --config csl_cogs -o more.tsv"""
    targets: TargetGrammar | None = None
    seeds: Grammar | None = None
    grammar: Grammar | None = None
    steps: Sequence[Step] = ()
    trained: TrainedGrammar | None = None
    _parsed: tuple[int, int] | None = None
    _uses: dict[int, int] | None = None  # see `_used`

    @classmethod
    def refuses(cls, dataset: Dataset) -> str | None:
        """Why the data cannot be learned from: an empty side, or a token that has a meaning in rules; else None."""
        return refused(dataset)

    @classmethod
    def attempt(cls, dataset: Dataset) -> None:
        """Make an example without learning probabilities, which do not change what can be derived."""
        known = {repr(pair) for pair in dataset.pairs()}
        made = cls(uniform=True).fit(dataset).sample(TRIED).pairs()
        if known.issuperset(map(repr, made)):
            raise ExhaustedError(f"{TRIED} draws from the grammar give examples of the data alone; give more examples")

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:
        """Induce a grammar, learn its probabilities, and learn them again if there are unlabelled sources."""
        training = self.options.learning
        self.induce(dataset, lambda step: watch("induce", None, f"{step.rules:,} rules"))
        rounds = 1 if training is None else training.starts * training.steps
        self.weigh(dataset, seed, lambda step, loss: watch("learn", step / rounds, f"loss {loss:.4f}"))
        if self.options.unlabelled is not None:
            more = load(self.options.unlabelled)
            again = self.relearn(
                dataset, more, seed, lambda step, loss: watch("learn again", step / rounds, f"loss {loss:.4f}")
            )
            self._parsed = (again, len(more))
        if self.options.rules is not None and self.grammar is not None:
            with atomic_path(Path(self.options.rules)) as temporary:
                temporary.write_text(self.grammar.text(), "utf-8")

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:
        """Draw samples 0 to `count` - 1; sample i is a function of the grammar, its probabilities, the seed and i.

        Sums of learned probabilities are rounded otherwise if DATA are in another order: a few samples in a thousand
        may then differ. With `uniform` none does.
        """
        assert self.trained is not None and count is not None, "fitted, and `usual` says how many"
        return self.trained.sampler().sample(count, seed, watch=lambda done: watch("sample", done / count, "")).frame

    def facts(self) -> dict[str, Any]:
        """The number of rules, of those that induction began with, and of unlabelled sources that have a parse."""
        found: dict[str, Any] = {} if self.grammar is None else {"rules": len(self.grammar.rules)}
        if self.seeds is not None:
            found["seed_rules"] = len(self.seeds.rules)
        if self._parsed is not None:
            found["unlabelled"], found["unlabelled_parsed"] = self._parsed[1], self._parsed[0]
        return found

    def warnings(self) -> list[str]:
        """Warn if no unlabelled source has a parse: then they change nothing; and of samples that may make no sense."""
        found = []
        if self._parsed is not None and not self._parsed[0]:
            found.append(
                f"none of the {self._parsed[1]:,} sources of --unlabelled has a parse, so they change nothing: give "
                "ones of the words and constructions of DATA"
            )
        return found + self._odd()

    def _odd(self) -> list[str]:
        """Warn of odd sources that are drawn uniformly from a grammar that has understood little; see `sense`."""
        if self.grammar is None or self.dataset is None or self._made.is_empty() or self.options.learning is not None:
            return []
        made, own = odd(self._made["source"], self.dataset)
        if made <= max(ODD, ODDER * own) or (alone := with_own_rules(self.grammar, self.dataset)) <= OWN:
            return []
        return [
            f"{made:.0%} of the sources have two or more pairs of neighbouring tokens that no other has (in DATA: "
            f"{own:.0%}), and {alone:.0%} of DATA need a rule of their own: many samples may make no sense; look at "
            "them; leave out --uniform, or try geca or lexsym, which change less of an example"
        ]

    def needs_torch(self) -> bool:
        """Learning probabilities needs torch."""
        return self.options.learning is not None

    def in_words(self) -> str:
        """The report in words, for people."""
        return f"{super().in_words()}; {self.report()['rules']:,} rules"

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """Return the rules of a sample's lowest derivation, from the top, each with a training example that has it.

        Raises:
            UserError: nothing was fitted, this is no row of samples, or the grammar does not derive it.
        """
        self.require_row(sample, *SIDES)
        if self.grammar is None:
            raise UserError("csl: induce a grammar, by fit, before it explains samples")
        alphabet = self.grammar.alphabet
        found = forests(self.grammar, [Rule(*(alphabet.encode(sample[side]) for side in SIDES))], MOST_UNITS)
        if found.roots[0] < 0:
            source = " ".join(sample["source"])
            raise UserError(f"csl: {source!r:.80}: the grammar does not derive this, expected a sample of it")
        shown: list[Shown] = []
        for number in dict.fromkeys(lowest(found)[found.roots[0]]):
            rule = alphabet.key(self.grammar.rules[number])
            shown.append(Shown.plain("rule", *rule))
            if number in self._used():
                shown.append(self.shown("from", self._used()[number]))
        return shown

    def _used(self) -> dict[int, int]:
        """Return the row of the first training example that has each rule; nothing before `fit` has ended."""
        if self._uses is None and self.grammar is not None and self.dataset is not None:
            self._uses = first_uses(forests(self.grammar, self.grammar.alphabet.examples(self.dataset)))
        return self._uses or {}

    def save(self, out: str | Path, *, copying: bool = False, **about: Any) -> dict[str, Any]:
        """Write the grammar as a file that `Generator.load` opens and `export_bundle` exports.

        Args:
            out: a `.grammar` file.
            copying: when it parses, tokens that no rule reads are copied; what is drawn is the same.
            about: figures and names for the record, beside those of `facts`.

        Returns:
            The record: what the grammar was trained on.

        Raises:
            UserError: nothing was fitted, or it cannot be written there.
        """
        from compgen.csl.grammar_file import GrammarFile

        require_name(Path(out), ".grammar")
        if self.trained is None or self.dataset is None:
            raise UserError("csl: induce a grammar, by fit, before it is saved")
        trained = replace(self.trained, copying=copying)
        saved = GrammarFile.of(trained, self.dataset, about | {"examples": len(self.dataset)} | self.facts())
        saved.save(Path(out))
        return saved.trained_on

    def induce(self, dataset: Dataset, watch: Callable[[Step], None] = lambda _: None) -> Grammar:
        """Induce a grammar from all examples of a dataset; `watch` hears of each step.

        Raises:
            DataError: an example has an empty side, or a token that no rule can have; or the target grammar does not
                derive the target of some, which the message names.
        """
        self.targets = target_grammar(self.options.targets, dataset)
        if self.targets is not None:
            _check_targets(dataset, self.targets)
        self.seeds = seed_rules(self.options.seed_rules, dataset)
        self._uses = None
        self.grammar, self.steps = induce(dataset, self.options.induction, self.seeds, self.targets, watch)
        return self.grammar

    def weigh(
        self, dataset: Dataset, seed: int = 0, watch: Callable[[int, float], None] = lambda _step, _loss: None
    ) -> TrainedGrammar:
        """Learn the grammar's probabilities from the same examples, if that is asked for; `watch` as for `model.learn`.

        Raises:
            UserError: there is no grammar yet.
        """
        if self.grammar is None:
            raise UserError("induce a grammar before learning its probabilities")
        training, scores = self.options.learning, Scores.uniform(self.grammar)
        if training is not None:
            from compgen.csl.model import learn

            scores, _ = learn(self.grammar, self.grammar.alphabet.examples(dataset), training, seed, watch)
        units = UNITS if training is None else training.unit_limit
        self.trained = TrainedGrammar(self.grammar, scores, self.targets, self.options.drawing, units)
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
        if self.trained is None or self.options.learning is None:
            raise UserError("learn probabilities before parsing unlabelled sources by them")
        parser = self.trained.parser()
        parsed = ((source, parser.parse(source)) for source, _ in unlabelled.pairs())
        labelled = Dataset.from_pairs((source, target) for source, target in parsed if target is not None)
        self.weigh(dataset + labelled, seed, watch)
        return len(labelled)


def _check_targets(dataset: Dataset, targets: TargetGrammar) -> None:
    """Raise DataError unless all targets of a dataset are derivable from a target grammar."""
    check_examples(dataset)
    distinct = [*dict.fromkeys(tuple(target) for _, target in dataset.pairs())]
    wrong = [target for target, derived in zip(distinct, targets.derives(distinct), strict=True) if not derived]
    if wrong:
        some = "; ".join(map(" ".join, wrong[:3])) + ("; ..." if wrong[3:] else "")
        raise DataError(
            f"{len(wrong):,} of {len(distinct):,} targets are not derivable from the target grammar: {some}"
        )
