"""translution.swap: real models compute the same before and after, and learn from there."""

import copy
import io
import pickle
import sys

import pytest
import torch
from hosts import import_host
from torch import nn

import translution

TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12}
DTYPES = pytest.mark.parametrize("dtype", TOLERANCE, ids=["float32", "float64"])
METHODS = ["translution", "alpha_translution", "relative_bias", "relative_key", "relative_value",
           "self_attention"]
# What training changes first; all of it starts at zero, or equal for all offsets.
LEARNS = {"translution": ["query", "key", "value"], "alpha_translution": ["query_offsets", "value_offsets"],
          "relative_bias": ["bias"], "relative_key": ["key_vectors"], "relative_value": ["value_vectors"]}
needs_compile = pytest.mark.skipif(not hasattr(torch, "compile"), reason="torch.compile needs PyTorch 2")


def difference(found, expected):
    assert found.shape == expected.shape and found.dtype == expected.dtype
    return ((found - expected).abs().max() / expected.abs().max()).item()


def randomise(model, dtype=torch.float64):
    """In evaluation mode and with biases that are not zero."""
    torch.manual_seed(5)
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model.to(dtype).eval()


def swap(model, *args, **options):
    return translution.swap(model, *args, quiet=True, **options)


# --- hosts: a model, an input of it, and a function that calls it


def torch_encoder(dtype=torch.float64, dim=18, heads=3, **options):
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(dim, heads, 20, dropout=0.0, **{"batch_first": True, **options})
    model = randomise(nn.TransformerEncoder(layer, 2), dtype)
    return model, torch.randn(2, 11, dim, dtype=dtype), lambda model, x: model(x), dict(grid=11)


def timm_vit(dtype=torch.float64, name="vit_tiny_patch16_224", **options):
    timm = import_host("timm")
    torch.manual_seed(1)
    small = dict(depth=2, img_size=(32, 48), num_classes=5)
    model = randomise(timm.create_model(name, **{**small, **options}), dtype)
    x = torch.randn(2, 3, *model.patch_embed.img_size, dtype=dtype)
    return model, x, lambda model, x: model(x), {}


def transformers_vit(dtype=torch.float64, **options):
    transformers = import_host("transformers")
    torch.manual_seed(1)
    config = transformers.ViTConfig(hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                                    intermediate_size=30, image_size=(16, 24), patch_size=8, num_labels=5,
                                    **options)
    model = randomise(transformers.ViTForImageClassification(config), dtype)
    return model, torch.randn(2, 3, 16, 24, dtype=dtype), lambda model, x: model(x).logits, {}


def transformers_gpt2(dtype=torch.float64, **options):
    transformers = import_host("transformers")
    torch.manual_seed(1)
    config = transformers.GPT2Config(vocab_size=31, n_positions=12, n_embd=24, n_layer=2, n_head=3,
                                     bos_token_id=0, eos_token_id=None, **options)
    model = randomise(transformers.GPT2LMHeadModel(config), dtype)
    return model, torch.randint(1, 31, (2, 9)), lambda model, x: model(x).logits, {}


HOSTS = {"torch": torch_encoder, "timm": timm_vit, "vit": transformers_vit, "gpt2": transformers_gpt2}
ALL_HOSTS = pytest.mark.parametrize("host", HOSTS)


def attention_layers(model):
    return [m for m in model.modules() if isinstance(m, translution.Attention)]


# --- the same function


@DTYPES
@pytest.mark.parametrize("method", METHODS)
@ALL_HOSTS
def test_swapped_models_compute_the_same(host, method, dtype):
    model, x, call, place = HOSTS[host](dtype)
    expected, parameters = call(model, x), sum(p.numel() for p in model.parameters())
    report = swap(model, method, **place)
    assert len(report.layers) == 2 and len(attention_layers(model)) == 2
    assert report.parameters == (parameters, sum(p.numel() for p in model.parameters()))
    assert all(layer.options["method"] == method for layer in attention_layers(model))
    assert difference(call(model, x), expected) <= TOLERANCE[dtype]


@DTYPES
@pytest.mark.parametrize("name", ["vit_tiny_patch16_224", "deit_tiny_patch16_224"])
def test_whole_timm_models_compute_the_same(name, dtype):
    model, x, call, _ = timm_vit(dtype, name, depth=12, img_size=224, num_classes=1000)
    with torch.no_grad():
        expected = call(model, x)
        report = swap(model)
        assert len(report.layers) == 12 and report.grid == (14, 14) and report.cls
        assert difference(call(model, x), expected) <= TOLERANCE[dtype]


