"""Key padding and smaller grids: the library against the plain layers, and messages of both."""

import copy

import pytest
import torch

import translution
from translution.reference import ReferenceAttention

NAMES = ["self_attention_no_pos", "self_attention", "relative_key", "relative_value", "relative_bias",
         "gated_position", "rotary", "alpha_translution", "translution", "convolution"]
needs_library = pytest.mark.skipif(not translution.library_torch, reason="the library is not loaded")
LAYERS = [ReferenceAttention] + ([translution.Attention] if translution.library_torch else [])
CALLS = {
    "mask": dict(mask=True),
    "grid": dict(grid=(2, 3)),
    "rows": dict(mask=True, rows=[5, 0]),
    "all": dict(mask=True, grid=(3, 2), rows=torch.tensor([1, 5])),
}


def make(kind=ReferenceAttention, **options):
    torch.manual_seed(0)
    return kind(**{**dict(dim=12, heads=3, dim_head=4, grid=(3, 4), cls=True), **options})


def tokens_of(layer, grid):
    return layer.tokens if grid is None else grid[0] * grid[1] + int(layer.options["cls"])


def mask_of(B, N):
    """Every third token of a sample is padding, beginning at another place in each."""
    return (torch.arange(N) + torch.arange(B)[:, None]) % 3 > 0


def results(layer, x, call):
    """The output, the map and all gradients."""
    x = x.clone().requires_grad_()
    y, map = layer.forward_with_map(x, **call)
    grads = torch.autograd.grad((y * torch.arange(y.numel()).view_as(y).cos()).sum(),
                                [x, *layer.parameters()], allow_unused=True)
    return [y, map, *grads]


