"""ViT, GPT and Cloud beside the C++ models: same weights, outputs and gradients."""

import json
import subprocess

import pytest
import torch

import translution

METHODS = torch.ops.translution.method_names()
VARIANTS = ["hybrid", "embedded", "roles", "authors", "bf16"]
CASES = [f"{family}_{name}" for family in ("vit", "gpt") for name in [*METHODS, *VARIANTS]]
CASES += ["vit_mean", "cloud_mean", "cloud_number"]
CASES += [f"cloud_{name}" for name in METHODS if name not in ("gated_position", "rotary")]


class Case:
    def __init__(self, path):
        tensors, metadata = translution.safetensors.load_file(path)
        self.plan = json.loads(metadata["plan"])
        self.model_class = {"vit": translution.ViT, "gpt": translution.GPT,
                            "cloud": translution.Cloud}[metadata["family"]]
        part = {kind: {name[len(kind):]: tensor for name, tensor in tensors.items()
                       if name.startswith(kind)} for kind in ("weight.", "grad.")}
        self.weights, self.grads = part["weight."], part["grad."]
        self.input, self.output = (tensors["input"],), tensors["output"]
        if "positions" in tensors:
            self.input += (tensors["positions"], tensors["mask"])
        self.grad_output = tensors["grad_output"]


@pytest.fixture(params=CASES)
def case(request, cases):
    return Case(cases / f"{request.param}.safetensors")


OPTIONS = dict(depth=1, dim=84, heads=2, dim_head=24, mlp_dim=516, method="alpha_translution",
               dropout=0.1, gelu="tanh")


@pytest.mark.parametrize("family", ["vit", "vit_mean", "gpt"])
def test_any_number_of_threads_trains_the_same_model(family):
    """The sizes are such that PyTorch cuts its own calls by the number of threads."""
    before, results = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            torch.manual_seed(7)
            if family == "gpt":
                model = translution.GPT(length=26, vocabulary=129, **OPTIONS)
                input, target = torch.randint(129, (16, 26)), torch.randint(129, (16 * 26,))
            else:
                pooling = "mean" if family == "vit_mean" else "cls"
                model = translution.ViT(image_size=20, patch_size=4, classes=11, pooling=pooling,
                                        input_embedding=True, **OPTIONS)
                input, target = torch.randn(16, 3, 20, 20), torch.randint(11, (16,))
            optimizer = translution.AdamW(model.parameters(), clip=0.5)
            for _ in range(4):
                optimizer.zero_grad()
                logits = model(input).flatten(0, -2)
                torch.nn.functional.cross_entropy(logits, target).backward()
                optimizer.step()
            results.append([logits.detach(), *(p.grad for p in model.parameters()),
                            *model.state_dict().values()])
    finally:
        torch.set_num_threads(before)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


def test_every_case_is_compared(cases):
    assert sorted(path.stem for path in cases.iterdir()) == sorted(CASES)


def test_same_seed_gives_the_weights_of_cpp(case):
    torch.manual_seed(5)
    model = case.model_class(**case.plan["options"])
    found = dict(model.named_parameters())
    assert set(found) == set(case.weights)
    for name, expected in case.weights.items():
        assert torch.equal(found[name], expected), name


def test_logits_and_gradients_of_cpp(case):
    model = case.model_class(**case.plan["options"])
    model.load_state_dict(case.weights)
    output = model(*case.input)
    torch.testing.assert_close(output, case.output, rtol=1e-6, atol=1e-6)
    output.backward(case.grad_output)
    for name, parameter in model.named_parameters():
        expected = case.grads.get(name)
        if expected is None:
            assert parameter.grad is None or not parameter.grad.any(), name
        else:
            scale = expected.abs().max().item()
            torch.testing.assert_close(parameter.grad, expected, rtol=1e-5, atol=1e-6 * scale + 1e-9)


def test_options_give_the_same_model_again(case):
    model = case.model_class(**case.plan["options"])
    assert model.options == case.plan["options"]
    again = case.model_class(**model.options)
    assert again.plan == model.plan


def test_double_agrees_with_float(case):
    if case.plan["options"]["precision"] == "bf16":
        pytest.skip("rounds to bfloat16, which double does not")
    model = case.model_class(**case.plan["options"])
    model.load_state_dict(case.weights)
    exact = model.double()(*(x.double() if x.is_floating_point() else x for x in case.input))
    torch.testing.assert_close(exact.float(), case.output, rtol=1e-4, atol=1e-5)


def test_named_models_have_the_published_sizes():
    options = dict(image_size=84, channels=1, classes=10, device="meta")
    for method, expected in [("self_attention", 2_706_346), ("alpha_translution", 4_590_634),
                           ("translution", 116_164_138)]:
        model = translution.ViT.named("vit-a/12", method=method, **options)
        assert sum(p.numel() for p in model.parameters()) == expected
    assert model.plan["grid"] == [7, 7]
    assert model.options["image_size"] == [84, 84]


def test_every_name_of_the_program_is_known():
    for name in torch.ops.translution.model_names():
        points = name.startswith("cloud")
        family = translution.Cloud if points else translution.GPT if name.startswith("gpt") else translution.ViT
        more = dict(spacing=1.0) if points else {}
        family.named(name, method="self_attention", device="meta", **more)


