"""Imports all of compgen and what it uses, for the process that calls of the command line are forks of."""

import contextlib
import importlib
import pkgutil

import compgen

USED = ("jinja2", "pydantic", "rapidfuzz.distance", "rich.console", "rich.table", "safetensors", "scipy.stats")
OURS = [module.name for module in pkgutil.walk_packages(compgen.__path__, "compgen.") if "__main__" not in module.name]

for name in (*OURS, *USED):
    with contextlib.suppress(ImportError):  # of an extra
        importlib.import_module(name)
