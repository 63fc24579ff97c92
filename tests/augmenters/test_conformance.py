"""What every augmenter keeps: one test over all methods of the registry, each with options that suit its data."""

import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from pathlib import Path

import polars as pl
import pytest

from compgen.augmenters.base import HOST, METHOD, Options
from compgen.augmenters.registry import BUILT_IN, LEARNED, find
from compgen.data.examples import TRAIN, Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.data.unimorph import inflection
from compgen.errors import DataError, ExhaustedError, UserError

DOCS = Path(__file__).parents[2] / "docs" / "augmenters.md"
COMMANDS = [
    f"{verb} {how} -> {' '.join([verb.upper()] * times)}"
    for verb in ("walk", "run", "look", "hop")
    for how, times in (("once", 1), ("twice", 2), ("thrice", 3))
] + ["jump -> JUMP", "walk -> WALK", "run -> RUN"]
QUESTIONS = [
    f"{word} in {place} -> {head} ( loc ( {place} ) )"
    for word, head in (("rivers", "river"), ("lakes", "lake"))
    for place in ("ohio", "utah")
] + [
    "rivers in iowa -> river ( loc ( iowa ) )",
    "cities in ohio -> city ( loc ( ohio ) )",
    "states -> state",
    "largest of rivers in ohio -> largest ( river ( loc ( ohio ) ) )",
    "largest of states -> largest ( state )",
    "number of lakes in utah -> count ( lake ( loc ( utah ) ) )",
    "number of states -> count ( state )",
]
STEMS = ("ketil", "pemik", "neksi", "timer", "katol", "pomak", "naska", "tomar")
TINY = {
    "network": {"hidden": 16, "encoder_hidden": 8, "embedding": 8, "output": 8, "attention": 8, "positions": 2},
    "prototypes": 1,
    "optimisation": {"steps": 30, "epochs": 1},
    "held_out": 0.0,
    "neighborhood": {"delta": 0.1},
    "sampling": {"temperature": (1.0, 1.0), "length_bound": "max"},
    "filters": (),
    "vote": False,
}
FEW = 6
SCAN = {  # as published for SCAN
    "max_nonterminals": 2,
    "repeated_targets": True,
    "bare_targets": True,
    "terminal_size": 4,
    "source_given_target": 0,
    "target_given_source": 100,
}
SWAPS = "walk\tstroll\tWALK\tSTROLL\nrun\tdash\tRUN\tDASH\nlook\tpeek\tLOOK\tPEEK\nhop\tskip\tHOP\tSKIP\n"
CASES = {
    "geca": ("geca", {}),
    "geca, all of few": ("geca", {"mode": "reference", "window": 1}),
    "recombine": ("recombine", TINY),
    "recombine, of few draws": ("recombine", TINY | {"draws_each": FEW, "filters": ("unique",)}),
    "recombine, voted": ("recombine", TINY | {"vote": True, "draws_each": 20}),
    "csl": ("csl", {"induction": SCAN, "training": {"states": 2, "steps": 20}}),
    "csl, uniform": ("csl", {"induction": SCAN, "uniform": True}),
    "substitute": ("substitute", {"induction": SCAN}),
    "substitute, drawn": ("substitute", {"induction": SCAN, "classes": "one", "chains": "exchange", "rounds": 3}),
    "lexsym": ("lexsym", {}),
    "lexsym, as published": ("lexsym", {"mode": "paper", "aligner": "simple"}),
    "lexsym, one for another": ("lexsym", {"move": "substitute", "aligner": "companions"}),
    "stemcorrupt": ("stemcorrupt", {}),
    "stemcorrupt, in harmony": ("stemcorrupt", {"candidates": 4}),
    "concat": ("concat", {}),
    "resample": ("resample", {}),
    "the example in the docs": ("token-swap", {}),
}
COUNT = 12


def data(name):
    if name == "stemcorrupt":
        words = Dataset.from_pairs(
            inflection((stem, stem + ("le" if stem[1] in "ei" else "la"), ("N", "PL"))) for stem in STEMS
        )
        return Dataset(words.frame.with_columns(note=pl.Series([f"note {row}" for row in range(len(words))])))
    lines = QUESTIONS if name == "substitute" else COMMANDS
    found = Dataset.from_pairs(tuple(side.split() for side in line.split(" -> ")) for line in lines)
    return Dataset(found.frame.with_columns(note=pl.Series([f"note {row}" for row in range(len(found))])))


