"""All code that depends on the version of PyTorch, 1.13 or 2.x."""

from __future__ import annotations

from typing import Any

import torch

#: torch.library.register_vmap is there, from PyTorch 2.5 on.
HAS_REGISTER_VMAP = hasattr(torch.library, "register_vmap")


def key_caches(tag: str) -> None:
    """Adds `tag` to the keys of torch.compile's caches on disk, if this PyTorch has such a setting."""
    config: Any = getattr(getattr(torch, "compiler", None), "config", None)
    if hasattr(config, "cache_key_tag"):
        config.cache_key_tag = "-".join(part for part in (config.cache_key_tag, tag) if part)


def is_compiling() -> bool:
    """True while torch.compile or torch.export traces."""
    return hasattr(torch, "compiler") and torch.compiler.is_compiling()
