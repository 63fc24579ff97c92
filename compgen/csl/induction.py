"""Induction of a grammar from examples (Qiu et al. 2022, section 3.1.4 and appendix B.3).

Each example is a rule at first. Then steps make the grammar smaller: a rule that the others derive is removed; for
another, a new rule may come into the grammar with which it is derived, if that makes the objective smaller. All rules
are looked at with the same grammar in mind, and what is decided for each is done together, so a step could be divided
among workers by rules, and the outcome depends on nothing but the examples.
"""

import functools
import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from math import fsum
from typing import ClassVar

from pydantic import ConfigDict

from compgen.csl.charts import Occurrences, Parser, bits
from compgen.csl.objective import Objective
from compgen.csl.rules import MOST, Alphabet, Grammar, Rule, examples
from compgen.csl.targets import TargetGrammar
from compgen.csl.unify import Partners, Unification
from compgen.data.examples import Dataset
from compgen.errors import ConfigError, DataError

Key = tuple[tuple[str, ...], tuple[str, ...]]

_MOST_REMOVED = 10  # besides the rule that a new rule is made for, what else it lets go is sought among so many


@dataclass(frozen=True)
class Options:
    """How a grammar is induced.

    Attributes:
        max_nonterminals: at most so many in a new rule.
        repeated_targets: a nonterminal may occur in a target more than once.
        bare_targets: a target may be a single nonterminal.
        lexical_sources: a new rule's source has a token; not published.
        terminal_size: what a terminal counts in a rule's size; a nonterminal counts 1.
        source_given_target, target_given_source: weights of -log2 p(source | target), -log2 p(target | source) in a
            rule's penalty. The paper's formula has natural logarithms; these weights are those of the reference
            program, which takes logarithms to base 2.
        partitions: examples come in so many parts, those with the shortest sources first.
        steps: at most so many for each part.
        repetitions: keep examples that are in the data more than once.
        quirks: do as the reference program does, with whose grammars the paper's results were had. See `Unification`;
            besides, new rules are tried only while they gain more in size alone than the best so far gains in all. That
            would be right if penalties could only grow, but rules that go take theirs along.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    max_nonterminals: int = 4
    repeated_targets: bool = False
    bare_targets: bool = False
    lexical_sources: bool = False
    terminal_size: float = 8
    source_given_target: float = 4
    target_given_source: float = 16
    partitions: int = 1
    steps: int = 20
    repetitions: bool = True
    quirks: bool = True

    def __post_init__(self) -> None:
        """Raise ConfigError where a number is out of range."""
        for name, least in {"max_nonterminals": 1, "terminal_size": 0, "partitions": 1, "steps": 0}.items():
            if getattr(self, name) < least:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected {least} or more")
        if self.max_nonterminals > MOST:
            raise ConfigError(
                f"max_nonterminals: found {self.max_nonterminals}, expected {MOST} or fewer, as many as have letters"
            )
        for name in ("source_given_target", "target_given_source"):
            if getattr(self, name) < 0:
                raise ConfigError(f"{name}: found {getattr(self, name)}, expected 0 or more")

    @property
    def unification(self) -> Unification:
        """The options that concern single rules."""
        return Unification(
            self.max_nonterminals, self.repeated_targets, self.bare_targets, self.lexical_sources, self.quirks
        )


@dataclass(frozen=True)
class Step:
    """What a step did: in which part of the examples, how many rules came and went, and how many there are now."""

    part: int
    added: int
    removed: int
    rules: int


def induce(
    dataset: Dataset,
    options: Options,
    seeds: Grammar | None = None,
    targets: TargetGrammar | None = None,
    watch: Callable[[Step], None] = lambda _: None,
) -> tuple[Grammar, list[Step]]:
    """A grammar that derives the examples of a dataset, and the steps that led to it.

    Seed rules stay as they are, and are the only source of unit rules. With a target grammar, no new rule has a target
    that is not a part of one of its targets. `watch` hears of each step.

    Raises:
        DataError: an example has an empty side, or a token that no rule can have; or a seed rule is NT_1 -> NT_1.
    """
    alphabet, rules = examples(dataset, seeds)
    given = [] if seeds is None else seeds.moved(alphabet)
    if Rule("\1", "\1") in given:
        raise DataError("found the seed rule 'NT_1 ### NT_1', expected none that derives all from itself, without end")
    induction = Induction(alphabet, given, options, targets)
    steps = []
    for part, some in enumerate(_parts(rules, alphabet, options)):
        induction.add_examples(some)
        for _ in range(options.steps):
            steps.append(Step(part, *induction.step(), len(induction.grammar)))
            watch(steps[-1])
            if not steps[-1].added and not steps[-1].removed:
                break
    return Grammar.of(alphabet, induction.grammar), steps


def _parts(rules: list[Rule], alphabet: Alphabet, options: Options) -> Iterator[list[Rule]]:
    """The examples in parts of nearly equal numbers, the first ones larger by one, those of fewest characters first."""
    some = rules if options.repetitions else set(rules)
    texts = {rule: tuple(" ".join(side) for side in alphabet.key(rule)) for rule in some}
    ordered = sorted(some, key=lambda rule: (len(texts[rule][0]), *texts[rule]))
    size, larger = divmod(len(ordered), options.partitions)
    start = 0
    for part in range(options.partitions):
        stop = start + size + (part < larger)
        yield ordered[start:stop]
        start = stop


@dataclass(frozen=True)
class Action:
    """What becomes of a rule: it goes, with others, and perhaps a new rule comes."""

    removed: frozenset[Rule]
    added: Rule | None = None


class Induction:
    """A grammar on its way from examples to fewer and more general rules.

    What was found out about rules stays true while the grammar changes, so it is kept: a rule that could not be derived
    can be only by way of a rule that is new, and what two rules unify to does not depend on others.
    """

    def __init__(
        self, alphabet: Alphabet, seeds: Iterable[Rule], options: Options, targets: TargetGrammar | None = None
    ) -> None:
        """With seed rules, which stay, and perhaps a target grammar that new rules must keep to."""
        self._options, self._unification = options, options.unification
        self._key = functools.cache(alphabet.key)
        self.seeds = frozenset(seeds)
        self.grammar: set[Rule] = set()
        self._objective = Objective(options.terminal_size, options.source_given_target, options.target_given_source)
        self._checker = None if targets is None else targets.checker(alphabet)
        self._catalog = _Catalog(self._key)
        self._new: set[Rule] = set()  # since the last step
        self._pairs: dict[Rule, list[tuple[Rule, Rule]]] = {}  # of a rule not derived by others: partner and new rule
        self._unified: dict[tuple[Rule, Rule], set[Rule]] = {}
        self._enter(self.seeds)

    def add_examples(self, rules: Iterable[Rule]) -> None:
        """Put in more examples, each a rule without nonterminals."""
        rules = [*rules]
        self._objective.add_examples(rules)
        self._enter(rules)

    def step(self) -> tuple[int, int]:
        """Do what is best for each rule, and say how many rules that added and removed."""
        self._begin_step()
        actions = [action for rule in self.grammar - self.seeds if (action := self._action(rule)) is not None]
        removed = frozenset().union(*(action.removed for action in actions))
        # What one rule would add and is there already can be removed for another, and then it goes.
        added = {action.added for action in actions if action.added is not None} - self.grammar
        self.grammar -= removed
        self._catalog.remove(removed)
        self._new.clear()
        self._enter(added)
        return len(added), len(removed)

    def _enter(self, rules: Iterable[Rule]) -> None:
        new = set(rules) - self.grammar
        self.grammar |= new
        self._new |= new
        self._catalog.add(new)

    def _begin_step(self) -> None:
        """Look at the grammar as it is: what follows about one rule must not depend on what is done for another."""
        self._parser = Parser(self.grammar)
        self._partners, self._new_partners = Partners(self.grammar), Partners(self._new)
        settled = self._catalog.numbers(self.grammar & self._pairs.keys())
        touched = 0
        for rule in self._new:
            touched |= self._catalog.among(rule, settled)
        self._settled = {*self._catalog.rules(settled & ~touched)}  # not derived before, nor now
        self._removable: dict[Rule, frozenset[Rule]] = {}

    def _action(self, rule: Rule) -> Action | None:
        if rule not in self._settled and self._parser.derives_otherwise(rule):
            return Action(frozenset([rule]))
        return self._replacement(rule)

    def _replacement(self, rule: Rule) -> Action | None:
        """The new rule for a rule that makes the objective smallest, if any makes it smaller, and what then can go."""
        best, best_gain = None, 0.0
        objective = self._objective
        for gain, removed, new in self._by_size(rule):
            if self._options.quirks and gain <= best_gain:
                break
            # Summed exactly, so that the order of a set does not decide between two that gain the same.
            gain = fsum([gain, *map(objective.penalty, removed), -objective.penalty(new)])
            if gain > best_gain:
                best, best_gain = Action(removed, new), gain
        return best

    def _by_size(self, rule: Rule) -> list[tuple[float, frozenset[Rule], Rule]]:
        """New rules for a rule, with by how much they make the sum of sizes smaller and what could go; best first."""
        size = self._objective.size
        found = []
        for new in self._candidates(rule):
            removed = self._removed_by(new) | {rule}
            found.append((fsum([*map(size, removed), -size(new)]), removed, new))
        return sorted(found, key=lambda one: (-one[0], self._key(one[2])))

    def _candidates(self, rule: Rule) -> set[Rule]:
        """All rules with which, and one other of the grammar, a rule can be derived."""
        pairs = self._pairs.get(rule)
        partners = self._partners if pairs is None else self._new_partners
        later = [pair for pair in partners.unify(self._unification, rule) if self._may_come(pair[1], rule)]
        pairs = self._pairs[rule] = [*(pairs or ()), *later]
        return {new for partner, new in pairs if partner in self.grammar}

    def _may_come(self, new: Rule, rule: Rule) -> bool:
        # A unit rule x -> x lets a rule be derived from itself. The reference does not exclude that.
        return new != rule and (self._checker is None or self._checker.allows(new.target))

    def _removed_by(self, new: Rule) -> frozenset[Rule]:
        """Rules that can be derived with a new rule and one of the grammar.

        They are sought among the shortest rules that the new one occurs in. Of equally short ones the reference takes
        any, which now and then matters; here those go first whose target does, which gives the clean grammar for SCAN.
        """
        found = self._removable.get(new)
        if found is None:
            holders = self._catalog.shortest(self._catalog.holders(new), _MOST_REMOVED)
            found = frozenset(
                one for one in holders if one not in self.seeds and not self.grammar.isdisjoint(self._unify(one, new))
            )
            self._removable[new] = found
        return found

    def _unify(self, rule: Rule, new: Rule) -> set[Rule]:
        found = self._unified.get((rule, new))
        if found is None:
            found = self._unified[rule, new] = self._unification.unify(rule, new)
        return found


class _Catalog:
    """Rules by numbers, in the order in which they came into the grammar; sets are bits of an int."""

    def __init__(self, key: Callable[[Rule], Key]) -> None:
        """With what says the order of rules."""
        self._key = key
        self._rules: list[Rule] = []
        self._numbers: dict[Rule, int] = {}
        self._present = 0
        self._sources, self._targets = Occurrences(), Occurrences()
        self._holders: dict[Rule, tuple[int, int]] = {}

    def add(self, rules: Iterable[Rule]) -> None:
        """Put rules in that are not in; one that was in before gets another number."""
        for rule in rules:
            self._numbers[rule] = len(self._rules)
            self._present |= 1 << len(self._rules)
            self._rules.append(rule)
            self._sources.add(rule.source)
            self._targets.add(rule.target)

    def remove(self, rules: Iterable[Rule]) -> None:
        self._present &= ~self.numbers(rules)

    def rules(self, numbers: int) -> list[Rule]:
        return [self._rules[number] for number in bits(numbers)]

    def numbers(self, rules: Iterable[Rule]) -> int:
        return sum(1 << self._numbers[rule] for rule in rules)

    def among(self, rule: Rule, numbers: int) -> int:
        """In which of some rules both sides of a rule occur, on their sides."""
        return self._targets.of(rule.target, self._sources.of(rule.source, numbers))

    def holders(self, rule: Rule) -> int:
        """In which rules that are in both sides of a rule occur, on their sides."""
        known, count = self._holders.get(rule, (0, 0))
        if count < len(self._rules):
            known |= self.among(rule, self._present >> count << count)
            self._holders[rule] = known, len(self._rules)
        return known & self._present

    def shortest(self, numbers: int, count: int) -> list[Rule]:
        """Of some rules those of fewest tokens, and, of equally many, those first in order, by their targets."""
        some = self.rules(numbers)
        return some if len(some) <= count else heapq.nsmallest(count, some, key=self._target_first)

    def _target_first(self, rule: Rule) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
        source, target = self._key(rule)
        return rule.length, target, source
