"""A whole comparison, with real training of a few updates; and one that is killed."""

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import compgen
from compgen import api
from compgen.comparison import engine, plan, planning, run
from compgen.comparison.options import CompareOptions
from compgen.comparison.predictors import Recipe, recipe
from compgen.comparison.result import Result
from compgen.comparison.run import compare
from compgen.comparison.steps import Step, result_of
from compgen.comparison.words import chosen
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset, write_dataset
from compgen.errors import ConfigError, DataError, Interrupted, UserError
from compgen.files import beside, lock
from tests.cli import shell
from tests.comparison import made_up
from tests.comparison.test_parts import commands, words

SCRATCH = Recipe("seq2seq", ())
TINY = tuple(f"network.{size}" for size in ("hidden=16", "encoder_hidden=12", "embedding=12", "output=12"))
FEW = """
import sys
from compgen.comparison.run import compare
from tests.comparison.test_run import make_small
make_small()
compare(sys.argv[1], sys.argv[2], methods=("geca",), seeds=2, jobs=2, test=30, by="random", say=lambda text: None)
"""
COMMAND = """
from compgen.__main__ import main
from compgen.comparison import run
from tests.comparison.test_run import small_recipe
run.recipe = small_recipe
main()
"""
ROOT = Path(__file__).parents[2]
EXPORT = api.export_bundle
TABLES = ("trials", "choice", "tested", "mended", "broken", "by_length", "answer")


def make_small(patch=setattr):
    """Make all comparisons of this process ones of a few updates, of networks that are quickly made and saved."""
    patch(planning, "FIRST_UPDATES", 2)
    patch(plan, "FIRST_UPDATES", 2)
    patch(planning, "LAST_UPDATES", 4)
    patch(run, "recipe", small_recipe)
    patch(api, "export_bundle", no_bundle)  # which takes half a minute


def no_bundle(checkpoint, out):
    assert checkpoint.is_file()
    out.mkdir()


def small_recipe(name, dataset):
    found = recipe(name, dataset)
    return found._replace(changes=(*found.changes, *TINY))


@pytest.fixture(scope="module", autouse=True)
def small():
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch.setattr)
        yield


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    folder, said = tmp_path_factory.mktemp("compared") / "out", []
    data = commands()
    result = compare(data, folder, methods=("geca",), seeds=2, test=30, by="random", jobs=2, name="d", say=said.append)
    return folder, result, said, data


def test_a_comparison_leaves_all_that_it_names(compared):
    folder, result, said, data = compared
    assert {name for name in result.files if not (folder / name).exists()} == set()
    assert Result.model_validate_json((folder / "compare.json").read_text()) == result
    others = {"other"} if result.choice.system == "bare" else {"bare"}
    assert {row.role for row in result.tested} == {"chosen", "control"} | others
    assert result.parts.train + result.parts.test == len(data)
    assert [method.name for method in result.methods if method.tried] == ["geca"]
    assert any(line.startswith("train-bare-0-0-2: random ") for line in said)
    assert "undertrained" in result.answer
    page = (folder / "report.html").read_text()
    assert result.answer[:40] in page
    best = chosen(result)
    test = read_dataset(folder / "data" / "test.parquet")
    members = [compgen.Predictor.load(folder / name) for name in ("predictor.pt", "predictor-1.pt")]
    assert best.together == compgen.Committee(members).evaluate(test).exact_match
    assert [member.evaluate(test).exact_match for member in members] == best.by_seed
    assert [one.together for one in result.tested if one != best] == [None] * (len(result.tested) - 1)


@pytest.mark.long
def test_the_predictor_is_exported(compared, tmp_path):
    folder, _, _, data = compared
    EXPORT(folder / "predictor.pt", tmp_path / "bundle")
    sources = [source for source, _ in data.pairs()[:20]]
    of_bundle, of_checkpoint = (compgen.Predictor.load(path) for path in (tmp_path / "bundle", folder / "predictor.pt"))
    assert of_bundle.predict(sources) == of_checkpoint.predict(sources)


def test_no_test_example_is_trained_on_or_seen_by_a_method(compared):
    folder, _, _, _ = compared
    test = {tuple(map(tuple, pair)) for pair in read_dataset(folder / "data" / "test.parquet").pairs()}
    for path in folder.glob("data/*.parquet"):
        if path.stem != "test":
            assert not test & {tuple(map(tuple, pair)) for pair in read_dataset(path).pairs()}


