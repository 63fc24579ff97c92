"""Atoms and compounds of examples, and the divergence of two parts of a dataset in them (Keysers et al. 2020).

*Atoms* are what an example is made of, *compounds* the ways in which it is put together. A split asks for
compositional generalisation if its parts are alike in atoms and differ in compounds. Two inventories define both:
`Trees` for targets with brackets (Shaw et al. 2021), `Ngrams` for any sequence of tokens. They count every occurrence;
Keysers et al. weight rule applications by how much of their context is fixed, which needs derivations.
"""

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from compgen.data.brackets import CLOSING, labelled
from compgen.data.examples import Dataset
from compgen.errors import DataError, tell

Side = Literal["source", "target"]
Bag = Counter[Hashable]
ATOM_ALPHA = 0.5
COMPOUND_ALPHA = 0.1  # a test compound that is rare in training counts for much less than one that is absent
_OPEN, _CLOSE, _COMMA = "(", ")", ","


@dataclass(frozen=True)
class Trees:
    """Function applications in targets such as `answer ( most ( state , loc_1 , city ) )`; brackets are tokens.

    Atoms are the tokens other than brackets and commas, each with its number of arguments if `arity` (Qiu et al. 2022;
    plain tokens are those of Shaw et al. 2021). A compound is (function, number of arguments, position, head of the
    argument there): `most` above has three. The head is all that an argument has outside its brackets, so labels as in
    `eat ( agent = dog )` belong to it. A bracket without a name before it is a function without a name; one with a
    label is named by it: `[SL:TASK buy milk ]` is `[SL:TASK ( buy milk )`. Brackets that do not match are a DataError,
    which says in which target.
    """

    arity: bool = True

    def atoms(self, dataset: Dataset) -> list[Bag]:
        """Return the atoms of each target."""
        return [Counter(tree.names if self.arity else [name for name, _ in tree.names]) for tree in _trees(dataset)]

    def compounds(self, dataset: Dataset) -> list[Bag]:
        """Return the compounds of each target."""
        return [
            Counter((name, len(heads), *argument) for name, heads in tree.applications for argument in enumerate(heads))
            for tree in _trees(dataset)
        ]


@dataclass(frozen=True)
class Ngrams:
    """For sequences without brackets: atoms are the tokens of one side, compounds its n-grams of 2 to `longest`."""

    side: Side = "source"
    longest: int = 3

    def __post_init__(self) -> None:
        """Raise DataError for n-grams that are no compounds."""
        if self.longest < 2:
            raise DataError(f"n-grams of at most {self.longest} tokens are no compounds: expected 2 or more")

    def atoms(self, dataset: Dataset) -> list[Bag]:
        """Return the tokens of each example's side."""
        return [Counter(tokens) for tokens in dataset.frame[self.side].to_list()]

    def compounds(self, dataset: Dataset) -> list[Bag]:
        """Return the n-grams of each example's side; a side of one token has none."""
        return [
            Counter(
                tuple(tokens[start : start + length])
                for length in range(2, self.longest + 1)
                for start in range(len(tokens) - length + 1)
            )
            for tokens in dataset.frame[self.side].to_list()
        ]


Inventory = Trees | Ngrams
INVENTORY = "Trees() or Ngrams() of compgen.data.compounds"  # what is expected, in messages


def bracketed(dataset: Dataset) -> bool:
    """Whether most distinct targets have brackets for tokens, which match: a few, as in SQL, make no trees."""
    distinct = [*dict.fromkeys(map(tuple, dataset.frame["target"].to_list()))]
    return 2 * sum(map(_nests, _plain(distinct))) > len(distinct)


def _nests(target: Sequence[str]) -> bool:
    try:
        return bool(_tree(target).applications)
    except ValueError:
        return False


def usual_inventory(dataset: Dataset) -> Inventory:
    """Return `Trees` if most distinct targets have brackets that match, else `Ngrams` of the sources."""
    return Trees() if bracketed(dataset) else Ngrams()


def remark_on_few(compounds: Iterable[Bag]) -> None:
    """Warn if there are fewer than two compounds, in which parts cannot differ."""
    if (count := len(set[Hashable]().union(*compounds))) < 2:
        found = "one compound" if count else "no compounds"
        tell(
            f"found {found} in all examples, so divergences mean nothing: choose others (--compounds of `cgen data "
            "split tmcd` and `cgen data divergence`: tree, source or target)"
        )


