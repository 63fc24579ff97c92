import random
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from compgen.data.examples import Dataset
from compgen.errors import DataError, ExhaustedError, UserError
from compgen.geca import building, definition, enumeration, tables
from compgen.geca.augmenter import Geca
from compgen.geca.compose import Composer, _ascending
from compgen.geca.options import GecaOptions

ALL = 300  # variants: more than there are candidates


def sentences(*lines):
    return Dataset.from_pairs((line.split(), []) for line in lines)


def pairs(*lines):
    return Dataset.from_pairs(tuple(side.split() for side in line.split(" -> ")) for line in lines)


def texts(dataset):
    return {" -> ".join(" ".join(side) for side in pair if side) for pair in dataset.pairs()}


def made(dataset, *, count=None, seed=0, **options):
    return Geca(**options).fit(dataset).sample(count, seed)


def test_figure_1_of_the_paper():
    """Picks ... up and puts ... down stand in one environment, so one may stand where the other does."""
    data = sentences(
        "she picks the wug up in Fresno",
        "she puts the wug down in Tempe",
        "Pat picks cats up",
        "Pat puts cats down",
    )
    assert texts(made(data)) == {"she puts the wug down in Fresno", "she picks the wug up in Tempe"}


def test_a_new_verb_is_put_where_others_stand():
    """The paper's dax: one example of the new verb is enough, if other verbs stand alone too."""
    data = pairs("dax -> DAX", "jog -> JOG", "jog twice -> JOG JOG", "jog left -> LEFT JOG")
    assert texts(made(data)) == {"dax twice -> DAX DAX", "dax left -> LEFT DAX"}


def test_the_report_counts_one_example_left_out():
    augmenter = Geca(longest=4).fit(pairs("dax -> D", "jog -> J", "jog left -> L J", "a b c -> A B"))
    augmenter.sample()
    assert augmenter.described().endswith(", 1 example left out as longer than 4 tokens")


def test_a_new_noun_is_put_where_others_stand():
    data = sentences("the wug sang", "the cat sang", "a cat slept", "a cat ran")
    options = {"spans": 1, "window": 1}
    assert {"a wug slept", "a wug ran"} <= texts(made(data, mode="reference", variants=ALL, **options))


words = st.sampled_from(["a", "b", "c", "d"])
sides = st.lists(words, min_size=1, max_size=5).map(tuple)
answers = st.lists(st.sampled_from(["W", "X", "Y"]), min_size=1, max_size=3).map(tuple)
configs = st.builds(
    GecaOptions,
    mode=st.sampled_from(["published", "reference"]),
    span=st.integers(1, 3),
    spans=st.integers(1, 3),
    limit=st.sampled_from([None, 2, 5]),
    window=st.sampled_from([None, 0, 1, 2]),
    longest=st.sampled_from([7, 99]),
)


@settings(max_examples=150, deadline=None)
@given(
    st.one_of(
        st.lists(st.tuples(sides, st.just(())), min_size=1, max_size=7),
        st.lists(st.tuples(sides, sides), min_size=1, max_size=5),
        st.lists(st.tuples(sides, answers), min_size=2, max_size=6),
    ),
    configs,
    st.sampled_from(["both", "source", "pair"]),
)
# The second span is replaced in source and target, where the third still has to be found.
@example([(("a", "a", "b"), ("a", "a", "c"))], GecaOptions(mode="reference", span=2, spans=3, longest=7), "both")
# Of the two fragments of "_ -> _", (a, X) and (b, Y), another has a span of each: a -> Y is left out.
@example(
    [(("a",), ("X",)), (("b",), ("Y",)), (("d", "a"), ("X",)), (("d", "a"), ("Y",))],
    GecaOptions(span=1, spans=2, window=0),
    "pair",
)
def test_tables_and_examples_are_those_of_the_definitions(examples, config, novelty):
    expected = definition.rows(examples, config)
    made = definition.composed(examples, config.model_copy(update={"novelty": novelty}))
    augmenter = Geca(**config.model_dump() | {"variants": ALL, "novelty": novelty})
    try:
        found = augmenter.fit(Dataset.from_pairs(examples)).sample()
        got = {(tuple(source), tuple(target)) for source, target in found.pairs()}
        assert len(got) == len(found)
    except ExhaustedError:
        got = set()
    assert got == made
    if augmenter.tables is not None:
        assert augmenter.tables.pairs == len(expected)
        assert augmenter.tables.templates == len({template for template, _, _ in expected})
        assert augmenter.tables.fragments == len({fragment for _, fragment, _ in expected})


