"""SMCalFlow for CSL: seed rules, the target grammar, and from pairs to samples."""

import pytest

from compgen.csl.augmenter import Csl
from compgen.csl.rules import Alphabet
from compgen.csl.smcalflow import SLOTS, UNITS, seed_rules, target_grammar
from compgen.csl.targets import TargetGrammar
from compgen.data import smcalflow as data
from compgen.data.examples import Dataset
from compgen.errors import DataError
from tests.csl.data import published
from tests.smcalflow import CROSS, ME, SINGLE, UNKNOWABLE, asked, event, manager, on, subject, write


def dataset_of(*pairs):
    return Dataset.from_pairs([(data.words(source), target.split()) for source, target in pairs])


def seeds_of(*pairs):
    """The seed rules of some pairs, but for the five of the file."""
    found = seed_rules(dataset_of(*pairs)).text().splitlines()
    units = UNITS.read_text().splitlines()
    assert set(units) <= set(found)
    return [line for line in found if line not in units]


def derived(targets, rows):
    """Which of some targets a target grammar derives."""
    alphabet = Alphabet(token for row in rows for token in row)
    checker = targets.checker(alphabet)
    return [("ROOT",) in checker.signatures(alphabet.encode(row)) for row in rows]


def test_there_are_five_unit_rules():
    assert len(UNITS.read_text().splitlines()) == 5
    assert all(line.startswith("NT_1 ### ") for line in UNITS.read_text().splitlines())


def test_texts_are_seeds_as_the_source_has_them():
    assert seeds_of(SINGLE[3], SINGLE[8], ("Plan A Picnic on FRIDAY, friday", SINGLE[2][1])) == [
        "2 ### Number 2.0",
        'FRIDAY ### DayOfWeek " FRIDAY "',
        "O ' Hara ' s barn ### LocationKeyphrase \" O'Hara's barn \"",
        'Picnic ### String " picnic "',
        'friday ### DayOfWeek " FRIDAY "',
        'monday ### DayOfWeek " MONDAY "',
        'rehearsal ### String " rehearsal "',
    ]
    may = [UNKNOWABLE[1], ("Plan Zoe-Fest for Zoe", event(f"{subject('Zoe-Fest')} {subject('Fest Zoe')}"))]
    assert seeds_of(*may) == [
        "4 ### Number 4",
        'May ### Month " MAY "',
        'Zoe - Fest ### String " Zoe-Fest "',
        'picnic ### String " picnic "',
    ]


def test_phrases_are_whole_tokens():
    assert seeds_of(("Plan picnics", event(subject("picnic"))), ("Who", '( PersonName " " )')) == []


def test_numbers_are_seeds():
    def number(*numerals):
        return event(" ".join(f":x # ( Number {numeral} )" for numeral in numerals))

    assert seeds_of(("Plan 15 for 1.5 hours", number("1.5", "15.0", "1", "6"))) == [
        "1 ### Number 1",
        "1 . 5 ### Number 1.5",
        "15 ### Number 15.0",
    ]
    assert seeds_of(("Plan 10", number("1"))) == []


def test_dates_and_times_without_brackets_are_seeds():
    assert seeds_of(
        SINGLE[4], ("It is noon on Friday", on("FRIDAY") + " :time ( Noon ) :date ( Today ) :date ( )")
    ) == [
        "3 ### Number 3",
        'Friday ### DayOfWeek " FRIDAY "',
        "noon ### Noon",
        'picnic ### String " picnic "',
        "tomorrow ### Tomorrow",
    ]


def test_the_target_grammar_of_a_pair():
    target = event(f"{on('FRIDAY')} {subject('a ( b')} :showAs ( )")
    assert target_grammar(dataset_of(("x", target), ("y", target))).text().splitlines() == [
        'WEEKDAY => DayOfWeek " FRIDAY "',
        "DATE => NextDOW :dow # ( ##WEEKDAY )",
        "DATE_CONSTRAINT => ?= ( ##DATE )",
        "DATETIME_CONSTRAINT => Constraint[DateTime] :date ( ##DATE_CONSTRAINT )",
        'STRING => String " a ( b "',
        "SUBJECT => ?= # ( ##STRING )",
        "EVENT_CONSTRAINT => Constraint[Event] :start ( ##DATETIME_CONSTRAINT ) :subject ( ##SUBJECT ) :showAs ( )",
        "EVENT => CreatePreflightEventWrapper :constraint ( ##EVENT_CONSTRAINT )",
        "OUTPUT => CreateCommitEventWrapper :event ( ##EVENT )",
        "ROOT => ( Yield :output ( ##OUTPUT ) )",
    ]


