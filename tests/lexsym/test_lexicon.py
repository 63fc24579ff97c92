"""Lexicons: the worked examples of the published method, as published and as coded, and ours."""

import tracemalloc

import pytest

from compgen.errors import DataError
from compgen.lexsym.lexicon import (
    ALONE,
    JOINED,
    Entry,
    agreement,
    check,
    coded_partners,
    components,
    contexts,
    explained,
    find,
    frequent,
    lexemes,
    most_frequent,
    one_to_many,
    others_of,
    published_partners,
    read,
    write,
)

VERBS = [
    tuple(tuple(side.split()) for side in line.split(" -> "))
    for line in (
        "Emma ate a cake -> eat ( Emma , cake )",
        "Emma drew a cake -> draw ( Emma , cake )",
        "Emma saw a cake -> see ( Emma , cake )",
        "Noah ate a cake -> eat ( Noah , cake )",
        "Noah helped -> help ( Noah )",
        "Emma helped -> help ( Emma )",
        "a cake was eaten -> eat ( NONE , cake )",
        "a cake was drawn -> draw ( NONE , cake )",
        "a cake was seen -> see ( NONE , cake )",
    )
]
MEANING = {"ate": "eat", "eaten": "eat", "drew": "draw", "drawn": "draw", "saw": "see", "seen": "see"}


def test_rare_links_are_dropped():
    pairs = [(("red",), ())] * 150 + [(("the",), ())] * 200
    assert frequent({"red": {"9": 100, "3": 1}, "the": {"5": 1}}, pairs, 0.01) == {"red": {"9": 100}}
    assert frequent({"red": {"9": 75, "3": 74}}, pairs, 0.5) == {"red": {"9": 75}}
    assert frequent({"red": {"9": 7, "3": 6}}, pairs[:100], 0.07) == {"red": {"9": 7}}  # 0.07 * 100 > 7


def test_links_that_another_word_explains_are_dropped():
    pairs = [tuple(map(tuple, pair)) for pair in (("ol", "L"), ("l", "L"), ("e", "L"), ("be", "x"), ("bn", "N"))]
    lexicon = {"o": {"L": 1}, "l": {"L": 2}, "e": {"L": 1}, "b": {"x": 1, "N": 1}, "n": {"N": 1}}
    # o is explained by l; e has L where l is not, and b has symbols of its own
    assert explained(lexicon, pairs) == {key: lexicon[key] for key in ("l", "e", "b", "n")}


def test_a_word_that_is_just_where_a_symbol_is_explains_others_but_none_that_is_always_beside_it():
    pairs = [(("opposite", "left"), ("L", "L")), (("left",), ("L",)), (("big", "bad"), ("B",))]
    lexicon = {"opposite": {"L": 1}, "left": {"L": 2}, "big": {"B": 1}, "bad": {"B": 1}}
    assert explained(lexicon, pairs) == {word: lexicon[word] for word in ("left", "big", "bad")}


def test_words_that_share_a_symbol_go_as_coded_and_entries_as_published():
    meanings = {"a": "x", "b": "x y", "c": "z", "cat": "q", "cats": "q", "bus": "q2", "buses": "q2", "Cat": "q3"}
    lexicon = {word: dict.fromkeys(symbols.split(), 1) for word, symbols in (meanings | {"cat2": "q3"}).items()}
    assert list(one_to_many(lexicon, whole_words=True)) == ["c", "cat", "cats", "Cat", "cat2"]
    assert one_to_many(lexicon) == {"b": {"y": 1}, "c": {"z": 1}}


def test_the_three_most_frequent_symbols_are_kept_as_coded():
    assert most_frequent({"a": {"x": 1, "y": 4, "z": 2, "u": 3}}) == {"a": {"y": 4, "u": 3, "z": 2}}


