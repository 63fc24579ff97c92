"""The mistakes that people make with tables: what `cgen check` and the commands that read them say, and where."""

import pytest

from tests.cli import shell
from tests.cli.shell import said

GOOD = '{"source": "a", "target": "b"}\n'
NO_BREAK, WIDTHLESS, LOST = "\u00a0", "\u200b", "\ufffd"

# A file, its content, the exit code of `check`, and what `check` says.
WRONG = [
    ("empty.tsv", "", 2, "empty.tsv: no examples"),
    ("blank.tsv", "\n \n", 2, "no examples"),
    (
        "sentence_lf.tsv",
        "Sentence\tLogical repr of meaning\na b\tc d\n",
        0,
        "warning  line 1: the first line (Sentence | Logical",
    ),
    (
        "half_header.tsv",
        "My sentence\tThe representation\na b\tc d\n",
        0,
        "warning  line 1: the first line (My sentence | T",
    ),
    ("id_header.tsv", "id\tsplit\na b\tc d\n", 0, "line 1: the first line (id | split) looks like names of columns"),
    (
        "odd_header.tsv",
        "Anweisung\tunser Programm\n" + "a b\tc d\n" * 19,
        0,
        "note     line 1: all words of the first line (Anweisung | unser Programm) occur in no other: is it a header?",
    ),
    (
        "odd_header.tsv",
        "Anweisung\tunser Programm\n" + "a b\tc d\n" * 19,
        0,
        "say --source Anweisung --target 'unser Pr",
    ),
    ("topv2.tsv", "domain\tutterance\tsemantic_parse\nm\ta b\t[c b ]\n", 0, "columns 'utterance' and 'semantic_parse'"),
    ("known_header.tsv", "source\ttarget\na b\tc d\n", 0, "columns 'source' and 'target'; train 1"),
    ("quotes.tsv", '"a, b"\tc\nd\te\n', 0, "warning  line 1: sides in double quotes"),
    ("doubled.tsv", 'd\te\n"say ""x"""\t"c"\n', 0, "warning  line 2: sides in double quotes"),
    (
        "ids.tsv",
        "1\thow many\tcount x\n2\twhere is\tplace x\n",
        0,
        "the first column is ids: commands take it for sources",
    ),
    (
        "headed_ids.tsv",
        "Nr\tBefehl\tAufruf\n1\ta b\tf x\n2\ta c\tf y\n3\ta d\tf z\n",
        0,
        "warning  line 1: the first line (Nr | Befehl | Aufruf) is names of columns",
    ),
    ("four.tsv", "1\ta\tb\ttrain\n2\tc\td\ttest\n", 2, "the first column is ids"),
    ("bars.txt", "what ||| f\nwho ||| g\n", 0, "lines 1, 2: source ||| target in place of source TAB target"),
    ("bars.tsv", "what ||| f\nwho ||| g\n", 2, "lines 1, 2: source ||| target in place of source TAB target"),
    ("spaces.tsv", "a b    c d\ne f    g h\n", 2, "error    lines 1, 2: no TAB between source and target"),
    ("one_space.tsv", "a\tb\nc d\ne\tf\n", 2, "error    line 2: another number of fields than 2"),
    ("no_target.tsv", "a\tb\nc\t\nd\te\n", 2, "error    line 2: an empty side"),
    ("no_source.tsv", "a\tb\n\tc\n", 2, "error    line 2: an empty side"),
    ("twice.tsv", "a\tb\nc\td\na\tb\n", 0, "note     line 3: the same example as before"),
    ("contradiction.tsv", "a\tb\nc\td\na\te\n", 0, "that of line 3 is in line 1)"),
    ("twice.csv", "source,source\na,b\n", 2, "error    the first line has the name 'source' twice"),
    ("leak.tsv", "a\tb\ttrain\nc\td\ttrain\na\tb\ttest\n", 0, "warning  line 3: a test example that is also in train"),
    ("source_leak.tsv", "a\tb\ttrain\na\tc\ttest\n", 0, "note     line 2: a test source that is in train"),
    ("brackets.tsv", "a\tf ( x )\n" * 5 + "b\tf ( x\n", 0, "warning  line 6: unbalanced brackets"),
    ("crossed.tsv", "a\tf ( [ x ] )\n" * 5 + "b\tf ( [ x ) ]\n", 0, "warning  line 6: unbalanced brackets"),
    ("long.tsv", "a b\tc\n" * 9 + "a " * 60 + "\tc\n", 0, "note     line 10: more than five times as long as usual"),
    (
        "glued.tsv",
        "how many rivers\tanswer(count(river))\n",
        0,
        "most targets are one long token, as 'answer(count(river))'",
    ),
    ("json.tsv", 'a b (c)\t[{"op": "f"}]\n', 0, "note     brackets in sources and targets are parts of tokens"),
    ("sieht.tsv", "a b\tf(a.b,c )\n", 0, "`cgen data write sieht.tsv --signs apart -o apart.tsv` puts spaces around"),
    ("sieht.tsv", "a b\tf(a.b,c )\n", 0, "answers keep them: where they must not, write --signs marked, and then answ"),
    (
        "sieht.tsv",
        "go left\tf(go LEFT\nrun left\tf(run LEFT\ngo home\tf(go HOME\n",
        0,
        "\nNext: cgen data write sieht.tsv --signs apart -o apart.tsv; or as they are, cgen augment geca sieht.tsv",
    ),
    ("marked.tsv", "a b\tf ￭( ￭x ￭)\n", 0, "Nothing is wrong"),
    ("glued_some.tsv", "how many\tanswer (count(river) all)\n", 0, "brackets in targets are parts of tokens"),
    ("unsegmented.tsv", "東京都は日本の首都であり人口\tb\n", 0, "most sources are one long token"),
    (
        "words.tsv",
        "".join(f"w{number:c}rd{number:c}\tW {number:c} R D\n" for number in range(97, 117)),
        0,
        "most sources are one token",
    ),
    ("letters.tsv", "h a b l a r\th a b l o\n", 0, "sources are letters separated by spaces"),
    ("no_break.tsv", f"a{NO_BREAK}b\tc\n", 0, "warning  line 1: no-break spaces"),
    ("widthless.tsv", f"a\tc\na{WIDTHLESS}\td\n", 0, "warning  line 2: zero-width characters"),
    ("lost.tsv", f"a{LOST}b\tc\n", 0, "warning  line 1: a character lost in a conversion"),
    ("apart.tsv", "cafe\u0301\tx\n", 0, "warning  line 1: accents stored apart from their letters"),
    ("control.tsv", "a\tb\nc\x07\td\n", 2, "error    line 2: a control character, or a special symbol"),
    ("special.tsv", "a\tb\nc <unk>\td\n", 2, "error    line 2: a control character, or a special symbol"),
    ("latin.tsv", b"a\tb\ncaf\xe9\td\n", 2, "error    line 2: bytes that are no UTF-8"),
    ("words.tsv", "gehen\tging\tV;PST\nsehen\tsah\tV;PST\n", 0, "unimorph; lemma TAB form TAB tags"),
    ("lemmas.tsv", "gehen\tV;PST\nsehen\tV;PST\n", 0, "warning  words to inflect, lemma TAB tags, without forms\n"),
    ("lemmas.tsv", "gehen\tV;PST\nsehen\tV;PST\n", 0, "\nNext: cgen predict MODEL lemmas.tsv -o inflected.tsv\n"),
    ("words.txt", "gehen\tging\tV;PST\nsehen\tsah\tV;PST\n", 0, "warning  each line has 2 TABs, and is read as a sen"),
    ("pairs.txt", "go left\tL\n\nstop\tS\n", 0, "pairs or words? name it .tsv, or words .unimorph"),
    ("words_header", "lemma\tform\ttags\ngehen\tging\tV;PST\n", 2, "line 1: found a header line, expected words: del"),
    (
        "words_order",
        "gehen\tV;PST\tging\n",
        2,
        "line 1: found the tags 'V;PST' in second place, expected lemma TAB form",
    ),
    ("no_header.csv", "how many,count\nwhere is,place\n", 2, "error    no usual names of columns in the first line"),
    ("no_names.csv", "question,query,,\na,b,,\n", 2, "error    the first line has several columns without a name\n"),
    ("indented.jsonl", '{\n "source": "a",\n "target": "b"\n}\n', 2, "no JSON in UTF-8, expected on one line {"),
    ("tabs.csv", "how many\tcount\nwhere is\tplace\n", 2, "names of columns\n         pairs or words? name it .tsv"),
    ("open_quote.csv", 'source,target\n"a,b\nc,d\n', 2, "line 2: found a row that is no CSV"),
    ("short_row.csv", "source,target\na,b\nc\n", 2, "error    line 3: another number of fields than 2"),
    (
        "two_targets.csv",
        "question,query,sql\na,b,c\n",
        2,
        "found 'query' and 'sql': say which is the target by --target",
    ),
    ("only_source.csv", "question,x\na,b\n", 2, "no usual names of columns in the first line"),
    ("semicolons.csv", "source;target\na, b;c\n", 0, "columns 'source' and 'target'; train 1"),
    ("not_json.jsonl", f"{GOOD}nope\n", 2, "error    line 2: no object of JSON in UTF-8"),
    ("numbers.jsonl", f'{GOOD}{{"source": 1, "target": "b"}}\n', 2, "error    line 2: a side that is missing"),
    ("folds.jsonl", f'{GOOD}{{"source": "c", "target": "d", "split": 1}}\n', 2, "error    line 2: a split that is no"),
    ("twice.jsonl", f'{GOOD}{{"source": "c", "source": "d", "target": "e"}}\n', 2, "error    line 2: a key twice"),
    ("fields.tsv", "a b\tc d\ttrain\te f\n", 2, "error    4 fields, of which the first three are read\n"),
    ("lacks_target.jsonl", f'{GOOD}{{"source": "a"}}\n', 2, "error    line 2: a side that is missing"),
    ("keys.jsonl", '{"x": "a", "y": "b"}\n', 2, "found the columns 'x', 'y', expected 'source' or another usual name"),
    ("list.jsonl", f"[{GOOD.strip()}]\n", 2, 'line 1: found \'[{"source": "a", "target": "b"}]\', not an object'),
    ("lines.json", GOOD * 2, 2, "error    no list [ ]"),
    ("cut.json", f"[{GOOD.strip()},\n{{", 2, "error    line 2: no object of JSON"),
    ("bad.scan", "IN: a OUT: b\nwalk\n", 2, "error    line 2: not IN: source OUT: target"),
    ("bad.parquet", "PAR1nope", 2, "found damaged data or none of Parquet"),
    ("table.xls", "a\tb\n", 2, "table.xls: found the suffix '.xls', expected one that tells the format"),
    ("model.pt", "x", 2, "model.pt: a model, expected data\n"),
]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def written(folder, name, content):
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def test_the_command_that_names_the_columns_of_a_csv_is_next(folder):
    written(folder, "x.csv", "recipe,steps\na b,A B\nc b,C B\n")
    text = said("check", "x.csv")[1]
    assert "x.csv: csv; fields without usual names; no command reads it as it is;" in text
    command, otherwise = text.rsplit("\nNext: cgen ", 1)[1].rstrip("\n").split("; if its first line is no names of ")
    assert command == "check x.csv --source recipe --target steps" and said(*command.split())[0] == 0
    assert otherwise == "columns, mend it by hand, then cgen check x.csv"
    written(folder, "x.csv", "one,one\na,b\n")
    assert said("check", "x.csv")[1].endswith("\nNext: mend it by hand, then cgen check x.csv\n")


