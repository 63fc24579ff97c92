"""StemCorrupt's examples a second, beside those of a plain character loop that does the same.

    COMPGEN_DATA=... python scripts/bench/stemcorrupt.py
    COMPGEN_DATA=... python scripts/bench/stemcorrupt.py --languages turkish --count 100000

Both start from the same dataset, 100 words of SIGMORPHON 2018 by default, and end with a dataset of as many new,
distinct examples, fitting included. The loop aligns each word once, by the same rule; then it goes through the
characters of each example. The two take turns, and times are medians of processor seconds. They do not draw the same
random numbers, so examples differ; that the alignments do not is checked.
"""

import argparse
import random
import time
from collections.abc import Callable
from statistics import median

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.unimorph import BLANK
from compgen.morphology.alignment import NONE, SHORTEST, Aligned, Word, words
from compgen.morphology.stemcorrupt import StemCorrupt

LANGUAGES = ("arabic", "bengali", "finnish", "georgian", "navajo", "spanish", "turkish")  # the paper's


def align_by_loop(lemma: tuple[str, ...], form: tuple[str, ...]) -> list[int]:
    """For each character of a lemma the place of the equal one in its form, or NONE; cell by cell."""
    far = (len(lemma) + len(form), 0, 0)
    # Edits, stretches and substitutions of the best alignment of two beginnings that ends in a match; or in an edit.
    matched = [[far] * (len(form) + 1) for _ in range(len(lemma) + 1)]
    other = [[(i + j, 0, 0) for j in range(len(form) + 1)] for i in range(len(lemma) + 1)]
    for i, letter in enumerate(lemma, start=1):
        for j, another in enumerate(form, start=1):
            if letter == another:
                edits, stretches, substitutions = other[i - 1][j - 1]
                matched[i][j] = min(matched[i - 1][j - 1], (edits, stretches + 1, substitutions))
            edits, stretches, substitutions = min(matched[i - 1][j - 1], other[i - 1][j - 1])
            replaced = (edits + 1, stretches, substitutions + 1)
            edits, stretches, substitutions = min(
                matched[i - 1][j], other[i - 1][j], matched[i][j - 1], other[i][j - 1]
            )
            other[i][j] = min(replaced, (edits + 1, stretches, substitutions))
    partner = [NONE] * len(lemma)
    i, j = len(lemma), len(form)
    match = matched[i][j] < other[i][j]
    while i or j:
        if match:
            cost = matched[i][j]
            i, j = i - 1, j - 1
            partner[i] = j
            match = matched[i][j] == cost
            continue
        edits, stretches, substitutions = other[i][j]
        if i and min(matched[i - 1][j], other[i - 1][j]) == (edits - 1, stretches, substitutions):
            i -= 1
        elif j and min(matched[i][j - 1], other[i][j - 1]) == (edits - 1, stretches, substitutions):
            j -= 1
        else:
            i, j = i - 1, j - 1
        match = matched[i][j] < other[i][j]
    return partner


def stem_by_loop(word: Word) -> list[int]:
    """The alignment of a word, without what is no part of its stem."""
    partner = align_by_loop(word.lemma, word.form)
    stem, stretch = [NONE] * len(partner), list[int]()
    for i, j in enumerate([*partner, NONE]):
        goes_on = j != NONE and word.lemma[i] != BLANK
        if stretch and not (goes_on and j == partner[i - 1] + 1):
            if sum(len(word.lemma[place]) for place in stretch) >= SHORTEST:
                for place in stretch:
                    stem[place] = partner[place]
            stretch = []
        if goes_on:
            stretch.append(i)
    return stem


def stems_by_loop(dataset: Dataset) -> list[tuple[Word, list[int]]]:
    """The distinct words of a dataset and their stems."""
    return [(word, stem_by_loop(word)) for word in sorted(set(words(dataset)))]


def corrupt_by_loop(dataset: Dataset, count: int, seed: int, theta: float = 0.5) -> Dataset:
    """What StemCorrupt does, an example and a character at a time."""
    draw = random.Random(seed)
    aligned = stems_by_loop(dataset)
    examples = [(word, stem) for word, stem in aligned if any(place != NONE for place in stem)]
    alphabet = sorted({cluster for word, _ in aligned for cluster in word.lemma + word.form} - {BLANK})
    known = {(tuple("".join(word.lemma)) + word.tags, tuple("".join(word.form))) for word, _ in aligned}
    new = {}
    while len(new) < count:
        word, stem = draw.choice(examples)
        lemma, form, edits = list(word.lemma), list(word.form), 0
        for i, j in enumerate(stem):
            if j != NONE and draw.random() < theta:
                cluster = draw.choice(alphabet)
                edits += cluster != lemma[i]
                lemma[i] = form[j] = cluster
        pair = tuple("".join(lemma)) + word.tags, tuple("".join(form))
        if pair not in known and pair not in new:
            new[pair] = edits
    return Dataset.from_pairs(new)


def stems(dataset: Dataset) -> list[list[int]]:
    """Our stems of the distinct words of a dataset."""
    distinct = sorted(set(words(dataset)))
    partner = Aligned.of(distinct).partner.tolist()
    return [row[: len(word.lemma)] for row, word in zip(partner, distinct, strict=True)]


def seconds(runs: dict[str, Callable[[], object]], repeats: int) -> dict[str, float]:
    """The median time of each, all run in turn, so that what else the machine does slows all of them."""
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            began = time.process_time()
            run()
            times[name].append(time.process_time() - began)
    return {name: median(values) for name, values in times.items()}


def main() -> None:
    """Print a row for each language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--languages", nargs="+", default=LANGUAGES, metavar="LANGUAGE")
    parser.add_argument("--split", default="train-low")
    parser.add_argument("--count", type=int, default=10_000, help="examples to make")
    parser.add_argument("--repeats", type=int, default=7)
    arguments = parser.parse_args()
    print("| language | examples/s | loop | ratio | alignment, ms | loop | ratio |\n|---|---|---|---|---|---|---|")
    ratios = []
    for language in arguments.languages:
        dataset, count = load(f"sigmorphon/{language}").split(arguments.split), arguments.count
        assert stems(dataset) == [stem for _, stem in stems_by_loop(dataset)], language
        runs: dict[str, Callable[[], object]] = {
            "ours": lambda dataset=dataset, count=count: StemCorrupt().fit(dataset).sample(count),
            "loop": lambda dataset=dataset, count=count: corrupt_by_loop(dataset, count, 0),
            "our stems": lambda dataset=dataset: stems(dataset),
            "loop stems": lambda dataset=dataset: stems_by_loop(dataset),
        }
        took = seconds(runs, arguments.repeats)
        ratios.append(took["loop"] / took["ours"])
        print(
            f"| {language} | {count / took['ours']:,.0f} | {count / took['loop']:,.0f} | {ratios[-1]:.1f} "
            f"| {1e3 * took['our stems']:.1f} | {1e3 * took['loop stems']:.1f} "
            f"| {took['loop stems'] / took['our stems']:.1f} |",
            flush=True,
        )
    print(f"\n{arguments.count:,} examples, medians of {arguments.repeats}; ratio over languages {median(ratios):.1f}")


if __name__ == "__main__":
    main()
