"""COGS targets from one form to the other: logical forms, and those without variables (Qiu et al., NAACL 2022).

    A dog wanted to run .    dog ( x_1 ) AND want . agent ( x_2 , x_1 ) AND want . xcomp ( x_2 , x_4 ) AND
                             run . agent ( x_4 , x_1 )
                             want ( agent = dog , xcomp = run ( agent = dog ) )

Both are read as a tree of nouns, names and verbs. Each node is a word of the sentence, and the variable-free form gives
their order, so the way back needs the sentence. It restores the published logical forms of all sentences exactly, but
not the meaning of a single word: the variable-free form of `shark` and of `run` is the word itself.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import get_args

from compgen.data.cogs import Form
from compgen.data.examples import Dataset
from compgen.errors import DataError, UserError

_TOP = "LAMBDA"  # what the logical forms of single nouns and verbs begin with
_CLAUSES = ("ccomp", "xcomp")
_SHARED = "xcomp"  # a clause whose first argument is that of the verb above
# Words of sentences, in lower case, that no node stands for.
_LITTLE = frozenset(["the", "a", "was", "by", "to", "that", "in", "on", "beside", "."])
_DEEPEST = 100  # nodes one below another; sentences of COGS have far fewer
_MARKS = frozenset("(),=.*;")
_WORD = r"(?![(),=.*;](?: |$))[^ ]+"  # a token that is no mark
# What has one argument is a noun; only a relation has two.
_TERM = re.compile(
    rf"(?:(?P<star>\* )?(?P<noun>{_WORD}) \( (?P<itself>{_WORD}) \)"
    rf"|(?P<word>{_WORD}) \. (?P<label>{_WORD}(?: \. {_WORD})*) \( (?P<above>{_WORD}) , (?P<below>{_WORD}) \))"
)


@dataclass(eq=False)
class _Node:
    """A noun, a name or a verb, and what depends on it.

    Attributes:
        word: its label.
        definite: whether it has a star.
        edges: labels, such as `nmod . on`, and the nodes below, in order.
        verb: whether it is a verb; set by `_in_order`.
        same: the node that it is a copy of; set by `_in_order`.
    """

    word: str = ""
    definite: bool = False
    edges: list[tuple[str, "_Node"]] = field(default_factory=list)
    verb: bool = False
    same: "_Node | None" = None

    @property
    def named(self) -> bool:
        """Whether it is a person's name, which has no variable."""
        return not self.definite and self.word[:1].isupper()


def variable_free(source: Sequence[str], target: Sequence[str]) -> list[str]:
    """Return the variable-free form of a logical form, whose variables may be written `x_1` or `x _ 1`.

    That of a sentence of one word is the word.
    """
    tokens = " ".join(target).replace(" _ ", "_").split()
    if len(tokens) == 1 or tokens[:1] == [_TOP]:
        if len(source) != 1:
            raise DataError(f"found {' '.join(tokens)!r:.80}, the form of a single word, for {len(source)} words")
        return list(source)
    return _written(_tree(" ".join(tokens)), ()).split()


def logical_form(source: Sequence[str], target: Sequence[str]) -> list[str]:
    """Return the logical form of a sentence, given its variable-free form; the variable of word k is `x_k`."""
    if len(source) == 1 and list(target) == list(source):
        if source[0][:1].isupper():
            return list(source)
        raise DataError(f"found the single word {source[0]!r}, expected a sentence or a name: its class is not told")
    order = list(_in_order(_Reader(target).whole()))
    places = [place for place, word in enumerate(source) if word.lower() not in _LITTLE]
    if len(places) != len(order):
        raise DataError(
            f"found {len(order)} nodes in {' '.join(target)!r:.120}, expected {len(places)}, one for each noun, "
            f"name and verb of {' '.join(source)!r:.120}"
        )
    return _spelled({node: f"x_{place}" for node, place in zip(order, places, strict=True)}).split()


