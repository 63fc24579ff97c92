"""`cgen data`, as a user runs it."""

import json
import subprocess
import sys
import warnings

import pytest

from compgen.cli.data import app
from compgen.data.catalog import names
from compgen.data.formats import read_dataset
from compgen.data.scan import SPLITS
from compgen.errors import DataError, Remark, UserError
from tests.cli.shell import compgen, refused, runner


def run(*arguments, **options):
    return runner().invoke(app, [str(argument) for argument in arguments], **options)


def test_list_shows_every_data_set_with_its_sizes_on_one_line():
    result = run("list")
    assert result.exit_code == 0
    for name in names():
        assert any(line.startswith(name + " ") for line in result.stdout.splitlines())
    assert any("scan/jump " in line and "train 14,670, test 7,706" in line for line in result.stdout.splitlines())
    assert "Lake and Baroni (2018)" in " ".join(result.stdout.split())


def test_list_says_what_has_to_be_downloaded(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    result = run("list")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert any("geo/logic-query " in line and "needs text2sql/geography-logic.txt" in line for line in lines)
    assert any("cogs/lf " in line and "needs cogs/train.tsv" in line for line in lines)
    assert "the folder that COMPGEN_DATA names" in " ".join(result.stdout.split())


def test_list_goes_on_after_data_that_cannot_be_read(monkeypatch, tmp_path):
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    (tmp_path / "cogs").mkdir()
    for part in ("train", "dev", "test", "gen"):
        (tmp_path / "cogs" / f"{part}.tsv").write_text(
            "A rose was helped by a dog .\trose ( x _ 1 ) AND help . theme ( x _ 3 , x _ 1 )\tin_distribution\n"
        )
    result = run("list")
    assert result.exit_code == 0
    assert any(
        "cogs/variable-free " in line and "cannot be read; see show" in line for line in result.stdout.splitlines()
    )


def test_show_prints_examples_and_statistics():
    result = run("show", "scan/jump", "--split", "train", "-n", "2")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "jump\tI_JUMP\ttrain",
        "jump\tI_JUMP\ttrain",
        "",
        "examples          train 14,670",
        "distinct          train 13,204",
        "source length     mean 6.6, max 9",
        "source vocabulary 13",
        "target length     mean 12.7, max 48",
        "target vocabulary 6",
    ]


def test_show_draws_by_its_seed():
    first, again, other = (run("show", "scan/jump", "-n", "5", "--seed", seed).stdout for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_show_reads_standard_input_and_prints_no_more_than_there_is():
    result = run("show", "-", "-n", "5", "--seed", "0", input="jump twice\tI_JUMP I_JUMP\n")
    assert result.exit_code == 0
    assert result.stdout.startswith("jump twice\tI_JUMP I_JUMP\ttrain\n\nexamples          train 1\n")


def test_write_of_several_splits_keeps_their_order(tmp_path):
    data = tmp_path / "data.tsv"
    data.write_text("a\tA\ttrain\nb\tB\ttest\nc\tC\tdev\nd\tD\ttrain\n", encoding="utf-8")
    result = run("write", str(data), "--split", "dev", "--split", "train", "-o", "-", "--format", "tsv")
    assert result.stdout == "a\tA\ttrain\nc\tC\tdev\nd\tD\ttrain\n"
    assert "3 examples of split dev, train; left out: 1 of test" in result.stderr
    wrong = run("write", str(data), "--split", "dev", "--split", "tset", "-o", "-")
    assert wrong.exit_code != 0 and "no examples in split 'tset'" in str(wrong.exception)


def test_write_converts_and_reports_on_standard_error(tmp_path):
    out = tmp_path / "jump.jsonl.gz"
    result = run("write", "scan/jump", "-o", out)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert "train 14,670, test 7,706" in result.stderr
    assert read_dataset(out) == SPLITS["jump"][0]()


@pytest.mark.parametrize("name", ["more.tsv", "folder"])
def test_a_record_of_what_was_there_before_does_not_stay(tmp_path, name):
    (tmp_path / "pairs.tsv").write_text("a\tX\nb\tY\n")
    (tmp_path / f"{name}.run.json").write_text("{}")
    assert run("write", tmp_path / "pairs.tsv", "-o", tmp_path / name).exit_code == 0
    assert (tmp_path / name).exists()
    assert not (tmp_path / f"{name}.run.json").exists()


def test_write_sets_signs_apart_and_back(tmp_path):
    (tmp_path / "glued.tsv").write_text("a b (c)\tf(a,b.c )\n")
    assert run("write", tmp_path / "glued.tsv", "--signs", "apart", "-o", tmp_path / "apart.tsv").exit_code == 0
    assert (tmp_path / "apart.tsv").read_text() == "a b ( c )\tf ( a , b . c )\n"
    assert run("write", tmp_path / "glued.tsv", "--signs", "marked", "-o", tmp_path / "marked.tsv").exit_code == 0
    back = run("write", tmp_path / "marked.tsv", "--signs", "joined", "-o", tmp_path / "back.tsv")
    assert back.exit_code == 0 and "warning" not in back.stderr
    with pytest.warns(Remark, match="the spaces of --signs apart cannot be told from others"):
        lost = run("write", tmp_path / "apart.tsv", "--signs", "joined", "-o", tmp_path / "lost.tsv")
    assert lost.exit_code == 0
    assert (tmp_path / "back.tsv").read_text() == (tmp_path / "glued.tsv").read_text()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("blank.tsv", "a\tf ￭( ￭b\n\nb\t\nc\tg\n\n"),
        ("empty.tsv", "a\tf ￭( ￭b\n\t\nb\t\nc\tg\n"),
        (
            "blank.jsonl",
            '{"source":["a"],"target":["f","￭(","￭b"]}\n{"source":[],"target":[]}\n'
            '{"source":["b"],"target":[]}\n{"source":["c"],"target":["g"]}\n',
        ),
    ],
)
def test_write_joins_predictions_and_says_which_lines_have_none(tmp_path, name, content):
    """As `cgen predict` writes them: for a blank line a blank one (.tsv), or two empty sides (.jsonl)."""
    (tmp_path / name).write_text(content)
    with pytest.warns(Remark, match="1 example without a token left out: lines of the output will not correspond"):
        assert run("write", tmp_path / name, "--signs", "joined", "-o", tmp_path / "joined.tsv").exit_code == 0
    assert (tmp_path / "joined.tsv").read_text() == "a\tf(b\nb\t\nc\tg\n"


