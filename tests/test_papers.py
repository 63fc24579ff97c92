"""The page that says where the papers are names what exists."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "papers.md"


def names():
    return sorted(set(re.findall(r"`([a-z_]+(?:\.\w+)+)`", PAGE.read_text("utf-8"))))


def test_the_page_names_something():
    assert len(names()) > 40


@pytest.mark.parametrize("name", names())
def test_what_the_page_names_exists(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(["compgen", *parts[:end]]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            assert hasattr(found, part) or part in getattr(found, "__annotations__", {}), f"{name}: no {part}"
            found = getattr(found, part, None)
        return
    raise AssertionError(f"{name}: no such module")


def test_every_equation_of_recombine_and_resample_is_there():
    text = PAGE.read_text("utf-8").split("## GECA")[0]
    found = set()
    for first, last in re.findall(r"[Ee]qs?\. (\d+)(?: (?:to|and) (\d+))?", text):
        found |= set(range(int(first), int(last or first) + 1))
    assert found == set(range(1, 35))