@pytest.mark.parametrize(
    ("one", "other", "words", "coded", "published"),
    [
        ("a b c cat d e f", "z b c dog d e z", "cat dog", False, False),
        ("a b c cat d e f", "a b c dog d e f", "cat dog", True, True),
        ("A cat slept .", "The dog ate a cake .", "cat dog", True, False),
        ("Emma ate a cake .", "A dog slept .", "ate dog", True, False),
        ("walk twice", "jump twice", "walk jump", False, True),
        ("turn left", "turn right", "left right", False, True),
        ("walk", "jump", "walk jump", False, True),
        ("x see cat catalog now", "x see dog dogalog now", "cat dog", True, False),
        ("x see cat now", "x see dog now dog", "cat dog", False, False),
        ("x see cat now cat", "x see dog now dog", "cat dog", True, False),  # the first of both is inside
        ("x see cat catalog now", "x see dog catalog now", "cat dog", False, True),
    ],
)
def test_who_may_be_exchanged(one, other, words, coded, published):
    pairs = [(tuple(one.split()), ()), (tuple(other.split()), ())]
    lexicon = {word: {word: 1} for word in words.split()}
    first, second = words.split()
    for partners, expected in (
        (coded_partners(pairs, lexicon), coded),
        (published_partners(pairs, lexicon), published),
    ):
        assert [*partners[first]] == ([second] if expected else [])
        assert [*partners[second]] == ([first] if expected else [])


def test_the_others_of_many_words_take_no_more_memory_than_the_words():
    tracemalloc.start()
    found = others_of([[str(number) for number in range(3000)], ["alone"]])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 5_000_000  # a list for each would take 72 MB
    assert [*found["1"]][:3] == [found["1"][place] for place in range(3)] == ["0", "2", "3"]
    assert len(found["1"]) == 2999 and found["1"][2998] == "2999" and not found["alone"]


def test_components_are_closed():
    assert components([("a", "b"), ("b", "c")], "abcd") == [["a", "b", "c"], ["d"]]


def test_words_have_the_same_symbols_or_none_in_common():
    links = {"ate": {"eat": 3}, "eaten": {"eat": 1}, "by": {"x": 1}, "was": {"x": 1, "be": 2}, "the": {"d": 1}}
    links |= {f"w{number}": {"d": 1} for number in range(4)}  # five words mean d: none does
    assert lexemes(links) == {"ate": ("eat",), "eaten": ("eat",), "was": ("be",)}


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("he give it -> GIVE ( AGENT it )", "he send it -> SEND ( ACT it )", True),
        ("he give it -> GIVE ( AGENT it )", "he send it -> ACT ( SEND it )", False),
        ("he give it -> GIVE ( AGENT it )", "send he it -> SEND ( ACT it )", False),
    ],
)
def test_a_context_has_the_places_of_a_word_and_of_each_of_its_symbols(one, other, alike):
    pairs = [tuple(tuple(side.split()) for side in line.split(" -> ")) for line in (one, other)]
    found = contexts(pairs, {"give": ("GIVE", "AGENT"), "send": ("SEND", "ACT")})
    assert sorted(map(sorted, found.values())) == ([["give", "send"]] if alike else [["give"], ["send"]])


def test_forms_of_a_lexeme_have_types_of_their_own():
    types = {}
    for entry in find(VERBS, "model1", 0.01):
        if entry.type == ALONE:
            continue
        types.setdefault(entry.type, []).append((entry.word, entry.symbols))
    assert sorted(map(sorted, types.values())) == [
        [("Emma", ("Emma",)), ("Noah", ("Noah",))],
        [("ate", ("eat",)), ("drew", ("draw",)), ("saw", ("see",))],
        [("drawn", ("draw",)), ("eaten", ("eat",)), ("seen", ("see",))],
    ]
    assert [len(types[name]) for name in ("t1", "t2", "t3")] == [3, 3, 2]  # the largest first


def test_a_phrase_that_the_target_lacks_does_not_mean_itself():
    city = f"new{JOINED}york"
    pairs = [((city,), ("NYC",)), (("ohio",), ("OH",)), (("in", city), (city,))]
    assert {entry.word: entry.symbols for entry in find(pairs[:2])} == {city: ("NYC",), "ohio": ("OH",)}
    assert {entry.word: entry.symbols for entry in find(pairs[1:])}[city] == (city,)


