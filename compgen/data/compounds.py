"""Atoms and compounds of examples, and how far two parts of a dataset are apart in them (Keysers et al. 2020).

*Atoms* are what examples are made of, *compounds* the ways in which it is put together. A split asks for
compositional generalisation if its parts are alike in atoms and differ in compounds. Two inventories say what these
are: `Trees` for targets with brackets (Shaw et al. 2021), `Ngrams` for any sequence of tokens. Both count every
occurrence: Keysers et al. weight rule applications by how much of their context is fixed, which needs derivations.
"""

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from compgen.data.examples import Dataset
from compgen.errors import DataError

Side = Literal["source", "target"]
Bag = Counter[Hashable]
ATOM_ALPHA = 0.5
COMPOUND_ALPHA = 0.1  # a test compound that training hardly has counts for much less than one that it does not have
_OPEN, _CLOSE, _COMMA = "(", ")", ","


class Inventory(Protocol):
    """What counts as an atom and as a compound: a bag for each example of a dataset, in order."""

    def atoms(self, dataset: Dataset) -> list[Bag]:
        """The atoms of each example."""
        ...

    def compounds(self, dataset: Dataset) -> list[Bag]:
        """The compounds of each example."""
        ...


@dataclass(frozen=True)
class Trees:
    """Function applications in targets such as `answer ( most ( state , loc_1 , city ) )`; brackets are tokens.

    Atoms are the tokens but for brackets and commas, each with its number of arguments if `arity` (as in Qiu et al.
    2022; plain tokens are those of Shaw et al. 2021). A compound is (function, number of arguments, position, head of
    the argument there): `most` above has three. The head is all that an argument has outside its brackets, so labels
    as in `eat ( agent = dog )` belong to it. A bracket without a name before it is a function without a name.
    """

    arity: bool = True

    def atoms(self, dataset: Dataset) -> list[Bag]:
        """The atoms of each target.

        Raises:
            DataError: brackets do not match; the message says in which example.
        """
        return [Counter(tree.names if self.arity else [name for name, _ in tree.names]) for tree in _trees(dataset)]

    def compounds(self, dataset: Dataset) -> list[Bag]:
        """The compounds of each target.

        Raises:
            DataError: brackets do not match; the message says in which example.
        """
        return [
            Counter(
                (name, len(heads), position, head)
                for name, heads in tree.applications
                for position, head in enumerate(heads)
            )
            for tree in _trees(dataset)
        ]


@dataclass(frozen=True)
class Ngrams:
    """Tokens and n-grams of one side, for sequences without brackets.

    Atoms are tokens, compounds the n-grams of 2 to `longest` tokens, those of all lengths together.
    """

    side: Side = "source"
    longest: int = 3

    def __post_init__(self) -> None:
        """Raise DataError for n-grams that are no compounds."""
        if self.longest < 2:
            raise DataError(f"n-grams of at most {self.longest} tokens are no compounds: expected 2 or more")

    def atoms(self, dataset: Dataset) -> list[Bag]:
        """The tokens of each example's side."""
        return [Counter(tokens) for tokens in self._sequences(dataset)]

    def compounds(self, dataset: Dataset) -> list[Bag]:
        """The n-grams of each example's side; a side of one token has none."""
        return [Counter(_ngrams(tokens, self.longest)) for tokens in self._sequences(dataset)]

    def _sequences(self, dataset: Dataset) -> list[list[str]]:
        return dataset.frame[self.side].to_list()


def bracketed(dataset: Dataset) -> bool:
    """Whether any target has a bracket for a token."""
    targets = dataset.frame["target"].list
    return bool((targets.contains(_OPEN) | targets.contains(_CLOSE)).any())


def usual_inventory(dataset: Dataset) -> Inventory:
    """`Trees` if any target has a bracket for a token, else `Ngrams` of the sources."""
    return Trees() if bracketed(dataset) else Ngrams()


