"""Finds libtranslution.so and loads it into PyTorch, once, when the package is imported. Without it
the import succeeds with a warning, and the layers are those of reference.py."""

from __future__ import annotations

import mmap
import os
import re
import sys
import sysconfig
import warnings
from pathlib import Path
from typing import Any, Iterator, List, NamedTuple, Optional

_TORCH_IMPORTED_FIRST = "torch" in sys.modules

import torch  # noqa: E402

from . import _compat  # noqa: E402

NAME = "libtranslution.so"
VARIABLE = "TRANSLUTION_LIBRARY"
# Written into the library by translution/models/register.cpp.
_MARK = re.compile(rb"@\(#\)translution (\S+) for LibTorch ([0-9][0-9.]*)\0")


class LibraryError(ImportError):
    """libtranslution.so is missing, or does not fit this PyTorch."""


class Built(NamedTuple):
    """The version of a library, and the LibTorch version that it was built for."""

    version: str
    torch: str


def _system_folders() -> Iterator[Path]:
    for folder in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if folder:
            yield Path(folder)
    multiarch = sysconfig.get_config_var("MULTIARCH") or ""
    for root in (Path(sys.prefix), Path("/usr/local"), Path("/usr")):
        yield root / "lib" / multiarch
        yield root / "lib"
        yield root / "lib64"


def _candidates() -> Iterator[Path]:
    package = Path(__file__).resolve().parent
    yield package / NAME
    yield package.parents[1] / "build" / NAME  # used from the source tree with PYTHONPATH
    for folder in _system_folders():
        yield folder / NAME
        yield from sorted(folder.glob(NAME + ".*"), reverse=True)  # if the unversioned link is missing


def find_library() -> Path:
    """The library's file: TRANSLUTION_LIBRARY if set, else in the package's directory, in the build
    tree, or in the system's library directories. Raises LibraryError if there is none."""
    named = os.environ.get(VARIABLE)
    if named:
        path = Path(named)
        path = path / NAME if path.is_dir() else path
        if not path.is_file():
            raise LibraryError(f"translution: {VARIABLE} names {path}, which does not exist; "
                               f"set it to the path of {NAME}, or unset it")
        return path
    looked: List[Path] = []
    for path in _candidates():
        if path.is_file():
            return path
        looked.append(path.parent)
    folders = ", ".join(dict.fromkeys(str(folder) for folder in looked))
    raise LibraryError(f"translution: {NAME} was not found in {folders}; build it with `make "
                       f"build` or `pip install --no-build-isolation .`, or set {VARIABLE} to its "
                       "path")


def read_mark(path: Path) -> Built:
    """Reads the version mark from the library's file without loading it."""
    if path.stat().st_size == 0:
        raise LibraryError(f"translution: {path} is empty; build or install the library again")
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        mark = _MARK.search(data)
        found = mark and [part.decode() for part in mark.groups()]
    if not found:
        raise LibraryError(f"translution: {path} is not the library that this package needs, or an "
                           f"older one; build or install it again, or set {VARIABLE} to another")
    return Built(*found)


def _series(version: str) -> str:
    """The PyTorch series of a version: "1.13" for "1.13.0a0". A library serves one series."""
    found = re.match(r"\d+\.\d+", version)
    return found[0] if found else version


def _advice(built: Built) -> str:
    return (f"use PyTorch {_series(built.torch)}, or build the library against this one: in the "
            "source tree, pip install --no-build-isolation --no-deps --force-reinstall .")


def check_version(path: Path) -> Built:
    """Raises LibraryError if the library was built for another PyTorch series."""
    built = read_mark(path)
    if _series(built.torch) != _series(torch.__version__):
        raise LibraryError(f"translution: {path} was built for PyTorch {_series(built.torch)}, "
                           f"this is PyTorch {torch.__version__}; {_advice(built)}")
    return built


def load(path: Path) -> Built:
    """Loads the library and registers its ops as torch.ops.translution."""
    built = check_version(path)
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        reason = error.__cause__ or error  # PyTorch 2 wraps the loader's own message
        raise LibraryError(f"translution: {path} could not be loaded: {reason}; it was built for "
                           f"PyTorch {built.torch}, this is {torch.__version__}; {_advice(built)}"
                           ) from error
    if not hasattr(torch.ops.translution, "build_info"):
        raise LibraryError(f"translution: {path} was loaded, but registered its ops with another "
                           f"copy of LibTorch than {Path(torch.__file__).parent}; {_advice(built)}")
    return built


def limit_onednn(limit: str, torch_came_first: bool) -> None:
    """Prevents oneDNN from using AMX on machines that hide CPUID leaf 0x1D, where a bfloat16 product
    ends in an illegal instruction. `limit` is what the library did when it was loaded. A oneDNN
    inside PyTorch reads the variable at its first product."""
    if limit == "ours_only":
        os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
    if limit == "too_late" or (limit == "ours_only" and torch_came_first):
        warnings.warn("translution: CPUID shows AMX but hides leaf 0x1D, and products that PyTorch "
                      "made before this import let oneDNN use AMX: bfloat16 may end in an illegal "
                      "instruction; import translution first, or set "
                      "ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16", RuntimeWarning, stacklevel=2)


class MissingOps:
    """Stands for torch.ops.translution if the library is not loaded: every op raises."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise LibraryError(f"translution: '{name}' needs {NAME}, which is not loaded; "
                           f"{self._reason}")


def has_kernels(x: torch.Tensor) -> bool:
    """Whether the library has kernels for the device and type of x. On meta its ops know all shapes."""
    types = (torch.float32, torch.float64, torch.bfloat16)
    return x.device.type == "meta" or (x.device.type == "cpu" and x.dtype in types)


#: The file of the library and what it was built for; None if it is not loaded.
PATH: Optional[Path] = None
BUILT: Optional[Built] = None
try:
    PATH = find_library()
    BUILT = load(PATH)
except LibraryError as error:
    PATH = None
    setattr(torch.ops, "translution", MissingOps(str(error)))
    warnings.warn(f"{error}. Until then attention layers are plain PyTorch (translution.reference), "
                  "which is slower; models and training helpers are not available",
                  RuntimeWarning, stacklevel=2)
else:
    # A graph that was compiled with another build of the library may not fit this one.
    _compat.key_caches(f"translution-{BUILT.version}-{PATH.stat().st_mtime_ns:x}")
    limit_onednn(torch.ops.translution.onednn_limit(), _TORCH_IMPORTED_FIRST)
