"""What the C++ runner refuses to read or to write is what Python refuses, in the same words, and nothing is lost."""

import gzip
import os
import socket
import subprocess

import pytest

from compgen.sampling import native
from tests.cli.shell import said
from tests.export.tiny import exported

pytestmark = pytest.mark.usefixtures("built")

KINDS = {"generator": ("--direct",), "predictor": ()}
ENDS = "lines end with CR alone, expected LF or CR LF: tr '\\r' '\\n' < FILE > NEW"


def run(kind, data, *words, **options):
    command = [native.runner(), exported(kind), *KINDS[kind], "--input", data, *words]
    return subprocess.run(command, capture_output=True, env=native.environment(), check=False, **options)


def refused(kind, data, *words):
    """What both programs say, which is one line; they exit with 2."""
    done, (code, text) = run(kind, data, *words, text=True), said("predict", exported(kind), data, *KINDS[kind], *words)
    assert done.returncode == code == 2 and not done.stdout, (done.stderr, text)
    assert done.stderr.removeprefix("error: ") == text.removeprefix("cgen: ")
    return text.removeprefix("cgen: ").rstrip()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_read_is_not_overwritten(tmp_path, kind):
    data, link, hard = tmp_path / "in.tsv", tmp_path / "link.jsonl", tmp_path / "hard.jsonl"
    data.write_text("a b\tc d\nb c\td\n")
    link.symlink_to("in.tsv")
    hard.hardlink_to(data)
    for out in (data, link, hard, tmp_path / "new" / ".." / "in.tsv"):
        assert refused(kind, data, "-o", out) == f"{out}: it is read, too: choose another name for what is written"
    assert refused(kind, link, "-o", data)
    assert data.read_text() == "a b\tc d\nb c\td\n"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("text", ["a b\rc d\r", "\r a\rb", "a\r" * 2**15 + "a\n"], ids=len)
def test_lines_that_end_with_cr_alone_are_refused(tmp_path, kind, text):
    data = tmp_path / "in.txt"
    data.write_text(text, newline="")
    assert refused(kind, data) == f"{data}: {ENDS}"
    done = run(kind, "-", input=text.encode())
    assert done.returncode == 2 and done.stderr.decode() == f"error: standard input: {ENDS}\n"


@pytest.mark.parametrize("words", [("--raw", "--draws", "3"), ("--input", "in.txt", "--direct"), ("--input", "in.txt")])
def test_no_record_stays_that_tells_of_what_was_there_before(tmp_path, words):
    out, record = tmp_path / "out.jsonl", tmp_path / "out.jsonl.run.json"
    (tmp_path / "in.txt").write_text("a b\n")
    record.write_text("{}")
    command = [native.runner(), exported("predictor" if len(words) == 2 else "generator"), *words, "-o", out]
    subprocess.run(command, cwd=tmp_path, env=native.environment(), check=True)
    assert out.exists() and not record.exists()


def test_standard_input_that_cannot_be_read_is_told(tmp_path):
    folder = os.open(tmp_path, os.O_RDONLY)
    done = run("generator", "-", stdin=folder)
    os.close(folder)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr == b"error: standard input: cannot be read to its end\n"


def test_what_cannot_be_opened_is_told_with_the_systems_reason(tmp_path):
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(tmp_path / "socket"))
        done = run("predictor", tmp_path / "socket")
    assert done.returncode == 2 and done.stderr.endswith(b"/socket: cannot be read: No such device or address\n")
    done = run("predictor", tmp_path)
    assert done.returncode == 2 and done.stderr.decode() == f"error: {tmp_path}: a folder, expected a file\n"


def test_standard_input_has_its_name_where_it_is_packed():
    done = run("generator", "-", input=gzip.compress(b"a b\n")[:-1])
    cut = "standard input: the compressed file is cut short: found no end of its gzip data"
    assert done.returncode == 2 and done.stderr.decode() == f"error: {cut}\n"


def test_other_cr_are_spaces():
    for text in ("a b\r\nc d\r\n", " a b\r\r"):
        done = run("generator", "-", input=text.encode())
        assert done.returncode == 0 and len(done.stdout.splitlines()) == 2 - text.startswith(" "), done.stderr


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("token", ["<unk>", "\u2192", "a\x00b", "it's\x7f", "\x01" * 60], ids=ascii)
def test_tokens_that_data_cannot_have_are_refused(tmp_path, kind, token):
    data = tmp_path / "in.txt"
    data.write_text(f"a b\na {token}\n")
    assert f"{data}, line 2: found the token " in refused(kind, data)


