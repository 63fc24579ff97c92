"""The bundle that ships works right after install, where there is no torch."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from compgen.api import Generator
from compgen.data.scan import interpret
from compgen.errors import DataError
from compgen.runtime.bundle import Bundle

EXPORTED = Path(__file__).parents[2] / "exported"
# An environment without torch: whatever asks for it, or for what training alone needs, is told it is not there.
WITHOUT_TORCH = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split('.')[0] in ('torch', 'onnx', 'onnxscript'):
            raise ModuleNotFoundError(f'No module named {name!r}', name=name)
sys.meta_path.insert(0, Absent())
sys.argv = ['compgen', *sys.argv[1:]]
from compgen.cli.main import run
run()
"""


def without_torch(*words, **options):
    command = [sys.executable, "-c", WITHOUT_TORCH, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)


def test_shipped_bundles_are_whole_small_and_verified():
    bundles = [path for path in EXPORTED.iterdir() if path.is_dir()]
    assert "recomb2" in {path.name for path in bundles}
    for path in bundles:
        manifest = Bundle.load(path).manifest
        assert sum(file.stat().st_size for file in path.iterdir()) <= 8_000_000
        assert manifest.parity
        assert all(row.differing == row.explained for row in manifest.parity)
        assert all(row.differing == 0 for row in manifest.parity if row.dtype == "float64")


def test_sampling_the_shipped_bundle_needs_no_torch(tmp_path):
    out = tmp_path / "samples.jsonl"
    options = ["-n", 40, "--filter", "novel,unique,rare", "--seed", 5, "-o", out]
    done = without_torch("sample", "recomb2", *options, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    samples = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(samples) == 40
    right = 0
    for sample in samples:
        assert "jump" in sample["source"] + sample["target"] or "I_JUMP" in sample["target"]  # what is rare there
        try:
            right += interpret(sample["source"]) == sample["target"]
        except DataError:
            continue
    assert right > 20  # the paper's generator: 74%


@pytest.mark.parametrize(
    "words",
    [
        ["train", "recombine", "scan/jump", "-o", "y.pt"],
        ["augment", "recombine", "scan/jump", "-o", "y.tsv"],
        ["export", "x.pt"],
        ["sample", "x.pt", "-n", "1"],
    ],
)
def test_what_needs_torch_says_so(words, tmp_path):
    (tmp_path / "x.pt").write_bytes(b"")
    done = without_torch(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert "pip install 'compgen[train]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_draw_alone_has_the_very_probability_it_has_among_others():
    # In networks of this size ONNX Runtime multiplies one row otherwise than many; the last bit shows it.
    generator = Generator.load("recomb2")
    together = [(draw.tokens, draw.log_prob) for draw in generator.draw(stop=60)]
    alone = [(draw.tokens, draw.log_prob) for i in range(60) for draw in generator.draw(start=i, stop=i + 1)]
    assert alone == together
