"""SCAN (Lake and Baroni 2018), made from its grammar: 20,910 navigation commands and what they mean.

The grammar is smaller than the files, so nothing has to be downloaded. The splits hold the same examples as the
published files (`simple` excepted, which is random), in the grammar's order instead of theirs.

    C -> S and S | S after S | S          U -> walk | look | run | jump
    S -> V twice | V thrice | V           D -> U left | U right | turn left | turn right
    V -> D | U | (D's verb) opposite (D's side) | (D's verb) around (D's side)

The template splits are those of Loula, Baroni and Lake (2018), "Rearranging the familiar".
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import polars as pl

from compgen.data.examples import Dataset
from compgen.errors import DataError

TEST = "test"

Actions = tuple[str, ...]
_ACTIONS: dict[str, Actions] = {verb: (f"I_{verb.upper()}",) for verb in ("walk", "look", "run", "jump")} | {"turn": ()}
_TURNS: dict[str, Actions] = {"left": ("I_TURN_LEFT",), "right": ("I_TURN_RIGHT",)}
_TIMES = {"twice": 2, "thrice": 3}
_PRIMITIVE = "(?:walk|look|run|jump)"
_SIMPLE_TRAIN = 16_728  # the size of the published training file: 80% of all commands


def interpret(command: Sequence[str]) -> list[str]:
    """Return the actions that a command stands for, e.g. `jump twice` -> `I_JUMP I_JUMP`."""
    words = tuple(command)
    for place, word in enumerate(words):
        if word in ("and", "after"):
            before, after = _phrase(words[:place], words), _phrase(words[place + 1 :], words)
            return [*before, *after] if word == "and" else [*after, *before]
    return list(_phrase(words, words))


def _phrase(words: tuple[str, ...], command: tuple[str, ...]) -> Actions:
    """Return the actions of S in the grammar: a verb phrase, perhaps repeated."""
    if words and words[-1] in _TIMES:
        return _verb(words[:-1], command) * _TIMES[words[-1]]
    return _verb(words, command)


def _verb(words: tuple[str, ...], command: tuple[str, ...]) -> Actions:
    """Return the actions of V in the grammar; `command` is the whole, for the error message."""
    match words:
        case [verb] if verb in _ACTIONS and verb != "turn":
            return _ACTIONS[verb]
        case [verb, side] if verb in _ACTIONS and side in _TURNS:
            return _TURNS[side] + _ACTIONS[verb]
        case [verb, "opposite", side] if verb in _ACTIONS and side in _TURNS:
            return _TURNS[side] * 2 + _ACTIONS[verb]
        case [verb, "around", side] if verb in _ACTIONS and side in _TURNS:
            return (_TURNS[side] + _ACTIONS[verb]) * 4
    raise DataError(
        f"not a SCAN command: {' '.join(command)!r}: found {' '.join(words)!r}, expected a verb phrase such as "
        "'walk', 'turn left', 'jump around right' or 'look opposite left', perhaps with 'twice' or 'thrice', "
        "at most two of them joined by 'and' or 'after'"
    )


def commands() -> Iterator[list[str]]:
    """Yield all 20,910 commands, always in the same order: single phrases, then pairs with `and`, then with `after`."""
    bare = [[verb] for verb in _ACTIONS if verb != "turn"]
    manners: tuple[list[str], ...] = ([], ["opposite"], ["around"])
    verbs = bare + [[verb, *manner, side] for manner in manners for verb in _ACTIONS for side in _TURNS]
    phrases = [[*verb, *times] for verb in verbs for times in ([], ["twice"], ["thrice"])]
    yield from map(list, phrases)
    for joint in ("and", "after"):
        for first in phrases:
            for second in phrases:
                yield [*first, joint, *second]


@cache
def _examples() -> pl.DataFrame:
    """Return all commands as a frame: source, target, split, and `text`, the source as one string to search in."""
    pairs = Dataset.from_pairs((source, interpret(source)) for source in commands())
    return pairs.frame.with_columns(pl.col("source").list.join(" ").alias("text"))


def _dataset(train: pl.DataFrame, test: pl.DataFrame) -> Dataset:
    return Dataset(pl.concat([train, test.with_columns(split=pl.lit(TEST))]).drop("text"))


def simple(seed: int = 0) -> Dataset:
    """Return a random 80/20 split. It has the sizes of the published one, but other commands fall into test."""
    # Sorting by a digest, not by random numbers, gives the same split in every version of Python and NumPy.
    key = pl.Series([hashlib.sha256(f"{seed} {text}".encode()).digest() for text in _examples()["text"]])
    frame = _examples()[key.arg_sort()]
    return _dataset(frame[:_SIMPLE_TRAIN], frame[_SIMPLE_TRAIN:])


def _add_primitive(phrase: str) -> Dataset:
    """Return `addprim_*`: train on `phrase` alone and on every command without it; test on it inside other commands.

    As published, `phrase` is repeated until it makes up a tenth of the training rows.
    """
    text = pl.col("text")
    alone, rest = _examples().filter(text == phrase), _examples().filter(text != phrase)
    with_it = text.str.contains(phrase, literal=True)
    others = rest.filter(~with_it)
    return _dataset(pl.concat([alone] * (others.height // 9) + [others]), rest.filter(with_it))


def length() -> Dataset:
    """Return the split that trains on commands of at most 22 actions, and tests on the longer ones (24 to 48)."""
    short = pl.col("target").list.len() <= 22
    return _dataset(_examples().filter(short), _examples().filter(~short))


def _template(phrase: str, verb: str = _PRIMITIVE) -> Dataset:
    """Return `template_*`: test on the commands with `verb` before `phrase`, train on the rest.

    As published, the commands with `turn` before `phrase` are in neither: they would give the template away.
    """
    frame = _examples().filter(~pl.col("text").str.contains(f"turn {phrase}", literal=True))
    held_out = pl.col("text").str.contains(f"{verb} {phrase}")
    return _dataset(frame.filter(~held_out), frame.filter(held_out))


# Each split with what is new in its test part, in few words: `cgen data list` shows them beside the sizes.
SPLITS: dict[str, tuple[Callable[[], Dataset], str]] = {
    "simple": (simple, "nothing: our own random draw"),
    "jump": (partial(_add_primitive, "jump"), "'jump' in combination"),
    "turn_left": (partial(_add_primitive, "turn left"), "'turn left' in combination"),
    "length": (length, "more than 22 actions"),
    "around_right": (partial(_template, "around right"), "'walk around right' etc."),
    "opposite_right": (partial(_template, "opposite right"), "'walk opposite right' etc."),
    "right": (partial(_template, "right"), "'walk right' etc."),  # "Primitive right" in the paper
    "jump_around_right": (partial(_template, "around right", verb="jump"), "'jump around right'"),
}
