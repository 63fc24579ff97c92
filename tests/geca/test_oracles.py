"""What the reference's program counts on real data (its logs, and runs of it), against ours."""

import os
from pathlib import Path

import pytest

from compgen.data.catalog import load
from compgen.data.downloads import MissingFileError
from compgen.data.examples import Dataset
from compgen.data.formats import read_dataset
from compgen.data.scan import interpret
from compgen.geca.augmenter import Geca
from compgen.geca.building import build
from compgen.geca.corpus import Corpus
from compgen.geca.options import GecaOptions

DATA = Path(os.environ["COMPGEN_DATA"])


def file(name):
    path = DATA / name
    if not path.exists():
        pytest.skip(f"{path} is not there: set COMPGEN_DATA to a folder that has it")
    return path


def counts(dataset, config):
    tables = build(Corpus.of(dataset, config.longest), config)
    return tables.fragments, tables.templates, tables.pairs


@pytest.mark.parametrize(
    ("name", "window", "expected", "new"),
    [
        ("kin/train.txt", 2, (42_714, 58_849, 59_778), 914),
        ("lao/train.txt.gz", 2, (94_277, 112_410, 115_835), 2650),
        ("tok/train.txt", 2, (14_554, 23_501, 24_348), 1460),
        ("na/train.txt", 1, (9_384, 20_430, 20_446), 1085),
    ],
)
def test_language_models(name, window, expected, new):
    """Tables to the last row; new examples vary with what is drawn."""
    config = GecaOptions(mode="reference", span=2, spans=1, limit=20, window=window, longest=98, variants=1)
    augmenter = Geca(config).fit(read_dataset(file(f"lm/{name}")))
    tables = augmenter.tables
    assert (tables.fragments, tables.templates, tables.pairs) == expected
    assert len(augmenter.sample(5000)) == pytest.approx(new, rel=0.02)


def test_english():
    parts = [read_dataset(file(f"lm/eng/{part}.txt.gz")) for part in ("val", "test")]
    config = GecaOptions(mode="reference", span=2, spans=1, limit=20, window=2, longest=98)
    assert counts(parts[0] + parts[1], config) == (506_854, 925_071, 926_137)


def known(name):
    try:
        return load(name)
    except MissingFileError as error:
        pytest.skip(str(error))


def test_cogs():
    dataset = known("cogs/lf").split("train")
    assert counts(dataset, GecaOptions(span=4, spans=1, limit=50, longest=998)) == (121_987, 416_627, 416_636)
    first = Dataset(dataset.frame.head(4000))
    assert counts(first, GecaOptions(span=4, spans=1, longest=998)) == (43_080, 444_191, 445_016)


def test_geoquery():
    """Tables to the last row. New examples: 785 to 800 in the reference's ten logs, of 592 templates and 223 fragments.

    The number of fragments differs: an example that several templates give counts for the first of them, which in the
    reference is one with short spans, and here any.
    """
    dataset = known("geo/logic-query")
    dataset = dataset.split("train") + dataset.split("dev")
    augmenter = Geca(mode="reference", span=4, spans=2, limit=50, longest=998).fit(dataset)
    tables = augmenter.tables
    assert (tables.fragments, tables.templates, tables.pairs) == (191_375, 282_433, 302_648)
    made = augmenter.sample(1000)
    assert 780 <= len(made) <= 805
    assert 560 <= made.frame["template"].n_unique() <= 640


@pytest.mark.parametrize(
    ("split", "fewest", "most", "fragments"),
    [("jump", 385, 420, (3, 6)), pytest.param("around_right", 325, 371, (3, 7), marks=pytest.mark.long)],
)
def test_scan(split, fewest, most, fragments):
    """As the published data were made: after three seeds the range of ten must be met, a twentieth wider."""
    dataset = load(f"scan/{split}").split("train").unique()
    for seed in range(3):
        rest = Dataset(dataset.frame.sample(dataset.frame.height - 600, seed=seed))  # the reference validates on 640
        augmenter = Geca(mode="reference", longest=38, reach=1000).fit(rest)
        made = augmenter.sample(1000, seed)
        assert 0.95 * fewest <= len(made) <= 1.05 * most
        assert fragments[0] <= made.frame["fragment"].n_unique() <= fragments[1]
        assert made.frame["template"].n_unique() == len(made)
        assert all(interpret(source) == target for source, target in made.pairs())


def test_every_example_made_of_scan_is_right():
    for split in ("jump", "around_right"):
        made = Geca().fit(load(f"scan/{split}").split("train")).sample(2000)
        assert len(made) == 2000
        assert all(interpret(source) == target for source, target in made.pairs())
