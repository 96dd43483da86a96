"""Wrong calls and wrong weights: the message names the difference and what to do."""

import pytest
import torch

import translution


def make(**options):
    return translution.Attention(
        **{**dict(dim=12, heads=3, dim_head=4, grid=(3, 4), cls=True), **options})


def make_vit(**options):
    return translution.ViT(**{**dict(depth=2, dim=8, heads=2, dim_head=4, mlp_dim=8, image_size=12,
                                     patch_size=4, channels=1, classes=3), **options})


@pytest.mark.parametrize("options, expected", [
    (dict(method="translation"), "unknown method 'translation'; did you mean 'translution'?"),
    (dict(roles="qx"), "roles"),
    (dict(heads=0), "expected one or more heads, got 0"),
    (dict(grid=()), "grid"),
    (dict(grid=(3, -1)), "grid"),
    (dict(grid=(3, 2.5)), "grid: expected a whole number, got 2.5"),
    (dict(dim_head=6, method="rotary"), "a head of 6 channels does not split into pairs for 2"),
    (dict(dropout=1.0), "expected a dropout probability in"),
    (dict(dropout=float("nan")), "attention: dropout: expected a finite number, got nan"),
    (dict(kernel_size=-1, method="rotary"), "expected an odd kernel_size of 1 or more, got -1"),
    (dict(radius="far"), 'radius: expected a whole number, got "far"'),
    (dict(cls=1), "cls: expected true or false, got 1"),
    (dict(rotary=True), "has no shared queries and keys to rotate"),
    (dict(kernel_size=4, method="convolution"), "expected an odd kernel_size of 1 or more, got 4"),
    (dict(init="zero"), "unknown init 'zero'"),
    (dict(workspace=-1), "expected a workspace of 0 or more bytes, got -1"),
])
def test_options_of_a_layer(options, expected):
    with pytest.raises(ValueError) as raised:
        make(**options)
    assert expected in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("options, expected", [
    (dict(patch_size=5), "does not divide into patches of 5x5"),
    (dict(model="vit-q/12"), "unknown model 'vit-q/12'; did you mean"),
    (dict(model="gpt-a-160"), "expected the name of a vit, got 'gpt-a-160'"),
    (dict(hybrid_layers=3), "expected 0 to 2 hybrid layers"),
    (dict(pooling="max"), "unknown pooling 'max'"),
    (dict(dropout=float("nan")), "model: dropout: expected a finite number, got nan"),
    (dict(norm_eps=float("-inf")), "model: norm_eps: expected a finite number, got -inf"),
])
def test_options_of_a_model(options, expected):
    with pytest.raises(ValueError) as raised:
        make_vit(**options)
    assert expected in str(raised.value)


def test_options_that_do_not_exist():
    for options in (dict(imagesize=12), dict(length=3)):
        with pytest.raises(TypeError, match="unexpected keyword argument"):
            make_vit(**options)
    with pytest.raises(ValueError, match="no option 'imagesize'; did you mean 'image_size'?"):
        torch.ops.translution.model_options("vit", '{"imagesize": 12}')
    with pytest.raises(ValueError, match="expected method 'translution', got 'rotary'"):
        translution.Translution(8, grid=4, method="rotary")


@pytest.mark.parametrize("x, expected", [
    (torch.zeros(2, 12, 12), "attention: x has 12 tokens, this layer was built for 13"),
    (torch.zeros(2, 13, 11), "attention: x must be [B, N, 12], got [2, 13, 11]"),
    (torch.zeros(13, 12), "attention: x must be [B, N, 12], got [13, 12]"),
    (torch.zeros(2, 13, 12, dtype=torch.float64), "ouble"),
])
def test_input_of_a_layer(x, expected):
    with pytest.raises(RuntimeError) as raised:
        make()(x)
    assert expected in str(raised.value).splitlines()[0]


def test_rows_of_a_layer():
    with pytest.raises(RuntimeError, match="rows"):
        make()(torch.zeros(1, 13, 12), torch.tensor([13]))
    with pytest.raises(RuntimeError, match="rows"):
        make()(torch.zeros(1, 13, 12), [-1])
    for rows in (torch.zeros(1, 2, dtype=torch.long), torch.zeros(2), torch.zeros(0, dtype=torch.long),
                 []):
        with pytest.raises(ValueError, match="attention: rows"):
            make()(torch.zeros(1, 13, 12), rows)


def test_rows_as_plain_numbers_are_those_of_a_tensor():
    layer, x = make(), torch.randn(2, 13, 12)
    assert torch.equal(layer(x, [5, 0]), layer(x, torch.tensor([5, 0])))


def test_input_of_models():
    with pytest.raises(ValueError, match=r"expected images \[B, 1, 12, 12\], got \[2, 3, 12, 12\]"):
        make_vit()(torch.zeros(2, 3, 12, 12))
    with pytest.raises(ValueError, match="are torch.float64 on cpu, the model is torch.float32"):
        make_vit()(torch.zeros(2, 1, 12, 12, dtype=torch.float64))
    gpt = translution.GPT(depth=1, dim=8, heads=2, dim_head=4, mlp_dim=8, length=5, vocabulary=7)
    with pytest.raises(ValueError, match=r"int64 tokens \[B, 1 to 5\], got torch.int64 \[1, 6\]"):
        gpt(torch.zeros(1, 6, dtype=torch.long))
    with pytest.raises(IndexError):
        gpt(torch.tensor([[7]]))


