"""Substitution as an augmenter: what it makes, what it leaves out, and the coverage of known splits."""

import re

import polars as pl
import pytest

from compgen.augmenters.agreement import Agreement
from compgen.augmenters.registry import make
from compgen.data import downloads
from compgen.data.catalog import load
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.data.scan import interpret
from compgen.errors import DataError, ExhaustedError
from compgen.substitution import augmenter
from compgen.substitution.augmenter import COMPANIONS, Substitute
from compgen.substitution.exchanges import Exchanges
from tests.substitution.toy import dataset

RULES = """NT_1 of NT_2 ### NT_1 ( NT_2 )
rivers in NT_1 ### river ( loc ( NT_1 ) )
lakes in NT_1 ### lake ( loc ( NT_1 ) )
largest ### largest
number ### count
ohio ### ohio
utah ### utah
"""
LINES = (
    "largest of rivers in ohio -> largest ( river ( loc ( ohio ) ) )",
    "number of lakes in utah -> count ( lake ( loc ( utah ) ) )",
    "rivers in utah -> river ( loc ( utah ) )",
)


@pytest.fixture
def grammar(tmp_path):
    path = tmp_path / "grammar.rules"
    path.write_text(RULES)
    return str(path)


def texts(made):
    return {f"{' '.join(source)} -> {' '.join(target)}" for source, target in made.pairs()}


def test_all_exchanges_are_made_if_there_are_few(grammar, tmp_path):
    types = tmp_path / "lexicon.tsv"
    types.write_text("place\tohio\tohio\nplace\tutah\tutah\n")
    method = make("substitute", grammar=grammar, classes="types", lexicon=str(types)).fit(dataset(*LINES))
    assert texts(method.sample()) == {
        "largest of rivers in utah -> largest ( river ( loc ( utah ) ) )",
        "number of lakes in ohio -> count ( lake ( loc ( ohio ) ) )",
        "rivers in ohio -> river ( loc ( ohio ) )",
    }


def test_a_sample_says_what_it_was_made_from(grammar):
    data = dataset(*LINES)
    method = make("substitute", grammar=grammar, classes="predicate", rounds=2).fit(data)
    made = method.sample(5, seed=2)
    for sample in made.frame.iter_rows(named=True):
        assert 1 <= len(sample["donors"]) == len(sample["pieces"]) <= 2
        for donor, piece in zip(sample["donors"], sample["pieces"], strict=True):
            source, target = (side.split() for side in piece.split(" ### "))
            assert "NT_1" in source or re.search(rf"\b{' '.join(source)}\b", " ".join(data.pairs()[donor][0]))
            assert set(target) - {"NT_1"} <= {*data.pairs()[donor][1]}
        tokens = {token for piece in sample["pieces"] for token in piece.split()}
        assert {*sample["source"]} <= tokens | {*data.pairs()[sample["host"]][0]}
        shown = method.explain(sample)
        assert [part.label for part in shown] == ["host"] + ["piece", "from"] * len(sample["pieces"])
        assert [token for token, _ in shown[0].source] == data.pairs()[sample["host"]][0]


def test_a_chain_is_shown_with_its_hole(grammar):
    method = make("substitute", grammar=grammar, classes="one", chains="exchange", agreement=0).fit(dataset(*LINES))
    shown = {method._piece(number) for number in range(len(method.table.pieces))}
    assert {"lakes in NT_1 ### lake ( loc ( NT_1 ) )", "number of NT_1 ### count ( NT_1 )"} <= shown


def test_fewer_samples_are_the_first_of_more(grammar):
    method = make("substitute", grammar=grammar, classes="one", rounds=3, chains="exchange").fit(dataset(*LINES))
    made = method.sample(60, seed=1)
    assert len(made) == 60 and method.sample(20, seed=1).pairs() == made.pairs()[:20]
    assert max(len(source) for source, _ in made.pairs()) > max(len(line.split(" -> ")[0].split()) for line in LINES)


def test_where_one_exchange_makes_no_more_examples_two_may(grammar):
    once, twice = (make("substitute", grammar=grammar, classes="one", rounds=n).fit(dataset(*LINES)) for n in (1, 2))
    assert len(once.sample()) < len(twice.sample())
    assert once.report()["why"].endswith("is new any more; --rounds 2 may make others")
    assert twice.report()["why"].endswith("is new any more")


