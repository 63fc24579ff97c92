import gzip
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from compgen.data.catalog import load
from compgen.errors import DataError, UserError
from compgen.lm import estimation
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.mixture import Mixture, perplexity
from compgen.lm.scoring import score_all, words_of
from tests.lm.naive import Arpa

DATA = Path(os.environ["COMPGEN_DATA"]) / "lm"

# n-grams and discounts of the published runs' logs, and perplexities. Theirs come from sums of 32-bit floats over a
# sentence, ours from 64-bit ones: kin's test text differs by one in the last digit logged.
LOGGED = {
    "kin": (
        "train.txt",
        [13_816, 35_133, 44_412, 47_731, 48_194],
        [(0.7263, 1.2362, 1.6102), (0.8810, 1.3568, 1.3829), (0.9368, 1.5117, 1.5854), (0.9672, 1.5556, 1.1135)],
        {"val": 258.7819, "test": 240.5887},
    ),
    "lao": (
        "train.txt.gz",
        [33_856, 68_792, 80_473, 80_466, 75_689],
        [(0.8393, 1.1549, 1.4262), (0.9216, 1.2504, 1.7564), (0.9595, 1.2883, 1.7270), (0.9772, 1.2259, 1.9748)],
        {"val": 465.7086, "test": 315.4921},
    ),
    "na": (
        "train.txt",
        [1_068, 9_181, 18_780, 22_760, 23_216],
        [(0.5753, 1.0825, 1.5481), (0.7004, 1.1044, 1.5721), (0.8291, 1.2617, 1.7824), (0.9159, 1.4410, 1.5346)],
        {"val": 46.6346, "test": 45.3789},
    ),
    "tok": (
        "train.txt",
        [3_293, 12_471, 18_761, 20_845, 20_874],
        [(0.5827, 1.3932, 1.8395), (0.7757, 1.3303, 1.5416), (0.8753, 1.3902, 1.7665), (0.9346, 1.5367, 1.4071)],
        {"val": 48.8453},
    ),
}


@pytest.mark.parametrize("language", LOGGED)
def test_published_models(language, tmp_path):
    name, ngrams, discounts, perplexities = LOGGED[language]
    if not (DATA / language / name).exists():
        pytest.skip(f"{DATA / language / name} is not there: set COMPGEN_DATA to a folder that has it")
    model = tmp_path / "base.bin"
    found = estimate([DATA / language / name], model)
    assert found["ngrams"] == ngrams
    for got, logged in zip(found["discounts"], discounts, strict=False):
        assert got == pytest.approx(logged, abs=6e-5)
    for part, expected in perplexities.items():
        scores = score_all([model], DATA / language / f"{part}.txt")
        assert perplexity(Mixture.open(model), scores).including == pytest.approx(expected, abs=1e-4)


def test_probabilities_sum_to_one(arpa):
    model = Arpa(arpa)
    words = [key[0] for key in model.probabilities if len(key) == 1 and key != ("<s>",)]
    for history in ([], ["the"], ["<s>", "the"], ["the", "zebra"], ["sat", "on"]):
        assert sum(10 ** model.score(history, word) for word in words) == pytest.approx(1, abs=1e-4)


def test_several_texts_are_one(text, arpa, tmp_path):
    lines = text.read_text().splitlines(keepends=True)
    parts = [tmp_path / "a.txt", tmp_path / "b.txt"]
    parts[0].write_text("".join(lines[:3]).rstrip("\n"))  # a last line without an end is a line
    parts[1].write_text("".join(lines[3:]))
    found = estimate(parts, tmp_path / "model.arpa", Estimation(order=3, fallback=True))
    assert (tmp_path / "model.arpa").read_text() == arpa.read_text()
    assert (found["sentences"], found["tokens"]) == (6, sum(len(line.split()) for line in lines))


