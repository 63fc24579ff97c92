"""Substitution as an augmenter: `fit` induces a grammar and takes derivations apart, `sample` puts pieces into hosts.

    for each sample: copy the derivation of a random example
        for each of 1 to `rounds` exchanges: draw one of its places, then a shape of the place's class, then a piece
                                             of this shape; put it there

SUBS (Yang et al. 2022) and SpanSub (Li et al. 2023) do so with spans that were annotated. Here derivations of an
induced grammar (`compgen.csl`) take their place, so that no annotation is needed. Further deviations: SUBS keeps the
words of the predicate and exchanges what is left and right of it, here all that a node derives is exchanged; SpanSub
adds the results of a round to the data that the next one draws from, here a sample has its own exchanges, so that it
depends on the seed and its number alone.
"""

import copy
import math
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from compgen.augmenters.agreement import Agreement
from compgen.augmenters.base import HOST, Augmenter, Shown, counted
from compgen.configuration import load_config
from compgen.csl.augmenter import Csl
from compgen.csl.forests import forests, lowest
from compgen.csl.options import CslOptions
from compgen.csl.rules import FIRST, SEPARATOR, Grammar, Rule, check_examples, codes, refused
from compgen.data.examples import TOKENS, Dataset, Side, first_rows
from compgen.data.ragged import lists, lists_of
from compgen.data.random import Purpose, stream
from compgen.errors import ExhaustedError, tell
from compgen.lexsym import lexicon
from compgen.progress import Watch, unwatched
from compgen.substitution.exchanges import Exchanges, Found
from compgen.substitution.gold import Gold
from compgen.substitution.options import SubstituteOptions
from compgen.substitution.pieces import Classes, Classifier, Table
from compgen.substitution.unclear import unclear

CANDIDATES: tuple[Classes, ...] = ("types", "slot", "predicate", "token")
TRIED, FOLDS, TRIALS = 600, 4, 10_000  # to find the best classes: examples, parts of them, and samples from each
COMPANIONS = "grammar_scan_companions"
ODD = 0.2  # of more odd sources than this share there is a warning; where samples made no sense, it was a quarter
Pair = tuple[Side, Side]


