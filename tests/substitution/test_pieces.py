"""Classes of nodes, and the tables of places and pieces."""

import itertools
from collections import Counter
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from compgen.csl.derivations import sides
from compgen.csl.forests import forests, lowest
from compgen.csl.rules import Grammar
from compgen.data.examples import Dataset
from compgen.substitution.pieces import Classifier, Table
from compgen.substitution.trees import CLOSED

GRAMMAR = Grammar.parse(
    """NT_1 of NT_2 ### NT_1 ( NT_2 )
rivers in NT_1 ### river ( loc ( NT_1 ) )
lakes in NT_1 ### lake ( loc ( NT_1 ) )
NT_1 not NT_2 ### exclude ( NT_1 , NT_2 )
largest ### largest
number ### count
ohio ### ohio
utah ### utah
""".splitlines()
)


HOST = "largest of rivers in ohio -> largest ( river ( loc ( ohio ) ) )"
DONOR = "number of lakes in utah not ohio -> exclude ( count ( lake ( loc ( utah ) ) ) , ohio )"
MIDDLES = {parts: (np.arange(parts) + 0.5) / parts for parts in (3, 4, 12)}  # of so many equal parts of [0, 1)


def derivations(*lines):
    pairs = Dataset.from_pairs(tuple(side.split() for side in line.split(" -> ")) for line in lines)
    found = forests(GRAMMAR, GRAMMAR.alphabet.examples(pairs))
    return [lowest(found)[root] for root in found.roots]


def texts(trees):
    """The sources that trees derive."""
    (numbers, lengths), _ = trees.write(*sides(GRAMMAR))
    ends = np.cumsum(lengths)
    words = [GRAMMAR.alphabet.tokens[number] for number in numbers]
    return [" ".join(words[start:end]) for start, end in zip(ends - lengths, ends, strict=True)]


@pytest.mark.parametrize(
    ("classes", "expected"),
    [  # of the nodes of DONOR: not, of, number, lakes in, utah, ohio
        ("predicate", ["root ", "exclude", "exclude", "count", "loc", "exclude"]),
        ("token", ["root ", "count", "count", "lake", "utah", "ohio"]),
        ("one", ["root ", "", "", "", "", ""]),
        ("types", ["N ohio", "N utah", "N N", "lakes utah", "utah utah", "ohio ohio"]),
    ],
)
def test_classes(classes, expected):
    classifier = Classifier(GRAMMAR, classes, {"number": "N", "largest": "N"})
    (rules,) = derivations(DONOR)
    names = [GRAMMAR.alphabet.text(GRAMMAR.rules[rule]).partition(" ###")[0] for rule in rules]
    assert names == ["NT_1 not NT_2", "NT_1 of NT_2", "number", "lakes in NT_1", "utah", "ohio"]
    assert classifier.classify(rules) == expected


def test_slots_are_classes_of_their_own():
    (rules,) = derivations(DONOR)
    found = Classifier(GRAMMAR, "slot").classify(rules)
    assert len({*found}) == len(found) and found[0] == "root "


def test_heads_under_heads():
    text = "exclude ( largest ( river ( loc ( ohio ) ) ) , lake ( loc ( utah ) ) )"
    letters = GRAMMAR.alphabet.encode(text.split())
    found, last = Classifier(GRAMMAR, "one").heads(letters)
    spelled = {tuple("".join(GRAMMAR.alphabet.decode(one)) for one in pair) for pair in found}
    assert spelled == {("", "exclude"), ("exclude", "largest"), ("exclude", "lake"), ("largest", "river")} | {
        (noun, "loc") for noun in ("river", "lake")
    }
    assert last == ""
    for words, head in (("exclude ( largest (", "largest"), ("exclude ( largest ( ohio ) ,", "exclude"), (") )", "")):
        _, last = Classifier(GRAMMAR, "one").heads(GRAMMAR.alphabet.encode(words.split()))
        assert last == GRAMMAR.alphabet.encode(head.split())


def test_brackets_with_labels_are_predicates():
    lines = (
        "remind to NT_1 NT_2 ### [IN:REMIND [SL:TASK NT_1 ] [SL:DATE NT_2 ] NT_1 ]",
        "run ### [IN:RUN ]",
        "now ### now",
    )
    grammar = Grammar.parse(lines)
    classifier = Classifier(grammar, "predicate")
    names = [grammar.alphabet.text(rule).partition(" ###")[0] for rule in grammar.rules]
    rules = [names.index(name) for name in ("remind to NT_1 NT_2", "run", "now")]
    assert classifier.classify(rules) == ["root ", "[SL:TASK", "[SL:DATE"]
    _, _, (target, *_) = classifier.derived(rules)
    spelled = {tuple("".join(grammar.alphabet.decode(one)) for one in pair) for pair in classifier.heads(target)[0]}
    todo = {("[IN:REMIND", "[SL:TASK"), ("[SL:TASK", "[IN:RUN"), ("[IN:REMIND", "[SL:DATE"), ("[IN:REMIND", "[IN:RUN")}
    assert spelled == {("", "[IN:REMIND"), *todo}


