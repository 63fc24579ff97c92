"""What is left of a file of samples when a run does not end well."""

import errno
import json
import zlib
from pathlib import Path

import polars as pl
import pytest

from compgen.errors import ExhaustedError, UserError
from compgen.sampling.output import Sample
from compgen.sampling.partial import partial_file

OPTIONS = {"start": 5, "seed": 1}


def sample(index):
    return Sample(index, ["walk", f"{index}"], ["WALK"], -1.0, (1, 2))


def stopped(out, options=OPTIONS, later=lambda: None):
    """Write and save a sample, and stop."""
    with partial_file(out, options) as partial:
        partial.write(sample(5))
        partial.counts.drawn = partial.counts.kept = 1
        later()
        partial.save()
        raise KeyboardInterrupt


def run(out, error, *, save):
    """Write two samples, save or not, write a third, and fail."""
    with partial_file(out, OPTIONS) as partial:
        partial.write(sample(5))
        partial.write(sample(6))
        partial.counts.drawn, partial.counts.kept, partial.counts.last = 3, 2, 2
        partial.counts.rejected["not novel"] += 1
        if save:
            partial.save()
        partial.write(sample(8))
        partial.counts.drawn, partial.counts.kept = 4, 3
        raise error


@pytest.mark.parametrize("name", ["s.jsonl", "s.tsv", "s.parquet"])
def test_what_was_saved_is_there_after_an_error_and_nothing_else(tmp_path, name):
    out = tmp_path / name
    with pytest.raises(UserError, match=r"s\.\w+: cannot be written"):
        run(out, OSError(errno.ENOSPC, "full"), save=True)
    assert not out.exists()
    with partial_file(out, OPTIONS, resume=True) as partial:
        assert list(partial.pairs()) == [(["walk", "5"], ["WALK"]), (["walk", "6"], ["WALK"])]
        assert partial.counts.to_dict() == {"drawn": 3, "kept": 2, "rejected": {"not novel": 1}}
        assert partial.counts.last == 2
        partial.write(sample(8))
    rows = pl.read_parquet(out).height if name == "s.parquet" else len(out.read_text().splitlines())
    assert rows == 3
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_a_link_names_is_made_beside_that(tmp_path):
    (tmp_path / "s.tsv").symlink_to("far/real.tsv")
    with partial_file(tmp_path / "s.tsv", OPTIONS) as partial:
        partial.write(sample(5))
        assert {path.name for path in tmp_path.iterdir()} == {"far", "s.tsv"}
    assert (tmp_path / "s.tsv").is_symlink() and (tmp_path / "far" / "real.tsv").read_text() == "walk 5\tWALK\n"


@pytest.mark.parametrize(("error", "save"), [(ExhaustedError("no sample"), True), (UserError("early"), False)])
def test_what_nobody_can_go_on_from_is_removed(tmp_path, error, save):
    with pytest.raises(type(error)):
        run(tmp_path / "s.jsonl", error, save=save)
    assert not list(tmp_path.iterdir())


def test_a_run_that_begins_forgets_the_one_before_and_says_so(tmp_path, capsys):
    out = tmp_path / "s.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(out, KeyboardInterrupt(), save=True)
    assert not capsys.readouterr().err
    with pytest.raises(KeyboardInterrupt), partial_file(out, OPTIONS):
        raise KeyboardInterrupt
    assert capsys.readouterr().err.startswith(f"{out}.partial: the samples of an interrupted run are dropped (--resume")
    with partial_file(out, OPTIONS, resume=True) as partial:
        assert partial.counts.drawn == 0 and not list(partial.pairs())


def test_a_file_that_is_about_to_appear_is_no_other_runs_to_write(tmp_path, monkeypatch):
    out, moved, refused = tmp_path / "s.jsonl", Path.replace, []

    def replace(path, goal):
        if goal == out:
            with pytest.raises(UserError, match="another run"), partial_file(out, OPTIONS):
                pass
            refused.append(path)
        return moved(path, goal)

    monkeypatch.setattr(Path, "replace", replace)
    with partial_file(out, OPTIONS) as partial:
        partial.write(sample(5))
    assert len(refused) == len(out.read_text().splitlines()) == 1


def interrupted(out, options=OPTIONS, later=lambda: None):
    with pytest.raises(KeyboardInterrupt):
        stopped(out, options, later)


def test_a_run_goes_on_with_the_same_options_alone(tmp_path):
    out = tmp_path / "s.tsv"
    interrupted(out, OPTIONS | {"batch": 4})
    wanted = r"other options: seed was 1, is 2; batch was 4, is 5; give the same, or leave out --resume"
    with pytest.raises(UserError, match=wanted), partial_file(out, {"start": 5, "seed": 2, "batch": 5}, resume=True):
        pass
    with partial_file(out, OPTIONS | {"batch": 4}, resume=True) as partial:
        assert partial.counts.drawn == 1
        partial.write(sample(6))
    assert out.read_text() == "walk 5\tWALK\nwalk 6\tWALK\n"