def test_only_what_was_lost_before_is_told_of_a_table_in_latin_1(folder):
    written(folder, "x.tsv", "a\tb\ncaf\xe9\td\ncaf\xe8\te\n".encode("latin-1") + f"{LOST}\tf\n".encode())
    text = said("check", "x.tsv")[1]
    assert "error    line 2: bytes that are no UTF-8" in text and "warning  line 4: a character lost" in text, text
    assert "another target" not in text  # the two letters are not the same


@pytest.mark.parametrize(("name", "content", "code", "says"), WRONG, ids=[row[0] for row in WRONG])
def test_check_says_what_is_wrong_and_where(folder, name, content, code, says):
    written(folder, name, content)
    found, text = said("check", name)
    assert says in text, text
    assert found == code, text


CONTENTS = [*dict.fromkeys(row[:3] for row in WRONG)]  # of which two or three things may be said


@pytest.mark.parametrize(("name", "content", "code"), CONTENTS, ids=[row[0] for row in CONTENTS])
def test_check_says_no_more_can_be_read_than_the_commands_read(folder, name, content, code):
    written(folder, name, content)
    assert said("data", "show", name)[0] == code


# Tables that can be read, but not learnt from: what `check` says, and then commands that learn.
UNLEARNT = [
    (
        "targets.tsv",
        "a\tb\tc d\ne\tf\tg h\n",
        "names of splits: c d, g h; they look like targets; train is not among them",
    ),
    ("small_tags.tsv", "gehen\tging\tv;pst\nsehen\tsah\tv;pst\n", "words? these are lemma TAB form TAB tags"),
    ("tags_second.tsv", "gehen\tV;PST\tging\nsehen\tV;PST\tsah\n", "words? these are lemma TAB form TAB tags"),
    ("one_tag.tsv", "Haus\tHausta\tPL\nBaum\te-Baum\tSG\n", "words with one tag each, or without semicolons"),
    (
        "commas.tsv",
        "gehen\tging\tV, PST\nsehen\tsah\tV;PST\nsein\tist\tV;PRS\n",
        "between tags? name the file .unimorph",
    ),
    ("forms_last.tsv", "Haus\tN;PL\tDie Häuser\nBaum\tN;PL\tDie Bäume\n", "words? these are lemma TAB form TAB tags"),
    (
        "targets_last.tsv",
        "easy\trun\tRUN\nhard\trun twice\tRUN RUN\n",
        "not among them\n         lines are source TAB target",
    ),
    ("own_names.tsv", "a\tb\tmine\nc\td\tmine\n", "names of splits: mine; train is not among them"),
    (
        "third_header.tsv",
        "thema\tutterance\ttop parse\n" + "music\ta b\t[c b ]\n" * 19,
        "note     line 1: all words of the first line (thema | utterance | top parse) occur in no other: is it a "
        "header?\n         if it names the columns, delete it, or say --source utterance --target 'top parse'",
    ),
]


