"""torch.compile, torch.export, fake tensors and activation checkpoints: the same values and
gradients as without them."""

import pytest
import torch
import translution
from torch.utils.checkpoint import checkpoint

if not hasattr(torch, "compile"):
    pytest.skip(f"torch.compile needs PyTorch 2, this is {torch.__version__}",
                allow_module_level=True)

import torch._inductor.config  # noqa: E402
from torch._dynamo.utils import counters  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

METHODS = torch.ops.translution.method_names()


@pytest.fixture(autouse=True)
def fresh():
    """Nothing compiled before, also not on disk by another version of the library."""
    torch.manual_seed(0)
    torch._dynamo.reset()
    counters.clear()
    with torch._inductor.config.patch(force_disable_caches=True):
        yield


def make(method, cls=True, **options):
    return translution.Attention(16, heads=2, dim_head=8, grid=(2, 3), cls=cls, method=method,
                                 **options)


def make_vit(**options):
    return translution.ViT(image_size=8, patch_size=4, dim=16, heads=2, dim_head=8, mlp_dim=24,
                           depth=2, channels=1, classes=5, **options)


def make_gpt(**options):
    return translution.GPT(vocabulary=11, length=8, dim=16, heads=2, dim_head=8, mlp_dim=24,
                           depth=2, **options)


def run(function, module, x):
    """The output of a function of x, and the gradients of x and of the parameters of a module."""
    x = x.detach().requires_grad_(x.is_floating_point())
    out = function(x)
    wanted = [x] * x.requires_grad + list(module.parameters())
    weight = torch.linspace(-1, 1, out.numel()).view(out.shape)
    return [out.detach(), *torch.autograd.grad((out * weight).sum(), wanted)]


def assert_same(found, expected, rtol=2e-5, atol=2e-5):
    assert len(found) == len(expected)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol)


def assert_compiles(module, inputs, backend="aot_eager", **tolerance):
    """One graph for all inputs, which differ in the size of the batch."""
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend=backend)
    for x in inputs:
        assert_same(run(compiled, module, x), run(module, module, x), **tolerance)
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("method", METHODS)
def test_layer(method):
    assert_compiles(make(method), [torch.randn(B, 7, 16) for B in (3, 17)])


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "gated_position"])
def test_layer_in_bfloat16_products(method):
    assert_compiles(make(method, precision="bf16"), [torch.randn(B, 7, 16) for B in (3, 5)])


def test_layer_with_saved_encodings_and_rows_and_map():
    layer = translution.Translution(72, heads=2, dim_head=8, grid=(2, 3))
    assert_compiles(layer, [torch.randn(B, 6, 72) for B in (3, 5)])
    compiled = torch.compile(layer.forward_with_map, fullgraph=True, dynamic=True,
                             backend="aot_eager")
    x = torch.randn(3, 6, 72)
    assert_same(compiled(x, rows=[0, 5, 2]), layer.forward_with_map(x, rows=[0, 5, 2]))


@pytest.mark.parametrize("method", ["translution", "rotary"])
def test_layer_of_any_length(method):
    layer = translution.Attention(16, heads=2, dim_head=8, grid=(12,), causal=True, method=method)
    assert_compiles(layer, [torch.randn(3, N, 16) for N in (5, 9)])


