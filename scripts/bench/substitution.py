"""New examples a second by substitution and by lexical symmetries, beside plain loops that do the same.

    COMPGEN_DATA=... python scripts/bench/substitution.py
    COMPGEN_DATA=... python scripts/bench/substitution.py --count 100000 --repeats 5

Both start from what `fit` has found, and end with a dataset of as many new, distinct examples; ours also says what each
was made from. The loop keeps derivations as nested tuples, and copies and writes them one at a time. The two take
turns, and times are medians of processor seconds. They do not draw the same random numbers, so examples differ.
"""

import argparse
import random
import time
from collections import defaultdict
from collections.abc import Callable
from statistics import median
from typing import Any

from compgen.augmenters.registry import make
from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.substitution.augmenter import Substitute

Tree = tuple[Any, ...]  # rule, class, and the trees below

CASES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "FunQL, two exchanges": ("substitute", "geo-funql/query", {"classes": "predicate", "rounds": 2}),
    "SCAN, two exchanges": (
        "substitute",
        "scan/turn_left",
        {"classes": "types", "rounds": 2, "span": 3, "config": "grammar_scan_companions"},
    ),
    "SCAN, words": ("lexsym", "scan/jump", {"move": "swap"}),
    "FunQL, words": ("lexsym", "geo-funql/question", {}),
}


def trees_of(method: Substitute) -> list[Tree]:
    """The derivations of a fitted method, as nested tuples."""
    table, found = method.table, []
    for start, count in zip(table.trees.start.tolist(), table.trees.count.tolist(), strict=True):
        rules = table.trees.rule[start : start + count].tolist()
        kinds = table.trees.kind[start : start + count].tolist()
        stack: list[Tree] = []
        for rule, kind in zip(reversed(rules), reversed(kinds), strict=True):
            below = [stack.pop() for _ in range(method.grammar.rules[rule].arity)]
            stack.append((rule, kind, *below))
        found += stack
    return found


def substitution_by_loop(method: Substitute, count: int, seed: int) -> Dataset:
    """Exchange pieces of derivations one at a time."""
    generator, alphabet = random.Random(seed), method.grammar.alphabet
    sides = [[tuple(alphabet.decode(side)) for side in rule] for rule in method.grammar.rules]
    trees = trees_of(method)
    shapes: dict[int, dict[Any, dict[Tree, None]]] = defaultdict(lambda: defaultdict(dict))

    def shape(tree: Tree) -> Any:
        return (tree[0], *map(shape, tree[2:])) if len(tree) > 2 else None

    def collect(tree: Tree) -> None:
        if method.options.span is None or len(written(tree, 0)) <= method.options.span:
            shapes[tree[1]][shape(tree)][tree] = None
        for child in tree[2:]:
            collect(child)

    def written(tree: Tree, side: int) -> list[str]:
        parts = [written(child, side) for child in tree[2:]]
        return [
            token
            for symbol in sides[tree[0]][side]
            for token in (parts[int(symbol[3:]) - 1] if symbol.startswith("NT_") else [symbol])
        ]

    def paths(tree: Tree, above: tuple[int, ...] = ()) -> list[tuple[int, ...]]:
        return [
            path
            for place, child in enumerate(tree[2:], 2)
            for path in [(*above, place), *paths(child, (*above, place))]
        ]

    def put(tree: Tree, path: tuple[int, ...], new: Tree) -> Tree:
        if not path:
            return new
        return (*tree[: path[0]], put(tree[path[0]], path[1:], new), *tree[path[0] + 1 :])

    for tree in trees:
        collect(tree)
    pools = {kind: [list(pieces) for pieces in some.values()] for kind, some in shapes.items()}
    changeable = [tree for tree in trees if len(tree) > 2]
    known = {tuple(written(tree, 0)) for tree in trees}
    made: dict[tuple[str, ...], list[str]] = {}
    while len(made) < count:
        new, lost = generator.choice(changeable), False
        for _ in range(generator.randint(1, method.options.rounds)):
            path = generator.choice(paths(new))
            old = new
            for place in path:
                old = old[place]
            pool = pools.get(old[1])
            lost = lost or pool is None
            new = new if pool is None else put(new, path, generator.choice(generator.choice(pool)))
        if not lost and (source := tuple(written(new, 0))) not in known:
            made.setdefault(source, written(new, 1))
    return Dataset.from_pairs(made.items())


def swaps_by_loop(method: Any, count: int, seed: int) -> Dataset:
    """Exchange words of one example after the other."""
    generator = random.Random(seed)
    hosts, partners, symbols = method._hosts, method._partners, method._symbols
    made: dict[tuple[str, ...], tuple[str, ...]] = {}
    idle = 0
    while len(made) < count and idle < 10_000:
        host = generator.choice(hosts)
        images = {word: generator.choice([word, *partners[word]]) for word in host.words}
        if method.options.move == "swap":
            word = generator.choice(host.words)
            image = generator.choice(partners[word])
            images = {word: image, image: word}
        elif len({symbols[image] for image in images.values()}) < len({symbols[word] for word in images}):
            continue
        meaning = {a: b for word, image in images.items() for a, b in zip(symbols[word], symbols[image], strict=True)}
        source = tuple(images.get(word, word) for word in host.source)
        idle += 1
        if source not in method._known and source not in made:
            made[source], idle = tuple(meaning.get(symbol, symbol) for symbol in host.target), 0
    return Dataset.from_pairs(made.items())


def rate(call: Callable[[Any, int, int], Dataset], method: Any, count: int, seed: int) -> float:
    """Examples in a second of the processor."""
    began = time.process_time()
    made = call(method, count, seed)
    return len(made) / (time.process_time() - began)


def ours(method: Any, count: int, seed: int) -> Dataset:
    """Draw samples with the package."""
    made: Dataset = method.sample(count, seed)
    return made


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    print("| case | examples | examples/s | loop | ratio |\n|---|---|---|---|---|")
    for case, (name, data, options) in CASES.items():
        method = make(name, **options).fit(load(data).split("train"))
        loop = substitution_by_loop if isinstance(method, Substitute) else swaps_by_loop
        count = min(asked.count, len(method.sample(asked.count)) * 9 // 10)  # the last ones are hard to find for a loop
        rates = [[rate(call, method, count, seed) for call in (ours, loop)] for seed in range(asked.repeats)]
        fast, slow = map(median, zip(*rates, strict=True))
        print(f"| {case} | {count:,} | {fast:,.0f} | {slow:,.0f} | {fast / slow:.1f} |", flush=True)


if __name__ == "__main__":
    main()
