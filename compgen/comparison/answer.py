"""From the results of a comparison's steps to its answer: accuracies, differences with intervals and p, a sentence."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from compgen.comparison.result import Changed, Choice, Difference, Group, Role, Tested
from compgen.comparison.systems import BARE_SYSTEM, System
from compgen.comparison.words import chance, percent
from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream

Floats = NDArray[np.float64]
Right = NDArray[np.bool_]  # (seeds, test examples)

RESAMPLES = 4_000
AT_ONCE = 1 << 22  # counts in memory
SHOWN = 20  # test examples that were mended, and broken
SURE = 0.05  # largest p of a difference that is said to be one


@dataclass(frozen=True)
class Answers:
    """A system's answers to the test part, by seed, and which are right (seeds, examples)."""

    system: System
    answers: list[list[list[str]]]
    right: Right


def measured(
    found: Sequence[Answers], examples: dict[System, int], choice: System, control: System | None
) -> list[Tested]:
    """Every system on the test part, compared with the bare data and with the control.

    p against the control is corrected for the number of systems compared with it (Holm 1979).
    """
    by_system = {one.system: one.right for one in found}
    with_bare = [(one, BARE_SYSTEM) for one in by_system if one != BARE_SYSTEM]
    with_control = [(one, control) for one, _ in with_bare if control in by_system and one != control]
    pairs = [*with_bare, *with_control]
    over = dict(zip(pairs, differences([(by_system[one], by_system[other]) for one, other in pairs]), strict=True))
    corrected = dict(zip(with_control, holm([over[pair].p for pair in with_control]), strict=True))
    over |= {pair: over[pair].model_copy(update={"corrected": p}) for pair, p in corrected.items()}
    intervals = [_interval(means) for means in _means([one.right.astype(float) for one in found])]
    rows = []
    for one, (low, high) in zip(found, intervals, strict=True):
        rows.append(
            Tested(
                system=str(one.system),
                role=_role(one.system, choice, control),
                examples=examples[one.system],
                accuracy=float(one.right.mean()),
                low=low,
                high=high,
                by_seed=one.right.mean(axis=1).tolist(),
                over_bare=over.get((one.system, BARE_SYSTEM)),
                over_control=over.get((one.system, control)) if control else None,
            )
        )
    return rows


def _role(system: System, choice: System, control: System | None) -> Role:
    if system == choice:
        return "chosen"
    return "bare" if system == BARE_SYSTEM else "control" if system == control else "other"


def differences(pairs: Sequence[tuple[Right, Right]]) -> list[Difference]:
    """The differences of two systems' accuracies, first less second, seed by seed and example by example.

    Interval and p by bootstrap: seeds are drawn with replacement, and examples are, the same for both systems. Systems
    with unlike numbers of seeds are compared on those that both have.
    """
    each = [first[: len(second)].astype(float) - second[: len(first)].astype(float) for first, second in pairs]
    found = []
    for values, means in zip(each, _means(each), strict=True):
        low, high = _interval(means)
        opposite = min(float((means <= 0).mean()), float((means >= 0).mean()))
        p = min(1.0, 2 * max(opposite, 1 / RESAMPLES))
        found.append(Difference(mean=float(values.mean()), low=low, high=high, p=p))
    return found


