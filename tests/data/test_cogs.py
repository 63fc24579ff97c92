"""COGS: its two forms, its parts, and what is neither."""

import pytest

from compgen.data import cogs
from compgen.errors import DataError

LF = "A rose slept .\trose ( x _ 1 ) AND sleep . agent ( x _ 2 , x _ 1 )\tin_distribution\n"
PRIMITIVE = "Zoe\tZoe\tprimitive\n"
VARIABLE_FREE = "A rose slept .\tsleep ( agent = rose )\n"


def written(folder, **parts):
    files = {part: folder / f"{part}.tsv" for part in parts}
    for part, content in parts.items():
        files[part].write_text(content)
    return files


def test_variables_of_logical_forms_are_one_token_and_the_third_column_is_ignored(tmp_path):
    dataset = cogs.read(written(tmp_path, train=LF + PRIMITIVE, gen=LF), "lf")
    target = ["rose", "(", "x_1", ")", "AND", "sleep", ".", "agent", "(", "x_2", ",", "x_1", ")"]
    slept = (["A", "rose", "slept", "."], target)
    assert dataset.pairs() == [slept, (["Zoe"], ["Zoe"]), slept]
    assert list(dataset.splits.items()) == [("train", 2), ("gen", 1)]


def test_variable_free_targets_stay_as_they_are(tmp_path):
    dataset = cogs.read(written(tmp_path, train=VARIABLE_FREE), "variable-free")
    assert dataset.pairs() == [(["A", "rose", "slept", "."], ["sleep", "(", "agent", "=", "rose", ")"])]


@pytest.mark.parametrize(
    ("content", "form", "message"),
    [
        (VARIABLE_FREE, "lf", r"found the target 'sleep \( agent = rose \)', expected targets in the form 'lf'"),
        (LF, "variable-free", r"found the target 'rose \( x _ 1 .*, expected targets in the form 'variable-free'"),
        (LF + "no target\n", "lf", "line 2: found no TAB in 'no target', expected source TAB target"),
        ("", "lf", "no examples: the file is empty"),
    ],
)
def test_files_that_are_not_as_they_should_be_are_named(tmp_path, content, form, message):
    with pytest.raises(DataError, match=f"dev.tsv.*{message}"):
        cogs.read(written(tmp_path, train=PRIMITIVE, dev=content), form)


def test_a_missing_part_is_named(tmp_path):
    with pytest.raises(DataError, match=r"gen.tsv: no such file"):
        cogs.read({"gen": tmp_path / "gen.tsv"}, "lf")


@pytest.mark.parametrize(("name", "tokens"), [("cogs/lf", 38_671), ("cogs/variable-free", None)])
def test_the_published_files_have_the_published_sizes(downloaded, name, tokens):
    dataset = downloaded(name)
    assert list(dataset.splits.items()) == [("train", 24_155), ("dev", 3_000), ("test", 3_000), ("gen", 21_000)]
    assert not any("_" in target for _, target in dataset.pairs())
    if tokens:
        # As GECA's reference code reads the first thousand pairs.
        assert sum(len(source) + len(target) for source, target in dataset.pairs()[:1000]) == tokens
