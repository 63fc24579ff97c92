"""`cgen check`, as a user runs it. What it says of wrong tables is in test_wrong_tables.py."""

import json
import shlex
import subprocess
import sys
import warnings

import polars as pl
import pytest

from compgen.cli.main import app
from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.errors import DataError, Remark, UserError
from tests.cli.shell import compgen, refused, runner, said

WRONG = 'id\tsplit\na "b"\tf ( x )\n"c d"\tf ( y )\ne\t\na "b"\tf ( x )\n'


def run(*words):
    return runner().invoke(app, ["check", *map(str, words)])


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "wrong.tsv").write_text(WRONG)
    (tmp_path / "good.tsv").write_text("a b\tf ( x )\nc b\tg ( x )\na d\tf ( y )\n")
    return tmp_path


def test_data_without_lines_are_read_once(folder, monkeypatch):
    Dataset.from_pairs([(["a"], ["b"]), (["c"], ["d"])]).frame.write_parquet(folder / "x.parquet")
    read = []
    monkeypatch.setattr("compgen.data.catalog.read_dataset", lambda *given: read.append(given) or read_dataset(*given))
    result = run("x.parquet")
    assert "train 2" in result.output and len(read) == 1, result.output


def test_tags_may_be_a_list_and_are_mended_as_tags(folder):
    words = [{"lemma": f"gel{n}", "form": "", "tags": ["N", "PL"]} for n in "abcdef"]
    for word in words[1:]:
        word["form"] = word["lemma"] + "ler"
    (folder / "w.json").write_text(json.dumps(words))
    result = run("w.json", "--fix", "m.unimorph")
    assert result.exit_code == 0, result.output
    assert (folder / "m.unimorph").read_text().splitlines()[0] == "gelb\tgelbler\tN;PL"
    assert "Next: cgen check w.json --fix mended.unimorph" in run("w.json").stdout
    assert "expected a lemma, a form, and tags" in result.stdout and "left out 1" in result.stderr


def test_page_breaks_part_words(folder):
    (folder / "p.tsv").write_text("go left\x0bthen right\tL R\nstop\x0cnow\tS\n")
    assert run("p.tsv", "--fix", "m.tsv").exit_code == 0
    assert (folder / "m.tsv").read_text() == "go left then right\tL R\nstop now\tS\n"


def test_special_symbols_in_sentences_are_a_warning(folder):
    (folder / "s.txt").write_text("<s> a b </s>\nc d\n")
    result = run("s.txt")
    assert result.exit_code == 0 and "warning  line 1: a special symbol" in result.stdout


def test_tabs_in_some_sentences_are_no_table(folder):
    (folder / "s.txt").write_text("a\tb\nc d\n")
    result = run("s.txt")
    assert result.exit_code == 0 and "TAB" not in result.stdout
    (folder / "s.txt").write_text("a\tb\nc\td\n")
    result = run("s.txt")
    assert "warning  each line has 1 TAB, and" in result.stdout and "--fix" not in result.stdout


def test_a_long_field_of_csv_is_no_error(folder):
    lines = ['"a","b"', *(f"x{row},y{row}" for row in range(30)), "x," + "y " * 80_000]
    (folder / "long.csv").write_text("\n".join(["source,target", *lines]) + "\n")
    code = "import sys; from compgen.__main__ import main; sys.argv = ['cgen', 'check', 'long.csv']; main()"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )  # as csv's limit is of a process
    assert done.returncode == 0 and "error" not in done.stdout, done.stdout


def test_a_good_table_is_said_to_be_good_with_the_next_command():
    result = run("good.tsv")
    assert result.exit_code == 0
    assert result.stdout.startswith("good.tsv: tsv; source TAB target; train 3\n\nNothing is wrong.\n")
    assert "stemcorrupt  no       takes words; example 1 is a pair" in result.stdout
    assert result.stdout.endswith("\nNext: cgen augment geca good.tsv -o more.jsonl\n")


