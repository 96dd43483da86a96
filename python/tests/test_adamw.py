"""The optimizer: torch.optim.AdamW's steps, names and states, and what is ours."""

import copy
import inspect
import math
import pickle
import warnings

import pytest
import torch

import translution


def make(dtype=torch.float64):
    torch.manual_seed(0)
    turned = torch.randn(4, 3, dtype=dtype).T  # not contiguous
    return [torch.nn.Parameter(value) for value in [
        torch.randn(3, 4, dtype=dtype), torch.randn(5, dtype=dtype), torch.randn((), dtype=dtype),
        torch.randn(2, 2, 2, dtype=dtype), turned]]


def set_gradients(parameters, seed):
    """The last but one has no gradient in the first step, so that its own steps are behind."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in parameters:
        gradient = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.grad = gradient.to(parameter.dtype)
    if seed == 0:
        parameters[-2].grad = None


def train(optimizer, parameters, seeds):
    for seed in seeds:
        set_gradients(parameters, seed)
        optimizer.step()


def assert_same(ours, theirs):
    for a, b in zip(ours, theirs):
        exact = a.dtype == torch.float64
        torch.testing.assert_close(a, b, rtol=1e-12 if exact else 1e-6, atol=1e-14 if exact else 2e-7)


def in_groups(parameters):
    return [dict(params=parameters[:2], lr=0.05, weight_decay=0.3),
            dict(params=parameters[2:4], betas=(0.5, 0.7), eps=1e-3, maximize=True),
            dict(params=parameters[4:])]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", [dict(), dict(lr=0.1, betas=(0.8, 0.95), eps=1e-6),
                                     dict(weight_decay=0.0, maximize=True), "groups"])
def test_steps_of_torch(dtype, options):
    results = []
    for kind in (translution.AdamW, torch.optim.AdamW):
        parameters = make(dtype)
        optimizer = (kind(in_groups(parameters), lr=0.01) if options == "groups"
                     else kind(parameters, **options))
        train(optimizer, parameters, range(6))
        results.append(parameters)
    assert_same(*results)


def test_arguments_of_torch_have_its_names_and_defaults():
    ours = inspect.signature(translution.AdamW).parameters
    theirs = inspect.signature(torch.optim.AdamW).parameters
    for name, parameter in theirs.items():
        assert ours[name].default == parameter.default, name
        assert ours[name].kind == parameter.kind, name
    assert [n for n in ours if n not in theirs and n not in ("differentiable", "fused")] == [
        "decay", "clip", "skip_nonfinite"]
    assert isinstance(translution.AdamW(make()), torch.optim.AdamW)


@pytest.mark.parametrize("first, second", [(translution.AdamW, torch.optim.AdamW),
                                           (torch.optim.AdamW, translution.AdamW),
                                           (translution.AdamW, translution.AdamW)])
def test_states_load_both_ways(first, second):
    """Three steps with one and three with the other are six steps of torch's."""
    parameters, expected = make(), make()
    train(torch.optim.AdamW(in_groups(expected), lr=0.01), expected, range(6))
    before = first(in_groups(parameters), lr=0.01)
    train(before, parameters, range(3))
    after = second(in_groups(parameters), lr=1.0)
    after.load_state_dict(pickle.loads(pickle.dumps(before.state_dict())))
    train(after, parameters, range(3, 6))
    assert_same(parameters, expected)


def test_state_has_torchs_names_and_a_tensor_of_steps():
    parameters = make()
    optimizer, reference = translution.AdamW(parameters), torch.optim.AdamW(make())
    train(optimizer, parameters, range(2))
    train(reference, reference.param_groups[0]["params"], range(2))
    ours, theirs = optimizer.state_dict(), reference.state_dict()
    assert set(ours["param_groups"][0]) == {*theirs["param_groups"][0], "decay"}
    for index, state in theirs["state"].items():
        assert list(ours["state"][index]) == list(state)
        assert ours["state"][index]["step"].dtype == state["step"].dtype
        assert torch.equal(ours["state"][index]["step"], state["step"])
    assert ours["state"][3]["step"] == 1 and ours["state"][4]["step"] == 2


