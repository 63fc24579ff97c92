"""Exchanges in trees, against their definition on nested tuples."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from compgen.csl.derivations import sides
from compgen.csl.rules import Alphabet, Grammar, Rule
from compgen.substitution.trees import CLOSED, Places, Trees, exchanged

ARITY = np.array([0, 0, 1, 2, 3])


def trees_of(depth=3):
    leaf = st.sampled_from([(0,), (1,)])
    return st.recursive(
        leaf,
        lambda below: st.one_of(
            st.tuples(st.just(2), below),
            st.tuples(st.just(3), below, below),
            st.tuples(st.just(4), below, below, below),
        ),
        max_leaves=2**depth,
    )


def preorder(tree):
    return [tree[0], *(rule for child in tree[1:] for rule in preorder(child))]


def flat(some):
    """Trees as arrays; the class of a node is its rule and ten."""
    rules = [preorder(tree) for tree in some]
    return Trees.of(rules, [[10 + rule for rule in tree] for tree in rules], ARITY)


def paths(tree, above=()):
    """The paths to all nodes, in preorder."""
    return [above, *(path for place, child in enumerate(tree[1:], 1) for path in paths(child, (*above, place)))]


def at(tree, path):
    return at(tree[path[0]], path[1:]) if path else tree


def put(tree, path, new):
    if not path:
        return new
    place, *rest = path
    return (*tree[:place], put(tree[place], rest, new), *tree[place + 1 :])


@given(st.lists(trees_of(), max_size=4))
def test_sizes_and_depths(some):
    found = flat(some)
    everything = [(tree, path) for tree in some for path in paths(tree)]
    assert found.size.tolist() == [len(preorder(at(tree, path))) for tree, path in everything]
    assert found.depth.tolist() == [len(path) for _, path in everything]
    assert found.tree.tolist() == [number for number, tree in enumerate(some) for _ in preorder(tree)]


@given(st.lists(st.tuples(trees_of(), trees_of(), st.data()), min_size=1, max_size=3))
def test_an_exchange_is_its_definition(some):
    outs, intos, expected = [], [], []
    for number, (host, donor, data) in enumerate(some):
        places, parts = paths(host), paths(donor)
        out, into = data.draw(st.sampled_from(places)), data.draw(st.sampled_from(parts))
        piece, kept, hole = at(donor, into), CLOSED, CLOSED
        if data.draw(st.booleans()):  # a chain: what is below its hole stays
            under = data.draw(st.sampled_from([path for path in places if path[: len(out)] == out]))
            inside = data.draw(st.sampled_from([path for path in parts if path[: len(into)] == into]))
            piece = put(piece, inside[len(into) :], at(host, under))
            kept, hole = places.index(under), parts.index(inside)
        outs.append((number, places.index(out), kept))
        intos.append((number, parts.index(into), hole))
        expected.append(put(host, out, piece))
    hosts, donors = flat([host for host, *_ in some]), flat([donor for _, donor, _ in some])
    found = exchanged(hosts, *(Places(*np.array(outs).T), donors, Places(*np.array(intos).T)))
    for name in ("rule", "kind", "size", "start", "count"):
        assert getattr(found, name).tolist() == getattr(flat(expected), name).tolist(), name


def written(tree, forms):
    """What a tree derives, by its definition."""
    rule, *below = tree
    parts = [written(child, forms) for child in below]
    return tuple(side.format(*(part[place] for part in parts)) for place, side in enumerate(forms[rule]))


@given(st.lists(trees_of(), max_size=4))
def test_what_trees_derive(some):
    alphabet = Alphabet("abcxyz")
    a, b, c, x, y = alphabet.encode("abcxy")
    rules = [
        Rule(a, x),
        Rule(b, y),
        Rule(c + "\1", "\1" + x + "\1"),
        Rule("\1" + c + "\2", "\2\1"),
        Rule("\1\2\3", "\3\1\2"),
    ]
    forms = [("a", "x"), ("b", "y"), ("c{0}", "{0}x{0}"), ("{0}c{1}", "{1}{0}"), ("{0}{1}{2}", "{2}{0}{1}")]
    both = flat(some).write(*sides(Grammar(alphabet, tuple(rules))))
    for side, (numbers, lengths) in enumerate(both):
        texts = [written(tree, forms)[side] for tree in some]
        assert "".join(alphabet.tokens[number] for number in numbers) == "".join(texts)
        assert lengths.tolist() == [len(text) for text in texts]
