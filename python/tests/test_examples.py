"""The scripts of examples/python run, and learn."""

import re
import subprocess
import sys

import pytest
from hosts import import_host


def run(source, name, *arguments, pattern=r"steps: ([0-9.]+)"):
    """The numbers that the script prints."""
    hosts, script = source / "python" / "tests" / "hosts.py", source / "examples" / "python" / name
    result = subprocess.run([sys.executable, hosts, script, *arguments], check=True, capture_output=True,
                            text=True)
    return [float(number) for number in re.findall(pattern, result.stdout)]


def test_finetuning_learns(source):
    import_host("timm")
    as_it_was, swapped = run(source, "finetune.py")
    assert swapped > 0.8


def test_video_learns_and_draws_its_offsets(source, tmp_path):
    picture = tmp_path / "offsets.svg"
    (moves,) = run(source, "video.py", "--steps", "100", "--out", picture, pattern=r"([0-9.]+) of the moves")
    assert moves > 0.8
    assert picture.read_text().count("<rect") == 1 + 3 * 7 * 7 * 7


@pytest.mark.parametrize("name", ["finetune.py", "video.py"])
def test_help(source, name):
    assert run(source, name, "--help") == []
