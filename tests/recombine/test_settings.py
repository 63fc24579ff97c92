"""What settings are found from training data, and that what is set stays as it is."""

import contextlib

import numpy as np
import pytest

from compgen.augmenters.registry import make
from compgen.configuration import load_config
from compgen.data.catalog import load
from compgen.data.downloads import MissingFileError
from compgen.data.examples import Dataset
from compgen.data.unimorph import inflection
from compgen.data.vocabulary import Vocabulary
from compgen.errors import ConfigError, DataError, ExhaustedError, UserError
from compgen.recombine import settings as module
from compgen.recombine.augmenter import Recombine, RecombineOptions
from compgen.recombine.config import RecombineConfig
from compgen.recombine.neighborhoods import build
from compgen.recombine.rows import as_sequences
from compgen.recombine.settings import are_words, choosing, settings
from compgen.recombine.training import train_generator

VERBS, TIMES = ["walk", "run", "look", "hop"], {"": 1, "twice": 2, "thrice": 3, "often": 4}
COMMANDS = Dataset.from_pairs(([v, *([t] if t else [])], [v.upper()] * n) for v in VERBS for t, n in TIMES.items())
WORDS = Dataset.from_pairs(
    inflection((stem, stem + end, tags))
    for stem in ("kal", "ev", "dil")
    for end, tags in (("lar", ("N", "PL")), ("", ("N", "SG")))
)
UNLIKE = Dataset.from_pairs([(["a", "b"], ["X"]), (["c", "d"], ["Y"]), (["e", "f"], ["Z"]), (["g", "h"], ["W"])])
SIZES = [f"network.{name}=8" for name in ("hidden", "encoder_hidden", "embedding", "output", "attention")]


def covered(dataset, config):
    """The share of the examples, of those that are short enough, that have a row; not by `settings`."""
    vocabulary = Vocabulary.of(tokens for pair in dataset.pairs() for tokens in pair)
    sequences = as_sequences(dataset, vocabulary, None)
    rows = build(sequences, vocabulary, config.prototypes, config.neighborhood, 0)
    short = sum(len(one) <= config.neighborhood.longest for one in sequences)
    return len(np.unique(rows[:, 0])) / short


def test_most_examples_have_neighborhoods_and_a_higher_similarity_leaves_fewer():
    found, reasons = settings(COMMANDS)
    assert covered(COMMANDS, found) >= module.COVERED
    assert found.neighborhood.kind == "long-short" and found.neighborhood.cover
    higher = module.DELTAS[module.DELTAS.index(found.neighborhood.delta) - 1]
    stricter = found.neighborhood.model_copy(update={"delta": higher})
    with contextlib.suppress(DataError):  # none at all
        assert covered(COMMANDS, found.model_copy(update={"neighborhood": stricter})) < module.COVERED
    assert f"similarity above {found.neighborhood.delta:g}" in reasons[0]
    assert f"{found.optimisation.steps:,} updates" in reasons[2]
    assert found.sampling.length_bound == "mean+std"


def test_what_is_set_stays_and_the_rest_follows_it():
    given = {"neighborhood": {"delta": 0.15, "firsts": 2}, "optimisation": {"steps": 7}, "unknown_below": 4}
    found, reasons = settings(COMMANDS, given=given)
    assert (found.neighborhood.delta, found.neighborhood.firsts) == (0.15, 2)
    assert found.neighborhood.kind == "long-short" and found.neighborhood.cover  # for all that 0.15 is below ALIKE
    assert (found.optimisation.steps, found.unknown_below) == (7, 4)
    assert reasons[2].startswith("7 updates, as asked for, on about ")
    cut, _ = settings(COMMANDS, given={"max_tokens": 5})
    assert cut.max_tokens == 5 >= cut.neighborhood.longest
    none, without = settings(
        COMMANDS, given={"prototypes": 0, "network": {"copying": False, "feed": False, "token_dropout": 0.0}}
    )
    assert none.prototypes == none.unknown_below == 0 and without[0] == "no prototypes"  # to copy a rare token from
    given = {"prototypes": 0, "network": none.network.model_dump(), "neighborhood": {"longest": 3}}
    with pytest.raises(DataError, match="has up to 3 tokens"):
        settings(Dataset.from_pairs([(["run", "twice"], ["RUN", "RUN"])]), given=given)
    with pytest.raises(ConfigError, match="memories = 0 leaves nothing to copy"):
        settings(COMMANDS, given={"prototypes": 0})


