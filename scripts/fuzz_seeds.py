"""Valid inputs of each reader that cpp_runner/fuzz reads, small ones, which the fuzzer begins with.

python scripts/fuzz_seeds.py build/fuzz/seeds
"""

import contextlib
import gzip
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from mutate import other_bundles
from mutate_readers import language_models

# As in cpp_runner/fuzz/readers.h.
FILES = ["manifest.json", "vocabulary.json", "rules.txt", "targets.cfg", "scores.safetensors", "step.onnx"]
FILES += ["sampler.onnx", "encoder.onnx", "start.onnx", "golden.json", "step.safetensors", "pool.safetensors"]
GRAPH = b"\x08\x0a"  # of all graphs of a bundle: the version of ONNX and no more; the reader `graph` has whole ones
LINES = ["jump a b", "a é\tx y", "I_WALK  jump", "b"]
SENTENCES = ["the cat sat", "", "été \t日本 the\r", "a b c"]
JOURNAL = {
    "options": {"compgen": "0.1.0", "-n": 30, "start": 0, "filters": ["novel", "unique"]},
    "next": 7,
    "bytes": 80,
    "counts": {"drawn": 7, "kept": 2, "rejected": {"not novel": 3, "not well-formed": 2}, "last": 6},
    "seconds": 0.5,
    "step": "own",
    "check": 1,
}
Seeds = Iterator[tuple[str, bytes]]  # of a reader


def parts(*files: tuple[int, bytes]) -> bytes:
    """Several files as one input."""
    return b"".join(bytes([name]) + len(data).to_bytes(4, "little") + data for name, data in files)


def bundles(folder: Path) -> list[Path]:
    """Bundles of small models of each kind."""
    from tests.export.tiny import exported

    found = [exported("generator", hidden=4, encoder_hidden=3, embedding=3, output=3, attention=2, positions=2)]
    found.append(exported("generator", memories=0, copying=False, feed=False, hidden=4))
    found.append(exported("generator", latent=5, own=9, mixing="gate", hidden=4))
    found.append(exported("predictor", initial="encoder", hidden=4))
    return found + other_bundles(folder)


def of_bundle(bundle: Path) -> Seeds:
    """What readers of a bundle and of its files begin with."""
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    manifest["files"] = {name: entry for name, entry in manifest["files"].items() if name in FILES}
    listed = [(len(FILES), json.dumps(manifest).encode())]
    prototypes = manifest["prototypes"]
    for name in manifest["files"]:
        data = (bundle / name).read_bytes()
        if name == "golden.json":
            golden = json.loads(data)
            for stream in golden.get("streams", []):
                del stream["samples"][3:]
            if "answers" in golden:
                del golden["answers"][3:]
            data = json.dumps(golden).encode()
        listed.append((FILES.index(name), GRAPH if name.endswith(".onnx") else data))
        if name.endswith(".safetensors"):
            yield "arrays", data
        if name == "pool.safetensors":
            yield "pool", bytes([prototypes]) + data
        if name.endswith(".onnx") and len(data) < 20_000:
            yield "graph", data
        if name == "rules.txt":
            yield "rules", data
            yield "targets", (bundle / "targets.cfg").read_bytes() + b"===\n" + data
        if name.endswith(".json"):
            yield "json", data[:600]
    yield "bundle", parts(*listed)
    yield "json", json.dumps(manifest["graphs"]).encode()[:900]


def of_runner() -> Seeds:
    """What its other readers begin with."""
    text = "\n".join(LINES).encode()
    yield from (("sources", text), ("sources", gzip.compress(text, mtime=0)), ("sources", b"\xef\xbb\xbfjump\r\n"))
    yield from (("text", text), ("text", "a\u2028b\u00a0c\x1fd\u0085".encode()))
    yield "json", b'{"a": [1, 2.5, "\\u00e9"]}'
    yield from (("gzip", gzip.compress(text, mtime=0)), ("gzip", gzip.compress(b"", mtime=0) + b"\0\0"))
    yield "gzip", gzip.compress(text, mtime=0) + gzip.compress(text * 9, mtime=0)
    sample = json.dumps({"source": ["a", "b"], "target": ["x"], "log_prob": -0.5, "index": 3})
    yield from (("line", b"\0" + sample.encode()), ("line", b"\1a b\tx"))
    written = (sample + "\n").encode() * 3
    journal = json.dumps(JOURNAL).encode()
    yield "run", parts((1, journal), (2, written), (3, json.dumps(JOURNAL["options"]).encode()))
    yield "run", parts((0, journal), (2, written))
    targets = b"ROOT => ##A b ##A\nROOT => ##A\nA => a ##A\nA => ##\n"
    yield "targets", targets + b"===\nNT_1 c ### NT_1 b NT_1\na ### a a b c\n"
    yield "rules", b"NT_2 a NT_1 ### NT_1 b NT_2 NT_1\na ### b\n"


def of_models(folder: Path) -> Seeds:
    """Models of each of KenLM's kinds, mixtures and sentences."""
    from tests.lm.test_native import KINDS

    for kind, name in zip(KINDS, language_models(folder), strict=True):
        yield "arpa" if kind == "arpa" else "binary", (folder / name).read_bytes()
    mixture = {"format": "compgen mixture of n-gram models 1", "models": [".", ".."], "weights": [[0.25, 0.75]]}
    yield "mixture", json.dumps(mixture).encode()
    yield "mixture", json.dumps(mixture | {"weights": [[0.5, 0.5]] * 9}).encode()
    text = "\n".join(SENTENCES).encode()
    yield from (("sentences", text), ("sentences", gzip.compress(text, mtime=0)), ("sentences", b"\xef\xbb\xbfa b\n\n"))


def write(out: Path, seeds: Seeds) -> None:
    """Write inputs, a folder a reader."""
    for number, (reader, data) in enumerate(seeds):
        (out / reader).mkdir(parents=True, exist_ok=True)
        (out / reader / f"seed-{number}").write_bytes(data)


def main() -> None:
    """Make them all; those of language models only where KenLM's programs are."""
    from compgen.errors import UserError

    out = Path(sys.argv[1])
    shutil.rmtree(out, ignore_errors=True)
    with tempfile.TemporaryDirectory() as name:
        for bundle in bundles(Path(name)):
            folder = out / "of" / bundle.name
            write(folder, of_bundle(bundle))
        for path in sorted((out / "of").rglob("seed-*")):
            (out / path.parent.name).mkdir(exist_ok=True)
            path.rename(out / path.parent.name / f"{path.parent.parent.name}-{path.name}")
        shutil.rmtree(out / "of")
        write(out, of_runner())
        with contextlib.suppress(UserError):
            write(out, of_models(Path(name)))
    print(sum(1 for path in out.rglob("*") if path.is_file()), "inputs in", out)


if __name__ == "__main__":
    main()