@pytest.mark.parametrize(("content", "said"), [("f ￭(\n\ng\n\n", "2 blank lines"), ("f ￭(\ng\n\n", "1 blank line")])
def test_write_says_how_many_empty_answers_are_left_out_of_lines_even_at_the_end(tmp_path, content, said):
    (tmp_path / "answers.txt").write_text(content)
    with pytest.warns(Remark, match=rf"{said} left out: .*: predict to \.jsonl or \.tsv, where empty answers are kept"):
        done = run("write", tmp_path / "answers.txt", "--signs", "joined", "-o", tmp_path / "joined.txt")
    assert done.exit_code == 0 and (tmp_path / "joined.txt").read_text() == "f(\ng\n"


def test_write_changes_variables_and_names_them_again(tmp_path):
    (tmp_path / "pairs.tsv").write_text("where is it\tf ( A , B , A )\nwho\tg\n")
    done = run("write", tmp_path / "pairs.tsv", "--variables", "relative", "-o", tmp_path / "relative.tsv")
    assert "1 targets with relative variables now" in done.stderr
    assert "where is it\tf ( A+1 , A+1 , A-1 )" in (tmp_path / "relative.tsv").read_text()
    done = run("write", tmp_path / "relative.tsv", "--variables", "named", "-o", tmp_path / "back.tsv")
    assert "1 targets with named variables now" in done.stderr
    assert read_dataset(tmp_path / "back.tsv") == read_dataset(tmp_path / "pairs.tsv")