def test_filters_leave_out_and_say_so(grammar):
    data = dataset(*LINES)
    given = {"grammar": grammar, "classes": "one", "rounds": 2}
    every = texts(make("substitute", **given).fit(data).sample(200))
    assert any("loc ( river" in text for text in every)
    heads = make("substitute", seen_heads=True, **given).fit(data)
    assert texts(heads.sample(200)) < every
    assert not any("loc ( river" in text for text in texts(heads.sample(200)))
    assert any(why.startswith("a predicate under one") for why in heads.report()["left_out"])
    seen = make("substitute", bigrams=0, **given).fit(data)
    possible = {
        f"{head} of {nouns} in {place} -> {predicate} ( {noun} ( loc ( {place} ) ) )"
        for head, predicate in (("largest", "largest"), ("number", "count"))
        for nouns, noun in (("rivers", "river"), ("lakes", "lake"))
        for place in ("ohio", "utah")
    }
    possible.add("rivers in ohio -> river ( loc ( ohio ) )")
    assert texts(seen.sample(200)) == possible - set(LINES)
    short = make("substitute", longest=9, **given).fit(data)
    assert max(len(target) for _, target in short.sample(200).pairs()) <= 9
    assert "9 tokens on a side" in short.described()


def test_targets_whose_signs_never_stand_together_are_left_out(tmp_path):
    (tmp_path / "g").write_text("NT_1 on NT_2 ### NT_1 ( on NT_2 )\ncup ### cup\nbox ### box\nbed ### bed\n")
    method = make("substitute", grammar=str(tmp_path / "g"), classes="one", rounds=2)
    made = texts(
        method.fit(dataset("cup on box on bed -> cup ( on box ( on bed ) )", "box on cup -> box ( on cup )")).sample()
    )
    assert len(made) > 10 and not any(") (" in text for text in made)
    assert method.report()["left_out"]["tokens of the target stand together that never do in the data"] > 0


def test_sources_of_the_data_are_left_out_whatever_their_target(grammar):
    data = dataset("largest of rivers in utah -> smallest", *LINES)
    method = make("substitute", grammar=grammar, classes="predicate").fit(data)
    made = method.sample()
    assert not any(text.startswith("largest of rivers in utah ->") for text in texts(made))
    assert {*made.frame["host"]} | {*made.frame["donors"].explode()} == {1, 2, 3}  # of which there are derivations
    assert method.report()["left_out"] == {"the source is in the data with another target": 1}
    assert method.report()["underived"] == 1


@pytest.mark.parametrize(
    ("lines", "options", "message"),
    [
        (["a -> A", "b -> B"], {}, "the 7 rules of .* derive none of 2 examples; leave out --grammar"),
        (
            LINES[:1],
            {"classes": "slot"},
            r"4 pieces have 4 classes \(slot\), and for none of 3 places is there another",
        ),
        (["ohio -> ohio"], {"classes": "slot"}, "each of 1 derivations is a single rule"),
        (LINES, {"classes": "one", "longest": 1}, "exchanges make no new example of these data: .* more than 1 tokens"),
    ],
)
def test_what_cannot_be_made_is_said(grammar, lines, options, message):
    options = dict(options)
    count = options.pop("n", 10)
    with pytest.raises(ExhaustedError, match=message):
        make("substitute", grammar=grammar, **options).fit(dataset(*lines)).draw(count, 0, lambda *_: None)


def test_classes_are_found_by_held_out_examples():
    nouns = ("rivers", "lakes", "cities", "roads", "hills")
    lines = [f"{noun} in {place} -> {noun} ( in ( {place} ) )" for noun in nouns for place in ("ohio", "utah", "iowa")]
    lines += [f"largest of {line.replace(' -> ', ' -> largest ( ')} )" for line in lines[::2]]
    method = make("substitute").fit(dataset(*lines))
    assert method.classes == "types"  # none is ahead of it
    assert method.classes == make("substitute").fit(dataset(*reversed(lines))).classes


def covered(made, test):
    """How many rows of a test part have a target that was made, entities left blank."""

    def template(target):
        return re.sub(r"(\w+id) \( .*? \)", r"\1 ( X )", " ".join(target))

    known = {template(target) for _, target in made.pairs()}
    return sum(template(target) in known for _, target in test.pairs())


