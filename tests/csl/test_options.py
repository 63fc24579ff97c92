"""Settings of CSL out of range."""

import math
import re

import pytest

from compgen.csl.options import CslOptions
from compgen.errors import ConfigError


@pytest.mark.parametrize(
    ("table", "values", "message"),
    [
        (
            "induction",
            {"max_nonterminals": 0},
            "max_nonterminals: found 0, expected a number greater than or equal to 1",
        ),
        (
            "induction",
            {"max_nonterminals": 100},
            "max_nonterminals: found 100, expected a number less",
        ),
        ("induction", {"partitions": 0}, "partitions: found 0"),
        ("induction", {"steps": -1}, "steps: found -1"),
        ("induction", {"terminal_size": -1}, "terminal_size: found -1"),
        ("induction", {"target_given_source": -0.5}, "target_given_source: found -0.5"),
        ("induction", {"source_given_target": math.nan}, "source_given_target: found nan, expected a finite number"),
        ("induction", {"terminal_size": math.inf}, "terminal_size: found inf"),
        ("training", {"states": 0}, "states: found 0"),
        ("training", {"starts": 0}, "starts: found 0"),
        ("training", {"rate": 0}, "rate: found 0"),
        ("training", {"rate": 1e38}, "rate: found 1e+38"),  # PyTorch's Adam has no such number
        ("training", {"stats": 1}, "stats: no such setting; did you mean training.states?"),
        ("drawing", {"longest": 0}, "longest: found 0"),
        ("drawing", {"temperature": 0.0}, "temperature: found 0.0"),
        ("drawing", {"temperature": math.inf}, "temperature: found inf"),
        ("drawing", {"bias": math.nan}, "bias: found nan"),
        ("drawing", {"depth": {"least": -1}}, "depth.least: found -1"),
        ("drawing", {"depth": {"most": 10**9}}, "depth.most: found 1000000000"),
        ("drawing", {"depth": {"least": 3, "most": 2}}, "depth: found {'least': 3, 'most': 2}, expected least <= most"),
    ],
)
def test_what_is_out_of_range(table, values, message):
    with pytest.raises(ConfigError, match=re.escape(f"csl: {table}.{message}")):
        CslOptions(**{table: values})
