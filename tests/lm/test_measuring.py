import os

import polars as pl

from compgen.lm.measuring import _kept


def test_scores_of_tokens_may_be_in_a_folder_whose_name_is_not_utf_8(tmp_path):
    out = tmp_path / os.fsdecode(b"nu\xff") / "a.parquet"
    with _kept(out) as keep:
        for sentence in (0, 1):
            keep(pl.DataFrame({"sentence": [sentence], "log10": [-0.5]}))
    with out.open("rb") as stream:
        assert pl.read_parquet(stream).rows() == [(0, -0.5), (1, -0.5)]
