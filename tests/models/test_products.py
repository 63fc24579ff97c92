"""Products by oneDNN are those of PyTorch, and so are their gradients."""

import pytest
import torch

from compgen.models import products
from compgen.models.products import Linear, linear, product
from tests.models.test_network import batch, network

fast = pytest.mark.skipif(not products.AVAILABLE, reason="this PyTorch, or processor, has no oneDNN product")

M, K, N = 64, 160, 256


@pytest.fixture(autouse=True)
def _preferred(monkeypatch):
    """On any maker's processor."""
    monkeypatch.setattr(products, "PREFERRED", products.AVAILABLE)


@pytest.fixture
def counted(monkeypatch):
    """How often oneDNN is called."""
    calls, real = [], products._fast

    def counting(*sizes):
        calls.append(real(*sizes))
        return calls[-1]

    monkeypatch.setattr(products, "_fast", counting)
    return calls


@fast
@pytest.mark.parametrize("plus", [None, (M, N), (N,)])
@pytest.mark.parametrize("into", [False, True])
@pytest.mark.parametrize("strided", [False, True])
def test_a_product_is_that_of_torch(plus, into, strided, counted):
    torch.manual_seed(0)
    x, weights = torch.randn(M, K), torch.randn(K, N)
    if strided:  # a slice of longer rows, and a transpose
        x, weights = torch.randn(M, 3 * K)[:, K : 2 * K], torch.randn(N, K).t()
    more = None if plus is None else torch.randn(plus)
    out = torch.empty(3, M, N)[1] if into else None
    found = product(x, weights, more, out=out)
    expected = x.double() @ weights.double() + (0 if more is None else more)
    torch.testing.assert_close(found, expected.float(), rtol=1e-5, atol=1e-4)
    assert counted == [True] and (out is None or found.data_ptr() == out.data_ptr())


def test_small_products_and_float64_are_left_to_torch(counted):
    x = torch.randn(4, 5)
    torch.testing.assert_close(product(x, x.t()), x @ x.t())
    x = torch.randn(M, K, dtype=torch.float64)
    torch.testing.assert_close(
        product(x, torch.ones(K, N, dtype=torch.float64)), x.sum(dim=1, keepdim=True).expand(M, N)
    )
    assert counted == [False, False]


@fast
@pytest.mark.parametrize("shape", [(M, K), (4, 16, K)])
def test_a_linear_layer_and_its_gradients_are_those_of_torch(shape, counted):
    torch.manual_seed(0)
    layer = Linear(K, N)
    x, weight = torch.randn(shape, requires_grad=True), torch.randn(*shape[:-1], N)
    given = [x, layer.weight, layer.bias]
    found, expected = [
        (y, *torch.autograd.grad((y * weight).sum(), given))
        for y in (layer(x), torch.nn.functional.linear(x, layer.weight, layer.bias))
    ]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
    assert all(counted) and len(counted) == 3  # forwards, and for x and the weight
    torch.testing.assert_close(torch.autograd.grad(layer(x).sum(), [layer.bias])[0], torch.full((N,), float(M)))
    counted.clear()
    layer.eval()(x)
    assert not counted  # that is not training


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_it_can_be_scripted():
    layer = Linear(K, N)
    x = torch.randn(M, K)
    torch.testing.assert_close(torch.jit.script(layer)(x), layer.eval()(x))
    torch.testing.assert_close(torch.jit.script(linear)(x, layer.weight, layer.bias, True), layer(x))


@fast
@pytest.mark.parametrize("changes", [{}, {"memories": 3, "encoder_shared": False}, {"latent": 4}, {"own": 3}], ids=str)
def test_networks_are_trained_as_by_torch(changes, monkeypatch, counted):
    """Losses and gradients in float32, all products by oneDNN, are those in float64 but for rounding."""
    monkeypatch.setattr(products, "LEAST", 0)
    nothing = dict.fromkeys(("embedding_dropout", "output_dropout", "feed_dropout", "write_dropout"), 0.0)
    found = []
    for dtype in (torch.float32, torch.float64):
        net = network(**nothing | changes).to(dtype).train()
        sequences, tokens = batch(memories=net.memories)
        latent = torch.ones(len(sequences), 4, dtype=dtype) if "latent" in changes else None
        loss = -net.log_likelihood(sequences, tokens, latent).sum()
        weights = dict(net.named_parameters())
        gradients = torch.autograd.grad(loss, list(weights.values()), allow_unused=True)
        found.append({"loss": loss} | dict(zip(weights, gradients, strict=True)))
    assert any(counted)
    single, double = found
    for name, expected in double.items():
        if expected is not None:
            scale = float(expected.detach().abs().max()) + 1e-6
            torch.testing.assert_close(single[name].double(), expected, rtol=0, atol=2e-5 * scale, msg=name)
