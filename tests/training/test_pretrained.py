"""Pretrained encoder-decoders: a tiny T5 with random weights stands for a pretrained one."""

import errno
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import compgen
from compgen.configuration import load_config
from compgen.data.examples import Dataset
from compgen.errors import BundleError, CheckpointError, DataError, Interrupted, Remark, UserError
from compgen.models.pretrained import FILE, Pretrained
from compgen.models.spelling import Spelling
from compgen.runtime.predict import as_sources
from compgen.trained.committee import Committee
from compgen.trained.pretrained import PretrainedPredictor
from compgen.training import loop
from compgen.training.config import PretrainedConfig
from tests.cli import shell

transformers = pytest.importorskip("transformers", reason="needs transformers, the extra [pretrained]")

SETTINGS = ["optimisation.learning_rate=0.01"]
WORDS = ["walk", "run", "look", "hop", "twice", "and", "semanticparse", "less", "lb"]


def tokenizer():
    """A tokenizer like T5's: pieces of words by their probability, and no piece for `<`, `~`, `A` or `é`."""
    pieces = [(piece, 0.0) for piece in ("<pad>", "</s>", "<unk>")]
    pieces += [(f"▁{word}", -3.0) for word in WORDS] + [
        (piece, -5.0) for piece in "▁abcdefghijklmnopqrstuvwxyz23():_=?."
    ]
    return transformers.T5Tokenizer(vocab=pieces, extra_ids=0)


def shape(size=32):
    return transformers.T5Config(
        vocab_size=len(tokenizer()) + 3, d_model=size, d_kv=8, d_ff=2 * size, num_layers=1, num_heads=4,
        dropout_rate=0.0, decoder_start_token_id=0,
    )  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("base") / "tiny-t5"
    transformers.T5ForConditionalGeneration(shape()).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return str(folder)


def toy() -> Dataset:
    """20 pairs, whose targets hold tokens that the tokenizer cannot write, and a word that one is written as."""
    verbs = ["walk", "run", "look", "hop"]
    pairs = [([v], [f"i_{v}"]) for v in verbs] + [([v, "twice"], [f"i_{v}", "?~=", f"i_{v}"]) for v in verbs]
    pairs += [([a, "and", b], ["<", f"i_{a}", f"i_{b}", "lb"]) for a in verbs for b in verbs if a != b]
    return Dataset.from_pairs(pairs)


def train(base, out, *overrides, data=None, **options):
    return compgen.train_pretrained(
        data or toy(), base, "t5_small", out, [*SETTINGS, *overrides], quiet=True, **options
    )


@pytest.fixture(scope="module")
def trained(base, tmp_path_factory):
    out = tmp_path_factory.mktemp("trained") / "t5"
    return out, train(base, out, "optimisation.steps=300")


def test_it_trains_where_the_caller_has_turned_gradients_off(base, tmp_path):
    with torch.inference_mode():
        assert train(base, tmp_path / "t5", "optimisation.steps=2")["updates"] == 2


def test_it_learns_twenty_pairs_by_heart_and_answers_the_same_when_read_again(trained):
    out, report = trained
    assert len(toy()) == 20
    predictor = compgen.Predictor.load(out)
    assert predictor.evaluate(toy()).exact_match == 1.0
    assert report["examples"] == 20 and report["updates"] == 300
    assert not out.with_name("t5.partial").exists()
    sources, targets = zip(*toy().pairs(), strict=True)
    for options in ({"beam": 3}, {"batch": 3}):
        assert predictor.predict(sources, **options) == list(targets)


@pytest.mark.parametrize(("count", "beam"), [(1, None), (1, 3), (3, None), (2, 4)])
def test_the_best_are_ranked_by_their_log_probabilities(trained, count, beam):
    predictor = compgen.Predictor.load(trained[0])
    sources = [source for source, _ in toy().pairs()][::3]
    found = predictor.best(sources, count, beam)
    assert found == predictor.best(sources, count, beam, batch=len(sources))
    for source, ranked in zip(sources, found, strict=True):
        assert len({tuple(target) for target, _ in ranked}) == len(ranked) == count
        scores = [score for _, score in ranked]
        assert scores == sorted(scores, reverse=True)
        pieces = len(predictor.model.targets([ranked[0][0]])[0]) + 1
        loss = predictor.losses(Dataset.from_pairs([(source, ranked[0][0])]))[0]
        assert scores[0] == pytest.approx(-loss * pieces, rel=1e-2, abs=1e-4)


