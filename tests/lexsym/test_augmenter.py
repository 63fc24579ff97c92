"""LexSym: exchanges that the published method makes, and orbits of known data sets."""

from collections import Counter

import pytest

from compgen.augmenters.agreement import Agreement
from compgen.augmenters.registry import make
from compgen.data.catalog import load
from compgen.data.downloads import MissingFileError
from compgen.data.examples import Dataset
from compgen.errors import ConfigError, DataError, ExhaustedError
from compgen.lexsym.augmenter import _joiner


def dataset(*lines):
    return Dataset.from_pairs(tuple(side.split() for side in line.split(" -> ")) for line in lines)


def lexicon(tmp_path, *lines):
    path = tmp_path / "lexicon.tsv"
    path.write_text("\n".join("\t".join(line.split("|")) for line in lines) + "\n")
    return str(path)


def texts(made):
    return {f"{' '.join(source)} -> {' '.join(target)}" for source, target in made.pairs()}


VERBS = ("t|walk|W", "t|jump|J", "t|run|R")
LONG = pytest.mark.long


@pytest.mark.parametrize(
    ("move", "expected"),
    [
        ("swap", {"jump and walk -> J W", "walk and run -> W R", "run and jump -> R J"}),
        (
            "substitute",
            {"jump and jump -> J J", "walk and walk -> W W", "walk and run -> W R", "run and jump -> R J"},
        ),
        (
            "permute",
            {"jump and walk -> J W", "walk and run -> W R", "run and jump -> R J", "run and walk -> R W"}
            | {"jump and run -> J R"},
        ),
    ],
)
def test_what_can_be_made_of_an_example(tmp_path, move, expected):
    data = dataset("turn left -> L", "run -> R", "walk and jump -> W J", "jump -> J", "walk -> W")
    made = make("lexsym", lexicon=lexicon(tmp_path, *VERBS), move=move).fit(data).sample()
    assert texts(made) == expected and set(made.frame["host"]) == {2}


def test_one_of_several_symbols_is_drawn_for_all(tmp_path):
    data = dataset("red thing -> 9 9 25", "purple thing -> 25 29 9")
    path = lexicon(tmp_path, "t|red|9", "t|purple|25|29")
    made = {}
    for seed in range(20):
        found = make("lexsym", lexicon=path, move="swap").fit(Dataset(data.frame[:1])).sample(seed=seed)
        made |= dict.fromkeys(texts(found))
    assert set(made) == {"purple thing -> 29 29 9", "purple thing -> 25 25 9"}
    found = {text for seed in range(20) for text in texts(
        make("lexsym", lexicon=path, move="swap").fit(Dataset(data.frame[1:])).sample(seed=seed))}  # fmt: skip
    assert found == {"red thing -> 9 9 29", "red thing -> 9 9 25"}


def test_rare_words_are_favoured_as_coded():
    times = {"walk": 20, "run": 10, "jump": 1}
    lines = [f"x {verb} y{n % 5} z{n % 4} -> {verb.upper()}" for verb, often in times.items() for n in range(often)]
    method = make("lexsym", mode="reference", move="swap", aligner="simple").fit(dataset(*lines))
    assert method._weights == {verb: 1 / often for verb, often in times.items()}
    first = Counter(change["walk"] for seed in range(200) for _, change, _ in [next(walks(method._every(seed)))])
    assert 6 < first["jump"] / first["run"] < 16  # by weight 10


def walks(exchanges):
    """Those of a word *walk*."""
    return (one for one in exchanges if "walk" in one[1])


def test_forms_of_a_lexeme_move_together(tmp_path):
    path = lexicon(tmp_path, "past|ate|eat", "past|drew|draw", "part|eaten|eat", "part|drawn|draw", "part|seen|see")
    data = dataset("ate what was eaten -> eat eat", "drew -> draw", "ate -> eat", "seen -> see")
    made = make("lexsym", lexicon=path).fit(data).sample()
    # `see` has no past here, so that it cannot take the place of both forms of `eat`.
    assert {text for text in texts(made) if "what" in text} == {"drew what was drawn -> draw draw"}


def test_words_that_the_data_lack_are_brought_in(tmp_path):
    path = lexicon(tmp_path, "t|walk|W", "t|hop|H")
    made = make("lexsym", lexicon=path).fit(dataset("walk twice -> W W")).sample()
    assert texts(made) == {"hop twice -> H H"}
    assert made.frame["swaps"].to_list() == ["walk=hop"]


