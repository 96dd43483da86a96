"""The package's types, by mypy, for the package and for a program that uses it."""

import os
import subprocess
import sys

import pytest

pytest.importorskip("mypy")

PROGRAM = """\
import torch
import translution

layer: translution.Attention = translution.Translution(8, heads=2, grid=(2, 2), device="cpu")
weights: torch.Tensor = layer.query
parameters: int = translution.ViT(image_size=8, patch_size=4, channels=1).cost().parameters
report: str = str(translution.swap(torch.nn.Linear(2, 2), layers=[0, "name"], grid=4))
translution.Attention(8, method="translation")
translution.Attention(8, head=2)
"""


def test_package_and_program(source, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    result = subprocess.run(
        [sys.executable, "-m", "mypy", "--config-file", source / "pyproject.toml", "--cache-dir",
         tmp_path / "cache", "--no-error-summary", source / "python" / "translution", program],
        env={**os.environ, "MYPYPATH": str(source / "python")}, capture_output=True, text=True)
    assert not result.stderr
    errors = [line for line in result.stdout.splitlines() if ": error:" in line]
    assert len(errors) == 2, result.stdout
    assert 'program.py:8: error: Argument "method" to "Attention" has incompatible type' in errors[0]
    assert 'program.py:9: error: Unexpected keyword argument "head" for "Attention"' in errors[1]