def test_a_type_with_two_forms_of_a_lexeme_is_divided():
    """`helped` is past and participle, which makes one type of all forms at first."""
    pairs = [
        (("A", verb, "B"), (symbol, "1")) for verb, symbol in (("ate", "eat"), ("drew", "draw"), ("helped", "help"))
    ] + [(("was", verb), (symbol, "2")) for verb, symbol in (("eaten", "eat"), ("drawn", "draw"), ("helped", "help"))]
    found = {}
    for entry in find(pairs, "model1", 0.01):
        if entry.type == ALONE:
            assert entry.word not in ("ate", "eaten")
            continue
        found.setdefault(entry.type, set()).add(entry.word)
    assert sorted(map(sorted, found.values())) == [["ate", "drew"], ["drawn", "eaten"]]


def test_how_often_exchanges_agree():
    pairs = [(("see", "a"), ("A",)), (("see", "b"), ("B",)), (("take", "a"), ("A",)), (("take", "b"), ("B", "C"))]
    entries = [Entry("t1", "a", ("A",)), Entry("t1", "b", ("B",))]
    assert agreement(pairs, [*entries, Entry(ALONE, "see", ("S",))]) == {"t1": (1, 2)}


def test_a_lexicon_is_written_and_read(tmp_path):
    entries = [
        Entry("t1", "ate", ("eat",)),
        Entry("t2", "eaten", ("eat",)),
        Entry("t3", f"new{JOINED}york", (f"new{JOINED}york",)),
        Entry("t4", "purple", ("25", "29")),
        Entry("t4", "می\u200cخ", ("a\u00a0b", "\u2028")),
        Entry("t4", "nyc", (f"city{JOINED}of{JOINED}york", "ny")),
    ]
    path = tmp_path / "lexicon.tsv"
    write(path, entries)
    assert path.read_text().splitlines()[:2] == ["type\tword\tsymbols", "t1\tate\teat"]
    assert read(path) == entries


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("t1\tdog", "line 3: found 't1\\\\tdog', expected type, word and symbols between tabs"),
        ("t1\t\tdog", "line 3: found"),
        ("t2\tcat\tfeline", "line 3: 'cat' is there already"),
        ("t1\tcats\tcat", "line 3: 'cat' means the same and is of the type 't1' too"),
        (
            "t2\tkitten\tcat\tyoung",
            "line 3: 'kitten' shares a symbol with a word that has others, or another order of them",
        ),
        ("t2\tcats\tyoung\tcat", "line 3: 'cats' shares a symbol with a word that has others"),
        ("t1\tki\x02t\tkit", "line 3: found"),
    ],
)
def test_lines_that_contradict_others_are_refused(tmp_path, line, message):
    path = tmp_path / "lexicon.tsv"
    path.write_text(f"type\tword\tsymbols\nt1\tcat\tcat\n{line}\n")
    with pytest.raises(DataError, match=message):
        read(path)


def test_a_lexicon_that_contradicts_the_data_is_refused():
    pairs = [(("cat", "dog"), ("CAT", "DOG"))]
    check("x", [Entry("t1", "cat", ("CAT",)), Entry("t1", "unseen", ("U",))], pairs)
    with pytest.raises(DataError, match="1 of 2 words that the data have are never beside their symbols: dog"):
        check("x", [Entry("t1", "cat", ("CAT",)), Entry("t1", "dog", ("CANIS",))], pairs)


@pytest.mark.parametrize("token", ["new york", " cat", "a\tb", "a\nb", "cat\r"])
def test_tokens_that_would_be_read_as_others_are_not_written(tmp_path, token):
    for entry in (Entry("t1", token, ("C",)), Entry("t1", f"c{JOINED}{token}", ("C",)), Entry("t1", "c", ("C", token))):
        with pytest.raises(DataError, match="a lexicon cannot hold the token"):
            write(tmp_path / "lexicon.tsv", [entry])
    assert not (tmp_path / "lexicon.tsv").exists()
    entries = [Entry("t1", f"new{JOINED}york", ("x\u00a0y", "\u200d")), Entry("-", "type", ("\u2028",))]
    write(tmp_path / "lexicon.tsv", entries)
    assert read(tmp_path / "lexicon.tsv") == entries


def test_symbols_that_were_found_apart_are_accepted():
    """Alignment may link a word with two symbols that no example has both of."""
    check("x", [Entry("-", "cat", ("CAT", "CATS"))], [(("cat",), ("CAT",)), (("cat", "dog"), ("CATS", "DOG"))])