def test_phrases_are_exchanged_as_one_word():
    data = dataset(
        "rivers in new york -> river new york",
        "rivers in ohio -> river ohio",
        "cities in new york -> city new york",
        "rivers in utah -> river utah",
    )
    made = make("lexsym").fit(data).sample()
    assert {"cities in ohio -> city ohio", "cities in utah -> city utah"} <= texts(made)
    assert all(("new" in text) == ("york" in text) for text in texts(made))


def test_a_word_without_its_symbol_in_the_target_stays(tmp_path):
    data = dataset("walk and run -> R", "jump -> J", "walk -> W")
    made = make("lexsym", lexicon=lexicon(tmp_path, "t|walk|W", "t|jump|J")).fit(data)
    with pytest.raises(ExhaustedError, match="4 exchanges of words make no new example"):
        made.sample()


def test_types_whose_exchanges_disagree_with_the_data_are_left_out(tmp_path):
    path = lexicon(tmp_path, "t|a|A", "t|b|B")
    data = dataset("a x -> A", "b x -> B B", "a y -> A y")
    with pytest.raises(
        ExhaustedError,
        match=r"of 2 words that are linked with symbols, 0 have another .* in Python write_lexicon=, lexicon=",
    ):
        make("lexsym", lexicon=path).fit(data)
    method = make("lexsym", lexicon=path, agreement=0).fit(data)
    assert texts(method.sample()) == {"b y -> B y"} and method.report()["agreeing"] == {"t": (0, 1)}


def test_a_type_with_just_the_share_of_agreement_asked_for_stays(tmp_path):
    path = lexicon(tmp_path, "t|a|A", "t|b|B")
    pairs = [(f"a x{n} -> A", f"b x{n} -> {'B' if n < 55 else 'B B'}") for n in range(100)]
    method = make("lexsym", lexicon=path, agreement=0.55).fit(
        dataset("a y -> A", *(one for pair in pairs for one in pair))
    )
    assert method.report()["agreeing"] == {"t": (55, 100)}  # 0.55 * 100 > 55
    assert texts(method.sample()) == {"b y -> B"}


def test_more_changes_than_can_be_listed_are_drawn(tmp_path):
    path = lexicon(tmp_path, *(f"t|w{n}|S{n}" for n in range(10)))
    data = dataset(" ".join(f"w{n}" for n in range(10)) + " -> " + " ".join(f"S{n}" for n in range(10)))
    method = make("lexsym", lexicon=path).fit(data)
    made = method.sample(500, seed=1)
    assert len(made) == 500 and all(
        [word.replace("w", "S") for word in source] == target and len({*source}) == 10
        for source, target in made.pairs()
    )
    assert method.sample(100, seed=1).pairs() == made.pairs()[:100]


AMBIGUOUS = (
    "wait ten minutes -> WAIT ( 10 )",
    "set 10 -> SET ( 10 )",
    "set 20 -> SET ( 20 )",
    "set 10 twice -> SET ( 10 ) SET ( 10 )",
    "set 10 and wait ten minutes -> SET ( 10 ) WAIT ( 10 )",
    "set 20 and wait ten minutes -> SET ( 20 ) WAIT ( 10 )",
    "stop -> STOP",
    "sleep -> SLEEP",
)


@pytest.mark.parametrize("move", ["permute", "swap", "substitute"])
def test_a_word_stays_where_another_has_its_symbol_too(tmp_path, move):
    """`ten` gives 10 as well: no lexicon says so, but examples without `10`; of `twice` there is no such example."""
    path = lexicon(tmp_path, "n|10|10", "n|20|20", "n|30|30")
    method = make("lexsym", lexicon=path, move=move).fit(dataset(*AMBIGUOUS))
    assert texts(method.sample()) == {
        "set 30 -> SET ( 30 )",
        "set 20 twice -> SET ( 20 ) SET ( 20 )",
        "set 30 twice -> SET ( 30 ) SET ( 30 )",
        "set 30 and wait ten minutes -> SET ( 30 ) WAIT ( 10 )",
    }
    assert (
        method.report()["ambiguous"] == 1 and "; in 1 example a word is not exchanged, as others" in method.in_words()
    )


def test_no_word_is_swapped_with_one_that_stays(tmp_path):
    path = lexicon(tmp_path, "n|10|10", "n|20|20")
    both = "set 20 then set 10 and wait ten minutes -> SET ( 20 ) SET ( 10 ) WAIT ( 10 )"
    made = texts(make("lexsym", lexicon=path, move="swap").fit(dataset(*AMBIGUOUS, both)).sample())
    assert made == {"set 20 twice -> SET ( 20 ) SET ( 20 )"}


