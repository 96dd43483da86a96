"""Modules behave as a user of PyTorch expects."""

import copy
import io
import json
import pickle
import threading
import time
from typing import List

import pytest
import torch
from torch import nn

import translution


def make(method="translution", **options):
    torch.manual_seed(0)
    return translution.Attention(
        **{**dict(dim=12, heads=3, dim_head=4, grid=(3, 4), cls=True, method=method), **options})


def make_vit(**options):
    torch.manual_seed(0)
    return translution.ViT(**{**dict(depth=2, dim=8, heads=2, dim_head=4, mlp_dim=8, image_size=12,
                                     patch_size=4, channels=1, classes=3), **options})


METHODS = torch.ops.translution.method_names()


def test_example_of_the_documentation():
    layer = translution.Translution(dim=192, heads=3, grid=(7, 7), cls=True)
    assert layer.query.shape == (172, 192, 192)
    assert layer(torch.randn(2, 50, 192)).shape == (2, 50, 192)


def test_layers_by_name_are_attention_with_the_method_set():
    for layer, method in [(translution.Translution, "translution"),
                          (translution.AlphaTranslution, "alpha_translution"),
                          (translution.LoRTranslution, "alpha_translution")]:
        assert layer(8, 2, 4, (2, 2)).options["method"] == method


def test_options_are_complete_and_give_the_same_layer():
    layer = make("relative_bias", sharing="direction", radius=1)
    again = translution.Attention(**layer.options)
    assert again.options == layer.options
    assert {n: p.shape for n, p in again.named_parameters()} == {
        n: p.shape for n, p in layer.named_parameters()}


def test_defaults_are_those_of_cpp():
    options, *_ = torch.ops.translution.attention_layout('{"dim": 8, "grid": [2, 3]}')
    assert translution.Attention(8, grid=(2, 3)).options == json.loads(options)


LAYERS = [translution.Attention, translution.Translution, translution.AlphaTranslution,
          translution.ReferenceAttention, translution.reference.ReferenceTranslution,
          translution.reference.ReferenceAlphaTranslution]


@pytest.mark.parametrize("kind", LAYERS)
def test_heads_divide_the_channels_unless_dim_head_is_given(kind):
    assert kind(12, heads=3, grid=(2, 2)).options["dim_head"] == 4
    assert kind(12, grid=(2, 2)).options["dim_head"] == 12
    assert kind(12, 3, 64, (2, 2)).options["dim_head"] == 64
    assert kind(10, heads=3, dim_head=5, grid=(2, 2)).out.in_features == 15
    again = kind(**kind(12, heads=3, grid=(2, 2)).options)
    assert again.options["dim_head"] == 4 and again(torch.randn(1, 4, 12)).shape == (1, 4, 12)
    with pytest.raises(ValueError, match="dim 10 does not divide into 3 heads; set dim_head, the "):
        kind(10, heads=3, grid=(2, 2))


@pytest.mark.parametrize("method", METHODS)
def test_copies_by_every_way_compute_the_same(method, tmp_path):
    layer = make(method).eval()
    x = torch.randn(2, 13, 12)
    expected = layer(x)
    torch.save(layer, tmp_path / "layer.pt")
    copies = [copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)),
              torch.load(tmp_path / "layer.pt", weights_only=False)]
    fresh = translution.Attention(**layer.options).eval()
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    assert not fresh.load_state_dict(torch.load(buffer)).missing_keys
    for other in [*copies, fresh]:
        assert torch.equal(other(x), expected)
    with torch.no_grad():
        next(copies[0].parameters()).zero_()
    assert torch.equal(layer(x), expected)


def test_state_dict_holds_the_parameters_of_cpp_only():
    assert list(make("translution").state_dict()) == [
        "query", "key", "value", "out.weight", "out.bias"]
    assert list(make("gated_position").state_dict()) == [
        "query", "key", "value", "position_weight", "gate", "out.weight", "out.bias"]


@pytest.mark.parametrize("method", METHODS)
def test_meta_tensors_have_the_shapes(method):
    layer = make(method, device="meta")
    assert all(parameter.is_meta for parameter in layer.parameters())
    x = torch.empty(2, 13, 12, device="meta")
    assert layer(x).shape == (2, 13, 12)
    assert layer(x, torch.tensor([0, 5])).shape == (2, 2, 12)
    moved = make(method).to("meta")
    assert moved(x).is_meta


def test_a_layer_made_without_memory_is_filled_later():
    layer = make(device="meta").to_empty(device="cpu")
    layer.reset_parameters()
    assert torch.isfinite(layer(torch.randn(1, 13, 12))).all()


@pytest.mark.parametrize("method", METHODS)
def test_types_change_as_usual(method):
    layer = make(method)
    x = torch.randn(2, 13, 12)
    expected = layer(x)
    double = layer.double()(x.double())
    assert double.dtype == torch.float64
    torch.testing.assert_close(double.float(), expected, rtol=1e-4, atol=1e-5)
    bfloat = layer.to(torch.bfloat16)(x.to(torch.bfloat16))
    assert bfloat.dtype == torch.bfloat16
    torch.testing.assert_close(bfloat.float(), expected, rtol=0.1, atol=0.1)


def test_default_type_is_that_of_torch():
    torch.set_default_dtype(torch.float64)
    try:
        assert all(p.dtype == torch.float64 for p in make_vit().parameters())
    finally:
        torch.set_default_dtype(torch.float32)