def test_weights_that_are_not_finite(tmp_path):
    model, path = make_vit(), tmp_path / "nan.safetensors"
    with torch.no_grad():
        model.head.weight[0, 0] = float("nan")
    translution.save_weights(model, path)
    for load in (lambda: translution.load_weights(make_vit(), path),
                 lambda: translution.load_model(path)):
        with pytest.raises(ValueError, match="nan.safetensors: tensor 'head.weight' holds nan; expec"):
            load()


def test_models_larger_than_memory(tmp_path):
    huge = dict(model="vit-large/1", image_size=56, method="translution")
    with pytest.raises(MemoryError, match=r"^vit: [0-9,]+ parameters take [0-9.]+ GiB of memory, and "):
        translution.ViT(**huge)
    tensors, metadata = {"a": torch.zeros(1)}, {"model": "vit-large/1", "image-size": "56x56"}
    translution.safetensors.save_file(tmp_path / "lie.safetensors", tensors, metadata)
    with pytest.raises(ValueError, match="lie.safetensors: has no tensor 'cls_token', expected"):
        translution.load_model(tmp_path / "lie.safetensors")


def test_relation_must_be_square_int64():
    with pytest.raises(RuntimeError, match=r"expected slots as an int64 tensor \[N, N\]"):
        translution.Attention(4, relation=translution.Relation(torch.zeros(2, 3), 1))


def refusal(target, state):
    with pytest.raises(RuntimeError) as raised:
        target.load_state_dict(state)
    return str(raised.value)


def test_weights_of_another_grid():
    text = refusal(make(), make(grid=(4, 4)).state_dict())
    assert "query is 52x12x12 in the weights and 38x12x12 here" in text
    assert "the weights have 52 offsets, this layer 38 (grid 3x4, cls)" in text
    assert "build it with the grid, cls, causal and sharing of the weights" in text


def test_weights_of_a_grid_that_was_turned_round():
    text = refusal(make(grid=(4, 3)), make().state_dict())
    assert "the weights were saved with grid [3, 4], this layer has grid [4, 3]" in text
    make(grid=(4, 3)).load_state_dict(dict(make().state_dict()))  # a plain dict says no grid


def test_weights_of_other_heads():
    text = refusal(make(), make(heads=2).state_dict())
    assert "query is 38x12x8 in the weights and 38x12x12 here" in text
    assert "this layer has dim 12, 3 heads of 4" in text
    text = refusal(make(), make(heads=6, dim_head=2).state_dict())
    assert "saved with heads 6, dim_head 2, this layer has heads 3, dim_head 4" in text


def test_weights_of_other_roles_and_methods():
    text = refusal(make(), make(roles="v").state_dict())
    assert "query is 12x12 in the weights and 38x12x12 here: one is a matrix per offset" in text
    text = refusal(make(), make(method="alpha_translution").state_dict())
    assert 'Unexpected key(s) in state_dict: "query_down"' in text
    assert "build it with the method, roles, depth and input_embedding" in text


def test_missing_and_unknown_names():
    state = make_vit().state_dict()
    del state["backbone.blocks.1.attention.key"]
    state["backbone.blocks.1.attention.keys"] = torch.zeros(1)
    text = refusal(make_vit(), state)
    assert 'Missing key(s) in state_dict: "backbone.blocks.1.attention.key"' in text
    assert 'Unexpected key(s) in state_dict: "backbone.blocks.1.attention.keys"' in text
    assert "or pass strict=False to load only what both have" in text
    result = make_vit().load_state_dict(state, strict=False)
    assert result.missing_keys == ["backbone.blocks.1.attention.key"]


def test_wrong_type_is_named():
    state = make().state_dict()
    state["value"] = state["value"].long()
    assert "value holds torch.int64, expected torch.float32; these are no weights" in refusal(
        make(), state)
    state = make_vit().state_dict()
    state["head.weight"] = state["head.weight"].long()
    assert "head.weight holds torch.int64, expected torch.float32" in refusal(make_vit(), state)
    with pytest.warns(UserWarning, match="torch.float64, the model torch.float32: they are conv"):
        make().load_state_dict(make().double().state_dict())


def test_files_of_another_model(tmp_path):
    path = tmp_path / "layer.safetensors"
    translution.save_weights(make(grid=(4, 4)), path)
    with pytest.raises(RuntimeError, match="the weights have 52 offsets, this layer 38") as raised:
        translution.load_weights(make(), path)
    assert str(raised.value).startswith(str(path))
    with pytest.raises(ValueError, match="does not say what model it is of"):
        translution.load_model(path)
    with pytest.raises(ValueError, match="found no manifest.json"):
        translution.load_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        translution.load_model(tmp_path / "none.safetensors")


def test_damaged_manifest(tmp_path):
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="was not written by `translution train`, or is damaged"):
        translution.load_model(tmp_path)