@pytest.fixture(scope="module")
def swaps(tmp_path_factory):
    """The worked example of docs/augmenters.md, registered as another package registers its methods."""
    folder = tmp_path_factory.mktemp("package")
    code = re.search(r"```python\n(\"\"\"Token swap.*?)```", DOCS.read_text("utf-8"), re.S)
    (folder / "token_swap_of_the_docs.py").write_text(code[1], "utf-8")
    (folder / "swaps.tsv").write_text(SWAPS)
    distribution = folder / "token_swap-1.dist-info"
    distribution.mkdir()
    (distribution / "METADATA").write_text("Metadata-Version: 2.1\nName: token-swap\nVersion: 1\n")
    (distribution / "entry_points.txt").write_text(
        "[compgen.augmenters]\ntoken-swap = token_swap_of_the_docs:TokenSwap\n"
    )
    sys.path.insert(0, str(folder))
    yield folder
    sys.path.remove(str(folder))


@pytest.fixture(scope="module", params=CASES, ids=str)
def case(request, swaps):
    """A method's name, a fitted augmenter, its data, and how to make another."""
    name, options = CASES[request.param]
    if name == "token-swap":
        options = {"dictionary": str(swaps / "swaps.tsv")}

    def make(dataset=None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = find(name)(**options)
            assert made.report() == {} or made.report()["made"] == 0
            made.fit(data(name) if dataset is None else dataset, seed=1)
            made.report()  # there is one before anything is sampled
            return made

    return name, make(), data(name), make


def test_all_methods_explain_and_the_registry_knows_who_must_not_be_trained_for_it():
    assert all(find(name).explains() for name in BUILT_IN)
    assert {name for name in BUILT_IN if find(name)().needs_torch()} == set(LEARNED)


def test_every_method_is_tested():
    assert {name for name, _ in CASES.values()} == {*BUILT_IN, "token-swap"}


def rounded(dataset):
    """All columns; log-probabilities of a network depend in their last digits on what else is in a batch."""
    return Dataset(dataset.frame.with_columns(pl.selectors.float().round(4)))


def test_the_same_seed_gives_the_same_samples_and_another_gives_others(case):
    _, augmenter, _, make = case
    first = augmenter.sample(COUNT, seed=3)
    again = augmenter.sample(COUNT, seed=3), make().sample(COUNT, seed=3)
    assert [rounded(one) for one in again] == [rounded(first)] * 2
    others = [augmenter.sample(COUNT, seed=seed).pairs() for seed in range(4, 9)]
    assert any(other != first.pairs() for other in others)


def test_the_order_of_the_data_does_not_matter(case):
    _, augmenter, dataset, make = case
    shuffled = Dataset(dataset.frame.sample(fraction=1, shuffle=True, seed=5))
    assert shuffled.pairs() != dataset.pairs()
    assert make(shuffled).sample(COUNT, seed=3).pairs() == augmenter.sample(COUNT, seed=3).pairs()


def test_there_are_as_many_as_asked_for_or_the_report_says_why_not(case):
    """And fewer are the first of more, but where the best of many draws are kept."""
    _, augmenter, _, _ = case
    most = augmenter.sample(COUNT, seed=3).pairs()
    best = getattr(augmenter.options, "vote", False) or getattr(augmenter.options, "candidates", 1) > 1
    for count in (0, 1, 5, COUNT):
        if count == 1 and getattr(augmenter.options, "draws_each", None) == FEW:
            with pytest.raises(ExhaustedError, match=f"no sample is kept: {FEW} drawn"):
                augmenter.sample(count, seed=3)
            continue
        made = augmenter.sample(count, seed=3)
        report = augmenter.report()
        assert best or made.pairs() == most[: len(made)]
        assert (report["asked"], report["made"]) == (count, len(made))
        assert len(made) == count or (len(made) < count and report["why"])
        assert str(len(made)) in augmenter.described()


def test_samples_are_new_unless_the_method_copies_and_no_side_is_empty(case):
    _, augmenter, dataset, _ = case
    made = augmenter.sample(COUNT, seed=3)
    known = set(map(str, dataset.pairs()))
    if not augmenter.copies and not (augmenter.name == "recombine" and not augmenter.options.filters):
        assert not known & set(map(str, made.pairs()))
    assert all(source and target for source, target in made.pairs())


def test_samples_have_all_columns_and_survive_files(case, tmp_path):
    name, augmenter, _, _ = case
    made = augmenter.sample(COUNT, seed=3)
    assert set(made.frame["split"]) == {TRAIN} and set(made.frame[METHOD]) == {name}
    for column, dtype in augmenter.columns.items():
        assert made.frame.schema[column] == dtype
        assert dtype != pl.UInt64, "no reader of JSON can hold it"
    for suffix in ("jsonl", "parquet"):
        write_dataset(made, tmp_path / f"made.{suffix}")
        again = read_dataset(tmp_path / f"made.{suffix}")
        assert again.pairs() == made.pairs()
        assert again.frame.select(METHOD, *augmenter.columns).equals(made.frame.select(METHOD, *augmenter.columns))


def test_further_columns_come_from_the_example_that_was_changed(case):
    _, augmenter, dataset, _ = case
    frame = augmenter.sample(COUNT, seed=3).frame
    assert ("note" in frame.columns) == (HOST in augmenter.columns)
    if HOST in augmenter.columns:
        assert frame["note"].to_list() == [f"note {row}" for row in frame[HOST]]
        assert max(frame[HOST]) < len(dataset)


def test_a_fitted_method_can_be_pickled(case):
    _, augmenter, _, _ = case
    again = pickle.loads(pickle.dumps(augmenter))
    assert again.sample(COUNT, seed=3) == augmenter.sample(COUNT, seed=3)


def test_what_a_method_says_of_its_samples(case):
    _, augmenter, dataset, _ = case
    sample = augmenter.sample(COUNT, seed=3).frame.row(0, named=True)
    unfitted = find(augmenter.name)(**augmenter.options.model_dump())
    with pytest.raises(UserError):
        unfitted.explain(sample)
    if not augmenter.explains():
        with pytest.raises(UserError, match="does not say"):
            augmenter.explain(sample)
        return
    for wrong in ({}, None, dict.fromkeys(augmenter.columns, 10**6)):
        with pytest.raises(UserError, match=r"expected (a row of what|the row of an example|a sample of what)"):
            augmenter.explain(wrong)
    shown = [[token for piece, _ in one.source for token in piece.split()] for one in augmenter.explain(sample)]
    assert any(source in dataset.frame["source"].to_list() for source in shown)


def test_bad_options_counts_and_data_are_refused(case):
    name, augmenter, dataset, _ = case
    with pytest.raises(UserError, match=re.compile("no such setting", re.I)):
        find(name)(no_such_option=1)
    for options in ({}, "x", Options()):
        with pytest.raises(UserError, match=f"expected {find(name).options_type.__name__}"):
            find(name)(options)
    for count, seed in ((-1, 0), (2**64, 0), (1, -1), (1, 2**64), ("3", 0), (2.0, 0), (True, 0), (1, None)):
        with pytest.raises(UserError, match="expected whole numbers of 0 or more"):
            augmenter.sample(count, seed)
    for wrong in (None, [(["a"], ["b"])]):
        with pytest.raises(DataError, match="expected a Dataset"):
            find(name)().fit(wrong)
    with pytest.raises(UserError, match="seed -1"):
        find(name)().fit(dataset, -1)
    assert find(name)().described() == "nothing sampled yet"
    with pytest.raises(UserError, match="fit"):
        find(name)().sample(1)
    with pytest.raises(DataError, match="no example"):
        find(name)().fit(Dataset(dataset.frame.head(0)))
    with pytest.raises(DataError, match="expected a source and a target in all"):
        find(name)().fit(dataset + Dataset.from_pairs([(["a"], [])]))


def test_options_survive_the_record(case):
    name, augmenter, _, _ = case
    dumped = augmenter.options.model_dump(mode="json")
    assert find(name).options_type(**dumped) == augmenter.options
    described = [field.description for field in type(augmenter.options).model_fields.values()]
    assert all(text is None or text.strip() for text in described)


def test_the_example_in_the_docs_has_its_command_help_configuration_and_record(swaps, tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(swaps), os.environ.get("PYTHONPATH", "")])}

    def run(*words):
        command = [sys.executable, "-m", "compgen", *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "token-swap" in run("augment", "--help")
    help = " ".join(run("augment", "token-swap", "--help").split())
    assert "--dictionary FILE" in help and "By default, 1,000." in help
    given, out = tmp_path / "pairs.tsv", tmp_path / "more.jsonl"
    given.write_text("walk twice\tWALK WALK\njump\tJUMP\n")
    (tmp_path / "swaps.toml").write_text(f'dictionary = "{swaps / "swaps.tsv"}"\n')
    run("augment", "token-swap", given, "--config", tmp_path / "swaps.toml", "-n", 1, "-o", out)
    made = json.loads(out.read_text())
    assert (made["source"], made["target"]) == (["stroll", "twice"], ["STROLL", "STROLL"])
    assert (made["method"], made["host"], made["swap"]) == ("token-swap", 0, "walk stroll WALK STROLL")
    record = json.loads((tmp_path / "more.jsonl.run.json").read_text())
    assert record["options"] == {"dictionary": str(swaps / "swaps.tsv"), "shortest": 1}
    assert "from         walk twice -> WALK WALK" in run("explain", "token-swap", out)