@needs_compile
@pytest.mark.parametrize("method, dtype", [("translution", torch.float64), ("alpha_translution", torch.float32),
                                           ("alpha_translution", torch.float64)])
@ALL_HOSTS
def test_compiled_swapped_models_compute_the_same(host, method, dtype):
    torch._dynamo.reset()
    model, x, call, place = HOSTS[host](dtype)
    expected = call(model, x)
    swap(model, method, **place)
    call(model, x)  # layers in plain PyTorch make the indices of a shorter text here
    found = call(torch.compile(model, backend="aot_eager"), x)
    assert difference(found, expected) <= TOLERANCE[dtype]
    found.square().mean().backward()
    assert all(layer.out.weight.grad.abs().max() > 0 for layer in attention_layers(model))


@pytest.mark.parametrize("roles", ["q", "k", "v", "qk", "none"])
@pytest.mark.parametrize("method", ["translution", "alpha_translution"])
def test_any_roles_compute_the_same(method, roles):
    model, x, call, place = torch_encoder()
    expected = call(model, x)
    swap(model, method, roles=roles, relative_dim=3, **place)
    assert attention_layers(model)[0].options["roles"] == roles
    assert difference(call(model, x), expected) <= 1e-12


@ALL_HOSTS
def test_models_without_biases(host):
    options = dict(torch=dict(bias=False), timm=dict(qkv_bias=False, proj_bias=False),
                   vit=dict(qkv_bias=False), gpt2={})[host]
    if host == "torch" and not hasattr(torch, "compile"):
        pytest.skip("TransformerEncoderLayer has no bias= in PyTorch 1.13")
    model, x, call, place = HOSTS[host](**options)
    expected = call(model, x)
    swap(model, "translution", **place)
    assert attention_layers(model)[0].options["qkv_bias"] == (host == "gpt2")
    assert difference(call(model, x), expected) <= 1e-12


@pytest.mark.parametrize("options", [dict(scale_attn_weights=False), dict(reorder_and_upcast_attn=True),
                                     dict(scale_attn_by_inverse_layer_idx=True)])
def test_options_of_gpt2(options):
    model, x, call, place = transformers_gpt2(**options)
    expected = call(model, x)
    swap(model, "translution")
    assert difference(call(model, x), expected) <= 1e-12


def test_dropout_stays():
    model = nn.MultiheadAttention(12, 2, dropout=0.25)
    swap(model, "translution", grid=4)
    assert model.attention.options["dropout"] == 0.25 and model.attention.training
    x = torch.randn(4, 1, 12)
    assert not torch.equal(model(x, x, x)[0], model(x, x, x)[0])
    model.eval()
    assert torch.equal(model(x, x, x)[0], model(x, x, x)[0])


# --- learning


@ALL_HOSTS
@pytest.mark.parametrize("method", LEARNS)
def test_one_step_changes_the_relative_parts(method, host):
    model, x, call, place = HOSTS[host]()
    swap(model, method, **place)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    call(model.train(), x).square().mean().backward()
    optimizer.step()
    for name, parameter in model.named_parameters():
        last = name.split(".")[-1]
        if last in LEARNS[method]:
            changed = parameter.detach() - before[name]
            assert changed.abs().max() > 0, name
            # Offsets change differently: they are no longer equal.
            assert not torch.allclose(changed, changed[:1].expand_as(changed)), name