def test_states_of_earlier_versions_load():
    """They had whole numbers as steps and fewer entries in a group."""
    parameters, twin = make(), make()
    optimizer = translution.AdamW(parameters)
    train(optimizer, parameters, range(2))
    train(translution.AdamW(twin), twin, range(2))
    state = copy.deepcopy(optimizer.state_dict())
    for entry in state["state"].values():
        entry["step"] = int(entry["step"])
    state["param_groups"] = [{name: group[name] for name in
                              ("lr", "betas", "eps", "weight_decay", "params")}
                             for group in state["param_groups"]]
    again = translution.AdamW(twin)
    again.load_state_dict(state)
    train(again, twin, [2])
    train(optimizer, parameters, [2])
    assert all(torch.equal(a, b) for a, b in zip(parameters, twin))


@pytest.mark.parametrize("given", [dict(amsgrad=True), dict(foreach=True), dict(capturable=True),
                                   dict(differentiable=True), dict(fused=True)])
def test_what_is_not_available_is_refused(given):
    name = next(iter(given))
    message = f"AdamW: expected {name}=(False|None), got True; it is not available here"
    with pytest.raises(ValueError, match=message):
        translution.AdamW(make(), **given)
    with pytest.raises(ValueError, match=message):
        translution.AdamW([dict(params=make(), **given)])
    with pytest.raises(ValueError, match=message):
        translution.AdamW(make()).add_param_group(dict(params=make(), **given))


def test_a_state_with_amsgrad_is_refused():
    parameters = make()
    with pytest.raises(ValueError, match="saved with amsgrad=True, which is not available here"):
        translution.AdamW(parameters).load_state_dict(
            torch.optim.AdamW(parameters, amsgrad=True).state_dict())


def test_decay_of_matrices_only():
    ours, theirs = make(), make()
    optimizer = translution.AdamW(ours, lr=0.05, weight_decay=0.1, decay="matrices")
    reference = torch.optim.AdamW(
        [dict(params=[p for p in theirs if p.dim() > 1]),
         dict(params=[p for p in theirs if p.dim() < 2], weight_decay=0.0)],
        lr=0.05, weight_decay=0.1)
    train(optimizer, ours, range(1, 5))
    train(reference, theirs, range(1, 5))
    assert_same(ours, theirs)
    vector = torch.nn.Parameter(torch.ones(3))
    vector.grad = torch.zeros(3)
    optimizer.add_param_group(dict(params=[vector], decay="all"))
    optimizer.step()
    assert torch.allclose(vector, torch.full((3,), 1 - 0.05 * 0.1))
    with pytest.raises(ValueError, match="expected decay 'all' or 'matrices', got 'some'"):
        translution.AdamW(make(), decay="some")


@pytest.mark.parametrize("clip", [0.5, 1e3])
def test_gradients_are_clipped_on_the_way(clip):
    ours, theirs = make(), make()
    optimizer, reference = translution.AdamW(ours, clip=clip), torch.optim.AdamW(theirs)
    for seed in range(3):
        set_gradients(ours, seed)
        set_gradients(theirs, seed)
        before = ours[0].grad.clone()
        optimizer.step()
        norm = torch.nn.utils.clip_grad_norm_(theirs, clip)
        reference.step()
        assert optimizer.norm == pytest.approx(norm.item())
        assert torch.equal(ours[0].grad, before)
    for a, b in zip(ours, theirs):  # torch adds 1e-6 to the norm
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-7)


def test_nothing_is_skipped_unless_asked():
    ours, theirs = make(), make()
    for kind, parameters in [(translution.AdamW, ours), (torch.optim.AdamW, theirs)]:
        set_gradients(parameters, 1)
        parameters[1].grad[2] = math.nan
        optimizer = kind(parameters)
        optimizer.step()
    assert all(torch.equal(a.isnan(), b.isnan()) for a, b in zip(ours, theirs))
    assert ours[1].isnan().sum() == 1


