"""KenLM's programs: finding and building them.

`lmplz` estimates, `build_binary` makes a model quick to open, and our `compgen-ngram` scores text with KenLM's library.
No package contains them built; KenLM's source package has all that is needed but a reader of JSON, nlohmann's headers.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from compgen.errors import UserError
from compgen.files import atomic_path, check_writable, sha256

KENLM = "0.3.0"
SHA256 = "c4628bb9fb63c8a6f9240035b8b037385cfc404cb72e933cf48878291edac1e8"  # of its source archive, kenlm-0.3.0.tar.gz
JSON = "3.12.0"
JSON_SHA256 = "5f6132720fb25d0d70bf0742f8397b49a540dcc193e7312a914f6aa49f054810"  # of nlohmann_json's wheel
OURS = "compgen-ngram"
PROGRAMS = ("lmplz", "build_binary", "query", OURS)
STAMP = f"{OURS}.sources"  # beside the programs: the SHA-256 of what they were built from
FOLDER = "COMPGEN_KENLM"  # environment variable: a folder with the programs
BOOST = ("program-options", "system", "thread", "test", "chrono", "date-time", "atomic")
TOOLS = (
    "a C++ compiler, make, CMake and the Boost libraries program_options, system, thread and test; on Debian: "
    "apt-get install cmake g++ make libboost-program-options-dev libboost-system-dev libboost-thread-dev "
    "libboost-test-dev zlib1g-dev"
)


def program(name: str) -> Path:
    """Find one of the PROGRAMS: in the folder that COMPGEN_KENLM names, beside this Python, or on PATH.

    Raises:
        UserError: it is missing, or ours was built from other sources; the message says how to build it.
    """
    folders = [os.environ.get(FOLDER, ""), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    found = shutil.which(name, path=os.pathsep.join(folder for folder in folders if folder))
    if found is None:
        raise UserError(f"no program {name}: `cgen lm install` builds it, once; it needs {TOOLS}")
    if name == OURS and not _up_to_date(Path(found).parent):
        again = f"`cgen lm install --folder {Path(found).parent}`"
        raise UserError(f"{found}: built from other sources than those of this compgen: {again} builds it again")
    return Path(found)


def installed(folder: Path) -> bool:
    """Whether a folder has all PROGRAMS, built from the sources of this compgen."""
    return all((folder / name).exists() for name in PROGRAMS) and _up_to_date(folder)


def _up_to_date(folder: Path) -> bool:
    try:
        return (folder / STAMP).read_text(encoding="utf-8").strip() == _digest()
    except (OSError, UnicodeDecodeError):
        return False


@cache
def _digest() -> str:
    """Return the SHA-256 of the SHA-256s of all sources: what others publish, and our files."""
    ours = (sha256(path) for path in sorted(_native().iterdir()) if path.is_file())
    return hashlib.sha256("\n".join([SHA256, JSON_SHA256, *ours]).encode()).hexdigest()


def _native() -> Path:
    """Return the folder of our own sources."""
    return Path(str(resources.files("compgen") / "lm" / "native"))


def plain(message: str) -> str:
    """Return the error message of one of the PROGRAMS without the place in KenLM's sources."""
    # Each word is looked at once, from its beginning: one of a damaged file may be very long.
    return re.sub(r"(?<!\S)\S+\.(?:cc|hh):\d+ in .*? threw \S+?(?: because `.*?')?\.\s*", "", message, flags=re.DOTALL)


def install(folder: Path, watch: Callable[[str], None] = lambda _: None, sanitize: str = "") -> None:
    """Build the PROGRAMS from KenLM's source package in a folder. `watch` is called before each step.

    `sanitize` names sanitizers of the compiler, with which only ours is built.

    The archive must have the SHA-256 above. Boost is the system's, or else, on Debian and its kin, is unpacked from
    its packages without being installed.

    Raises:
        UserError: a tool or the package is missing, the archive differs, or a step fails.
    """
    for tool in ("cmake", "make", "c++"):
        if shutil.which(tool) is None:
            raise UserError(f"no {tool}: building KenLM needs {TOOLS}")
    check_writable(folder / PROGRAMS[0])
    with tempfile.TemporaryDirectory(prefix="compgen-kenlm-") as name:
        work = Path(name)
        watch(f"KenLM {KENLM}'s source package")
        sources = _sources(work)
        configure = ["cmake", "-S", str(_native()), "-B", "build"]
        configure += [f"-DKENLM={sources}", f"-DJSON={_json(work)}", "-DCMAKE_BUILD_TYPE=Release"]
        configure += [f"-DSANITIZE={sanitize}"]
        if not _has_boost(work, configure):
            watch("Boost, from the system's packages")
            configure.append(f"-DBOOST_ROOT={_boost(work / 'boost')}")
        watch("compiling, a minute or two")
        _run(configure, work)
        _run(
            ["cmake", "--build", "build", "-j", str(os.cpu_count() or 1), "--target", OURS if sanitize else "programs"],
            work,
        )
        for program_ in (OURS,) if sanitize else PROGRAMS:
            built = next((work / "build").rglob(program_))
            with atomic_path(folder / program_) as temporary:
                shutil.copy(built, temporary)
        with atomic_path(folder / STAMP) as temporary:
            temporary.write_text(f"{_digest()}\n", encoding="utf-8")


