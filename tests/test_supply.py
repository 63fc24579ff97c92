"""What the project is made of: pins with hashes, the bill of materials, the audit."""

import hashlib
import itertools
import json
import os
import re
import subprocess
import sys
import threading
import tomllib
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def pins():
    """The pinned requirements, with their hashes."""
    lines = (ROOT / "constraints.txt").read_text("utf-8").replace("\\\n", " ").splitlines()
    found = {}
    for line in lines:
        if not line.startswith("#"):
            requirement, *hashes = re.split(r"\s+--hash=", line)
            found[canonicalize_name(Requirement(requirement).name)] = (Requirement(requirement), hashes)
    return found


def test_each_pin_is_a_version_with_hashes():
    for name, (requirement, hashes) in pins().items():
        assert re.fullmatch(r"==[^,*]+", str(requirement.specifier)), name
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}", digest) for digest in hashes), name


def test_each_dependency_is_pinned_within_its_bounds():
    extras = [lines for extra, lines in PROJECT["optional-dependencies"].items() if extra != "gpu"]
    pinned = pins()
    for requirement in map(Requirement, itertools.chain(PROJECT["dependencies"], *extras)):
        pin, _ = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(str(pin.specifier).removeprefix("==")), requirement


def test_the_makefile_has_all_extras_and_the_pinned_torch():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    extras = re.search(r"^EXTRAS = (.+)$", makefile, re.MULTILINE)
    assert extras and {*extras[1].split(","), "release"} == set(PROJECT["optional-dependencies"]) - {"gpu"}
    assert set(re.findall(r"torch(==\S+)", makefile)) == {str(pins()["torch"][0].specifier)}


def test_nothing_names_an_index():
    for name in ("constraints.txt", "pyproject.toml", "Makefile"):
        assert not re.search(r"https?://|file:|--(extra-)?index-url|--find-links", (ROOT / name).read_text("utf-8"))


@pytest.fixture
def wheels(tmp_path):
    """A folder with a wheel, and the wheel's SHA-256."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel = folder / "somepart-1.0-py3-none-any.whl"
    info = "somepart-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: somepart\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return folder, hashlib.sha256(wheel.read_bytes()).hexdigest()


def test_pip_checks_hashes_of_constraints(tmp_path, wheels):
    """As the Makefile asks it to, for a package that is asked for without its version."""
    folder, digest = wheels
    pip = [sys.executable, "-m", "pip", "install", "--no-index", "--find-links", folder, "-c", "pins.txt"]
    for hexdigits, expected in ((digest, 0), (hashlib.sha256(b"").hexdigest(), 1)):
        (tmp_path / "pins.txt").write_text(f"somepart==1.0 --hash=sha256:{hexdigits}\n")
        done = subprocess.run([*pip, "--dry-run", "somepart"], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == expected, done.stderr
        assert ("DO NOT MATCH THE HASHES" in done.stderr) is bool(expected)


def audit(*options, **environment):
    words = [sys.executable, ROOT / "scripts" / "audit.py", *options]
    return subprocess.run(words, env=os.environ | environment, capture_output=True, text=True)


NUMPY = {"name": "numpy", "version": "2.0", "vulns": []}
FLAWED = {"name": "rich", "version": "1.0", "vulns": [{"id": "CVE-1", "fix_versions": []}]}
SKIPPED = {"name": "onnx", "skip_reason": "who knows"}


@pytest.mark.parametrize(
    ("packages", "code", "line"),
    [
        ([NUMPY], 0, "1 packages audited, 0 vulnerabilities"),
        ([NUMPY, FLAWED], 1, "rich 1.0: CVE-1, mended in no version"),
        ([NUMPY, SKIPPED], 2, "not audited: onnx: who knows"),
        ([FLAWED, SKIPPED], 1, "not audited: onnx: who knows"),
        (None, 2, "not audited: no connection"),
    ],
)
def test_what_the_audit_makes_of_pip_audits_answer(tmp_path, packages, code, line):
    answer = json.dumps({"dependencies": packages})
    says = "sys.exit('trace\\nno connection')" if packages is None else f"print({answer!r})"
    (tmp_path / "pip_audit.py").write_text(f"import sys\n{says}\n")
    done = audit(PYTHONPATH=str(tmp_path))
    assert done.returncode == code, done.stderr
    assert line in (done.stdout + done.stderr).splitlines()


class Service(BaseHTTPRequestHandler):
    """A service that knows of a vulnerability in Jinja2 of any version."""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["package"]
        events = [{"introduced": "0"}, {"fixed": "99.0"}]
        flaw = {"id": "GHSA-1", "affected": [{"package": asked, "ranges": [{"type": "ECOSYSTEM", "events": events}]}]}
        answer = json.dumps({"vulns": [flaw]} if asked["name"] == "jinja2" else {}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *words):
        """Say nothing."""


def test_the_audit_asks_of_every_pin_and_says_where_nobody_answers(tmp_path):
    pytest.importorskip("pip_audit", reason="needs the extra dev")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/"
    options = ("--cache-dir", str(tmp_path), "--osv-url", url)
    done = audit(*options)
    server.shutdown()
    server.server_close()
    here = [name for name, (pin, _) in pins().items() if pin.marker is None or pin.marker.evaluate()]
    assert done.returncode == 1, done.stderr
    assert re.fullmatch(
        rf"jinja2 \S+: GHSA-1, mended in 99.0\n{len(here)} packages audited, 1 vulnerabilities\n", done.stdout
    )
    done = audit(*options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("not audited: ") and done.stderr.count("\n") == 1


@pytest.mark.long  # as the validation of all of it is
def test_the_bill_of_materials_has_python_and_cpp(tmp_path):
    pytest.importorskip("cyclonedx_py", reason="needs the extra release: `make sbom` installs it")
    out = tmp_path / "bill.json"
    done = subprocess.run([sys.executable, ROOT / "scripts" / "sbom.py", out], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    text = out.read_text("utf-8")
    bill = json.loads(text)
    parts = {part["name"]: part for part in bill["components"]}
    assert bill["metadata"]["component"]["name"] == "compgen"
    assert parts["numpy"]["version"] == version("numpy")
    assert [digest["alg"] for digest in parts["kenlm"]["hashes"]] == ["SHA-256"]
    (root,) = (entry for entry in bill["dependencies"] if entry["ref"] == bill["metadata"]["component"]["bom-ref"])
    assert {parts["kenlm"]["bom-ref"], parts["numpy"]["bom-ref"]} <= set(root["dependsOn"])
    assert str(ROOT) not in text and "file:" not in text
    left_out = len(re.findall("^left out: ", done.stderr, re.MULTILINE))
    assert sum(part.get("purl", "").startswith("pkg:deb/") for part in parts.values()) == 6 - left_out