def converted(dataset: Dataset, form: str, name: str, keep: bool = False) -> tuple[Dataset, int]:
    """Return a dataset with its targets converted to a form, and how many were not converted.

    With `keep`, targets that cannot be converted stay as they are; otherwise they are an error, which calls the dataset
    `name`.
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
    return dataset.with_sides(target=targets), kept


def _in_order(verb: _Node, subject: _Node | None = None) -> Iterator[_Node]:
    """Yield the nodes of a clause in the order of the sentence: the first argument, if no clause, the verb, the others.

    Where the verb above shares its subject, that is the first argument, which the sentence does not repeat.
    """
    verb.verb = True
    first, later = None, verb.edges
    if later and later[0][0] not in _CLAUSES:
        first, later = later[0][1], later[1:]
        if subject is None:
            yield from _phrase(first)
        elif _written(first, ()) == _written(subject, ()):
            first.same = subject
        else:
            raise DataError(
                f"found {first.word!r} as the subject of {verb.word!r}, expected {subject.word!r}, which it shares"
            )
    yield verb
    for label, child in later:
        if label not in _CLAUSES:
            yield from _phrase(child)
        else:
            above = verb.edges[0][1]
            yield from _in_order(child, (above.same or above) if label == _SHARED and above is not child else None)


def _phrase(noun: _Node) -> Iterator[_Node]:
    """Yield a noun or a name, and then what it is `in`, `on` or `beside`."""
    yield noun
    for _, child in noun.edges:
        yield from _phrase(child)


def _spelled(variables: dict[_Node, str]) -> str:
    """Return the logical form: nouns with a star, then the terms of each node in the order of the sentence."""

    def argument(node: _Node) -> str:
        node = node.same or node
        return node.word if node.named else variables[node]

    stars = [f"* {node.word} ( {argument(node)} ) ; " for node in variables if node.definite and not node.verb]
    terms = []
    for node, own in variables.items():
        if not (node.verb or node.definite or node.named):
            terms.append(f"{node.word} ( {own} )")
        terms += [f"{node.word} . {label} ( {own} , {argument(child)} )" for label, child in node.edges]
    if not terms:
        raise DataError(f"found {[*variables][-1].word!r} without arguments, expected a verb with some")
    return "".join(stars) + " AND ".join(terms)


def _written(node: _Node, above: tuple[_Node, ...]) -> str:
    """Return the variable-free form of a node and all below it."""
    if node in above:
        raise DataError(f"found {node.word!r} below itself, expected a tree")
    _check_depth(len(above))
    parts = [f"{label} = {_written(child, (*above, node))}" for label, child in node.edges]
    word = f"* {node.word}" if node.definite else node.word
    return f"{word} ( {' , '.join(parts)} )" if parts else word


def _check_depth(above: int) -> None:
    if above >= _DEEPEST:
        raise DataError(f"found more than {_DEEPEST} nodes one below another, expected no more")


class _Reader:
    """Reads the variable-free form: node = ["*"] word ["(" label "=" node {"," label "=" node} ")"]."""

    def __init__(self, tokens: Sequence[str]) -> None:
        self._tokens, self._at = [*tokens, ""], 0

    def whole(self) -> _Node:
        node = self._node()
        self._need("", "the end")
        return node

    def _node(self, above: int = 0) -> _Node:
        _check_depth(above)
        definite = self._take("*")
        node = _Node(self._word(), definite)
        if self._take("("):
            more = True
            while more:
                label = self._word()
                while self._take("."):
                    label += f" . {self._word()}"
                self._need("=", "'='")
                node.edges.append((label, self._node(above + 1)))
                more = self._take(",")
            self._need(")", "',' or ')'")
        return node

    def _word(self) -> str:
        token = self._tokens[self._at]
        if token in _MARKS or not token:
            raise self._wrong("a word")
        self._at += 1
        return token

    def _take(self, mark: str) -> bool:
        found = self._tokens[self._at] == mark
        self._at += found
        return found

    def _need(self, mark: str, expected: str) -> None:
        if not self._take(mark):
            raise self._wrong(expected)

    def _wrong(self, expected: str) -> DataError:
        token, text = self._tokens[self._at], " ".join(self._tokens[:-1])
        found = f"found {token!r}" if token else "found the end"
        return DataError(
            f"{text!r:.120}: {found} as token {self._at + 1}, expected {expected}; the form: "
            "'name ( label = node , ... )', with or without arguments, and with * before a name that has 'the'"
        )


def _tree(text: str) -> _Node:
    """Return the root of the tree that a logical form describes: the node that is below no other."""
    nodes: dict[str, _Node] = {}
    below: set[_Node] = set()
    for part in re.split(r"(?:^| )(?:;|AND)(?: |$)", text):
        term = _TERM.fullmatch(part)
        if term is None:
            raise DataError(f"found the term {part!r:.80}, expected 'label . label ( x_1 , x_2 )' or '* label ( x_1 )'")
        if term["noun"]:
            _called(nodes, term["itself"], term["noun"]).definite |= bool(term["star"])
        else:
            parent = _called(nodes, term["above"], term["word"])
            child = nodes.setdefault(term["below"], _Node())
            parent.edges.append((term["label"], child))
            below.add(child)
    for name, node in nodes.items():
        node.word = node.word or name  # a person's name stands for itself
        if node.word.startswith("x_"):
            raise DataError(f"found the variable {name} without a noun or verb, expected a term that begins with one")
    roots = [node for node in nodes.values() if node not in below]
    if len(roots) != 1:
        some = ", ".join(repr(node.word) for node in roots[:3]) or "none"
        raise DataError(f"found {len(roots)} nodes that are below no other ({some}), expected one: the main verb")
    _check_connected(nodes, roots[0])
    return roots[0]


def _called(nodes: dict[str, _Node], argument: str, word: str) -> _Node:
    """Return the node of an argument, whose word a term gives."""
    node = nodes.setdefault(argument, _Node())
    if node.word not in ("", word):
        raise DataError(f"found {argument} as {node.word!r} and as {word!r}, expected one of them")
    node.word = word
    return node


def _check_connected(nodes: dict[str, _Node], root: _Node) -> None:
    """Raise DataError if a cycle apart from the tree would be lost."""
    reached, waiting = {root}, [root]
    while waiting:
        new = [child for _, child in waiting.pop().edges if child not in reached]
        reached.update(new)
        waiting += new
    for node in nodes.values():
        if node not in reached:
            raise DataError(f"found {node.word!r} in a circle that is not below {root.word!r}, expected a tree")