def test_words_get_the_method_for_words(folder):
    (folder / "deu").write_text("gehen\tgehst\tV;PRS\n\nsehen\tsah\tV;PST\n")
    result = run("deu")
    assert "deu: unimorph; lemma TAB form TAB tags; train 2" in result.stdout
    assert result.stdout.endswith("Next: cgen augment stemcorrupt deu -o more.jsonl\n")


@pytest.mark.parametrize("name", ["deu", "deu.tsv", "deu.csv"])
def test_words_that_differ_in_a_capital_are_different(folder, name):
    header, sign = ("lemma,form,tags\n", ",") if name == "deu.csv" else ("", "\t")
    rows = [("Haus", "Häuser", "N;PL"), ("haus", "hausen", "N;PL")]
    (folder / name).write_text(header + "".join(sign.join(row) + "\n" for row in rows), encoding="utf-8")
    result = run(name)
    assert result.exit_code == 0 and "Nothing is wrong" in result.stdout
    assert run(name, "--fix", "mended.unimorph").exit_code == 0
    assert (folder / "mended.unimorph").read_text(encoding="utf-8") == "".join("\t".join(row) + "\n" for row in rows)


@pytest.mark.parametrize("name", ["own", "own.tsv", "own.csv"])
def test_words_whose_accents_stand_apart_are_told(folder, name):
    header, sign = ("lemma,form,tags\n", ",") if name == "own.csv" else ("", "\t")
    rows = [("kan", "kane", "N;PL"), ("kano\u0301", "kano\u0301ne", "N;PL")]
    (folder / name).write_text(header + "".join(sign.join(row) + "\n" for row in rows), encoding="utf-8")
    result = run(name)
    assert result.exit_code == 0 and "--fix" not in result.stdout
    assert f"note     line {3 if header else 2}: accents stored apart from their letters" in result.stdout


@pytest.mark.parametrize("name", ["deu", "deu.tsv", "deu.unimorph"])
def test_all_lines_that_are_no_words_are_told_and_left_out_by_fix(folder, name):
    words = "gehen\tging\tV;PST\nsehen\tsah\tV;PST\n"
    (folder / name).write_text(
        f"{words}\nrufen\trief\n{words.upper()}laufen\ngeben\tgab\x07\tV;PST\nlegen\tlegte\tv;pst\n"
    )
    result = run(name)
    assert result.exit_code == 2
    assert "unimorph; lemma TAB form TAB tags; no command reads it as it is; examples that can" in result.stdout
    assert "be made out: 4\n" in result.stdout
    assert "error    lines 4, 7: found 'rufen\\trief', expected lemma TAB form TAB tags" in result.stdout
    assert "joined by semicolons (line 4; the others alike)\n" in result.stdout
    assert "error    line 8: found '\\x07' in 'gab\\x07', which has a control" in result.stdout
    assert "error    line 9: found the tag 'v', expected tags that begin" in result.stdout
    assert result.stdout.endswith(f"Next: cgen check {name} --fix mended.unimorph\n")
    result = run(name, "--fix", "mended.unimorph")
    assert (
        result.exit_code == 0
        and (folder / "mended.unimorph").read_text() == words + "GEHEN\tGING\tV;PST\nSEHEN\tSAH\tV;PST\n"
    )
    assert run("mended.unimorph").exit_code == 0


def test_fix_keeps_no_part_of_words_in_another_order(folder):
    swapped = "Hahn\tN;GEN;SG\tHahnes\nBukett\tN;PL\tBukette\nauswandern\tV;3;SG\twandert aus\n"
    (folder / "deu").write_text(swapped)
    for options in ([], ["--fix", "mended.unimorph"]):
        result = run("deu", *options)
        assert isinstance(result.exception, UserError) and "line 1: found the tags 'N;GEN;SG' in second place" in str(
            result.exception
        )
    assert not (folder / "mended.unimorph").exists()


