"""Content of files: what is no text, no gzip or too long is named with its line."""

import gzip
import io

import pytest

from compgen.data import content
from compgen.data.formats import read_dataset
from compgen.errors import DataError


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"])
def test_bytes_that_are_no_utf8_are_named_with_the_line(tmp_path, prefix):
    path = tmp_path / "x.tsv"
    path.write_bytes(prefix + b"a\tb\nm\xfcde\tc\n")
    with pytest.raises(DataError, match="line 2: found the byte 0xfc, expected text in UTF-8"):
        read_dataset(path)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_line_that_is_too_long_is_refused_before_the_rest_is_read(tmp_path, monkeypatch, pack):
    monkeypatch.setattr(content, "LONGEST_LINE", 1000)
    path, text = tmp_path / "x.tsv", b"a\tb\n" * 500 + b"x" * 1001 + b"\ty\n" + b"z" * 100_000
    path.write_bytes(pack(text))
    with pytest.raises(DataError, match=r"x\.tsv, line 501: found more than 1,000 bytes, expected the end of the line"):
        read_dataset(path)
    stream = io.BytesIO(text)
    with pytest.raises(DataError, match="line 501"):
        content._pieces(stream, "x.tsv", True)
    assert stream.tell() <= 4000
    path.write_bytes(pack(b"a\tb\n" * 500 + b"x" * 998 + b"\ty\n"))
    assert len(read_dataset(path)) == 501


@pytest.mark.parametrize("kept", [4, 15, 40])
def test_a_compressed_file_cut_short_is_reported(tmp_path, kept):
    path = tmp_path / "x.tsv.gz"
    path.write_bytes(gzip.compress(b"jump twice\tI_JUMP I_JUMP\n" * 100)[:kept])
    with pytest.raises(DataError, match="cut short"):
        read_dataset(path)


def test_a_damaged_compressed_file_is_reported(tmp_path):
    path = tmp_path / "x.tsv.gz"
    text = bytearray(gzip.compress(b"jump twice\tI_JUMP I_JUMP\n"))
    text[-6] ^= 1
    path.write_bytes(text)
    with pytest.raises(DataError, match="damaged"):
        read_dataset(path)
