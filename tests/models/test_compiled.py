"""The loops of training in C++: what those in Python compute, in float32, by any number of threads."""

import os
import subprocess
import sys

import pytest
import torch

from compgen.errors import UserError
from compgen.models import compiled
from compgen.processors import of_amd
from tests.models.test_fed_loop import CASES
from tests.models.test_network import batch, network

LIBRARY = os.environ.get(compiled.NAMED, "")
built = pytest.mark.skipif(
    compiled.library(LIBRARY) is None, reason="the loops of training are not built here (make training)"
)
WIDE = {"hidden": 64, "encoder_hidden": 40, "attention": 64}  # of whole registers, and of many
DEEP = {"hidden": 600, "encoder_hidden": 20}  # more numbers to a gate than products read at a time
MORE = [WIDE, DEEP, {"feed_dropout": 0.0, "output_dropout": 0.0}, {"feed": False}]
CLOSE = 1e-5  # of the largest number: float32 over some thirty steps; measured 5e-7


def results(changes, training, where, monkeypatch, dtype=torch.float32, threads=1):
    """The loss and the gradients of a network, by the loops of C++ (`where` is empty) or of Python (`none`)."""
    monkeypatch.setenv(compiled.NAMED, where or LIBRARY)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        net = network(**{"output_dropout": 0.3, "feed_dropout": 0.2, "embedding_dropout": 0.0} | changes).to(dtype)
        net.train(training)
        sequences, tokens = batch(memories=net.memories)
        torch.manual_seed(3)
        loss = net.loss(sequences, tokens).sum()
        loss.backward()
    finally:
        torch.set_num_threads(before)
    return {"loss": loss.detach()} | {name: p.grad for name, p in net.named_parameters() if p.grad is not None}


def largest_difference(found, expected):
    assert found.keys() == expected.keys()
    return max(float((found[n] - x).abs().max() / (x.abs().max() + 1e-30)) for n, x in expected.items())


@built
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("changes", [*CASES, *MORE], ids=str)
def test_loss_and_gradients_are_those_of_the_loops_in_python(changes, training, monkeypatch):
    called = []
    call = compiled.call
    monkeypatch.setattr(compiled, "call", lambda function, *rest: (called.append(function), call(function, *rest)))
    found = results(changes, training, "", monkeypatch)
    loops = {"fed"} if changes.get("feed", True) else set()
    if not (training and "embedding_dropout" in changes):
        loops.add("packed")
    assert {*called} == {f"compgen_{loop}_{way}" for loop in loops for way in ("forward", "backward")}
    assert largest_difference(found, results(changes, training, "none", monkeypatch)) < CLOSE


@built
@pytest.mark.parametrize("threads", [2, 3, 64])
def test_the_number_of_threads_changes_no_bit(threads, monkeypatch):
    one, more = (results({}, True, "", monkeypatch, threads=number) for number in (1, threads))
    if of_amd():  # MKL's products, which stand around the loops, are rounded by the number of threads there
        assert largest_difference(more, one) < CLOSE
    else:
        assert all(torch.equal(one[name], more[name]) for name in one)


@built
def test_memories_without_tokens_are_attended_to_alike(monkeypatch):
    changed = {}
    for where in ("", "none"):
        monkeypatch.setenv(compiled.NAMED, where or LIBRARY)
        net = network(output_dropout=0.0).to(torch.float32)
        sequences, tokens = batch()
        tokens[1, 0] = 0  # nothing but padding
        tokens[2, 1, 2:] = 0
        loss = net.loss(sequences, tokens).sum()
        loss.backward()
        changed[where] = {"loss": loss.detach()} | {n: p.grad for n, p in net.named_parameters() if p.grad is not None}
    assert largest_difference(changed[""], changed["none"]) < CLOSE


@built
@pytest.mark.long
@pytest.mark.parametrize("instructions", ["portable", "avx2", "avx512", "amx"])
def test_every_instruction_set_computes_the_same(instructions):
    code = (
        "import torch\n"
        "from tests.models.test_network import batch, network\n"
        "net = network(output_dropout=0.0).to(torch.float32)\n"
        "loss = net.loss(*batch()).sum()\n"
        "loss.backward()\n"
        "print(loss.item(), sum(p.grad.double().abs().sum().item() for p in net.parameters() if p.grad is not None))"
    )
    found = []
    for settings in ({"COMPGEN_INSTRUCTIONS": instructions}, {compiled.NAMED: "none"}):
        given = os.environ | {compiled.NAMED: LIBRARY} | settings
        done = subprocess.run([sys.executable, "-c", code], env=given, capture_output=True, text=True, check=False)
        if "COMPGEN_INSTRUCTIONS=" in done.stderr:
            pytest.skip(f"this processor has no {instructions}")
        assert done.returncode == 0, done.stderr
        found.append([float(number) for number in done.stdout.split()])
    assert found[0] == pytest.approx(found[1], rel=CLOSE)


@pytest.fixture
def afresh():
    """No library is remembered."""
    compiled.library.cache_clear()
    yield
    compiled.library.cache_clear()


@pytest.mark.usefixtures("afresh")
def test_without_the_library_loops_are_those_of_python(tmp_path, monkeypatch):
    monkeypatch.setenv(compiled.NAMED, "none")
    assert not compiled.runs(torch.zeros(1))
    monkeypatch.delenv(compiled.NAMED)
    for place in ("BUILT", "INSTALLED"):
        monkeypatch.setattr(compiled, place, tmp_path / "nowhere")
    assert not compiled.runs(torch.zeros(1))


@pytest.mark.usefixtures("afresh")
def test_a_library_that_is_named_must_be_one(tmp_path, monkeypatch):
    other = tmp_path / compiled.LIBRARY
    monkeypatch.setenv(compiled.NAMED, str(other))
    for content in (None, b"no library"):
        if content:
            other.write_bytes(content)
        with pytest.raises(
            UserError, match=f"{compiled.NAMED}=.*; expected {compiled.LIBRARY} of this version, or none"
        ):
            compiled.runs(torch.zeros(1))


@built
@pytest.mark.usefixtures("afresh")
def test_a_library_of_another_layout_is_not_used(monkeypatch):
    monkeypatch.setattr(compiled, "LAYOUT", compiled.LAYOUT + 1)
    monkeypatch.delenv(compiled.NAMED, raising=False)
    assert not compiled.runs(torch.zeros(1))
    monkeypatch.setenv(compiled.NAMED, LIBRARY or str(compiled.BUILT))
    with pytest.raises(UserError, match="of another version"):
        compiled.runs(torch.zeros(1))


@built
def test_double_precision_is_left_to_the_loops_in_python(monkeypatch):
    monkeypatch.setenv(compiled.NAMED, LIBRARY)
    assert compiled.runs(torch.zeros(1))
    assert not compiled.runs(torch.zeros(1, dtype=torch.float64))