def test_a_symbol_that_is_there_as_often_as_its_word_is_of_that_word(tmp_path):
    path = lexicon(tmp_path, "n|10|10", "n|20|20")
    data = dataset(*AMBIGUOUS, "by ten set 10 -> SET ( 10 )")
    assert "by ten set 20 -> SET ( 20 )" in texts(make("lexsym", lexicon=path).fit(data).sample())


@pytest.mark.parametrize("move", ["permute", "swap", "substitute"])
def test_a_word_that_stays_does_not_lose_its_meaning(tmp_path, move):
    """`eaten` is of no type, and stays: so `ate`, which means the same, does too."""
    path = lexicon(tmp_path, "past|ate|eat", "past|drew|draw", "-|eaten|eat")
    data = dataset("he ate what was eaten -> he eat eat", "he ate -> he eat")
    assert texts(make("lexsym", lexicon=path, move=move).fit(data).sample()) == {"he drew -> he draw"}


def test_phrases_of_the_lexicon_are_words_of_the_data(tmp_path):
    path = lexicon(tmp_path, "t|new york|NY CITY", "t|boston|BOS")
    data = dataset("in new york -> loc NY CITY", "near boston -> near BOS")
    assert texts(make("lexsym", lexicon=path).fit(data).sample()) == {
        "in boston -> loc BOS",
        "near new york -> near NY CITY",
    }


def test_the_longest_phrase_is_the_word(tmp_path):
    path = lexicon(tmp_path, "t|new york city|NYC", "t|boston|BOS", "u|new york|NY", "u|ohio|OH")
    data = dataset("in new york city -> loc NYC", "near boston -> near BOS")
    made = texts(make("lexsym", lexicon=path).fit(data).sample())
    assert made == {"in boston -> loc BOS", "near new york city -> near NYC"}


def test_phrases_that_begin_alike_are_not_tried_one_after_the_other():
    class Side(tuple):
        tried = 0

        def __getitem__(self, which):
            Side.tried += isinstance(which, slice)
            return tuple(super().__getitem__(which)) if isinstance(which, slice) else super().__getitem__(which)

    songs = [f'" {number} "' for number in range(300)] + ['" 7 " 8', '"']
    join = _joiner(dataset(*(f"play {song} -> ( {song} )" for song in songs)), [])
    (side, _), *_ = dataset('play " 7 " 8 then " 299 " -> x').pairs()
    assert join(Side(side)) == ("play", '"\x027\x02"\x028', "then", '"\x02299\x02"')
    assert Side.tried < 20


def test_words_and_symbols_of_the_same_examples_are_found_where_they_are_frequent():
    lines = [f"{verb} n{n} -> {verb.upper()} N{n}" for verb in ("walk", "run") for n in range(150)]
    data = dataset(*lines, "hop -> HOP", "walk -> WALK", "run -> RUN")
    method = make("lexsym", aligner="companions").fit(data)
    assert {entry.word for entry in method.entries} >= {"walk", "run", "hop"}


def test_a_lexicon_file_is_for_types(tmp_path):
    with pytest.raises(ConfigError, match="--mode pairs alone"):
        make("lexsym", mode="paper", write_lexicon=str(tmp_path / "x.tsv"))
    with pytest.raises(ConfigError, match="types, which --mode pairs alone finds"):
        make("lexsym", mode="paper", agreement=0.9)
    with pytest.raises(ConfigError, match="--mode paper exchanges two words at a time: leave out --move permute"):
        make("lexsym", mode="paper", move="permute")
    with pytest.raises(ConfigError, match="--aligner is for a lexicon that is found: leave it out, or --lexicon"):
        make("lexsym", lexicon=lexicon(tmp_path, *VERBS), aligner="companions")
    with pytest.raises(DataError, match="1 of 1 words that the data have are never beside their symbols: a"):
        make("lexsym", lexicon=lexicon(tmp_path, "t|a|B")).fit(dataset("a -> A"))


def test_examples_that_are_copies_exchange_words_not_sentences():
    data = dataset(*(f"{x} sees {y} -> {x} sees {y}" for x in "abcd" for y in "abcd" if x <= y))
    assert texts(make("lexsym").fit(data).sample()) == {
        f"{x} sees {y} -> {x} sees {y}" for x in "abcd" for y in "abcd" if x > y
    }
    assert len({str(make("lexsym").fit(data).sample(1, seed).pairs()) for seed in range(9)}) > 1