def test_write_to_standard_output_holds_the_data_only():
    result = run("write", "scan/jump", "--split", "test", "-o", "-", "--format", "scan")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert len(lines) == 7_706
    assert all(line.startswith("IN: ") for line in lines)
    assert result.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "scan/jmup"], "no such split of scan"),
        (["show", "scan/jump", "--split", "dev"], "no examples in split 'dev'; available splits: train"),
        (["write", "scan/jump", "-o", "x.xls"], "found the suffix '.xls'"),
        (["write", "scan/jump", "-o", "x.txt"], "scan holds one split a file"),
    ],
)
def test_mistakes_raise_the_users_error_and_write_nothing(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    result = run(*arguments)
    assert isinstance(result.exception, DataError)
    assert message in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def splits(tmp_path):
    """A file with three splits, and one of synthetic examples that has one."""
    whole, more = tmp_path / "whole.tsv", tmp_path / "more.tsv"
    whole.write_text("a b\tX\ttrain\na c\tX\tdev\na b\tX\ttest\na c\tX Y\ttest\n")
    more.write_text("a c\tX Y\n")
    return whole, more


def overlaps(*arguments, **options):
    result = run("overlap", *arguments, "--json", **options)
    assert result.exit_code == 0, result.exception
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_overlap_compares_test_with_train_without_and_with_each_augmentation(splits):
    whole, more = splits
    alone, augmented, other = overlaps(whole, "--augmented", more, "--augmented", whole)
    assert (alone["split"], alone["train_split"], alone["augmented"]) == ("test", "train", None)
    assert (alone["example_overlap"], alone["cooccurrence_overlap"]) == (0.5, 0.5)  # not ac cc XY YY
    assert (augmented["augmented"], augmented["example_overlap"], augmented["cooccurrence_overlap"]) == (
        str(more),
        1,
        1,
    )
    assert (other["augmented"], other["example_overlap"]) == (str(whole), 0.5)  # its split `train`, as in training


def test_overlap_looks_where_it_is_told(splits):
    whole, more = splits
    (both,) = overlaps(whole, "--train-split", "train", "--train-split", "dev")
    assert (both["train_split"], both["shared_cooccurrences"]) == ("train,dev", 6)
    assert overlaps(whole, "--split", "dev")[0]["shared_cooccurrences"] == 2  # aa XX
    (files,) = overlaps("-", "--train", whole, input=more.read_text())
    assert (files["split"], files["train"], files["shared_cooccurrences"]) == ("train", str(whole), 2)


def test_overlap_prints_a_table():
    result = run("overlap", "scan/jump", "--augmented", "scan/around_right")
    assert result.exit_code == 0
    header, alone, augmented, said = (" ".join(line.split()) for line in result.stdout.splitlines())
    assert header == "looked in example overlap co-occurrence overlap"
    assert alone == "train 0.0000 (0 of 7,706) 0.8333 (85 of 102)"
    assert augmented == "train + scan/around_right 0.7310 (5,633 of 7,706) 1.0000 (102 of 102)"
    assert said.startswith("data:scan/jump|split:test|train:scan/jump|train_split:train|examples:distinct")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["more.tsv"], "the split 'train' would be compared with itself: give --train"),
        (["whole.tsv", "--train", "whole.tsv", "--train-split", "test"], "the split 'test' would be compared"),
        (["whole.tsv", "--split", "gen"], "no examples in split 'gen'"),
        (["whole.tsv", "--train-split", "val"], "no examples in split 'val'"),
        (["-", "--train", "-"], "only once"),
        (["whole.tsv", "--augmented", "nowhere.tsv"], "nowhere.tsv: no such file"),
    ],
)
def test_overlap_refuses_what_says_nothing(splits, monkeypatch, arguments, message):
    monkeypatch.chdir(splits[0].parent)
    result = run("overlap", *arguments)
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)


def test_the_commands_load_nothing_heavy_before_they_run():
    check = "import sys, compgen.cli.data; sys.exit(bool({'polars', 'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0


