import sys
from xml.etree import ElementTree

import numpy as np
import pytest

from compgen.errors import UserError
from compgen.evaluation.plots import check_picture, heat_maps


@pytest.mark.parametrize(("suffix", "begin"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_a_picture_is_drawn(tmp_path, suffix, begin):
    pytest.importorskip("matplotlib")
    out = tmp_path / f"a.{suffix}"
    check_picture(out)
    heat_maps(["a", "→"], [("one", ["x"], np.eye(2)[:, :1]), ("two", ["y", "z", "ğ"], np.ones((2, 3)))], out)
    assert out.read_bytes().startswith(begin)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_labels_are_drawn_as_they_are(tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "a.svg"
    # Neither mathematics, nor a character that XML cannot hold, nor a letter that no font here has.
    assert heat_maps(["$^$", "\x07"], [("one", ["a<b", "\U00012000"], np.eye(2))], out) == ""
    labels = {text.text for text in ElementTree.parse(out).iter() if text.tag.endswith("}text")}
    assert {"$^$", "\ufffd", "a<b", "\U00012000"} <= labels
    assert heat_maps(["b"], [("one", ["\U00012000"], np.eye(1))], tmp_path / "a.png") == "\U00012000"


def test_what_cannot_be_drawn_is_told_before_the_work(tmp_path, monkeypatch):
    with pytest.raises(UserError, match=r"expected the name of a picture, ending in \.png"):
        check_picture(tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match="pip install"):
        check_picture(tmp_path / "a.png")