def test_log_probabilities_are_of_whole_targets(base):
    """However many pieces a token is, so a committee of the same predictor twice answers as it does alone."""
    predictor = PretrainedPredictor(Pretrained.open(base, "semanticparse: ", 64, 16).eval())
    targets = [["walk"], ["twice", "and"], ["abcde"]]  # less probable the more pieces there are: it has learned nothing
    data = Dataset.from_pairs([(["run"], target) for target in targets])
    pieces = [len(ids) + 1 for ids in predictor.model.targets(targets)]
    assert pieces[0] < pieces[1] < pieces[2]
    log_probs = predictor.log_probs(data)
    np.testing.assert_allclose(log_probs, -predictor.losses(data) * pieces)
    np.testing.assert_allclose(predictor.log_probs(data, batch=1), log_probs, rtol=1e-4)
    ranked = [(target, pytest.approx(score)) for target, score in zip(targets, log_probs.tolist(), strict=True)]
    predictor.best = lambda sources, *_: [[(target, 0.0) for target in targets] for _ in sources]
    assert Committee([predictor, predictor]).best([["run"]], 3) == [ranked]


def test_what_is_written_is_data_alone(trained):
    names = sorted(path.name for path in trained[0].iterdir())
    assert {FILE, "config.json", "model.safetensors", "tokenizer.json"} <= set(names)
    assert all(name.endswith((".json", ".safetensors")) for name in names), names
    meta = json.loads((trained[0] / FILE).read_text(), parse_constant=pytest.fail)
    assert meta["config"]["optimisation"]["optimiser"] == "adafactor" and meta["trained_on"]["updates"] == 300


def test_the_model_to_begin_with_is_not_replaced(trained):
    with pytest.raises(UserError, match="it is read, too: choose another name"):
        train(str(trained[0]), trained[0], "optimisation.steps=1")


def test_its_identity_is_of_all_its_files(trained, tmp_path):
    shutil.copytree(trained[0], tmp_path / "copy")
    identity = compgen.Predictor.load(tmp_path / "copy").identity
    assert len(identity) == 64 and identity == compgen.Predictor.load(trained[0]).identity
    (tmp_path / "copy" / "README.md").write_text("another")
    assert compgen.Predictor.load(tmp_path / "copy").identity != identity


def test_it_needs_training(base):
    untrained = Pretrained.open(base, "semanticparse: ", 64, 16)
    sources, targets = zip(*toy().pairs(), strict=True)
    answered = [tuple(target) for ((target, _),) in untrained.best(untrained.sources(sources), 1, 1, 8)]
    assert not set(answered) & set(map(tuple, targets))


@pytest.mark.parametrize("beam", [1, 4])
def test_embeddings_beyond_the_tokenizer_are_never_written(base, beam):
    """Though one of them is the most probable everywhere: of two that are opposite, one agrees with any state."""
    model = Pretrained.open(base, "semanticparse: ", 64, 8).eval()
    rows = model.model.get_output_embeddings().weight
    assert len(rows) == len(model.tokenizer) + 3
    with torch.no_grad():
        rows[-1] = 100 * torch.randn(rows.shape[1])
        rows[-2] = -rows[-1]
    sources = model.sources([["walk"], ["run", "twice"]])
    found = model.best(sources, beam, beam, 8)
    assert all(len(ranked) == beam and np.isfinite([score for _, score in ranked]).all() for ranked in found)
    if beam == 1:
        written = model.model.generate(torch.tensor([[5, 6, 1]]), generation_config=model._generation(1))
        memory = torch.tensor([[[10, 11, 2]]])
        assert int(model._scores(model_ids(written), memory).argmax(dim=2)[0, 0]) >= len(model.tokenizer)
        assert model.predicts(model_ids(written), memory).all()