def test_the_same_call_goes_on_and_finds_the_same(compared):
    folder, result, _, data = compared
    before = (folder / "compare.json").read_bytes()
    (folder / "report.html").unlink()  # else it would not go on, but return what it has found
    again = compare(
        data,
        folder,
        methods=("geca",),
        seeds=2,
        test=30,
        by="random",
        minutes=90,
        jobs=1,
        name="d",
        command="another",
        say=lambda _: None,
    )
    assert again == result and (folder / "compare.json").read_bytes() == before
    assert (folder / "report.html").exists()


def test_one_that_has_ended_is_not_run_again(tmp_path, monkeypatch):
    """The tutorial lets users delete what its steps have left; and whoever asks for more minutes is told what to do."""

    def stopped(*_):
        raise Interrupted("stopped", signal.SIGINT)

    monkeypatch.setattr(run, "workers", stopped)
    folder, said, options = tmp_path / "out", list[str](), {"methods": ("geca",), "test": 30, "by": "random"}
    with pytest.raises(Interrupted):
        compare(commands(), folder, **options)
    ended = made_up.result(files={"compare.json": "all figures"})
    (folder / "compare.json").write_text(ended.model_dump_json())
    assert compare(commands(), folder, minutes=90, say=said.append, **options) == ended
    (line,) = said
    assert line.endswith("this comparison has ended; to compare anew, in more --minutes say, choose another folder")
    (folder / "compare.json").write_text(made_up.result(files={"bundle": "was deleted"}).model_dump_json())
    with pytest.raises(Interrupted):
        compare(commands(), folder, **options)


def test_how_long_a_generator_is_trained_follows_from_the_first_minutes_and_the_carvings_alone(compared):
    """Not from jobs or processors, nor from the minutes of a call that goes on, as that of the test before."""
    folder, result, _, _ = compared
    minutes = round(plan.FOR_AUGMENTING * 60 / (1 + result.parts.carvings), 2)
    assert json.loads((folder / "generator.json").read_text()) == {"minutes": minutes, "timed": False}


def test_what_a_step_that_was_killed_has_left_is_no_step(compared):
    """And names of files, which need not be UTF-8, do not end a comparison when all is done."""
    folder, result, _, data = compared
    (folder / "compare.json").unlink()
    (folder / "elapsed").unlink()
    (folder / "steps" / f".{'0' * 32}.test-bare-0.json").write_text('{"seconds": 1, "torn')
    again = compare(
        data, folder, methods=("geca",), seeds=2, test=30, by="random", jobs=1, name="d\udcff", say=lambda _: None
    )
    assert again.steps == result.steps and again.data == "d?"


def test_the_commands_make_the_model_again(compared):
    folder, result, _, _ = compared
    train = next(command for command in result.commands if command.startswith("cgen train"))
    words = train.split()[1:]
    words[words.index("-o") + 1] = "again.pt"
    assert shell.compgen(*words, cwd=folder).returncode == 0
    mine, theirs = (compgen.Predictor.load(folder / name) for name in ("predictor.pt", "again.pt"))
    test = read_dataset(folder / "data" / "test.parquet")
    assert mine.losses(test).tolist() == theirs.losses(test).tolist()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"methods": ("gecka",)}, "no method 'gecka': .*; did you mean geca"),
        ({"methods": ("resample",)}, "this is the control"),
        ({"methods": ("stemcorrupt",)}, "--methods stemcorrupt: it does not apply: takes words"),
        ({"predictor": "lstm"}, "no predictor 'lstm': expected seq2seq, transformer, or the folder"),
        pytest.param(
            {"minutes": 0.01, "methods": ("geca",)},
            r"too little time: .* give --minutes \d+ or more",
            marks=pytest.mark.long,
        ),
        ({"test": 10_000}, "expected more than the 10,000 to test on"),
        ({"minute": 5}, "minute: no such setting; did you mean minutes"),
        ({"seeds": 0}, "seeds: found 0, expected a number greater than or equal to 1"),
    ],
)
def test_what_cannot_succeed_is_refused(options, says, tmp_path):
    with pytest.raises(UserError, match=says):
        compare(commands(), tmp_path / "out", say=lambda _: None, **options)
    assert not (tmp_path / "out").exists()  # another comparison may take its place


