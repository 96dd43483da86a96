"""Tensors in safetensors files, as the library reads and writes them: nothing in a file is trusted
or executed, and the same tensors give the same bytes."""

from __future__ import annotations

import io
import json
import os
import struct
from pathlib import Path
from typing import Any, BinaryIO, Dict, List, Mapping, NamedTuple, Optional, Tuple, Union

import torch
from torch import Tensor

from ._files import path_text, written

_DTYPES = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool,
}
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_MOST_HEADER = 100_000_000
_METADATA = "__metadata__"


class File(NamedTuple):
    tensors: Dict[str, Tensor]
    metadata: Dict[str, str]


class _Entry(NamedTuple):
    name: str
    dtype: torch.dtype
    shape: List[int]
    begin: int
    end: int


def _ensure(ok: bool, message: str) -> None:
    if not ok:
        raise ValueError(message)


def _size(dtype: torch.dtype) -> int:
    return torch.empty(0, dtype=dtype).element_size()


def _unique(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    keys = dict(pairs)
    _ensure(len(keys) == len(pairs), "the header has a name twice")
    return keys


def _counts(fields: Mapping[str, Any], key: str) -> List[int]:
    counts: Any = fields.get(key)
    _ensure(isinstance(counts, list) and len(counts) <= 64
            and all(type(count) is int and 0 <= count < 2**63 for count in counts),
            f"{key}: expected whole numbers from 0, got {counts!r:.80}")
    return counts


def _read_entry(name: str, fields: Any) -> _Entry:
    _ensure(isinstance(fields, dict) and fields.keys() == {"dtype", "shape", "data_offsets"},
            "expected dtype, shape and data_offsets")
    name_of_type = fields["dtype"]
    _ensure(isinstance(name_of_type, str) and name_of_type in _DTYPES,
            f"dtype {name_of_type!r:.20} is none that we read")
    dtype, shape = _DTYPES[name_of_type], _counts(fields, "shape")
    offsets = _counts(fields, "data_offsets")
    _ensure(len(offsets) == 2, "data_offsets: expected a begin and an end")
    expected = _size(dtype)
    for side in shape:
        expected *= side
    _ensure(expected == offsets[1] - offsets[0], f"shape {shape} takes {expected} bytes, data_offsets "
            f"give {offsets[1] - offsets[0]}")
    return _Entry(name, dtype, shape, *offsets)


def _read_metadata(fields: Any) -> Dict[str, str]:
    _ensure(isinstance(fields, dict) and all(isinstance(text, str) for text in fields.values()),
            f"{_METADATA}: expected texts")
    return fields


def _read_header(file: BinaryIO, size: int) -> Tuple[List[_Entry], Dict[str, str]]:
    start = file.read(8)
    _ensure(len(start) == 8, f"has {len(start)} bytes, a safetensors file has at least 8")
    length = struct.unpack("<Q", start)[0]
    _ensure(length <= min(_MOST_HEADER, size - 8), f"the header has {length} bytes, the file "
            f"{size}; this is no whole safetensors file")
    text = file.read(length)
    try:
        json_text = text.decode("utf-8")
        header = json.loads(json_text, object_pairs_hook=_unique)
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise ValueError(f"the header is no JSON: {error}") from None
    _ensure(isinstance(header, dict) and json_text[:1] == "{", "the header does not begin with {")
    metadata = _read_metadata(header.pop(_METADATA, {}))
    entries: List[_Entry] = []
    for name, fields in header.items():
        try:
            entries.append(_read_entry(name, fields))
        except ValueError as error:
            raise ValueError(f"tensor '{name}': {error}") from None
    entries.sort(key=lambda entry: (entry.begin, entry.end))
    end = 0
    for entry in entries:
        _ensure(entry.begin == end, f"tensor '{entry.name}' begins at byte {entry.begin}, the one "
                f"before it ends at {end}")
        end = entry.end
    _ensure(end == size - 8 - length, f"the tensors end at byte {end}, the file has "
            f"{size - 8 - length}")
    return entries, metadata


def _read_tensor(file: io.BufferedReader, entry: _Entry) -> Tensor:
    values = torch.empty(entry.end - entry.begin, dtype=torch.uint8)
    buffer: Any = values.numpy()
    _ensure(file.readinto(buffer) == len(values), "the file became shorter")
    if entry.dtype is torch.bool:
        _ensure(bool((values <= 1).all()), f"tensor '{entry.name}' is BOOL and holds other values")
    return values.view(entry.dtype).reshape(entry.shape)


def load_file(path: Union[str, Path]) -> File:
    """All tensors of the file, on the CPU, and its metadata. A file that breaks a rule of the
    format is refused: ValueError with one line."""
    with open(path_text(path), "rb") as file:
        try:
            entries, metadata = _read_header(file, os.fstat(file.fileno()).st_size)
            return File({entry.name: _read_tensor(file, entry) for entry in entries}, metadata)
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def _lay_out(tensors: Mapping[str, Tensor]) -> Dict[str, Any]:
    """Wide elements first, so that each tensor is aligned, then by name."""
    for name, tensor in tensors.items():
        _ensure(name != _METADATA and tensor.dtype in _NAMES,
                f"safetensors: tensor '{name}' of {tensor.dtype} has no place in the format")
    entries: Dict[str, Any] = {}
    end = 0
    for name in sorted(tensors, key=lambda name: (-tensors[name].element_size(), name.encode())):
        tensor, begin = tensors[name], end
        end += tensor.numel() * tensor.element_size()
        entries[name] = {"data_offsets": [begin, end], "dtype": _NAMES[tensor.dtype],
                         "shape": list(tensor.shape)}
    return entries


def save_file(path: Union[str, Path], tensors: Mapping[str, Tensor],
              metadata: Optional[Mapping[str, str]] = None) -> None:
    """Replaces the file in one step. Symbolic links are followed; a device or pipe is written to."""
    path_text(path)
    entries = _lay_out(tensors)
    header = {**({_METADATA: dict(sorted(metadata.items()))} if metadata else {}), **entries}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    text += b" " * (-len(text) % 8)
    with written(path) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in entries:
            plain = tensors[name].detach().cpu().contiguous().reshape(-1)
            bytes_of: Any = plain.view(torch.uint8).numpy()
            file.write(memoryview(bytes_of))
