"""Induction of a grammar from examples (Qiu et al. 2022, section 3.1.4 and appendix B.3).

    G = seed rules, and NT -> <x, y> for each example
    until nothing changes, or for so many steps:
        for each rule r of G, all with the same G:
            a_max = remove r, if the other rules derive it
                    or else, of all r_add in UNIFY(r, r') with r' in G, what lowers L_D(G) most, if any does
        G = EXEC(G, all a_max) = G and all r_add, less all R_remove

The result depends on the examples alone, not on their order. Where there are many, several processes have the same G,
and each finds a_max for its share of the rules.
"""

import functools
import gc
import math
import multiprocessing
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate, islice, pairwise
from typing import NamedTuple

from pydantic import Field

from compgen.copies import Copies, copies
from compgen.csl.charts import Parser
from compgen.csl.objective import Objective
from compgen.csl.occurrences import Occurrences, bits, number_of, occurs
from compgen.csl.rules import Alphabet, Grammar, Rule, examples
from compgen.csl.targets import TargetGrammar
from compgen.csl.unify import Partners, Unification
from compgen.data.examples import Dataset
from compgen.errors import DataError
from compgen.processors import cores

Key = tuple[tuple[str, ...], tuple[str, ...]]

_MOST_REMOVED = 10  # candidates for R_remove, besides r itself
_EACH = 2_000  # examples that make another process worth the second of its start
_ENDS = 3  # last tokens of a source, by which rules are divided among processes
_MOST_PROCESSES = 8  # of more, each would do little besides what all have to do


class Options(Unification):
    """How a grammar is induced; the defaults are for GeoQuery."""

    repeated_targets: bool = Field(False, description=Unification.model_fields["repeated_targets"].description)
    bare_targets: bool = Field(False, description=Unification.model_fields["bare_targets"].description)
    quirks: bool = Field(
        True,
        description="Search as the reference does: UNIFY is restricted, and new rules are tried from the largest gain "
        "in size on, until the gain in size is at most the best total gain so far. That may miss better rules, because "
        "removed rules take their penalties with them.",
    )
    terminal_size: float = Field(8, ge=0, description="The size of a terminal; that of a nonterminal is 1.")
    source_given_target: float = Field(
        4,
        ge=0,
        description="k_alpha, for logarithms to base 2: what a rule costs whose target occurs without its source.",
    )
    target_given_source: float = Field(
        16,
        ge=0,
        description="k_beta, for logarithms to base 2: what a rule costs whose source occurs without its target.",
    )
    partitions: int = Field(
        1,
        ge=1,
        description="The number of parts in which examples are added, those with the shortest sources first.",
    )
    steps: int = Field(20, ge=0, description="The most steps for each part.")
    repetitions: bool = Field(True, description="Keep examples that are in the data more than once.")


@dataclass(frozen=True)
class Step:
    """What a step did: the part of the examples, the numbers of rules added and removed, and that of rules after it."""

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
    processes: int | None = None,
) -> tuple[Grammar, list[Step]]:
    """Return a grammar that derives the examples of a dataset, and the steps of its induction.

    Seed rules stay, and are the only source of unit rules. With a target grammar, the target of each new rule is a part
    of a well-formed target. `watch` is called after each step. The grammar is the same by any number of processes,
    which by default depends on that of examples and on `cores`.

    Raises:
        DataError: an example has an empty side, or a token that no rule can have; or a seed rule is NT_1 -> NT_1.
        UserError: one of several processes was ended.
    """
    alphabet, rules = examples(dataset, seeds)
    given = [] if seeds is None else seeds.moved(alphabet)
    if Rule("\1", "\1") in given:
        raise DataError("found the seed rule 'NT_1 ### NT_1', expected none: its derivations would be endless")
    count = _processes(len(dataset)) if processes is None else processes
    make = functools.partial(Induction, alphabet, given, options, targets)
    own, *shares = (functools.partial(make, (share, count)) for share in range(count))
    shares = [functools.partial(_uncollected, one) for one in shares]
    steps = []
    with _without_collection(), copies(shares) as others:
        induction = own()
        for part, some in enumerate(_parts(rules, alphabet, options)):
            others.call("add_examples", some)
            induction.add_examples(some)
            for _ in range(options.steps):
                removed, added = _step(induction, others)
                steps.append(Step(part, added, removed, len(induction.grammar)))
                watch(steps[-1])
                if not added and not removed:
                    break
    return Grammar.of(alphabet, induction.grammar), steps