def test_sentences_few_examples_and_foreign_folders_are_refused(compared, tmp_path):
    folder, _, _, data = compared
    with pytest.raises(UserError, match="found sentences, expected pairs"):
        compare(Dataset.from_pairs([([f"w{at}"], []) for at in range(9)]), tmp_path / "a")
    with pytest.raises(DataError, match="distinct training examples, expected 50 or more"):
        compare(Dataset(commands().frame.head(60)), tmp_path / "b", CompareOptions(test=20, by="random"))
    with pytest.raises(UserError, match=r"holds another comparison \(seeds was 2, is 3\): choose another"):
        compare(data, folder, methods=("geca",), seeds=3, test=30, by="random")
    with pytest.raises(UserError, match=r"\(the data differ; methods was \['geca'\], is \['recombine', 'geca', 'csl'"):
        compare(Dataset(data.frame.head(130)), folder, seeds=2, test=30, by="random")
    (tmp_path / "e").mkdir()
    with pytest.raises(DataError, match="expected 50 or more"):
        compare(Dataset(commands().frame.head(60)), tmp_path / "e", test=20, by="random")
    assert tmp_path.joinpath("e").is_dir() and not list(tmp_path.joinpath("e").iterdir())
    with (folder / "comparison.json").open("rb") as stream:
        lock(stream, folder / "comparison.json")
        with pytest.raises(UserError, match=r"comparison\.json: another run is writing it"):
            compare(data, folder, methods=("geca",), seeds=2, test=30, by="random")
    beside(tmp_path / "e" / "comparison.json").touch()  # of a run that was killed before it claimed the folder
    with pytest.raises(DataError, match="expected 50 or more"):
        compare(Dataset(commands().frame.head(60)), tmp_path / "e", test=20, by="random")
    (tmp_path / "e" / ".hidden").touch()
    with pytest.raises(UserError, match="expected a new or empty folder"):
        compare(data, tmp_path / "e", methods=("geca",), seeds=2, test=30, by="random")
    assert [path.name for path in tmp_path.joinpath("e").iterdir()] == [".hidden"]
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="expected a new or empty folder"):
        compare(data, tmp_path / "c")
    with pytest.raises(ConfigError, match="by: found 'chance'"):
        compare(data, tmp_path / "d", by="chance")


def test_standard_output_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"standard output \(-\) is no folder"):
        compare(commands(), Path("-"))
    assert not [*tmp_path.iterdir()]


def test_of_two_runs_that_begin_at_once_one_has_the_folder(tmp_path, monkeypatch):
    def meanwhile(_path):
        monkeypatch.undo()
        with run._claimed(tmp_path, commands(), SCRATCH, {"seeds": 1}):
            pass

    monkeypatch.setattr("compgen.claim.check_writable", meanwhile)
    with (
        pytest.raises(UserError, match="holds another comparison"),
        run._claimed(tmp_path, commands(), SCRATCH, {"seeds": 2}),
    ):
        pass
    monkeypatch.setattr("compgen.claim.check_writable", meanwhile)
    with run._claimed(tmp_path, commands(), SCRATCH, {"seeds": 1}):
        pass


@pytest.mark.parametrize("jobs", [None, 3])
def test_unless_jobs_are_given_the_ray_cluster_says_how_many_there_are(tmp_path, monkeypatch, jobs):
    def cluster(workers):
        raise UserError(f"a cluster for {workers} is asked for")

    monkeypatch.setattr("compgen.cluster.cluster", cluster)
    with pytest.raises(UserError, match=f"a cluster for {jobs} is"):
        compare(commands(), tmp_path / "out", methods=("geca",), engine="ray", jobs=jobs)


def test_words_are_told_from_other_pairs():
    assert compgen.comparison.predictors.recipe(None, words()).name == "transformer"
    assert compgen.comparison.predictors.recipe(None, commands()).changes == ("held_out=0.0",)
    copied = Dataset.from_pairs([(["say", word], [word]) for word in ("a", "b")])
    changes = compgen.comparison.predictors.recipe(None, copied).changes
    copying = ("held_out=0.0", "network.copying=true", "network.token_dropout=0.02")
    assert changes == (*copying, "network.embedding_dropout=0.5", "network.output_dropout=0.5")
    many = Dataset.from_pairs([(["say", f"w{n}"], [f"w{n}"]) for n in range(compgen.comparison.predictors.SMALL)])
    assert compgen.comparison.predictors.recipe(None, many).changes == copying


def test_a_pretrained_predictor_is_known_by_its_files(tmp_path):
    """Results of another model that was put in its place are not gone on with."""
    model = tmp_path / "t5"
    model.mkdir()
    (model / "config.json").write_text("{}")
    chosen = Recipe(str(model), ())
    for _ in range(2):
        with run._claimed(tmp_path / "runs", commands(), chosen, {"seeds": 1}):
            pass
    (model / "model.safetensors").write_bytes(b"other weights")
    with (
        pytest.raises(UserError, match="the files of the pretrained model differ"),
        run._claimed(tmp_path / "runs", commands(), chosen, {"seeds": 1}),
    ):
        pass