def test_layer_by_inductor():
    assert_compiles(make("translution"), [torch.randn(B, 7, 16) for B in (3, 5)], "inductor",
                    rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("method, pooling", [("alpha_translution", "cls"), ("rotary", "mean")])
def test_vit(method, pooling):
    assert_compiles(make_vit(method=method, pooling=pooling),
                    [torch.randn(B, 1, 8, 8) for B in (3, 17)])


def test_gpt():
    assert_compiles(make_gpt(method="translution"), [torch.randint(11, (B, 8)) for B in (3, 5)])


def test_vit_by_inductor():
    assert_compiles(make_vit(method="alpha_translution"),
                    [torch.randn(B, 1, 8, 8) for B in (3, 5)], "inductor", rtol=1e-4, atol=1e-5)


def test_cross_entropy():
    def loss(logits):
        return torch.ops.translution.cross_entropy(logits, torch.arange(4), 0.1)[0]

    assert_compiles_function(loss, torch.randn(4, 7))


def assert_compiles_function(function, x):
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
    module = torch.nn.Module()
    assert_same(run(compiled, module, x), run(function, module, x))


# --- dropout

def test_dropout_draws_the_numbers_of_eager():
    layer, x = make("translution", dropout=0.4), torch.randn(3, 7, 16)
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    results = []
    for function in (layer, compiled, compiled):
        if len(results) < 2:
            torch.manual_seed(5)
        results.append(run(function, layer, x))
    assert_same(results[1], results[0])
    assert not torch.allclose(results[2][0], results[1][0])  # drawn in every call


def test_dropout_by_inductor_has_one_mask_for_forward_and_backward():
    layer, x = make("self_attention_no_pos", dropout=0.5), torch.randn(64, 7, 16)
    compiled = torch.compile(layer, fullgraph=True, backend="inductor")
    out = compiled(x).sum()
    dvalue, = torch.autograd.grad(out, [layer.value])
    # The output is linear in the weight of the values.
    torch.testing.assert_close((dvalue * layer.value).sum(), out - 64 * 7 * layer.out.bias.sum(),
                               rtol=1e-3, atol=1e-2)
    dropped = torch.stack([compiled(x) for _ in range(200)]).mean(0)
    torch.testing.assert_close(dropped, layer.eval()(x), rtol=0.2, atol=0.2)


# --- export

def test_exported_models_run_in_a_new_process(run_python, tmp_path):
    batch = torch.export.Dim("batch", min=2, max=64)
    cases = {"layer": (make("rotary"), torch.randn(3, 7, 16)),
             "gated": (make("gated_position"), torch.randn(3, 7, 16)),
             "vit": (make_vit(method="translution"), torch.randn(3, 1, 8, 8)),
             "gpt": (make_gpt(method="alpha_translution"), torch.randint(11, (3, 8)))}
    for name, (module, x) in cases.items():
        with torch.no_grad():
            program = torch.export.export(module.eval(), (x,), dynamic_shapes=({0: batch},))
        torch.export.save(program, str(tmp_path / f"{name}.pt2"))
        x = torch.cat([x, x])  # another batch size
        torch.save((x, module(x).detach()), tmp_path / f"{name}.pt")
    run_python(f"""
import torch, translution
for name in {list(cases)}:
    x, expected = torch.load(f"{tmp_path}/{{name}}.pt")
    found = torch.export.load(f"{tmp_path}/{{name}}.pt2").module()(x)
    torch.testing.assert_close(found, expected)
""")


def test_exported_layer_trains():
    layer, x = make("alpha_translution"), torch.randn(3, 7, 16)
    exported = torch.export.export(layer, (x,)).module()
    found, expected = run(exported, exported, x), run(layer, layer, x)
    assert_same(found[:2], expected[:2])
    names = [name for name, _ in layer.named_parameters()]
    theirs = dict(zip((name for name, _ in exported.named_parameters()), found[2:]))
    assert_same([theirs[name] for name in names], expected[2:])


# --- fake tensors

@pytest.mark.parametrize("method", METHODS)
def test_fake_tensors_have_the_shapes_and_strides_of_real_ones(method):
    layer, x = make(method), torch.randn(3, 7, 16)
    real = layer.forward_with_map(x, rows=[0, 4])
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        weights = {name: mode.from_tensor(w) for name, w in layer.named_parameters()}
        fake_x = mode.from_tensor(x)
        out = torch.func.functional_call(layer, weights, (fake_x, [0, 4]))
    assert (out.shape, out.stride(), out.dtype) == (real[0].shape, real[0].stride(), real[0].dtype)


# --- activation checkpoints

@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("method", METHODS)
def test_checkpoint_gives_the_same_gradients_with_dropout(method, use_reentrant):
    layer, x = make(method, dropout=0.3), torch.randn(3, 7, 16)
    results = []
    for function in (layer, lambda x: checkpoint(layer, x, use_reentrant=use_reentrant)):
        torch.manual_seed(3)
        results.append(run_backward(function, layer, x))
    assert_same(results[1], results[0], rtol=0, atol=0)


def run_backward(function, module, x):
    """As run, by backward(): reentrant checkpoints do not support autograd.grad."""
    module.zero_grad()
    x = x.detach().requires_grad_()
    out = function(x)
    out.square().sum().backward()
    return [out.detach(), x.grad, *[p.grad.clone() for p in module.parameters()]]


def test_checkpoint_compiles():
    layer = make("translution", dropout=0.3)

    def function(x):
        return checkpoint(layer, x, use_reentrant=False).square()

    compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
    x, results = torch.randn(3, 7, 16), []
    for f in (function, compiled):
        torch.manual_seed(3)
        results.append(run(f, layer, x))
    assert_same(results[1], results[0])


# --- plain PyTorch

def test_reference_layer_compiles():
    assert_compiles(translution.ReferenceAttention(**make("translution").options),
                    [torch.randn(B, 7, 16) for B in (3, 5)])