def test_frozen_models_train_only_what_is_new():
    model, x, call, place = torch_encoder()
    model.requires_grad_(False)
    swap(model, "alpha_translution", **place)
    trained = {name.split(".")[-1] for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {f"{role}_{part}" for role in ("query", "key", "value")
                       for part in ("down", "offsets")} | {"value_up"}
    swap(model := torch_encoder()[0].requires_grad_(False), "translution", roles="v", **place)
    trained = {name.split(".")[-1] for name, p in model.named_parameters() if p.requires_grad}
    assert trained == {"value"}


def test_each_weight_stays_frozen_or_not():
    model, x, call, place = torch_encoder()
    attn = model.layers[0].self_attn
    attn.out_proj.requires_grad_(False)
    with torch.no_grad():  # swap looks at the parameters, not at the mode
        swap(model, "alpha_translution", layers=0, **place)
    layer = model.layers[0].self_attn.attention
    trained = {name for name, p in layer.named_parameters() if p.requires_grad}
    assert not {"out.weight", "out.bias"} & trained
    assert {"query", "key", "value", "query_bias", "key_bias", "value_bias"} <= trained


def test_a_module_in_two_places_is_swapped_in_both():
    model, x, call, place = torch_encoder()
    model.layers[1] = model.layers[0]
    expected = call(model, x)
    assert len(swap(model, "alpha_translution", **place).layers) == 1
    assert model.layers[1].self_attn is model.layers[0].self_attn
    torch.testing.assert_close(call(model, x), expected)


def test_shared_weights_are_refused():
    model, x, call, place = torch_encoder()
    model.layers[1].self_attn.in_proj_weight = model.layers[0].self_attn.in_proj_weight
    with pytest.raises(ValueError, match="layers.0.self_attn shares weights with layers.1.self_attn; give each"):
        swap(model, "alpha_translution", **place)
    assert not attention_layers(model)


# --- state_dicts, files, copies


@ALL_HOSTS
@pytest.mark.parametrize("method", ["translution", "alpha_translution"])
def test_the_hosts_own_state_dict_loads(host, method):
    model, x, call, place = HOSTS[host]()
    other = copy.deepcopy(model)
    for parameter in other.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    expected, start = call(other, x), call(model, x)
    swap(model, method, **place)
    for parameter in model.parameters():  # as if trained: the relative parts are not zero
        parameter.data += 0.1 * torch.randn_like(parameter)
    result = model.load_state_dict(other.state_dict())
    assert not result.missing_keys and not result.unexpected_keys
    assert difference(call(model, x), expected) <= 1e-12
    assert difference(start, expected) > 1e-3


def test_weights_that_do_not_fit_are_explained():
    model, _, _, place = torch_encoder()
    swap(model, "translution", **place)
    state = torch_encoder(dim=12)[0].state_dict()
    with pytest.raises(RuntimeError, match="layers.0.self_attn: expected all weights of torch.nn with dim 18 and "
                                           r"3 heads of 6, got in_proj_weight \[36, 12\]"):
        model.load_state_dict(state)
    state = torch_encoder()[0].state_dict()
    del state["layers.1.self_attn.out_proj.weight"]
    with pytest.raises(RuntimeError, match=r"layers.1.self_attn: .* got .*in_proj_bias \[54\], out_proj.bias"):
        model.load_state_dict(state)


@pytest.mark.skipif(not hasattr(torch, "compile"), reason="load_state_dict has no assign= in PyTorch 1.13")
def test_assigned_weights_are_not_shared_by_offsets():
    model, x, call, place = torch_encoder()
    expected, state = call(model, x), model.state_dict()
    swap(model, "translution", **place)
    model.load_state_dict(state, assign=True)
    assert difference(call(model, x), expected) <= 1e-12
    assert all(p.is_contiguous() for layer in attention_layers(model) for p in layer.parameters())


@ALL_HOSTS
def test_a_swapped_state_dict_goes_back_and_forth(host, tmp_path):
    model, x, call, place = HOSTS[host]()
    again = copy.deepcopy(model)
    swap(model, "alpha_translution", **place)
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    expected = call(model, x)
    swap(again, "alpha_translution", **place)
    again.load_state_dict(model.state_dict())
    assert torch.equal(call(again, x), expected)
    safetensors = pytest.importorskip("safetensors.torch")
    safetensors.save_model(model, str(tmp_path / "model.safetensors"))
    for parameter in again.parameters():
        parameter.data.zero_()
    safetensors.load_model(again, str(tmp_path / "model.safetensors"))
    assert torch.equal(call(again, x), expected)


@pytest.mark.parametrize("host", ["torch", "timm"])
def test_copies_and_pickles_are_swapped_models(host):
    model, x, call, place = HOSTS[host]()
    swap(model, "alpha_translution", **place)
    expected = call(model, x)
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    loaded = torch.load(file, **(dict(weights_only=False) if hasattr(torch, "compile") else {}))
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), loaded):
        assert torch.equal(call(other, x), expected)
        other.load_state_dict(HOSTS[host]()[0].state_dict())


def test_hooks_and_class_stay():
    model, x, call, place = torch_encoder()
    seen = []
    model.layers[0].self_attn.register_forward_hook(lambda *args: seen.append(args[0]))
    swap(model, "alpha_translution", **place)
    model.train()(x)
    assert seen == [model.layers[0].self_attn]
    assert isinstance(model.layers[0].self_attn, nn.MultiheadAttention)
    with pytest.raises(ValueError, match="swapped already"):
        swap(model, "translution", **place)