GRAMMAR = [
    f"{verb} {how} -> {' '.join([verb.upper()] * times)}"
    for verb in ("walk", "run", "look", "hop")
    for how, times in (("once", 1), ("twice", 2), ("thrice", 3))
] + ["jump -> JUMP", "walk -> WALK", "a b -> A B", "walk once and run twice -> WALK RUN RUN"]


def counts(dataset, **options):
    found = Geca(**options).fit(dataset).tables
    return found.pairs, found.templates, found.fragments


@pytest.mark.parametrize(
    ("mode", "window"),
    [
        ("published", None),
        ("reference", 1),
        pytest.param("published", 1, marks=pytest.mark.long),
        pytest.param("reference", None, marks=pytest.mark.long),
    ],
)
def test_nothing_depends_on_the_order_of_the_data_or_on_memory(mode, window, monkeypatch):
    data = pairs(*GRAMMAR)
    options = {"mode": mode, "window": window, "span": 2, "count": 20, "seed": 7}
    expected = made(data, **options)
    counted = counts(data, mode=mode, window=window, span=2)
    assert len(expected) > 5
    shuffled = random.Random(1).sample(GRAMMAR, len(GRAMMAR))
    assert made(pairs(*shuffled), **options).pairs() == expected.pairs()
    stores = []
    monkeypatch.setattr(tables, "CHECKED", 7)
    monkeypatch.setattr(enumeration, "CHUNK", 50)
    monkeypatch.setattr(tables, "EXAMPLES", 20)

    class Small(tables.Store):
        def __init__(self, key, most, *arguments):
            super().__init__(key, min(most, 60), *arguments)
            stores.append(self)

    monkeypatch.setattr(tables, "Store", Small)
    again = made(data, **options)
    assert again.pairs() == expected.pairs()
    heard = []
    Geca(mode=mode, window=window, span=2).fit(data).sample(watch=lambda _stage, share, _note: heard.append(share))
    assert len(heard) > 1
    assert heard == sorted(heard)
    assert heard[-1] == pytest.approx(1)
    assert counts(data, mode=mode, window=window, span=2) == counted
    assert all(store.files > 1 and len(list(store.partitions())) > 1 for store in stores)


def test_a_collision_of_hashes_is_found_and_another_hash_is_taken(monkeypatch):
    data = pairs(*GRAMMAR)
    expected = texts(made(data, variants=ALL))
    hashes = enumeration.Enumerator.template_hashes
    used = []

    def colliding(self, *arguments):
        used.append(self.salt)
        result = hashes(self, *arguments)
        return result % np.uint64(50) if self.salt == 0 else result

    monkeypatch.setattr(enumeration.Enumerator, "template_hashes", colliding)
    assert texts(made(data, variants=ALL)) == expected
    assert set(used) == {0, 1}


def test_a_seed_decides_which_examples_come():
    data = pairs(*GRAMMAR)
    first, again, other = (made(data, count=5, seed=seed).pairs() for seed in (1, 1, 2))
    assert first == again != other
    whole = made(data, seed=1).pairs()
    assert whole[:5] == first
    assert sorted(made(data, seed=2, variants=ALL).pairs()) == sorted(made(data, variants=ALL).pairs())


