"""Files appear whole, in the place of nothing that must stay."""

import errno
import gzip
import os
import re
import shutil
import stat
import threading
from pathlib import Path

import polars as pl
import pytest

from compgen.claim import claimed
from compgen.errors import UserError
from compgen.files import atomic_path, check_apart, check_writable, create, open_text, require_name, writing
from compgen.geca.tables import read_again


def write(path, text):
    with atomic_path(path) as temporary:
        temporary.write_text(text)


def test_a_file_that_is_replaced_hands_on_its_permissions(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o600)
    write(path, "new")
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == 0o600


def test_who_reads_the_old_file_reads_it_whole(tmp_path):
    (tmp_path / "x").write_text("old")
    with (tmp_path / "x").open() as reader:
        write(tmp_path / "x", "new")
        assert reader.read() == "old"


def test_a_link_stays_one(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"


def test_a_link_to_itself_gives_way(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    write(tmp_path / "loop", "new")
    assert (tmp_path / "loop").read_text() == "new" and list(tmp_path.iterdir()) == [tmp_path / "loop"]


def test_a_pipe_is_written_through(tmp_path):
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()), daemon=True)
    reader.start()
    write(pipe, "content")
    reader.join(10)
    assert got == ["content"] and pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_nothing_is_left_of_what_fails(tmp_path):
    (tmp_path / "x").write_text("old")
    with pytest.raises(ZeroDivisionError), atomic_path(tmp_path / "x") as temporary:
        temporary.write_text(f"{1 // (temporary.write_text('new') - 3)}")
    assert (tmp_path / "x").read_text() == "old" and list(tmp_path.iterdir()) == [tmp_path / "x"]


def write_folder(path, text):
    with atomic_path(path, directory=True) as temporary:
        for name in ("a", "b"):
            (temporary / name).write_text(text)


def content(folder):
    return [(path.name, path.read_text()) for path in sorted(folder.iterdir())]


@pytest.mark.parametrize("linux", [True, False])
def test_a_folder_is_replaced_as_a_whole(tmp_path, monkeypatch, linux):
    write_folder(tmp_path / "x", "old")
    if not linux:  # no function of the system exchanges two names at once
        monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    write_folder(tmp_path / "x", "new")
    assert content(tmp_path / "x") == [("a", "new"), ("b", "new")] and list(tmp_path.iterdir()) == [tmp_path / "x"]

    def killed(folder, **_):
        (folder / "a").unlink(missing_ok=True)
        raise SystemExit

    monkeypatch.setattr(shutil, "rmtree", killed)
    with pytest.raises(SystemExit):
        write_folder(tmp_path / "x", "last")
    assert content(tmp_path / "x") == [("a", "last"), ("b", "last")]


@pytest.mark.parametrize("name", [".", "../x"])
def test_the_current_folder_is_not_replaced(tmp_path, monkeypatch, name):
    (tmp_path / "x").mkdir()
    monkeypatch.chdir(tmp_path / "x")
    with pytest.raises(UserError, match="the current folder or a mount point"):
        write_folder(Path(name), "new")
    assert not [*Path().iterdir()] and [*tmp_path.iterdir()] == [tmp_path / "x"]


def test_standard_output_is_no_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"standard output \(-\) is no folder: give the name of one"):
        write_folder(Path("-"), "new")
    assert not [*tmp_path.iterdir()]


def test_a_folder_that_cannot_be_replaced_stays(tmp_path, monkeypatch):
    write_folder(tmp_path / "x", "old")
    replace = Path.replace

    def refuse(path, goal):
        if goal == tmp_path / "x" and len(list(tmp_path.iterdir())) == 2 and (path / "a").read_text() == "new":
            raise PermissionError(13, "Permission denied")
        return replace(path, goal)

    monkeypatch.setattr("ctypes.CDLL", lambda _: object())
    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(UserError, match="x: cannot be written: Permission denied"):
        write_folder(tmp_path / "x", "new")
    assert content(tmp_path / "x") == [("a", "old"), ("b", "old")] and list(tmp_path.iterdir()) == [tmp_path / "x"]