@pytest.mark.parametrize("bad, shown", [(math.nan, "nan"), (math.inf, "inf")])
@pytest.mark.parametrize("clip", [None, 1.0])
def test_skipped_steps_change_nothing_and_are_told(bad, shown, clip):
    parameters = make()
    optimizer = translution.AdamW(parameters, clip=clip, skip_nonfinite=True)
    train(optimizer, parameters, [1])
    before, state = copy.deepcopy(parameters), copy.deepcopy(optimizer.state_dict())
    set_gradients(parameters, 2)
    parameters[1].grad[2] = bad
    with pytest.warns(RuntimeWarning, match=f"the norm of the gradients is {shown}; such steps") as told:
        optimizer.step()
        optimizer.step()
    assert len(told) == 1 and told[0].filename == __file__
    assert optimizer.skipped == 2 and not math.isfinite(optimizer.norm)
    assert all(torch.equal(a, b) for a, b in zip(parameters, before))
    assert optimizer.state_dict()["state"][0]["step"] == state["state"][0]["step"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(optimizer, parameters, [3])
    assert optimizer.skipped == 2 and not torch.equal(parameters[0], before[0])


def test_closures_schedules_and_zero_grad():
    x = torch.nn.Parameter(torch.tensor([3.0]))
    optimizer = translution.AdamW([x], lr=0.5, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    def closure():
        optimizer.zero_grad()
        loss = x.square().sum()
        loss.backward()
        return loss

    assert optimizer.step(closure) == 9 and x.item() == pytest.approx(2.5, rel=1e-7)
    schedule.step()
    assert optimizer.param_groups[0]["lr"] == 0.25
    optimizer.step(closure)
    assert x.item() == pytest.approx(2.25, abs=5e-3)
    optimizer.zero_grad(set_to_none=True)
    assert x.grad is None
    optimizer.step()


def test_copies_keep_the_options():
    parameters = make()
    optimizer = translution.AdamW(parameters, clip=0.25, skip_nonfinite=True, decay="matrices")
    train(optimizer, parameters, [0])
    for again in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        assert (again.clip, again.skip_nonfinite, again.skipped) == (0.25, True, 0)
        assert again.norm == optimizer.norm
        own = again.param_groups[0]["params"]
        twin = copy.deepcopy(parameters)
        train(again, own, [1])
        other = copy.deepcopy(optimizer)
        train(other, other.param_groups[0]["params"], [1])
        assert all(torch.equal(a, b) for a, b in zip(own, other.param_groups[0]["params"]))
        assert all(torch.equal(a, b) for a, b in zip(parameters, twin))


def test_memory_layout_does_not_matter():
    """A turned matrix is updated as the straight one."""
    straight = torch.nn.Parameter(torch.randn(4, 3, generator=torch.Generator().manual_seed(1)))
    turned = torch.nn.Parameter(straight.detach().clone().T)
    gradient = torch.randn(4, 3, generator=torch.Generator().manual_seed(2))
    for parameter, own in [(straight, gradient), (turned, gradient.T)]:
        parameter.grad = own
        optimizer = translution.AdamW([parameter], lr=0.1)
        optimizer.step()
        optimizer.step()
    torch.testing.assert_close(turned.T, straight)


def test_refusals():
    with pytest.raises(ValueError, match="Invalid learning rate"):
        translution.AdamW(make(), lr=-1)
    with pytest.raises(ValueError, match="expected a clip of 0 or more, got nan"):
        translution.AdamW(make(), clip=math.nan)
    embedding = torch.nn.Embedding(3, 2, sparse=True)
    embedding(torch.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        translution.AdamW(embedding.parameters()).step()
    number = torch.nn.Parameter(torch.ones(2, dtype=torch.complex64))
    number.grad = torch.ones_like(number)
    with pytest.raises(RuntimeError, match="expected floating-point parameters, got ComplexFloat"):
        translution.AdamW([number]).step()