def test_texts_are_read_as_all_data_are(text, arpa, tmp_path):
    """Blank lines are no sentences, KenLM's blanks end words, and a byte order mark is no letter."""
    odd = "\ufeff" + text.read_text().replace("the cat", "\tthe\t\rcat").replace("\n", "\n \r\n")
    (tmp_path / "odd.txt").write_text(odd, encoding="utf-8", newline="")
    estimate([tmp_path / "odd.txt"], tmp_path / "model.arpa", Estimation(order=3, fallback=True))
    assert (tmp_path / "model.arpa").read_text() == arpa.read_text()
    assert score_all([arpa], tmp_path / "odd.txt").log10.tolist() == score_all([arpa], text).log10.tolist()


def test_other_white_space_is_part_of_a_word(text, tmp_path):
    """Counting, training text and scores have the same words, as KenLM has them."""
    odd = ["a\u00a0b c", "a b\u3000c", "\u2028 a\u0085"]
    path = write_sentences((line.split(" ") for line in odd), tmp_path / "odd.txt")
    assert [" ".join(source) for source, _ in load(str(path)).pairs()] == odd
    found = estimate([path, text], tmp_path / "model.arpa", Estimation(order=2, fallback=True))
    assert (found["sentences"], found["tokens"]) == (3 + 6, 6 + sum(len(line.split()) for line in text.open()))
    assert {"a\u00a0b", "b\u3000c", "\u2028", "a\u0085"} <= words_of(tmp_path / "model.arpa")


@pytest.mark.parametrize("token", ["new york", "", "a\tb", "a\n"])
def test_a_token_that_is_not_one_word_is_refused(token, tmp_path):
    with pytest.raises(DataError, match=re.escape(f"x.txt: a text cannot hold the token {token!r}")):
        write_sentences([["fine"], ["in", token]], tmp_path / "x.txt")
    assert not list(tmp_path.iterdir())


def test_orders_that_fell_back_are_those_with_fixed_discounts(text, tmp_path):
    lines = text.read_text()
    (tmp_path / "often.txt").write_text(lines * 8)  # no n-gram stands once
    for path, order in ((text, 4), (tmp_path / "often.txt", 3)):
        found = estimate([path], tmp_path / "model.bin", Estimation(order=order, fallback=True))
        fixed = [place for place, row in enumerate(found["discounts"], start=1) if row == [0.5, 1.0, 1.5]]
        assert found["fallback_orders"] == fixed and fixed
    varied = [[f"w{number}" for number in row] for row in np.random.default_rng(0).zipf(1.5, (2000, 5))]
    found = estimate([write_sentences(varied, tmp_path / "varied.txt")], tmp_path / "model.bin", Estimation(order=2))
    assert found["fallback_orders"] == []


def test_gzip_and_a_single_letter_are_texts(text, arpa, tmp_path):
    (tmp_path / "text.gz").write_bytes(gzip.compress(text.read_bytes()))
    (tmp_path / "one.txt").write_text("a")
    estimate([tmp_path / "text.gz"], tmp_path / "model.arpa", Estimation(order=3, fallback=True))
    assert (tmp_path / "model.arpa").read_text() == arpa.read_text()
    found = estimate([tmp_path / "one.txt", text], tmp_path / "both.arpa", Estimation(order=2, fallback=True))
    assert found["sentences"] == 7


def test_folders_need_not_have_names_in_utf_8(text, tmp_path):
    """KenLM's programs say the names of their files."""
    folder = tmp_path / os.fsdecode(b"nu\xff")
    folder.mkdir()
    assert estimate([text], folder / "x.bin", Estimation(order=2, fallback=True), folder)["ngrams"]
    assert [path.name for path in folder.iterdir()] == ["x.bin"]


def test_pruning_leaves_rare_n_grams_out(text, tmp_path):
    found = estimate([text], tmp_path / "pruned.arpa", Estimation(order=3, fallback=True, prune=(0, 1, 1)))
    whole = Arpa(tmp_path / "pruned.arpa")
    assert ("on", "the") in whole.probabilities and ("was", "on") not in whole.probabilities
    assert found["prune"] == (0, 1, 1)


