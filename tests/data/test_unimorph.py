import gzip
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.data.named import Columns
from compgen.data.unimorph import (
    dataset,
    inflection,
    is_tag,
    joined,
    language_of,
    parts,
    read_words,
    split_tags,
    tags_in,
    task_of,
)
from compgen.errors import DataError, Remark
from compgen.morphology.alignment import clusters, words

letters = st.text(st.characters(categories=["Lu", "Ll", "Lt", "Lo", "So", "Nd", "No"]), min_size=1)
tag_names = st.text("ABPST123/.", min_size=1).filter(lambda tag: tag[0].isalnum())


def test_a_word_is_an_example_of_inflection(tmp_path):
    path = tmp_path / "spanish-train-low"
    path.write_text("hablar\thabló\tV;IND;PST;3;SG;PFV\n\na la\ta las\tN;PL\n", encoding="utf-8")
    found = load(str(path))
    assert found.pairs() == [
        (["h", "a", "b", "l", "a", "r", "V", "IND", "PST", "3", "SG", "PFV"], ["h", "a", "b", "l", "ó"]),
        (["a", "␣", "l", "a", "N", "PL"], ["a", "␣", "l", "a", "s"]),
    ]
    packed = tmp_path / "spanish-train-low.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert load(str(packed)).pairs() == found.pairs()


def test_capitals_are_kept_and_are_no_tags(tmp_path):
    lines = "Haus\tHäuser\tN;PL\nhaus\thausen\tN;PL\nLKW N\tLKWs ^N\tN;PL\nİl\tIlı\tN;PL\n"
    (tmp_path / "turkish").write_text(lines, encoding="utf-8")
    found = load(str(tmp_path / "turkish"))
    assert found.pairs()[0] == (["^H", "a", "u", "s", "N", "PL"], ["^H", "ä", "u", "s", "e", "r"])
    assert found.pairs()[2] == (["^L", "^K", "^W", "␣", "^N", "N", "PL"], ["^L", "^K", "^W", "s", "␣", "^", "^N"])
    write_dataset(found, tmp_path / "out.unimorph")
    assert (tmp_path / "out.unimorph").read_text(encoding="utf-8") == lines


def test_digits_of_words_are_kept_and_are_no_tags(tmp_path):
    """Tones are written so, raised or not."""
    lines = "ma1ta3\tma1ta3ne2\tN;3\nma¹ta³\tma¹ta³ne²\tN\n"
    (tmp_path / "own").write_text(lines, encoding="utf-8")
    found = load(str(tmp_path / "own"))
    assert found.pairs()[0] == (
        ["m", "a", "^1", "t", "a", "^3", "N", "3"],
        ["m", "a", "^1", "t", "a", "^3", *"ne", "^2"],
    )
    assert found.pairs()[1] == ([*"ma¹ta³", "N"], [*"ma¹ta³ne²"])
    write_dataset(found, tmp_path / "out.unimorph")
    assert (tmp_path / "out.unimorph").read_text(encoding="utf-8") == lines
    (word, _) = words(found)
    assert clusters(found.pairs()[0][0][:6]) == word.lemma == ("m", "a", "^1", "t", "a", "^3")


def test_known_words_are_in_lower_case_as_their_figures_are(tmp_path, monkeypatch):
    for part in ("train-high", "train-medium", "train-low", "dev", "test"):
        (tmp_path / f"turkish-{part}").write_text("Iğdır\tİzmir\tN\n", encoding="utf-8")
    (tmp_path / "sigmorphon").symlink_to(tmp_path)
    monkeypatch.setenv("COMPGEN_DATA", str(tmp_path))
    assert set(map(str, load("sigmorphon/turkish").pairs())) == {str(([*"ığdır", "N"], [*"izmir"]))}


def test_letters_are_small_in_the_way_of_their_language_and_composed():
    assert inflection(("Iğdır", "İzmir", ("N",)), "turkish") == (["ı", "ğ", "d", "ı", "r", "N"], list("izmir"))
    apart = unicodedata.normalize("NFD", "İzmir")
    assert inflection(("Iğdır", apart, ("N",)), "turkish")[1] == list("izmir")
    assert inflection(("Igel", "Igels", ("N",)), "german")[1] == list("igels")
    assert inflection((unicodedata.normalize("NFD", "é"), "e", ("V",)))[0] == ["é", "V"]


def test_a_file_is_named_after_its_language():
    names = ["x/turkish-train-high", "crimean-tatar-dev", "tur", "spanish-test.gz"]
    assert [language_of(name) for name in names] == ["turkish", "crimean-tatar", "tur", "spanish"]


