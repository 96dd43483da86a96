"""Every method against the literal implementation: outputs, maps and all gradients."""

import pytest
import torch
from literal import Literal, Pairs

import translution

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-10}

GRIDS = {
    "1d": dict(grid=(7,)),
    "causal": dict(grid=(6,), causal=True),
    "2d_cls": dict(grid=(2, 4), cls=True),
    "2d_causal_cls": dict(grid=(3, 2), cls=True, causal=True),
    "3d": dict(grid=(2, 1, 3)),
    "single": dict(grid=(1,)),
}
METHODS = {
    "no_pos": dict(method="self_attention_no_pos"),
    "plain": dict(method="self_attention"),
    "relative_key": dict(method="relative_key"),
    "relative_value": dict(method="relative_value"),
    "relative_bias": dict(method="relative_bias"),
    "rotary_bias": dict(method="relative_bias", rotary=True),
    "gated": dict(method="gated_position"),
    "rotary": dict(method="rotary"),
    "convolution": dict(method="convolution"),
    "convolution5": dict(method="convolution", kernel_size=5),
    **{f"translution_{roles}": dict(method="translution", roles=roles)
       for roles in ("qkv", "q", "k", "v", "qk", "qv", "kv", "none")},
    "rotary_v": dict(method="translution", roles="v", rotary=True),
    "absolute": dict(method="translution", encoding="absolute"),
    "direction": dict(method="translution", sharing="direction", radius=1),
    "logarithmic": dict(method="translution", sharing="logarithmic", radius=1),
    **{f"alpha_{roles}": dict(method="alpha_translution", roles=roles, relative_dim=3)
       for roles in ("qkv", "q", "k", "v", "qk", "qv", "kv", "none")},
    "alpha_mean": dict(method="alpha_translution", relative_dim=3, mixing="mean"),
    "alpha_mean_v": dict(method="alpha_translution", relative_dim=3, mixing="mean", roles="v"),
    "alpha_alone": dict(method="alpha_translution", relative_dim=3, shared_qkv=False),
    "alpha_alone_k": dict(method="alpha_translution", relative_dim=3, shared_qkv=False, roles="k"),
    **{f"alpha_widths_{roles}": dict(method="alpha_translution", roles=roles, relative_dim=3,
                                     relative_dim_out=5) for roles in ("qkv", "q", "k", "v")},
    "alpha_widths_alone": dict(method="alpha_translution", relative_dim=3, relative_dim_out=1,
                               shared_qkv=False, roles="q"),
    "alpha_rotary": dict(method="alpha_translution", relative_dim=3, rotary=True),
    "alpha_0": dict(method="alpha_translution", relative_dim=0),
    "alpha_absolute": dict(method="alpha_translution", relative_dim=3, encoding="absolute"),
    "plain_biases": dict(method="self_attention", qkv_bias=True),
    **{f"biases_{roles}": dict(method="translution", roles=roles, qkv_bias=True)
       for roles in ("qkv", "q", "kv", "v", "none")},
    "alpha_biases": dict(method="alpha_translution", relative_dim=3, qkv_bias=True),
    "alpha_biases_k_mean": dict(method="alpha_translution", relative_dim=3, roles="k", mixing="mean",
                                qkv_bias=True),
}


def error(found, expected):
    scale = max(expected.abs().max().item(), 1e-30)
    return (found - expected).abs().max().item() / scale