@pytest.mark.parametrize(("name", "content", "says"), UNLEARNT, ids=[row[0] for row in UNLEARNT])
def test_a_table_without_train_is_an_error_for_check_and_for_what_learns(folder, name, content, says):
    written(folder, name, content)
    code, text = said("check", name)
    assert code == 2 and "error    " in text and says in text, text
    assert "Next: mend it by hand" in text
    assert said("check", name, "--fix", "mended.tsv")[0] == 2 and not (folder / "mended.tsv").exists()
    for command in (["augment", "geca"], ["compare"]):
        code, text = said(*command, name, "-o", "out.jsonl")
        assert code == 2 and "train is not among them" in text and "no examples in split 'train'" in text, text


def test_words_without_a_column_called_form_are_told_what_is_missing(folder):
    """The names of the other two were advised as --source and --target once, which would lose the tags."""
    rows = ["lemma\tfeatures\tword form", "pipin\tN;PL;NOM\tpipinti", "sitir\tN;SG;GEN\tde sitirno"]
    written(folder, "words.tsv", "\n".join(rows) + "\n")
    code, text = said("check", "words.tsv")
    says = "error    line 1: the first line names columns of words, lemma and features, but none is called form\n"
    assert code == 2 and says in text and "if 'word form' holds the forms, call it form\n" in text, text
    assert "--source" not in text and text.endswith("Next: mend it by hand, then cgen check words.tsv\n")
    for command in (["augment", "geca"], ["check", "--fix", "out.tsv"]):
        code, text = said(*command, "words.tsv", *["-o", "out.tsv"][: 2 * (command[0] == "augment")])
        assert code == 2 and "lemma and features, but none is called form" in text, text
    written(folder, "words.tsv", "\n".join(["lemma\tfeatures\tform", *rows[1:]]) + "\n")
    assert "words, from the columns lemma, form, features; train 2" in said("check", "words.tsv")[1]


