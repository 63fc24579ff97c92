"""Processes of a comparison: a script that compares may be without a guard around the call."""

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = """
from pathlib import Path
from compgen.comparison.engine import workers
print("read")
with workers(Path("."), "processes", 1) as pool:
    print(pool.pool.submit(len, "abc").result())
    print(__file__ == __import__("sys").argv[0])
"""


def test_a_script_is_not_read_again_by_its_workers(tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(SCRIPT)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, env=environment, check=False)
    assert (done.returncode, done.stdout) == (0, "read\n3\nTrue\n"), done.stderr
