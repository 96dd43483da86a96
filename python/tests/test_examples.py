"""The scripts of examples/python run, and learn."""

import re
import subprocess
import sys

import pytest
from hosts import import_host


def run(source, name, *arguments):
    hosts, script = source / "python" / "tests" / "hosts.py", source / "examples" / "python" / name
    result = subprocess.run([sys.executable, hosts, script, *arguments], check=True, capture_output=True,
                            text=True)
    return [float(number) for number in re.findall(r"steps: ([0-9.]+)", result.stdout)]


def test_finetuning_learns(source):
    import_host("timm")
    as_it_was, swapped = run(source, "finetune.py")
    assert swapped > 0.8


def test_video_learns(source):
    (accuracy,) = run(source, "video.py")
    assert accuracy > 0.9


@pytest.mark.parametrize("name", ["finetune.py", "video.py"])
def test_help(source, name):
    assert run(source, name, "--help") == []
