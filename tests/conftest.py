"""Tests run beside other work: one thread each keeps numeric libraries from fighting over cores."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
