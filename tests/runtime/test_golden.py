"""Golden draws are read as strictly as the rest of a bundle."""

import json
import shutil

import pytest

from compgen.errors import BundleError
from compgen.runtime.bundle import Bundle
from compgen.runtime.golden import golden_of
from tests.export.tiny import exported
from tests.runtime.altered import sign


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda golden: golden["streams"].clear(), "expected draws of a generator"),
        (
            lambda golden: golden.update(answers=[{"source": [5], "target": [], "finished": True, "log_prob": 0.0}]),
            "dra",
        ),
        (lambda golden: golden["streams"][0].update(seed=-1), "streams.0.seed"),
        (lambda golden: golden["streams"][0].update(seed=2**64), "streams.0.seed"),
        (lambda golden: golden["streams"][0].update(temperature=[0.4]), "streams.0.temperature"),
        (lambda golden: golden["streams"][0].update(temperature=[0.4, 0, 0]), "streams.0.temperature"),
        (lambda golden: golden["streams"][0]["samples"].clear(), "samples"),
        (lambda golden: golden["streams"][0]["samples"][0]["tokens"].append(99), "outside the vocabulary"),
        (lambda golden: golden["streams"][0]["samples"][0]["tokens"].extend([5] * 20), "more than 9 tokens"),
        (lambda golden: golden["streams"][0]["samples"][0]["prototypes"].append(99), "outside the pool"),
        (lambda golden: golden["streams"][0]["samples"].reverse(), "do not ascend"),
        (lambda golden: golden["streams"][0]["samples"][-1].update(index=2**50), "too far apart"),
        (lambda golden: golden["streams"][0]["samples"][0].update(log_prob="0"), "log_prob"),
        (lambda golden: golden.update(more=1), "more"),
    ],
)
def test_golden_draws_that_are_none(tmp_path, change, says):
    folder = shutil.copytree(exported(), tmp_path / "mine")
    golden = json.loads((folder / "golden.json").read_text())
    change(golden)
    sign(folder, "golden.json", json.dumps(golden).encode())
    with pytest.raises(BundleError, match=rf"golden\.json: .*{says}"):
        golden_of(Bundle.load(folder))


def test_a_source_so_long_that_it_takes_all_memory_is_refused(tmp_path):
    folder = shutil.copytree(exported("predictor"), tmp_path / "mine")
    golden = json.loads((folder / "golden.json").read_text())
    for length, accepted in ((64, True), (65, False)):
        golden["answers"][0]["source"] = [5] * length
        sign(folder, "golden.json", json.dumps(golden).encode())
        if accepted:
            golden_of(Bundle.load(folder))
        else:
            with pytest.raises(BundleError, match=r"golden\.json: answers\.0\.source: .*at most 64"):
                golden_of(Bundle.load(folder))


@pytest.mark.parametrize("kind", ["generator", "predictor"])
def test_those_of_an_export_are_read(kind):
    golden = golden_of(Bundle.load(exported(kind)))
    assert bool(golden.streams) == (kind == "generator") and bool(golden.answers) == (kind == "predictor")


def test_streams_may_skip_addresses_but_not_many(tmp_path):
    folder = shutil.copytree(exported(), tmp_path / "mine")
    golden = json.loads((folder / "golden.json").read_text())
    samples = golden["streams"][1]["samples"]
    most = samples[0]["index"] + 16 * len(samples)
    for index, accepted in ((most, True), (most + 1, False)):
        samples[-1]["index"] = index
        sign(folder, "golden.json", json.dumps(golden).encode())
        if accepted:
            golden_of(Bundle.load(folder))
        else:
            with pytest.raises(BundleError, match="too far apart"):
                golden_of(Bundle.load(folder))


def test_a_sequence_may_be_as_long_as_the_limit(tmp_path):
    folder = shutil.copytree(exported(), tmp_path / "mine")
    golden = json.loads((folder / "golden.json").read_text())
    golden["streams"][0]["samples"][0]["tokens"] = [5] * 9
    sign(folder, "golden.json", json.dumps(golden).encode())
    golden_of(Bundle.load(folder))
