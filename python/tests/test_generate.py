"""GPT.generate beside a plain loop and beside the program."""

import subprocess

import pytest
import torch

import translution

METHODS = torch.ops.translution.method_names()


def make(method="translution", **options):
    torch.manual_seed(3)
    return translution.GPT(**{**dict(depth=2, dim=12, heads=2, dim_head=4, mlp_dim=8, length=9,
                                     vocabulary=11, method=method, dropout=0.2), **options})


def greedy(model, tokens, count):
    """The text token by token; when the context is full, its older half is dropped."""
    model, length = model.eval(), model.options["length"]
    text, context = list(tokens), []

    def append(token):
        if len(context) == length:
            del context[:(length + 1) // 2]
        context.append(token)

    for token in tokens:
        append(token)
    with torch.no_grad():
        for _ in range(count):
            token = model(torch.tensor([context]))[0, -1].argmax().item()
            text.append(token)
            append(token)
    return text


@pytest.mark.parametrize("method", METHODS)
def test_temperature_0_takes_the_most_likely(method):
    model = make(method)
    for tokens, count in [([3], 8), ([1, 2, 3], 15), (list(range(11)) * 2, 4)]:
        assert model.training
        found = model.generate(tokens, count, temperature=0)
        assert found.dtype == torch.long and model.training
        assert found.tolist() == greedy(make(method), tokens, count)


@pytest.mark.parametrize("options", [dict(precision="bf16"), dict(dtype=torch.float64),
                                     dict(extra_norms=False, qkv_bias=True, method="rotary")])
def test_other_types_and_layouts(options):
    model = make(**options)
    assert model.generate([1, 2], 6, temperature=0).tolist() == greedy(make(**options), [1, 2], 6)


def test_weights_are_shared_not_copied_or_changed():
    model = make()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    first = model.generate([1], 7, temperature=0)
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())
    with torch.no_grad():
        model.head.weight.neg_()
    assert not torch.equal(model.generate([1], 7, temperature=0), first)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_without_gradients(mode):
    expected = make().generate([1, 2], 7)
    outside = make()
    with mode():
        assert torch.equal(outside.generate([1, 2], 7), expected)
        assert torch.equal(make().generate([1, 2], 7), expected)


def test_rows_of_a_batch_have_seeds_of_their_own():
    model, prompt = make(), [4, 2]
    batch = model.generate(torch.tensor([prompt] * 3), 7, seed=5)
    assert batch.shape == (3, 9)
    for row, text in enumerate(batch):
        assert torch.equal(text, model.generate(prompt, 7, seed=5 + row))
    assert not torch.equal(batch[0], batch[1])
    assert model.generate(torch.tensor([[1], [2]]), 0).tolist() == [[1], [2]]


def test_sampling_follows_the_probabilities():
    model = make(vocabulary=4, length=2, depth=1).eval()
    probabilities = model(torch.tensor([[2]]))[0, -1].softmax(0)
    prompts = torch.full((4000, 1), 2)
    drawn = model.generate(prompts, 1)[:, 1]
    found = torch.bincount(drawn, minlength=4) / 4000
    torch.testing.assert_close(found, probabilities, rtol=0, atol=0.035)
    best = set(probabilities.topk(2)[1].tolist())
    assert set(model.generate(prompts, 1, top_k=2)[:, 1].tolist()) == best
    assert set(model.generate(prompts, 1, top_p=1e-6)[:, 1].tolist()) == {int(probabilities.argmax())}


def test_texts_of_the_program(build, tmp_path):
    """The same run, prompt and seed give the same text here and there."""
    run, program = tmp_path / "run", str(build / "translution")
    command = ("train --model gpt-tiny-24 --method translution --data text --steps 2 --batch 2 "
               "--eval-limit 1 --threads 1 --out")
    subprocess.run([program, *command.split(), str(run)], check=True, capture_output=True)
    command = "generate --prompt ROMEO: --tokens 40 --temperature 0.9 --top-k 20 --top-p 0.9 --seed 7"
    text = subprocess.run([program, *command.split(), str(run)], check=True,
                          capture_output=True).stdout
    model = translution.load_model(run)
    tokens = model.generate(list(b"ROMEO:"), 40, temperature=0.9, top_k=20, top_p=0.9, seed=7)
    assert bytes(tokens.tolist()) == text[:-1]


def test_refusals():
    model = make()
    calls = [
        (lambda: model.generate([], 3), r"expected int64 tokens \[B, n\] with n of 1 or more"),
        (lambda: model.generate([0.5], 3), r"expected int64 tokens \[B, n\]"),
        (lambda: model.generate([11], 3), "expected tokens from 0 to 10, got 11"),
        (lambda: model.generate([1], -1), "expected a count of 0 or more new tokens, got -1"),
        (lambda: model.generate([1], 1, temperature=-1), "expected a temperature of 0 or more"),
        (lambda: model.generate([1], 1, top_k=-1), "expected top_k of 0"),
        (lambda: model.generate([1], 1, top_p=0), "expected top_p above 0"),
        (lambda: model.generate([1], 1, seed=-1), "expected a seed of 0 or more, got -1"),
    ]
    for call, message in calls:
        with pytest.raises((ValueError, RuntimeError), match=message):
            call()
    with pytest.raises(RuntimeError, match="is a meta tensor without data; load weights first"):
        make(device="meta").generate(torch.tensor([1]), 1)
    model.head = torch.nn.Linear(12, 5)
    with pytest.raises((ValueError, RuntimeError), match="generate: tensor 'head.weight' is"):
        model.generate([1], 1)
