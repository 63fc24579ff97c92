import errno
import os
import threading
from dataclasses import replace

import pytest

from compgen.errors import ExhaustedError, UserError
from compgen.geca import shards, tables
from compgen.geca.augmenter import Geca
from compgen.geca.options import GecaOptions
from compgen.geca.shards import Job, run_on_ray, run_shard
from tests.geca.test_augmenter import GRAMMAR, pairs

MADE = ("source", "target", "template", "fragment")
CONFIGS = [GecaOptions(), GecaOptions(mode="reference", span=2, window=1), GecaOptions(span=2, window=1)]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(tables, "EXAMPLES", 10)  # so that each shard has some
    monkeypatch.setattr(shards, "POLL", 0.01)


def job(folder, config, memory=4.0, **options):
    config = GecaOptions(**config.model_dump() | {"memory": memory})
    return Job(pairs(*GRAMMAR), config, **({"count": 25, "seed": 3} | options), folder=folder)


def poor(work):
    """The same job with too little memory."""
    return replace(work, options=GecaOptions(memory=0.01))


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_shards_make_what_one_process_makes(config, tmp_path, monkeypatch):
    expected = Geca(config).fit(pairs(*GRAMMAR)).sample(25, seed=3)
    work = job(tmp_path / "x", config, shards=3)
    results = [None] * 3
    waited = []
    monkeypatch.setattr(shards, "announce", lambda *what: waited.append(what))

    def run(number):
        results[number] = run_shard(work, number)

    in_threads(run, 3)
    assert results[0].rows() == expected.frame.select(MADE).rows()
    assert results[1:] == [None, None]
    assert waited
    work.close()
    assert not (tmp_path / "x").exists()