def test_variants_limit_the_examples_of_a_template():
    data = sentences("the a", "the b", "the c", "the d", "my old a")
    assert len(made(data, spans=1)) == 2
    assert len(made(data, spans=1, variants=1)) == 1
    assert len(made(data, spans=1, variants=9)) == 3


def test_templates_come_in_the_order_of_their_keys_and_none_is_left_out():
    keys = np.random.default_rng(0).integers(0, 2**64, 40_000, dtype=np.uint64)
    parts = [*_ascending(keys)]
    assert len(parts) > 3 and np.concatenate(parts).tolist() == np.argsort(keys).tolist()


def test_what_a_template_takes_is_drawn_by_how_many_templates_lend_it():
    """Three lend *x*, one *y* and one *z*."""
    lenders = ["t a", "t x", "u a", "u x", "v a", "v x", "v z", "w a", "w y"]
    data = sentences(*lenders, *(f"h{number} a" for number in range(900)))
    found = Counter(source[1] for source, _ in made(data, span=1, spans=1, variants=1).pairs() if source[0][0] == "h")
    assert {token: found[token] / found.total() for token in found} == pytest.approx(
        {"x": 3 / 5, "y": 1 / 5, "z": 1 / 5}, abs=0.05
    )


@pytest.mark.parametrize(("variants", "weight", "met"), [(1, 2, 1), (2, 1, 2), (2, 2, 1 + 2 / 3)])
def test_the_reference_draws_so_often_with_repetition(variants, weight, met):
    """Of two candidates that are listed twice, the second draw takes the first again in one of three cases."""
    composer = object.__new__(Composer)
    composer.variants, composer.seed = variants, np.array([7], dtype=np.uint64)
    template = np.repeat(np.arange(3000, dtype=np.uint64), 2)
    drawn = composer._drawn(template, np.full(len(template), weight, dtype=np.uint32))
    assert len(drawn) / 3000 == pytest.approx(met, abs=0.04)


def test_reach_limits_the_templates_that_a_fragment_brings_others_to():
    data = pairs("jump -> JUMP", "walk -> WALK", *(f"walk {word} -> WALK {word.upper()}" for word in "abcdefgh"))
    assert len(made(data)) == 8
    # The template of "walk -> WALK" is one of those that are reached, or not.
    assert {len(made(data, reach=3, seed=seed)) for seed in range(9)} == {2, 3}


def test_too_long_examples_are_left_out_but_counted():
    data = pairs("dax -> DAX", "jog -> JOG", "jog twice -> JOG JOG", "jog and so on for long -> JOG X X X X X")
    augmenter = Geca(longest=8).fit(data)
    assert augmenter.tables.enumerator.corpus.skipped == 1
    assert texts(augmenter.sample()) == {"dax twice -> DAX DAX"}


def test_unasked_no_example_of_thousands_of_tokens_is_recombined():
    """One of 10,000 different tokens has 50 million fragments of two spans."""
    texts = [" ".join(f"{side}{token}" for token in range(600)) for side in "ab"]
    long = pairs(f"{texts[0]} -> {texts[1]}", f"{texts[1]} -> {texts[0]}")
    says = r"no example has 1,000 tokens or fewer \(the shortest has 1,200\): raise --longest"
    assert re.fullmatch(says, Geca.refuses(long))
    with pytest.raises(ExhaustedError, match=says):
        Geca().fit(long)
    assert Geca.refuses(long + pairs("a -> b")) is None
    assert Geca().fit(pairs("a -> A", "b -> B", *["a b -> A B"] * 9) + long).sample(1) is not None
    with pytest.raises(ExhaustedError, match="no template has two fragments"):
        Geca(longest=1200, spans=1).fit(long)