@dataclass(frozen=True)
class Divergences:
    """How far two parts are apart: divergences, distinct items of the test part, and those that training lacks.

    A divergence is 1 less the Chernoff coefficient, the sum over k of p_k^alpha q_k^(1 - alpha); p and q are relative
    frequencies in train and test, alpha is ATOM_ALPHA or COMPOUND_ALPHA (Keysers et al. 2020, section 2.2). 0: the same
    frequencies; 1: nothing in common.
    """

    atoms: float
    compounds: float
    test_atoms: int
    unseen_atoms: int
    test_compounds: int
    unseen_compounds: int


def measure(train: Dataset, test: Dataset, inventory: Inventory) -> Divergences:
    """Return both divergences of a split, and what of the test part training does not have."""
    atoms = _compare(inventory.atoms(train), inventory.atoms(test), ATOM_ALPHA)
    compounds = _compare(inventory.compounds(train), inventory.compounds(test), COMPOUND_ALPHA)
    return Divergences(atoms[0], compounds[0], *atoms[1:], *compounds[1:])


def _compare(train: Iterable[Bag], test: Iterable[Bag], alpha: float) -> tuple[float, int, int]:
    known, wanted = _total(train), _total(test)
    return _divergence(known, wanted, alpha), len(wanted), len(wanted.keys() - known.keys())


def _total(bags: Iterable[Bag]) -> Bag:
    total: Bag = Counter()
    for bag in bags:
        total.update(bag)
    return total


def _divergence(p: Bag, q: Bag, alpha: float) -> float:
    if not (p and q):
        raise DataError(f"found nothing to compare in the {'test' if p else 'training'} part")
    # In the order of the training part: sums of floats in the order of a set would change with the hash seed.
    shared = math.fsum(p[item] ** alpha * q[item] ** (1 - alpha) for item in p if item in q)
    whole: float = p.total() ** alpha * q.total() ** (1 - alpha)
    return max(1 - shared / whole, 0.0)  # of equal frequencies, rounding may leave a little less than 0


class _Tree(NamedTuple):
    """The parts of a target: tokens with their numbers of arguments, and functions with the heads of theirs."""

    names: list[tuple[str, int]]
    applications: list[tuple[str, list[str]]]


def _trees(dataset: Dataset) -> Iterator[_Tree]:
    targets = dataset.frame["target"].to_list()
    for target, plain in zip(targets, _plain(targets), strict=True):
        try:
            yield _tree(plain)
        except ValueError as error:
            raise DataError(
                f"{error} in the target {' '.join(target)!r:.200}; `cgen check` lists all such examples, "
                "and its --fix writes the data without them"
            ) from None


def _plain(targets: Sequence[Sequence[str]]) -> Sequence[Sequence[str]]:
    """Return the targets, with `[f ( x )` for `[f x ]` where brackets have labels."""
    labels = labelled({token for target in targets for token in target})
    if not labels:
        return targets
    kinds = {label[0] for label in labels}
    written = {label: [label, _OPEN] for label in labels} | {kind: [_OPEN] for kind in kinds}
    written |= {closing: [_CLOSE] for closing, opening in CLOSING.items() if opening in kinds}
    return [[one for token in target for one in written.get(token, [token])] for target in targets]


def _tree(target: Sequence[str]) -> _Tree:
    """Return the parts of a target; raise ValueError if brackets do not match."""
    tree = _Tree([], [])
    # For each open bracket: where in `names` its function is, if it has a name, and its arguments' tokens.
    open_: list[tuple[int | None, list[list[str]]]] = [(None, [[]])]
    previous = _COMMA
    for token in target:
        if token == _OPEN:
            named = previous not in (_OPEN, _CLOSE, _COMMA)
            open_.append((len(tree.names) - 1 if named else None, [[]]))
        elif token == _CLOSE:
            if len(open_) == 1:
                raise ValueError("found a closing bracket, expected an opening one before it")
            place, arguments = open_.pop()
            # An argument that is brackets alone has no head, but is one: `f ( ( a ) )` is not `f ( )`.
            heads = [] if previous == _OPEN else [" ".join(argument) for argument in arguments]
            name = "" if place is None else tree.names[place][0]
            if place is not None:
                tree.names[place] = (name, len(heads))
            tree.applications.append((name, heads))
        elif token == _COMMA:
            open_[-1][1].append([])
        else:
            open_[-1][1][-1].append(token)
            tree.names.append((token, 0))
        previous = token
    if len(open_) > 1:
        raise ValueError(f"open brackets at the end: {len(open_) - 1}, expected a closing one for each")
    return tree
