from pathlib import Path

import pytest

from compgen.errors import UserError
from compgen.lm.install import install, plain


def test_a_missing_tool_is_named_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"(?s)no cmake: building KenLM needs .*apt-get install cmake g\+\+"):
        install(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_messages_are_without_places_in_sources():
    message = (
        "/x/lm/read_arpa.cc:65 in void lm::Read(util::FilePiece&) threw FormatLoadException because `n'.\nfirst line"
    )
    assert plain(message) == "first line"
    assert plain("m.bin: not a model: End of file in the 1-gram") == "m.bin: not a model: End of file in the 1-gram"
    assert plain(f"a\n{Path('x')}.hh:1 in f threw E. b") == "a\nb"