def test_a_text_that_is_too_small_is_explained(text, tmp_path):
    out = tmp_path / "x.bin"
    reason = r"KenLM: Could not calculate .* for \d-grams with adjusted count \d because .*count \d\)"
    with pytest.raises(DataError, match=rf"text\.txt: too small or too regular .* \({reason}: .* --discount-fallback"):
        estimate([text], out)
    # One 1-gram stands after 1 other, one after 2, twenty after 3, one after 4: the discount for 2 is far below 0.
    counts = [1, 2, *[3] * 20, 4]
    rows = [[f"b{i}", f"a{w}"] for w, count in enumerate(counts) for i in range(count)]
    with pytest.raises(
        DataError, match=r"\(KenLM: \d-gram discount out of range for adjusted count \d: -\d+[.\d]*\): "
    ):
        estimate([write_sentences(rows, tmp_path / "regular.txt")], out, Estimation(order=2))
    few = write_sentences([["a", "b"], ["b", "a"]], tmp_path / "few.txt")
    with pytest.raises(
        DataError, match=r"adjusted count 1\): give --discount-fallback \(in Python fallback=True\), .*, or more text$"
    ):
        estimate([few], out, Estimation(order=2))
    varied = [[f"w{number}" for number in row] for row in np.random.default_rng(0).zipf(1.5, (2000, 5))]
    twice = write_sentences(varied * 2, tmp_path / "twice.txt")
    with pytest.raises(DataError, match=r"2-grams with .*\): leave out repeated sentences, lower --order, or give --d"):
        estimate([twice], out, Estimation(order=2))
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match=r"empty.txt: found no word"):
        estimate([tmp_path / "empty.txt"], out)
    with pytest.raises(UserError, match="cannot be written"):
        estimate([text], Path("/dev/null/x.bin"), Estimation(fallback=True))
    assert not out.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": 10}, "expected 2 to 9"),
        ({"kind": "tree"}, "expected probing or trie"),
        ({"quantise": 8}, "the kind trie"),
        ({"prune": (1, 0)}, "none below the one before"),
    ],
)
def test_what_cannot_be_is_said(options, message):
    with pytest.raises(UserError, match=message):
        Estimation(**options)


def test_memory_that_cannot_be_had_is_told_by_its_option(text, tmp_path):
    with pytest.raises(UserError, match=r"^memory 900T: more than lmplz can have on this machine, expected less$"):
        estimate([text], tmp_path / "base.bin", Estimation(fallback=True, memory="900T"))


def test_a_model_is_not_called_what_none_opens(text, tmp_path):
    with pytest.raises(UserError, match=r"base\.pt: \.pt is of recurrent models: choose another suffix, such as \.bin"):
        estimate([text], tmp_path / "base.pt", Estimation(fallback=True))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc, which says what threads do")
def test_a_program_whose_threads_wait_for_each_other_is_ended(monkeypatch):
    monkeypatch.setattr(estimation, "ASLEEP", 0.5)
    works = "import sys, time\nwhile time.process_time() < 1.5: pass\nprint('done', file=sys.stderr)"
    assert estimation._run([sys.executable, "-c", works], [], Estimation()) == "done\n"
    with pytest.raises(UserError, match=r"^sleep has stopped working, as it does where it cannot write a file"):
        estimation._run(["/bin/sleep", "617"], [], Estimation())
    assert not any(b"sleep\x00617" in path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline"))


def test_a_program_that_was_killed_is_said_not_what_it_said_last():
    dies = "import os, sys; print('=== 1/5 Counting ===', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)"
    with pytest.raises(UserError, match=r"^python[\d.]* was ended by SIGKILL, perhaps for want of memory$"):
        estimation._run([sys.executable, "-c", dies], [], Estimation())