def in_threads(run, count):
    threads = [threading.Thread(target=run, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)  # a thread that waits for one that failed never ends


def test_many_may_open_a_job_at_once(tmp_path):
    """The first one's word holds, whole; nobody finds half of it."""
    errors = []

    def run(number):
        try:
            job(tmp_path / f"{number // 16}", GecaOptions(), shards=2).open()
        except Exception as error:
            errors.append(error)

    in_threads(run, 64)
    assert not errors
    assert [path.name for path in (tmp_path / "0").iterdir()] == ["job.json"]


def test_who_gives_up_tells_those_who_wait(tmp_path, monkeypatch):
    work = job(tmp_path / "x", GecaOptions(), shards=2)
    little = poor(work)
    waiting, told = threading.Event(), []
    monkeypatch.setattr(shards, "announce", lambda *what: waiting.set())

    def gives_up_when_waited_for(number):
        if number:
            waiting.wait(10)
        with pytest.raises(UserError) as caught:
            run_shard((work, little)[number], number)
        told.append(str(caught.value))

    in_threads(gives_up_when_waited_for, 2)
    own, others = sorted(told, key=len)
    assert "GiB or more" in own and others == f"share 2 gave up: {own}"


def test_a_reason_is_read_whole_or_not_at_all(tmp_path, monkeypatch):
    work, write, found = job(tmp_path, GecaOptions(), shards=2), shards.Path.write_text, []

    def in_parts(path, text, **how):
        write(path, text[:4], **how)
        found.append(work.reasons())
        return write(path, text, **how)

    monkeypatch.setattr(shards.Path, "write_text", in_parts)
    with pytest.raises(UserError, match="no memory"), work.giving_up(0):
        raise UserError("no memory")
    assert found == [{}]
    assert [text for _, text in work.reasons().values()] == ["no memory"]


def test_who_gives_up_on_a_full_disk_leaves_nothing_but_a_sign(tmp_path, monkeypatch):
    def half(path, *_, **__):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    work = job(tmp_path, GecaOptions(), shards=2)
    monkeypatch.setattr(shards.Path, "write_text", half)
    with pytest.raises(UserError, match="no room"), work.giving_up(1):
        raise UserError("no room")
    assert [path.name for path in tmp_path.iterdir()] == ["failed-1.txt"]
    with pytest.raises(UserError, match=r"^share 2 gave up: its own output says why, as nothing could be"):
        work.missing("rows", {})


def test_a_folder_may_have_any_name(tmp_path):
    """Polars takes no path that is not UTF-8, and neither does a file of text in it."""
    expected, folder = Geca().fit(pairs(*GRAMMAR)).sample(25, seed=3), tmp_path / os.fsdecode(b"nu\xff")
    work = job(folder, GecaOptions(), shards=1)
    assert run_shard(work, 0).rows() == expected.frame.select(MADE).rows()
    with pytest.raises(UserError), work.giving_up(0):
        raise UserError(str(folder))
    assert work.reasons()[0][1] == str(folder)


@pytest.mark.parametrize("late", [0, 1])
def test_shards_that_gave_up_are_started_again_in_any_order(late, tmp_path, monkeypatch):
    work = job(tmp_path / "x", GecaOptions(), shards=2)
    for number in range(2):
        with pytest.raises(UserError, match="GiB or more"):
            run_shard(poor(work), number)
    results, waiting, told = [None] * 2, threading.Event(), []

    def again(number):
        if number == late:
            waiting.wait(10)
        results[number] = run_shard(work, number)

    def announce(_job, _step, missing):
        told.extend(missing.items())
        waiting.set()

    monkeypatch.setattr(shards, "announce", announce)
    in_threads(again, 2)
    assert results[0].rows() == Geca().fit(pairs(*GRAMMAR)).sample(25, seed=3).frame.select(MADE).rows()
    assert told[0][0] == late and "GiB or more" in told[0][1]


def test_a_lost_shard_is_started_again_and_goes_on(tmp_path, monkeypatch):
    work = job(tmp_path / "x", GecaOptions(), shards=2)
    expected = Geca().fit(pairs(*GRAMMAR)).sample(25, seed=3)
    work.open()
    work.do(0, "rows")
    before = work.files("rows")[0].stat().st_mtime_ns
    (tmp_path / "x" / "7-1-0-3.arrow").write_bytes(b"half of")  # shard 1 died here
    work.do(1, "rows")
    work.do(0, "rows")
    assert work.files("rows")[0].stat().st_mtime_ns == before
    for step in ("licences", "made"):
        for number in (1, 0):
            work.do(number, step)
    monkeypatch.setattr(shards, "announce", lambda *what: pytest.fail("nothing to wait for"))
    assert run_shard(work, 0).rows() == expected.frame.select(MADE).rows()


def test_another_job_s_folder_is_refused(tmp_path):
    job(tmp_path / "x", GecaOptions(), shards=2).open()
    job(tmp_path / "x", GecaOptions(), shards=2).open()
    for other in (
        job(tmp_path / "x", GecaOptions(), shards=3),
        job(tmp_path / "x", GecaOptions(), shards=2, seed=4),
        job(tmp_path / "x", CONFIGS[1], shards=2),
        replace(job(tmp_path / "x", GecaOptions(), shards=2), dataset=pairs("a -> b")),
    ):
        with pytest.raises(UserError, match="the work of another job"):
            other.open()


def test_a_folder_that_is_no_job_s_is_left_alone(tmp_path):
    work = job(tmp_path / "x", GecaOptions(), shards=1)
    (tmp_path / "x").mkdir()
    mine = tmp_path / "x" / "mine.txt"
    mine.write_text("precious")
    with pytest.raises(UserError, match="found other files"):
        work.open()
    assert mine.read_text() == "precious"
    for damaged in ("{", "[]", "3"):
        (tmp_path / "x" / "job.json").write_text(damaged)
        with pytest.raises(UserError, match=r"another job|no record of a job"):
            work.open()


def test_what_cannot_be_is_said(tmp_path):
    with pytest.raises(UserError, match="reach"):
        Job(pairs("a -> b"), GecaOptions(reach=3), 1, 1, tmp_path / "x", 2).open()
    with pytest.raises(UserError, match="GiB or more"):
        job(tmp_path / "x", GecaOptions(), shards=1, memory=0.01).do(0, "rows")
    nothing = replace(job(tmp_path / "y", GecaOptions(), shards=1), dataset=pairs("a b c -> d e f"))
    with pytest.raises(ExhaustedError, match="no template has two fragments"):
        run_shard(nothing, 0)


@pytest.mark.long
def test_a_ray_cluster_makes_what_one_process_makes(tmp_path):
    ray = pytest.importorskip("ray", reason="needs Ray, the extra [ray]")
    expected = Geca().fit(pairs(*GRAMMAR)).sample(25, seed=3)
    ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
    try:
        made = run_on_ray(job(tmp_path / "x", GecaOptions(), shards=1))
        with pytest.raises(UserError, match="GiB or more"):
            run_on_ray(job(tmp_path / "y", GecaOptions(), shards=1, memory=0.01))
    finally:
        ray.shutdown()
    assert made.rows() == expected.frame.select(MADE).rows()


def test_a_job_whose_folder_is_gone_is_closed(tmp_path):
    work = job(tmp_path / "x", GecaOptions(), shards=2)
    work.open()
    for _ in range(2):
        work.close()
        assert not (tmp_path / "x").exists()


def test_what_cannot_be_deleted_of_a_job_is_in_nobody_s_way(tmp_path, monkeypatch):
    work = job(tmp_path / "x", GecaOptions(), shards=2)
    work.open()
    with monkeypatch.context() as patched:
        patched.setattr(shards, "remove", lambda path: (path / "job.json").unlink())
        (tmp_path / "x" / "rows-0.arrow").touch()
        work.close()
    work.open()
    assert [path.name for path in (tmp_path / "x").iterdir()] == ["job.json"]
    monkeypatch.setattr(shards.Path, "rename", lambda *_: (_ for _ in ()).throw(PermissionError))
    (tmp_path / "x" / "rows-0.arrow").touch()
    work.close()  # which leaves the whole folder, from which the next run goes on
    assert len(list((tmp_path / "x").iterdir())) == 2
