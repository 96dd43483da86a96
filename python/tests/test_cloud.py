"""Cloud, the model of points: gradients by finite differences, its weights in files, and messages."""

import math

import pytest
import torch
import translution
from translution.points import METHODS

pytestmark = pytest.mark.skipif(not translution.library_torch, reason="the library is not loaded")
TINY = dict(depth=2, dim=6, heads=2, dim_head=3, mlp_dim=7, axes=2, spacing=0.7, radius=1, channels=2,
            classes=3, relative_dim=2, dtype=torch.float64)
VARIANTS = {
    "cls": {}, "mean": dict(pooling="mean"), "neighbours": dict(neighbours=3),
    "window": dict(sharing="window", pooling="mean"),
    "centred": dict(input_embedding=True, coordinates="centred"),
    "space": dict(axes=3), "distances": dict(axes=3, distances=True), "number": dict(classes=0),
}


def make(**options):
    torch.manual_seed(0)
    return translution.Cloud(**{**TINY, **options})


def clouds(axes=2, seed=3):
    """Clouds of 5 and 3 points; padding is NaN and must not be read."""
    torch.manual_seed(seed)
    x, at = torch.randn(2, 5, 2, dtype=torch.float64), 1.3 * torch.randn(2, 5, axes, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [3]])
    return x.masked_fill(~mask[..., None], math.nan), at.masked_fill(~mask[..., None], math.nan), mask


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("method", METHODS)
def test_gradients_are_finite_differences(method, variant):
    """Of all weights and the learned spacing, off the planes of the lattice."""
    model = make(method=method, learn_spacing=True, **VARIANTS[variant])
    x, at, mask = clouds(model.options["axes"])
    names = [name for name, _ in model.named_parameters()]
    leaves = [p.detach().clone().requires_grad_() for p in model.parameters()]

    def call(*values):
        return torch.nn.utils.stateless.functional_call(model, dict(zip(names, values)), (x, at, mask))
    assert torch.autograd.gradcheck(call, leaves, fast_mode=True, eps=1e-6, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_padding_order_and_place_change_nothing(method):
    model = make(method=method, coordinates="centred", neighbours=4)
    x, at, mask = clouds()
    out = model(x, at, mask)
    assert torch.allclose(model(x[1:, :3], at[1:, :3])[0], out[1], atol=1e-12)
    order = torch.tensor([4, 2, 0, 3, 1])
    assert torch.allclose(model(x[:, order], at[:, order], mask[:, order]), out, atol=1e-12)
    assert torch.allclose(model(x, at - 40.5, mask), out, atol=1e-11)


def test_distances_are_invariant_to_rotation():
    x, at, mask = clouds(axes=3)
    turn = torch.linalg.qr(torch.randn(3, 3, dtype=torch.float64))[0]
    for distances in (False, True):
        model = make(axes=3, distances=distances)
        same = torch.allclose(model(x, at @ turn, mask), model(x, at, mask), atol=1e-12)
        assert same == distances


@pytest.mark.parametrize("method", METHODS)
def test_cost_counts_its_parameters(method):
    for options in VARIANTS.values():
        model = make(method=method, learn_spacing=True, **options)
        assert model.cost().parameters == sum(p.numel() for p in model.parameters())
        assert model.cost(batch=4).training_bytes > model.cost().weight_bytes


def test_saved_model_is_loaded_whole(tmp_path):
    model = make(classes=0, target_mean=-3.5, target_scale=12.0, dtype=torch.float32).eval()
    translution.save_weights(model, tmp_path / "cloud.safetensors")
    found = translution.load_model(tmp_path / "cloud.safetensors")
    assert isinstance(found, translution.Cloud) and found.options["target_scale"] == 12.0
    x, at, mask = clouds()
    assert torch.equal(found(x.float(), at.float(), mask), model(x.float(), at.float(), mask))


def test_deep_copy_and_named():
    model = translution.Cloud.named("cloud-a", axes=2, spacing=1.0, method="relative_bias", device="meta")
    assert model.options["depth"] == 4 and model.options["dim"] == 96
    assert "spacing" in translution.Cloud.__init__.__doc__


X, AT = torch.zeros(2, 3, 2, dtype=torch.float64), torch.rand(2, 3, 2, dtype=torch.float64)
WRONG = {
    "spacing": (lambda: make(spacing=None), "Cloud: the spacing is missing; give it in the unit"),
    "spacing 0": (lambda: make(spacing=0.0), "model: expected a positive spacing in the unit of the"),
    "axes": (lambda: make(axes=4), "model: expected axes of 1, 2 or 3, got 4"),
    "radius": (lambda: make(radius=0), "model: expected a radius of 1 to 64 lattice points"),
    "sharing": (lambda: make(sharing="none"), "model: points need sharing direction, which moves"),
    "method": (lambda: make(method="rotary"), "rotary position and absolute encoding need a grid"),
    "image size": (lambda: make(image_size=4), "unexpected keyword argument 'image_size'"),
    "features": (lambda: make()(X[..., :1], AT), "Cloud: expected features [B, N, 2], got [2, 3, 1]"),
    "type": (lambda: make()(X.float(), AT), "Cloud: the features are torch.float32 on cpu, the model is"),
    "positions": (lambda: make()(X, AT[:, :2]), "points: x is [2, 3, 2] and positions are [2, 2, 2]"),
    "mask": (lambda: make()(X, AT, torch.ones(2, 3)), "points: the mask must be bool, true for a token"),
    "nan": (lambda: make(pooling="mean")(X, AT * math.nan), "the position of token 0 is not finite"),
    "empty": (lambda: make()(X, AT, torch.tensor([[True] * 3, [False] * 3])),
              "Cloud: cloud 1 has no points; leave it out"),
    "maps": (lambda: make().attention_maps(X), "Cloud: attention maps are drawn by `translution report`"),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_calls_get_a_message(name):
    call, message = WRONG[name]
    with pytest.raises((ValueError, RuntimeError, TypeError, NotImplementedError)) as caught:
        call()
    assert message in str(caught.value)
