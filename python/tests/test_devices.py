"""Layers on devices and in types that the library has no kernels for: plain PyTorch, by themselves."""

import copy
import pickle

import pytest
import torch
import translution
from torch.utils._python_dispatch import TorchDispatchMode

METHODS = torch.ops.translution.method_names()
TYPES = dict(rtol=2e-2, atol=2e-2)


def multiplies_half():
    try:
        torch.bmm(torch.ones(1, 2, 2, dtype=torch.half), torch.ones(1, 2, 2, dtype=torch.half))
    except RuntimeError:
        return False
    return True


needs_half = pytest.mark.skipif(not multiplies_half(), reason="this PyTorch does not multiply float16")


class Recorder(TorchDispatchMode):
    """Records the names of all ops."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.names.append(f"{op.namespace}::{op._schema.name.split('::')[1]}")
        return op(*args, **(kwargs or {}))

    def ours(self):
        return {name for name in self.names if name.startswith("translution::")}


def make(method="translution", **options):
    torch.manual_seed(0)
    return translution.Attention(**{**dict(dim=12, heads=3, dim_head=4, grid=(3, 4), cls=True,
                                           method=method), **options})


def make_vit(**options):
    torch.manual_seed(0)
    return translution.ViT(image_size=8, patch_size=4, dim=16, heads=2, dim_head=8, mlp_dim=24,
                           depth=2, channels=1, classes=5, **options)


def gradients(layer, x, **arguments):
    x = x.detach().requires_grad_()
    y = layer(x, **arguments)
    weight = torch.linspace(-1, 1, y.numel(), dtype=y.dtype).view(y.shape)
    return [y, *torch.autograd.grad((y * weight).sum(), [x, *layer.parameters()])]


@pytest.mark.parametrize("method", METHODS)
def test_plain_pytorch_is_the_same_function(method, monkeypatch):
    layer, x = make(method, dtype=torch.float64), torch.randn(2, 13, 12, dtype=torch.float64)
    mask = torch.ones(2, 13, dtype=torch.bool)
    mask[1, 9:] = False
    for arguments in (dict(), dict(rows=[0, 7, 3]), dict(key_padding_mask=mask), dict(grid=(3, 3))):
        given = x[:, :10] if "grid" in arguments else x
        expected, map = gradients(layer, given, **arguments), layer.forward_with_map(given, **arguments)[1]
        with monkeypatch.context() as patch:
            patch.setattr(translution.attention, "has_kernels", lambda x: False)
            recorder = Recorder()
            with recorder:
                found = gradients(layer, given, **arguments)
            assert "translution::attention" not in recorder.ours()
            found_map = layer.forward_with_map(given, **arguments)[1]
        for a, b in zip([*found, found_map], [*expected, map]):
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-11)
    assert len(layer.structures) == 3  # the layer's grid, its rows, the smaller grid


@needs_half
@pytest.mark.parametrize("method", METHODS)
def test_float16(method):
    layer, x = make(method), torch.randn(2, 13, 12)
    expected, names = gradients(layer, x), list(layer.state_dict())
    half, recorder = copy.deepcopy(layer).half(), Recorder()
    with recorder:
        found = gradients(half, x.half())
    assert not recorder.ours()
    assert all(t.dtype == torch.half for t in found)
    for a, b in zip(found, expected):
        torch.testing.assert_close(a.float(), b, **TYPES)
    assert list(half.state_dict()) == names
    again = pickle.loads(pickle.dumps(half))
    assert torch.equal(again(x.half()), half(x.half()))
    assert torch.equal(copy.deepcopy(half)(x.half()), half(x.half()))
    back = half.float()
    assert not hasattr(back, "structures") and "structures" not in repr(back)
    with Recorder() as recorder:
        back(x)
    assert recorder.ours()


@needs_half
def test_float16_from_the_start_and_in_a_model():
    x = torch.randn(2, 13, 12).half()
    layer = make(dtype=torch.half)
    assert torch.equal(layer(x), copy.deepcopy(layer).float().half()(x))
    vit, image = make_vit(method="alpha_translution"), torch.randn(3, 1, 8, 8)
    expected = vit(image)
    torch.testing.assert_close(vit.half()(image.half()).float(), expected, **TYPES)


@needs_half
@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")
@pytest.mark.parametrize("method", ["translution", "rotary", "gated_position"])
def test_float16_compiles_as_a_whole(method):
    torch._dynamo.reset()
    layer, x = make(method).half(), torch.randn(2, 13, 12).half()
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for a, b in zip(gradients(compiled, x), gradients(layer, x)):
        torch.testing.assert_close(a, b, **TYPES)


@needs_half
@pytest.mark.skipif(not hasattr(torch, "compile"), reason="this PyTorch has no torch.compile")
def test_a_float16_model_compiles_as_a_whole():
    torch._dynamo.reset()
    vit, image = make_vit(method="alpha_translution").half(), torch.randn(3, 1, 8, 8).half()
    compiled = torch.compile(vit, fullgraph=True, backend="aot_eager")
    found = compiled(image)  # before any other call
    torch.testing.assert_close(found, vit(image), **TYPES)


def test_a_type_that_differs_from_the_layer_is_refused():
    with pytest.raises(RuntimeError, match="convert one of them"):
        make()(torch.randn(2, 13, 12).half())


def test_meta_device():
    layer = make(device="meta")
    assert not hasattr(layer, "structures")
    if not translution._compat.HAS_REGISTER_VMAP:
        return  # PyTorch 1.13 lacks operators on meta
    assert layer(torch.empty(2, 13, 12, device="meta")).shape == (2, 13, 12)


def fake_state(mode, module):
    tensors = [*module.named_parameters(), *module.named_buffers()]
    with mode:
        return {name: torch.empty(tensor.shape, dtype=tensor.dtype, device="cuda")
                for name, tensor in tensors}


@pytest.mark.skipif(not hasattr(torch, "func"), reason="fake tensors on other devices need PyTorch 2")
@pytest.mark.parametrize("method", METHODS)
def test_a_gpu_that_is_not_there(method):
    from torch._subclasses.fake_tensor import FakeTensorMode

    layer, mode, recorder = make(method, grid=(7, 7)), FakeTensorMode(), Recorder()
    layer.structure()
    state = fake_state(mode, layer)
    with mode, torch.no_grad():  # autograd would look for the GPU
        x = torch.empty(2, 50, 12, device="cuda")
        with recorder:
            y = torch.func.functional_call(layer, state, (x,))
    assert y.device.type == "cuda" and y.shape == x.shape
    assert not recorder.ours()
    assert not {name for name in recorder.names if "nonzero" in name or "_local_scalar" in name}
    if method == "translution":
        assert 0 < recorder.names.count("aten::bmm") <= 3 * (7 * 7 + 3)
