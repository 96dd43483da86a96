"""torch.func: gradients, functional calls, and vmap over features, weights and gradients."""

import copy

import pytest
import torch
import translution

if not hasattr(torch, "func") or not hasattr(torch.library, "register_vmap"):
    pytest.skip(f"torch.func with custom ops needs PyTorch 2.5, this is {torch.__version__}",
                allow_module_level=True)

from torch.func import (functional_call, grad, hessian, jacrev, jvp,  # noqa: E402
                        stack_module_state, vjp, vmap)

OPS = torch.ops.translution
METHODS = OPS.method_names()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def make(method, **options):
    return translution.Attention(16, heads=2, dim_head=8, grid=(2, 3), cls=True, method=method,
                                 **options).double()


def x_of(*shape):
    return torch.randn(*shape, dtype=torch.double)


def weights_of(layer):
    return {name: value.detach() for name, value in layer.named_parameters()}


def loss_of(layer):
    return lambda weights, x: functional_call(layer, weights, (x,)).square().sum()


def assert_same(found, expected):
    assert found.keys() == expected.keys()
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], msg=lambda m: f"{name}: {m}")


def autograd(layer, x):
    """Gradients of the loss by backward()."""
    layer.zero_grad()
    layer(x).square().sum().backward()
    return {name: p.grad.clone() for name, p in layer.named_parameters()}


@pytest.mark.parametrize("method", METHODS)
def test_grad(method):
    layer, x = make(method), x_of(3, 7, 16)
    assert_same(grad(loss_of(layer))(weights_of(layer), x), autograd(layer, x))


@pytest.mark.parametrize("method", METHODS)
def test_vmap_over_x(method):
    layer, x = make(method), x_of(4, 3, 7, 16)
    expected = torch.stack([layer(part) for part in x])
    torch.testing.assert_close(vmap(layer)(x), expected)
    torch.testing.assert_close(vmap(layer, in_dims=2)(x.movedim(0, 2)), expected)


@pytest.mark.parametrize("method", METHODS)
def test_vmap_of_grad_gives_the_gradients_of_each_sample(method):
    layer, x = make(method), x_of(4, 1, 7, 16)
    found = vmap(grad(loss_of(layer)), in_dims=(None, 0))(weights_of(layer), x)
    samples = [autograd(layer, sample) for sample in x]
    assert_same(found, {name: torch.stack([s[name] for s in samples]) for name in found})


@pytest.mark.parametrize("method", METHODS)
def test_grad_of_vmap(method):
    layer, x = make(method), x_of(4, 2, 7, 16)

    def loss(weights, x):
        return vmap(lambda part: functional_call(layer, weights, (part,)))(x).square().sum()

    assert_same(grad(loss)(weights_of(layer), x), autograd(layer, x.flatten(0, 1)))


@pytest.mark.parametrize("method", METHODS)
def test_vmap_over_an_ensemble(method):
    layers = [make(method) for _ in range(3)]
    weights, buffers = stack_module_state(layers)
    base, x = copy.deepcopy(layers[0]), x_of(2, 7, 16)
    found = vmap(lambda w: functional_call(base, w, (x,)))(weights)
    torch.testing.assert_close(found, torch.stack([layer(x) for layer in layers]))


def test_vmap_with_rows_and_saved_encodings():
    layer = translution.Translution(72, heads=2, dim_head=8, grid=(2, 3)).double()
    x = x_of(4, 2, 6, 72)
    found = vmap(lambda part: layer(part, rows=[0, 5]))(x)
    torch.testing.assert_close(found, torch.stack([layer(part, rows=[0, 5]) for part in x]))
    gradients = grad(lambda x: vmap(layer)(x).square().sum())(x)
    flat = x.flatten(0, 1).requires_grad_()
    layer(flat).square().sum().backward()
    torch.testing.assert_close(gradients, flat.grad.view(x.shape))


def test_vjp():
    layer, x = make("translution"), x_of(3, 7, 16).requires_grad_()
    out, pull = vjp(layer, x)
    d = torch.randn_like(out)
    torch.testing.assert_close(pull(d)[0], torch.autograd.grad(layer(x), x, d)[0])