def test_words_of_which_one_lacks_its_tags_are_not_learnt_from(folder):
    """The one line without tags would be the only training example, and each bundle of tags a split."""
    words = [f"g{at}cher\tg{at}ch\t{tags}" for at in "abcdefghij" for tags in ("V.PTCP;PST", "V;IND;FUT;1;SG")]
    written(folder, "words.tsv", "\n".join([*words[:6], "gâcher\tgâchons", *words[6:]]) + "\n")
    for command in ("check", "augment geca -o out.jsonl", "compare -o out", "train csl -o out.grammar"):
        code, text = said(*command.split(), "words.tsv")
        assert code == 2 and "line 7: " in text and "lemma TAB form TAB tags" in text, text


def test_the_advised_columns_differ(folder):
    written(folder, "numbers.csv", "text one,number\na b,1\nc d,2\n")
    text = said("check", "numbers.csv")[1]
    assert "say which are meant, as: --source 'text one' --target number\n" in text, text


def test_of_many_names_of_splits_the_first_few_are_listed(folder):
    written(folder, "forms.tsv", "".join(f"{at}lemma\tN;PL\tform{at}\n" for at in range(300)))
    code, text = said("check", "forms.tsv")
    assert code == 2 and "form5 1 and 294 more\n" in text and len(text) < 1000
    text = said("augment", "geca", "forms.tsv", "-o", "out.jsonl")[1]
    assert text.endswith(
        "available splits: form0 (1), form1 (1), form2 (1), form3 (1), form4 (1), form5 (1) and 294 more\n"
    )


