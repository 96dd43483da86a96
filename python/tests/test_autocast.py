"""torch.autocast("cpu", torch.bfloat16): products in bfloat16, everything else in float32."""

import pytest
import torch
import translution

OPS = torch.ops.translution
METHODS = OPS.method_names()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def autocast(dtype=torch.bfloat16):
    return torch.autocast("cpu", dtype)


def make(method, **options):
    return translution.Attention(16, heads=2, dim_head=8, grid=(2, 3), cls=True, method=method,
                                 **options)


def gradients(module):
    return {name: p.grad for name, p in module.named_parameters()}


def backward(module, out):
    module.zero_grad()
    (out.float() * torch.linspace(-1, 1, out.numel()).view(out.shape)).sum().backward()
    return {name: p.grad.clone() for name, p in module.named_parameters()}


@pytest.mark.parametrize("method", METHODS)
def test_layer_takes_the_bfloat16_kernels(method):
    layer, x = make(method), torch.randn(3, 7, 16)
    lower = make(method, precision="bf16")
    lower.load_state_dict(layer.state_dict())
    with autocast():
        out = layer(x)
        again = layer(x.bfloat16())  # what a layer before it gives
    expected = lower(x.bfloat16())
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, expected) and torch.equal(again, expected)
    found, wanted = backward(layer, out), backward(lower, expected)
    for name in wanted:
        assert found[name].dtype == torch.float32
        assert torch.equal(found[name], wanted[name]), name


def test_the_input_has_a_float32_gradient():
    layer, x = make("translution"), torch.randn(3, 7, 16, requires_grad=True)
    with autocast():
        layer(x).float().square().sum().backward()
    exact = torch.autograd.grad(layer(x).square().sum(), x)[0]
    assert x.grad.dtype == torch.float32
    assert (x.grad - exact).norm() / exact.norm() < 0.02


@pytest.mark.parametrize("method", METHODS)
def test_float64_is_untouched(method):
    layer, x = make(method).double(), torch.randn(3, 7, 16, dtype=torch.double)
    with autocast():
        out = layer(x)
    assert torch.equal(out, layer(x))


@pytest.mark.skipif(torch.__version__.startswith("1."),
                    reason="autocast of PyTorch 1 on the CPU has bfloat16 alone")
def test_float16_changes_nothing():
    layer, x = make("translution"), torch.randn(3, 7, 16)
    with autocast(torch.float16):
        out = layer(x)
    assert torch.equal(out, layer(x))


def test_disabled_inside():
    layer, x = make("translution"), torch.randn(3, 7, 16)
    with autocast(), torch.autocast("cpu", enabled=False):
        assert layer(x).dtype == torch.float32


def test_ops_have_the_types_of_PyTorch():
    x, weight, bias = torch.randn(2, 5), torch.randn(3, 5), torch.randn(3)
    relation = [x.view(1, 2, 5), torch.randn(3, 5, 4), "2 window=1"]
    with autocast():
        linear = torch.nn.functional.linear(x, weight, bias)
        projected = OPS.project(x, [weight], [bias], True)[0]
        assert projected.dtype == linear.dtype == torch.bfloat16
        torch.testing.assert_close(projected, linear)
        assert OPS.convolution(*relation).dtype == torch.bfloat16
        normed = OPS.layer_norm(x.bfloat16(), torch.ones(5), torch.zeros(5))
        assert normed.dtype == torch.float32
        loss, _ = OPS.cross_entropy(projected, torch.tensor([0, 2]))
        assert loss.dtype == torch.float32
        torch.testing.assert_close(
            loss, torch.nn.functional.cross_entropy(projected.float(), torch.tensor([0, 2])))
        for op in (OPS.sum_first, lambda x: OPS.gelu(x, True)):
            assert op(x).dtype == torch.float32 and op(x.bfloat16()).dtype == torch.bfloat16
        assert OPS.add_shared(x.bfloat16(), weight[0]).dtype == torch.float32


def test_attention_rounds_features_and_leaves_weights():
    q, table = torch.randn(2, 3, 4), torch.randn(5, 4, 4)
    terms = [None, None, q, q, table, q, table, None, None, None, None, None]
    with autocast():
        out, _, map, _ = OPS.attention(terms, "3", [], [], 2, 0.5)
    lower = [t.bfloat16() if t is q else t for t in terms]
    expected = OPS.attention(lower, "3", [], [], 2, 0.5, precision="bf16")
    assert out.dtype == torch.bfloat16 and map.dtype == torch.float32
    assert torch.equal(out, expected[0]) and torch.equal(map, expected[2])


def make_vit(method):
    model = translution.ViT(image_size=8, patch_size=4, dim=16, heads=2, dim_head=8, mlp_dim=24,
                            depth=2, channels=1, classes=4, method=method, dropout=0.1)
    return model, torch.randn(8, 1, 8, 8), torch.arange(8) % 4


def make_gpt(method):
    model = translution.GPT(vocabulary=7, length=8, dim=16, heads=2, dim_head=8, mlp_dim=24,
                            depth=2, method=method, dropout=0.1)
    tokens = torch.randint(7, (4, 9))
    return model, tokens[:, :-1], tokens[:, 1:].flatten()


@pytest.mark.parametrize("make", [make_vit, make_gpt])
@pytest.mark.parametrize("method", METHODS)
def test_models_train(make, method):
    model, x, target = make(method)
    optimizer = translution.AdamW(model.parameters(), lr=5e-3)
    losses = []
    for _ in range(12):
        optimizer.zero_grad()
        with autocast():
            logits = model(x)
            loss, _ = OPS.cross_entropy(logits.flatten(0, -2), target)
        assert logits.dtype == torch.bfloat16 and loss.dtype == torch.float32
        loss.backward()
        assert all(g is not None and g.dtype == torch.float32 for g in gradients(model).values())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.9 * losses[0], losses


@pytest.mark.parametrize("make", [make_vit, make_gpt])
def test_models_are_close_to_bf16_precision(make):
    model, x, target = make("alpha_translution")
    lower = type(model)(**{**model.options, "precision": "bf16"})
    lower.load_state_dict(model.state_dict())
    with autocast():
        found = model.eval()(x)
    expected = lower.eval()(x)
    assert (found.float() - expected).norm() / expected.norm() < 0.02


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch.compile needs PyTorch 2")
@pytest.mark.parametrize("make", [make_vit, make_gpt])
def test_models_compile(make):
    torch._dynamo.reset()
    model, x, _ = make("alpha_translution")
    model.eval()
    compiled = torch.compile(model, fullgraph=True, dynamic=True, backend="aot_eager")
    with autocast():
        expected, found = model(x), compiled(x)
    assert torch.equal(found, expected)
    wanted, got = backward(model, expected), backward(model, found)
    for name in wanted:
        torch.testing.assert_close(got[name], wanted[name], rtol=1e-5, atol=1e-6)
