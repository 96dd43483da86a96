"""Process-wide options of the library."""

from __future__ import annotations

import torch

from . import _library  # noqa: F401  (loads the ops)


class Runtime:
    """Process-wide options; `translution.runtime` is the only object. Environment variables set the
    initial values. Setting an invalid value raises ValueError."""

    __slots__ = ()

    @property
    def threads(self) -> int:
        """Threads of the library's kernels; PyTorch's own are not changed. Setting 0 restores the
        automatic number: PyTorch's, or all cores available to the process if PyTorch started with
        one thread, its number was not changed, and OMP_NUM_THREADS is not set."""
        return torch.ops.translution.runtime_threads()

    @threads.setter
    def threads(self, count: int) -> None:
        torch.ops.translution.set_runtime_threads(count)

    @property
    def workspace(self) -> int:
        """Bytes of encodings that a layer may save for backward, if it is built without
        `workspace=`. Read when the layer is built. Initially TRANSLUTION_WORKSPACE or 512 MiB."""
        return torch.ops.translution.runtime_workspace()

    @workspace.setter
    def workspace(self, count: int) -> None:
        torch.ops.translution.set_runtime_workspace(count)

    @property
    def implementation(self) -> str:
        """"fused" (the CPU kernels) or "portable" (plain PyTorch calls, for comparison). Initially
        TRANSLUTION_IMPL or "fused"."""
        return torch.ops.translution.runtime_implementation()

    @implementation.setter
    def implementation(self, name: str) -> None:
        torch.ops.translution.set_runtime_implementation(name)

    @property
    def pool_limit(self) -> int:
        """Bytes of freed temporaries that may be held for the next call. Initially a quarter of the
        memory available to the process. A lower limit frees the excess."""
        return torch.ops.translution.runtime_pool_limit()

    @pool_limit.setter
    def pool_limit(self, count: int) -> None:
        torch.ops.translution.set_runtime_pool_limit(count)

    @property
    def pool_bytes(self) -> int:
        """Bytes that are held now and not in use."""
        return torch.ops.translution.runtime_pool_bytes()

    def release_pool(self) -> int:
        """Returns these bytes to the system, and their number to the caller."""
        return torch.ops.translution.release_runtime_pool()

    def __repr__(self) -> str:
        return (f"Runtime(threads={self.threads}, workspace={self.workspace}, "
                f"implementation={self.implementation!r}, pool_limit={self.pool_limit}, "
                f"pool_bytes={self.pool_bytes})")


runtime = Runtime()