def test_split_few_shot_writes_a_file_a_split(tmp_path, monkeypatch):
    rows = []
    for tense, count in (("PST", 1000), ("FUT", 1000), ("PRS", 2000)):
        for number in range(count):
            lemma = "".join("Abcdefgh"[number // 8**place % 8] for place in range(4))
            rows.append(f"{lemma}\t{lemma}{tense.lower()}\tV;{tense};{number % 40}")
    (tmp_path / "latin-train-high").write_text("\n".join(rows), encoding="utf-8")
    result = run("split", "few-shot", tmp_path / "latin-train-high", "--hints", 4, "--seeds", 2, "-o", tmp_path / "out")
    assert result.exit_code == 0, result.output
    first, second = sorted((tmp_path / "out").iterdir())
    assert (first.name, second.name) == ("latin.hints-4.seed-0.tsv", "latin.hints-4.seed-1.tsv")
    sizes = {"train": 1000, "dev": 100, "past": 100, "other": 100, "future": 100}
    assert read_dataset(first).splits == sizes
    assert "^A b" in first.read_text(encoding="utf-8")
    assert read_dataset(first) != read_dataset(second)
    more = ("--hints", 3, "--hints", 4, "--seeds", 1, "-o", tmp_path / "more")
    assert run("split", "few-shot", tmp_path / "latin-train-high", *more).exit_code == 0
    assert sorted(path.name for path in (tmp_path / "more").iterdir())[1] == first.name
    assert (tmp_path / "more" / first.name).read_bytes() == first.read_bytes()  # whatever else is asked for
    # The published splits are of words in lower case.
    (tmp_path / "sigmorphon").symlink_to(tmp_path)
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    known = ("--hints", 4, "--seeds", 1, "-o", tmp_path / "known")
    assert run("split", "few-shot", "sigmorphon/latin", *known).exit_code == 0
    small = (tmp_path / "known" / first.name).read_text(encoding="utf-8")
    assert small == first.read_text(encoding="utf-8").replace("^A", "a")
    mine = tmp_path / "more" / "latin.hints-4.seed-0.tsv"
    mine.write_text("\n".join(rows), encoding="utf-8")
    overwritten = run("split", "few-shot", mine, "--hints", 4, "--seeds", 1, "-o", tmp_path / "more")
    assert "it is read, too" in str(overwritten.exception)
    assert mine.read_text(encoding="utf-8") == "\n".join(rows)
    none = ("--hints", 4, "--hints", 501, "-o", tmp_path / "none")
    refused = run("split", "few-shot", tmp_path / "latin-train-high", *none)
    assert "501 hints of past and future each do not fit" in str(refused.exception)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("command", [["write"], ["split", "length"], ["cogs", "--to", "lf", "--keep"]])
def test_further_columns_are_kept_or_said_to_be_left_out(tmp_path, command):
    rows = [{"source": f"a {n}", "target": "b", "id": str(n)} for n in range(6)]
    (tmp_path / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.warns(Remark, match=r"y\.tsv: left out, as tsv has no place for it: id; \.jsonl keeps it"):
        assert run(*command, tmp_path / "x.jsonl", "-o", tmp_path / "y.tsv").exit_code == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error", Remark)
        assert run(*command, tmp_path / "x.jsonl", "-o", tmp_path / "y.jsonl").exit_code == 0
    assert set(read_dataset(tmp_path / "y.jsonl").frame["id"]) == set("012345")


def test_what_is_left_out_names_the_format_that_txt_stands_for(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"source": "a", "target": "b", "id": 1}\n')
    with pytest.warns(Remark, match=r"y\.txt: left out, as scan has no place for it: id"):
        run("write", tmp_path / "x.jsonl", "-o", tmp_path / "y.txt")


def test_sentences_are_not_swapped(tmp_path):
    (tmp_path / "s.txt").write_text("a b\n")
    result = run("write", tmp_path / "s.txt", "--swap", "-o", tmp_path / "x.jsonl")
    assert "found sentences, without targets, which cannot be swapped" in str(result.exception or result.output)
    assert not (tmp_path / "x.jsonl").exists()


def test_split_lemma_and_swap(tmp_path):
    pairs = [f"{lemma}\t{lemma}{form}\tN;{form.upper()}" for lemma in "abcdefghij" for form in "xy"]
    (tmp_path / "words").write_text("\n".join(pairs), encoding="utf-8")
    assert run("split", "lemma", tmp_path / "words", "-o", tmp_path / "parts.tsv").exit_code == 0
    parts = read_dataset(tmp_path / "parts.tsv")
    assert parts.splits == {"train": 16, "dev": 2, "test": 2}
    lemma = ("split", "lemma", tmp_path / "words", "-o", tmp_path / "tested.tsv", "--test")
    assert run(*lemma, 0.4).exit_code == 0
    assert read_dataset(tmp_path / "tested.tsv").splits == {"train": 10, "dev": 2, "test": 8}
    for options, wrong in (
        ((0.4, "--train", 0.4), "give --train or --test"),
        ((0.9,), "--test 0.9 and --dev 0.1 leave nothing to train on"),
        ((0,), "leave nothing to test on"),
    ):
        assert wrong in str(run(*lemma, *options).exception)
    assert "leave nothing to train on" in str(run(*lemma[:-1], "--train", 0).exception)
    assert run("write", tmp_path / "parts.tsv", "--swap", "-o", tmp_path / "analysis.tsv").exit_code == 0
    assert read_dataset(tmp_path / "analysis.tsv") == parts.swapped()


@pytest.fixture
def inflections(tmp_path):
    words = [f"{stem}{end}ak" for stem in "bdkmst" for end in ("ol", "er")]
    given, more = tmp_path / "words", tmp_path / "more.tsv"
    given.write_text("".join(f"{w}\t{w}{'lar' if 'ol' in w else 'ler'}\tN;PL\n" for w in words), encoding="utf-8")
    more.write_text("k o t e N PL\tk o t e l a r\nk a t ı N SG\tk a t ı\n" * 64, encoding="utf-8")
    return given, more


def test_stems_prints_tables(inflections):
    given, more = inflections
    result = run("stems", given, "--augmented", more, "--harmony", "turkish")
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["0", "12", "0", "12", "N;PL", "100.0%", "6", "of", "12"] in lines
    assert ["128", "140", "0", "14", "N;PL", "54.3%", "70", "of", "76"] in lines
    assert ["0", "stem", "tags", "0.000", "0.000", "-"] in lines
    assert [line for line in lines if line[:3] == ["128", "last", "tags"]]
    few = run("stems", given, "--augmented", given)
    assert [line.split()[0] for line in few.stdout.splitlines() if line[:2] == "12"] == ["12"] * 7
    alone = run("stems", given)
    assert "out of harmony" not in alone.stdout and "128" not in alone.stdout


def test_stems_prints_json(inflections):
    given, more = inflections
    result = run("stems", given, "--augmented", more, "--size", 64, "--size", 0, "--json")
    assert result.exit_code == 0, result.output
    none, some = map(json.loads, result.stdout.splitlines())
    assert (none["augmented"], some["augmented"], some["examples"], some["with"]) == (0, 64, 76, str(more))
    assert (none["data"], none["split"], none["shortest"], none["harmony"]) == (str(given), "train", 3, None)
    assert [(found["of"], found["and"]) for found in some["dependences"]] == [
        (of, other) for of in ("stem", "last") for other in ("form affix", "tags", "lemma affix")
    ]
    assert set(none["dependences"][0]) == {"of", "and", "bits", "chance", "adjusted"}


def test_stems_refuses_what_cannot_be(inflections):
    given, more = inflections
    for words, message in (
        (["scan/jump"], "letters of a lemma and tags"),
        ([given, "--harmony", "spanish"], "expected turkish or finnish"),
        ([given, "--augmented", more, "--size", "129"], "expected at most 128"),
        ([given, "--size", "1"], "expected at most 0"),
        (["-", "--augmented", "-"], "only once"),
    ):
        with pytest.raises(UserError, match=message):
            run("stems", *words, catch_exceptions=False)


QUERIES = "".join(f"{verb} {noun}\tSELECT {noun} FROM {verb}\n" for verb in "abcd" for noun in "vwxyz")


@pytest.mark.parametrize("kind", ["tmcd", "mcd"])
def test_brackets_of_one_target_do_not_make_trees_of_all(tmp_path, kind):
    (tmp_path / "y.tsv").write_text(QUERIES + "a how many v\tSELECT COUNT ( v ) FROM a\n" * 2)
    arguments = ("split", kind, tmp_path / "y.tsv", "-o", tmp_path / "out.tsv")
    by_default = run(*arguments)
    chosen = run(*arguments, "--compounds", "source")
    assert by_default.exit_code == 0 and by_default.stderr == chosen.stderr
    with pytest.warns(Remark, match="found one compound in all examples"):
        assert run(*arguments, "--compounds", "tree").exit_code == 0


def test_the_divergence_in_one_compound_is_remarked(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tf ( a )\ttrain\nb\tf ( a )\ttest\n")
    with pytest.warns(Remark, match="found one compound in all examples, .*--compounds of `cgen data split tmcd`"):
        assert run("divergence", tmp_path / "x.tsv").exit_code == 0


FUNCTIONS = "".join(
    f"{outer} {inner} {leaf}\t{outer} ( {inner} ( {leaf} ) )\n" for outer in "fgh" for inner in "klm" for leaf in "vwxy"
)


@pytest.mark.parametrize(
    ("command", "sizes"),
    [
        (["template", "--train", 20], {"train": 20, "dev": 6, "test": 10}),
        (["length", "--side", "target"], {"train": 18, "dev": 6, "test": 12}),
        (["tmcd", "--least", 1, "--plain-atoms"], {"train": 18, "dev": 6, "test": 12}),
        (["random", "--test", 16], {"train": 20, "dev": 6, "test": 10}),
        (["random", "--test", 0.25], {"train": 27, "dev": 6, "test": 3}),
        (["template", "--test", 16], {"train": 20, "dev": 6, "test": 10}),
        (["length", "--test", 0.5], {"train": 18, "dev": 6, "test": 12}),
        (["length", "--train", 0.5], {"train": 18, "dev": 6, "test": 12}),
        (["tmcd", "--least", 1, "--plain-atoms", "--test", 18], {"train": 18, "dev": 6, "test": 12}),
        (["mcd", "--train", 16, "--test", 10, "--compounds", "source"], {"train": 16, "dev": 6, "test": 4}),
    ],
)
def test_split_divides_and_says_how_far_the_parts_are_apart(tmp_path, command, sizes):
    name, *options = command
    given, out = tmp_path / "given.tsv", tmp_path / "parts.tsv"
    given.write_text(FUNCTIONS)
    result = run("split", name, given, *options, "--dev", 6, "--seed", 1, "-o", out)
    assert result.exit_code == 0, result.exception
    assert set(read_dataset(out).splits.items()) == set(sizes.items())
    left = 36 - sum(sizes.values())
    in_none = f"; in no part: {left}" if left else ""
    assert f"dev 6, test {sizes['test']}, train {sizes['train']}{in_none}\n" in result.stderr
    measured = ["--plain-atoms"] * ("--plain-atoms" in options) + ["--compounds", "source"] * ("source" in options)
    assert run("divergence", out, *measured).stdout in result.stderr
    assert result.stdout == ""


def test_leaks_are_counted_in_the_test_part_that_is_written(tmp_path):
    (tmp_path / "x.tsv").write_text("".join(f"a{n // 2}\tb\n" for n in range(40)))
    result = run("split", "random", tmp_path / "x.tsv", "--dev", 6, "-o", tmp_path / "y.tsv")
    parts = read_dataset(tmp_path / "y.tsv")
    train, tested = (parts.split(name).pairs() for name in ("train", "test"))
    leaked = sum(pair in train for pair in tested)
    assert f"warning: {leaked} of {len(tested)} test examples are in train, too" in result.stderr


@pytest.mark.parametrize(("repeated", "said"), [(True, True), (False, False)])
def test_split_warns_where_a_test_example_is_in_training(tmp_path, repeated, said):
    lines = [f"go {place}\tGO {place}\n" for place in "abcdef"]
    (tmp_path / "given.tsv").write_text("".join([lines[0]] * 6 if repeated else lines))
    result = run("split", "random", tmp_path / "given.tsv", "--test", 2, "-o", tmp_path / "o.tsv")
    warning = "warning: 2 of 2 test examples are in train, too, as DATA repeats them"
    assert (warning in " ".join(result.stderr.split())) == said
    assert ("warning" in result.stderr) == said


def test_split_warns_of_sources_with_several_targets_and_keeps_them_together(tmp_path):
    given, out = tmp_path / "given.tsv", tmp_path / "o.tsv"
    given.write_text("".join(f"go {place}\tGO {number}\n" for place in "abc" for number in range(4)))
    result = run("split", "random", given, "--test", 6, "-o", out)
    assert "of 6 test examples have a source that is in train with another target" in " ".join(result.stderr.split())
    result = run("split", "template", given, "--test", 4, "--side", "source", "-o", out)
    assert "warning" not in result.stderr and read_dataset(out).splits == {"train": 8, "test": 4}


def test_a_column_that_may_name_splits_is_told_and_splits_are_divided_anew_with_a_word(tmp_path):
    given, named, out = tmp_path / "given.csv", tmp_path / "named.csv", tmp_path / "o.tsv"
    given.write_text("source,target,part\n" + "".join(f"go {n},GO {n},{'train' if n else 'test'}\n" for n in range(6)))
    with pytest.warns(Remark, match="the column 'part' is not read: if it names train and test, call it 'split'"):
        assert read_dataset(given).splits == {"train": 6}
    told = compgen("check", given).stdout
    assert "warning  the column 'part' is not read" in told and "--fix" not in told, "which cannot rename it"
    (tmp_path / "capital.csv").write_text(given.read_text().replace("source,target,part", "Source,Target,Split"))
    with pytest.warns(Remark, match="the column 'Split' is not read: if it names train and test, call it 'split'"):
        assert read_dataset(tmp_path / "capital.csv").splits == {"train": 6}
    words = tmp_path / "words.csv"
    words.write_text("lemma,form,tags,set\n" + "".join(f"go{n},goes{n},V;3,test\n" for n in range(6)))
    with pytest.warns(Remark, match="the column 'set' is not read: if it names train and test, call it 'split'"):
        assert read_dataset(words).splits == {"train": 6}
    assert "warning  the column 'set' is not read" in compgen("check", words).stdout
    named.write_text(given.read_text().replace("part", "split"))
    result = run("split", "random", named, "--test", 2, "-o", out)
    told = " ".join(result.stderr.split())
    assert "all its splits (test 1, train 5) are pooled and split again; --split NAME takes only one" in told
    result = run("split", "random", named, "--test", 2, "--split", "train", "-o", out)
    assert "split again" not in result.stderr


def test_split_needs_no_compounds_for_templates_and_lengths(tmp_path):
    (tmp_path / "given.tsv").write_text("a\tA\nb\tf ( B\n")
    result = run("split", "template", tmp_path / "given.tsv", "-o", "-")
    assert result.exit_code == 0, result.exception
    assert len(result.stdout.splitlines()) == 2
    assert "divergences not measured: found nothing to compare in the training part" in result.stderr


def test_divergence_compares_training_with_all_the_rest_or_what_it_is_told(tmp_path):
    parts, more = tmp_path / "parts.tsv", tmp_path / "more.tsv"
    parts.write_text("a b\tX\ttrain\na b\tX\tdev\nb a\tX\ttest\n")
    more.write_text("a b\tX\nb c\tX\n")

    def found(*arguments):
        result = run("divergence", *arguments, "--json")
        assert result.exit_code == 0, result.exception
        return json.loads(result.stdout)

    both = found(parts)
    assert (both["split"], both["unseen_compounds"], both["test_compounds"]) == ("dev,test", 1, 2)
    assert abs(both["compounds"] - (1 - 0.5**0.9)) < 1e-12
    assert abs(both["atoms"]) < 1e-12
    assert found(parts, "--split", "test")["compounds"] == 1
    assert abs(found(parts, "--split", "dev")["compounds"]) < 1e-12
    assert found(parts, "--split", "test", "--train", more)["train"] == str(more)
    assert (found(more, "--train", parts)["split"], found(more, "--train", parts)["unseen_atoms"]) == ("train", 1)
    assert "divergence of atoms 0.0000, of compounds 0.4641" in run("divergence", parts).stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["split", "template", "one.tsv", "-o", "o.tsv"], "found one template"),
        (["split", "random", "one.tsv", "-o", "o.tsv", "--test", "3"], "test 3: expected fewer than the 3 examples"),
        (["split", "random", "one.tsv", "-o", "o.tsv", "--test", "0.01"], "a share of 0.01 is 0 of 3 examples, "),
        (["split", "mcd", "one.tsv", "-o", "o.tsv", "--train", "0.9"], "a share of 0.9 is 3 of 3 examples, "),
        (["split", "length", "one.tsv", "-o", "o.tsv", "--dev", "0.1"], "a share of 0.1 is 0 of 3 examples, "),
        (
            ["split", "random", "one.tsv", "-o", "o.tsv", "--test", "1.5"],
            "found a size of 1.5, expected a whole number",
        ),
        (["split", "tmcd", "one.tsv", "-o", "o.tsv", "--test", "1", "--train", "1"], "give train or test"),
        (["split", "length", "one.tsv", "-o", "o.tsv", "--train", "3"], "found 3 examples, expected more than the 3"),
        (["split", "length", "one.tsv", "-o", "o.tsv", "--side", "left"], "--side left: expected source or target"),
        (["split", "length", "one.tsv", "-o", "o.tsv", "--dev", "2"], "found 2 examples to test on"),
        (["split", "tmcd", "one.tsv", "-o", "o.tsv", "--compounds", "tree"], "found a closing bracket"),
        (["split", "tmcd", "one.tsv", "-o", "o.tsv", "--compounds", "x"], "expected tree, source or target"),
        (
            ["split", "tmcd", "one.tsv", "-o", "o.tsv", "--compounds", "tree", "--ngram", "3"],
            "--ngram 3: compounds are those",
        ),
        (["split", "mcd", "one.tsv", "-o", "o.tsv", "--compounds", "source", "--plain-atoms"], "n-grams of the source"),
        (["divergence", "two.tsv", "--plain-atoms"], "--plain-atoms: compounds are n-grams of the source here"),
        (["split", "mcd", "one.tsv", "-o", "o.xls"], "found the suffix '.xls'"),
        (["split", "mcd", "one.tsv", "-o", "o.scan"], "hold all parts of a split"),
        (["split", "mcd", "empty.tsv", "-o", "o.tsv"], "no examples"),
        (["divergence", "one.tsv"], "the split 'train' would be compared with itself"),
        (["divergence", "one.tsv", "--train", "./one.tsv"], "the split 'train' would be compared with itself"),
        (["divergence", "-", "--train", "-"], "only once"),
        (["divergence", "one.tsv", "--train", "one.tsv", "--split", "gen"], "no examples in split 'gen'"),
    ],
)
def test_split_and_divergence_refuse_what_cannot_be(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.tsv").write_text("a b\tf )\n" * 3)
    (tmp_path / "two.tsv").write_text("a b\tx\ttrain\nb a\tx\ttest\n")
    (tmp_path / "empty.tsv").write_text("")
    result = run(*arguments)
    assert isinstance(result.exception, UserError)
    assert message in str(result.exception)
    assert not list(tmp_path.glob("o.*"))


def test_cogs_converts_predictions_and_says_which_cannot_be(tmp_path):
    predicted = "Mia slept .\tsleep ( agent = Mia )\nA cat ran .\trun ( agent =\n"
    result = run("cogs", "-", "--to", "lf", "--keep", "--format", "tsv", "-o", "-", input=predicted)
    assert result.exit_code == 0
    assert result.stdout == "Mia slept .\tsleep . agent ( x_1 , Mia )\nA cat ran .\trun ( agent =\n"
    assert "1 targets converted, 1 left as they were" in result.stderr
    lf = result.stdout.splitlines()[0]
    back = run("cogs", "-", "--to", "variable-free", "--format", "tsv", "-o", "-", input=lf)
    assert back.stdout == "Mia slept .\tsleep ( agent = Mia )\n"
    strict = run("cogs", "-", "--to", "lf", "-o", tmp_path / "out.tsv", input=predicted)
    assert isinstance(strict.exception, DataError)
    assert str(strict.exception).startswith("standard input, example 2: 'run ( agent =': found the end as token 5")
    assert not (tmp_path / "out.tsv").exists()


def test_a_downloaded_file_is_not_overwritten(tmp_path, monkeypatch):
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    (tmp_path / "cogs").mkdir()
    kept = tmp_path / "cogs" / "train.tsv"
    kept.write_text("A cat ran .\tcat ( x _ 1 ) AND run . agent ( x _ 2 , x _ 1 )\tin_distribution\n")
    before = kept.read_text()
    refused = run("write", "scan/jump", "-o", kept)
    assert "among the data sets in the folder that COMPGEN_DATA names" in str(refused.exception)
    assert kept.read_text() == before
    assert run("write", "scan/jump", "--split", "test", "-o", tmp_path / "cogs" / "new.tsv").exit_code == 0


def test_cogs_keeps_a_target_without_letters(tmp_path):
    (tmp_path / "p.jsonl").write_text('{"source":[""],"target":[""]}\n')
    kept = run("cogs", tmp_path / "p.jsonl", "--to", "lf", "--keep", "-o", tmp_path / "out.jsonl")
    assert kept.exit_code == 0, kept.output
    assert read_dataset(tmp_path / "out.jsonl").pairs() == [([""], [""])]


def test_cogs_knows_two_forms():
    result = run("cogs", "-", "--to", "sql", "-o", "-", input="Mia slept .\tsleep ( agent = Mia )\n")
    assert isinstance(result.exception, UserError)
    assert str(result.exception) == "no form 'sql': expected lf or variable-free"


def test_quality_says_what_is_wrong_and_strict_makes_it_an_error(tmp_path):
    train, made = tmp_path / "train.tsv", tmp_path / "made.jsonl"
    train.write_text("a b\tf ( b )\nc\tg ( c )\nd\th\n")
    made.write_text('{"source": "a c", "target": "f ( c )"}\n{"source": "d", "target": "g ( ("}\n')
    done = compgen("data", "quality", made, "--train", train)
    assert done.returncode == 0 and done.stdout.startswith(
        "quality: 2 distinct, 0 in training; balanced brackets 50.0%"
    )
    assert "warning: brackets are balanced in 50.0% of the examples, in training in 100.0%: " in done.stderr
    assert "warning: 50.0% of the examples have a source with another target in training: " in done.stderr
    refused(compgen("data", "quality", made, "--train", train, "--strict"), "--strict: 2 warnings above")
    (line,) = compgen("data", "quality", made, "--train", train, "-n", 3, "--json").stdout.splitlines()
    figures = json.loads(line)
    assert (figures["asked"], figures["contradicting"], len(figures["warnings"])) == (3, 0.5, 3)


def test_quality_counts_what_a_grammar_derives(tmp_path):
    train, made, grammar = tmp_path / "train.tsv", tmp_path / "made.tsv", tmp_path / "targets.cfg"
    train.write_text("a\tf a\n")
    made.write_text("b\tf b\nc\tc f\n")
    grammar.write_text("ROOT => f ##X\nX => ##\n")
    done = compgen("data", "quality", made, "--train", train, "--targets", grammar)
    assert "derivable targets 50.0% (training 100.0%)" in done.stdout
    assert "warning: the grammar derives 50.0% of the targets, in training 100.0%: " in done.stderr
