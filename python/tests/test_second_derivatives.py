"""Derivatives of derivatives: the layers of the library against those in plain PyTorch, and against
finite differences."""

import pytest
import torch
import translution

METHODS = torch.ops.translution.method_names()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def make(method, kind=None, **options):
    return (kind or translution.Attention)(
        **{**dict(dim=4, heads=2, dim_head=4, grid=(2, 2), cls=True, method=method, relative_dim=2,
                  dtype=torch.float64), **options})


def pair(method, **options):
    """A layer of the library, and the same in plain PyTorch."""
    layer, plain = make(method, **options), make(method, translution.ReferenceAttention, **options)
    plain.load_state_dict(layer.state_dict())
    return layer, plain


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


def penalty_gradients(layer, x, **arguments):
    """Gradients of the squared norm of the gradient by x."""
    x = x.detach().requires_grad_()
    slope, = torch.autograd.grad(layer(x, **arguments).square().sum(), x, create_graph=True)
    return torch.autograd.grad(slope.square().sum(), [x, *layer.parameters()], allow_unused=True)


@pytest.mark.parametrize("method", METHODS)
def test_gradgradcheck(method):
    layer, x = make(method), randn(1, 5, 4).requires_grad_()
    # The weights are changed in place, so the layer needs no other arguments.
    assert torch.autograd.gradgradcheck(lambda x, *weights: layer(x), (x, *layer.parameters()),
                                        fast_mode=True)


@pytest.mark.parametrize("options", [dict(), dict(qkv_bias=True), dict(roles="kv"), dict(causal=True)])
@pytest.mark.parametrize("method", ["self_attention", "gated_position", "alpha_translution",
                                    "translution"])
def test_the_second_derivatives_of_plain_pytorch(method, options):
    layer, plain = pair(method, **options)
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1, 3:] = False
    for arguments in (dict(), dict(rows=[3, 0]), dict(key_padding_mask=mask), dict(grid=(1, 2))):
        x = randn(3, 3 if "grid" in arguments else 5, 4)
        for a, b in zip(penalty_gradients(layer, x, **arguments),
                        penalty_gradients(plain, x, **arguments)):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("method", ["alpha_translution", "translution"])
def test_in_bfloat16_products(method):
    layer, plain = pair(method, precision="bf16", dtype=torch.float32, dim=16, dim_head=8)
    x = torch.randn(3, 5, 16)
    for a, b in zip(penalty_gradients(layer, x), penalty_gradients(plain, x)):
        assert (a - b).norm() <= 0.05 * b.norm()


def test_the_batch_last_and_saved_encodings():
    for layer, B in ((make("alpha_translution", dim=12), 24), (make("translution", dim=72), 3)):
        plain = translution.ReferenceAttention(**layer.options, dtype=torch.float64)
        plain.load_state_dict(layer.state_dict())
        x = randn(B, 5, layer.options["dim"])
        for a, b in zip(penalty_gradients(layer, x), penalty_gradients(plain, x)):
            torch.testing.assert_close(a, b)


def test_a_step_with_a_gradient_penalty():
    """A critic whose slope is held at 1, as in a Wasserstein GAN."""
    vit = translution.ViT(image_size=8, patch_size=4, dim=16, heads=2, dim_head=8, mlp_dim=24, depth=2,
                          channels=1, classes=1, method="alpha_translution").double()
    optimizer, images = torch.optim.Adam(vit.parameters(), 2e-3), randn(6, 1, 8, 8)
    errors = []
    for _ in range(12):
        images.requires_grad_()
        slopes, = torch.autograd.grad(vit(images).sum(), images, create_graph=True)
        error = (slopes.flatten(1).norm(dim=1) - 1).square().mean()
        optimizer.zero_grad()
        error.backward()
        optimizer.step()
        errors.append(error.item())
    assert errors[-1] < 0.5 * errors[0]


def test_a_graph_of_gradients_is_freed():
    layer, x = make("translution"), randn(1, 5, 4).requires_grad_()
    slope, = torch.autograd.grad(layer(x).square().sum(), x, create_graph=True)
    torch.autograd.grad(slope.sum(), x)
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(slope.sum(), x)


def test_forces_between_points_can_be_learned():
    """Forces are the slope of an energy; a loss of forces needs derivatives of that."""
    results = []
    x, positions, target = randn(7, 4), randn(7, 3), randn(7, 3)
    for kind in (translution.PointAttention, translution.ReferencePointAttention):
        torch.manual_seed(1)
        layer = kind(4, heads=2, dim_head=4, axes=3, spacing=0.7, learn_spacing=True,
                     dtype=torch.float64)
        at = positions.clone().requires_grad_()
        forces, = torch.autograd.grad(layer(x, at).square().sum(), at, create_graph=True)
        loss = (forces - target).square().sum()
        results.append([forces, *torch.autograd.grad(loss, [at, *layer.parameters()])])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b)
    assert results[0][0].abs().max() > 1e-3


def test_gradgradcheck_between_points():
    layer = translution.PointAttention(3, axes=2, spacing=0.9, cls=True, dtype=torch.float64)
    x, positions = randn(5, 3).requires_grad_(), randn(5, 2).requires_grad_()
    assert torch.autograd.gradgradcheck(layer, (x, positions), fast_mode=True)