@pytest.mark.parametrize(
    ("classes", "new", "rows"),
    [
        ("token", 915, 0),
        ("slot", 846, 5),
        ("predicate", 13_985, 122),
        pytest.param("one", 88_261, 131, marks=pytest.mark.long),
    ],
)
def test_coverage_of_questions_without_annotation(classes, new, rows):
    """All exchanges with a new question or another program, without filters; rows of the test part by template."""
    try:
        train, test = (
            read_dataset(downloads.find(f"geoquery_subs/template_{part}.tsv", origin="SUBS"))
            for part in ("train", "test")
        )
    except downloads.MissingFileError as error:
        pytest.skip(str(error))
    method = make("substitute", classes=classes, agreement=0, seed_rules="matches").fit(train)
    pairs = set()
    every = method.table.every()
    for block in every.iter_slices(10_000):
        trees = method.table.exchange(*(block[column].to_numpy().astype(int) for column in ("host", "piece")))
        pairs |= {*zip(*method.exchanges.written(trees), strict=True)}
    alphabet = method.grammar.alphabet
    spelled = {(alphabet.decode(source), alphabet.decode(target)) for source, target in pairs}
    found = Dataset.from_pairs(sorted(spelled - {(tuple(source), tuple(target)) for source, target in train.pairs()}))
    assert len(found) == new and covered(found, test) == rows
    if classes == "predicate":
        made = make("substitute", classes=classes, seed_rules="matches").fit(train).sample()
        assert len(made) == 13_971 and covered(made, test) == rows
        known = {tuple(source) for source, _ in train.pairs()}
        assert not any(tuple(source) in known for source, _ in made.pairs())


@pytest.mark.long
def test_a_grammar_that_does_not_agree_with_the_data_gives_way_to_one_that_does():
    """Where any two phrases may stand side by side, exchanges are wrong; where words go together first, hardly any."""
    data = load("scan/opposite_right").split("train")
    some = Dataset(data.frame.filter(pl.col("source").list.len() <= 5).sample(300, seed=0))
    method = make("substitute", longest=30).fit(some)
    assert method.begun == "grammar_scan_companions" and method.classes == "slot"
    right, of = (sum(counts) for counts in zip(*method.agreement.counts.values(), strict=True))
    kept = method.sample(500).pairs()
    assert right > 0.9 * of > 100
    commands = 0
    for source, target in kept:
        try:
            expected = interpret(source)
        except DataError:
            continue
        commands += 1
        assert expected == target
    assert commands
    method.fit(
        dataset(*LINES * 2, "rivers in ohio -> river ( loc ( ohio ) )", "lakes in ohio -> lake ( loc ( ohio ) )")
    )
    assert not method.begun  # nothing is left of the fit before
    alone = make("substitute", longest=30, agreement=0).fit(Dataset(some.frame.head(80)))
    assert not alone.begun and not alone.agreement.left_out


@pytest.mark.parametrize(
    ("first", "second", "given", "taken"),
    [
        (80, 81, {}, COMPANIONS),
        (80, 80, {}, ""),
        (80, 79, {}, ""),
        (90, 100, {}, ""),  # not doubtful
        (80, 100, {"agreement": 0}, ""),
        (80, 100, {"seed_rules": "matches"}, ""),
        (None, 0, {}, COMPANIONS),
        (80, None, {}, ""),
        (None, None, {}, None),
    ],
)
def test_of_two_grammars_that_is_taken_by_which_more_exchanges_agree(monkeypatch, first, second, given, taken):
    """Percentages of agreeing exchanges; None where nothing can be made."""

    def learn(self, *_):
        share = second if self.options.seed_rules == "companions" else first
        if share is None:
            raise ExhaustedError(f"nothing by {self.options.seed_rules}")
        self.agreement = Agreement({0: (share, 100)}, [])

    monkeypatch.setattr(Substitute, "_learn", learn)
    method = make("substitute", **given)
    if taken is None:
        with pytest.raises(ExhaustedError, match="nothing by auto"):
            method.fit(dataset(*LINES))
        return
    method.fit(dataset(*LINES))
    assert method.begun == taken and method.agreement.kept == (second if taken else first, 100)


def test_classes_that_disagree_are_left_out_and_said(tmp_path):
    """Rules that put either side first, and pieces of one class for any place."""
    first = [f"w{i} x -> W{i} X" for i in range(6)] + ["z x -> X Z"]
    second = [f"w{i} y -> Y W{i}" for i in range(6)] + ["z y -> Z Y"]
    rules = [f"w{i} ### W{i}" for i in range(6)] + ["z ### Z", "x ### X", "y ### Y"]
    path = tmp_path / "either.rules"
    path.write_text("\n".join([*rules, "NT_1 NT_2 ### NT_1 NT_2", "NT_1 NT_2 ### NT_2 NT_1"]) + "\n")
    given, data = {"grammar": str(path), "classes": "one"}, dataset(*first, *second)
    method = make("substitute", **given, agreement=0).fit(data)
    right, of = (sum(counts) for counts in zip(*method.agreement.counts.values(), strict=True))
    assert of >= 20 and right < 0.9 * of
    method.sample()
    assert "many of the samples will be wrong" in method.warnings()[0]
    with pytest.raises(ExhaustedError, match="give the sources of other examples other targets"):
        make("substitute", **given, agreement=1).fit(data)