def all_made(classes, chains="no", span=None):
    table = Table.of(Classifier(GRAMMAR, classes), derivations(HOST, DONOR), chains, span)
    every = table.every()
    made = table.exchange(every["host"].to_numpy().astype(int), every["piece"].to_numpy().astype(int))
    assert len(every) == table.total
    return table, set(texts(made))


def test_all_exchanges_within_a_class():
    table, made = all_made("predicate")
    # Under loc: ohio, utah. Under exclude: three. Under largest and under count: one each, beside what is outside.
    assert made == {
        *(text.partition(" -> ")[0] for text in (HOST, DONOR)),
        "largest of rivers in utah",
        "number of lakes in ohio not ohio",
        "ohio not ohio",
        "number not ohio",
        "number of lakes in utah not number",
        "number of lakes in utah not number of lakes in utah",
        "number of lakes in utah of lakes in utah not ohio",
        "ohio of lakes in utah not ohio",
    }
    assert table.total == 1 + 2 + 1 + 3 * 3 + 1 + 2


def test_more_exchanges_than_32_bits_can_count_are_counted():
    classifier = Classifier(GRAMMAR, "one")
    many = pl.DataFrame({"class": np.zeros(70_000, dtype=np.int64)})
    assert replace(Table.of(classifier, derivations(HOST)), hosts=many, pieces=many).total == 70_000**2


def test_chains_and_short_pieces():
    _, closed = all_made("types")
    table, made = all_made("types", chains="exchange")
    assert closed <= made and table.chains == "exchange"
    _, short = all_made("one", span=1)
    assert "largest of rivers in number" in short and "largest of lakes in utah" not in short


@pytest.mark.parametrize("classes", ["predicate", "token", "slot", "types", "one"])
@pytest.mark.parametrize("chains", ["no", "exchange", "insert"])
@pytest.mark.parametrize("span", [None, 1])
@pytest.mark.parametrize("lines", [[HOST], [DONOR], [HOST, DONOR]])
def test_whether_there_is_anything_to_exchange(classes, chains, span, lines):
    table = Table.of(Classifier(GRAMMAR, classes), derivations(*lines), chains, span)
    every = table.every()
    hosts, pieces = (every[column].to_numpy().astype(int) for column in ("host", "piece"))
    changed = table.exchange(hosts, pieces)
    before = table.trees.take(table.hosts["tree"].to_numpy()[hosts])
    rows = [[trees.rule[start : start + count].tolist() for start, count in zip(trees.start, trees.count, strict=True)]
            for trees in (before, changed)]  # fmt: skip
    assert table.alternatives == (rows[0] != rows[1])


def test_each_piece_and_place_is_there_once():
    lines = [HOST, HOST.replace("ohio", "utah"), HOST.replace("rivers", "lakes").replace("river ", "lake ")]
    table = Table.of(Classifier(GRAMMAR, "predicate"), derivations(*lines))
    inner = table.pieces.filter(table.pieces["node"] > 0)
    assert len(inner) == 1 + 3 + 2  # largest; rivers in ohio, in utah, lakes in ohio; ohio, utah
    assert len(table.hosts) == 3 + 1 + 2  # around `largest`: three; around what it is of: one; in rivers, in lakes
    assert set(table.hosts["hole"]) == {CLOSED}


def test_shapes_are_drawn_alike_then_pieces():
    table = Table.of(Classifier(GRAMMAR, "one"), derivations(HOST, DONOR))
    every = table.every()
    assert every.group_by("host").agg(total=pl.col("probability").sum())["total"].to_list() == pytest.approx(
        [1.0] * len(table.hosts)
    )
    leaves = table.pieces["text"].str.len_chars() == 1
    probability = every.unique("piece").sort("piece")["probability"]
    inner = table.pieces.with_row_index("piece").filter(leaves & (table.pieces["class"] != 1))
    assert len({probability[int(piece)] for piece in inner["piece"]}) == 1


