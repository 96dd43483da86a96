"""The authors' modules, with their weights, beside what their code computed (tests/golden)."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch

import translution
from translution import convert

GOLDEN = Path(__file__).resolve().parents[2] / "tests" / "golden"
NAMES = sorted(path.stem for path in GOLDEN.glob("*.safetensors"))


class Golden:
    def __init__(self, name):
        tensors, metadata = translution.safetensors.load_file(GOLDEN / f"{name}.safetensors")
        self.options = dict(metadata)
        self.family, self.kind = self.options.pop("family"), self.options.pop("kind")
        self.tensors = tensors
        self.state = {key[6:]: value for key, value in tensors.items() if key.startswith("state.")}
        self.grads = {key[5:]: value for key, value in tensors.items() if key.startswith("grad.")}

    def module(self, dtype=torch.float64):
        state = {key: value.to(dtype) for key, value in self.state.items()}
        return translution.from_authors(self.family, state, kind=self.kind, **self.options)


def error(got, expected):
    scale = expected.abs().max().item()
    return (got.double() - expected).abs().max().item() / (scale or 1.0)


def their_gradients(golden, module):
    """Gradients map as weights do: a module that holds them goes the same way back."""
    grads = {name: torch.zeros_like(p) if p.grad is None else p.grad
             for name, p in module.named_parameters()}
    holder = golden.module(next(module.parameters()).dtype)
    holder.load_state_dict(grads)
    return translution.to_authors(holder, golden.family)


def angle_error(golden):
    """How far the sines and cosines of this PyTorch are from the golden ones. Both are computed in
    float, and their last bit depends on the library that computes them."""
    back = translution.to_authors(golden.module(), golden.family)
    return max((error(back[key], value) for key, value in golden.state.items()
                if key not in golden.grads), default=0.0)


def test_all_cases_are_there():
    assert len(NAMES) == 49


@pytest.mark.parametrize("dtype, most", [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@pytest.mark.parametrize("name", NAMES)
def test_outputs_and_gradients(name, dtype, most):
    golden = Golden(name)
    module, t = golden.module(dtype), golden.tensors
    most = max(most, 4 * angle_error(golden))
    assert next(module.parameters()).dtype == dtype
    floating = t["input"].is_floating_point()
    input = t["input"].to(dtype).requires_grad_() if floating else t["input"]
    output = module(input)
    output.backward(t["grad_output"].to(dtype))
    assert error(output, t["output"]) <= most
    if floating:
        assert error(input.grad, t["grad_input"]) <= most
    theirs = their_gradients(golden, module)
    for key, expected in golden.grads.items():
        assert error(theirs[key], expected) <= most, key


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(name):
    golden = Golden(name)
    back = translution.to_authors(golden.module(), golden.family)
    assert set(back) == set(golden.state)
    for key, value in golden.state.items():
        if key in golden.grads:
            assert torch.equal(back[key], value), key
        else:  # sines in float: libraries differ in the last bit
            assert error(back[key], value) <= 1e-7, key


def test_values_instead_of_texts():
    golden = Golden("layer2d_lor_kv")
    module = translution.from_authors("lor_kv", golden.state, dim=9, heads=3, dim_head=4,
                                      relative_dim=2, grid=(3, 2), cls=True)
    assert error(module(golden.tensors["input"]), golden.tensors["output"]) <= 1e-10


def test_names_with_a_size():
    model = translution.ViT(model="lor_v_tiny/112", classes=3)
    again = translution.from_authors("lor_v_tiny", translution.to_authors(model), kind="vit",
                                     patch_size=112, num_classes=3, tln_num=None)
    image = torch.randn(1, 3, 224, 224)
    assert torch.equal(again(image), model(image))


@pytest.mark.parametrize("change, said", [
    (dict(grid=(4, 2)), r"'to_k2.unique_params' is \[18, 6, 6\], expected \[24, 6, 6\].* 4x2 grid"),
    (dict(heads=2), r"'to_qkv.weight' is \[36, 9\], expected \[24, 9\] \(qkv of 2 heads of 4\)"),
    (dict(depth=2), "no option 'depth'"),
])
def test_other_options_are_named(change, said):
    golden = Golden("layer2d_lor_kv")
    with pytest.raises(ValueError, match=said):
        translution.from_authors("lor_kv", golden.state, **{**golden.options, **change})


def test_other_states_are_named():
    golden = Golden("vit_v")

    def refused(change, said):
        state = {**golden.state, **change}
        state = {key: value for key, value in state.items() if value is not None}
        with pytest.raises(ValueError, match=said):
            translution.from_authors("v", state, kind="vit", **golden.options)

    refused({"mlp_head.bias": None}, r"'mlp_head.bias' \[5\] \(5 classes\) is missing")
    refused({"more": torch.ones(2)}, r"'more' \[2\] is not a tensor of this model")
    refused({"cls_token": golden.state["cls_token"].float()}, "other tensors are Float|is Float")
    refused({"cls_token": golden.state["cls_token"].long()}, "must hold floating-point numbers")
    refused({"epoch": 3}, "'epoch' is int, expected a tensor")
    with pytest.raises(ValueError, match="unknown family 'kq'; did you mean"):
        translution.from_authors("kq", golden.state, kind="vit", **golden.options)
    with pytest.raises(ValueError, match="expected a ViT, a GPT or a NormedAttention, got Linear"):
        translution.to_authors(torch.nn.Linear(2, 2))


# --- python -m translution.convert

SETTINGS = ["--model", "vit-2x9x3x24x8/2", "--method", "translution", "--roles", "v",
            "--image-size", "6x4", "--classes=5", "--init", "authors"]


def test_convert_reads_a_training_checkpoint(tmp_path, capsys):
    golden = Golden("vit_v")
    state = {f"module.{key}": value for key, value in golden.state.items()}
    torch.save({"epoch": 3, "arch": "v_tiny", "state_dict": state}, tmp_path / "model.pt")
    out = tmp_path / "ours.safetensors"
    assert convert.main([str(tmp_path / "model.pt"), str(out), *SETTINGS]) == 0
    assert "vit-2x9x3x24x8/2 with translution" in capsys.readouterr().out
    model = translution.load_model(out, dtype=torch.float64)
    assert error(model(golden.tensors["input"]), golden.tensors["output"]) <= 1e-10


def test_convert_writes_what_the_program_writes(tmp_path, build):
    golden = Golden("vit_v")
    theirs = tmp_path / "theirs.safetensors"
    translution.safetensors.save_file(theirs, golden.state)
    assert convert.main([str(theirs), str(tmp_path / "python.safetensors"), *SETTINGS]) == 0
    subprocess.run([build / "translution", "convert", theirs, tmp_path / "program.safetensors",
                    "--from", "authors", *SETTINGS], check=True, capture_output=True)
    assert ((tmp_path / "python.safetensors").read_bytes()
            == (tmp_path / "program.safetensors").read_bytes())


class Harm:
    def __reduce__(self):
        return (print, ("executed",))


@pytest.mark.parametrize("content, said", [
    (Harm(), "does not hold tensors alone (Unsupported"),
    ({"state_dict": {"cls_token": 3}}, "'cls_token' is int, expected a tensor"),
    ([1, 2], "expected a state_dict, got list"),
])
def test_convert_refuses_what_is_no_state(tmp_path, capsys, content, said):
    torch.save(content, tmp_path / "model.pt")
    out = tmp_path / "ours.safetensors"
    assert convert.main([str(tmp_path / "model.pt"), str(out), *SETTINGS]) == 1
    printed = capsys.readouterr()
    assert said in printed.err and printed.err.count("\n") == 1
    assert "executed" not in printed.out and not out.exists()


def test_convert_refuses_other_files_and_settings(tmp_path, capsys):
    (tmp_path / "model.pt").write_bytes(b"no pickle")

    def said(*arguments):
        assert convert.main([*map(str, arguments)]) == 1
        return capsys.readouterr().err

    assert "does not hold tensors alone" in said(tmp_path / "model.pt", "out", *SETTINGS)
    assert "No such file" in said(tmp_path / "none.pt", "out", *SETTINGS)
    assert "unknown argument '--modle'" in said("a", "b", "--modle", "v_tiny")
    assert "--model: expected a value" in said("a", "b", "--model")


def test_convert_is_a_program(run_python):
    done = subprocess.run([sys.executable, "-m", "translution.convert", "--help"], check=True,
                          capture_output=True, text=True)
    assert "--relative-dim" in done.stdout


# --- GPT-2 and timm

def test_gpt2_and_timm_settings_are_options():
    gpt = translution.GPT(model="gpt-2x128x2x96-12", vocabulary=30, method="self_attention",
                          extra_norms=False, qkv_bias=True, gelu="tanh")
    names = dict(gpt.named_parameters())
    assert "head_norm.weight" not in names and "backbone.blocks.0.attention.query_bias" in names
    vit = translution.ViT(model="vit-2x128x2x96/4", image_size=12, method="self_attention",
                          extra_norms=False, qkv_bias=True, norm_eps=1e-6)
    assert "patch_norm.weight" not in dict(vit.named_parameters())
    assert vit.backbone.norm.eps == 1e-6


def random_gpt2(dim=128, layers=2):
    torch.manual_seed(1)
    state = {"wte.weight": torch.randn(30, dim), "wpe.weight": torch.randn(12, dim)}

    def add(name, weight, bias):
        state[f"{name}.weight"], state[f"{name}.bias"] = torch.randn(weight) / 8, torch.randn(bias) / 8

    for layer in range(layers):
        h = f"h.{layer}."
        add(h + "ln_1", [dim], dim)
        add(h + "attn.c_attn", [dim, 3 * dim], 3 * dim)
        add(h + "attn.c_proj", [dim, dim], dim)
        add(h + "ln_2", [dim], dim)
        add(h + "mlp.c_fc", [dim, 4 * dim], 4 * dim)
        add(h + "mlp.c_proj", [4 * dim, dim], dim)
    add("ln_f", [dim], dim)
    return {key: value.double() for key, value in state.items()}


def gpt2(state, tokens, heads=2, layers=2):
    F = torch.nn.functional
    B, n = tokens.shape
    conv = lambda name, x: x @ state[f"{name}.weight"] + state[f"{name}.bias"]
    norm = lambda name, x: F.layer_norm(x, x.shape[-1:], state[f"{name}.weight"],
                                        state[f"{name}.bias"])
    x = state["wte.weight"][tokens] + state["wpe.weight"][:n]
    for layer in range(layers):
        h = f"h.{layer}."
        q, k, v = (part.view(B, n, heads, -1).transpose(1, 2) for part in
                   conv(h + "attn.c_attn", norm(h + "ln_1", x)).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones(n, n).tril() == 0, float("-inf"))
        x = x + conv(h + "attn.c_proj", (scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        hidden = F.gelu(conv(h + "mlp.c_fc", norm(h + "ln_2", x)), approximate="tanh")
        x = x + conv(h + "mlp.c_proj", hidden)
    return norm("ln_f", x) @ state["wte.weight"].T


def test_gpt2_gives_the_same_logits():
    state, tokens = random_gpt2(), torch.randint(30, (2, 9))
    assert error(translution.from_gpt2(state)(tokens), gpt2(state, tokens)) <= 1e-10
    with pytest.raises(ValueError, match="'patch_embed.proj.weight' is missing"):
        translution.from_timm(state)