def test_a_pretrained_predictor_is_known_from_any_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("compgen.comparison.predictors.is_pretrained", lambda _: True)
    monkeypatch.chdir(tmp_path)
    assert compgen.comparison.predictors.recipe("models/t5", commands()).name == str(tmp_path / "models" / "t5")


def python(code, *words, **more):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen([sys.executable, "-c", code, *map(str, words)], env=environment, **more)


@pytest.mark.long
def test_a_run_that_is_killed_ends_in_the_same_table(compared, tmp_path):
    _, whole, _, data = compared
    write_dataset(data, tmp_path / "d.tsv")
    for number, delay in enumerate((6, 9)):
        process = python(FEW, tmp_path / "d.tsv", tmp_path / "out", start_new_session=True)
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL) if number else os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not (tmp_path / "out" / "compare.json").exists()
    assert python(FEW, tmp_path / "d.tsv", tmp_path / "out").wait() == 0
    killed = Result.model_validate_json((tmp_path / "out" / "compare.json").read_text())
    for table in TABLES:
        assert getattr(killed, table) == getattr(whole, table)


@pytest.mark.long
@pytest.mark.parametrize("stopped", [False, True])
def test_a_ray_cluster_finds_the_same_and_can_be_interrupted(compared, tmp_path, monkeypatch, stopped):
    pytest.importorskip("ray")

    def interrupted(*words):
        os.kill(os.getpid(), signal.SIGTERM)
        return result_of(*words)

    _, result, _, data = compared
    options = {"methods": ("geca",), "seeds": 2, "test": 30, "by": "random", "jobs": 2, "engine": "ray"}
    if stopped:
        with monkeypatch.context() as patched:
            patched.setattr(engine, "result_of", interrupted)  # which it asks for when a step is done
            with pytest.raises(Interrupted, match="stopped"):
                compare(data, tmp_path / "out", name="d", say=lambda _: None, **options)
    found = compare(data, tmp_path / "out", name="d", say=lambda _: None, **options)
    for table in TABLES:
        assert getattr(found, table) == getattr(result, table)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_interrupted_saves_the_training_it_is_in(number, tmp_path):
    write_dataset(commands(), tmp_path / "d.tsv")
    words = ["compare", "d.tsv", "--methods", "geca", "--test", "20", "--by", "random", "--jobs", "1", "-o", "out"]
    process = python(COMMAND, *words, cwd=tmp_path, stderr=subprocess.PIPE)
    while not any(path.stat().st_size for path in tmp_path.glob("out/made/bare*.log.jsonl")):  # 50 updates are made
        time.sleep(0.2)
        assert process.poll() is None
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert b"out: stopped; the same command resumes it" in said
    assert [path.name for path in tmp_path.glob("out/made/*.partial")] == ["bare-0-0-500.pt.partial"]


@pytest.mark.long
def test_a_run_that_is_terminated_twice_ends_soon(tmp_path):
    """As by `timeout`, which sends its signal to a process, and again to the group of it."""
    write_dataset(commands(), tmp_path / "d.tsv")
    words = ["compare", "d.tsv", "--methods", "recombine", "--test", "20", "--by", "random", "--jobs", "2", "-o", "out"]
    process = python(COMMAND, *words, cwd=tmp_path, start_new_session=True)
    while not any(path.stat().st_size for path in tmp_path.glob("out/made/bare*.log.jsonl")):
        time.sleep(0.2)
        assert process.poll() is None
    for pause in (0.02, 0.05):
        process.send_signal(signal.SIGTERM)
        time.sleep(pause)
    assert process.wait(timeout=engine.GRACE + 10) == 128 + signal.SIGTERM
    assert sorted(tmp_path.glob("out/made/*.partial"))  # of what was trained


def test_steps_that_wait_end_in_silence_when_one_fails(tmp_path, monkeypatch):
    """A pool of processes raises InvalidStateError in a thread of its own where what waits was cancelled before."""
    raised, steps = [], [Step(str(number), "test", {"system": "a", "seed": 0, "updates": 1}) for number in range(20)]
    monkeypatch.setattr(threading, "excepthook", raised.append)
    with pytest.raises(UserError, match="no such file"), engine.workers(tmp_path, "processes", 1) as pool:
        pool.run(steps, lambda _: ())
    assert not raised


def _deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path("deaf").touch()
    time.sleep(600)


def test_a_worker_that_does_not_end_is_killed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(engine, "GRACE", 0.5)
    worker = multiprocessing.get_context("spawn").Process(target=_deaf)
    worker.start()
    while not Path("deaf").exists():
        time.sleep(0.1)
    began = time.monotonic()
    engine._end([worker])
    assert worker.exitcode == -signal.SIGKILL and 0.5 <= time.monotonic() - began < 5
