"""The record beside an output."""

import math

from compgen.record import record_of, write_record
from compgen.runtime.manifest import strict_json
from compgen.training.config import OptimisationConfig


def test_a_record_is_strict_json_and_settings_are_read_back(tmp_path):
    settings = OptimisationConfig(clip=math.inf)
    write_record(tmp_path / "out.jsonl", {"options": settings.model_dump()})
    read = strict_json(record_of(tmp_path / "out.jsonl").read_bytes())
    assert read["options"]["clip"] == "Infinity" and OptimisationConfig(**read["options"]) == settings
