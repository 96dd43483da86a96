"""examples/python/distributed.py: the layers under DistributedDataParallel and fully_shard."""

import re
import subprocess
import sys

import pytest
import torch
import torch.distributed

if not (torch.distributed.is_available() and torch.distributed.is_gloo_available()):
    pytest.skip("this PyTorch has no torch.distributed with Gloo", allow_module_level=True)


def train(source, *arguments):
    script = source / "examples" / "python" / "distributed.py"
    result = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True,
                            timeout=300)
    assert result.returncode == 0, result.stderr
    return float(re.search(r"2 processes, loss after \d+ steps: ([0-9.]+)", result.stdout)[1])


def test_two_processes_learn(source):
    assert train(source) < 0.5


def test_two_processes_learn_with_sharded_parameters(source):
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < (2, 6):
        pytest.skip(f"fully_shard needs PyTorch 2.6 or newer, this is {torch.__version__}")
    assert train(source, "--fsdp") < 0.5
