"""COGS targets from one form to the other: logical forms, and those without variables (Qiu et al., NAACL 2022).

    A dog wanted to run .    dog ( x_1 ) AND want . agent ( x_2 , x_1 ) AND want . xcomp ( x_2 , x_4 ) AND
                             run . agent ( x_4 , x_1 )
                             want ( agent = dog , xcomp = run ( agent = dog ) )

Each node of the second form is a word of the sentence, and the form tells in which order, so the way back needs the
sentence. It restores the published logical forms of all sentences to the letter. What a single word means, it cannot:
the second form of `shark` and of `run` is the word itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import get_args

import polars as pl

from compgen.data.cogs import Form
from compgen.data.examples import TOKENS, Dataset
from compgen.errors import DataError, UserError

_TOP = "LAMBDA"  # what the logical forms of single nouns and verbs begin with
_CLAUSES = (("ccomp",), ("xcomp",))
_SHARED = ("xcomp",)  # whose first argument is that of the verb above
# Words of sentences that no node stands for, in any case.
_LITTLE = frozenset(["the", "a", "was", "by", "to", "that", "in", "on", "beside", "."])
_DEEPEST = 100  # nodes one below another; sentences of COGS have far fewer
_MARKS = frozenset("(),=.*;")
_TERM = "'label . label ( x_1 , x_2 )' or '* label ( x_1 )'"
_NODE = "'name ( label = node , ... )', with or without arguments, and with * before a name that has 'the'"

Label = tuple[str, ...]


@dataclass(eq=False)
class _Node:
    """A noun, a name or a verb, and what hangs on it.

    Attributes:
        word: its label.
        definite: whether it has a star.
        edges: labels and nodes below, in order.
    """

    word: str = ""
    definite: bool = False
    edges: list[tuple[Label, "_Node"]] = field(default_factory=list)

    @property
    def named(self) -> bool:
        """Whether it is a person's name, which has no variable."""
        return not self.definite and self.word[:1].isupper()


def variable_free(source: Sequence[str], target: Sequence[str]) -> list[str]:
    """The variable-free form of a logical form, whose variables may be written `x_1` or `x _ 1`.

    Of a sentence of one word, it is that word.

    Raises:
        DataError: the target is no logical form, or not one of a tree: not just one node is below none; or it is that
            of a single word, and the sentence has more.
    """
    tokens = " ".join(target).replace(" _ ", "_").split()
    if len(tokens) == 1 or tokens[:1] == [_TOP]:
        if len(source) != 1:
            raise DataError(f"found {' '.join(tokens)!r:.80}, the form of a single word, for {len(source)} words")
        return list(source)
    return _written(_root(_terms(tokens)), ())


def logical_form(source: Sequence[str], target: Sequence[str]) -> list[str]:
    """The logical form of a sentence, given its variable-free form; the variable of word k is the token `x_k`.

    Raises:
        DataError: the target is not in the variable-free form; it has not as many nodes as the sentence has words that
            nodes stand for; or the sentence is a single noun or verb, whose meaning that form does not tell.
    """
    if len(source) == 1 and list(target) == list(source):
        if source[0][:1].isupper():
            return list(source)
        raise DataError(f"found the single word {source[0]!r}, expected a sentence or a name: its class is not told")
    root = _Reader(target).whole()
    walk = _Walk()
    walk.verb(root)
    places = [place for place, word in enumerate(source) if word.lower() not in _LITTLE]
    if len(places) != len(walk.order):
        raise DataError(
            f"found {len(walk.order)} nodes in {' '.join(target)!r:.120}, expected {len(places)}, one for each noun, "
            f"name and verb of {' '.join(source)!r:.120}"
        )
    variables = {id(node): f"x_{place}" for node, place in zip(walk.order, places, strict=True)}
    return _spelled(walk, variables)


def converted(dataset: Dataset, form: str, name: str, keep: bool = False) -> tuple[Dataset, int]:
    """A dataset, which errors call `name`, with targets in a form, from the other one.

    With `keep`, targets that cannot be converted stay as they are.

    Returns:
        the dataset, and how many targets were not converted.

    Raises:
        UserError: there is no such form.
        DataError: a target cannot be converted, and `keep` is not asked for; the message says which example's.
    """
    if form not in get_args(Form):
        raise UserError(f"no form {form!r}: expected {' or '.join(get_args(Form))}")
    convert = logical_form if form == "lf" else variable_free
    targets, kept = [], 0
    for number, (source, target) in enumerate(dataset.pairs(), 1):
        try:
            targets.append(convert(source, target))
        except DataError as error:
            if not keep:
                raise DataError(f"{name}, example {number}: {error}") from None
            targets.append(target)
            kept += 1
    return Dataset(dataset.frame.with_columns(target=pl.Series(targets, dtype=TOKENS))), kept


