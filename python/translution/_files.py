"""Atomic writes of files, by the rules of io/atomic_file.h."""

from __future__ import annotations

import itertools
import os
import stat
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Iterator, Union

_numbers = itertools.count()


def path_text(path: Union[str, Path]) -> str:
    """The path as text. Raises ValueError for an empty path, usually an unset variable."""
    text = os.fspath(path)
    if not text:
        raise ValueError("expected the path of a file, got ''")
    return text


@contextmanager
def written(path: Union[str, Path]) -> Iterator[BinaryIO]:
    """A file to write to, which replaces `path` atomically if no exception was raised. Symbolic links
    are followed, and the mode of a replaced file is preserved. A device, pipe or socket is never
    replaced: the bytes are written to it directly."""
    text = path_text(path)
    there = os.stat(text) if os.path.exists(text) else None
    if there is not None and not stat.S_ISREG(there.st_mode):
        with open(text, "wb") as file:  # IsADirectoryError for a directory
            yield file
        return
    target = os.path.realpath(text)
    part = os.path.join(os.path.dirname(target), f".tmp-{os.getpid()}-py{next(_numbers)}")
    try:
        with open(part, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            if there is not None:
                with suppress(OSError):  # not every file system has modes
                    os.chmod(part, stat.S_IMODE(there.st_mode))
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.unlink(part)
