"""Scripts: each can be started, so that what documents name can be run."""

import subprocess
import sys
from pathlib import Path

from tests.export.tiny import exported

SCRIPTS = Path(__file__).parents[1] / "scripts"
START = """
import runpy, sys, traceback
failed = False
for path in sys.argv[1:]:
    sys.path[0] = path.rpartition("/")[0]  # as where Python itself is given the file
    try:
        runpy.run_path(path, run_name="not main")
    except ModuleNotFoundError as error:
        if error.name.partition(".")[0] == "compgen":  # others are no part of every installation
            raise
    except Exception:
        failed = True
        print(path, traceback.format_exc())
sys.exit(failed)
"""


def test_all_import():
    files = sorted(str(path) for path in SCRIPTS.rglob("*.py"))
    assert len(files) > 30
    found = subprocess.run([sys.executable, "-c", START, *files], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-3000:] + found.stderr[-3000:]


def test_scripts_make_small_bundles_outside_of_tests(monkeypatch):
    monkeypatch.delenv("COMPGEN_TESTS")
    assert (exported.__wrapped__("predictor", hidden=4) / "manifest.json").is_file()