def model_ids(written):
    """What transformers wrote, from the start symbol on, in our ids; no end symbol comes within it."""
    assert 1 not in written
    return torch.cat([torch.tensor([[1]]), written[:, 1:] + 5], dim=1)


def test_losses_are_those_of_training_and_do_not_depend_on_the_batch(trained):
    predictor, watched = compgen.Predictor.load(trained[0]), []
    model = predictor.model
    losses = predictor.losses(toy(), batch=6, watch=watched.append)
    assert watched == [6, 12, 18, 20] and (losses > 0).all() and losses.mean() < 0.05
    np.testing.assert_allclose(predictor.losses(toy(), batch=1), losses, rtol=1e-3, atol=1e-6)
    source, target = toy().pairs()[0]
    ids = model.tokenizer([model.prefix + "walk"], return_tensors="pt").input_ids
    labels = model.tokenizer(["i_walk"], return_tensors="pt").input_ids
    expected = model.model(input_ids=ids, labels=labels).loss  # transformers' own, which starts and ends by itself
    assert losses[0] == pytest.approx(float(expected.detach()), rel=1e-3)
    other = predictor.losses(Dataset.from_pairs([(source, [*target, "lb"])]))
    assert other[0] > 100 * losses[0]


def test_what_it_predicts_is_what_greedy_decoding_writes(trained):
    model = Pretrained.load(trained[0])
    sources, targets = zip(*toy().pairs(), strict=True)
    wrong = model.targets([targets[1], *targets[1:]])
    memories = torch.from_numpy(as_sources(model.sources(sources))[:, None])
    found = model.predicts(torch.from_numpy(as_sources([[1, *target] for target in wrong])), memories)
    assert found.tolist() == [False] + [True] * 19


def test_a_resumed_run_reaches_the_weights_of_an_uninterrupted_one(base, tmp_path, monkeypatch):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    train(base, whole, "optimisation.steps=12")
    update = loop._Run.update

    def interrupted(run, rows):
        if run.step == 6:
            os.kill(os.getpid(), signal.SIGINT)
        return update(run, rows)

    monkeypatch.setattr(loop._Run, "update", interrupted)
    with pytest.raises(Interrupted, match="after update 7 of 12"):
        train(base, cut, "optimisation.steps=12")
    monkeypatch.setattr(loop._Run, "update", update)
    assert not cut.exists() and (tmp_path / "cut.partial").exists()
    with pytest.raises(CheckpointError, match="differs: seed was 0, is 1; give the same"):
        train(base, cut, "optimisation.steps=12", seed=1, resume=True)
    train(base, cut, "optimisation.steps=12", resume=True)
    assert (cut / "model.safetensors").read_bytes() == (whole / "model.safetensors").read_bytes()
    assert not (tmp_path / "cut.partial").exists()


def test_originals_and_augmented_examples_are_drawn_equally_often(base, tmp_path, monkeypatch):
    more, seen = Dataset.from_pairs([(["hop", "hop"], ["less"])] * 500), []
    collate = loop._Run.update
    monkeypatch.setattr(loop._Run, "update", lambda run, rows: (seen.extend(rows.tolist()), collate(run, rows))[1])
    report = train(base, tmp_path / "m", "optimisation.steps=9", "optimisation.batch=8", augmented=more)
    assert report["augmented_examples"] == 500
    assert len(seen) > 60 and sum(row < 20 for row in seen[:40]) == 20  # an epoch: 20 of each


def test_the_rate_is_constant(base, tmp_path):
    report = train(base, tmp_path / "m", "optimisation.steps=100", "optimisation.learning_rate=0.003", "held_out=0.2")
    assert 0 < report["held_out_error_rate"] <= 1
    rates = [json.loads(line)["lr"] for line in (tmp_path / "m.log.jsonl").read_text().splitlines()]
    assert rates == [0.003, 0.003]


