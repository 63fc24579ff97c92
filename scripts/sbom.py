"""Write what this environment is made of as a CycloneDX bill of materials, with what the C++ programs are built from.

    python scripts/sbom.py build/compgen.cdx.json

Python packages are those of the environment, by cyclonedx-py. KenLM and nlohmann's headers are what `cgen lm install`
pins, by hash. The others are Debian packages: what cpp_runner/fetch_headers.sh fetched, or else what is installed.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from compgen.files import atomic_path
from compgen.lm.install import JSON, JSON_SHA256, KENLM, SHA256

ROOT = Path(__file__).parents[1]
FETCHED = ROOT / "cpp_runner" / "third_party" / "usr" / "share" / "doc"
DEBIAN = {
    "nlohmann-json3-dev": "JSON",
    "libcli11-dev": "options",
    "libonnxruntime-dev": "ONNX Runtime's header",
    "doctest-dev": "tests",
    "zlib1g-dev": "gzip",
    "libboost-dev": "KenLM",
}


def main(out: Path) -> None:
    """Write the file, if it is valid."""
    options = ["--pyproject", "pyproject.toml", "--output-format", "JSON", "--no-validate"]
    command = [sys.executable, "-m", "cyclonedx_py", "environment", *options, sys.executable]
    made = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if made.returncode:
        sys.exit(made.stderr)
    bom = Bom.from_json(json.loads(made.stdout))
    python, native = len(bom.components), [*published(), *debian()]
    bom.components.update(native)
    bom.register_dependency(bom.metadata.component, native)
    text = JsonV1Dot6(bom).output_as_string(indent=2)
    if error := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        sys.exit(f"{out}: not valid: {error}")
    with atomic_path(out) as temporary:
        temporary.write_text(text + "\n", encoding="utf-8")
    print(f"{out}: {python} Python packages, {len(native)} of the C++ programs")


def published() -> list[Component]:
    """What `cgen lm install` fetches from the package index, by hash."""
    return [
        component("pypi", "kenlm", KENLM, digest=SHA256),
        component("pypi", "nlohmann-json", JSON, digest=JSON_SHA256),
    ]


def debian() -> list[Component]:
    """The Debian packages, but for those that are not here, which are named."""
    found = []
    for name, what in DEBIAN.items():
        if version := fetched(name) or installed(name):
            found.append(component("deb", name, version, namespace="debian"))
        else:
            print(f"left out: {name} ({what}), neither fetched nor installed", file=sys.stderr)
    return found


def fetched(name: str) -> str:
    """The version of a Debian package that the runner has headers from; a changelog begins `SOURCE (VERSION) ...`."""
    changelog = FETCHED / name / "changelog.Debian.gz"
    if not changelog.is_file():
        return ""
    with gzip.open(changelog, "rt", encoding="utf-8") as lines:
        return next(lines).partition("(")[2].partition(")")[0]


def installed(name: str) -> str:
    """The version of a Debian package that is installed."""
    try:
        done = subprocess.run(["dpkg-query", "-W", "-f=${Version}", name], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout


def component(kind: str, name: str, version: str, namespace: str | None = None, digest: str = "") -> Component:
    """A library, by the name and version that its packages have."""
    purl = PackageURL(kind, namespace, name, version)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=digest)] if digest else []
    library = ComponentType.LIBRARY
    return Component(name=name, version=version, type=library, bom_ref=str(purl), purl=purl, hashes=hashes)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