def test_words_below_a_header_are_checked_by_its_names(folder):
    (folder / "deu.tsv").write_text(
        "lemma\tform\ttags\n" + "gehen\tging\tV;PST\nsehen\tsah\tV;PST\n" * 2 + "rufen\trief\n"
    )
    result = run("deu.tsv")
    assert result.exit_code == 2 and "words, from the columns lemma, form, tags" in result.stdout
    assert "error    line 6: another number of fields than 3" in result.stdout and "line 1:" not in result.stdout
    assert "see that fields are separated by one TAB each" in result.stdout


def test_advice_on_a_csv_is_of_its_sign_and_of_columns_that_may_be_sides(folder):
    (folder / "x.csv").write_text("id,text,call,set\nu1,play it,play(),train\nu2,stop it,stop(),train\n")
    result = run("x.csv")
    assert "if these are names, say which are meant, as: --source text --target call" in result.stdout
    (folder / "x.csv").write_text("Nr,Satz,Aufruf\n1,play it,play()\n2,stop it,stop()\n")
    assert "if these are names, say which are meant, as: --source Satz --target Aufruf" in run("x.csv").stdout
    (folder / "x.csv").write_text("Word,UPOS,Feats,Inflected\nev,NOUN,Case=Dat,eve\n")
    words = "if these are names of columns of words, call them lemma, form and tags"
    assert words in run("x.csv").stdout
    (folder / "x.csv").write_text('Wort;Wortform;Gloss\ngehen;ging;V, PST\nsehen;sah;"V;PST"\nsein;ist;V, PRS\n')
    said = run("x.csv").stdout
    assert words in said and "--source" not in said  # two columns would lose the tags
    (folder / "x.csv").write_text("source;target\nplay it;play()\nstop it;stop();now\n")
    result = run("x.csv")
    assert "line 3: another number of fields than 2" in result.stdout
    assert "see that fields are separated by ';', and quoted where they hold it" in result.stdout


def test_a_line_for_excel_before_the_names_is_told_and_left_out(folder):
    (folder / "x.csv").write_text("sep=;\nsource;target;id\nplay it;play();1\nstop it;stop();2\n")
    result = run("x.csv", "--fix", "y.csv")
    assert "error    line 1: a line sep=, for Excel, before the names of columns" in result.stdout
    assert (folder / "y.csv").read_text().startswith("source,target,id\nplay it,play(),1\n")


def test_words_of_which_no_line_is_right_are_refused_as_by_other_commands(folder):
    (folder / "deu.tsv").write_text("gehen\tging\tv;pst\nsehen\tsah\tv;pst\nrufen\trief\n")
    result = run("deu.tsv", "--fix", "mended.tsv")
    assert isinstance(result.exception, UserError) and "line 3: found 'rufen\\trief', without tags" in str(
        result.exception
    )
    assert not (folder / "mended.tsv").exists()


def test_check_does_not_send_to_itself(folder):
    (folder / "deu").write_text("gehen\tV;PST\n")
    result = run("deu")
    assert isinstance(result.exception, UserError)
    assert "name other data by theirs" in str(result.exception) and "cgen check" not in str(result.exception)
    Dataset.from_pairs([([], ["d"]), (["a"], ["b"])]).frame.write_parquet(folder / "x.parquet")
    result = run("x.parquet")
    assert "row 1: found an empty source" in str(result.exception) and "cgen check" not in str(result.exception)


def test_a_table_without_train_is_augmented_from_the_split_it_has(folder):
    (folder / "dev.tsv").write_text("a b\tf ( x )\tdev\na c\tf ( y )\tdev\nd b\tg ( x )\tdev\n")
    assert run("dev.tsv").stdout.endswith("Next: cgen augment geca dev.tsv --split dev -o more.jsonl\n")


def test_sentences_become_more_sentences(folder):
    (folder / "sent.txt").write_text("the cat saw a dog\nthe cat met a dog\nthe fox saw a dog\n")
    assert run("sent.txt").stdout.endswith("Next: cgen augment geca sent.txt -o more.txt\n")
    done = compgen("augment", "geca", folder / "sent.txt", "-o", folder / "more.txt")
    assert done.returncode == 0, done.stderr
    assert (folder / "more.txt").read_text() == "the fox met a dog\n"


