"""Settings of a generator from its training data: the configuration `auto`.

What is found: the kind of neighborhoods and their similarity, the longest sequences trained on, which tokens are rare,
the batch, and the number of updates. The rest, among it the size of the network, is as in the configurations for two
cores: `recombine_small` for pairs, `recombine_small_around_right` for pairs of which no token is rare, so that what is
new can only be a phrase, and `recombine_morphology_small` for words. Rules were chosen on training data of SCAN,
GeoQuery, Scholar, COGS and SIGMORPHON.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from compgen.configuration import load_config, merged, values_of
from compgen.data.examples import Dataset
from compgen.data.random import Purpose, stream
from compgen.data.unimorph import is_tag, split_tags
from compgen.data.vocabulary import SPECIALS, Vocabulary
from compgen.errors import DataError
from compgen.recombine.config import PAIRS, RecombineConfig
from compgen.recombine.neighborhoods import NeighborhoodConfig, Sequences, build, incidence

WORDS, PHRASES = "recombine_morphology_small", "recombine_small_around_right"
COMMON, COMMON_SHARE = 10, 0.01  # a token is rare if fewer distinct examples have it than this, or than this share
SUPPORT = 0.1  # share of the samples that must have a new pair of neighbours; see `choosing`
MINUTES = 8.0
RATE = 12_000  # tokens a second that one core trains these networks on; where it is slower, `pace` plans fewer updates
COVERED = 0.8  # share of the examples that should have a neighborhood; the others are never learned from
DELTAS = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1)
ALIKE = 0.2  # below this, the first long-short prototype has little in common with the example: others come first
LONGEST = (95, 90, 75, 50)  # percentiles of lengths; of pairs, a few long ones cost more than they teach
CLOSE, SHORT = (0.5, 0.45, 0.4), 75  # similarities that are high, and the percentile of lengths that are short
MANY, SHARE = 2000, 0.25  # such neighborhoods are enough if they have this many rows, of this share of the examples
UNKNOWN = (10, 5, 3, 2)  # candidates for unknown_below
RARE = 0.05  # share of all tokens that may be unknown: of more, the network would see too little
FEWEST, ENOUGH = 500, 2000  # updates: the fewest, and as many as there is to be time for when sequences are left out
ROWS = 12_000  # neighborhood rows up to which the updates of the base are enough
TRIED, POOL = 400, 5000  # the search looks for neighborhoods of some examples only, among some sequences only


@dataclass(frozen=True)
class _Data:
    """Distinct training examples as sequences of ids."""

    sequences: Sequences
    vocabulary: Vocabulary
    lengths: NDArray[np.int64]  # (N)
    words: bool


@dataclass(frozen=True)
class _Found:
    """Neighborhoods by one configuration.

    Attributes:
        covered: the share of the examples of up to `config.longest` tokens that have one.
        rows: how many rows such an example has, on average.
        close: few examples have one, but enough to learn from.
    """

    config: NeighborhoodConfig
    covered: float
    rows: float
    close: bool = False

    def rows_of(self, data: _Data) -> int:
        """The number of rows of all examples, estimated."""
        return round(self.rows * _short(data, self.config.longest))


def settings(
    dataset: Dataset, minutes: float | None = None, given: Mapping[str, Any] | None = None
) -> tuple[RecombineConfig, list[str]]:
    """Find a configuration for a dataset.

    Args:
        dataset: the training examples; repetitions do not count.
        minutes: about how long training may take on a machine with a speed of RATE; by default MINUTES.
        given: values that are set, as nested tables; the search keeps them.

    Returns:
        The configuration, and in a few lines what was found and why.

    Raises:
        DataError: no example has similar ones to be put together from; the message says what to do.
        ConfigError: values that do not go together.
    """
    set_ = dict(given or {})
    data = _data(dataset, set_.get("max_tokens"))
    name = _base(data, set_.get("prototypes", 2))
    base = merged(values_of(name), set_)
    start = load_config(RecombineConfig, None, given=base)
    tokens = (MINUTES if minutes is None else minutes) * 60 * RATE
    table = base["neighborhood"] | {"longest": _longest(data, start, tokens)} | set_.get("neighborhood", {})
    fixed = base["neighborhood"] if name == PHRASES else set_.get("neighborhood", {})
    free = name == PAIRS and start.prototypes == 2 and not {"kind", "cover", "delta"} & set(fixed)
    found = (free and _close(data, table, fixed)) or _neighborhoods(data, start.prototypes, table, fixed)
    rows = found.rows_of(data)
    asked = set_.get("optimisation", {})
    batch = asked.get("batch", min(start.optimisation.batch, max(8, rows // 8)))
    steps, why_steps = _updates(data, start, rows, found.config.longest, tokens / batch, asked.get("steps"))
    # Else rare tokens may be in none of the prototypes, or there is no copying.
    copied = start.prototypes and start.network.copying and found.config.cover and not data.words
    below = _unknown_below(data) if copied and name != PHRASES else start.unknown_below * data.words
    chosen: dict[str, Any] = {
        "neighborhood": found.config.model_dump(include={"kind", "delta", "cover", "longest"}),
        "optimisation": {"steps": steps, "batch": batch},
        "unknown_below": below,
        "sampling": {"length_bound": "mean+std" if found.config.kind == "long-short" else "max"},
    }
    config = load_config(RecombineConfig, None, given=merged(merged(base, chosen), set_))
    about = [_about_neighborhoods(config, data, found), _about_lengths(data, found.config.longest), why_steps]
    return config, ["no token is rare, so names trade places in training", *about] if name == PHRASES else about


def choosing(dataset: Dataset, config: Mapping[str, Any]) -> dict[str, Any]:
    """How to choose among the samples of a generator with settings that were found: see `Choice`.

    By vote, as a generator answers one source in several ways. Where names trade places in training, what is new can
    only be a phrase, which many samples have; other new neighbours are slips. Words are not voted on: those with most
    votes are alike, and teach less. Sentences have no answers to vote on.
    """
    if are_words(dataset) or not (dataset.frame["target"].list.len() > 0).any():
        return {}
    return {"vote": True, "support": SUPPORT if config["swap"]["rows"] else None}


def _data(dataset: Dataset, max_tokens: int | None) -> _Data:
    from compgen.recombine.rows import as_sequences

    vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
    sequences = as_sequences(dataset, vocabulary, max_tokens)
    return _Data(sequences, vocabulary, np.array([len(one) for one in sequences]), are_words(dataset))


def _base(data: _Data, prototypes: object) -> str:
    """The name of the configuration that gives what is not found."""
    if data.words:
        return WORDS
    examples = incidence(data.sequences, len(data.vocabulary))[:, len(SPECIALS) :].sum(axis=0)
    rare = examples < max(COMMON, COMMON_SHARE * len(data.sequences))
    return PAIRS if rare.any() or prototypes != 2 else PHRASES


def are_words(dataset: Dataset) -> bool:
    """Whether all examples are inflections: letters of a lemma and then tags, and letters of a form."""
    letters = dataset.frame["target"].explode().drop_nulls()
    return bool((letters.str.len_chars() <= 2).all()) and all(map(_inflection, dataset.frame["source"].to_list()))


def _inflection(source: list[str]) -> bool:
    letters, tags = split_tags(source)
    return bool(letters and tags) and all(map(is_tag, tags)) and all(len(letter) <= 2 for letter in letters)


def _longest(data: _Data, start: RecombineConfig, tokens: float) -> int:
    """The longest sequence to train on: the highest percentile with which there is time for ENOUGH updates."""
    if data.words:
        return int(data.lengths.max())
    for percentile in LONGEST:
        longest = _percentile(data, percentile)
        if _cost(data, longest) * ENOUGH * start.optimisation.batch <= tokens:
            break
    return longest


def _percentile(data: _Data, percentile: int) -> int:
    return int(np.percentile(data.lengths, percentile, method="higher"))


def _short(data: _Data, longest: int | None) -> int:
    """How many examples are no longer than this."""
    return len(data.lengths) if longest is None else int((data.lengths <= longest).sum())


def _cost(data: _Data, longest: int | None) -> float:
    """Mean tokens, with the end, of a training row."""
    return float(np.sort(data.lengths)[: _short(data, longest)].mean()) + 1


def _updates(
    data: _Data, start: RecombineConfig, rows: int, longest: int | None, rows_of_time: float, given: int | None
) -> tuple[int, str]:
    """The number of updates, more with more rows but no more than there is time for, and why; see `settings`.

    `rows_of_time` is the number of tokens that there is time for, divided by the rows of a batch.
    """
    if given is not None:
        return given, f"{given:,} updates, as asked for, on about {rows:,} rows"
    wanted = round(cast(int, start.optimisation.steps) * max(1.0, rows / ROWS))
    possible = round(rows_of_time / _cost(data, longest))
    steps = max(FEWEST, min(wanted, possible))
    why = ", as there is time for" if wanted > possible else ""
    if possible < FEWEST:
        why = f", the fewest that can teach anything: they take longer than the time given, which allows {possible:,}"
    return steps, f"{steps:,} updates for about {rows:,} rows{why}"


def _unknown_below(data: _Data) -> int:
    """The least number of examples of a token that is not rare: the largest that leaves enough tokens known."""
    table = incidence(data.sequences, len(data.vocabulary))
    table[:, : len(SPECIALS)] = 0
    examples = table.sum(axis=0)  # (V)
    occurrences = np.bincount(np.concatenate([np.asarray(one) for one in data.sequences]), minlength=len(examples))
    share = {least: occurrences[(examples > 0) & (examples < least)].sum() / occurrences.sum() for least in UNKNOWN}
    return next((least for least in UNKNOWN if share[least] <= RARE), 0)


# Neighborhoods


def _close(data: _Data, table: Mapping[str, Any], given: Mapping[str, Any]) -> _Found | None:
    """Neighborhoods of short and very similar sequences, if these alone are enough to learn from.

    Most examples have none then, but samples are better: of *look*, 99 % right, where neighborhoods that 84 % of the
    examples have leave 70 % (docs/notebook.md).
    """
    longest = min(table["longest"] or int(data.lengths.max()), _percentile(data, SHORT))
    for delta in CLOSE:
        one: dict[str, Any] = {"kind": "long-short", "cover": True, "longest": longest, **given, "delta": delta}
        found = _tried(data, NeighborhoodConfig.model_validate({**table, **one}))
        if found.rows_of(data) >= MANY and found.covered >= SHARE:
            return replace(found, close=True)
    return None


def _neighborhoods(data: _Data, prototypes: int, table: Mapping[str, Any], given: Mapping[str, Any]) -> _Found:
    """The neighborhoods to train on: the first that cover enough examples, else those that cover most."""
    best = _Found(NeighborhoodConfig.model_validate(table), 0.0, 0.0)
    if prototypes == 0:
        build(data.sequences, data.vocabulary, 0, best.config, 0)  # raises DataError where all are too long
        return _Found(best.config, 1.0, 1.0)
    for one in _candidates(data.words, given):
        found = _tried(data, NeighborhoodConfig.model_validate({**table, **one}))
        if found.covered > best.covered:
            best = found
        if found.covered >= COVERED:
            break
    if not best.rows:
        raise DataError(_why_none(data, table, given))
    return best


def _candidates(words: bool, given: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Neighborhoods in the order in which they are tried, without those that are not as `given`."""
    if given.get("kind", "tags" if words else "") == "tags":
        yield {"kind": "tags"}
        return
    deltas = [given["delta"]] if "delta" in given else DELTAS
    alike = [delta for delta in deltas if delta >= ALIKE or "delta" in given]
    covering = [{"kind": "long-short", "cover": True, "delta": delta} for delta in alike]
    similar = [{"kind": "long-long", "delta": delta} for delta in deltas]
    partly = [{"kind": "long-short", "cover": False, "delta": delta} for delta in deltas]  # as in the reference
    for one in (*covering, *similar, *partly):
        if all(given.get(name, value) == value for name, value in one.items()):
            yield one