def test_samples_that_are_cut_short_are_not_gone_on_from(tmp_path):
    out, partial = tmp_path / "s.tsv", tmp_path / "s.tsv.partial"
    interrupted(out)
    whole = partial.read_bytes()
    with partial_file(out, OPTIONS, resume=True) as going:  # to the last byte is enough
        assert going.counts.kept == 1
    interrupted(out)
    partial.write_bytes(whole[:-1])
    wanted = rf"s\.tsv\.partial: {len(whole) - 1} bytes, expected {len(whole)} or more: cut short or altered: leave out"
    with pytest.raises(UserError, match=wanted), partial_file(out, OPTIONS, resume=True):
        pass


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("s.tsv.partial", "walk 5", "look 5"),
        ("s.tsv.partial", "WALK\n", "WALK "),
        ("s.tsv.partial.json", '"drawn": 1', '"drawn": 2'),
        ("s.tsv.partial.json", '"rejected": {}', '"rejected": {"not novel": 1}'),
        ("s.tsv.partial.json", '"bytes": 12', '"bytes": 11'),
    ],
)
def test_what_was_altered_is_not_gone_on_from(tmp_path, name, old, new):
    interrupted(tmp_path / "s.tsv")
    whole = (tmp_path / name).read_text()
    assert old in whole
    (tmp_path / name).write_text(whole.replace(old, new))
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    wanted = r"s\.tsv\.partial: not what s\.tsv\.partial\.json says of it: one of them was altered"
    with pytest.raises(UserError, match=wanted), partial_file(tmp_path / "s.tsv", OPTIONS, resume=True):
        pass
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == files


def test_a_journal_without_samples_is_nothing_to_go_on_from(tmp_path):
    out = tmp_path / "s.tsv"
    interrupted(out)
    (tmp_path / "s.tsv.partial").unlink()
    with partial_file(out, OPTIONS, resume=True) as partial:
        assert partial.counts.drawn == 0


def test_a_run_counts_its_time_from_its_first_part(tmp_path, monkeypatch):
    out, now = tmp_path / "s.tsv", [100.0]
    monkeypatch.setattr("compgen.sampling.partial.time.monotonic", lambda: now[0])
    interrupted(out, later=lambda: now.__setitem__(0, 107.5))
    now[0] = 1000.0
    with partial_file(out, OPTIONS, resume=True) as partial:
        now[0] = 1001.0
        assert partial.seconds == 8.5


def test_it_is_brought_to_disk_now_and_then(tmp_path, monkeypatch):
    out, now = tmp_path / "s.tsv", [100.0]
    monkeypatch.setattr("compgen.sampling.partial.time.monotonic", lambda: now[0])
    with partial_file(out, OPTIONS) as partial:
        for moment, there in ((101.9, False), (102.0, True)):
            now[0] = moment
            partial.save(every=2.0)
            assert partial.journal.exists() == there
        state = json.loads(partial.journal.read_text())
        partial.write(sample(5))
        now[0] = 103.9
        partial.save(every=2.0)
        assert json.loads(partial.journal.read_text()) == state
        now[0] = 104.0
        partial.counts.drawn = 3
        partial.save(every=2.0)
        assert json.loads(partial.journal.read_text()) | {"seconds": 0} == state | {
            "next": 8,
            "bytes": len("walk 5\tWALK\n"),
            "counts": {"drawn": 3, "kept": 0, "rejected": {}, "last": 0},
            "seconds": 0,
            "check": zlib.adler32(b"walk 5\tWALK\n" + b"\n12\n3\n0\n0"),  # bytes, drawn, kept, last
        }


def test_what_was_not_saved_is_cut_off_before_anything_is_said_of_it(tmp_path):
    """A run that dies between two saves leaves bytes that the journal does not speak of."""
    out = tmp_path / "s.tsv"
    interrupted(out)
    size = (tmp_path / "s.tsv.partial").stat().st_size
    with (tmp_path / "s.tsv.partial").open("ab") as stream:
        stream.write(b"walk 6\tWA")
    with partial_file(out, OPTIONS, resume=True) as partial:
        partial.save()
        assert json.loads(partial.journal.read_text())["bytes"] == size
        partial.write(sample(6))
    assert out.read_text() == "walk 5\tWALK\nwalk 6\tWALK\n"


def test_folders_are_made(tmp_path):
    out = tmp_path / "a" / "b" / "s.tsv"
    with partial_file(out, OPTIONS) as partial:
        partial.write(sample(5))
    assert out.read_text() == "walk 5\tWALK\n"
