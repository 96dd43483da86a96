"""What the process shares: the library's own settings, and nothing of PyTorch's."""

import os

import pytest
import torch

import translution
from translution import runtime


@pytest.fixture(autouse=True)
def restored():
    before = (runtime.workspace, runtime.implementation, runtime.pool_limit)
    yield
    runtime.threads = 0
    runtime.workspace, runtime.implementation, runtime.pool_limit = before


USE = """
import torch
before, state = torch.get_num_threads(), torch.get_rng_state()
import translution
assert torch.equal(torch.get_rng_state(), state), "the import draws"
layer = translution.Translution(dim=64, heads=2, dim_head=32, grid=(3, 4))
x = torch.randn(2, 12, 64)
state = torch.get_rng_state()
layer(x).sum().backward()
translution.AdamW(layer.parameters()).step()
assert torch.equal(torch.get_rng_state(), state), "a step without dropout draws"
assert torch.get_num_threads() == before
print(translution.runtime.threads)
"""


@pytest.mark.parametrize("threads", [None, "1", "2"])
def test_import_and_use_leave_pytorch_as_it_was(run_python, threads):
    said = int(run_python(USE, OMP_NUM_THREADS=threads).stdout)
    if threads is not None:
        assert said == int(threads)


def test_all_cores_where_pytorch_starts_with_one(run_python):
    code = ("import torch; at_start = torch.get_num_threads(); import translution;"
            "print(at_start, translution.runtime.threads);"
            "torch.set_num_threads(3); print(translution.runtime.threads)")
    first, then = run_python(code, OMP_NUM_THREADS=None).stdout.splitlines()
    at_start, ours = map(int, first.split())
    assert ours == (len(os.sched_getaffinity(0)) if at_start == 1 else at_start)
    assert then == "3"


def test_a_forked_worker_does_as_pytorch_does(run_python):
    """As a DataLoader starts its workers: OpenMP's threads are gone there."""
    code = """
import os, torch, translution
layer = translution.Translution(dim=64, heads=2, dim_head=32, grid=(7, 7))
x = torch.randn(8, 49, 64)
expected = layer(x)
child = os.fork()
if child == 0:
    torch.set_num_threads(1)
    same = translution.runtime.threads == 1 and torch.equal(layer(x), expected)
    os._exit(0 if same else 1)
print(os.waitpid(child, 0)[1])
"""
    assert run_python(code, OMP_NUM_THREADS=None).stdout.strip() == "0"


def test_threads_are_the_librarys_own():
    torchs = torch.get_num_threads()
    layer = translution.Translution(dim=12, heads=2, dim_head=6, grid=(3, 4), cls=True)
    x, results = torch.randn(4, 13, 12), []
    for count in (1, 2, 3):
        runtime.threads = count
        assert runtime.threads == count
        results.append(layer(x))
    assert all(torch.equal(results[0], other) for other in results[1:])
    assert torch.get_num_threads() == torchs
    runtime.threads = 0
    assert runtime.threads == torchs  # not all cores, because conftest.py sets OMP_NUM_THREADS


def test_workspace_is_that_of_layers_made_from_now_on():
    make = lambda **options: translution.Translution(dim=8, grid=(2, 2), **options)
    before = make()
    runtime.workspace = 12345
    assert runtime.workspace == 12345
    assert before.options["workspace"] != 12345
    assert make().options["workspace"] == 12345
    assert make(workspace=7).options["workspace"] == 7


def test_implementation():
    layer = translution.Attention(dim=12, heads=2, dim_head=6, grid=(3, 4)).double()
    x = torch.randn(2, 12, 12, dtype=torch.float64)
    fused = layer(x)
    runtime.implementation = "portable"
    assert runtime.implementation == "portable"
    torch.testing.assert_close(layer(x), fused)


def test_pool():
    x = torch.randn(64, 49, 192)
    norm = translution.LayerNorm(192)
    with torch.no_grad():
        norm(x)  # freed at once
    assert 0 < runtime.pool_bytes <= runtime.pool_limit
    assert runtime.release_pool() > 0
    assert runtime.pool_bytes == 0
    runtime.pool_limit = 0
    with torch.no_grad():
        norm(x)
    assert runtime.pool_bytes == 0


@pytest.mark.parametrize("name, value, message", [
    ("threads", -1, "runtime: expected 1 to 1024 threads, or 0 for automatic, got -1"),
    ("threads", 1025, "runtime: expected 1 to 1024 threads, or 0 for automatic, got 1025"),
    ("threads", 2**40, f"runtime: expected 1 to 1024 threads, or 0 for automatic, got {2**40}"),
    ("workspace", -1, "runtime: expected a workspace of 0 or more bytes, got -1"),
    ("pool_limit", -5, "runtime: expected a pool limit of 0 or more bytes, got -5"),
    ("implementation", "fusd", "unknown implementation 'fusd'; did you mean 'fused'?"),
])
def test_values_that_make_no_sense(name, value, message):
    before = getattr(runtime, name)
    with pytest.raises(ValueError) as refused:
        setattr(runtime, name, value)
    assert str(refused.value) == message
    assert getattr(runtime, name) == before


@pytest.mark.parametrize("variable, value, message", [
    ("TRANSLUTION_IMPL", "fast", "TRANSLUTION_IMPL: expected fused or portable, got 'fast'"),
    ("TRANSLUTION_WORKSPACE", "1T",
     "TRANSLUTION_WORKSPACE: expected bytes such as 0, 65536, 512M or 4G, got '1T'"),
])
def test_a_bad_variable_is_named_at_first_use(run_python, variable, value, message):
    result = run_python("import translution; translution.runtime.workspace", check=False,
                        **{variable: value})
    assert result.returncode == 1
    assert result.stderr.strip().splitlines()[-1] == f"ValueError: {message}"


def test_names_that_do_not_exist():
    with pytest.raises(AttributeError):
        runtime.thread = 2
    with pytest.raises(AttributeError):
        runtime.pool_bytes = 2
