import gzip
import subprocess

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compgen.errors import DataError, Remark, UserError
from compgen.lm import scoring
from compgen.lm.estimation import Estimation, estimate, write_sentences
from compgen.lm.install import FOLDER, program
from compgen.lm.mixture import Mixture, perplexity
from compgen.lm.scoring import score, score_all, split_words, words_of
from tests.lm.naive import Arpa

BLANKS = ["\u00a0", "\u0085", "\u1680", "\u2003", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"]
words = st.sampled_from(["the", "cat", "dog", "sat", "ran", "on", "zebra", "été", "日本"])


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sentences=st.lists(st.lists(words, min_size=1, max_size=8), min_size=1, max_size=6), threads=st.integers(1, 3))
def test_scores_are_those_of_the_definition(sentences, threads, arpa, tmp_path):
    text = write_sentences(sentences, tmp_path / "asked.txt")
    found = score_all([arpa], text, threads)
    expected = [Arpa(arpa).sentence(sentence) for sentence in sentences]
    assert found.lengths.tolist() == [len(row) for row in expected]
    assert found.log10[0] == pytest.approx(np.concatenate(expected), abs=1e-5)
    unknown = [word not in ["the", "cat", "dog", "sat", "ran", "on"] for row in sentences for word in [*row, "the"]]
    assert (found.matched[0] == 0).tolist() == unknown
    begins = found.known[0][found.starts]
    assert (begins == 1).all()  # the start of the sentence


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sentences=st.lists(
        st.lists(st.sampled_from(["the", "cat", "sat", *BLANKS]), min_size=1, max_size=8).map(" ".join),
        min_size=1,
        max_size=4,
    ),
    joined=st.lists(st.tuples(st.sampled_from(BLANKS), st.sampled_from(["\t", "\r", " \r ", " "])), max_size=3),
)
def test_perplexity_is_that_of_kenlm(sentences, joined, arpa, tmp_path):
    """Words end where they end for KenLM's own program: at a space, TAB or carriage return, and at no other blank."""
    sentences += [f"the{blank}cat{between}sat" for blank, between in joined]
    (tmp_path / "asked.txt").write_text("".join(f"{line}\n" for line in sentences), encoding="utf-8", newline="")
    with (tmp_path / "asked.txt").open("rb") as text:
        done = subprocess.run(
            [program("query"), "-v", "summary", arpa], stdin=text, capture_output=True, text=True, check=True
        )
    told = dict(line.split(":\t") for line in done.stdout.splitlines() if ":\t" in line)
    found = perplexity(Mixture.open(arpa), score_all([arpa], tmp_path / "asked.txt"))
    assert (found.tokens, found.unknown) == (int(told["Tokens"]), int(told["OOVs"]))
    assert found.including == pytest.approx(float(told["Perplexity including OOVs"]), rel=1e-5)
    assert [len(split_words(line)) + 1 for line in sentences] == score_all([], tmp_path / "asked.txt").lengths.tolist()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lines_that_end_with_cr_alone_are_refused(tmp_path, pack):
    (tmp_path / "asked").write_bytes(pack(b"the cat\rthe dog\r"))
    with pytest.raises(DataError, match="lines end with CR alone"):
        score_all([], tmp_path / "asked")


def test_binary_models_say_what_arpa_says(arpa, text, tmp_path):
    expected = score_all([arpa], text)
    for kind, bits, error in (("probing", None, 1e-6), ("trie", None, 1e-6), ("trie", 8, 0.2)):
        estimate([text], tmp_path / "model.bin", Estimation(order=3, fallback=True, kind=kind, quantise=bits))
        found = score_all([tmp_path / "model.bin"], text)
        assert found.log10 == pytest.approx(expected.log10, abs=error)
        assert words_of(tmp_path / "model.bin") == words_of(arpa) == {*text.read_text().split()}


def test_long_texts_come_in_blocks_and_in_order(arpa, tmp_path):
    lines = [["cat"] * (1 + number % 7) for number in range(150_000)]
    text = write_sentences([*lines, ["dog"] * 300_000], tmp_path / "long.txt")  # one line is longer than a block
    blocks = list(score([arpa, arpa], text, threads=2))
    assert len(blocks) > 2
    whole = scoring.Scores.joined(blocks, 2)
    assert whole.lengths.tolist() == [len(line) + 1 for line in lines] + [300_001]
    assert (whole.log10[0] == whole.log10[1]).all()
    once = score_all([arpa], write_sentences(lines[:7], tmp_path / "short.txt"))
    assert whole.log10[0, : once.log10.shape[1]].tolist() == once.log10[0].tolist()


