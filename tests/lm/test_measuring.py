import os
import tempfile

import polars as pl

from compgen.lm.measuring import _kept


def test_no_folder_need_have_a_name_in_utf_8(tmp_path, monkeypatch):
    out = tmp_path / os.fsdecode(b"nu\xff") / "a.parquet"
    out.parent.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(out.parent))
    with _kept(out) as keep:
        for sentence in (0, 1):
            keep(pl.DataFrame({"sentence": [sentence], "log10": [-0.5]}))
    with out.open("rb") as stream:
        assert pl.read_parquet(stream).rows() == [(0, -0.5), (1, -0.5)]
