"""Tests run beside other work: one thread each keeps numeric libraries from fighting over cores.

What others publish is looked for in COMPGEN_DATA, or else beside the project; tests that need it skip where it is not.
"""

import os
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("COMPGEN_DATA", str(Path(__file__).parents[2] / "shared" / "data"))