def test_what_fix_cannot_mend_is_not_sent_to_it(folder):
    glued = "how many rivers\tanswer(count(river))\nhow many lakes\tanswer(count(lake))\n"
    (folder / "glued.tsv").write_text(glued)
    assert run("glued.tsv").stdout.endswith("\nNext: cgen data write glued.tsv --signs apart -o apart.tsv\n")
    (folder / "glued.tsv").write_text(4 * glued + "a b\tA B\na c\tA C\nd b\tD B\n")
    assert "or as they are, cgen augment" in run("glued.tsv").stdout
    (folder / "empty.tsv").write_text("a\t\n\tb\n")
    assert "Next: mend it by hand, then cgen check empty.tsv" in run("empty.tsv").stdout


def test_what_was_not_tried_is_said(folder):
    (folder / "long.tsv").write_text("".join(f"{'a ' * 600}\t{'A ' * (600 + number)}\n" for number in range(3)))
    told = run("long.tsv").stdout.splitlines()
    (place,) = (number for number, line in enumerate(told) if line.startswith("Not tried, as that takes longer: csl, "))
    assert told[place + 1].startswith("The longest example has 1,202 tokens") and told[place - 1] == ""
    *_, method, one, two = map(json.loads, run("long.tsv", "--json").stdout.splitlines())
    assert method["method"] == "resample" and one["remark"].startswith("Not tried") and "1,202" in two["remark"]


def test_json_has_a_line_for_the_table_each_finding_and_each_method():
    result = run("wrong.tsv", "--json")
    assert result.exit_code == 2
    table, *others = map(json.loads, result.stdout.splitlines())
    assert table == {
        "data": "wrong.tsv",
        "format": "tsv",
        "read_as": "source TAB target",
        "readable": False,
        "splits": None,
    }
    empty = next(row for row in others if row["severity"] == "error")
    assert empty["lines"] == [4] and empty["count"] == 1
    *_, method = map(json.loads, run("good.tsv", "--json").stdout.splitlines())
    assert method == {"method": "resample", "applies": True, "why": None}


def test_fix_writes_a_table_and_says_what_is_left_out(folder):
    result = run("wrong.tsv", "--fix", "mended.tsv")
    assert result.exit_code == 0
    assert (folder / "mended.tsv").read_text() == 'a "b"\tf ( x )\nc d\tf ( y )\n'
    assert "left out 1: an empty side: line 4\n" in result.stderr
    assert "left out 1: the same example as before: line 5\n" in result.stderr
    assert "mended.tsv: train 2; sides rewritten: 1\n" in result.stderr
    assert result.stderr.endswith("\nNext: cgen check mended.tsv\n") and "Next" not in result.stdout
    assert run("mended.tsv").exit_code == 0


def test_a_mended_table_is_not_mixed_with_the_report():
    code, text = said("check", "wrong.tsv", "--fix", "-")
    assert code == 2 and "--fix -: the report goes to standard output: give the name of a file" in text


def test_further_columns_are_kept_or_said_to_be_left_out(folder):
    rows = [{"source": f"a {n}", "target": f"f {n}", "id": n} for n in "12"]
    (folder / "x.jsonl").write_text("".join(json.dumps(row) + "\n" for row in [*rows, {"source": "b", "target": ""}]))
    assert run("x.jsonl").stdout.endswith("Next: cgen check x.jsonl --fix mended.jsonl\n")
    with pytest.warns(Remark, match=r"mended\.tsv: left out, as tsv has no place for it: id"):
        run("x.jsonl", "--fix", "mended.tsv")
    with warnings.catch_warnings():
        warnings.simplefilter("error", Remark)
        run("x.jsonl", "--fix", "mended.jsonl")
    assert read_dataset(folder / "mended.jsonl").frame["id"].to_list() == ["1", "2"]