@pytest.mark.parametrize(
    ("split", "new", "of_test"),
    [
        pytest.param("jump", 7706, 7706, marks=LONG),
        pytest.param("around_right", 4785, 3756, marks=LONG),
        pytest.param("opposite_right", 4785, 3756, marks=LONG),  # *opposite* never is without the action of *left*
        pytest.param("jump_around_right", 2346, 1173, marks=LONG),
        pytest.param("right", 4785, 3756, marks=LONG),
        pytest.param("turn_left", 1172, 1172, marks=LONG),
    ],
)
def test_orbits_of_scan(split, new, of_test):
    data = load(f"scan/{split}")
    method = make("lexsym").fit(data.split("train"))
    made = method.sample()
    test = {(tuple(source), tuple(target)) for source, target in data.split("test").pairs()}
    assert len(made) == new and len(test & {(tuple(a), tuple(b)) for a, b in made.pairs()}) == of_test
    assert sorted(entry.word for entry in method.entries if entry.type == "t1") == ["jump", "look", "run", "walk"]
    assert all(right == of for right, of in method.agreement.counts.values())


@LONG
def test_types_of_cogs_without_a_tagger(tmp_path):
    try:
        data = load("cogs/lf").split("train")
    except MissingFileError as error:
        pytest.skip(str(error))
    method = make("lexsym", write_lexicon=str(tmp_path / "lexicon.tsv")).fit(data)
    types = {}
    for entry in method.entries:
        types.setdefault(entry.type, set()).add(entry.word)
    nouns, names, verbs, *_ = types.values()
    assert (len(nouns), len(names), len(verbs)) == (218, 101, 95)
    assert "shark" in nouns and "Paula" in names and "helped" in verbs
    assert any({"ate", "drew", "saw"} <= some for some in types.values())
    assert any({"eaten", "drawn", "seen"} <= some for some in types.values())


def test_symbols_are_exchanged_in_the_order_of_the_columns(tmp_path):
    data = dataset("mary give it -> GIVE ( AGENT mary )", "x send y -> SENDER ( ACT z )")
    path = lexicon(tmp_path, "v|give|GIVE|AGENT", "v|send|SENDER|ACT")
    assert "mary send it -> SENDER ( ACT mary )" in texts(make("lexsym", lexicon=path).fit(data).sample())
    path = lexicon(tmp_path, "v|give|GIVE|AGENT", "v|send|ACT|SENDER")
    assert "mary send it -> ACT ( SENDER mary )" in texts(make("lexsym", lexicon=path).fit(data).sample())


def test_words_with_equal_signs_are_explained(tmp_path):
    data = dataset("a = b -> EQ a b", "a == b -> SAME a b", "a p=r b -> PR a b")
    path = lexicon(tmp_path, "t|=|EQ", "t|==|SAME", "t|p=r|PR")
    method = make("lexsym", lexicon=path, move="substitute").fit(data)
    for swaps, source in (("====", "="), ("====", "=="), ("==p=r", "="), ("p=r==", "p=r"), ("p=r===", "p=r")):
        host = next(row for row, (tokens, _) in enumerate(data.pairs()) if source in tokens)
        first, *_ = method.explain({"host": host, "swaps": swaps})
        assert [token for token, mark in first.source if mark == 0] == [source]


def test_words_with_white_space_that_is_no_space_are_explained(tmp_path):
    data = Dataset.from_pairs([(["in", "new\u00a0york"], ["IN", "NY"]), (["in", "ohio"], ["IN", "OH"])])
    path = lexicon(tmp_path, "t|new\u00a0york|NY", "t|utah|UT")
    method = make("lexsym", lexicon=path).fit(data)
    first, *_ = method.explain(method.sample().frame.row(0, named=True))
    assert first.source == [("in", -1), ("new\u00a0york", 0)] and first.target == [("IN", -1), ("NY", 0)]


def test_exchanges_that_rarely_agree_are_a_warning(tmp_path):
    """Of types that are used alone: those that are left out say nothing of the samples."""
    path = lexicon(tmp_path, "t1|a|A", "t1|b|B")
    method = make("lexsym", lexicon=path, agreement=0).fit(dataset("a x -> A", "b x -> B B", "a y -> A y"))
    method.sample()
    for right, warned in ((39, True), (71, False), (65, False), (64, True)):
        method.agreement = Agreement({"t1": (right, 72), "t2": (1, 400)}, {"t2"})
        found = method.warnings()
        assert bool(found) == warned and (not found or "or correct a lexicon (--write-lexicon, --lexicon)" in found[0])
        assert f"of {method.agreement.in_words()}" in method.described()
    method.agreement = Agreement({"t1": (1, 19)}, ())  # too few to tell
    assert not method.warnings()
