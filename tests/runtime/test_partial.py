"""What is left of a file of samples when a run does not end well."""

import errno
from pathlib import Path

import pytest

from compgen.errors import ExhaustedError, UserError
from compgen.runtime.output import Sample
from compgen.runtime.partial import partial_file

OPTIONS = {"start": 5, "seed": 1}


def sample(index):
    return Sample(index, ["walk", f"{index}"], ["WALK"], -1.0, (1, 2))


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


@pytest.mark.parametrize("name", ["s.jsonl", "s.tsv"])
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
    assert len(out.read_text().splitlines()) == 3
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


def test_a_run_that_begins_forgets_the_one_before(tmp_path):
    out = tmp_path / "s.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run(out, KeyboardInterrupt(), save=True)
    with pytest.raises(KeyboardInterrupt), partial_file(out, OPTIONS):
        raise KeyboardInterrupt
    with partial_file(out, OPTIONS, resume=True) as partial:
        assert partial.counts.drawn == 0 and not list(partial.pairs())


def test_a_file_that_is_about_to_appear_is_no_other_runs_to_write(tmp_path, monkeypatch):
    out, moved = tmp_path / "s.jsonl", Path.replace

    def replace(path, goal):
        if goal == out:
            with pytest.raises(UserError, match="another run"), partial_file(out, OPTIONS):
                pass
        return moved(path, goal)

    monkeypatch.setattr(Path, "replace", replace)
    with partial_file(out, OPTIONS) as partial:
        partial.write(sample(5))
    assert len(out.read_text().splitlines()) == 1
