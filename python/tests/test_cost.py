"""The cost of a model, as the program prints it."""

import json
import subprocess

import pytest
import torch

import translution


def test_parameters_are_those_of_the_module():
    for name, method in [("vit-a/12", "translution"), ("vit-base/16", "alpha_translution")]:
        model = translution.ViT(model=name, method=method, image_size=48, device="meta")
        assert model.cost().parameters == sum(p.numel() for p in model.parameters())
        assert model.cost().weight_bytes == 4 * model.cost().parameters
    gpt = translution.GPT(model="gpt-a-160", method="relative_bias", device="meta")
    assert gpt.cost().parameters == sum(p.numel() for p in gpt.parameters())


def test_flops_of_a_small_model_counted_by_hand():
    """One block of plain attention over 5 tokens, of which the class token alone is read."""
    C, E, F = 6, 8, 10
    model = translution.ViT(depth=1, dim=C, heads=2, dim_head=4, mlp_dim=F, image_size=8, patch_size=4,
                            channels=1, classes=3, method="self_attention")
    embed, head = 2 * 4 * 16 * C, 2 * C * 3
    roles = 2 * C * E + 2 * (2 * 5 * C * E)      # q of one token, k and v of five
    pairs = 2 * (2 * 5 * E)                      # scores and weighted sum
    rest = 2 * E * C + 2 * (2 * C * F)           # output projection and MLP
    assert model.cost().forward_flops == embed + head + roles + pairs + rest
    assert model.cost().training_flops == 3 * model.cost().forward_flops


@pytest.mark.parametrize("model, options", [
    ("vit-a/12", dict(method="translution", image_size=84, channels=1, classes=10)),
    ("gpt-a-160", dict(method="alpha_translution", relative_dim=16, precision="bf16"))])
def test_figures_of_the_program(build, model, options):
    command = [str(build / "translution"), "info", "--json", "--batch", "8", "--model", model]
    for name, value in options.items():
        command += ["--" + name.replace("_", "-"), str(value)]
    printed = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[0]
    family = translution.GPT if model.startswith("gpt") else translution.ViT
    cost = family(model=model, device="meta", **options).cost(batch=8)
    assert isinstance(cost, translution.ModelCost)
    compared = [name for name in cost._fields if name in printed]
    assert len(compared) == 9  # the program has no work_bytes
    for name in compared:
        assert getattr(cost, name) == printed[name], name
    assert 0 < cost.work_bytes < cost.training_bytes


def test_refusals():
    model = translution.ViT(model="vit-a/56", device="meta")
    with pytest.raises((ValueError, RuntimeError), match="expected a batch of 1 or more, got 0"):
        model.cost(batch=0)
    assert torch.ops.translution.model_cost("vit", "{}")  # of the defaults