def test_the_same_call_gives_the_same_bits():
    layer = make("alpha_translution")
    x = torch.randn(4, 13, 12)
    threads = torch.get_num_threads()
    results = []
    try:
        for count in (1, 2, 2):
            torch.set_num_threads(count)
            layer.zero_grad()
            y = layer(x)
            y.square().sum().backward()
            results.append([y.detach(), *(p.grad.clone() for p in layer.parameters())])
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_dropout_only_while_training():
    layer = make(dropout=0.5)
    x = torch.randn(2, 13, 12)
    assert not torch.equal(layer(x), layer(x))
    torch.manual_seed(3)
    first = layer(x)
    torch.manual_seed(3)
    assert torch.equal(first, layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


@pytest.mark.parametrize("method", ["translution", "alpha_translution", "relative_key", "rotary"])
def test_gradcheck(method):
    layer = make(method, dim=3, heads=1, grid=(2, 2), dtype=torch.float64)
    x = torch.randn(1, 5, 3, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]

    def call(x, *weights):
        for name, weight in zip(names, weights):
            owner = layer.out if name.startswith("out.") else layer
            del owner._parameters[name.split(".")[-1]]
            setattr(owner, name.split(".")[-1], weight)
        try:
            return layer(x)
        finally:
            for name, weight in zip(names, weights):
                owner = layer.out if name.startswith("out.") else layer
                delattr(owner, name.split(".")[-1])
                owner._parameters[name.split(".")[-1]] = originals[name]

    originals = dict(layer.named_parameters())
    weights = [parameter.detach().requires_grad_() for parameter in originals.values()]
    assert torch.autograd.gradcheck(call, [x, *weights], fast_mode=True)


def test_op_is_scripted():
    layer = make()

    @torch.jit.script
    def attend(x, q, k, v, pairs: str):
        return torch.ops.translution.translution(x, q, k, v, pairs, 3)

    @torch.jit.script
    def whole(x, weights: List[torch.Tensor], pairs: str):
        return torch.ops.translution.attention_layer(
            x, "query,key,value", weights, "translution", 3, pairs, 13, map=True)

    x = torch.randn(2, 13, 12)
    pairs = layer._pairs
    expected, map = layer._attend(x, None, None, None, True)
    assert torch.equal(attend(x, layer.query, layer.key, layer.value, pairs), expected)
    out, scripted_map = whole(x, [layer.query, layer.key, layer.value], pairs)
    assert torch.equal(out, expected) and torch.equal(scripted_map, map)
    out.sum().backward()
    assert layer.query.grad is not None


def test_module_is_traced():
    layer = make("alpha_translution").eval()
    x = torch.randn(2, 13, 12)
    traced = torch.jit.trace(layer, x, check_trace=False)
    other = torch.randn(2, 13, 12)
    assert torch.equal(traced(other), layer(other))


def test_gil_is_released():
    """A second thread counts on while the op works."""
    layer = translution.Translution(128, heads=2, dim_head=64, grid=(8, 8), dtype=torch.float64)
    x = torch.randn(16, 64, 128, dtype=torch.float64)
    counts, stop = [], threading.Event()

    def count():
        while not stop.is_set():
            counts.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        with torch.no_grad():
            start = time.perf_counter()
            layer(x)
            end = time.perf_counter()
    finally:
        stop.set()
        thread.join()
    during = [t for t in counts if start < t < end]
    assert end - start > 0.02, "the op is too short to tell"
    assert len(during) >= 0.1 * (end - start) / 0.001


def test_threads_call_at_the_same_time():
    layer = make("alpha_translution").eval()
    inputs = [torch.randn(2, 13, 12) for _ in range(8)]
    expected = [layer(x) for x in inputs]
    found = [None] * 8

    def call(n):
        with torch.no_grad():
            found[n] = layer(inputs[n])

    threads = [threading.Thread(target=call, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(a, b) for a, b in zip(found, expected))


def test_layer_inside_a_model_of_the_user():
    model = nn.Sequential(nn.Linear(4, 12), make(), nn.LayerNorm(12), nn.Linear(12, 2))
    seen = []
    model[1].register_forward_hook(lambda module, inputs, output: seen.append(output.shape))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    x, target = torch.randn(8, 13, 4), torch.randn(8, 13, 2)
    losses = []
    for _ in range(20):
        loss = (model(x) - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]
    assert seen[0] == (8, 13, 12)


def test_inference_mode_and_no_grad():
    layer = make()
    x = torch.randn(2, 13, 12)
    expected = layer(x).detach()
    with torch.no_grad():
        assert torch.equal(layer(x), expected) and not layer(x).requires_grad
    with torch.inference_mode():
        assert torch.equal(layer(x), expected)
        assert torch.equal(layer(torch.clone(x)), expected)


def test_weights_as_the_authors_start_them():
    scaled, authors = make(init="scaled"), make(init="authors")
    bound = (12 * 12) ** -0.5
    assert 0.9 * bound < authors.query.abs().max() <= bound
    assert 0.9 * 12**-0.5 < scaled.query.abs().max() <= 12**-0.5


def test_repr_says_what_it_is():
    assert "grid=(3, 4), cls=True, method=translution" in repr(make())
