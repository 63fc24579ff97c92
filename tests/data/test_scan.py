"""SCAN: the meaning of commands as the paper gives it, and the published splits, row for row."""

import collections

import pytest

from compgen.data import scan
from compgen.errors import DataError

WALKS_LEFT = "I_TURN_LEFT I_WALK"

# The first nine are the examples of the paper (its Figure 1), the others cover the rest of the grammar.
MEANINGS = {
    "jump": "I_JUMP",
    "jump left": "I_TURN_LEFT I_JUMP",
    "jump around right": "I_TURN_RIGHT I_JUMP I_TURN_RIGHT I_JUMP I_TURN_RIGHT I_JUMP I_TURN_RIGHT I_JUMP",
    "turn left twice": "I_TURN_LEFT I_TURN_LEFT",
    "jump thrice": "I_JUMP I_JUMP I_JUMP",
    "jump opposite left and walk thrice": "I_TURN_LEFT I_TURN_LEFT I_JUMP I_WALK I_WALK I_WALK",
    "jump opposite left after walk around left": " ".join([WALKS_LEFT] * 4 + ["I_TURN_LEFT I_TURN_LEFT I_JUMP"]),
    "walk after run": "I_RUN I_WALK",
    "run and walk": "I_RUN I_WALK",
    "jump around left twice": " ".join(["I_TURN_LEFT I_JUMP"] * 8),
    "turn around right": "I_TURN_RIGHT I_TURN_RIGHT I_TURN_RIGHT I_TURN_RIGHT",
    "turn opposite left thrice": " ".join(["I_TURN_LEFT"] * 6),
    "look right twice after turn opposite right": "I_TURN_RIGHT I_TURN_RIGHT I_TURN_RIGHT I_LOOK I_TURN_RIGHT I_LOOK",
}


@pytest.mark.parametrize(("command", "actions"), MEANINGS.items())
def test_a_command_means_its_actions(command, actions):
    assert scan.interpret(command.split()) == actions.split()


def test_a_result_can_be_changed_without_changing_the_next():
    scan.interpret(["jump"]).append("I_RUN")
    assert scan.interpret(["jump"]) == ["I_JUMP"]


@pytest.mark.parametrize(
    ("command", "culprit"),
    [
        ("", "''"),
        ("turn", "'turn'"),
        ("fly", "'fly'"),
        ("jump up", "'jump up'"),
        ("jump twice twice", "'jump twice'"),
        ("jump around", "'jump around'"),
        ("jump and", "''"),
        ("walk and run left left", "'run left left'"),
        ("walk and run and jump", "'run and jump'"),
    ],
)
def test_what_is_not_a_command_is_refused_with_the_part_that_is_wrong(command, culprit):
    with pytest.raises(DataError, match=f"not a SCAN command: .*: found {culprit}, expected"):
        scan.interpret(command.split())


def test_there_are_20910_commands_always_in_the_same_order():
    first, second = ([" ".join(command) for command in scan.commands()] for _ in range(2))
    assert first == second
    assert len(first) == len(set(first)) == 20_910


@pytest.mark.parametrize(
    ("split", "train", "test", "distinct"),
    [
        ("simple", 16_728, 4_182, 16_728),
        ("jump", 14_670, 7_706, 13_204),
        ("turn_left", 21_890, 1_208, 19_702),
        ("length", 16_990, 3_920, 16_990),
        ("around_right", 15_225, 4_476, 15_225),
        ("opposite_right", 15_225, 4_476, 15_225),
        ("right", 15_225, 4_476, 15_225),
        ("jump_around_right", 18_528, 1_173, 18_528),
    ],
)
def test_splits_have_the_published_sizes_and_share_nothing(split, train, test, distinct):
    dataset = scan.SPLITS[split][0]()
    assert dataset.splits == {"train": train, "test": test}
    assert dataset.unique().splits == {"train": distinct, "test": test}
    assert not texts(dataset.split("train")) & texts(dataset.split("test"))


def test_jump_stands_1467_times_in_training_and_nowhere_else():
    train = [" ".join(source) for source, _ in scan.SPLITS["jump"][0]().split("train").pairs()]
    assert train.count("jump") == 1_467
    assert sum("jump" in command for command in train) == 1_467


def test_opposite_right_is_held_out_by_definition():
    dataset = scan.SPLITS["opposite_right"][0]()
    train, test = texts(dataset.split("train")), texts(dataset.split("test"))
    assert not any("opposite right" in command for command in train)
    assert all("opposite right" in command for command in test)
    left_out = {" ".join(command) for command in scan.commands()} - train - test
    assert len(left_out) == 1_209
    assert all("turn opposite right" in command for command in left_out)


def test_simple_follows_its_seed():
    assert scan.simple() == scan.simple(seed=0)
    assert scan.simple() != scan.simple(seed=1)
    assert texts(scan.simple(seed=1)) == texts(scan.simple())


@pytest.mark.parametrize(
    ("split", "name"),
    [
        ("jump", "addprim_jump"),
        ("turn_left", "addprim_turn_left"),
        ("length", "length"),
        ("around_right", "template_around_right"),
        ("right", "template_right"),
        ("jump_around_right", "template_jump_around_right"),
    ],
)
@pytest.mark.parametrize("part", ["train", "test"])
def test_splits_are_the_published_ones(published, split, name, part):
    made = scan.SPLITS[split][0]().split(part)
    assert collections.Counter(lines(made)) == collections.Counter(published(part, name))


def test_all_commands_are_the_published_ones(published):
    assert set(lines(scan.simple())) == set(published("train", "simple")) | set(published("test", "simple"))


def lines(dataset):
    return [f"IN: {' '.join(source)} OUT: {' '.join(target)}" for source, target in dataset.pairs()]


def texts(dataset):
    return {" ".join(source) for source, _ in dataset.pairs()}