def test_the_fewest_updates_are_said_to_take_longer_than_the_time_given():
    found, reasons = settings(COMMANDS, minutes=0.01)
    assert found.optimisation.steps == module.FEWEST
    assert ", the fewest that can teach anything: they take longer than the time given" in reasons[2]
    assert "as there is time for" not in reasons[2]


def test_words_go_by_their_tags():
    assert are_words(WORDS) and not are_words(COMMANDS)
    assert not are_words(Dataset.from_pairs([(["What", "borders", "Texas"], ["x"])]))
    found, reasons = settings(WORDS)
    assert (found.neighborhood.kind, found.prototypes, found.sampling.length_bound) == ("tags", 1, "max")
    assert "tags neighborhoods, which 100% of the examples have" in reasons[0]


@pytest.fixture(scope="module")
def jump():
    return Dataset(load("scan/jump").split("train").frame.gather_every(5))


def test_short_and_very_similar_sequences_do_if_they_are_enough(jump, monkeypatch):
    jump = Dataset(jump.frame.gather_every(3))
    monkeypatch.setattr(module, "MANY", 300)
    found, reasons = settings(jump)
    assert found.neighborhood.kind == "long-short" and found.neighborhood.cover
    assert found.neighborhood.delta in module.CLOSE[:2]
    lengths = [len(source) + len(target) + 1 for source, target in jump.unique().pairs()]
    assert found.neighborhood.longest == np.percentile(lengths, module.SHORT, method="higher")
    assert covered(jump, found) < module.COVERED and ": enough to learn from" in reasons[0]
    given = settings(jump, given={"neighborhood": {"delta": 0.45}})[0].neighborhood
    assert given.delta == 0.45 and given.longest > found.neighborhood.longest  # what is given is not "close"
    monkeypatch.setattr(module, "SHARE", 0.9)
    assert settings(jump)[0].neighborhood.longest > found.neighborhood.longest
    assert settings(jump, given={"neighborhood": {"longest": None}})[0].neighborhood.longest is None


@pytest.mark.long
def test_less_time_is_fewer_updates_and_shorter_sequences(jump, monkeypatch):
    monkeypatch.setattr(module, "MANY", 10**9)
    short, usual, long = (settings(jump, minutes)[0] for minutes in (2, None, 60))
    assert usual == settings(jump, 8)[0]  # minutes, as the README says
    assert short.optimisation.steps < usual.optimisation.steps < long.optimisation.steps
    assert short.neighborhood.longest < usual.neighborhood.longest == long.neighborhood.longest
    assert usual.unknown_below == 10  # "jump" is in one example, and every other word in many more
    assert covered(jump, usual) >= module.COVERED - 0.03  # found by a sample


@pytest.mark.parametrize(
    "name",
    [
        "geo/logic-query",
        "sigmorphon/turkish",
        *(
            pytest.param(f"{one}/{two}", marks=pytest.mark.long)
            for one, two in (("geo", "sql-query"), ("scholar", "query"))
        ),
    ],
)
def test_published_data_have_neighborhoods(name):
    try:
        dataset = load(name).split("train-low" if name.startswith("sig") else "train")
    except MissingFileError as error:
        pytest.skip(str(error))
    found, _ = settings(dataset)
    assert covered(dataset, found) >= module.COVERED - 0.03


def test_what_has_nothing_alike_is_refused_in_plain_words():
    with pytest.raises(
        DataError, match=r"none of 4 training examples can be put together .*; give more examples, or use"
    ):
        settings(UNLIKE)
    with pytest.raises(DataError, match=r"with neighborhood.kind=tags: .*; leave out these settings, or give more"):
        settings(COMMANDS, given={"neighborhood": {"kind": "tags"}})


def test_the_checkpoint_has_what_was_found_and_what_was_set(tmp_path, capsys):
    config = load_config(RecombineConfig, "auto", [*SIZES, "optimisation.steps=2", "minutes=3"])
    made, _ = train_generator(COMMANDS, config, tmp_path / "g.pt")
    expected = settings(COMMANDS, 3, config.values_set)[0].model_dump(mode="json")
    assert (
        made.config == expected and made.config["optimisation"]["steps"] == 2 and made.config["network"]["hidden"] == 8
    )
    assert "auto" not in made.config
    assert f"settings: {made.trained_on['settings']}\n" in capsys.readouterr().err


