"""Whether targets are right more often where several augmenters make the same source.

    python scripts/experiments/agreement.py geo-funql/question geo-funql/query scan/turn_left scan/opposite_right

The training part of a known data set is augmented, and the test part says what is right. Of GeoQuery's data sets, whose
test parts are not for development, half of the templates of the training part are augmented, and the others say what is
right. Prints how many samples have a source of those parts, and how many of these have the right target, by method and
by how many methods make the pair; and for how many sources the methods make different targets.
"""

import argparse
from collections import defaultdict

from compgen.augmenters.registry import make
from compgen.data.catalog import load
from compgen.data.examples import TRAIN, Dataset
from compgen.data.splits import by_template
from compgen.errors import ExhaustedError

METHODS = ("geca", "csl", "substitute", "lexsym")
DEVELOPMENT = ("scan/turn_left", "scan/opposite_right")  # test parts that may be looked at
Side = tuple[str, ...]


def parts(name: str) -> tuple[Dataset, dict[Side, Side]]:
    """The examples to augment, and the targets of other sources."""
    whole = load(name)
    divided = whole if name in DEVELOPMENT else by_template(whole.split(TRAIN), seed=1)
    return divided.split(TRAIN), {tuple(source): tuple(target) for source, target in divided.split("test").pairs()}


def makers(train: Dataset, count: int) -> dict[Side, dict[Side, set[str]]]:
    """By source and target, which methods make the pair, of sources that are not in training."""
    known = {tuple(source) for source, _ in train.pairs()}
    found: dict[Side, dict[Side, set[str]]] = defaultdict(lambda: defaultdict(set))
    for method in METHODS:
        try:
            made = make(method).fit(train).sample(count)
        except ExhaustedError as error:
            print(f"  {method}: {error}")
            continue
        for source, target in made.pairs():
            if tuple(source) not in known:
                found[tuple(source)][tuple(target)].add(method)
    return found


def main() -> None:
    """Print the figures of each data set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="+")
    parser.add_argument("--count", type=int, default=30_000, help="samples of each method")
    asked = parser.parse_args()
    for name in asked.data:
        train, wanted = parts(name)
        found = makers(train, asked.count)
        counts: dict[object, list[int]] = defaultdict(lambda: [0, 0])
        for source in found.keys() & wanted.keys():
            for target, methods in found[source].items():
                for kind in (*methods, len(methods)):
                    counts[kind][0] += wanted[source] == target
                    counts[kind][1] += 1
        differing = sum(len(targets) > 1 for targets in found.values())
        print(f"{name}: {len(train):,} examples, {len(wanted):,} other sources; right, of samples with one of these:")
        print("  " + ", ".join(f"{kind}: {right:,} of {of:,}" for kind, (right, of) in sorted(counts.items(), key=str)))
        print(f"  of {len(found):,} sources that are made, {differing:,} have several targets", flush=True)


if __name__ == "__main__":
    main()