# --- torch.nn.MultiheadAttention


def multihead(method="translution", swapped=True, **options):
    torch.manual_seed(1)
    model = randomise(nn.MultiheadAttention(15, 3, **options))
    other = copy.deepcopy(model)
    swap(other, method, grid=(2, 3), cls=True)
    return model, other


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("average", [False, True])
def test_multihead_calls(batch_first, average):
    old, new = multihead(batch_first=batch_first)
    x = torch.randn(*((2, 7) if batch_first else (7, 2)), 15, dtype=torch.float64)
    for x in (x, x[0] if batch_first else x[:, 0]):
        for options in (dict(average_attn_weights=average), dict(need_weights=False)):
            a, b = old(x, x, x, **options), new(x, x, x, **options)
            assert difference(b[0], a[0]) <= 1e-12
            assert a[1] is None and b[1] is None or difference(b[1], a[1]) <= 1e-12


@pytest.mark.parametrize("kind", ["bool", "float"])
def test_multihead_key_padding(kind):
    old, new = multihead(batch_first=True)
    x = torch.randn(2, 7, 15, dtype=torch.float64)
    ignored = torch.tensor([[False] * 7, [False] * 4 + [True] * 3])
    mask = ignored if kind == "bool" else torch.zeros(2, 7, dtype=torch.float64).masked_fill(
        ignored, -torch.inf)
    a, b = (model(x, x, x, key_padding_mask=mask) for model in (old, new))
    assert difference(b[0], a[0]) <= 1e-12 and difference(b[1], a[1]) <= 1e-12


def test_multihead_refuses_what_is_not_self_attention():
    _, new = multihead(batch_first=True)
    x, y = torch.randn(2, 2, 7, 15, dtype=torch.float64)
    for call, message in [(lambda: new(x, y, y), "expected the same tensor as query, key and value"),
                          (lambda: new(x, x, x, attn_mask=torch.zeros(7, 7)), "is called with a mask"),
                          (lambda: new(x, x, x, key_padding_mask=torch.ones(2, 7)), "adds other numbers")]:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("heads", [2, 3])
@pytest.mark.parametrize("batch_first", [False, True])
def test_encoder_with_padding(batch_first, heads, norm_first, training):
    model, x, _, place = torch_encoder(heads=heads, norm_first=norm_first, batch_first=batch_first)
    ignored = torch.tensor([[False] * 11, [False] * 6 + [True] * 5])
    x = x if batch_first else x.transpose(0, 1)
    for context in (torch.no_grad(), torch.enable_grad()):  # PyTorch's fast path is without gradients
        swapped = copy.deepcopy(model).train(training)
        with context:
            expected = model.train(training)(x, src_key_padding_mask=ignored)
            swap(swapped, "alpha_translution", **place)
            found = swapped(x, src_key_padding_mask=ignored)
        tokens = ~ignored if batch_first else ~ignored.t()
        assert difference(found[tokens], expected[tokens]) <= 1e-12


def test_encoder_with_causal_mask():
    model, x, _, place = torch_encoder()
    mask = nn.Transformer.generate_square_subsequent_mask(11).double()
    swapped = copy.deepcopy(model)
    swap(swapped, "translution", causal=True, **place)
    for m in (mask, torch.isinf(mask)):
        assert difference(swapped(x, m), model(x, m)) <= 1e-12
    with pytest.raises(ValueError, match="swapped with causal=True and is called without a causal mask"):
        swapped(x)
    with pytest.raises(ValueError, match=r"expected a causal attn_mask \[11, 11\]"):
        swapped(x, mask.t())


def test_decoder_keeps_its_cross_attention():
    torch.manual_seed(1)
    layer = nn.TransformerDecoderLayer(18, 3, 20, dropout=0.0, batch_first=True)
    model = randomise(nn.TransformerDecoder(layer, 2))
    x, memory = torch.randn(2, 7, 18, dtype=torch.float64), torch.randn(2, 4, 18, dtype=torch.float64)
    mask = nn.Transformer.generate_square_subsequent_mask(7).double()
    expected = model(x, memory, mask)
    report = swap(model, "translution", grid=7, causal=True)
    assert report.layers == ["layers.0.self_attn", "layers.1.self_attn"]
    assert difference(model(x, memory, mask), expected) <= 1e-12