def test_columns_can_be_named(folder):
    (folder / "x.csv").write_text("q,a,note\nhow many,count,x\n")
    result = run("x.csv", "--source", "q", "--target", "a", "--fix", "out.jsonl")
    assert result.exit_code == 0
    assert "columns 'q' and 'a'; train 1" in result.stdout
    frame = read_dataset(folder / "out.jsonl").frame
    assert frame.row(0, named=True) == {"source": ["how", "many"], "target": ["count"], "split": "train", "note": "x"}


@pytest.mark.parametrize("name", ["wrong.tsv", "good.tsv"])
def test_a_pipe_is_checked_as_a_file_is(folder, name):
    """It can be read but once, and the checks and the readers of commands both need it."""
    file, pipe = (
        compgen("check", name, cwd=folder),
        compgen("check", "-", cwd=folder, stdin=(folder / name).read_text()),
    )
    assert pipe.returncode == file.returncode
    again = pipe.stdout.replace("standard input", name).replace("Next: save the input as data.tsv, then ", "Next: ")
    assert again == file.stdout.replace(f" {name}", " data.tsv") and "save the input" in pipe.stdout


def test_a_named_pipe_of_words_is_checked(folder):
    call = f"{shlex.quote(sys.executable)} -m compgen check <(printf 'gehen\\tging\\tV;PST\\n')"
    done = subprocess.run(["bash", "-c", call], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and ": unimorph; lemma TAB form TAB tags; train 1\n" in done.stdout, done


def test_a_name_that_begins_with_a_hyphen_is_no_option_of_the_next_command(folder):
    for name in ("good.tsv", "wrong.tsv"):
        (folder / name).rename(folder / f"-{name}")
    assert run("--", "-good.tsv").stdout.endswith("Next: cgen augment geca ./-good.tsv -o more.jsonl\n")
    result = run("--fix", "-m.tsv", "--", "-wrong.tsv")
    assert result.stderr.endswith("Next: cgen check ./-m.tsv\n")
    with pytest.raises(DataError, match=r"`cgen check \./-wrong\.tsv` shows all"):
        load("-wrong.tsv")


def test_the_next_command_names_the_columns_that_were_given(folder, monkeypatch):
    (folder / "x.csv").write_text(
        "Frage,our Programm\n"
        + "".join(f"{one} {at},{one}_ {at}_\n" for one in "abc" for at in range(40 - (one == "c")))
    )
    result = run("x.csv", "--source", "Frage", "--target", "our Programm")
    assert result.exit_code == 0 and "error" not in result.stdout
    assert result.stdout.endswith("Next: cgen compare x.csv --source Frage --target 'our Programm' -o comparison\n")
    monkeypatch.setattr("compgen.cli.check.find_spec", lambda name: None)  # without torch nothing can be compared
    result = run("x.csv", "--source", "Frage", "--target", "our Programm")
    assert "Next: cgen augment geca x.csv --source Frage --target 'our Programm' -o more" in result.stdout


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        (
            "onecol.tsv",
            b"a b\nc d\n",
            "of 2 lines 2 would be left out, most for no TAB between source and target: write",
        ),
        ("spaces.tsv", b"a b    c\nc d    e\n", "most for no TAB between source and target: write a TAB between them"),
        ("x.csv", b"Frage,Programm,Autor\na b,c,me\nd,e,me\n", "which are meant, as: --source Frage --target Programm"),
        (
            "latin1.tsv",
            "Öl\tb\nöl\td\ne\tf\n".encode("latin-1"),
            "bytes that are no UTF-8: save it as UTF-8: of",
        ),
        (
            "utf16.tsv",
            "Öl\tb\nc\td\n".encode("utf-16"),
            "utf16.tsv: this looks like UTF-16, expected UTF-8: iconv -f utf-16 -t utf-8 FILE > NEW",
        ),
    ],
)
def test_fix_writes_nothing_where_most_lines_would_be_lost(folder, name, content, says):
    (folder / name).write_bytes(content)
    for words in (["check", name], ["check", name, "--fix", "mended.tsv"]):
        code, text = said(*words)
        assert code == 2 and "--fix mended.tsv" not in text, text
    assert says in text
    assert not (folder / "mended.tsv").exists()