def test_gzip_and_a_last_line_without_an_end(arpa, tmp_path):
    (tmp_path / "a.txt").write_bytes(b"the cat\nthe dog")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"the cat\nthe dog"))
    plain, packed = (score_all([arpa], tmp_path / name) for name in ("a.txt", "a.txt.gz"))
    assert plain.lengths.tolist() == packed.lengths.tolist() == [3, 3]
    assert plain.log10.tolist() == packed.log10.tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"the cat\nthe \xff dog\n", "line 2: found bytes that are not UTF-8"),
        (b"the cat\n\xed\xa0\x80\n", "line 2: found bytes that are not UTF-8"),
        (b"the\n\n\x07 cat\n", "line 3: found the control character 0x07"),
        (b"the\x0bcat\n", "line 1: found the control character 0x0B"),  # a space for query and not for lmplz
        (b"the\0cat\n", "line 1: found the control character 0x00"),  # the other way round
        (b"<s> the cat </s>\n", "line 1: found <s>"),
        (b"the cat\nsat on <unk>\n", "line 2: found <unk>"),
        (b"the cat\nsat on <UNK>\n", "line 2: found <UNK>"),  # the unknown word, too, to KenLM
    ],
)
def test_bad_text_is_named_by_its_line(content, message, arpa, tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(content)
    for models in ([], [arpa]):
        with pytest.raises(DataError, match=message):
            score_all(models, path)


def test_missing_and_broken_files_are_named(arpa, text, tmp_path):
    with pytest.raises(DataError, match=r"gone.txt: No such file"):
        score_all([arpa], tmp_path / "gone.txt")
    with pytest.raises(UserError, match=r"gone.bin: no such file"):
        score_all([tmp_path / "gone.bin"], text)
    cut = tmp_path / "cut.arpa"
    cut.write_bytes(arpa.read_bytes()[:300])
    with pytest.raises(UserError, match=r"cut.arpa: not a model that KenLM can read"):
        score_all([cut], text)
    with pytest.raises(UserError, match=r"cut.arpa: not a model"):
        words_of(cut)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"the cat\n" * 1000)[:40])
    with pytest.raises(DataError, match=r"cut.gz: cut short"):
        score_all([arpa], tmp_path / "cut.gz")


def test_words_that_are_not_utf8_are_said(arpa, tmp_path):
    (tmp_path / "latin.arpa").write_bytes(arpa.read_bytes().replace(b"cat", b"c\xe4t"))
    with pytest.raises(UserError, match=r"latin.arpa: found words that are not UTF-8"):
        words_of(tmp_path / "latin.arpa")


@pytest.mark.parametrize("ask", [words_of, lambda model: score_all([model], model)])
def test_a_program_that_was_killed_is_said(monkeypatch, arpa, tmp_path, ask):
    (tmp_path / "dies").write_text("#!/bin/sh\nkill -9 $$\n")
    (tmp_path / "dies").chmod(0o755)
    monkeypatch.setattr(scoring, "program", lambda _: tmp_path / "dies")
    with pytest.raises(UserError, match=r"^compgen-ngram was ended by SIGKILL, perhaps for want of memory$"):
        ask(arpa)


def test_bytes_that_are_read_ahead_for_a_recurrent_model_are_told_in_their_turn(monkeypatch, tmp_path):
    class Recurrent:
        def __init__(self, *_):
            pass

        def score(self, sentences):
            tokens = sum(len(words) + 1 for words in sentences)
            return np.zeros(tokens, np.float32), np.ones(tokens, np.uint8)

    monkeypatch.setattr(scoring, "NeuralModel", Recurrent)
    line = b"word " * 39 + b"last\n"
    lines = (1 << 20) // len(line)  # the last that are whole in the first block
    (tmp_path / "bad.txt").write_bytes(line * lines + b"caf\xe9 " + line)
    with pytest.raises(DataError, match=rf"bad\.txt, line {lines + 1}: found bytes that are not UTF-8"):
        score_all([tmp_path / "lstm.pt"], tmp_path / "bad.txt")


def test_without_the_programs_it_is_said_how_to_get_them(monkeypatch, text):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(FOLDER, raising=False)
    with pytest.raises(UserError, match=r"(?s)cgen lm install.*apt-get install"):
        score_all([], text)


def test_sentences_of_data_are_the_sources_of_its_rows(arpa, tmp_path):
    (tmp_path / "x.txt").write_text("the cat sat\na dog\u00a0ran\n")
    (tmp_path / "x.jsonl").write_text('{"source": ["the", "cat", "sat"]}\n\n{"source": ["a", "dog\u00a0ran"]}\n')
    (tmp_path / "x.csv").write_text("id,sentence,sql\n1,the cat sat,X\n2,a dog,Y\n")
    expected = score_all([arpa], tmp_path / "x.txt")
    assert score_all([arpa], tmp_path / "x.jsonl").log10.tolist() == expected.log10.tolist()
    with pytest.warns(Remark, match="read the column 'sentence' as source"):
        assert score_all([], tmp_path / "x.csv").lengths.tolist() == [4, 3]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"source": "the"}\n\n{"source": "<s> cat"}\n', r"x\.jsonl, sentence 2: found .*<s>"),
        ('{"source": ["the cat"]}\n', r"x\.jsonl: a text cannot hold the token 'the cat'"),
        ('{"source": "the"}\nthe cat\n', r"x\.jsonl, line 2: found 'the cat', which is no JSON"),
    ],
)
def test_wrong_sentences_of_data_are_named(text, says, tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    with pytest.raises(DataError, match=says):
        score_all([], path)
    with pytest.raises(DataError, match=says):
        estimate([path], tmp_path / "x.bin", Estimation(order=2, fallback=True))