INFLECTED = [(["g", "o", "V", "PST"], ["w", "e", "n", "t"]), (["^B", "e", "V"], ["a", "m"])]
ANALYSED = [(target, source) for source, target in INFLECTED]


@pytest.mark.parametrize(
    ("pairs", "task"),
    [
        (INFLECTED, "inflection"),
        (ANALYSED, "analysis"),
        (INFLECTED + ANALYSED, None),
        ([*INFLECTED, (["go", "V"], ["w"])], None),
        ([*ANALYSED, (["w", "N"], ["g", "o", "V"])], None),
        ([(["g", "o", "V"], ["went"])], None),
        ([(["jump"], ["I_JUMP"])], None),
    ],
)
def test_what_is_to_be_learnt_of_words_is_known_by_where_the_tags_are(pairs, task):
    assert task_of(Dataset.from_pairs(pairs)) == task


@given(letters, letters, st.lists(tag_names, min_size=1))
def test_tags_can_be_told_from_letters(lemma, form, tags):
    source, target = inflection((lemma, form, tuple(tags)))
    assert split_tags(source)[1] == tags
    assert joined(parts(source, target)[0]) == unicodedata.normalize("NFC", lemma)
    assert not any(map(is_tag, target))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("hablar\thabló", r"line 2: found 'hablar\\thabló', expected lemma TAB form TAB tags"),
        ("hablar\thabló\tV\tmore", r"line 2: found 4 columns, 'hablar.*more', expected .* by semicolons$"),
        ("hablar\thabló\t\tV;PST", r"line 2: found 4 columns, .*; column 3 is empty: delete it$"),
        ("hablar\t\tV", "line 2: found"),
        ("hablar\thabló\t;", "line 2: found"),
        ("ha\x85blar\thabló\tV\nb\tc", r"line 3: found 'b\\tc'"),  # which ends no line, as in files of pairs
    ],
)
def test_a_line_with_other_columns_is_named(tmp_path, line, message):
    (tmp_path / "words").write_text(f"a\tb\tN\n{line}\n", encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_words(tmp_path / "words")


def test_a_file_of_pairs_without_a_suffix_is_told_that_it_needs_one(tmp_path):
    for name, says in (
        ("pairs", "file without a suffix is read as words: name other data by theirs"),
        ("x.unimorph", ""),
    ):
        (tmp_path / name).write_text("walk twice\tWALK WALK\n")
        with pytest.raises(DataError, match=says) as caught:
            load(str(tmp_path / name))
        assert ("suffix" in str(caught.value)) == bool(says)


@pytest.mark.parametrize("name", ["words", "words.tsv"])
def test_empty_columns_at_the_end_are_none(tmp_path, name):
    """As programs for tables write them, and as lines of pairs may have them."""
    lines = ["pipin\tpipinti\tN;PL;NOM", "sitir\tde sitirno\tN;SG;GEN"]
    (tmp_path / name).write_text(f"{lines[0]}\n{lines[1]}\n")
    found = load(str(tmp_path / name)).pairs()
    for ends in ("\t", "\t"), ("", "\t \t"):
        (tmp_path / name).write_text("".join(line + end + "\n" for line, end in zip(lines, ends, strict=True)))
        assert load(str(tmp_path / name)).pairs() == found


SWAPPED = "Hahn\tN;GEN;SG\tHahnes\nauswandern\tV;3;SG\twandert aus\nBukett\tN;PL\tBukette\nTee\tN\tTee\n"


def test_tags_in_second_place_are_an_order_of_the_whole_file(tmp_path):
    """Of German nouns the forms pass for tags, and the tags for forms."""
    (tmp_path / "deu").write_text(SWAPPED)
    with pytest.raises(DataError, match=r"deu, line 1: found the tags 'N;GEN;SG' in second place, expected lemma TAB"):
        load(str(tmp_path / "deu"))
    (tmp_path / "deu").write_text("Hahn\tHahnes\tN;GEN;SG\nLKW\tLKW\tN\n" + SWAPPED.splitlines()[0])
    with pytest.raises(DataError, match=r"deu, line 3: found the tags 'N;GEN;SG' in second place"):
        load(str(tmp_path / "deu"))
    (tmp_path / "deu").write_text("Hahn\tHahnes\tN;GEN;SG\nLKW\tLKW\tN\nTee\tTees\tN\n")
    assert len(load(str(tmp_path / "deu"))) == 3


def test_what_cannot_be_told_apart_is_refused():
    with pytest.raises(DataError, match="spanish, word 2: found the tag 'n', expected tags that begin"):
        dataset([("a", "b", ("N",)), ("a", "b", ("n",))], name="spanish")
    with pytest.raises(DataError, match="found the tag 'sg'"):
        inflection(("a", "b", ("N", "sg")))
    with pytest.raises(DataError, match="no words"):
        dataset([])


@pytest.mark.parametrize("value", ["N;INE;PL;", "N INE PL", "N|INE| PL", "N, INE,PL", ["N;INE", "PL"]])
def test_tags_of_a_table_are_parted_in_any_usual_way(value):
    assert tags_in(value) == ("N", "INE", "PL")


@pytest.mark.parametrize(
    ("value", "tags"),
    [
        ("V;NOM(3,SG);{A|B}", ("V", "NOM(3,SG)", "{A|B}")),
        ("NOM(3,SG),[A (B C), D] E,F", ("NOM(3,SG)", "[A (B C), D] E", "F")),
        ("Case=Nom,Acc|Number=Sing", ("Case=Nom,Acc", "Number=Sing")),
        (["NOM(3,SG)", "A,B", "C|D E"], ("NOM(3,SG)", "A,B", "C|D E")),
        ("A(;B;C)", ("A(;B;C)",)),
        ("A(;B", ("A(", "B")),
        ("((A;B);C", ("((A;B)", "C")),
    ],
)
def test_signs_in_brackets_or_after_surer_ones_part_no_tags(value, tags):
    assert tags_in(value) == tags


def test_many_brackets_within_each_other_take_no_longer_than_side_by_side():
    nested = "(" * 100_000 + "A;B" + ")" * 100_000
    assert tags_in(f"{nested};C") == (nested, "C")


def test_tags_of_lines_are_parted_as_those_of_tables(tmp_path):
    (tmp_path / "own").write_text("kan\tkanta\tN|PL\nkan\tekan\tN, SG,POSS\n")
    assert [split_tags(source)[1] for source, _ in load(str(tmp_path / "own")).pairs()] == [
        ["N", "PL"],
        ["N", "SG", "POSS"],
    ]


@pytest.mark.parametrize(
    "text", ["who\tselect a\tGEO|easy\nwhat\tselect b\tGEO|hard\n", "a b\tA|B\tC|D\na c\tD\tE|F\n"]
)
def test_bars_in_a_table_of_pairs_do_not_make_it_words(tmp_path, text):
    (tmp_path / "pairs.tsv").write_text(text)
    with pytest.warns(Remark, match="read as names of splits"):
        assert len(load(str(tmp_path / "pairs.tsv")).splits) == 2


@pytest.mark.parametrize(
    "line", ["learn\tlearned|learnt\tPST", "haus\tH;aus\tN NOM PL", "york\tNew York\tPROPN", "a\tA;B\tN|SG"]
)
def test_forms_with_signs_in_them_are_no_order_of_fields(tmp_path, line):
    (tmp_path / "own").write_text(f"wa\twaed\tPST\n{line}\n{line}\n{line}\n")
    assert len(load(str(tmp_path / "own"))) == 4


def test_an_order_is_one_of_all_lines(tmp_path):
    """Of these forms, which are in third place, those with a capital would pass for a tag."""
    (tmp_path / "own").write_text("Haus\tN;PL\tHäuser\nMaus\tN;PL\tMäuse\ngut\tADJ;SUP\tbeste\n")
    with pytest.raises(DataError, match=r"own, line 1: found the tags 'N;PL' in second place, .* in all lines"):
        load(str(tmp_path / "own"))


@pytest.mark.parametrize("value", [None, "", " ; ", [], ["N", None], 3])
def test_what_has_no_tags_has_none(value):
    assert tags_in(value) == ()


LINES = "hablar\thabló\tV;IND;PST\na la\ta las\tN;PL\n"


def test_words_are_written_as_they_are_read(tmp_path):
    (tmp_path / "spanish").write_text(LINES, encoding="utf-8")
    write_dataset(load(str(tmp_path / "spanish")), tmp_path / "out.unimorph")
    assert (tmp_path / "out.unimorph").read_text(encoding="utf-8") == LINES
    assert load(str(tmp_path / "out.unimorph")) == load(str(tmp_path / "spanish"))


def test_words_are_read_from_any_name_by_their_format_and_from_tsv_by_their_look(tmp_path):
    (tmp_path / "spa.txt").write_text(LINES, encoding="utf-8")
    (tmp_path / "spa.tsv").write_text(LINES, encoding="utf-8")
    words = load(str(tmp_path / "spa.txt"), format="unimorph")
    assert words.splits == {"train": 2}
    with pytest.warns(Remark, match=r"spa\.tsv: read as words, lemma TAB form TAB tags"):
        assert load(str(tmp_path / "spa.tsv")) == words


@pytest.mark.parametrize("third", ["train", "N", "V;pst past", "a;b"])
def test_other_third_columns_are_splits(tmp_path, third):
    (tmp_path / "x.tsv").write_text(f"a\tb\t{third}\nc\td\t{third}\n")
    assert load(str(tmp_path / "x.tsv")).splits == {third: 2}


TAGGED = "gehen\tging\tV;PST\n" * 3


@pytest.mark.parametrize("bad", ["sehen\tsah", "sehen\tsah\t", "sehen"])
@pytest.mark.parametrize("tagged", [TAGGED, TAGGED.lower()], ids=["capitals", "small"])
def test_words_of_which_one_lacks_its_tags_are_no_splits(tmp_path, tagged, bad):
    (tmp_path / "x.tsv").write_text(f"{tagged}{bad}\n")
    with pytest.raises(
        DataError, match=r"x\.tsv, line 4: found 'sehen.*', without tags, expected lemma TAB form TAB tags"
    ):
        load(str(tmp_path / "x.tsv"))


@pytest.mark.parametrize(
    ("lines", "splits"),
    [
        (f"{TAGGED}a\tb\ttrain\n", {"V;PST": 3, "train": 1}),
        (f"{TAGGED}a\tb\nc\td\ttest-easy\n", {"V;PST": 3, "train": 1, "test-easy": 1}),
        (f"{TAGGED}" + "a\tb\n" * 3, {"V;PST": 3, "train": 3}),
        ("a\tb\tlong ones\n" * 3 + "a\tb\n", {"long ones": 3, "train": 1}),
    ],
)
def test_splits_with_names_of_their_own_stand_beside_train(tmp_path, lines, splits):
    (tmp_path / "x.tsv").write_text(lines)
    assert load(str(tmp_path / "x.tsv")).splits == splits


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((["jump"], ["I_JUMP"]), "unimorph holds words: example 1: found the source 'jump', expected the letters"),
        ((["g", "o", "V"], []), "an empty form of 'go'"),
        ((["g", "o", "A|B"], ["w"]), r"example 1: found 'A\|B', which would be read as 2 tags, not 1: write jsonl"),
        ((["g", "o", "V"], ["went"]), "found 'went' in a lemma or form, expected tokens of one letter"),
        (
            (["␣", "g", "o", "V"], ["g"]),
            "example 1: found '␣ g o V' and 'g', which would be read otherwise: write jsonl",
        ),
        ((["g", "o", "V"], ["g", "␣"]), "found 'g o V' and 'g ␣', which would be read otherwise"),
        ((["g", "o", "V"], ["e", "\u0301"]), "which would be read otherwise"),
        ((["g", "\t", "o", "V"], ["g"]), "which would be read otherwise"),
    ],
)
def test_what_is_no_word_cannot_be_written_as_one(tmp_path, pair, message):
    with pytest.raises(DataError, match=message):
        write_dataset(Dataset.from_pairs([pair]), tmp_path / "x.unimorph")


def test_words_have_no_columns_to_name(tmp_path):
    (tmp_path / "spa").write_text(LINES, encoding="utf-8")
    with pytest.raises(DataError, match="leave out --source"):
        load(str(tmp_path / "spa"), columns=Columns(source="lemma"))


def test_yoyodyne_reads_what_is_written(tmp_path):
    """By its default options, without and with features, whatever is in a word; spaces are letters to it."""
    tsv = pytest.importorskip("yoyodyne.data.tsv", reason="needs yoyodyne")
    found = dataset([("hablar", "habló", ("V", "IND", "PST")), ("a la", "a las", ("N", "PL"))])
    write_dataset(found, tmp_path / "out.tsv", "unimorph")
    plain = list(tsv.TsvParser().samples(tmp_path / "out.tsv"))
    assert plain == [(list("hablar"), list("habló")), (list("a la"), list("a las"))]
    featured = list(tsv.TsvParser(features_col=3).samples(tmp_path / "out.tsv"))
    assert featured == [
        (list("hablar"), ["[V]", "[IND]", "[PST]"], list("habló")),
        (list("a la"), ["[N]", "[PL]"], list("a las")),
    ]