def test_adafactor_is_that_of_t5():
    """PyTorch's, as we set it, does what transformers' does with the options of Qiu et al. (2022), zeros included."""
    config = load_config(PretrainedConfig, "t5").optimisation
    networks = []
    for _ in range(2):
        torch.manual_seed(0)
        networks.append(torch.nn.Sequential(torch.nn.Embedding(9, 6), torch.nn.Linear(6, 6), torch.nn.Linear(6, 2)))
    theirs = transformers.Adafactor(
        networks[1].parameters(), lr=config.learning_rate, eps=(1e-30, 1e-3), clip_threshold=1.0, decay_rate=-0.8,
        beta1=None, scale_parameter=True, relative_step=False, warmup_init=False,
    )  # fmt: skip
    before = [parameter.detach().clone() for parameter in networks[0].parameters()]
    for network, optimiser in zip(networks, (loop._optimiser(networks[0], config), theirs), strict=True):
        for step in range(20):
            optimiser.zero_grad()
            (network(torch.tensor([[1, 2, 3], [3, 4, step % 5]])) ** 2).sum().backward()  # five rows of nine
            optimiser.step()
    for ours, expected, first in zip(*(network.parameters() for network in networks), before, strict=True):
        torch.testing.assert_close(ours - first, expected - first, rtol=1e-3, atol=1e-9)
        assert (ours != first).any()
    assert torch.equal(networks[0][0].weight[5:], before[0][5:])


# -- tokens that the tokenizer lacks ----------------------------------------------------------------------------------


def test_tokens_that_the_tokenizer_lacks_are_words_and_come_back_whole():
    tokens = ["<", "?~=", "~", "lb", "less", "simple", "é", "two words", "</s>", "<pad>", "a", "", "A"]
    spelling = Spelling.of(tokenizer(), tokens)
    assert spelling.words["?~="] == "?sim=" and spelling.words["~"] == "sim"
    assert spelling.words["<"] == "lb2"  # lb is a token of the data
    assert not {"lb", "less", "simple", "a"} & set(spelling.words)
    text = spelling.write(tokens)
    ids = tokenizer()(text).input_ids
    assert tokenizer().unk_token_id not in ids
    assert spelling.read(tokenizer().decode(ids, skip_special_tokens=True)) == tokens
    assert spelling.read("simple simply lb") == ["simple", "simply", "lb"]
    assert Spelling.of(tokenizer(), reversed(tokens)).words == spelling.words


def test_a_source_may_have_tokens_that_training_had_not(trained):
    model = Pretrained.load(trained[0])
    assert model.spelling.write(["walk", "~", "é"]) == "walk sim latinsmallletterewithacute"
    assert model.spelling.lost(["walk", "~", "é"]) == []


def test_a_token_that_no_word_stands_for_is_named(trained):
    few = transformers.T5Tokenizer(
        vocab=[(piece, 0.0) for piece in ("<pad>", "</s>", "<unk>", "▁", "x", "y")], extra_ids=0
    )
    with pytest.raises(DataError, match="token 'z' cannot be written"):
        Spelling.of(few, ["x", "yx", "z"])
    predictor = compgen.Predictor.load(trained[0])
    predictor.model.spelling = Spelling(few, {})
    assert predictor.remarks([["x", "z"], ["z"]]) == ["1 source token is unknown to it: z"]
    with pytest.raises(DataError, match="unknown token 'z'"):
        predictor.predict([["x", "z"]])


# -- lengths ----------------------------------------------------------------------------------------------------------


def test_sources_that_are_too_long_are_cut_and_told(trained):
    predictor = compgen.Predictor.load(trained[0])
    whole = ["walk", "twice"]
    pieces = len(predictor.model.sources([whole])[0]) + 1
    predictor.model.source_length = pieces
    assert predictor.remarks([whole]) == []
    assert predictor.remarks([whole, [*whole, "hop"]]) == [f"1 sources have more than its {pieces} pieces and are cut"]
    assert predictor.predict([[*whole, "hop", "hop"]]) == predictor.predict([whole]) == [["i_walk", "?~=", "i_walk"]]


def test_answers_end_somewhere(trained):
    predictor = compgen.Predictor.load(trained[0])
    predictor.model.max_length = 2
    (answer,) = predictor.predict([["walk", "twice"]])
    assert len(predictor.model.targets([answer])[0]) == 2