class _Walk:
    """The nodes of a tree in the order of the sentence's words.

    Attributes:
        order: the nodes.
        same: for a node that is a copy, the one it is a copy of, by `id`.
        verbs: which of the nodes are verbs, by `id`.
    """

    def __init__(self) -> None:
        self.order: list[_Node] = []
        self.same: dict[int, _Node] = {}
        self.verbs: set[int] = set()

    def verb(self, node: _Node, subject: _Node | None = None) -> None:
        """A verb behind its first argument, if that is no clause, and before the others.

        Where the verb above shares its subject, that is the first argument, and comes no second time.
        """
        self.verbs.add(id(node))
        later = node.edges
        if later and later[0][0] not in _CLAUSES:
            first, later = later[0][1], later[1:]
            if subject is None:
                self.noun(first)
            elif _written(first, ()) != _written(subject, ()):
                raise DataError(
                    f"found {first.word!r} as the subject of {node.word!r}, expected {subject.word!r}, which it shares"
                )
            else:
                self.same[id(first)] = subject
        self.order.append(node)
        for label, child in later:
            if label not in _CLAUSES:
                self.noun(child)
            elif label == _SHARED and node.edges[0][1] is not child:
                self.verb(child, self.original(node.edges[0][1]))
            else:
                self.verb(child)

    def noun(self, node: _Node) -> None:
        """A noun or a name, and then what it is `in`, `on` or `beside`."""
        self.order.append(node)
        for _, child in node.edges:
            self.noun(child)

    def original(self, node: _Node) -> _Node:
        """The node itself, or the one it is a copy of."""
        return self.same.get(id(node), node)


def _spelled(walk: _Walk, variables: dict[int, str]) -> list[str]:
    """The logical form: nouns with a star, then the terms of each node in the order of the walk."""

    def argument(node: _Node) -> str:
        node = walk.original(node)
        return node.word if node.named else variables[id(node)]

    nouns = [node for node in walk.order if id(node) not in walk.verbs]
    stars = [["*", node.word, "(", argument(node), ")", ";"] for node in nouns if node.definite]
    terms = []
    for node in walk.order:
        own = variables[id(node)]
        if id(node) not in walk.verbs and not node.definite and not node.named:
            terms.append([node.word, "(", own, ")"])
        for label, child in node.edges:
            terms.append([*_dotted((node.word, *label)), "(", own, ",", argument(child), ")"])
    if not terms:
        raise DataError(f"found {walk.order[-1].word!r} without arguments, expected a verb with some")
    return [*(token for star in stars for token in star), *_joined(terms, "AND")]


def _dotted(label: Iterable[str]) -> list[str]:
    return " . ".join(label).split()


def _written(node: _Node, above: tuple[_Node, ...]) -> list[str]:
    """The variable-free form of a node and all below it."""
    if node in above:
        raise DataError(f"found {node.word!r} below itself, expected a tree")
    _check_depth(len(above))
    word = ["*", node.word] if node.definite else [node.word]
    if not node.edges:
        return word
    parts = [[*_dotted(label), "=", *_written(child, (*above, node))] for label, child in node.edges]
    return [*word, "(", *_joined(parts, ","), ")"]


def _check_depth(above: int) -> None:
    """Raise DataError below so many nodes that walks down the tree might not come back."""
    if above >= _DEEPEST:
        raise DataError(f"found more than {_DEEPEST} nodes one below another, expected no more")


def _joined(parts: Iterable[Sequence[str]], mark: str) -> list[str]:
    """All parts, with a mark between one and the next."""
    return [token for part in parts for token in (*part, mark)][:-1]


