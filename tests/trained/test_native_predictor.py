"""`Predictor.load(..., "native")` answers by the C++ runner as ONNX Runtime does, unknown words included."""

import numpy as np
import pytest

from compgen.api import Predictor, export_bundle
from compgen.data.examples import Dataset
from compgen.data.vocabulary import SPECIALS
from compgen.errors import DataError, UserError
from compgen.runtime.bundle import Bundle
from compgen.trained.committee import Committee
from tests.cli.shell import compgen, refused
from tests.export.test_transformer import saved
from tests.export.tiny import exported

pytestmark = pytest.mark.usefixtures("built")


@pytest.fixture(scope="module")
def transformer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("transformer")
    export_bundle(saved(folder / "m.pt", 39, spread=1.0, size=16), folder / "bundle", batches={7: 20}, quiet=True)
    return folder / "bundle"


@pytest.fixture(params=["transformer", "recurrent"])
def bundle(request, transformer):
    return transformer if request.param == "transformer" else exported("predictor", initial="encoder")


def sources(bundle, count=40):
    """Sources with unknown words here and there."""
    rng, tokens = np.random.default_rng(1), [*Bundle.load(bundle).vocabulary[len(SPECIALS) :], "never", "seen"]
    return [rng.choice(tokens, rng.integers(1, 9)).tolist() for _ in range(count)]


@pytest.mark.parametrize(("count", "beam"), [(1, 1), (1, 4), (3, None)])
def test_answers_are_those_of_onnx_runtime(bundle, count, beam):
    some = sources(bundle)
    expected, found = (
        Predictor.load(bundle, runtime, threads=2).best(some, count, beam, batch=7, unknown=True)
        for runtime in ("onnx", "native")
    )
    assert [[target for target, _ in ranked] for ranked in found] == [[t for t, _ in ranked] for ranked in expected]
    scores = [[score for _, score in ranked] for ranked in expected]
    assert [score for ranked in found for _, score in ranked] == pytest.approx(np.concatenate(scores), abs=2e-4)
    assert len({tuple(ranked[0][0]) for ranked in found}) > 3


def test_what_it_does_not_know_is_told_as_elsewhere(transformer):
    loaded = Predictor.load(transformer, "native")
    assert loaded.remarks([["never", "a"]]) == Predictor.load(transformer).remarks([["never", "a"]])
    with pytest.raises(DataError, match="never"):
        loaded.predict([["never", "a"]])
    assert loaded.predict([]) == []


def test_what_the_runner_cannot_do_is_refused(transformer, tmp_path, monkeypatch):
    loaded = Predictor.load(transformer, "native")
    with pytest.raises(UserError, match="leave out --runtime native"):
        loaded.losses(Dataset.from_pairs([(["a"], ["b"])]))
    with pytest.raises(UserError, match="leave out --runtime native"):
        Committee([loaded, loaded])  # before anything is decoded
    with pytest.raises(UserError, match=r"the C\+\+ runner runs on the CPU"):
        Predictor.load(transformer, "native", provider="cuda")
    with pytest.raises(UserError, match="export it first for --runtime native"):
        Predictor.load(saved(tmp_path / "m.pt"), "native")
    monkeypatch.setenv("COMPGEN_RUNNER", str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match=r"no C\+\+ runner at COMPGEN_RUNNER="):
        Predictor.load(transformer, "native")


def test_the_commands_predict_and_evaluate_take_it(transformer, tmp_path):
    (tmp_path / "in.txt").write_text("a b c\n\nd d\n")
    written = [compgen("predict", transformer, tmp_path / "in.txt", "--runtime", name) for name in ("onnx", "native")]
    assert written[0].stdout == written[1].stdout and written[1].returncode == 0
    (tmp_path / "pairs.tsv").write_text("a b\tc\nd\ta a\n")
    scored = [compgen("evaluate", transformer, tmp_path / "pairs.tsv", "--json", "--runtime", name).stdout
              for name in ("onnx", "native")]  # fmt: skip
    assert scored[0] == scored[1] and '"examples":2' in scored[1].replace(" ", "")
    refused(compgen("predict", transformer, tmp_path / "in.txt", "--runtime", "cpp"), "expected one of onnx")