def test_a_draw_exchanges_within_classes():
    table = Table.of(Classifier(GRAMMAR, "predicate"), derivations(HOST, DONOR), chains="exchange")
    random = np.random.default_rng(0).random((500, 4))
    trees = table.trees.take(np.tile([0, 1], 250))
    found, some, pieces = table.draw(trees, random)
    _, possible = all_made("predicate", chains="exchange")
    assert set(texts(found)) <= possible and len(found.count) == len(some) == len(pieces) > 400


def test_places_are_drawn_alike_then_shapes_then_pieces_of_a_shape():
    """HOST has three places. Four shapes may come there, one of which four words have."""
    table = Table.of(Classifier(GRAMMAR, "one"), derivations(HOST, DONOR))
    grid = np.array(list(itertools.product(MIDDLES[3], [0.5], MIDDLES[4], MIDDLES[4])))
    found, some, _ = table.draw(table.trees.take(np.zeros(len(grid), dtype=int)), grid)
    assert len(some) == len(grid)
    every = table.every().filter(pl.col("host").is_in(np.flatnonzero(table.hosts["tree"] == 0).tolist()))
    hosts, pieces = (every[column].to_numpy().astype(int) for column in ("host", "piece"))
    expected = Counter[str]()
    for text, probability in zip(texts(table.exchange(hosts, pieces)), every["probability"], strict=True):
        expected[text] += round(16 * probability)
    assert expected.total() == len(grid) and Counter(texts(found)) == expected


def test_half_of_what_is_drawn_are_chains_and_their_tops_are_drawn_alike():
    table = Table.of(Classifier(GRAMMAR, "one"), derivations(HOST), chains="exchange")
    place, coin = np.array(list(itertools.product(MIDDLES[3], MIDDLES[12]))).T
    tops, holes = table._parts_of(table.trees.take(np.zeros(len(place), dtype=int)), place, coin)
    tops = tops - 4 * np.arange(len(tops))  # HOST has four nodes: of, largest, rivers in, ohio
    holes = np.where(holes == CLOSED, CLOSED, holes - 4 * np.arange(len(holes)))
    above = {1: [0, 1], 2: [0, 2], 3: [0, 2, 3]}
    expected = Counter({(node, CLOSED): 6 for node in above})
    expected |= Counter({(top, node): 6 // len(some) for node, some in above.items() for top in some})
    assert Counter(zip(tops.tolist(), holes.tolist(), strict=True)) == expected


def test_chains_that_are_inserted_take_nothing_away():
    table, made = all_made("one", chains="insert")
    _, exchanged = all_made("one", chains="exchange")
    assert made and made <= exchanged
    trees = table.trees.take(np.tile([0, 1], 50))
    for turn in range(4):
        grown, some, _ = table.draw(trees, np.random.default_rng(turn).random((len(trees.count), 4)))
        assert some.tolist() == list(range(100)) and (grown.count > trees.count).all()
        # What there was is there still, in its order.
        for before, after in zip(*(np.split(one.rule, one.start[1:]) for one in (trees, grown)), strict=True):
            left = iter(after.tolist())
            assert all(rule in left for rule in before.tolist())
        trees = grown


def test_nothing_is_inserted_around_a_whole_example():
    table = Table.of(Classifier(GRAMMAR, "one"), derivations(HOST, DONOR), "insert")
    trees = table.trees.take(np.array([0, 1]))
    roots = replace(trees, rule=trees.rule[trees.start], kind=trees.kind[trees.start], size=np.ones(2, dtype=int),
                    count=np.ones(2, dtype=int))  # fmt: skip
    _, some, _ = table.draw(roots, np.full((2, 4), 0.5))
    assert not len(some)


@pytest.mark.parametrize("classes", ["token", "slot", "types", "one"])
def test_exchanges_keep_the_classes_of_all_nodes(classes):
    classifier, rows = Classifier(GRAMMAR, classes), derivations(HOST, DONOR)
    table = Table.of(classifier, rows, chains="exchange")
    names = {}
    for rules, start in zip(rows, table.trees.start, strict=True):
        names |= dict(zip(table.trees.kind[start:].tolist(), classifier.classify(rules), strict=False))
    trees = table.trees.take(np.tile([0, 1], 100))
    for turn in range(3):
        trees, _, _ = table.draw(trees, np.random.default_rng(turn).random((len(trees.count), 4)))
        for start, count in zip(trees.start, trees.count, strict=True):
            rules = trees.rule[start : start + count].tolist()
            assert classifier.classify(rules) == [names[kind] for kind in trees.kind[start : start + count].tolist()]
