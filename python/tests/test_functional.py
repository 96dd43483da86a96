"""The functions beside the layers that call the same ops, and beside plain PyTorch."""

import pytest
import torch

import translution
from translution import functional as F


def make(method, **options):
    torch.manual_seed(1)
    layer = translution.Attention(6, heads=2, dim_head=4, method=method, dtype=torch.float64,
                                  **(options if "grid" in options else
                                     dict(grid=(3, 2), cls=True, **options)))
    layer.out = torch.nn.Identity()  # the functions have no projection behind the heads
    x = torch.randn(2, layer.tokens, 6, dtype=torch.float64, requires_grad=True)
    return layer, x


PLACES = [dict(grid=(3, 2), cls=True), dict(grid=7, causal=True), dict(grid=(2, 2, 2)),
          dict(grid=(4, 4), sharing="direction", radius=1)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("rows", [None, [0, 3], torch.tensor([2])])
def test_translution(place, rows):
    layer, x = make("translution", **place)
    assert F.count_rows(**place) == len(layer.query)
    y = F.translution(x, layer.query, layer.key, layer.value, heads=2, rows=rows, **place)
    torch.testing.assert_close(y, layer(x, rows))
    assert y.shape == (2, layer.tokens if rows is None else len(rows), 8)
    y.square().sum().backward()
    assert layer.query.grad.any() and x.grad.any()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("mixing", ["sum", "mean"])
@pytest.mark.parametrize("shared", [True, False])
def test_alpha_translution(place, mixing, shared):
    layer, x = make("alpha_translution", mixing=mixing, shared_qkv=shared, **place)
    roles = [layer.query, layer.key, layer.value] if shared else None
    down = [layer.query_down, layer.key_down, layer.value_down]
    tables = [layer.query_offsets, layer.key_offsets, layer.value_offsets]
    y = F.alpha_translution(x, roles, down, tables, layer.value_up, heads=2, mixing=mixing, **place)
    torch.testing.assert_close(y, layer(x))


def test_alpha_translution_of_one_role():
    layer, x = make("alpha_translution", roles="v")
    y = F.alpha_translution(x, [layer.query, layer.key, layer.value], [None, None, layer.value_down],
                            [None, None, layer.value_offsets], layer.value_up, heads=2,
                            grid=(3, 2), cls=True)
    torch.testing.assert_close(y, layer(x))


@pytest.mark.parametrize("roles", ["qkv", "v", "qk"])
def test_biases(roles):
    """Tables have a bias row; what is one for all offsets has a vector."""
    layer, x = make("translution", roles=roles, qkv_bias=True)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    biases = [getattr(layer, f"{name}_bias", None) for name in ("query", "key", "value")]
    y = F.translution(x, layer.query, layer.key, layer.value, heads=2, grid=(3, 2), cls=True,
                      biases=biases)
    torch.testing.assert_close(y, layer(x))
    plain, _ = make("alpha_translution", qkv_bias=True)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.normal_()
    y = F.alpha_translution(x, [plain.query, plain.key, plain.value],
                            [plain.query_down, plain.key_down, plain.value_down],
                            [plain.query_offsets, plain.key_offsets, plain.value_offsets],
                            plain.value_up, heads=2, grid=(3, 2), cls=True,
                            biases=[plain.query_bias, plain.key_bias, plain.value_bias])
    torch.testing.assert_close(y, plain(x))


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_of_plain_pytorch(causal):
    """Without a grid, as torch.nn.MultiheadAttention computes it; non-contiguous input."""
    torch.manual_seed(2)
    x = torch.randn(6, 5, 2, dtype=torch.float64).permute(2, 1, 0)
    q, k, v = (torch.randn(6, 8, dtype=torch.float64) for _ in range(3))
    biases = tuple(torch.randn(8, dtype=torch.float64) for _ in range(3))
    y = F.self_attention(x, q, k, v, heads=2, causal=causal, biases=biases)
    Q, K, V = ((x @ w + b).reshape(2, 5, 2, 4).transpose(1, 2) for w, b in zip((q, k, v), biases))
    scores = Q @ K.transpose(2, 3) / 2
    if causal:
        scores = scores.masked_fill(torch.ones(5, 5).triu(1) > 0, -torch.inf)
    torch.testing.assert_close(y, (scores.softmax(-1) @ V).transpose(1, 2).flatten(2))


@pytest.mark.parametrize("method, names", [("relative_key", ["key_vectors"]),
                                           ("relative_value", ["value_vectors"]),
                                           ("relative_bias", ["bias"])])
def test_position_terms(method, names):
    layer, x = make(method)
    terms = {name: getattr(layer, name) for name in names}
    y = F.self_attention(x, layer.query, layer.key, layer.value, heads=2, grid=(3, 2), cls=True,
                         **terms)
    torch.testing.assert_close(y, layer(x))
    assert F.self_attention(x, layer.query, layer.key, layer.value, heads=2).shape == y.shape


def test_gate_and_rotary():
    layer, x = make("gated_position")
    position = layer._tables["position_features"].to(torch.float64) @ layer.position_weight
    y = F.self_attention(x, layer.query, layer.key, layer.value, heads=2, grid=(3, 2), cls=True,
                         position=position, gate=layer.gate)
    torch.testing.assert_close(y, layer(x))
    layer, x = make("rotary")
    y = F.self_attention(x, layer.query, layer.key, layer.value, heads=2, angles=layer._tables["angles"])
    torch.testing.assert_close(y, layer(x))


@pytest.mark.parametrize("size", [1, 3, 5])
def test_convolution_of_pytorch(size):
    """conv2d with the kernel turned round: ours is indexed by query minus key."""
    torch.manual_seed(3)
    x = torch.randn(2, 4 * 5, 3, dtype=torch.float64)
    kernel = torch.randn(size * size, 3, 4, dtype=torch.float64)
    radius = size // 2
    assert F.count_rows((4, 5), sharing="window", radius=radius) == size * size
    y = F.convolution(x, kernel, grid=(4, 5), kernel_size=size)
    image = x.transpose(1, 2).reshape(2, 3, 4, 5)
    turned = kernel.flip(0).reshape(size, size, 3, 4).permute(3, 2, 0, 1)
    expected = torch.nn.functional.conv2d(image, turned, padding=radius)
    torch.testing.assert_close(y, expected.flatten(2).transpose(1, 2))
    torch.testing.assert_close(F.convolution(x, kernel, grid=(4, 5), kernel_size=size, rows=[7]),
                               y[:, [7]])


def test_convolution_of_the_layer():
    layer, x = make("convolution", kernel_size=3)
    y = F.convolution(x, layer.kernel, grid=(3, 2), cls=True)
    torch.testing.assert_close(y, layer(x))


def test_dropout_and_precision():
    layer, x = make("translution")
    weights = layer.query, layer.key, layer.value
    torch.manual_seed(0)
    first = F.translution(x, *weights, heads=2, grid=(3, 2), cls=True, dropout=0.5)
    again = F.translution(x, *weights, heads=2, grid=(3, 2), cls=True, dropout=0.5)
    assert not torch.equal(first, again)
    exact = F.translution(x, *weights, heads=2, grid=(3, 2), cls=True)
    rounded = F.translution(x.float(), *(w.float() for w in weights), heads=2, grid=(3, 2), cls=True,
                            precision="bf16")
    difference = (rounded - exact).abs().max() / exact.abs().max()
    assert 1e-4 < difference < 3e-2


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "relative_bias", "convolution"])
@pytest.mark.parametrize("rows", [None, [3, 0]])
def test_key_padding_mask(method, rows):
    """As the layers in plain PyTorch; one sample has no keys at all."""
    layer, x = make(method)
    mask = torch.tensor([[True, False, True, True, False, True, True], [False] * 7])
    place = dict(grid=(3, 2), cls=True, rows=rows, key_padding_mask=mask)
    w = {name: getattr(layer, name) for name in layer._names}
    if method == "translution":
        y = F.translution(x, w["query"], w["key"], w["value"], heads=2, **place)
    elif method == "alpha_translution":
        y = F.alpha_translution(x, *([w[role + part] for role in ("query", "key", "value")]
                                     for part in ("", "_down", "_offsets")), w["value_up"], heads=2,
                                **place)
    elif method == "relative_bias":
        y = F.self_attention(x, w["query"], w["key"], w["value"], heads=2, bias=w["bias"], **place)
    else:
        y = F.convolution(x, w["kernel"], **place)
    plain = translution.ReferenceAttention(**layer.options, dtype=torch.float64)
    structure = plain.structure(None, None if rows is None else tuple(rows))
    expected = translution.reference.attend(x, w, structure, layer.options, mask)[0]
    torch.testing.assert_close(y, expected)
    assert y[0].any() and not y[1].any()
    gradients = [torch.autograd.grad(out.square().sum(), [x, *w.values()]) for out in (y, expected)]
    for a, b in zip(*gradients):
        torch.testing.assert_close(a, b)


def test_one_token():
    x, w = torch.randn(1, 1, 2), torch.randn(1, 2, 2)
    torch.testing.assert_close(F.translution(x, w, w, w, heads=1, grid=1), x @ w[0])


def test_refusals():
    x, w = torch.randn(1, 4, 2), torch.randn(9, 2, 2)
    with pytest.raises(RuntimeError, match="slots"):
        F.translution(x, w[:5], w, w, heads=1, grid=(2, 2))
    with pytest.raises((ValueError, RuntimeError), match="pairs"):
        F.translution(x, w, w, w, heads=1, grid=(2, 2), encoding="other")
    with pytest.raises((ValueError, RuntimeError), match="mask"):
        F.translution(x, w, w, w, heads=1, grid=(2, 2), key_padding_mask=torch.ones(1, 4))
    with pytest.raises(ValueError, match="expected a grid with cls, got none"):
        F.self_attention(x, w[0], w[0], w[0], heads=1, cls=True)
    with pytest.raises(ValueError, match="expected an odd kernel_size of 1 or more, got 2"):
        F.convolution(x, w, grid=(2, 2), kernel_size=2)