def _tried(data: _Data, config: NeighborhoodConfig) -> _Found:
    """Build the neighborhoods of some of the examples, all if there are few."""
    order = stream(Purpose.SETTINGS, 0).permutation(len(data.sequences))
    pool, some = ([data.sequences[row] for row in order[:count]] for count in (POOL, TRIED))
    short = sum(config.longest is None or len(one) <= config.longest for one in some)
    try:
        if config.kind == "tags" or len(some) == len(pool):
            rows = build(some, data.vocabulary, 2, config, 0)
        else:
            rows = build(pool + some, data.vocabulary, 2, config, 0, pool=len(pool))
            rows = rows[rows[:, 2] != rows[:, 0] - len(pool)]  # the example itself, which is in the pool, too
    except DataError:
        return _Found(config, 0.0, 0.0)
    return _Found(config, len(np.unique(rows[:, 0])) / short, len(rows) / short)


def _why_none(data: _Data, table: Mapping[str, Any], given: Mapping[str, Any]) -> str:
    fixed = ", ".join(f"neighborhood.{name}={given[name]}" for name in ("kind", "delta", "longest") if name in given)
    return (
        f"none of {len(data.sequences):,} training examples can be put together from two similar ones"
        + (f" with {fixed}" if fixed else f" of up to {table['longest']} tokens")
        + f": recombination learns from such examples; {'leave out these settings, or ' if fixed else ''}"
        "give more examples, or use another method (cgen augment geca, cgen augment csl)"
    )


def _about_lengths(data: _Data, longest: int | None) -> str:
    share = _short(data, longest) / len(data.lengths)
    return f"sequences of up to {longest or data.lengths.max()} tokens, {share:.0%} of all"


def _about_neighborhoods(config: RecombineConfig, data: _Data, found: _Found) -> str:
    if not config.prototypes:
        return "no prototypes"
    one = config.neighborhood
    alike = "" if one.kind == "tags" else f" of similarity above {one.delta:g}"
    few = "" if found.covered >= COVERED else " (few: more examples, or augment geca or csl, may do better)"
    if found.close:
        few = ": enough to learn from, and closer than those that more examples have"
    rare = f"; tokens of fewer than {config.unknown_below} examples are copied" if config.unknown_below else ""
    partly = " that need not hold all tokens" if one.kind == "long-short" and not one.cover else ""
    share = found.covered * _short(data, one.longest) / len(data.lengths)
    return f"{one.kind} neighborhoods{partly}{alike}, which {share:.0%} of the examples have{few}{rare}"