def compare(layer, pairs=None, rows=None, batch=2):
    """Outputs, map and gradients of the layer beside those of the literal one in float64."""
    dtype = layer.out.weight.dtype
    generator = torch.Generator().manual_seed(3)
    if layer.options["qkv_bias"]:  # biases start at zero
        for value in layer.parameters():
            value.data = 0.3 * torch.randn(value.shape, generator=generator, dtype=dtype)
    x = torch.randn(batch, layer.tokens, layer.options["dim"], generator=generator,
                    dtype=torch.float64)
    ours = x.to(dtype).requires_grad_()
    out, map = layer.forward_with_map(ours, rows)
    assert torch.equal(out, layer(ours, rows))
    theirs = ours.detach().double().requires_grad_()
    weights = {name: value.detach().double().requires_grad_()
               for name, value in layer.named_parameters()}
    expected, expected_map = Literal(layer.options, weights, pairs)(theirs, rows)
    tolerance = TOLERANCE[dtype]
    assert error(out, expected) < tolerance
    assert error(map, expected_map) < tolerance
    upstream = torch.randn(out.shape, generator=generator, dtype=torch.float64).to(dtype)
    out.backward(upstream)
    expected.backward(upstream.double())
    largest = max(value.grad.abs().max().item() for value in weights.values()
                  if value.grad is not None)
    for name, value in [("x", ours), *layer.named_parameters()]:
        expected = theirs.grad if name == "x" else weights[name].grad
        if expected is None:
            assert value.grad is None or not value.grad.any(), name
        elif expected.abs().max() < 1e-12 * largest:  # a single token: the scores do not matter
            assert value.grad.abs().max() < tolerance * largest, name
        else:
            assert error(value.grad, expected) < tolerance, name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("method", METHODS)
def test_method_is_its_formula(method, grid, dtype):
    options = {**GRIDS[grid], **METHODS[method]}
    D = 12 if grid == "3d" else 8  # rotary needs pairs for every axis
    torch.manual_seed(1)
    layer = translution.Attention(10, heads=2, dim_head=D, dtype=dtype, **options)
    compare(layer)


@pytest.mark.parametrize("method", ["translution", "alpha_translution"])
def test_larger_odd_grid(method):
    torch.manual_seed(1)
    compare(translution.Attention(7, heads=3, dim_head=5, grid=(3, 5), cls=True, method=method))


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "relative_key",
                                    "relative_value", "gated_position", "rotary", "convolution"])
def test_only_the_rows_asked_for(method):
    layer = translution.Attention(9, heads=3, dim_head=4, grid=(3, 4), cls=True, method=method,
                                  dtype=torch.float64)
    compare(layer, rows=torch.tensor([0, 7, 4]))


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "relative_key", "rotary",
                                    "relative_bias", "convolution"])
def test_shorter_input_is_the_start_of_the_sequence(method):
    layer = translution.Attention(6, heads=2, dim_head=4, grid=9, causal=True, method=method,
                                  dtype=torch.float64)
    x = torch.randn(2, 9, 6, dtype=torch.float64)
    torch.testing.assert_close(layer(x[:, :5]), layer(x)[:, :5], rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mirror", [(), (0, 2, 1)])
@pytest.mark.parametrize("method", ["translution", "alpha_translution", "relative_bias"])
def test_relation_of_the_caller(method, mirror):
    slots = [[0, 1, -1, 1], [2, 0, 1, -1], [-1, 2, 0, 1], [2, -1, 2, 0]]
    relation = translution.Relation(torch.tensor(slots), 3, mirror)
    layer = translution.Attention(5, heads=2, dim_head=3, method=method, relation=relation,
                                  dtype=torch.float64)
    compare(layer, Pairs.of_relation(slots, (0, 2, 1)))


def test_convolution_is_conv2d():
    layer = translution.Attention(4, heads=1, dim_head=6, grid=(5, 6), method="convolution",
                                  dtype=torch.float64)
    x = torch.randn(2, 30, 4, dtype=torch.float64)
    # Slot delta = p_i - p_j, from the most negative: conv2d counts from j to i the other way.
    kernel = layer.kernel.detach().reshape(3, 3, 4, 6).flip(0, 1).permute(3, 2, 0, 1)
    image = x.transpose(1, 2).reshape(2, 4, 5, 6)
    expected = torch.nn.functional.conv2d(image, kernel, padding=1).flatten(2).transpose(1, 2)
    torch.testing.assert_close(layer(x), layer.out(expected), rtol=1e-10, atol=1e-12)