def _means(values: Sequence[Floats]) -> list[Floats]:
    """Means (RESAMPLES) of samples of the rows and of the columns of each of `values` (S, n), with replacement.

    The samples are the same for all values of one shape, and drawn once: this takes nearly all of the time.
    """
    found = dict[int, Floats]()
    for seeds, count in {one.shape for one in values}:
        same = [at for at, one in enumerate(values) if one.shape == (seeds, count)]
        rows = np.concatenate([values[at] for at in same])  # (k S, n)
        random = stream(Purpose.COMPARISON, 0, 3)
        times = random.multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES)  # (R, S): how often each seed is drawn
        size = max(1, AT_ONCE // count)
        sums = []
        for start in range(0, RESAMPLES, size):
            some = times[start : start + size]
            drawn = random.multinomial(count, np.full(count, 1 / count), len(some))  # (r, n)
            sums.append(np.einsum("rs,rks->kr", some, (drawn @ rows.T).reshape(len(some), len(same), seeds)))
        found |= zip(same, np.concatenate(sums, axis=1) / (seeds * count), strict=True)
    return [found[at] for at in range(len(values))]


def _interval(means: Floats) -> tuple[float, float]:
    low, high = np.quantile(means, [0.025, 0.975]).tolist()
    return low, high


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number m: the k-th smallest times m - k + 1, and none below a smaller one."""
    corrected, largest = [0.0] * len(ps), 0.0
    for rank, at in enumerate(sorted(range(len(ps)), key=lambda at: ps[at])):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[at]))
        corrected[at] = largest
    return corrected


def sentence(rows: Sequence[Tested], choice: Choice, tried: int, failed: str = "") -> str:
    """The answer in a sentence or two; `failed` is the best on validation data, if it made nothing of all examples."""
    by_role = {row.role: row for row in rows}
    chosen = by_role["chosen"]
    if all(row.accuracy == 1 for row in rows):
        return (
            "This test cannot tell whether a method helps: all systems, the bare data too, answer every test example "
            "exactly. Ask for more by another test part, --by length or --by tmcd."
        )
    if not choice.methods:
        none = f"None of {tried} methods helps" if tried > 1 else "The one method that was tried does not help"
        why = f"{failed} helps on validation data, but made nothing of all training examples" if failed else ""
        return (
            f"{why or f'{none} on validation data'}: leave the data as they are. Trained on them, the "
            f"predictor answers {percent(chosen.accuracy)} of the test examples exactly."
        )
    bare, over, control = by_role["bare"], chosen.over_bare, chosen.over_control
    assert over is not None
    before, after = percent(bare.accuracy), percent(chosen.accuracy)
    if before != after:  # as they are written: of a large test part, a few answers more may not be seen
        verb = "raises" if over.mean > 0 else "lowers"
        text = f"{choice.system} {verb} accuracy on the test part from {before} to {after}"
    else:
        text = f"{choice.system} leaves accuracy on the test part at {after}"
    if control is None:
        return f"{text}."
    p = control.final_p
    if p > SURE:
        return f"{text}; chance can do as much, measured against as many examples drawn again (p = {p:.2f})."
    more = "more" if control.mean > 0 else "less"
    return f"{text}: {100 * abs(control.mean):.1f} points {more} than as many examples drawn again (p {_than(p)})."


def _than(p: float) -> str:
    shown = chance(p)
    return shown if shown.startswith("<") else f"= {shown}"


def by_length(test: Dataset, found: Sequence[Answers]) -> list[Group]:
    """Accuracy by the length of the source, in four groups of like size."""
    lengths = test.frame["source"].list.len().to_numpy()
    edges = np.unique(np.quantile(lengths, [0, 0.25, 0.5, 0.75, 1.0], method="lower"))
    groups = []
    for at, low in enumerate(edges):
        high = edges[at + 1] - 1 if at + 2 < len(edges) else edges[-1]
        if at + 1 < len(edges) or len(edges) == 1:
            label = f"{low}" if low == high else f"{low} to {high}"
            unit = "token" if label == "1" else "tokens"
            groups.append(_group(f"{label} {unit}", (lengths >= low) & (lengths <= high), found))
    return groups


def by_template(train: Dataset, test: Dataset, found: Sequence[Answers]) -> list[Group]:
    """Accuracy by what of the target is new: nothing, its whole, or two tokens in a row."""
    targets = train.frame["target"].to_list()
    whole = {tuple(target) for target in targets}
    pairs = {pair for target in targets for pair in _pairs(target)}
    kinds = np.array(
        [
            0 if tuple(one) in whole else 1 if pairs.issuperset(_pairs(one)) else 2
            for one in test.frame["target"].to_list()
        ]
    )
    labels = ("target is in training", "target is new, its parts are not", "target has new pairs of tokens")
    groups = [_group(label, kinds == kind, found) for kind, label in enumerate(labels)]
    return [group for group in groups if group.examples]


def _pairs(tokens: Sequence[str]) -> set[tuple[str | None, str | None]]:
    """Return all two tokens in a row; None stands before the first and behind the last."""
    return set(pairwise([None, *tokens, None]))


def _group(label: str, rows: NDArray[np.bool_], found: Sequence[Answers]) -> Group:
    shares = {str(one.system): float(one.right[:, rows].mean()) for one in found} if rows.any() else {}
    return Group(label=label, examples=int(rows.sum()), accuracy=shares)


def changed(test: Dataset, bare: Answers, chosen: Answers) -> tuple[list[Changed], list[Changed]]:
    """Test examples that most seeds of one system answer rightly and most of the other do not: mended, and broken."""
    before, after = (2 * one.right.sum(axis=0) > len(one.right) for one in (bare, chosen))
    found = []
    for rows in (after & ~before, before & ~after):
        some = np.flatnonzero(rows)[:SHOWN]
        found.append([_changed(test, int(row), bare, chosen) for row in some])
    return found[0], found[1]


def _changed(test: Dataset, row: int, bare: Answers, chosen: Answers) -> Changed:
    example = test.frame.row(row, named=True)
    usual = [" ".join(_usual(one, row)) for one in (bare, chosen)]
    return Changed(
        source=" ".join(example["source"]), expected=" ".join(example["target"]), bare=usual[0], chosen=usual[1]
    )


def _usual(one: Answers, row: int) -> tuple[str, ...]:
    """The commonest answer to an example, of the right or the wrong ones: of those that `changed` goes by."""
    right = one.right[:, row]
    mostly = 2 * right.sum() > len(right)
    counted = Counter(tuple(seed[row]) for seed, is_right in zip(one.answers, right, strict=True) if is_right == mostly)
    return counted.most_common(1)[0][0]
