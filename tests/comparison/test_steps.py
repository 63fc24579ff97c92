"""Steps of a comparison by themselves; tests/comparison/test_run.py runs all of them."""

import pytest

from compgen.comparison import steps
from compgen.comparison.parts import carve
from compgen.comparison.predictors import Recipe
from compgen.comparison.steps import FULL, added, augment, made_file, originals
from compgen.data.examples import Dataset
from compgen.data.formats import write_dataset
from compgen.errors import DataError, UserError

PAIRS = Dataset.from_pairs(([f"w{at}", f"v{at % 7}"], [f"W{at}", f"V{at % 7}"]) for at in range(100))


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "made").mkdir()
    write_dataset(PAIRS, tmp_path / "data" / f"{FULL}.parquet")
    write_dataset(carve(PAIRS, 0), tmp_path / "data" / "0.parquet")
    return tmp_path


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_training_of_a_generator_goes_on_where_it_was_interrupted(folder, monkeypatch, interrupted):
    class Fails:
        def fit(self, *_):
            raise DataError("nothing fits")

        def close(self):
            pass

    asked = []

    def make(*names, **options):
        asked.append((names, options))
        return Fails()

    monkeypatch.setattr(steps, "make", make)
    out = made_file(folder, "recombine", FULL, 10)
    if interrupted:
        out.with_name(out.name + ".pt.partial").touch()
    assert augment(folder, "recombine", FULL, 10, {"minutes": 1}) == {"made": 0, "why": "nothing fits"}
    (((name,), options),) = asked
    assert name == "recombine" and options == {"minutes": 1, "beside": out} | ({"resume": True} if interrupted else {})


def test_a_damaged_state_of_a_training_is_told_with_what_to_do_in_a_comparison(folder):
    made, model = made_file(folder, "recombine", FULL, 10), folder / "made" / "bare-full-0-5.pt"
    for out, run in (
        (folder / "made" / f"{made.name}.pt", lambda: augment(folder, "recombine", FULL, 10, {"minutes": 1})),
        (model, lambda: Recipe("seq2seq", ()).train(PAIRS, None, model, updates=5, seed=0)),
    ):
        out.with_name(f"{out.name}.partial").touch()
        with pytest.raises(UserError, match=rf"{out}.partial: cannot be gone on with: delete it, and the same command"):
            run()


def test_the_seconds_of_a_training_are_those_before_an_interruption_too(folder, monkeypatch):
    (folder / "steps").mkdir()
    monkeypatch.setitem(steps.STEPS, "trial", lambda _folder: {"trained": 80.0})
    steps.perform(folder, steps.Step("one", "trial", {}))
    assert steps.read_json(steps.result_of(folder, "one"))["seconds"] == 80.0


def test_a_method_of_which_nothing_is_kept_has_made_nothing(folder, monkeypatch):
    class Empty:
        def fit(self, *_):
            return self

        def sample(self, *_):
            return Dataset.from_pairs([])

        def close(self):
            pass

    monkeypatch.setattr(steps, "make", lambda *_, **__: Empty())
    found = augment(folder, "recombine", 0, 10, {})
    assert found == {"made": 0, "why": "none of what it draws passes its filters"}
    assert not made_file(folder, "recombine", 0, 10).exists()


def test_what_is_made_stands_in_a_random_order_on_a_carving_and_a_system_has_the_first_of_it(folder):
    found = augment(folder, "resample", 0, 40, {})
    assert found["made"] == 40 and found["warnings"] is not None and len(found["shown"]) == steps.EXAMPLES_SHOWN
    whole, some = (added(folder, {"resample": 40}, share, 0) for share in (40, 10))
    drawn = steps.make("resample").fit(originals(folder, 0), 0).sample(40, 0)
    assert whole.pairs() != drawn.pairs() and sorted(whole.pairs()) == sorted(drawn.pairs())
    assert len(whole) == 40 and some.pairs() == whole.pairs()[:10]
    assert added(folder, {}, 0, 0) is None


def test_a_system_has_what_one_of_its_methods_made_if_the_other_made_nothing(folder):
    augment(folder, "resample", FULL, 20, {})
    assert len(added(folder, {"resample": 20, "geca": 20}, 15, FULL)) == 15


def test_the_training_of_a_predictor_shows_its_progress(folder, monkeypatch, capsys):
    monkeypatch.setattr("compgen.progress.LINE_EVERY", 0.0)
    (folder / "made" / "speed.pt.partial").touch()  # of a run that was interrupted, and differs
    found = steps.speed(folder, 2, "seq2seq", ["held_out=0.0", "optimisation.batch=4"])
    assert f"train speed.pt: {steps.WARM + 2}/{steps.WARM + 2} loss " in capsys.readouterr().err
    assert 0 < found["per_update"] < 10 and not list((folder / "made").iterdir())


@pytest.mark.parametrize(("seconds", "per_update"), [([1.0, 21.0], 1.0), ([19.0, 18.0], 0.18)])
def test_updates_take_time_even_if_the_first_few_were_slowed_down(folder, monkeypatch, seconds, per_update):
    monkeypatch.setattr(Recipe, "train", lambda *_, **__: seconds.pop(0))
    assert steps.speed(folder, 20, "seq2seq", []) == {"per_update": per_update}


def test_what_is_learned_is_looked_at_all_over_the_training_examples(folder, monkeypatch):
    pairs = Dataset.from_pairs(([f"w{at:03}"], ["W"]) for at in range(250))
    asked = []
    monkeypatch.setattr(steps, "originals", lambda *_: pairs)
    monkeypatch.setattr(Recipe, "train", lambda *_, **__: 1.0)
    monkeypatch.setattr(steps, "_right", lambda _, frame: asked.append(frame) or "")
    steps.trial(folder, "bare", {}, 0, 0, 0, 5, "seq2seq", [])
    assert asked[-1]["source"].list.first().to_list() == [f"w{at:03}" for at in range(0, 250, 3)]
