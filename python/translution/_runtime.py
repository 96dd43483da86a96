"""What all layers of the process share."""

from __future__ import annotations

import torch

from . import _library  # noqa: F401  (loads the ops)


class Runtime:
    """What all layers of the process share; `translution.runtime` is the one object. Environment
    variables say what it starts with. Setting a value that makes no sense raises ValueError."""

    __slots__ = ()

    @property
    def threads(self) -> int:
        """Threads of the library's kernels; PyTorch's own are not touched. Setting 0 makes it
        automatic again, as it starts: PyTorch's number, or every core that the process may use
        where PyTorch started with one thread, nobody has changed that, and OMP_NUM_THREADS is not
        set."""
        return torch.ops.translution.runtime_threads()

    @threads.setter
    def threads(self, count: int) -> None:
        torch.ops.translution.set_runtime_threads(count)

    @property
    def workspace(self) -> int:
        """Bytes of encodings that a layer may keep for backward, where it is made without
        `workspace=`. Read when the layer is made. 512 MiB, or TRANSLUTION_WORKSPACE."""
        return torch.ops.translution.runtime_workspace()

    @workspace.setter
    def workspace(self, count: int) -> None:
        torch.ops.translution.set_runtime_workspace(count)

    @property
    def implementation(self) -> str:
        """"fused", the CPU kernels, or "portable", plain PyTorch calls, to compare with. "fused",
        or TRANSLUTION_IMPL."""
        return torch.ops.translution.runtime_implementation()

    @implementation.setter
    def implementation(self, name: str) -> None:
        torch.ops.translution.set_runtime_implementation(name)

    @property
    def pool_limit(self) -> int:
        """Bytes of freed temporaries that may be kept for the next call; a quarter of the memory
        that the process may take. A lower limit frees what exceeds it."""
        return torch.ops.translution.runtime_pool_limit()

    @pool_limit.setter
    def pool_limit(self, count: int) -> None:
        torch.ops.translution.set_runtime_pool_limit(count)

    @property
    def pool_bytes(self) -> int:
        """Bytes that are kept now, and not in use."""
        return torch.ops.translution.runtime_pool_bytes()

    def release_pool(self) -> int:
        """Gives these back to the system; returns how many they were."""
        return torch.ops.translution.release_runtime_pool()

    def __repr__(self) -> str:
        return (f"Runtime(threads={self.threads}, workspace={self.workspace}, "
                f"implementation={self.implementation!r}, pool_limit={self.pool_limit}, "
                f"pool_bytes={self.pool_bytes})")


runtime = Runtime()