@pytest.mark.parametrize("setting", ["max_length", "source_length"])
def test_training_cuts_nothing(base, tmp_path, setting):
    data = Dataset.from_pairs([(["hop"], ["hop"]), (["hop"] * 13, ["hop"] * 13)])
    said = rf"1 of 2 examples have more pieces than {setting} = 12; .* --set {setting}=\d\d"
    with pytest.raises(DataError, match=said):
        train(base, tmp_path / "m", "max_length=99", "source_length=99", f"{setting}=12", data=data)
    assert list(tmp_path.iterdir()) == []


def copied(folder, goal):
    return shutil.copytree(folder, goal)


# -- mistakes ---------------------------------------------------------------------------------------------------------


def test_a_model_that_is_not_there_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in (str(tmp_path / "nowhere"), "someone/no-such-t5"):
        with pytest.raises(UserError, match=f"{name}: expected a folder that save_pretrained wrote, .* hub: "):
            train(name, tmp_path / "m")


def test_only_encoder_decoders_will_do(tmp_path):
    config = transformers.GPT2Config(vocab_size=9, n_embd=8, n_layer=1, n_head=1)
    transformers.GPT2LMHeadModel(config).save_pretrained(tmp_path / "gpt")
    with pytest.raises(UserError, match="gpt: a model of type gpt2, expected an encoder-decoder such as T5"):
        train(str(tmp_path / "gpt"), tmp_path / "m")


def test_a_part_of_a_model_is_not_made_whole_at_random(base, tmp_path):
    half = copied(base, tmp_path / "half")
    weights = load_file(half / "model.safetensors")
    save_file({name: tensor for name, tensor in weights.items() if "decoder" not in name}, half / "model.safetensors")
    with pytest.raises(UserError, match=r"half: its weights lack decoder\.block.*, \.\.\."):
        train(str(half), tmp_path / "m")


def test_without_transformers_it_says_what_to_install(base, trained, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    for work in (lambda: train(base, tmp_path / "m"), lambda: compgen.Predictor.load(trained[0])):
        with pytest.raises(UserError, match=r"needs transformers: pip install 'compgen\[train,pretrained\]'"):
            work()


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        (FILE, None, f"not trained by compgen: expected a {FILE}"),
        (FILE, b"{", "is not JSON"),
        (FILE, b"[]", "not of a model that compgen trained"),
        (FILE, b'{"format": "compgen-pretrained", "version": 99}', "version 99"),
        (FILE, b'{"format": "compgen-pretrained", "version": 1}', "prefix"),
        (FILE, b'{"format": "compgen-pretrained", "version": 2}', f"{FILE} is damaged"),
        (FILE, b"[" * 100_000, "is not JSON"),
        ("model.safetensors", None, "model.safetensors"),
        ("model.safetensors", b"cut", "model.safetensors is damaged"),
        ("tokenizer.json", b"{}", "tokenizer.json is damaged"),
    ],
)
@pytest.mark.filterwarnings("ignore::compgen.errors.Remark")
def test_broken_folders_are_refused_in_one_line(trained, tmp_path, file, content, message):
    folder = copied(trained[0], tmp_path / "t5")
    (folder / file).unlink() if content is None else (folder / file).write_bytes(content)
    with pytest.raises(CheckpointError, match=str(folder)) as refused:
        compgen.Predictor.load(folder)
    assert message in str(refused.value) and "\n" not in str(refused.value)


def test_a_folder_that_may_not_be_read_is_not_called_damaged(tmp_path, monkeypatch):
    def refused(*_arguments, **_options):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "read_text", refused)
    with pytest.raises(CheckpointError, match=f"{FILE}: cannot be read: Permission denied$"):
        Pretrained.load(tmp_path)


@pytest.mark.parametrize(("file", "content"), [("model.safetensors", b"cut"), ("tokenizer.json", b"{}")])
def test_a_folder_of_before_there_were_digests_is_read_with_a_remark(trained, tmp_path, file, content):
    folder = copied(trained[0], tmp_path / "t5")
    meta = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(
        json.dumps({key: meta[key] for key in meta.keys() - {"digest", "files"}} | {"version": 1})
    )
    with pytest.warns(Remark, match="no digest"):
        found = compgen.Predictor.load(folder)
    sources = [source for source, _ in toy().pairs()]
    assert found.predict(sources) == compgen.Predictor.load(trained[0]).predict(sources)
    (folder / file).write_bytes(content)
    with pytest.warns(Remark), pytest.raises(CheckpointError, match="not a model that transformers can read"):
        compgen.Predictor.load(folder)