@needs_library
@pytest.mark.parametrize("dtype, tolerance", [(torch.float64, 1e-10), (torch.float32, 2e-4)])
@pytest.mark.parametrize("place", [dict(), dict(cls=False), dict(causal=True),
                                   dict(cls=False, causal=True)],
                         ids=["cls", "grid", "cls_causal", "causal"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("method", NAMES)
def test_library_is_the_reference(method, call, place, dtype, tolerance):
    own = make(method=method, dtype=dtype, **place)
    library = make(translution.Attention, method=method, dtype=dtype, **place)
    library.load_state_dict(own.state_dict())
    call = dict(CALLS[call])
    x = torch.randn(2, tokens_of(own, call.get("grid")), 12, dtype=dtype)
    if call.pop("mask", False):
        call["key_padding_mask"] = mask_of(2, x.shape[1])
    for a, b in zip(results(library, x, call), results(own, x, call)):
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance)


@needs_library
@pytest.mark.parametrize("method", NAMES)
def test_many_samples(method):
    """Narrow channels of many samples have kernels of their own."""
    own, library = make(method=method), make(translution.Attention, method=method)
    library.load_state_dict(own.state_dict())
    x, call = torch.randn(33, 13, 12), dict(key_padding_mask=mask_of(33, 13))
    call["key_padding_mask"][7] = False
    for a, b in zip(results(library, x, call), results(own, x, call)):
        torch.testing.assert_close(a, b, rtol=2e-4, atol=2e-4)


@needs_library
@pytest.mark.parametrize("method", NAMES)
def test_bf16(method):
    own = make(method=method, precision="bf16")
    library = make(translution.Attention, method=method, precision="bf16")
    library.load_state_dict(own.state_dict())
    x, mask = torch.randn(2, 13, 12), mask_of(2, 13)
    torch.testing.assert_close(library(x, key_padding_mask=mask), own(x, key_padding_mask=mask),
                               rtol=0.02, atol=0.005)


@needs_library
@pytest.mark.parametrize("method", NAMES)
def test_gradcheck(method):
    layer = make(translution.Attention, method=method, dim=3, heads=1, grid=(2, 3),
                 dtype=torch.float64)
    mask, x = mask_of(2, 5), torch.randn(2, 5, 3, dtype=torch.float64).requires_grad_()
    weights = list(layer.parameters())

    def call(x, *_):
        return layer(x, key_padding_mask=mask, grid=(2, 2))

    assert torch.autograd.gradcheck(call, [x, *weights], fast_mode=True)


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("method", NAMES)
def test_contents_of_padding_have_no_influence(kind, method):
    layer, x, mask = make(kind, method=method), torch.randn(2, 13, 12), mask_of(2, 13)
    other = x.masked_fill(~mask[..., None], float("nan"))
    other[0, 0] = float("inf")  # padding
    expected = layer(x, key_padding_mask=mask)
    assert torch.equal(layer(other, key_padding_mask=mask)[mask], expected[mask])
    x.requires_grad_()
    layer(x, key_padding_mask=mask)[mask].square().sum().backward()
    assert not x.grad[~mask].any()


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("method", NAMES)
def test_a_row_whose_keys_are_all_padding_is_the_bias_of_the_output(kind, method):
    layer, x, mask = make(kind, method=method), torch.randn(2, 13, 12), mask_of(2, 13)
    mask[1] = False
    y, map = layer.forward_with_map(x, key_padding_mask=mask)
    assert torch.equal(y[1], layer.out.bias.expand(13, 12))
    assert not map[1].any() and map[0].any()


@pytest.mark.parametrize("kind", LAYERS)
def test_one_grid_side_may_be_an_int(kind):
    layer, x = make(kind, grid=9, cls=False), torch.randn(2, 5, 12)
    assert torch.equal(layer(x, grid=5), layer(x))


@needs_library
@pytest.mark.parametrize("method", NAMES)
def test_meta_device(method):
    layer = make(translution.Attention, method=method, device="meta")
    x = torch.empty(2, 7, 12, device="meta")
    mask = torch.empty(2, 7, dtype=torch.bool, device="meta")
    y = layer(x, rows=[0, 4, 2], key_padding_mask=mask, grid=(3, 2))
    assert y.is_meta and y.shape == (2, 3, 12)


@needs_library
@pytest.mark.parametrize("method", ["translution", "gated_position", "rotary", "convolution"])
def test_traced(method):
    layer = make(translution.Attention, method=method)
    x, mask = torch.randn(2, 7, 12), mask_of(2, 7)

    class OnGrid(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, mask):
            return self.layer(x, key_padding_mask=mask, grid=(2, 3))

    traced = torch.jit.trace(OnGrid(), (x, mask))
    other, all = torch.randn(2, 7, 12), torch.ones_like(mask)
    torch.testing.assert_close(traced(other, all), layer(other, grid=(2, 3)))
    torch.testing.assert_close(traced(other, mask),
                               layer(other, key_padding_mask=mask, grid=(2, 3)))


@needs_library
def test_registered_methods_take_a_mask():
    x, mask = torch.randn(2, 5, 6), mask_of(2, 5)
    w = [torch.randn(6, 8) for _ in range(3)]
    ops = torch.ops.translution
    expected = ops.self_attention(x, *w, 2, mask=mask)
    score = (x @ w[0]).view(2, 5, 2, 4).transpose(1, 2) @ (x @ w[1]).view(2, 5, 2, 4).permute(0, 2, 3, 1)
    map = (score / 2).masked_fill(~mask[:, None, None], float("-inf")).softmax(-1)
    out = (map @ (x @ w[2]).view(2, 5, 2, 4).transpose(1, 2)).transpose(1, 2).flatten(2)
    torch.testing.assert_close(expected, out, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(ops.translution(x, *w, "", 2, mask=mask), out, rtol=1e-4, atol=1e-4)
    shared = ops.alpha_translution(x, w, [None] * 3, [None] * 3, None, "", 2, mask=mask)
    torch.testing.assert_close(shared, out, rtol=1e-4, atol=1e-4)
    kernel = torch.randn(3, 6, 8)
    torch.testing.assert_close(ops.convolution(x, kernel, "5 window=1", mask=mask),
                               ops.convolution(x * mask[..., None], kernel, "5 window=1"))


@needs_library
def test_models():
    options = dict(depth=2, dim=12, heads=3, dim_head=4, mlp_dim=8, length=6, vocabulary=7)
    model = translution.GPT(**options).eval()
    tokens, mask = torch.randint(7, (2, 6)), torch.ones(2, 6, dtype=torch.bool)
    mask[1, 4:] = False
    logits = model(tokens, key_padding_mask=mask)
    torch.testing.assert_close(logits[1, :4], model(tokens[1:, :4])[0])
    torch.testing.assert_close(model(tokens, [3], mask)[1, 0], logits[1, 3])
    first = copy.deepcopy(tokens)
    mask[:, 0], first[:, 0] = False, 3  # no block may see the first token
    torch.testing.assert_close(model(first, key_padding_mask=mask)[:, 1:],
                               model(tokens, key_padding_mask=mask)[:, 1:])
    vit = translution.ViT(depth=2, dim=12, heads=3, dim_head=4, mlp_dim=8, image_size=12, patch_size=4,
                          channels=1, classes=3).eval()
    x, y = (torch.randn(2, 5, 12),) * 2
    for block in vit.backbone.blocks:
        y = block(y, grid=(2, 2))
    torch.testing.assert_close(vit.backbone(x, grid=(2, 2)), vit.backbone.norm(y))


@pytest.mark.parametrize("kind", LAYERS)
def test_messages(kind):
    layer, x = make(kind), torch.zeros(2, 13, 12)
    relation = translution.Relation(torch.zeros(4, 4, dtype=torch.long), 1)
    cases = [
        (layer, x, dict(key_padding_mask=torch.ones(2, 13)),
         ": the key padding mask must be bool, true for a token, got "),
        (layer, x, dict(key_padding_mask=torch.ones(13, 2, dtype=torch.bool)),
         ": the key padding mask must be [2, 13], the batch and the tokens, got [13, 2]"),
        (layer, x, dict(grid=(4, 3)),
         "attention: expected a grid of at most 3x4, got 4x3; build the layer for the largest grid"),
        (layer, x, dict(grid=(12,)),
         "attention: expected a grid of at most 3x4, got 12; build the layer for the largest grid"),
        (layer, x, dict(grid=(3, 3)), "attention: x has 13 tokens, the grid 3x3 with class token has 10"),
        (layer, x, dict(grid=()), "attention: grid is empty; name a side for each axis"),
        (make(kind, relation=relation, cls=False), x[:, :4], dict(grid=(2, 2)), "attention: got the "
         "grid 2x2, but this layer was built for a relation; leave out the grid"),
        (make(kind, method="self_attention", grid=(), cls=False), x[:, :4], dict(grid=(2, 2)),
         "attention: got the grid 2x2, but this layer was built without a grid; leave out the grid"),
    ]
    for called, given, arguments, expected in cases:
        with pytest.raises((RuntimeError, ValueError)) as raised:
            called(given, **arguments)
        assert expected in str(raised.value).splitlines()[0]
