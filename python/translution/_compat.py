"""All code that depends on the version of PyTorch, 1.13 or 2.x."""

from __future__ import annotations

import torch

#: torch.library.register_vmap is there, from PyTorch 2.5 on.
HAS_REGISTER_VMAP = hasattr(torch.library, "register_vmap")


def is_compiling() -> bool:
    """True while torch.compile or torch.export traces."""
    return hasattr(torch, "compiler") and torch.compiler.is_compiling()
