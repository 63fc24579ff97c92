import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import compgen
from compgen.data.examples import Dataset
from compgen.errors import UserError
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.install import program
from compgen.lm.measuring import measure, rescore
from compgen.lm.mixture import Mixture, check_vocabularies, perplexity, tuned
from compgen.lm.neural import NeuralModel
from compgen.lm.scoring import score_all, words_of
from compgen.sampling import native
from tests.lm.conftest import LINES

torch = pytest.importorskip("torch", reason="training needs torch, the extra [train]")

TINY = ["network.hidden=16", "network.embedding=8", "network.output=8", "optimisation.steps=30", "held_out=0.0"]


@pytest.fixture(scope="module")
def recurrent(tmp_path_factory):
    out = tmp_path_factory.mktemp("recurrent") / "lstm.pt"
    data = Dataset.from_pairs((line.split(), []) for line in LINES if line)
    compgen.train_generator(data, "rnnlm_small", out, TINY, quiet=True)
    return out


@pytest.fixture(scope="module")
def bundle(recurrent, tmp_path_factory):
    out = tmp_path_factory.mktemp("exported") / "bundle"
    compgen.export_bundle(recurrent, out, batches={8: 20}, quiet=True)
    return out


@pytest.fixture(scope="module")
def scorer():
    """The environment in which compgen-ngram finds what runs recurrent models, or the test is skipped."""
    program = native.BUILT.with_name("compgen-score")
    if not program.is_file():
        pytest.skip(f"no C++ runner at {program}: build it with `make runner`")
    return native.environment() | {"COMPGEN_SCORER": str(program)}


def test_it_is_trained_on_each_sentence_as_often_as_the_text_has_it(tmp_path):
    """Long ones, too: what a text has, and how often, is what a language model has to learn."""
    from compgen.trained.checkpoint import Checkpoint

    long = " ".join("ab"[place % 2] for place in range(90))
    data = Dataset.from_pairs((line.split(), []) for line in ["c d", "a b", "c d", long, "c d"])
    rows = {}
    for more in ([], ["deduplicate=true"]):
        compgen.train_generator(data, "rnnlm_small", tmp_path / "m.pt", [*TINY, *more], quiet=True)
        trained_on = Checkpoint.load(tmp_path / "m.pt").trained_on
        rows[bool(more)] = trained_on["examples"], trained_on["neighborhood_rows"]
    assert rows == {False: (3, 5), True: (3, 3)}


def test_scores_are_the_network_s(recurrent):
    from compgen.data.vocabulary import BOS_ID, EOS_ID, SEP_ID
    from compgen.trained.checkpoint import Checkpoint

    checkpoint = Checkpoint.load(recurrent)
    sentences = [line.split() for line in LINES] * 30  # more than a batch, of all lengths
    log10, known = NeuralModel(recurrent).score(sentences)
    assert len(log10) == len(known) == sum(len(words) + 1 for words in sentences) and known.all()
    expected = []
    for words in sentences[: len(LINES)]:
        ids = torch.tensor([[BOS_ID, *checkpoint.vocabulary.encode(words), SEP_ID, EOS_ID]])
        with torch.no_grad():
            each = checkpoint.network.log_likelihood(ids, torch.zeros((1, 0, 0), dtype=torch.int64))[0].numpy()
        expected += [*each[:-2], each[-2] + each[-1]]
    assert log10[: len(expected)] == pytest.approx(np.array(expected) / np.log(10), abs=1e-4)
    assert log10[: len(expected)].tolist() == pytest.approx(log10[len(expected) : 2 * len(expected)].tolist(), abs=1e-5)


def test_unknown_words_have_the_probability_of_the_unknown_one(recurrent):
    log10, known = NeuralModel(recurrent).score([["the", "zebra"], ["the", "yak"]])
    assert known.tolist() == [1, 0, 1] * 2
    assert log10[:3] == pytest.approx(log10[3:], abs=1e-6)


def test_it_mixes_with_n_gram_models(recurrent, arpa, tmp_path):
    check_vocabularies([arpa, recurrent])
    assert words_of(arpa) == words_of(recurrent)
    asked = write_sentences([["the", "cat", "ran"], ["a", "dog", "sat"]], tmp_path / "asked.txt")
    for models in ([arpa, recurrent], [recurrent, arpa]):
        scores = score_all(models, asked)
        mixture = tuned(models, scores)
        each = [
            perplexity(Mixture((model,), np.ones((1, 1))), scores.of([i])).including for i, model in enumerate(models)
        ]
        assert perplexity(mixture, scores).including <= min(each) + 1e-6
        mixture.save(tmp_path / "mix.json")
        again = Mixture.open(tmp_path / "mix.json")
        assert perplexity(again, score_all(again.models, asked)).tokens == 8
    assert score_all([recurrent], asked).lengths.tolist() == [4, 4]


def test_a_bundle_says_what_its_checkpoint_says(recurrent, bundle):
    sentences = [["the", "cat", "ran"], ["a", "zebra"]]
    exported, checkpoint = (NeuralModel(path).score(sentences)[0] for path in (bundle, recurrent))
    assert exported == pytest.approx(checkpoint, abs=1e-4)