def test_usual_names_of_splits_without_train_are_a_note(folder):
    written(
        folder,
        "dev.tsv",
        "".join(f"{'ac'[at // 80]} {at % 80}\t{'bd'[at // 80]} {at % 80}\tdev\n" for at in range(120)),
    )
    code, text = said("check", "dev.tsv")
    assert code == 0 and "note     no split train, which commands learn from; found dev" in text, text
    assert text.endswith("Next: cgen augment geca dev.tsv --split dev -o more.jsonl\n")


# What a command that reads the table warns of, in a line that names `cgen check`.
WARNED = [
    (
        "half_header.tsv",
        "My sentence\tThe representation\na b\tc d\n",
        "looks like names of columns, and is read as an ex",
    ),
    ("quotes.tsv", '"a, b"\tc\nd\te\n', "sides in double quotes"),
    ("ids.tsv", "1\thow many\tcount x\n2\twhere is\tplace x\n", "read as names of splits"),
    ("bars.txt", "what ||| f\nwho ||| g\n", "lines with ||| are read as sentences"),
    ("brackets.tsv", "a\tf ( x )\n" * 5 + "b\tf ( x\n", "unbalanced brackets"),
]


@pytest.mark.parametrize(("name", "content", "says"), WARNED, ids=[row[0] for row in WARNED])
def test_commands_warn_of_the_worst_and_name_check(folder, name, content, says):
    written(folder, name, content)
    code, text = said("data", "write", name, "-o", "out.jsonl")
    assert code == 0, text
    assert says in text
    assert f"`cgen check {name}` shows where" in text


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("header.tsv", "question\tsql\na b\tc d\n", "header.tsv: read line 1 as the names of the columns"),
        ("header.tsv", "question\tsql\na b\tc d\n", "read the columns 'question' and 'sql' as source and target"),
        ("words.tsv", "gehen\tging\tV;PST\n", "words.tsv: read as words, lemma TAB form TAB tags (UniMorph)"),
        ("keys.jsonl", '{"input": "a", "output": "b"}\n', "read the columns 'input' and 'output' as source and target"),
    ],
)
def test_commands_say_what_they_take_for_names_and_words(folder, name, content, says):
    written(folder, name, content)
    code, text = said("data", "show", name)
    assert code == 0, text
    assert says in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--source", "qestion", "--target", "sql"], "expected 'qestion', as --source says; did you mean 'question'?"),
        (["--source", "sql", "--target", "sql"], "the column 'sql' cannot be both source and target"),
        (["--target", "x"], "found the columns 'question', 'sql', expected 'x', as --target says"),
    ],
)
def test_wrong_names_of_columns_are_refused(folder, options, says):
    written(folder, "x.csv", "question,sql\na,b\n")
    code, text = said("data", "show", "x.csv", *options)
    assert code == 2 and says in text
    assert said("check", "x.csv", *options)[0] == 2


def test_names_of_columns_have_no_place_where_there_are_none(folder):
    written(folder, "x.scan", "IN: a OUT: b\n")
    assert "scan has no columns with names: leave out --source" in said("data", "show", "x.scan", "--source", "a")[1]
    assert (
        "a known data set has no such columns: leave out --target"
        in said("data", "show", "scan/jump", "--target", "a")[1]
    )


def test_few_sources_of_one_token_are_no_words_to_spell(tmp_path):
    lines = [f"{verb}\t{verb.upper()} {number}\n" for verb in ("go", "stop", "turn") for number in range(8)]
    (tmp_path / "commands.tsv").write_text("".join(lines))
    assert "one token" not in shell.compgen("check", tmp_path / "commands.tsv").stdout