def test_the_augmenter_finds_settings_unless_it_is_given_a_configuration():
    sizes = dict.fromkeys(("hidden", "encoder_hidden", "embedding", "output", "attention"), 8)
    augmenter = make("recombine", network=sizes, optimisation={"steps": 2}, filters=())
    assert augmenter.options.auto
    with pytest.raises(UserError, match="fit it before asking"):
        augmenter.explain({"prototypes": [0]})
    augmenter.fit(COMMANDS)
    assert not augmenter.options.auto and augmenter.options.filters == ()
    found, _ = settings(COMMANDS, None, {"network": sizes, "optimisation": {"steps": 2}})
    assert augmenter.options.neighborhood == found.neighborhood and augmenter.options.optimisation == found.optimisation
    assert "bigram counts" in augmenter.warnings()[0]  # two updates


def test_targets_are_voted_on_where_that_helps_and_nothing_else_is_said():
    found = settings(COMMANDS)[0].model_dump()
    names_trade_places = found | {"swap": {"rows": 1.0, "seconds": (0.2, 0.5)}}
    assert choosing(COMMANDS, found) == {"vote": True, "support": None}
    assert choosing(COMMANDS, names_trade_places) == {"vote": True, "support": module.SUPPORT}
    assert choosing(WORDS, found) == choosing(Dataset.from_pairs([(["a", "b"], [])]), found) == {}


def test_a_vote_is_made_unless_it_is_declined_or_nothing_was_found():
    sizes = dict.fromkeys(("hidden", "encoder_hidden", "embedding", "output", "attention"), 8)
    tiny = {"network": sizes, "optimisation": {"steps": 2}, "filters": ()}
    assert make("recombine", **tiny).fit(COMMANDS).options.vote
    assert make("recombine", **tiny, vote=False).fit(COMMANDS).options.vote is False
    assert make("recombine", **tiny, support=0.5).fit(COMMANDS).options.support == 0.5
    shipped = load_config(
        RecombineOptions, "recombine_small", [*SIZES, "optimisation.steps=2", "neighborhood.delta=0.1"]
    )
    assert Recombine(shipped).fit(COMMANDS).options.vote is None


def test_drawing_ends_where_too_little_is_kept():
    sizes = dict.fromkeys(("hidden", "encoder_hidden", "embedding", "output", "attention"), 8)
    augmenter = make("recombine", network=sizes, optimisation={"steps": 2}, draws_each=4, filters=())
    with pytest.raises(ExhaustedError, match="no sample is kept: 20 drawn, 0 kept; not kept: "):
        augmenter.fit(COMMANDS).sample(5, 0)


def test_filters_may_stand_in_one_text():
    listed = make("recombine", filters="novel,unique").options.filters
    assert listed == make("recombine", filters=("novel", "unique")).options.filters == ("novel", "unique")
    with pytest.raises(ConfigError, match="filters"):
        make("recombine", filters=7)


def test_minutes_are_for_auto():
    with pytest.raises(ConfigError, match="minutes are for the configuration auto"):
        load_config(RecombineConfig, "recombine_small", ["minutes=3"])
    with pytest.raises(ConfigError, match=r"optimisation\.steps: found 'many'"):
        load_config(RecombineConfig, "auto", ["optimisation.steps=many"])


def test_where_no_token_is_rare_names_trade_places():
    phrases = load("scan/opposite_right").split("train")
    found, reasons = settings(Dataset(phrases.frame.gather_every(5)))
    assert found.neighborhood.kind == "long-long" and found.unknown_below == 0
    assert found.swap.rows == 1.0 and reasons[0] == "no token is rare, so names trade places in training"
    one = Dataset.from_pairs([(["hop"], ["I_HOP"])], "train")
    verbs, _ = settings(Dataset(phrases.frame.gather_every(5)) + one)
    assert not verbs.swap.used
    alone, _ = settings(Dataset(phrases.frame.gather_every(5)), given={"prototypes": 1})
    assert not alone.swap.used