def test_arguments_without_names():
    dates = [
        'nextMonthDay ( Today ) # ( Month " MAY " ) # ( Number 4 )',
        "adjustByPeriod ( Tomorrow ) ( toDays # ( Number 2 ) )",
    ]
    pairs = [("x", event(f":start ( Constraint[DateTime] :date ( ?= ( {date} ) ) )")) for date in dates]
    rules = target_grammar(dataset_of(*pairs)).text().splitlines()
    assert {
        "DATE => nextMonthDay ( ##DATE ) # ( ##MONTH ) # ( ##NUMBER )",
        "DATE => adjustByPeriod ( ##DATE ) ( ##PERIOD )",
        "PERIOD => toDays # ( ##NUMBER )",
        "DATE => Today",
        "DATE => Tomorrow",
    } <= set(rules)


def test_the_target_grammar_derives_its_targets_and_others_of_their_kind(tmp_path):
    train = dataset_of(*SINGLE, *CROSS, *UNKNOWABLE)
    targets = target_grammar(train)
    rows = [target for _, target in train.pairs()]
    assert derived(targets, rows) == [True] * len(rows)
    path = tmp_path / "targets.cfg"
    path.write_text(targets.text())
    assert TargetGrammar.read(path) == targets
    others = [
        (event(f"{on('MONDAY')} {subject('picnic')}"), True),
        (asked(manager(manager(manager(ME)))), True),
        (asked(subject("picnic")), False),
        (event(f"{subject('picnic')} {on('MONDAY')}"), False),
        (event(on("MONDAY").replace("?= (", "(") + f" {subject('picnic')}"), False),
    ]
    assert derived(targets, [other.split() for other, _ in others]) == [expected for _, expected in others]


def test_no_slot_is_hidden_by_an_earlier_one():
    for number, slot in enumerate(SLOTS):
        for other in SLOTS[:number]:
            same = slot.before[-len(other.before) :] == other.before
            assert not (same and other.inside in ("*", slot.inside)), (other, slot)


def test_from_files_to_cross_domain_samples(tmp_path):
    """From one pair that needs both domains come new ones that do; all are well formed."""
    file = write(tmp_path / "train.jsonl", [*UNKNOWABLE, *SINGLE, CROSS[0]])
    train = data.read({"train": file}).split("train")
    assert len(train) == len(SINGLE) + 1
    targets = target_grammar(train)
    augmenter = Csl(published("smcalflow").model_copy(update={"training": None}))
    grammar = augmenter.fit(train).grammar
    assert len(grammar.rules) - len(seed_rules(train).rules) < len(train)
    assert "NT_1 ' s boss ### FindManager :recipient ( NT_1 )" in grammar.text().splitlines()
    made = augmenter.sample(200)
    assert derived(targets, made.frame["target"].to_list()) == [True] * 200
    known = {" ".join(source) for source, _ in train.pairs()}
    crossing = {" ".join(source) for source, target in made.pairs() if data.is_cross_domain(target)}
    assert len(crossing - known) >= 5


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("a", "( b ( c )", "found an end with 1 brackets open"),
        ("a", "( b ) )", "token 4: found a closing bracket, expected one opened before"),
        ("a", '( String " b )', 'found 1 tokens that are "'),
        ("a", "", "found an empty target"),
        ("", "( b )", "found an empty source"),
        ("a", "( NT_1 )", "found the token 'NT_1', expected none that begins with NT_"),
    ],
)
def test_bad_pairs_are_named(source, target, message):
    dataset = dataset_of(SINGLE[0], (source, target))
    for make in (seed_rules, target_grammar):
        with pytest.raises(DataError, match=f"example 2: {message}"):
            make(dataset)


def test_tokens_like_names_of_a_target_grammar():
    dataset = dataset_of(SINGLE[0], ("a", "( ##X )"))
    with pytest.raises(DataError, match="example 2: found the token '##X', expected none that begins with ##"):
        target_grammar(dataset)
    assert len(seed_rules(dataset).rules) == 6


@pytest.mark.parametrize(
    ("around", "operator", "kind"),
    [
        (":subject", "?=", "STRING"),
        (":subject", "?~=", "STRING"),
        (":location", "?=", "PLACE"),
        (":location", "?~=", "PLACE"),
        (":showAs", "?=", "STATUS"),
        (":showAs", "?~=", None),
        (":other", "?=", None),
    ],
)
def test_what_a_text_is_depends_on_what_it_is_in(around, operator, kind):
    target = event(f'{around} ( {operator} # ( Thing " x " ) )')
    rules = target_grammar(dataset_of(("x", target))).text()
    found = [line.split(" => ")[0] for line in rules.splitlines() if line.endswith('=> Thing " x "')]
    assert found == ([] if kind is None else [kind])
