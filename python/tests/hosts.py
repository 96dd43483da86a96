"""timm and transformers for the tests, where they are installed.

    python hosts.py SCRIPT [ARGUMENTS]    runs a script that imports them

Both import torchvision, and torchvision needs two operators at its import. Its build for CUDA does not load
them beside a torch for CPUs. Nothing here calls them, so empty ones do.
"""

import runpy
import sys

import torch

_OPERATORS = []  # unregistered when freed


def mend_torchvision():
    try:
        import torchvision  # noqa: F401
    except ImportError:
        pass
    except RuntimeError as error:
        if "operator torchvision::" not in str(error):
            raise
        _OPERATORS.append(torch.library.Library("torchvision", "DEF"))
        for name in ("nms", "qnms"):
            _OPERATORS[0].define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def import_host(name):
    """The package, or skips the test."""
    import pytest

    mend_torchvision()
    return pytest.importorskip(name)


if __name__ == "__main__":
    mend_torchvision()
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")