def test_a_changed_number_in_what_compgen_says_of_a_model_is_refused(trained, tmp_path):
    folder = copied(trained[0], tmp_path / "t5")
    meta = json.loads((folder / FILE).read_text())
    (folder / FILE).write_text(json.dumps(meta | {"max_length": meta["max_length"] + 1}))
    with pytest.raises(CheckpointError, match=f"{FILE} is damaged: its content does not agree with its digest"):
        compgen.Predictor.load(folder)


def test_it_is_no_generator_and_has_no_bundle(trained, tmp_path):
    out = trained[0]
    with pytest.raises(BundleError, match="a pretrained model has no bundle"):
        compgen.export_bundle(out, tmp_path / "bundle")
    with pytest.raises(UserError, match="holds a predictor, expected a generator"):
        compgen.Generator.load(out)
    with pytest.raises(UserError, match="runs in torch alone"):
        compgen.Predictor.load(out, "onnx")


def test_a_folder_of_something_else_is_not_replaced(base, trained, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(UserError, match="mine: exists and is not a model that compgen trained"):
        train(base, tmp_path / "mine")
    with pytest.raises(UserError, match=r"does not end in \.pt"):
        train(base, tmp_path / "m.pt")
    (tmp_path / "empty").mkdir()
    with monkeypatch.context() as patch:
        patch.chdir(tmp_path / "empty")
        with pytest.raises(UserError, match="the current folder"):
            train(base, tmp_path / "empty")
    folder = copied(trained[0], tmp_path / "again")
    (folder / "notes.txt").write_text("")
    with pytest.raises(UserError, match=r"again: holds notes\.txt, too: a model is replaced as a whole, move that"):
        train(base, folder)
    (folder / "notes.txt").unlink()
    train(base, folder, "optimisation.steps=1")
    assert json.loads((folder / FILE).read_text())["trained_on"]["updates"] == 1


def test_a_chance_of_augmented_examples_needs_some(base, tmp_path):
    with pytest.raises(DataError, match="no augmented data was given"):
        train(base, tmp_path / "m", "p_aug=0.2")
    for name in ("t5", "t5_small"):
        assert load_config(PretrainedConfig, name).p_aug == 0.5


def test_the_command_line(base, trained, tmp_path):
    data = tmp_path / "pairs.tsv"
    data.write_text("".join(f"{' '.join(source)}\t{' '.join(target)}\n" for source, target in toy().pairs()))

    def run(*arguments):
        return shell.compgen(*arguments, env=os.environ | {"HF_HUB_OFFLINE": "1"})

    options = ["-o", tmp_path / "m", "--set", "optimisation.steps=2", "--threads", 1]
    done = run("train", "pretrained", data, "--model", base, "--augmented", data, *options)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == str(tmp_path / "m") and "augmented examples 20" in done.stderr
    compared = run("evaluate", trained[0], tmp_path / "m", data, "--json", "--compare", 1)
    rows = [json.loads(line) for line in compared.stdout.splitlines()]
    assert rows[0]["exact_match"] > rows[1]["exact_match"]
    assert [row["measure"] for row in rows[2:]] == ["exact match", "F1 per item"]
    assert all(row["mean"] < 0 for row in rows[2:]), compared.stderr
    scored = run("evaluate", trained[0], data, "--json", "--predictions", tmp_path / "p.tsv")
    assert json.loads(scored.stdout)["exact_match"] == 1.0, scored.stderr
    assert (tmp_path / "p.tsv").read_text() == data.read_text().replace("\n", "\tpredicted\n")
    for wrong, said in (
        (["train", "pretrained", data, "--model", "nowhere", *options], "nowhere: expected a folder"),
        (["evaluate", base, data], f"expected a {FILE}"),
        (["export", trained[0], "-o", tmp_path / "x"], "has no bundle"),
    ):
        refused = run(*wrong)
        assert refused.returncode == 2 and said in " ".join(refused.stderr.split()), refused.stderr
        assert "Traceback" not in refused.stderr