class _Reader:
    """Reads the variable-free form."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens, self._at = tokens, 0

    def whole(self) -> _Node:
        node = self._node()
        if self._at < len(self._tokens):
            self._wrong("the end")
        return node

    def _node(self, above: int = 0) -> _Node:
        _check_depth(above)
        definite = self._take("*")
        node = _Node(self._word(), definite)
        if self._take("("):
            node.edges.append(self._edge(above + 1))
            while self._take(","):
                node.edges.append(self._edge(above + 1))
            if not self._take(")"):
                self._wrong("',' or ')'")
        return node

    def _edge(self, above: int) -> tuple[Label, _Node]:
        label = [self._word()]
        while self._take("."):
            label.append(self._word())
        if not self._take("="):
            self._wrong("'='")
        return tuple(label), self._node(above)

    def _word(self) -> str:
        if self._at == len(self._tokens) or self._tokens[self._at] in _MARKS:
            self._wrong("a word")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, mark: str) -> bool:
        found = self._at < len(self._tokens) and self._tokens[self._at] == mark
        self._at += found
        return found

    def _wrong(self, expected: str) -> None:
        found = repr(self._tokens[self._at]) if self._at < len(self._tokens) else "the end"
        text = " ".join(self._tokens)
        raise DataError(f"{text!r:.120}: found {found} as token {self._at + 1}, expected {expected}; the form: {_NODE}")


@dataclass(frozen=True)
class _Term:
    """A term of a logical form: what one argument is, or (then `label` is not empty) what it is to the other."""

    word: str
    definite: bool
    label: Label
    arguments: tuple[str, ...]


def _terms(tokens: Sequence[str]) -> list[_Term]:
    cut: list[list[str]] = [[]]
    for token in tokens:
        if token in (";", "AND"):
            cut.append([])
        else:
            cut[-1].append(token)
    return [_term(part) for part in cut]


def _term(tokens: Sequence[str]) -> _Term:
    definite = tokens[:1] == ["*"]
    middle = tokens.index("(") if "(" in tokens else len(tokens)
    words, dots = tokens[definite:middle:2], tokens[definite + 1 : middle : 2]
    inside = tokens[middle + 1 : -1]
    arguments, commas = inside[::2], inside[1::2]
    shaped = tokens[-1:] == [")"] and len(words) == len(dots) + 1 and len(arguments) == len(commas) + 1
    known = _MARKS.isdisjoint((*words, *arguments)) and {*dots} <= {"."} and {*commas} <= {","}
    # What has one argument is a noun; only a relation has two.
    if not (shaped and known and len(arguments) == min(len(words), 2) and (not definite or len(words) == 1)):
        raise DataError(f"found the term {' '.join(tokens)!r:.80}, expected {_TERM}")
    return _Term(words[0], definite, tuple(words[1:]), tuple(arguments))


def _root(terms: Iterable[_Term]) -> _Node:
    """The node that is below no other."""
    nodes: dict[str, _Node] = {}
    below: set[int] = set()
    for term in terms:
        node = _called(nodes, term.arguments[0], term.word, term.definite)
        if term.label:
            child = _called(nodes, term.arguments[1])
            node.edges.append((term.label, child))
            below.add(id(child))
    for name, node in nodes.items():
        node.word = node.word or name  # a person's name stands for itself
        if node.word.startswith("x_"):
            raise DataError(f"found the variable {name} without a noun or verb, expected a term that begins with one")
    roots = [node for node in nodes.values() if id(node) not in below]
    if len(roots) != 1:
        some = ", ".join(repr(node.word) for node in roots[:3]) or "none"
        raise DataError(f"found {len(roots)} nodes that are below no other ({some}), expected one: the main verb")
    # What goes round in a circle apart from it is below something, and would be lost.
    reached, waiting = {id(roots[0])}, [roots[0]]
    while waiting:
        new = [child for _, child in waiting.pop().edges if id(child) not in reached]
        reached |= {id(child) for child in new}
        waiting += new
    lost = next((node for node in nodes.values() if id(node) not in reached), None)
    if lost is not None:
        raise DataError(f"found {lost.word!r} in a circle that is not below {roots[0].word!r}, expected a tree")
    return roots[0]


def _called(nodes: dict[str, _Node], argument: str, word: str = "", definite: bool = False) -> _Node:
    """The node of an argument, which a term may say the word of."""
    node = nodes.setdefault(argument, _Node())
    if word and node.word not in ("", word):
        raise DataError(f"found {argument} as {node.word!r} and as {word!r}, expected one of them")
    node.word = node.word or word
    node.definite |= definite
    return node