def test_what_cannot_be_is_said():
    with pytest.raises(UserError, match="fit"):
        Geca().sample(1)
    with pytest.raises(DataError, match="expected a source and a target in all"):
        Geca().fit(pairs("a -> b") + sentences("c"))
    with pytest.raises(DataError, match="empty source"):
        Geca().fit(Dataset.from_pairs([([], ["a"])]))
    with pytest.raises(DataError, match="no example"):
        Geca().fit(Dataset.from_pairs([]))
    with pytest.raises(ExhaustedError, match=r"no example has 1 tokens or fewer \(the shortest has 3\): raise"):
        Geca(longest=1).fit(pairs("a b -> c"))
    with pytest.raises(ExhaustedError, match="at most 1 times"):
        Geca(limit=1).fit(pairs("a -> a"))
    with pytest.raises(ExhaustedError, match="no template has two fragments"):
        Geca().fit(pairs("a b c -> d e f"))
    with pytest.raises(ExhaustedError, match="none has one on each side"):
        made(pairs("a b -> X", "a c -> X"), spans=1)
    with pytest.raises(
        ExhaustedError,
        match=r"1 of 2 examples are left out as longer than 2 tokens \(raise --longest: the longest has 3\); of",
    ):
        made(pairs("a -> b c", "a -> b"), longest=2)
    with pytest.raises(ExhaustedError, match="known"):
        made(pairs("a -> A", "b -> B"))
    with pytest.raises(UserError, match=r"--shard 1/9{38}: expected I/N"):
        Geca(shard="1/" + "9" * 5000).fit(pairs("a -> A", "b -> B"))
    with pytest.raises(UserError, match=r"expected 0\.\d\d GiB or more"):
        Geca(memory=0.01).fit(pairs("a -> A", "b -> B"))
    for options in (
        {"mode": "other"},
        {"span": 0},
        {"window": -1},
        {"limit": 0},
        {"novelty": "other"},
        {"variants": 0},
    ):
        with pytest.raises(UserError, match=f"geca: {next(iter(options))}: found .*, expected"):
            Geca(**options)


def test_examples_that_memory_cannot_hold_are_refused_and_fewer_are_drawn(monkeypatch):
    names = [f"n{i}" for i in range(40)]
    places = 10 * ["here", "there", "up", "down"]
    data = sentences(*names, *(f"{name} {where}" for name, where in zip(names, places, strict=True)))
    expected = made(data, variants=ALL, count=10)
    monkeypatch.setattr(building, "EXAMPLE_BYTES", 2**23)  # so that 31 fit in 2**28 bytes
    with pytest.raises(
        UserError, match=r"3\d examples, and they are not all, take the 0\.25 GiB of memory: ask for fewer"
    ):
        made(data, variants=ALL, memory=0.25)

    class Small(tables.Store):
        def __init__(self, key, most, *arguments):
            super().__init__(key, min(most, 60), *arguments)

    monkeypatch.setattr(tables, "Store", Small)  # partitions with ten examples each
    assert made(data, variants=ALL, memory=0.25, count=10).pairs() == expected.pairs()


def test_too_many_spans_to_name_are_refused():
    data = sentences(" ".join(map(str, range(300))))
    with pytest.raises(UserError, match="expected at most 255"):
        Geca(spans=8, longest=300).fit(data)


def test_a_narrow_window_that_makes_contradictions_is_named():
    orders = ("{0} -> {1}", "{0} twice -> {1} {1}", "{0} left -> T {1}", "{0} left twice -> T {1} T {1}")
    orders += ("{0} and run -> {1} R", "{0} after run -> R {1}")
    verbs = {"walk": "W", "jump": "J", "run": "R"}
    data = pairs("look -> L", *(order.format(*verb) for verb in verbs.items() for order in orders))
    narrow, wide = Geca(window=0).fit(data), Geca(window=9).fit(data)
    assert narrow.warnings() == []  # nothing is made yet
    assert len(narrow.sample()) and len(wide.sample())
    (said,) = narrow.warnings()
    assert "--window 0 may be too narrow" in said
    assert wide.warnings() == []