def test_models():
    vit = translution.ViT(image_size=8, patch_size=4, dim=16, heads=2, dim_head=8, mlp_dim=24,
                          depth=2, channels=1, classes=5, method="alpha_translution").double()
    images, classes = x_of(4, 1, 8, 8), torch.tensor([0, 4, 2, 1])

    def loss(weights, image, target):
        logits = functional_call(vit, weights, (image[None],))
        return OPS.cross_entropy(logits, target[None])[0]

    found = vmap(grad(loss), in_dims=(None, 0, 0))(weights_of(vit), images, classes)
    for i in range(4):
        vit.zero_grad()
        OPS.cross_entropy(vit(images[i:i + 1]), classes[i:i + 1])[0].backward()
        assert_same({name: value[i] for name, value in found.items()},
                    {name: p.grad for name, p in vit.named_parameters()})


# --- every op alone: one mapped argument, then another

CASES = {
    "add_shared": (x_of(4, 3, 2), x_of(3, 2)),
    "gelu": (x_of(4, 3), True),
    "layer_norm": (x_of(4, 3), x_of(3), x_of(3), 1e-5),
    "rotary": (x_of(4, 3, 8), x_of(3, 2), 2),
    "sum_first": (x_of(4, 3),),
    "project": (x_of(4, 3), [x_of(3, 2), x_of(3, 5)], [x_of(2), x_of(5)]),
    "convolution": (x_of(4, 3, 2), x_of(3, 2, 5), "3 window=1"),
}


@pytest.mark.parametrize("name", CASES)
def test_vmap_over_each_argument_of_an_op(name):
    args, op = CASES[name], getattr(OPS, name)
    tensors = [i for i, value in enumerate(args) if isinstance(value, torch.Tensor)]
    if name == "rotary":
        tensors = [0]  # angles are fixed
    for i in tensors:
        mapped = x_of(5, *args[i].shape)

        def call(value):
            result = op(*args[:i], value, *args[i + 1:])
            return tuple(result) if isinstance(result, (list, tuple)) else (result,)

        found = vmap(call)(mapped)
        for part, parts in zip(found, zip(*[call(value) for value in mapped])):
            torch.testing.assert_close(part, torch.stack(parts))


# --- second derivatives and forward mode

def plain_of(layer):
    plain = translution.ReferenceAttention(**layer.options).double()
    plain.load_state_dict(layer.state_dict())
    return plain


@pytest.mark.parametrize("method", METHODS)
def test_jvp(method):
    layer, x, direction = make(method), x_of(2, 7, 16), x_of(2, 7, 16)
    torch.testing.assert_close(jvp(layer, (x,), (direction,)),
                               jvp(plain_of(layer), (x,), (direction,)))


@pytest.mark.parametrize("method", METHODS)
def test_hessian(method):
    layer, x, u = make(method), x_of(1, 7, 16), x_of(3)
    plain = plain_of(layer)

    def loss(u, layer=layer):  # of three numbers, so that the Hessian is small
        return layer(x + u.sum() + u[0] * x.sin() + u[1] * x.cos() * u[2]).square().sum()

    expected = hessian(lambda u: loss(u, plain))(u)
    torch.testing.assert_close(hessian(loss)(u), expected)
    torch.testing.assert_close(jacrev(jacrev(loss))(u), expected)


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "convolution"])
def test_vmap_of_grad_of_grad(method):
    layer, x = make(method), x_of(3, 1, 7, 16)

    def slope(x, layer=layer):
        return grad(lambda x: layer(x).square().sum())(x).square().sum()

    found, plain = vmap(grad(slope))(x), plain_of(layer)
    for a, sample in zip(found, x):
        torch.testing.assert_close(a, grad(lambda x: slope(x, plain))(sample))


# --- dropout

def test_dropout_under_vmap():
    layer, x = make("translution", dropout=0.5), x_of(1, 2, 7, 16).expand(3, 2, 7, 16)
    with pytest.raises(RuntimeError, match="randomness"):
        vmap(layer)(x)
    different = vmap(layer, randomness="different")(x)
    assert not torch.allclose(different[0], different[1])