def _sources(work: Path) -> Path:
    """Unpack KenLM's sources; return their folder."""
    source = ("kenlm", KENLM, SHA256, "--no-binary", "kenlm")
    try:  # with the packages that are installed, or else in an environment that pip makes
        _download(work, *source, "--no-build-isolation")
    except UserError:
        _download(work, *source)
    safely: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # since 3.11.4
    with tarfile.open(next(work.glob("kenlm-*.tar.gz"))) as archive:
        archive.extractall(work, **safely)
    return next(path for path in work.glob("kenlm-*") if path.is_dir())


def _json(work: Path) -> Path:
    """Unpack nlohmann's headers; return the folder that they are included from."""
    _download(work, "nlohmann-json", JSON, JSON_SHA256, "--only-binary", "nlohmann-json")
    with zipfile.ZipFile(next(work.glob("nlohmann_json-*.whl"))) as archive:
        archive.extractall(work / "json")
    return work / "json" / "nlohmann_json" / "include"


def _download(work: Path, package: str, version: str, digest: str, *options: str) -> None:
    """Download an archive with pip, which checks its SHA-256 before it runs any of its code."""
    wanted = work / f"{package}.txt"
    wanted.write_text(f"{package}=={version} --hash=sha256:{digest}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--require-hashes"]
    try:
        _run([*pip, "-r", wanted.name, *options], work)
    except UserError as error:
        if "DO NOT MATCH THE HASHES" not in str(error):
            raise
        raise UserError(
            f"{package} {version}: the archive that pip found has another SHA-256 than {digest}: "
            "nothing was built; see which package index or cache pip takes it from"
        ) from None


def _has_boost(work: Path, configure: list[str]) -> bool:
    try:
        _run(configure, work)
    except UserError as error:
        if "Boost" not in str(error):
            raise
        shutil.rmtree(work / "build")
        return False
    return True


def _boost(folder: Path) -> Path:
    """Unpack Boost from the packages of Debian or its kin, which needs no rights; return its folder."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise UserError(f"no Boost: building KenLM needs {TOOLS}")
    for part in ("lists/partial", "cache/archives/partial", "packages"):
        (folder / part).mkdir(parents=True)
    places = [f"Dir::State::lists={folder / 'lists'}", f"Dir::Cache={folder / 'cache'}", "APT::Sandbox::User=root"]
    options = [word for place in places for word in ("-o", place)]
    _run(["apt-get", "-qq", *options, "update"], folder)
    listed = _run(["apt-cache", *options, "depends", "libboost-dev"], folder)
    first = next((line for line in listed.splitlines() if "Depends: libboost" in line), "")
    version = first.rpartition("libboost")[2].removesuffix("-dev")
    names = [f"libboost{version}-dev", *(f"libboost-{part}{version}-dev" for part in BOOST)]
    _run(["apt-get", "-qq", *options, "download", *names], folder / "packages")
    for package in (folder / "packages").glob("*.deb"):
        _run(["dpkg-deb", "-x", str(package), str(folder)], folder)
    return folder / "usr"


def _run(command: list[str], folder: Path) -> str:
    """Run a command and return its output, whose end is in the message of a UserError if it fails."""
    pipe, same = subprocess.PIPE, subprocess.STDOUT
    done = subprocess.run(command, cwd=folder, stdout=pipe, stderr=same, text=True, errors="replace", check=False)
    if done.returncode:
        end = "\n".join(done.stdout.splitlines()[-30:])
        raise UserError(f"building KenLM: {' '.join(command[:4])} ... failed:\n{end}\nbuilding KenLM needs {TOOLS}")
    return done.stdout
