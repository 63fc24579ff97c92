import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

import compgen.lm.install
from compgen.errors import UserError
from compgen.files import sha256
from compgen.lm.install import FOLDER, PROGRAMS, install, installed, plain, program


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
    assert plain("/tmp/lmplz_main.cc:27 in f(int) threw util::Exception. Bad threshold") == "Bad threshold"
    assert plain("a" * 2**20) == "a" * 2**20  # a line of a damaged file; in time that its square would not allow


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """A source archive that calls itself KenLM's, which leaves a mark if it is run; pip finds it and nothing else."""
    files = {
        "setup.py": f"open({str(tmp_path / 'ran')!r}, 'w').close()\n"
        "from setuptools import setup\nsetup(name='kenlm', version='0.3.0')\n",
        "pyproject.toml": "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n",
        "PKG-INFO": "Metadata-Version: 2.1\nName: kenlm\nVersion: 0.3.0\n",
    }
    (tmp_path / "index").mkdir()
    path = tmp_path / "index" / "kenlm-0.3.0.tar.gz"
    with tarfile.open(path, "w:gz") as packed:
        for name, content in files.items():
            member = tarfile.TarInfo(f"kenlm-0.3.0/{name}")
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content.encode()))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(path.parent))
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    return path


@pytest.mark.usefixtures("archive")
def test_an_archive_with_another_hash_is_neither_run_nor_built(monkeypatch, tmp_path):
    monkeypatch.setattr("shutil.which", lambda name, **_: f"/usr/bin/{name}")
    with pytest.raises(UserError, match=r"^kenlm 0\.3\.0: the archive .* has another SHA-256 than c4628bb9") as error:
        install(tmp_path / "programs")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "ran").exists() and not list((tmp_path / "programs").iterdir())


def test_headers_with_another_hash_are_not_unpacked(archive, tmp_path):
    with zipfile.ZipFile(archive.parent / "nlohmann_json-3.12.0-py3-none-any.whl", "w") as packed:
        packed.writestr("nlohmann_json-3.12.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: nlohmann-json\n")
    with pytest.raises(UserError, match=r"^nlohmann-json 3\.12\.0: the archive .* has another SHA-256 than 5f613272"):
        compgen.lm.install._json(tmp_path)
    assert not (tmp_path / "json").exists()


def test_an_archive_with_the_hash_is_unpacked(archive, monkeypatch, tmp_path):
    pytest.importorskip("setuptools", reason="pip needs setuptools to look into a source archive")
    monkeypatch.setattr(compgen.lm.install, "SHA256", sha256(archive))
    (tmp_path / "work").mkdir()
    assert (compgen.lm.install._sources(tmp_path / "work") / "setup.py").is_file()


@pytest.mark.usefixtures("kenlm")
def test_programs_of_other_sources_are_not_used(monkeypatch, tmp_path):
    for name in (*PROGRAMS, compgen.lm.install.STAMP):
        shutil.copy(program(PROGRAMS[-1]).with_name(name), tmp_path)
    monkeypatch.setenv(FOLDER, str(tmp_path))
    assert installed(tmp_path) and program("compgen-ngram") == tmp_path / "compgen-ngram"
    native = tmp_path / "native"
    shutil.copytree(compgen.lm.install._native(), native)
    with (native / "ngram.cc").open("a") as source:
        source.write("// changed\n")
    compgen.lm.install._digest.cache_clear()
    monkeypatch.setattr(compgen.lm.install, "_native", lambda: native)
    try:
        assert not installed(tmp_path)
        with pytest.raises(UserError, match=rf"built from other sources .*--folder {tmp_path}"):
            program("compgen-ngram")
    finally:
        compgen.lm.install._digest.cache_clear()
    monkeypatch.undo()
    (tmp_path / "lmplz").unlink()
    assert not installed(tmp_path)