def ngram(environment, *words):
    command = [str(program("compgen-ngram")), *map(str, words)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("places", [(0, 1), (1, 0), (1,), (0, 1, 1, 0)])
@pytest.mark.parametrize("classes", [1, 9])
def test_mixtures_have_the_same_digits_without_python(places, classes, bundle, arpa, scorer, tmp_path):
    weights = np.random.default_rng(len(places)).dirichlet(np.ones(len(places)), classes)
    mixture = Mixture(tuple((arpa, bundle)[place] for place in places), weights)
    mixture.save(tmp_path / "mix.json")
    lines = [
        *LINES,
        "the zebra sat",
        "",
        " \t",
        "→ the <x>",
        *(" ".join(LINES[k % 5].split()[: k % 7]) for k in range(300)),
    ]
    text = tmp_path / "text.txt"
    text.write_text("\n".join(lines), encoding="utf-8")
    expected = measure(mixture, text, tokens=tmp_path / "python.tsv")
    words = ["perplexity", tmp_path / "mix.json", text, "--tokens", tmp_path / "native.tsv", "--json"]
    for threads in (1, 3):
        done = ngram(scorer, *words, "--threads", threads)
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["perplexity"] == pytest.approx(expected.including, rel=1e-9)
        assert found["perplexity_without_unknown"] == pytest.approx(expected.excluding, rel=1e-9)
        assert (tmp_path / "native.tsv").read_text() == (tmp_path / "python.tsv").read_text()
    rows = [f"{row.log_prob:.6f}\t{row.tokens}\t{row.unknown}" for row in rescore(mixture, text)]
    assert ngram(scorer, "rescore", tmp_path / "mix.json", text).stdout.splitlines() == rows
    (tmp_path / "one.txt").write_text("the cat\n")
    one = ngram(scorer, "perplexity", tmp_path / "mix.json", tmp_path / "one.txt", "--json")
    assert json.loads(one.stdout)["perplexity"] == pytest.approx(
        measure(mixture, tmp_path / "one.txt").including, rel=1e-9
    )


@pytest.mark.parametrize("order", [1, -1])
def test_a_recurrent_model_of_other_words_is_not_mixed(order, bundle, scorer, tmp_path):
    text = write_sentences([line.replace("cat", "zebra").split() for line in LINES], tmp_path / "text.txt")
    estimate([text], tmp_path / "other.arpa", Estimation(order=2, fallback=True))
    models = [bundle, tmp_path / "other.arpa"][::order]
    Mixture(tuple(models), np.array([[0.5, 0.5]])).save(tmp_path / "mix.json")
    with pytest.raises(UserError, match=r"^mixed vocabularies: \S+ knows 12 words, \S+ 12 or others") as error:
        measure(tmp_path / "mix.json", text)
    done = ngram(scorer, "perplexity", tmp_path / "mix.json", text)
    assert (done.returncode, done.stderr) == (2, f"error: {error.value}\n")


def test_what_is_no_language_model_is_refused_without_python(bundle, scorer, tmp_path):
    text = write_sentences([["the", "cat"]], tmp_path / "text.txt")
    pairs = Dataset.from_pairs([(["a"], ["A"]), (["b"], ["B"])])
    compgen.train_generator(pairs, "rnnlm_small", tmp_path / "p.pt", TINY, quiet=True)
    compgen.export_bundle(tmp_path / "p.pt", tmp_path / "pairs", batches={8: 20}, quiet=True)
    shutil.copytree(bundle, tmp_path / "cut")
    (tmp_path / "cut" / "vocabulary.json").write_text("[]")
    (tmp_path / "pairs").rename(tmp_path / "paarungen-für-später")
    for model in (tmp_path / "paarungen-für-später", Path(__file__).parents[2] / "exported" / "recomb2"):
        with pytest.raises(UserError) as error:
            NeuralModel(model)
        done = ngram(scorer, "perplexity", model, text)
        assert (done.returncode, done.stderr) == (2, f"error: {error.value}\n")
    done = ngram(scorer, "perplexity", tmp_path / "cut", text)
    assert done.returncode == 2 and "vocabulary.json" in done.stderr and done.stderr.endswith("cut short or altered\n")
    done = ngram(scorer | {"COMPGEN_SCORER": "/gone"}, "perplexity", bundle, text)
    assert (done.returncode, done.stderr) == (2, "error: /gone: cannot be run\n")


def test_words_end_where_the_program_ends_them(recurrent, arpa, tmp_path):
    """KenLM's blanks end words, blank lines are none, and symbols of the network's own are words it does not know."""
    odd = "\ufeff\n \nthe\u00a0cat sat → on\u3000the\tmat\r\n\nthe  cat"
    (tmp_path / "odd.txt").write_text(odd, encoding="utf-8", newline="")
    found = score_all([arpa, recurrent], tmp_path / "odd.txt")
    assert found.lengths.tolist() == [6, 3]
    assert (found.matched[0] > 0).tolist() == (found.matched[1] > 0).tolist()


def test_what_is_no_language_model_is_refused(recurrent, text, tmp_path):
    with pytest.raises(UserError, match="name one first"):
        tuned([recurrent], score_all([recurrent], text), by_history=True)
    with pytest.raises(UserError, match="give it as a file"):
        score_all([recurrent], "-")
    with pytest.raises(UserError, match="a generator with prototypes"):
        NeuralModel(Path("recomb2"))
    compgen.train_generator(
        Dataset.from_pairs([(["a"], ["A"]), (["b"], ["B"])]), "rnnlm_small", tmp_path / "p.pt", TINY
    )
    with pytest.raises(UserError, match="a generator of pairs"):
        NeuralModel(tmp_path / "p.pt")
