"""Several processes of one machine, set against one."""

import pytest

from compgen.errors import ExhaustedError, UserError
from compgen.geca import building, tables
from compgen.geca.augmenter import Geca
from compgen.geca.corpus import Corpus
from compgen.geca.options import GecaOptions
from compgen.geca.spans import Spans
from tests.geca.test_augmenter import GRAMMAR, pairs
from tests.geca.test_shards import MADE

FACTS = ("pairs", "templates", "fragments", "left_out_as_too_long")


def fitted(**options):
    return Geca(**options).fit(pairs(*GRAMMAR))


@pytest.mark.parametrize(
    ("workers", "options", "count"),
    [(2, {}, 25), pytest.param(3, {"mode": "reference", "span": 2, "window": 1}, None, marks=pytest.mark.long)],
)
def test_several_processes_make_what_one_makes_and_explain_it(workers, options, count):
    alone, together = fitted(**options), fitted(**options, workers=workers)
    assert (alone.tables.processes, together.tables.processes) == (1, workers)
    expected, found = (method.sample(count, 3) for method in (alone, together))
    assert found.frame.select(MADE).rows() == expected.frame.select(MADE).rows()
    assert {name: together.report()[name] for name in FACTS} == {name: alone.report()[name] for name in FACTS}
    for sample in found.frame.head(5).iter_rows(named=True):
        assert together.explain(sample) == alone.explain(sample)


def test_a_text_whose_spans_alone_take_more_memory_is_refused_before_they_are_found(monkeypatch):
    monkeypatch.setattr(tables, "FINDING", 2**28)
    monkeypatch.setattr(Spans, "of", None)
    tokens = sum(len(source) + len(target) + 3 for source, target in pairs(*GRAMMAR).pairs())
    with pytest.raises(
        UserError, match=rf"4\.00 GiB of memory is too little here: expected {tokens / 4:.2f} GiB or more"
    ):
        fitted()


def test_rows_that_a_share_of_the_memory_cannot_hold_are_left_to_one_process(monkeypatch):
    expected = fitted().sample(25, 3)
    monkeypatch.setattr(building, "rows_held", lambda *_: 3)
    method = fitted(workers=2)
    assert method.tables.processes == 1
    assert method.sample(25, 3).pairs() == expected.pairs()


def test_errors_are_those_of_one_process():
    for data, options, error in (
        (pairs("a b c -> d e f"), {}, "no template has two fragments"),
        (pairs("a -> A", "b -> B"), {"memory": 0.01}, r"expected 0\.\d\d GiB or more"),
    ):
        with pytest.raises((ExhaustedError, UserError), match=error):
            Geca(**options, workers=2).fit(data)
    with pytest.raises(UserError, match="--reach looks at all templates of a fragment, which takes one process"):
        fitted(workers=2, reach=5)
    with pytest.raises(UserError, match="--shard is done by one process"):
        fitted(workers=2, shard="1/2")


def test_there_are_as_many_processes_as_cores_rows_and_memory_allow(monkeypatch):
    corpus = Corpus.of(pairs(*GRAMMAR), None)
    spans = Spans.of(corpus, 1, None)
    rows = fitted().tables.pairs

    def processes(each, cores=4, **options):
        monkeypatch.setattr(building, "EACH", each)
        monkeypatch.setattr(building, "cores", lambda: cores)
        return building._processes(corpus, spans, GecaOptions(**options))

    assert processes(rows) == 1
    assert processes(rows // 2) == 2
    assert processes(1) == 4
    assert processes(1, cores=1) == 1
    assert processes(1, reach=9) == 1
    assert 1 < processes(1, memory=1.5) < 4  # the three gigabytes of four shares are not there
    assert processes(rows, workers=3) == 3
