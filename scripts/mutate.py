"""Runs the C++ runner on the bundle that ships and on broken copies of it: it must sample or refuse, and never crash.

    python scripts/mutate.py build/cpp-address,undefined/compgen-sample --bundles 1000

A copy has bytes changed, cut or repeated in one of its files. In half of the copies the manifest is mended to name the
changed file, so that what is behind the hashes is tried too. Exit codes other than 0 and 2 are crashes, and reported.
"""

import argparse
import collections
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import onnxruntime

BUNDLE = Path(__file__).parents[1] / "exported" / "recomb2"
LIBRARY = next((Path(onnxruntime.__file__).parent / "capi").glob("libonnxruntime.so*"))


BROKEN = ("manifest.json", "vocabulary.json", "pool.safetensors", "encoder.onnx", "step.onnx", "step.safetensors")


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Content with a few bytes changed, or cut short, or a stretch of it repeated."""
    way = rng.choice(("bytes", "bytes", "cut", "repeat", "digits"))
    at = rng.randrange(len(content)) if rng.random() < 0.5 else rng.randrange(min(len(content), 2000))
    if way == "cut":
        return content[:at]
    if way == "repeat":
        return content[:at] + content[at : at + rng.randrange(1, 64)] + content[at:]
    changed = bytearray(content)
    if way == "digits":  # numbers in JSON: sizes, offsets, shapes
        digits = [k for k, byte in enumerate(changed[:100_000]) if chr(byte).isdigit()]
        for k in rng.sample(digits, min(3, len(digits))):
            changed[k] = ord(rng.choice("0123456789-"))
    else:
        for _ in range(rng.randrange(1, 8)):
            changed[min(at + rng.randrange(16), len(changed) - 1)] = rng.randrange(256)
    return bytes(changed)


def break_one(bundle: Path, rng: random.Random) -> None:
    """Change one file of a bundle, and perhaps its entry in the manifest."""
    path = bundle / rng.choice(BROKEN)
    path.write_bytes(mutate(path.read_bytes(), rng))
    if path.name != "manifest.json" and rng.random() < 0.5:
        manifest = json.loads((bundle / "manifest.json").read_text())
        content = path.read_bytes()
        manifest["files"][path.name] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        (bundle / "manifest.json").write_text(json.dumps(manifest))


def main() -> None:
    """Try the whole bundle, then the broken ones."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner", type=Path)
    parser.add_argument("--bundles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    environment = os.environ | {"COMPGEN_ONNXRUNTIME": str(LIBRARY)}
    outcomes: collections.Counter[int] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.bundles + 1):
            bundle = Path(folder) / "bundle"
            shutil.copytree(BUNDLE, bundle)
            if number:
                break_one(bundle, random.Random(f"{options.seed}-{number}"))
            command = [options.runner, bundle, "--draws", "40" if number else "400", "--filter", "novel,unique,rare"]
            command += ["--step", "own" if number % 2 else "graph"]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", env=environment, check=False, timeout=300
            )
            outcomes[done.returncode] += 1
            expected = (0, 2) if number else (0,)
            if done.returncode not in expected or "Sanitizer" in done.stderr:
                sys.exit(f"mutation {number}: exit code {done.returncode}\n{done.stderr[-3000:]}")
            shutil.rmtree(bundle)
    print(f"{options.bundles:,} broken bundles: {outcomes[0] - 1:,} sampled, {outcomes[2]:,} refused, no crash")


if __name__ == "__main__":
    main()
