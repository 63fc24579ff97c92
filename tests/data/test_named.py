import warnings

import pytest

from compgen.data.named import Columns, SourceColumns, looks_like_names, looks_like_sources, plain, words_columns
from compgen.errors import DataError, Remark


def renamed(found, **given):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Columns(**given).renaming(found, "x.csv")


@pytest.mark.parametrize(
    ("found", "given", "expected"),
    [
        (["source", "target"], {}, ["source", "target"]),
        (["id", "Question", "SQL"], {}, ["id", "source", "target"]),
        (["src", "tgt", "split"], {}, ["source", "target", "split"]),
        (["source", "target", "question", "query"], {}, ["source", "target", "question", "query"]),
        (["a", "b"], {"source": "b", "target": "a"}, ["target", "source"]),
        (["utterance", "Logical Form", "x"], {"source": "x"}, ["utterance", "target", "source"]),
        (["source", "question", "target"], {"source": "question"}, ["source_column", "source", "target"]),
    ],
)
def test_columns_are_found_by_usual_names_or_as_given(found, given, expected):
    assert list(renamed(found, **given).values()) == expected


@pytest.mark.parametrize(
    ("found", "given", "message"),
    [
        (["a", "target"], {}, "found the columns 'a', 'target', expected 'source' or another usual name"),
        (["a", "target"], {}, r"or say which by --source NAME \(in Python source=\)"),
        (["text"], {}, "found the columns 'text', .*; sentences without targets are read from text"),
        (["messages"], {}, "expected question and answer in columns of their own, .*: chats are not read$"),
        (["id", "conversations"], {"source": "conversations"}, "chats are not read$"),
        (
            ["input", "question", "output"],
            {},
            r"found 'input' and 'question': say which is the source by --source NAME \(in Python source=\)",
        ),
        (
            ["questions", "sql"],
            {"source": "question"},
            "expected 'question', as --source says; did you mean 'questions'",
        ),
        (["a", "b"], {"source": "a", "target": "a"}, "the column 'a' cannot be both"),
        ([], {}, r"found the columns \(none\)"),
    ],
)
def test_a_side_that_is_not_found_or_found_twice_is_refused(found, given, message):
    with pytest.raises(DataError, match=message):
        renamed(found, **given)


def test_a_choice_that_was_not_asked_for_is_said():
    with pytest.warns(Remark, match=r"x\.csv: read the columns 'question' and 'sql' as source and target"):
        Columns().renaming(["question", "sql"], "x.csv")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Columns(source="question").renaming(["question", "sql"], "x.csv")
        Columns().renaming(["source", "target"], "x.csv")


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (["source", "target"], True),
        (["id", "Sentence", "logical-form", "split"], True),
        (["lemma", "form", "tags"], True),
        (["source", "source", "target"], False),
        (["jump", "I_JUMP"], False),
        (["question", "x"], False),
        (["the question", "the query"], False),
    ],
)
def test_a_header_has_names_of_both_sides(fields, names):
    assert looks_like_names(fields) is names


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        (["Question"], True),
        (["id", "question", "split"], True),
        (["question", "question"], False),
        (["question", "x"], False),
        (["input", "question"], False),
        (["sql"], False),
        (["id"], False),
    ],
)
def test_a_header_may_have_the_name_of_sources_alone(fields, names):
    assert looks_like_sources(fields) is names
    assert SourceColumns().names(fields) is names and not Columns().names(fields)


def test_columns_of_sources_leave_all_others_alone():
    with pytest.warns(Remark, match=r"x\.csv: read the column 'question' as source"):
        found = SourceColumns().renaming(["question", "target", "sql"], "x.csv")
    assert list(found.values()) == ["source", "target_column", "sql"]


def test_names_are_compared_in_small_letters_with_underscores():
    assert plain(' "Logical-Form" ') == "logical_form"
    assert words_columns(["Form", "x", "Lemma", "feats"]) == ("Lemma", "Form", "feats")
    assert words_columns(["form", "lemma"]) is None