@pytest.mark.parametrize("kind", KINDS)
def test_lines_that_are_too_long_are_refused(tmp_path, kind):
    data = tmp_path / "in.txt"
    data.write_text("a b\n" + "a b " * 2**19 + "\nb\n")
    ends = "found more than 1,048,576 bytes, expected the end of the line before that"
    assert run(kind, data, text=True).stderr == f"error: {data}, line 2: {ends}\n"
    assert said("predict", exported(kind), data, *KINDS[kind])[1].endswith(f"{data}, line 2: {ends}\n")


@pytest.mark.parametrize("words", [("sample", "predictor", "--draws", "3"), ("predict", "generator", "-")], ids=str)
def test_a_model_of_the_other_kind_is_told(words):
    command, kind, *rest = words
    asked = ["--input", *rest] if command == "predict" else rest
    done = subprocess.run(
        [native.runner(), exported(kind), *asked], input="a\n", capture_output=True, text=True, env=native.environment()
    )
    code, text = said(command, exported(kind), *rest)
    assert done.returncode == code == 2 and done.stderr.removeprefix("error: ") == text.removeprefix("cgen: ")


RECORD = b'{"source": ["a"]}\n'


@pytest.mark.parametrize("name", ["in.jsonl", "in.jsonl.gz", "in.csv", "in.parquet", "-"])
@pytest.mark.parametrize("line", [b"\n " + RECORD, b"\xef\xbb\xbf" + RECORD, b"\xef\xbb\xbf\n[\n" + RECORD + b"]"])
def test_data_that_the_runner_would_take_for_words_are_refused(tmp_path, name, line):
    (tmp_path / name).write_bytes(gzip.compress(line) if name.endswith(".gz") else line)
    for kind in KINDS:
        done = run(kind, name, input=line, cwd=tmp_path)
        what = "standard input: found JSON" if name == "-" else f"{name}: found .{name.split('.')[1]}"
        says = f"error: {what}, expected lines of source tokens, or .tsv: `cgen predict` reads it\n"
        assert done.returncode == 2 and done.stderr.decode() == says and not done.stdout


@pytest.mark.parametrize(("name", "refused"), [("in.txt", True), ("-", True), ("in.tsv", False)])
def test_lines_of_scan_are_refused_where_python_reads_their_sources(tmp_path, name, refused):
    line = b"\xef\xbb\xbf\n IN: a b OUT: A\n"
    (tmp_path / name).write_bytes(line)
    for kind in KINDS:
        done = run(kind, name, input=line, cwd=tmp_path)
        assert (b": found lines of SCAN, expected lines of source tokens" in done.stderr) is refused


def test_a_folder_that_cannot_be_made_is_told_with_the_systems_reason(tmp_path):
    data = tmp_path / "in.txt"
    data.write_text("a b\n")
    says = refused("generator", data, "-o", "/sys/nowhere/deep/out.jsonl")
    assert says.startswith("/sys/nowhere/deep/out.jsonl: cannot be written: ") and not says.endswith(
        "No such file or directory"
    )


@pytest.mark.parametrize(("length", "what"), [(255, ""), (248, ""), (247, ""), (243, ""), (242, ".partial.json")])
@pytest.mark.parametrize("words", [(), ("--resume",)])
def test_names_that_are_too_long_with_what_is_added_to_them_are_told(tmp_path, length, what, words):
    out = tmp_path / ("n" * (length - len(".jsonl")) + ".jsonl")
    asked = (exported(), "--draws", "50", *words, "-o", out)
    done = subprocess.run([native.runner(), *asked], capture_output=True, text=True, env=native.environment())
    assert not list(tmp_path.iterdir())
    code, text = said("sample", *asked)
    assert not list(tmp_path.iterdir())
    assert done.returncode == code == 2 and done.stderr.removeprefix("error: ") == text.removeprefix("cgen: ")
    assert done.stderr == f"error: {out}{what}: cannot be written: File name too long\n"


def test_notes_are_in_utf8_whatever_a_bundle_is_called(tmp_path):
    folder = tmp_path / os.fsdecode(b"nu\xff")
    folder.symlink_to(exported())
    command = [native.runner(), folder, "--direct", "--input", "-"]
    done = subprocess.run(command, input=b"a b\n", capture_output=True, env=native.environment(), check=True)
    assert done.stderr.decode() == f"{tmp_path}/nu\ufffd: 1 answered\n"