def divergence(train: Dataset, test: Dataset, compounds: Callable[[Dataset], Iterable[Bag]], alpha: float) -> float:
    """How unlike two parts are: 1 less the Chernoff coefficient, the sum over k of p_k^alpha q_k^(1 - alpha).

    p and q are the relative frequencies in train and test of what `compounds` finds in a dataset, e.g.
    `Trees().compounds` or `Ngrams().atoms`. Keysers et al. (2020), section 2.2, have an alpha of 0.5 for atoms and of
    0.1 for compounds. 0: the same frequencies; 1: nothing in common.

    Raises:
        DataError: alpha is not between 0 and 1, or a part has nothing to compare.
    """
    if not 0 < alpha < 1:
        raise DataError(f"found alpha {alpha:g}, expected a number between 0 and 1")
    return _divergence(_total(compounds(train)), _total(compounds(test)), alpha)


@dataclass(frozen=True)
class Divergences:
    """How far two parts are apart.

    Attributes:
        atoms: divergence of atoms, alpha 0.5.
        compounds: divergence of compounds, alpha 0.1.
        test_atoms: distinct atoms of the test part.
        unseen_atoms: those that training does not have.
        test_compounds: distinct compounds of the test part.
        unseen_compounds: those that training does not have.
    """

    atoms: float
    compounds: float
    test_atoms: int
    unseen_atoms: int
    test_compounds: int
    unseen_compounds: int


def measure(train: Dataset, test: Dataset, inventory: Inventory) -> Divergences:
    """Both divergences of a split, and what of the test part training does not have.

    Raises:
        DataError: a part has no compounds to compare, or brackets do not match.
    """
    known, wanted = (_total(inventory.atoms(part)) for part in (train, test))
    atoms = _divergence(known, wanted, ATOM_ALPHA), len(wanted), len(wanted.keys() - known.keys())
    known, wanted = (_total(inventory.compounds(part)) for part in (train, test))
    compounds = _divergence(known, wanted, COMPOUND_ALPHA), len(wanted), len(wanted.keys() - known.keys())
    return Divergences(atoms[0], compounds[0], *atoms[1:], *compounds[1:])


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


def _ngrams(tokens: Sequence[str], longest: int) -> Iterator[tuple[str, ...]]:
    for length in range(2, min(longest, len(tokens)) + 1):
        for start in range(len(tokens) - length + 1):
            yield tuple(tokens[start : start + length])


@dataclass(frozen=True)
class _Tree:
    """A target taken apart: tokens with their numbers of arguments, and functions with the heads of theirs."""

    names: list[tuple[str, int]]
    applications: list[tuple[str, list[str]]]


def _trees(dataset: Dataset) -> Iterator[_Tree]:
    for number, target in enumerate(dataset.frame["target"].to_list(), 1):
        try:
            yield _tree(target)
        except ValueError as error:
            raise DataError(f"example {number}: {error} in the target {' '.join(target)!r}") from None


def _tree(target: Sequence[str]) -> _Tree:
    """Take a target apart, in one pass.

    Raises:
        ValueError: brackets do not match.
    """
    tree = _Tree([], [])
    # Of each bracket that is open: where in `names` its function is, if it has a name, and its arguments' tokens.
    open_: list[tuple[int | None, list[list[str]]]] = [(None, [[]])]
    previous = _COMMA
    for token in target:
        arguments = open_[-1][1]
        if token == _OPEN:
            named = previous not in (_OPEN, _CLOSE, _COMMA)
            open_.append((len(tree.names) - 1 if named else None, [[]]))
        elif token == _CLOSE:
            if len(open_) == 1:
                raise ValueError("found ')', expected a '(' before it")
            place, inside = open_.pop()
            # An argument that is brackets alone has no head, but is one: `f ( ( a ) )` is not `f ( )`.
            _close(tree, place, [] if previous == _OPEN else inside)
        elif token == _COMMA:
            arguments.append([])
        else:
            arguments[-1].append(token)
            tree.names.append((token, 0))
        previous = token
    if len(open_) > 1:
        raise ValueError(f"found {len(open_) - 1} of '(' that are not closed, expected a ')' for each")
    return tree


def _close(tree: _Tree, place: int | None, arguments: list[list[str]]) -> None:
    """Add to a tree the function that ends here."""
    heads = [" ".join(argument) for argument in arguments]
    name = ""
    if place is not None:
        name = tree.names[place][0]
        tree.names[place] = (name, len(heads))
    tree.applications.append((name, heads))