UNITS = """NT_1 NT_2 before today ### NT_2 = NT_1 , now
NT_1 NT_2 before tomorrow ### NT_2 = NT_1 , now , NT_2 = 1
wait NT_1 twice ### wait NT_1 wait NT_1
tomorrow ### days = 1
why tomorrow ### ? days = 1
some NT_1 ### some NT_1
six ### 6
two ### 2
days ### days
weeks ### weeks
"""


@pytest.mark.parametrize(("rounds", "chains"), [(1, "no"), (2, "no"), (2, "exchange")])
def test_a_piece_stays_where_other_words_have_its_symbols_too(tmp_path, rounds, chains):
    """*tomorrow* gives `days` as well, as examples without *days* tell; of *twice* there is no such example."""
    path = tmp_path / "units.rules"
    path.write_text(UNITS)
    data = dataset(
        "six days before tomorrow -> days = 6 , now , days = 1",
        "six some days before tomorrow -> some days = 6 , now , some days = 1",
        "six days before today -> days = 6 , now",
        "two weeks before today -> weeks = 2 , now",
        "wait days twice -> wait days wait days",
        "tomorrow -> days = 1",
        "why tomorrow -> ? days = 1",
        *("weeks -> weeks", "two -> 2", "six -> 6"),
    )
    method = make("substitute", grammar=str(path), classes="one", rounds=rounds, chains=chains, agreement=0)
    made = texts(method.fit(data).sample())
    assert not [text for text in made if "weeks before tomorrow" in text]
    assert {
        "two days before tomorrow -> days = 2 , now , days = 1",
        "wait weeks twice -> wait weeks wait weeks",
    } <= made
    assert method.report()["ambiguous"] == 2 and "in 2 examples a piece is not exchanged" in method.in_words()


def test_odd_sources_are_a_warning(grammar, monkeypatch):
    method = make("substitute", grammar=grammar, classes="predicate").fit(dataset(*LINES))
    method.sample(20)
    share = method.exchanges.odd(method.exchanges.found(20, 0))
    assert not method.warnings() and share <= 0.2
    monkeypatch.setattr(augmenter, "ODD", -1.0)
    assert method.warnings() == [
        f"{share:.0%} of the sources have two or more pairs of neighbouring tokens that DATA lacks, and may make no "
        "sense: look at them; --bigrams 1 leaves these out, other --classes make fewer"
    ]


def test_templates_count_less_where_samples_are_odd(monkeypatch):
    """So that classes that take anything for anything are not chosen for the templates they give."""
    lines = [f"{size} of {thing} in {place} -> {size} ( {thing} ( {place} ) )"
             for size in ("largest", "number", "first") for thing in ("rivers", "lakes", "cities")
             for place in ("ohio", "utah", "maine", "iowa")]  # fmt: skip
    pairs = dataset(*lines).pairs()
    wanted = [(tuple(source), tuple(target)) for source, target in pairs[::5]]
    rest = Dataset.from_pairs([pair for number, pair in enumerate(pairs) if number % 5])
    whole = Substitute()._covered(rest, wanted, 0)
    monkeypatch.setattr(Exchanges, "odd", lambda self, sources: 0.75)
    assert max(whole.values()) > 0
    assert Substitute()._covered(rest, wanted, 0) == {classes: count / 4 for classes, count in whole.items()}


def test_a_token_is_not_taken_for_a_type():
    """Types of words are named t1, t2, ... in brackets; a token may be written like that."""

    def made(token):
        pairs = [(verb, noun) for verb in ("go", "see", "run", "eat") for noun in ("cat", "dog", "tree")]
        lines = [f"{verb} the {noun} {token}\t{verb.upper()} ( {noun} ) {token}" for verb, noun in pairs[:-1]]
        lines += ["nap\tNAP", f"nap {token}\tNAP {token}"]
        examples = [[side.split() for side in line.split("\t")] for line in lines]
        return [
            str(pair).replace(token, "x1") for pair in make("substitute").fit(Dataset.from_pairs(examples)).sample(9)
        ]

    assert made("(t1)") == made("(x1)")
