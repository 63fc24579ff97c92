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

import math
import warnings
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from compgen.augmenters.base import HOST, Augmenter, Shown
from compgen.configuration import load_config
from compgen.csl.augmenter import Csl
from compgen.csl.forests import forests, lowest
from compgen.csl.options import CslOptions
from compgen.csl.rules import FIRST, SEPARATOR, Grammar, Rule, check_examples, codes, refused
from compgen.data.examples import TOKENS, Dataset
from compgen.data.ragged import lists, lists_of
from compgen.data.random import Purpose, stream
from compgen.errors import ExhaustedError, Remark
from compgen.lexsym import lexicon
from compgen.progress import Watch, unwatched
from compgen.substitution.agreement import Agreement, in_words
from compgen.substitution.exchanges import Exchanges, Found
from compgen.substitution.gold import Gold
from compgen.substitution.options import SubstituteOptions
from compgen.substitution.pieces import Classes, Classifier, Table
from compgen.substitution.trees import CLOSED
from compgen.substitution.unclear import unclear

CANDIDATES: tuple[Classes, ...] = ("types", "slot", "predicate", "token")
TRIED, FOLDS, TRIALS = 600, 4, 10_000  # examples, parts of them, and samples, to find out which classes are best
COMPANIONS = "grammar_scan_companions"
ODD = 0.2  # share of odd sources from which on a warning is due: of some data that made no sense it was a quarter
Pair = tuple[tuple[str, ...], tuple[str, ...]]


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
    configurations = "grammar, grammar_scan_companions or grammar_cogs"
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
        go together (COMPANIONS), unless options say how or ask for no agreement; the one by which more agree is taken.
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
        usual = load_config(SubstituteOptions, self.configuration)
        asked = [name for name in ("grammar", "seed_rules", "targets", "induction")
                 if getattr(self.options, name) != getattr(usual, name)]  # fmt: skip
        if self.options.agreement and not asked and (failed or self.agreement.doubtful):
            another = load_config(SubstituteOptions, COMPANIONS)
            changes = {"seed_rules": another.seed_rules, "induction": another.induction}
            other = Substitute(self.options.model_copy(update=changes))
            with suppress(ExhaustedError):
                other._learn(dataset, seed, watch)
                if failed or other.agreement.share > self.agreement.share:
                    failed, found = None, {name: value for name, value in vars(other).items() if name != "options"}
                    vars(self).update(found | {"beside": self.beside, "begun": COMPANIONS})
        if failed:
            raise failed

    def _learn(self, dataset: Dataset, seed: int, watch: Watch) -> None:
        """Learn by one grammar."""
        given = self.options.classes or ("types" if self.options.lexicon else None)
        classes = given or self._best_classes(dataset, seed)
        self._derive(dataset, watch)
        self._tabulate(dataset, classes, seed)
        if not len(self._rows):
            raise ExhaustedError(
                f"substitute: the {len(self.grammar.rules):,} rules of {self.options.grammar} derive none of "
                f"{self.underived:,} examples; leave out --grammar to have a grammar induced"
            )
        places, pieces = len(self.table.hosts), self.table.pieces
        if not places and self.agreement.left_out:
            every = [sum(counts) for counts in zip(*self.agreement.counts.values(), strict=True)]
            raise ExhaustedError(
                f"substitute can make nothing of these data: all {len(self.agreement.left_out):,} classes of pieces "
                f"({self.classes}) give the sources of other examples other targets (--agreement): of "
                f"{in_words(*every)}; induction found no grammar of these data: begin with other rules (--config "
                "grammar_scan_companions), or give a --grammar"
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
        self.grammar = self._grammar(dataset, watch)
        pairs = [(tuple(source), tuple(target)) for source, target in dataset.pairs()]
        rows = dict(reversed([(pair, row) for row, pair in enumerate(pairs)]))  # the first of equal ones
        examples = {pair: Rule(*map(self.grammar.alphabet.encode, pair)) for pair in sorted(rows)}
        found = forests(self.grammar, examples.values())
        trees, roots = lowest(found), dict(zip(examples, found.roots, strict=True))
        self._rows = np.array([rows[pair] for pair, root in roots.items() if root >= 0], dtype=np.int64)
        self._derivations = [trees[root] for root in roots.values() if root >= 0]
        self.underived = len(examples) - len(self._rows)
        self._known: dict[str, set[str]] = defaultdict(set)
        for example in examples.values():
            self._known[example.source].add(example.target)
        self._unclear = unclear(self.grammar, self._derivations, self._known)

    def _tabulate(self, dataset: Dataset, classes: Classes, seed: int) -> None:
        """Find all places and pieces, by some classes, and leave out those that do not agree with the data."""
        self.classes: Classes = classes
        classifier = Classifier(self.grammar, classes, self._types(dataset))
        table = Table.of(classifier, self._derivations, self.options.chains, self.options.span, self._unclear)
        every = Exchanges(self.options, classifier, table, self._rows, self._known)
        some = ((kind, target in self._known[source]) for kind, source, target in every.outcomes(seed))
        self.agreement = Agreement.of(some, self.options.agreement)
        self.exchanges = every.without(self.agreement.left_out)

    @property
    def table(self) -> Table:
        """The places of hosts, and the pieces."""
        return self.exchanges.table

    def _best_classes(self, dataset: Dataset, seed: int) -> Classes:
        """The classes by which some training examples give most of the templates of others, which they lack.

        A template is a target without the tokens that are in the source; it counts less the more of the samples are odd
        (`Exchanges.odd`), as classes that take anything for anything give many templates, and more nonsense. Others
        than the first in CANDIDATES must be ahead of it by more than chance, about a standard error.
        """
        pairs = sorted({(tuple(source), tuple(target)) for source, target in dataset.pairs()})
        random = stream(Purpose.SETTINGS, seed)
        some = [pairs[place] for place in random.permutation(len(pairs))[:TRIED]]
        templates = [_template(*pair) for pair in some]
        fold = dict(zip(dict.fromkeys(templates), random.permutation(len({*templates})) % FOLDS, strict=True))
        covered: dict[Classes, float] = dict.fromkeys(CANDIDATES, 0.0)
        for held in range(FOLDS):
            parts: tuple[list[Pair], list[Pair]] = ([], [])
            for pair, template in zip(some, templates, strict=True):
                parts[int(fold[template] == held)].append(pair)
            rest, wanted = parts
            if rest:
                found = self._covered(Dataset.from_pairs(rest), wanted, seed)
                covered = {classes: count + found[classes] for classes, count in covered.items()}
        first, best = CANDIDATES[0], max(CANDIDATES, key=covered.__getitem__)
        return best if covered[best] - covered[first] > math.sqrt(covered[best] + covered[first] + 4) else first

    def _covered(self, dataset: Dataset, wanted: list[Pair], seed: int) -> dict[Classes, float]:
        """How many templates of some examples are made from a dataset by each of CANDIDATES, times what is not odd."""
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
        """How much there is to exchange, what was left out, and why there are fewer samples than asked for."""
        if self.gold is not None:
            return {"arguments": len(self.gold.arguments), "without_spans": len(self.gold.left_out)} | self._why()
        facts: dict[str, Any] = {"rules": len(self.grammar.rules), "underived": self.underived, "classes": self.classes}
        right, of = self.agreement.kept
        facts |= {"begun": self.begun} if self.begun else {}
        facts |= {"agreeing": right, "of": of, "classes_left_out": len(self.agreement.left_out)}
        facts |= {"ambiguous": sum(map(bool, self._unclear))}
        facts |= {"places": len(self.table.hosts), "pieces": len(self.table.pieces), "exchanges": self.table.total}
        if self._report:
            facts["left_out"] = dict(self.exchanges.left_out)
        return facts | self._why()

    def _why(self) -> dict[str, str]:
        fewer = self._report.get("made", 0) < (self._report.get("asked") or 0)
        return {"why": "hardly any exchange of these pieces is new any more"} if fewer else {}

    def warnings(self) -> list[str]:
        """How many examples have spans that cannot be used; or that exchanges rarely agree with the data."""
        if self.gold is None and self.agreement.doubtful:
            return [
                f"of {in_words(*self.agreement.kept)}: many of the samples will be wrong; look at them, and try a "
                "stricter --agreement, other rules to begin with (--config grammar_scan_companions), or a --grammar"
            ]
        if self.gold is None and self._odd > ODD:
            return [
                f"{self._odd:.0%} of the sources have two or more pairs of neighbouring tokens that DATA lacks, and "
                "may make no sense: look at them; --bigrams 1 leaves these out, other --classes make fewer"
            ]
        left_out = {} if self.gold is None else self.gold.left_out
        if not left_out:
            return []
        row, why = next(iter(left_out.items()))
        return [f"{len(left_out):,} examples have spans that cannot be used; example {row + 1}: {why}"]

    def in_words(self) -> str:
        """The report in words, for people."""
        report = self.report()
        if self.gold is not None:
            return f"{super().in_words()}; {report['arguments']:,} arguments of predicates"
        said = f"{super().in_words()}; {report['places']:,} places, {report['pieces']:,} pieces"
        said += f", {report['exchanges']:,} possible exchanges (classes: {self.classes})"
        said += f"; {self.underived:,} examples that the grammar does not derive" if self.underived else ""
        ambiguous = report["ambiguous"]
        examples = "1 example" if ambiguous == 1 else f"{ambiguous:,} examples"
        said += (
            f"; in {examples} a piece is not exchanged, as others in the source have its symbols too"
            if ambiguous
            else ""
        )
        said += f"; grammar as by --config {self.begun}" if self.begun else ""
        right, of = self.agreement.kept
        said += f"; of {in_words(right, of)}" if of else ""
        left_out = len(self.agreement.left_out)
        said += f"; {left_out:,} class{'' if left_out == 1 else 'es'} left out that agreed less" if left_out else ""
        return said + "".join(f"; {count:,} left out: {why}" for why, count in self.exchanges.left_out.items())

    def explain(self, sample: dict[str, Any]) -> list[Shown]:
        """The example that was changed; and each piece, with the example that it is from."""
        self.require_row(sample, *self.columns)
        shown = [self.shown("host", sample[HOST])]
        for row, text in zip(sample["donors"], sample["pieces"], strict=True):
            left, _, right = text.partition(f" {SEPARATOR}")
            source, target = ([(token, -1) for token in side.split()] for side in (left, right))
            shown += [Shown("piece", source, target), self.shown("from", row)]
        return shown

    def outdated(self) -> Sequence[str]:
        """The spans, which are those of the host."""
        return [] if self.options.spans is None else [self.options.spans]

    def reads(self) -> Sequence[str]:
        """Grammars and lexicon, which may be files."""
        options = self.options
        return [name for name in (options.grammar, options.lexicon, options.seed_rules, options.targets) if name]

    def _grammar(self, dataset: Dataset, watch: Watch) -> Grammar:
        options = self.options
        if options.grammar is not None:
            return Grammar.read(options.grammar)
        csl = Csl(CslOptions(seed_rules=options.seed_rules, targets=options.targets, induction=options.induction))
        return csl.induce(dataset, lambda step: watch("induce", None, f"{step.rules:,} rules"))

    def _types(self, dataset: Dataset) -> dict[str, str]:
        """The types of source tokens, from the lexicon or found, where classes depend on them."""
        path = self.options.lexicon
        if self.classes != "types":
            return {}
        pairs = [(tuple(source), tuple(target)) for source, target in dataset.pairs()]
        entries = lexicon.find(pairs) if path is None else lexicon.read(Path(path))
        if path is not None and (phrases := sum(lexicon.JOINED in entry.word for entry in entries)):
            warnings.warn(f"{path}: classes are of single words: {phrases} phrases are left out", Remark, stacklevel=2)
        return {entry.word: f"({entry.type})" for entry in entries if entry.type != lexicon.ALONE}

    def _frame(self, found: dict[str, Found]) -> pl.DataFrame:
        tokens = pl.Series(self.grammar.alphabet.tokens, dtype=pl.String)
        texts = {piece: self._piece(piece) for piece in {piece for *_, used in found.values() for piece in used}}
        tree = self.table.pieces["tree"].to_numpy()
        columns: dict[str, Any] = {
            side: lists(tokens, codes("".join(some)) - FIRST, np.fromiter(map(len, some), dtype=np.int64))
            for side, some in (("source", [*found]), ("target", [target for target, *_ in found.values()]))
        }
        columns |= {
            HOST: [row for _, row, _ in found.values()],
            "donors": lists_of([self._rows[tree[used]].tolist() for *_, used in found.values()], pl.Int64()),
            "pieces": lists_of([[texts[piece] for piece in used] for *_, used in found.values()], pl.String()),
        }
        return pl.DataFrame(columns, schema={"source": TOKENS, "target": TOKENS, **self.columns})

    def _piece(self, number: int) -> str:
        """A piece as a rule, its hole as NT_1."""
        piece = self.table.pieces.row(number, named=True)
        trees = self.table.trees
        start = int(trees.start[piece["tree"]]) + piece["node"]
        rules = trees.rule[start : start + int(trees.size[start])].tolist()
        hole = piece["hole"] if piece["hole"] == CLOSED else piece["hole"] - piece["node"]
        _, sources, targets = self.exchanges.classifier.derived(rules, hole)
        return self.grammar.alphabet.text(Rule(sources[0], targets[0]))


def _template(source: Sequence[str], target: Sequence[str]) -> tuple[str, ...]:
    """A target without the tokens that are in the source."""
    return tuple("" if token in source else token for token in target)