def test_a_table_of_repetitions_is_mended(folder):
    (folder / "twice.tsv").write_text("a\tb\n" * 5 + "c\td\n")
    assert run("twice.tsv", "--fix", "mended.tsv").exit_code == 0
    assert (folder / "mended.tsv").read_text() == "a\tb\nc\td\n"


def test_a_tab_in_a_sentence_is_a_blank(folder):
    (folder / "x.txt").write_text("a b\nc\td\n")
    assert run("x.txt").stdout.startswith("x.txt: text; sentences, one a line; train 2\n\nNothing is wrong.\n")


def test_fix_does_not_write_over_what_it_reads(folder):
    result = run("wrong.tsv", "--fix", "wrong.tsv")
    assert isinstance(result.exception, UserError)
    assert (folder / "wrong.tsv").read_text() == WRONG


@pytest.mark.parametrize("name", ["wrong.tsv", "good.tsv"])
def test_the_exit_code_of_the_program_says_whether_commands_read_it(folder, name):
    done = compgen("check", name, cwd=folder)
    assert done.returncode == (2 if name == "wrong.tsv" else 0)
    assert done.stderr == ""


def test_a_missing_file_is_the_users_mistake(folder):
    refused(compgen("check", "nowhere.tsv", cwd=folder), "nowhere.tsv: no such file")


def test_a_known_data_set_and_a_folder_are_checked_too():
    assert "a known data set" in run("scan/simple").stdout
    # Its sources have several targets, any of them right: nothing to mend.
    assert run("nacs/simple").stdout.endswith("Next: cgen compare nacs/simple -o comparison\n")
    runner().invoke(app, ["data", "write", "good.tsv", "-o", "made"])
    assert "made: folder; columns 'source' and 'target' and 'split'; train 3" in run("made").stdout


def test_parquet_is_described_by_the_columns_that_are_read(folder):
    made = {"id": [1, 2], "question": ["play it", "stop it"], "sql": ["play ( )", "stop ( )"], "set": ["train", "test"]}
    pl.DataFrame(made).write_parquet(folder / "q.parquet")
    found = run("q.parquet").stdout
    assert found.startswith("q.parquet: parquet; columns 'question' and 'sql'; train 2")
    assert "warning  the column 'set' is not read: if it names train and test, call it 'split'" in found
    (folder / "parts").mkdir()
    pl.DataFrame(made).write_parquet(folder / "parts" / "test.parquet")
    turned = run("parts", "--source", "sql", "--target", "question").stdout
    assert turned.startswith("parts: folder; columns 'sql' and 'question' and 'split'; test 2")
    pl.DataFrame({"lemma": ["go"], "form": ["went"], "tags": ["V;PST"], "n": [3]}).write_parquet(folder / "w.parquet")
    found = run("w.parquet").stdout
    assert found.startswith("w.parquet: parquet; words, from the columns lemma, form, tags; train 1")


def test_several_targets_of_a_source_are_kept_where_that_is_asked_for(tmp_path):
    (tmp_path / "sounds.tsv").write_text("o n e\tW AH N\nt w o\tT UW\no n e\tHH W AH N\nt w o\tT UW\n")
    for words, kept in (([], 2), (["--keep-targets"], 3)):
        done = compgen("check", "sounds.tsv", "--fix", "mended.tsv", *words, cwd=tmp_path)
        assert done.returncode == 0 and f"mended.tsv: train {kept};" in done.stderr
        assert (tmp_path / "mended.tsv").read_text().count("o n e\t") == kept - 1
    refused(compgen("check", "sounds.tsv", "--keep-targets", cwd=tmp_path), "add --fix OUT")