# --- transformers


@pytest.mark.parametrize("implementation", ["sdpa", "eager"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_gpt2_with_padding(side, implementation):
    model, ids, _, _ = transformers_gpt2(attn_implementation=implementation)
    mask = torch.ones_like(ids)
    mask[1, :4] = 0
    mask = mask if side == "left" else mask.flip(1)
    tokens = mask.bool()
    expected = model(ids, attention_mask=mask).logits
    swap(model, "translution")
    assert difference(model(ids, attention_mask=mask).logits[tokens], expected[tokens]) <= 1e-12


def test_gpt2_generates_without_a_cache():
    model, ids, _, _ = transformers_gpt2()
    options = dict(max_new_tokens=3, do_sample=False, pad_token_id=0)
    padded = torch.ones_like(ids)
    padded[1, :2] = 0
    calls = [dict(), dict(attention_mask=padded), dict(num_beams=2)]
    expected = [model.generate(ids, **options, **call) for call in calls]
    swap(model)
    assert not model.config.use_cache and not model.generation_config.use_cache
    for call, tokens in zip(calls, expected):
        assert torch.equal(model.generate(ids, **options, **call), tokens)
    with pytest.raises(ValueError, match="call it with use_cache=False"):
        model(ids, use_cache=True)
    with pytest.raises(ValueError, match="cannot use a cache"):
        model.generate(ids, use_cache=True, **options)


def test_gpt2_refuses_other_masks():
    model, ids, _, _ = transformers_gpt2()
    swap(model)
    band = torch.ones(9, 9, dtype=torch.bool).tril().triu(-2).expand(2, 1, 9, 9)
    with pytest.raises(ValueError, match="expected a mask of causal order and padding"):
        model(ids, attention_mask=band)


def test_gpt2_keeps_its_cross_attention():
    model, ids, call, _ = transformers_gpt2(add_cross_attention=True)
    states = torch.randn(2, 5, 24, dtype=torch.float64)
    expected = model(ids, encoder_hidden_states=states, use_cache=False).logits
    assert len(swap(model).layers) == 2
    assert difference(model(ids, encoder_hidden_states=states).logits, expected) <= 1e-12


@pytest.mark.parametrize("make", [transformers_vit, transformers_gpt2], ids=["vit", "gpt2"])
def test_attention_maps_of_transformers(make):
    model, x, _, _ = make(attn_implementation="eager")
    expected = model(x, output_attentions=True).attentions
    swap(model, "translution")
    found = model(x, output_attentions=True).attentions
    assert len(found) == len(expected) == 2
    # The softmax of transformers' ViT is in float32.
    assert all(difference(a, b) <= 1e-6 for a, b in zip(found, expected))


# --- position embedding, sizes, choice of layers, messages


@pytest.mark.parametrize("host, name", [("timm", "pos_embed"), ("gpt2", "transformer.wpe.weight"),
                                        ("vit", "vit.embeddings.position_embeddings")])
def test_position_embedding_can_be_dropped(host, name):
    model, x, call, place = HOSTS[host]()
    original = copy.deepcopy(model)
    own = original.state_dict()
    before = call(model, x)
    dict(original.named_parameters())[name].data.zero_()
    expected = call(original, x)
    swap(model, "alpha_translution", drop_embedding=True, **place)
    assert difference(call(model, x), expected) <= 1e-12 and difference(before, expected) > 1e-3
    assert not dict(model.named_parameters())[name].requires_grad
    model.load_state_dict({**own, name: torch.ones_like(own[name])})
    assert difference(call(model, x), expected) <= 1e-12


def test_full_translution_of_a_base_model_is_refused(monkeypatch, capsys):
    timm = import_host("timm")
    with torch.device("meta"):
        model = timm.create_model("vit_base_patch16_224")
    report = translution.swap(model, "translution", dry_run=True)
    assert 15.5e9 < report.parameters[1] < 15.7e9
    line = ("swap: 12 layers to translution, grid 14x14 with class token: 86.6 million -> 15.6 billion "
            "parameters, 346.3 MB -> 62.5 GB")
    assert str(report) == line and capsys.readouterr().err == line + "\n"

    model, x, call, _ = timm_vit()
    expected = call(model, x)
    monkeypatch.setattr(sys.modules["translution.swap"], "_usable_bytes", lambda device: 1 << 20)
    with pytest.raises(MemoryError, match="the new layers need 32.6 MB, and 1.0 MB of memory are free"):
        swap(model, "translution")
    assert torch.equal(call(model, x), expected) and not attention_layers(model)


@pytest.mark.parametrize("layers, chosen", [
    (None, [0, 1, 2]), (0, [0]), (-1, [2]), ([2, 0], [0, 2]), (range(1, 3), [1, 2]),
    ("layers.1.self_attn", [1]), (["layers.2.self_attn", 0], [0, 2]), (lambda name: "1" in name, [1])])
def test_choice_of_layers(layers, chosen):
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(6, 2, 8), 3)
    report = swap(model, "relative_bias", layers, grid=4)
    assert report.layers == [f"layers.{n}.self_attn" for n in chosen]
    # Those that are left can be swapped later.
    if len(chosen) < 3:
        assert len(swap(model, "alpha_translution", grid=4).layers) == 3 - len(chosen)


def test_dry_run_changes_nothing():
    model, x, call, place = torch_encoder()
    expected = call(model, x)
    report = swap(model, "translution", dry_run=True, **place)
    assert not attention_layers(model) and torch.equal(call(model, x), expected)
    swap(model, "translution", **place)
    assert report.parameters[1] == sum(p.numel() for p in model.parameters())
    assert report.bytes[1] == 8 * report.parameters[1]


def test_the_size_is_stated(capsys):
    model, _, _, place = torch_encoder()
    report = translution.swap(model, **place)
    assert capsys.readouterr().err == str(report) + "\n"
    assert str(report).startswith("swap: 2 layers to alpha_translution, grid 11: ")


@pytest.mark.parametrize("options, error, message", [
    (dict(method="rotary"), ValueError, "expected a method that can start as plain attention"),
    (dict(), ValueError, "does not say how its tokens lie; pass grid="),
    (dict(grid=11, mixing="mean"), TypeError, "unexpected keyword argument 'mixing'"),
    (dict(grid=11, layers=2), ValueError, "expected a number from 0 to 1 or a name, got 2; the names are "
                                          "layers.0.self_attn, layers.1.self_attn"),
    (dict(grid=11, layers="attn"), ValueError, "got 'attn'"),
    (dict(grid=11, layers=lambda name: False), ValueError, "chooses none of layers.0.self_attn"),
    (dict(grid=11, drop_embedding=True), ValueError, "found no position embedding around layers.0"),
])
def test_wrong_calls_are_explained(options, error, message):
    model, x, call, _ = torch_encoder()
    expected = call(model, x)
    with pytest.raises(error) as raised:
        swap(model, **options)
    assert message in str(raised.value)
    assert not attention_layers(model) and torch.equal(call(model, x), expected)


@pytest.mark.parametrize("model, message", [
    (lambda: nn.Linear(3, 3), "found no attention that it knows in Linear; known are timm's"),
    (lambda: nn.MultiheadAttention(6, 2, kdim=4, vdim=4), "other channels than its queries"),
    (lambda: nn.MultiheadAttention(6, 2, add_zero_attn=True), "adds keys and values of its own"),
    (lambda: timm_vit(qk_norm=True)[0], "normalises queries and keys"),
    (lambda: timm_vit(name="deit_tiny_distilled_patch16_224")[0], "has 2 tokens before those of the grid"),
])
def test_hosts_that_cannot_be_swapped(model, message):
    with pytest.raises(ValueError) as raised:
        swap(model(), grid=None if "timm" in message or "tokens" in message else 4)
    assert message in str(raised.value)


def test_a_timm_mask_is_refused():
    model, _, _, _ = timm_vit()
    swap(model)
    with pytest.raises(ValueError, match="called with a mask; swapped layers of a ViT take none"):
        model.blocks[0].attn(torch.zeros(1, 7, 192, dtype=torch.float64), attn_mask=torch.ones(7, 7))


def test_without_the_library(run_python):
    code = ("import torch, translution; m = torch.nn.MultiheadAttention(6, 2); x = torch.randn(4, 1, 6)\n"
            "a = m(x, x, x)[0]; translution.swap(m, 'translution', grid=(2, 2)); b = m(x, x, x)[0]\n"
            "print(type(m.attention).__name__, bool((a - b).abs().max() < 1e-6))")
    done = run_python(code, TRANSLUTION_LIBRARY="/nowhere/libtranslution.so")
    assert done.stdout == "ReferenceAttention True\n"