def test_a_full_disk_is_said_of_polars_files_too(tmp_path):
    with pytest.raises(UserError, match="x: cannot be written: No space left on device"), writing(tmp_path / "x"):
        pl.DataFrame({"a": [1, 2]}).write_parquet("/dev/full")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_full_when_a_compressed_file_is_closed_is_said(tmp_path):
    (tmp_path / "x.gz").symlink_to("/dev/full")
    path = tmp_path / "x.gz"
    with pytest.raises(UserError, match="No space left on device"), writing(path), open_text(path) as stream:
        stream.write("a\n")


def test_compressed_text_has_the_line_ends_of_plain_text(tmp_path):
    for name in ("x", "x.gz"):
        with open_text(tmp_path / name) as stream:
            stream.write("a\nb\r\n")
    assert gzip.decompress((tmp_path / "x.gz").read_bytes()) == (tmp_path / "x").read_bytes() == b"a\nb\r\n"


def test_a_file_is_created_once(tmp_path, monkeypatch):
    assert create(tmp_path / "x", "mine") and not create(tmp_path / "x", "theirs")
    assert (tmp_path / "x").read_text() == "mine" and len(list(tmp_path.iterdir())) == 1

    def no_links(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert create(tmp_path / "y", "mine") and (tmp_path / "y").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2
    with pytest.raises(UserError, match="z: cannot be written"):
        create(tmp_path / "no" / "z", "mine")


def test_what_is_read_is_not_written(tmp_path):
    (tmp_path / "x").write_text("")
    (tmp_path / "link").symlink_to("x")
    check_apart(tmp_path / "y", tmp_path / "x", None, "-", "scan/jump")
    check_apart(Path("/dev/null"), "/dev/null")
    for out in ("x", "link"):
        with pytest.raises(UserError, match="it is read, too"):
            check_apart(tmp_path / out, None, "scan/jump", tmp_path / "x")
    (tmp_path / "parts").mkdir()  # a dataset, of which one split may be written
    with pytest.raises(UserError, match="it is read, too"):
        check_apart(tmp_path / "parts", f"{tmp_path}/parts/")


def test_a_name_that_no_file_can_have_is_said(tmp_path):
    path = tmp_path / ("x" * 300)
    check_apart(path, path)
    with pytest.raises(UserError, match="cannot be written: File name too long"):
        check_writable(path)
    with pytest.raises(UserError, match="cannot be written: File name too long"):
        write(path, "")
    with pytest.raises(UserError, match="cannot be written: File name too long"), atomic_path(path, directory=True):
        pass
    with pytest.raises(UserError, match="cannot be written: File name too long"), claimed(path / "x", "run", {}, {}):
        pass


@pytest.mark.parametrize("content", ["", "[]", "[" * 100_000])
def test_a_folder_whose_claim_cannot_be_read_is_not_claimed(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    with (
        pytest.raises(UserError, match=r"run\.json: does not say of which run"),
        claimed(tmp_path / "run.json", "run", {}, {}),
    ):
        pass


@pytest.mark.parametrize(("suffix", "kind"), [(".pt", "checkpoints"), (".grammar", "grammars")])
def test_a_model_has_the_name_of_its_kind(tmp_path, suffix, kind):
    require_name(tmp_path / f"new{suffix}", suffix)
    (tmp_path / f"folder{suffix}").mkdir()
    for name in (f"folder{suffix}", "x", f"{suffix}", "x.gz"):
        wanted = f"{name}: expected the name of a file that ends in {suffix}, as {kind} do"
        with pytest.raises(UserError, match=re.escape(wanted)):
            require_name(tmp_path / name, suffix)
    with pytest.raises(UserError, match="cannot be written: File name too long"):
        require_name(tmp_path / ("x" * 300 + suffix), suffix)


def test_a_folder_is_not_written_into(tmp_path):
    (tmp_path / "x").mkdir()
    with pytest.raises(UserError, match="Is a directory"):
        write(tmp_path / "x", "new")
    assert not list((tmp_path / "x").iterdir())


def test_standard_output_is_no_file_here():
    with pytest.raises(UserError, match="the name of a file"):
        check_writable(Path("-"))


def test_a_file_of_our_own_that_cannot_be_read_again_is_said(tmp_path):
    with pytest.raises(UserError, match=f"^{tmp_path / 'gone'}: cannot be read: No such file or directory$"):
        read_again(tmp_path / "gone")