def _processes(examples: int) -> int:
    """Return how many processes are worth their start; 1 if this process is one of several itself."""
    if multiprocessing.parent_process() is not None:
        return 1
    return max(1, min(cores(), examples // _EACH, _MOST_PROCESSES))


def _step(induction: "Induction", others: Copies) -> tuple[int, int]:
    """Execute the best action of each rule, in all processes; return how many rules that removed and added."""
    others.call("choose")
    changes = [induction.choose(), *others.results()]
    removed, added = (set[Rule]().union(*some) for some in zip(*changes, strict=True))
    others.call("execute", removed, added)
    induction.execute(removed, added)
    return len(removed), len(added)


def _uncollected(make: Callable[[], "Induction"]) -> "Induction":
    """Make an induction in a process that looks for no garbage from now on, either."""
    gc.disable()
    return make()


@contextmanager
def _without_collection() -> Iterator[None]:
    """Look for no cycles of garbage: there are none, and going through millions of rules took a sixth of the time."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _parts(rules: list[Rule], alphabet: Alphabet, options: Options) -> Iterator[list[Rule]]:
    """Yield the examples, those of fewest characters first, in nearly equal parts; the first are larger by one."""
    some = rules if options.repetitions else set(rules)
    texts = {rule: tuple(" ".join(side) for side in alphabet.key(rule)) for rule in some}
    ordered = sorted(some, key=lambda rule: (len(texts[rule][0]), *texts[rule]))
    size, larger = divmod(len(ordered), options.partitions)
    sizes = [size + (part < larger) for part in range(options.partitions)]
    yield from (ordered[start:stop] for start, stop in pairwise(accumulate(sizes, initial=0)))


class Action(NamedTuple):
    """R_remove, the rules that go, and r_add, the rule that comes, if any."""

    removed: frozenset[Rule]
    added: Rule | None = None


class Induction:
    """A grammar G during induction.

    Facts about rules that stay true while the grammar changes are kept: a rule that could not be derived can be only by
    a rule that is new, and UNIFY of two rules does not depend on others.
    """

    def __init__(
        self,
        alphabet: Alphabet,
        seeds: Iterable[Rule],
        options: Options,
        targets: TargetGrammar | None = None,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        """Begin with seed rules. With `share` (i, n), `choose` looks at share i of n of the rules, counted from 0."""
        self._share, self._shares = share
        self._options = options
        self._key = functools.cache(alphabet.key)
        self.seeds = frozenset(seeds)
        self.grammar: set[Rule] = set()
        self._objective = Objective(options.terminal_size, options.source_given_target, options.target_given_source)
        self._checker = None if targets is None else targets.checker(alphabet)
        self._new: set[Rule] = set()  # since the last step
        self._pairs: dict[Rule, list[tuple[Rule, Rule]]] = {}  # for a rule that others do not derive, (r', r_add)
        self._unify = functools.cache(options.unify)
        self._enter(self.seeds)

    def add_examples(self, rules: Iterable[Rule]) -> None:
        """Add examples, rules without nonterminals, to D and to G."""
        rules = [*rules]
        self._objective.add_examples(rules)
        self._enter(rules)

    def choose(self) -> tuple[set[Rule], set[Rule]]:
        """Return the rules that are removed and those that are added by the best action of each rule of the share."""
        self._begin_step()
        mine = filter(self._is_mine, self.grammar - self.seeds)
        actions = [action for rule in mine if (action := self._action(rule)) is not None]
        removed = set[Rule]().union(*(action.removed for action in actions))
        # A rule that one action would add and that is there already goes if another action removes it.
        added = {action.added for action in actions if action.added is not None} - self.grammar
        return removed, added

    def execute(self, removed: set[Rule], added: set[Rule]) -> None:
        """Change the grammar as was chosen."""
        self.grammar -= removed
        self._new.clear()
        self._enter(added)

    def _is_mine(self, rule: Rule) -> bool:
        # Rules that end alike make many of the same new rules, which only one process then has to weigh.
        return zlib.crc32(rule.source[-_ENDS:].encode("utf-8", "surrogatepass")) % self._shares == self._share

    def _enter(self, rules: Iterable[Rule]) -> None:
        new = set(rules) - self.grammar
        self.grammar |= new
        self._new |= new

    def _begin_step(self) -> None:
        """Index the grammar as it is: no rule's action depends on those of others."""
        self._catalog, self._parser = _Catalog(self.grammar, self._key), Parser(self.grammar)
        self._partners, self._new_partners = Partners(self.grammar), Partners(self._new)
        settled = self._catalog.numbers(self.grammar & self._pairs.keys())
        for rule in sorted(self._new, key=lambda rule: rule.length):  # short ones occur in most
            settled ^= self._catalog.among(rule, settled)
        self._settled = {*self._catalog.rules(settled)}  # not derived before, nor now
        self._removable: dict[Rule, frozenset[Rule]] = {}

    def _action(self, rule: Rule) -> Action | None:
        if rule not in self._settled and self._parser.derives_otherwise(rule):
            return Action(frozenset([rule]))
        return self._replacement(rule)

    def _replacement(self, rule: Rule) -> Action | None:
        """Return a_max = argmin over actions a of L_D(EXEC(G, a)), or None if no action lowers L_D(G)."""
        best, best_gain = None, 0.0
        objective = self._objective
        for gain, removed, new in self._by_size(rule):
            if self._options.quirks and gain <= best_gain:
                break
            # math.fsum is exact, so that the order of a set does not decide between equal gains.
            gain = math.fsum([gain, *map(objective.penalty, removed), -objective.penalty(new)])
            if gain > best_gain:
                best, best_gain = Action(removed, new), gain
        return best

    def _by_size(self, rule: Rule) -> list[tuple[float, frozenset[Rule], Rule]]:
        """Return the actions for a rule: how much they lower the sum of sizes, R_remove and r_add; best first."""
        size = self._objective.size
        found = []
        for new in self._candidates(rule):
            removed = self._removed_by(new) | {rule}
            found.append((math.fsum([*map(size, removed), -size(new)]), removed, new))
        return sorted(found, key=lambda one: (-one[0], self._key(one[2])))

    def _candidates(self, rule: Rule) -> set[Rule]:
        """Return all r_add in UNIFY(rule, r') for r' in G."""
        pairs = self._pairs.get(rule)
        partners = self._partners if pairs is None else self._new_partners
        later = [pair for pair in partners.unify(self._options, rule) if self._may_come(pair[1], rule)]
        pairs = self._pairs[rule] = [*(pairs or ()), *later]
        return {new for partner, new in pairs if partner in self.grammar}

    def _may_come(self, new: Rule, rule: Rule) -> bool:
        # A unit rule x -> x lets a rule be derived from itself. The reference does not exclude that.
        return new != rule and (self._checker is None or self._checker.allows(new.target))

    def _removed_by(self, new: Rule) -> frozenset[Rule]:
        """Return the rules that a new rule and one of G derive, of the shortest rules that the new one occurs in.

        Among equally short rules the reference takes any, which now and then matters. Here the order of targets
        decides, which gives the clean grammar for SCAN.
        """
        found = self._removable.get(new)
        if found is None:
            holders = self._catalog.shortest(new, _MOST_REMOVED)
            found = frozenset(
                one for one in holders if one not in self.seeds and not self.grammar.isdisjoint(self._unify(one, new))
            )
            self._removable[new] = found
        return found


class _Catalog:
    """The rules of a grammar, numbered from the shortest on; sets of numbers are bits of an int.

    The order of their targets decides between equally short rules.
    """

    def __init__(self, rules: Iterable[Rule], key: Callable[[Rule], Key]) -> None:
        def target_first(rule: Rule) -> tuple[int, tuple[str, ...], tuple[str, ...]]:
            source, target = key(rule)
            return rule.length, target, source

        self._rules = sorted(rules, key=target_first)
        self._numbers = {rule: number for number, rule in enumerate(self._rules)}
        self._sources, self._targets = Occurrences(), Occurrences()
        for rule in self._rules:
            self._sources.add(rule.source)
            self._targets.add(rule.target)

    def rules(self, numbers: int) -> list[Rule]:
        return [self._rules[number] for number in bits(numbers)]

    def numbers(self, rules: Iterable[Rule]) -> int:
        return number_of(sorted(self._numbers[rule] for rule in rules))

    def among(self, rule: Rule, numbers: int) -> int:
        """Return the numbers, among some, of the rules that both sides of a rule occur in."""
        return self._targets.of(rule.target, self._sources.of(rule.source, numbers))

    def shortest(self, rule: Rule, count: int) -> list[Rule]:
        """Return the `count` shortest rules that both sides of a rule occur in, fewer if there are fewer."""
        likely = self._sources.likely(rule.source) & self._targets.likely(rule.target)
        some = map(self._rules.__getitem__, bits(likely))
        found = (one for one in some if occurs(rule.source, one.source) and occurs(rule.target, one.target))
        return [*islice(found, count)]
