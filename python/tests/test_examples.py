"""The scripts of examples/python run, and learn."""

import re
import subprocess
import sys

import pytest


def run(source, name, *arguments):
    result = subprocess.run([sys.executable, source / "examples" / "python" / name, *arguments],
                            check=True, capture_output=True, text=True)
    return [float(number) for number in re.findall(r"steps: ([0-9.]+)", result.stdout)]


def test_swapped_attention_learns(source):
    plain, translution = run(source, "swap_attention.py")
    assert translution > 0.9


def test_video_learns(source):
    (accuracy,) = run(source, "video.py")
    assert accuracy > 0.9


@pytest.mark.parametrize("name", ["swap_attention.py", "video.py"])
def test_help(source, name):
    assert run(source, name, "--help") == []