def test_hybrid_layers_use_the_rest():
    model = translution.ViT.named("vit-a/12", image_size=24, hybrid_layers=2, rest="rotary",
                                  device="meta")
    methods = [block.attention.options["method"] for block in model.backbone.blocks]
    assert methods == ["translution"] * 2 + ["rotary"] * 4


def test_attention_maps_sum_to_one():
    model = translution.ViT(depth=2, dim=8, heads=2, dim_head=4, mlp_dim=8, image_size=(12, 8),
                            patch_size=4, channels=1, classes=3)
    maps = model.attention_maps(torch.randn(3, 1, 12, 8))
    assert [map.shape for map in maps] == [(3, 2, 7, 7)] * 2
    for map in maps:
        torch.testing.assert_close(map.sum(-1), torch.ones(3, 2, 7))


def test_gpt_gives_the_logits_of_some_rows_and_of_shorter_texts():
    model = translution.GPT(depth=2, dim=8, heads=2, dim_head=4, mlp_dim=8, length=9,
                            vocabulary=13).double()
    tokens = torch.randint(13, (2, 9))
    logits = model(tokens)
    last = model(tokens, torch.tensor([8]))
    torch.testing.assert_close(last, logits[:, 8:])
    torch.testing.assert_close(model(tokens[:, :4]), logits[:, :4])


def test_checkpoint_of_the_program_is_loaded(build, tmp_path):
    """A run of `translution train`, evaluated here and there."""
    run = tmp_path / "run"
    program = str(build / "translution")
    command = ("train --model vit-a/12 --method relative_bias --data digits:32 --canvas 36 "
               "--steps 2 --batch 4 --eval-limit 4 --threads 1 --out")
    subprocess.run([program, *command.split(), str(run)], check=True, capture_output=True)
    model = translution.load_model(run)
    assert isinstance(model, translution.ViT) and not model.training
    assert model.options["method"] == "relative_bias"
    assert model.plan["grid"] == [3, 3]
    folder = next(path.parent for path in run.rglob("manifest.json"))
    saved = translution.safetensors.load_file(folder / "model.safetensors").tensors
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter, saved[name]), name


@pytest.mark.parametrize("family, options", [
    (translution.ViT, dict(image_size=(8, 12), patch_size=4, channels=1, classes=3)),
    (translution.GPT, dict(length=6, vocabulary=9)),
])
def test_saved_model_is_loaded_whole(family, options, tmp_path):
    path = tmp_path / "model.safetensors"
    model = family(depth=1, dim=8, heads=2, dim_head=4, mlp_dim=8, **options).eval()
    translution.save_weights(model, path)
    again = translution.load_model(path)
    input = torch.randint(9, (2, 6)) if family is translution.GPT else torch.randn(2, 1, 8, 12)
    assert torch.equal(again(input), model(input))
    assert again.options == model.options and again.plan == model.plan


@pytest.mark.parametrize("init", ["scaled", "authors"])
def test_options_of_a_loaded_model_make_an_initialised_one(init, tmp_path):
    path = tmp_path / "model.safetensors"
    torch.manual_seed(0)
    model = make_small(init=init)
    translution.save_weights(model, path)
    loaded = translution.load_model(path)
    assert loaded.options["init"] == init
    torch.manual_seed(0)
    again = translution.ViT(**loaded.options)
    for name, parameter in model.named_parameters():
        assert torch.equal(dict(again.named_parameters())[name], parameter), name
    layer = loaded.backbone.blocks[0].attention
    assert layer.options["init"] == init
    layer.query.data.fill_(9)
    layer.reset_parameters()
    assert layer.query.abs().max() <= 8 ** -0.5


def make_small(**options):
    return translution.ViT(depth=1, dim=8, heads=2, dim_head=4, mlp_dim=8, image_size=8, patch_size=4,
                           channels=1, classes=3, **options)


@pytest.mark.parametrize("head", [torch.nn.Linear, translution.Linear])
def test_a_new_head_is_saved_with_its_classes(head, tmp_path):
    model = make_small().eval()
    model.head = head(8, 5)
    translution.save_weights(model, tmp_path / "five.safetensors")
    again = translution.load_model(tmp_path / "five.safetensors")
    assert again.options["classes"] == 5
    images = torch.randn(2, 1, 8, 8)
    torch.testing.assert_close(again(images), model(images))


def test_weights_that_the_options_do_not_describe_are_not_saved(tmp_path):
    path = tmp_path / "other.safetensors"
    bias, wider, more = make_small(), make_small(), make_small()
    bias.head = torch.nn.Linear(8, 5, bias=False)
    wider.backbone.blocks[0].mlp.up = torch.nn.Linear(8, 9)
    more.extra = torch.nn.Linear(1, 1)
    for model, message in [(bias, "has no tensor 'head.bias'"),
                           (wider, "'backbone.blocks.0.mlp.up.weight' is .*, expected"),
                           (more, "'extra.*' does not belong to")]:
        with pytest.raises(ValueError, match=f"save_weights: .*{message}.*; a changed model needs a file "
                                             "without options: translution.safetensors.save_file"):
            translution.save_weights(model, path)
        assert not path.exists()
    translution.safetensors.save_file(path, bias.state_dict())
    assert "head.weight" in translution.safetensors.load_file(path).tensors
