"""The optimizer: the formula, its state, and what it refuses."""

import copy
import math

import pytest
import torch

import translution


def make():
    torch.manual_seed(0)
    return [torch.nn.Parameter(torch.randn(shape, dtype=torch.float64))
            for shape in [(3, 4), (5,), (2, 2, 2)]]


def set_gradients(parameters, seed):
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        parameter.grad = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)


def test_steps_of_torch_with_decay_on_matrices_only():
    ours, theirs = make(), make()
    optimizer = translution.AdamW(ours, lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)
    reference = torch.optim.AdamW(
        [dict(params=[p for p in theirs if p.dim() > 1]),
         dict(params=[p for p in theirs if p.dim() == 1], weight_decay=0.0)],
        lr=0.05, betas=(0.8, 0.95), eps=1e-6, weight_decay=0.1)
    for seed in range(5):
        set_gradients(ours, seed)
        set_gradients(theirs, seed)
        optimizer.step()
        reference.step()
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


def test_gradients_are_clipped_on_the_way():
    ours, theirs = make(), make()
    set_gradients(ours, 1)
    set_gradients(theirs, 1)
    optimizer = translution.AdamW(ours, clip=0.5)
    before = ours[0].grad.clone()
    optimizer.step()
    norm = torch.nn.utils.clip_grad_norm_(theirs, 0.5)
    torch.optim.AdamW(theirs, weight_decay=0.0).step()
    assert optimizer.norm == pytest.approx(norm.item())
    assert torch.equal(ours[0].grad, before)
    for a, b in zip(ours, theirs):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-8)


def test_nothing_changes_with_a_gradient_that_is_not_finite():
    parameters = make()
    optimizer = translution.AdamW(parameters)
    set_gradients(parameters, 0)
    parameters[1].grad[2] = math.nan
    before = copy.deepcopy(parameters)
    optimizer.step()
    assert math.isnan(optimizer.norm)
    assert all(torch.equal(a, b) for a, b in zip(parameters, before))


def test_state_goes_on_where_it_was():
    parameters = make()
    optimizer = translution.AdamW(parameters, lr=0.1)
    set_gradients(parameters, 0)
    optimizer.step()
    twin = copy.deepcopy(parameters)
    other = translution.AdamW(twin, lr=0.1)
    other.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    for pair in ((parameters, optimizer), (twin, other)):
        set_gradients(pair[0], 1)
        pair[1].step()
    assert all(torch.equal(a, b) for a, b in zip(parameters, twin))


def test_schedules_of_torch_set_its_rate():
    parameters = make()
    optimizer = translution.AdamW(parameters, lr=1.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)
    set_gradients(parameters, 0)
    optimizer.step()
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_refusals():
    with pytest.raises(ValueError, match="expected lr, eps"):
        translution.AdamW(make(), lr=-1)
    turned = torch.nn.Parameter(torch.randn(3, 4).T)
    turned.grad = torch.zeros(4, 3)
    with pytest.raises(RuntimeError, match="expected contiguous parameters, got one of shape"):
        translution.AdamW([turned]).step()
