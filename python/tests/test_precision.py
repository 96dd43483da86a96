"""bfloat16 products: precision="bf16" on layers and models, and tensors that are bfloat16."""

import subprocess

import pytest
import torch

import translution

METHODS = torch.ops.translution.method_names()
MODEL = dict(depth=2, dim=12, heads=2, dim_head=8, mlp_dim=20)


def make(method="translution", **options):
    torch.manual_seed(3)
    return translution.Attention(12, heads=2, dim_head=8, grid=(3, 4), cls=True, method=method,
                                 **options)


def make_vit(**options):
    torch.manual_seed(3)
    return translution.ViT(image_size=12, patch_size=4, channels=2, classes=5, **MODEL, **options)


def make_gpt(**options):
    torch.manual_seed(3)
    return translution.GPT(length=9, vocabulary=13, **MODEL, **options)


def output_and_gradients(module, input):
    module.zero_grad()
    if input.is_floating_point():
        input = input.detach().clone().requires_grad_()
    output = module(input)
    output.float().sin().sum().backward()
    gradients = [p.grad for p in module.parameters() if p.grad is not None]
    return [output.detach(), *gradients, *([input.grad] if input.is_floating_point() else [])]


def expect_a_little_off(found, exact):
    """Rounded to 8 bits: other numbers, but near."""
    assert len(found) == len(exact)
    for a, b in zip(found, exact):
        assert a.dtype == b.dtype == torch.float32
        assert (a - b).abs().max() <= 0.05 * b.abs().max() + 1e-6
    assert not torch.equal(found[0], exact[0])


@pytest.mark.parametrize("method", METHODS)
def test_layer_is_a_little_off_float32(method):
    x = torch.randn(2, 13, 12)
    rounded, exact = make(method, precision="bf16"), make(method)
    assert rounded.options["precision"] == rounded.out.precision == "bf16"
    expect_a_little_off(output_and_gradients(rounded, x), output_and_gradients(exact, x))


@pytest.mark.parametrize("family", ["vit", "gpt"])
@pytest.mark.parametrize("method", ["self_attention", "alpha_translution", "translution"])
def test_model_is_a_little_off_float32(family, method):
    build = make_vit if family == "vit" else make_gpt
    input = torch.randn(2, 2, 12, 12) if family == "vit" else torch.randint(13, (2, 9))
    rounded, exact = build(method=method, precision="bf16"), build(method=method)
    assert rounded.options["precision"] == "bf16"
    expect_a_little_off(output_and_gradients(rounded, input)[:1],
                        output_and_gradients(exact, input)[:1])


def test_block_and_linear_take_a_precision():
    torch.manual_seed(3)
    block = translution.Block(dict(dim=12, heads=2, dim_head=8, grid=(4,)), 20, precision="bf16")
    linears = [m for m in block.modules() if isinstance(m, translution.Linear)]
    assert [linear.precision for linear in linears] == ["bf16"] * 3
    assert block.attention.options["precision"] == "bf16"
    x, linear = torch.randn(2, 4, 12), linears[1]
    assert block(x).dtype == torch.float32
    expected = x.bfloat16().float() @ linear.weight.bfloat16().float().T + linear.bias
    torch.testing.assert_close(linear(x), expected)
    assert "precision=bf16" in repr(block.attention) and "precision" not in repr(make())


@pytest.mark.parametrize("method", METHODS)
def test_matrices_may_be_bfloat16_alone(method):
    """As the program holds them in evaluation: the same numbers, but for the order of sums, in half the memory."""
    model = make_vit(method=method, precision="bf16").eval()
    images = torch.randn(2, 2, 12, 12)
    with torch.no_grad():
        expected = model(images)
        for name, parameter in model.named_parameters():
            kept = ("vectors", "attention.bias", "position", "gate", "cls_token")
            if parameter.dim() >= 2 and not any(word in name for word in kept):
                parameter.data = parameter.data.bfloat16()
        assert model.head.weight.dtype == torch.bfloat16
        assert (model(images) - expected).norm() <= 5e-3 * expected.norm()


@pytest.mark.parametrize("precision", ["float32", "bf16"])
@pytest.mark.parametrize("family", ["vit", "gpt"])
def test_bfloat16_modules_run(family, precision):
    build = make_vit if family == "vit" else make_gpt
    model = build(precision=precision).to(torch.bfloat16)
    input = torch.randn(2, 2, 12, 12).bfloat16() if family == "vit" else torch.randint(13, (2, 9))
    output = model(input)
    output.float().sum().backward()
    assert output.dtype == torch.bfloat16
    assert all(p.grad.dtype == torch.bfloat16 for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize("build", [make, make_vit, make_gpt,
                                   lambda **o: translution.Linear(3, 4, **o)])
def test_unknown_precision_is_refused(build):
    with pytest.raises(ValueError) as raised:
        build(precision="half")
    assert "unknown precision 'half'; expected one of float32, bf16" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


def test_double_is_refused():
    with pytest.raises(RuntimeError, match="precision bf16 takes float32 or bfloat16 tensors"):
        make(precision="bf16").double()(torch.randn(2, 13, 12, dtype=torch.float64))


def test_run_is_loaded_in_either_precision(build, tmp_path):
    run = tmp_path / "run"
    command = ("train --model vit-2x24x2x32/12 --data digits:32 --canvas 36 --steps 2 --batch 4 "
               "--eval-limit 4 --threads 1 --precision bf16 --out")
    subprocess.run([str(build / "translution"), *command.split(), str(run)], check=True,
                   capture_output=True)
    images = torch.randn(2, 1, 36, 36)
    loaded = {name: translution.load_model(run, precision=name)
              for name in (None, "float32", "bf16")}
    assert loaded[None].options["precision"] == "bf16"
    assert loaded["float32"].options["precision"] == "float32"
    assert all(p.dtype == torch.float32 for p in loaded[None].parameters())
    assert torch.equal(loaded[None](images), loaded["bf16"](images))
    assert not torch.equal(loaded[None](images), loaded["float32"](images))
    with pytest.raises(ValueError, match="unknown precision 'half'"):
        translution.load_model(run, precision="half")