class Substitute(Augmenter[SubstituteOptions]):
    """Exchange pieces of derivations for others of the same class (after SUBS and SpanSub, without annotation).

    Samples are new and distinct, and their sources are not in DATA. They have the columns `host` (the row of the
    training example that was changed), `donors` (the rows that the new pieces come from) and `pieces`.

    Attributes, after `fit`:
        grammar: its rules derive the examples.
        classes: the classes that pieces have.
        exchanges: those of its pieces.
        agreement: of exchanges with the data.
    """

    name = "substitute"
    options_type = SubstituteOptions
    columns: ClassVar[dict[str, Any]] = {
        HOST: pl.Int64,
        "donors": pl.List(pl.Int64),
        "pieces": pl.List(pl.String),
    }
    usual = 30_000
    moment = 300
    configuration = "grammar"
    clashes: ClassVar[dict[str, str]] = {"spans": "induction", "grammar": "induction"}
    configurations = "grammar, grammar_scan, grammar_scan_companions or grammar_cogs"
    example = """cgen augment substitute geo-funql/query -o more.tsv

        cgen augment substitute cogs/variable-free --config grammar_cogs --classes types --rounds 3 -n 20000 -o m.tsv"""

    gold: Gold | None = None
    _odd = 0.0  # the share of the samples that are
    begun = ""  # the configuration of the grammar, if it is not what options say

    @classmethod
    def refuses(cls, dataset: Dataset) -> str | None:
        """As CSL, whose rules derivations are made of."""
        return refused(dataset)

    def learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:
        """Induce a grammar, derive each distinct example once, and find all places and pieces.

        Where exchanges by the first grammar do not agree with the data, there is a second, which begins with words that
        go together (COMPANIONS), unless options say how or ask for no agreement; the one with more agreement is taken.
        """
        if self.options.spans is not None:
            self.gold = Gold.of(dataset, self.options.spans)
            return
        check_examples(dataset)  # here, because only some are looked at below
        failed: ExhaustedError | None = None
        self.begun = ""  # by an earlier fit, perhaps
        try:
            self._learn(dataset, seed, watch)
        except ExhaustedError as error:
            failed = error
        ways = {"grammar", "seed_rules", "targets", "induction"}
        usual, another = (load_config(SubstituteOptions, name) for name in (self.configuration, COMPANIONS))
        asked = self.options.model_dump(include=ways) != usual.model_dump(include=ways)
        if self.options.agreement and not asked and (failed or self.agreement.doubtful):
            other = copy.copy(self)
            other.options = self.options.model_copy(update={way: getattr(another, way) for way in ways})
            with suppress(ExhaustedError):
                other._learn(dataset, seed, watch)
                if failed or other.agreement.share > self.agreement.share:
                    failed = None
                    vars(self).update(vars(other) | {"options": self.options, "begun": COMPANIONS})
        if failed:
            raise failed

    def _learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:
        """Learn by one grammar."""
        given: Classes | None = "types" if self.options.lexicon else self.options.classes
        classes = given or self._best_classes(dataset, seed, watch)
        self._derive(dataset, watch)
        self._tabulate(dataset, classes, seed)
        if not len(self._rows):
            raise ExhaustedError(
                f"substitute: the {len(self.grammar.rules):,} rules of {self.options.grammar} derive none of "
                f"{self.underived:,} examples; leave out --grammar to have a grammar induced"
            )
        places, pieces = len(self.table.hosts), self.table.pieces
        if not places and self.agreement.left_out:
            every = replace(self.agreement, left_out=[]).in_words()
            raise ExhaustedError(
                f"substitute can make nothing of these data: all {len(self.agreement.left_out):,} classes of pieces "
                f"({self.classes}) give the sources of other examples other targets (--agreement): of {every}; "
                "induction found no grammar of these data: begin with other rules (--config grammar_scan_companions), "
                "or give a --grammar"
            )
        if not places:
            raise ExhaustedError(
                f"nothing to exchange: each of {len(self._rows):,} derivations is a single rule: induction found no "
                "part that examples share; give more examples, seed rules (--seed-rules), or a --grammar"
            )
        if not self.table.alternatives:
            raise ExhaustedError(
                f"substitute can make nothing of these data: {len(pieces):,} pieces have "
                f"{pieces['class'].n_unique():,} classes ({self.classes}), and for none of {places:,} places is there "
                "another of its class; try other --classes (one: any for any), or give more examples"
            )

    def _derive(self, dataset: Dataset, watch: Watch = unwatched) -> None:
        """Induce a grammar, and take one derivation of each distinct example."""
        options, rows = self.options, first_rows(dataset)
        if options.grammar is not None:
            self.grammar = Grammar.read(options.grammar)
        else:
            csl = Csl(CslOptions(seed_rules=options.seed_rules, targets=options.targets, induction=options.induction))
            self.grammar = csl.induce(dataset, lambda step: watch("induce", None, f"{step.rules:,} rules"))
        examples = [Rule(*map(self.grammar.alphabet.encode, pair)) for pair in rows]
        found = forests(self.grammar, examples)
        trees, roots = lowest(found), np.array(found.roots)
        self._rows = np.array([*rows.values()])[roots >= 0]
        self._derivations = [trees[root] for root in roots[roots >= 0]]
        self.underived = len(examples) - len(self._rows)
        self._known: dict[str, set[str]] = defaultdict(set)
        for source, target in examples:
            self._known[source].add(target)
        self._unclear = unclear(self.grammar, self._derivations, self._known)

    def _tabulate(self, dataset: Dataset, classes: Classes, seed: int) -> None:
        """Find all places and pieces, by some classes, and leave out those that do not agree with the data."""
        self.classes: Classes = classes
        classifier = Classifier(self.grammar, classes, self._types(dataset))
        table = Table.of(classifier, self._derivations, self.options.chains, self.options.span, self._unclear)
        every = Exchanges(self.options, classifier, table, self._rows, self._known)
        some = ((kind, target in self._known[source]) for kind, source, target in every.outcomes(seed))
        self.agreement = Agreement.of(some, self.options.agreement)
        self.exchanges = replace(every, table=table.without(self.agreement.left_out))

    @property
    def table(self) -> Table:
        """The places of hosts, and the pieces."""
        return self.exchanges.table

    def _best_classes(self, dataset: Dataset, seed: int, watch: Watch = unwatched) -> Classes:
        """Choose classes by cross-validation: by how many templates of held-out examples exchanges in the others make.

        A template is a target without the tokens that are in the source, and no fold has templates of another. The
        share of odd samples (`Exchanges.odd`) is taken off, as classes that allow any exchange make many templates, but
        more nonsense. Classes other than the first of CANDIDATES must be ahead of it by about a standard error.
        """
        pairs, random = [*first_rows(dataset)], stream(Purpose.SETTINGS, seed)
        template_of = {pairs[place]: _template(*pairs[place]) for place in random.permutation(len(pairs))[:TRIED]}
        templates = dict.fromkeys(template_of.values())
        fold = dict(zip(templates, random.permutation(len(templates)) % FOLDS, strict=True))
        covered: dict[Classes, float] = dict.fromkeys(CANDIDATES, 0.0)
        for held in range(FOLDS):
            watch("try classes of pieces", held / FOLDS, "")
            rest = [pair for pair, template in template_of.items() if fold[template] != held]
            wanted = [pair for pair, template in template_of.items() if fold[template] == held]
            found = self._covered(Dataset.from_pairs(rest), wanted, seed) if rest else {}
            covered = {classes: count + found.get(classes, 0) for classes, count in covered.items()}
        first, best = CANDIDATES[0], max(CANDIDATES, key=covered.__getitem__)
        return best if covered[best] - covered[first] > math.sqrt(covered[best] + covered[first] + 4) else first

    def _covered(self, dataset: Dataset, wanted: list[Pair], seed: int) -> dict[Classes, float]:
        """By each of CANDIDATES: how many templates of `wanted` it makes from a dataset, times the share not odd."""
        trial, found = Substitute(self.options), dict[Classes, float]()
        trial._derive(dataset)
        encode = trial.grammar.alphabet.encode
        templates = {_template(encode(source), encode(target)) for source, target in wanted}
        for classes in CANDIDATES:
            trial._tabulate(dataset, classes, seed)
            made = trial.exchanges.found(TRIALS, seed) if trial.table.alternatives else {}
            count = len(templates & {_template(source, target) for source, (target, *_) in made.items()})
            found[classes] = count * (1 - trial.exchanges.odd(made))
        return found

    def draw(self, count: int | None, seed: int, watch: Watch) -> pl.DataFrame:
        """The first `count` new, distinct examples of samples 0, 1, ...; if few exchanges are possible, of all."""
        if self.gold is not None:
            assert self.dataset is not None and count is not None
            return self.gold.draw(self.dataset, count, seed)
        found = self.exchanges.found(count, seed, watch)
        if not found and count != 0:
            reasons = self.exchanges.left_out.items()
            why = "; ".join(f"{number:,} left out: {why}" for why, number in reasons) or "all are known"
            raise ExhaustedError(f"substitute: {self.table.total:,} exchanges make no new example of these data: {why}")
        self._odd = self.exchanges.odd(found)
        return self._frame(found)

    def facts(self) -> dict[str, Any]:
        """How much there is to exchange, and what was left out."""
        if self.gold is not None:
            return {"arguments": len(self.gold.arguments), "without_spans": len(self.gold.left_out)}
        facts: dict[str, Any] = {"rules": len(self.grammar.rules), "underived": self.underived, "classes": self.classes}
        facts |= {"begun": self.begun} if self.begun else {}
        facts |= zip(("agreeing", "of"), self.agreement.kept, strict=True)
        facts |= {"classes_left_out": len(self.agreement.left_out), "ambiguous": sum(map(bool, self._unclear))}
        facts |= {"places": len(self.table.hosts), "pieces": len(self.table.pieces), "exchanges": self.table.total}
        return facts | ({"left_out": dict(self.exchanges.left_out)} if self._report else {})

    def no_more(self) -> str:
        """Say that exchanges make only known examples by now."""
        others = "; --rounds 2 may make others" if self.gold is None and self.options.rounds == 1 else ""
        return f"hardly any exchange of these pieces is new any more{others}"

    def warnings(self) -> list[str]:
        """How many examples have spans that cannot be used; or that exchanges rarely agree with the data."""
        if self.gold is not None:
            why = [f"example {row + 1}: {why}" for row, why in self.gold.left_out.items()]
            return [f"{len(why):,} examples have spans that cannot be used; {why[0]}"] if why else []
        if self.agreement.doubtful:
            return self.agreement.warnings(
                "other rules to begin with (--config grammar_scan_companions), or a --grammar"
            )
        if self._odd > ODD:
            return [
                f"{self._odd:.0%} of the sources have two or more pairs of neighbouring tokens that DATA lacks, and "
                "may make no sense: look at them; --bigrams 1 leaves these out, other --classes make fewer"
            ]
        return []

    def in_words(self) -> str:
        """The report in words, for people."""
        report = self.report()
        if self.gold is not None:
            return f"{super().in_words()}; {report['arguments']:,} arguments of predicates"
        ambiguous, classes = counted(report["ambiguous"], "example"), len(self.agreement.left_out)
        stays = "a piece is not exchanged, as others in the source have its symbols too"
        said = {
            f"{super().in_words()}; {report['places']:,} places, {report['pieces']:,} pieces, "
            f"{report['exchanges']:,} possible exchanges (classes: {self.classes})": True,
            f"{self.underived:,} examples that the grammar does not derive": self.underived,
            f"in {ambiguous} {stays}": report["ambiguous"],
            f"grammar as by --config {self.begun}": self.begun,
            f"of {self.agreement.in_words()}": report["of"],
            f"{counted(classes, 'class', 'classes')} left out that agreed less": classes,
        }
        said |= {f"{count:,} left out: {why}": True for why, count in self.exchanges.left_out.items()}
        return "; ".join(part for part, there in said.items() if there)

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """The example that was changed; and each piece, with the example that it is from."""
        self.require_row(sample, *self.columns)
        shown = [self.shown("host", sample[HOST])]
        for row, text in zip(sample["donors"], sample["pieces"], strict=True):
            source, _, target = text.partition(f" {SEPARATOR}")
            shown += [Shown.plain("piece", source.split(), target.split()), self.shown("from", row)]
        return shown

    def outdated(self) -> Sequence[str]:
        """The spans, which are those of the host."""
        return [] if self.options.spans is None else [self.options.spans]

    def _types(self, dataset: Dataset) -> dict[str, str]:
        """The types of source tokens, from the lexicon or found, where classes depend on them."""
        path = self.options.lexicon
        if self.classes != "types":
            return {}
        entries = lexicon.find(dataset.pairs()) if path is None else lexicon.read(Path(path))
        if path is not None and (phrases := sum(lexicon.JOINED in entry.word for entry in entries)):
            tell(f"{path}: classes are of single words: {phrases} phrases are left out")
        # No token has a space, so none is taken for a type.
        return {entry.word: f"({entry.type}) " for entry in entries if entry.type != lexicon.ALONE}

    def _frame(self, found: dict[str, Found]) -> pl.DataFrame:
        tokens = pl.Series(self.grammar.alphabet.tokens, dtype=pl.String)
        targets, hosts, pieces = zip(*found.values(), strict=True) if found else ((), (), ())
        texts = {piece: self._piece(piece) for piece in {*chain(*pieces)}}
        donors = self._rows[self.table.pieces["tree"].to_numpy()]
        columns: dict[str, Any] = {
            side: lists(tokens, codes("".join(some)) - FIRST, np.fromiter(map(len, some), dtype=np.int64))
            for side, some in (("source", found), ("target", targets))
        }
        columns |= {
            HOST: hosts,
            "donors": lists_of([donors[used].tolist() for used in pieces], pl.Int64()),
            "pieces": lists_of([[texts[piece] for piece in used] for used in pieces], pl.String()),
        }
        return pl.DataFrame(columns, schema={"source": TOKENS, "target": TOKENS, **self.columns})

    def _piece(self, number: int) -> str:
        """A piece as a rule, its hole as NT_1."""
        piece = self.table.pieces.row(number, named=True)
        trees = self.table.trees
        start = int(trees.start[piece["tree"]]) + piece["node"]
        rules = trees.rule[start : start + int(trees.size[start])].tolist()
        _, sources, targets = self.exchanges.classifier.derived(rules, piece["hole"] - piece["node"])
        return self.grammar.alphabet.text(Rule(sources[0], targets[0]))


def _template(source: Sequence[str], target: Sequence[str]) -> Side:
    """A target without the tokens that are in the source."""
    return tuple("" if token in source else token for token in target)
