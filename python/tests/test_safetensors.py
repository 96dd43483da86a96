"""The reader trusts nothing; the writer gives the bytes that C++ gives."""

import json
import os
import struct
import threading

import pytest
import torch

import translution
from translution import safetensors

TYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
         torch.int16, torch.int8, torch.uint8, torch.bool]


def test_what_is_saved_is_loaded(tmp_path):
    tensors = {str(dtype): torch.arange(6).reshape(2, 3).to(dtype) for dtype in TYPES}
    tensors.update(number=torch.tensor(2.5), none=torch.zeros(0, 3), turned=torch.randn(3, 4).T)
    path = tmp_path / "all.safetensors"
    safetensors.save_file(path, tensors, {"family": "qkv", "ключ": "значение"})
    loaded, metadata = safetensors.load_file(path)
    assert metadata == {"family": "qkv", "ключ": "значение"}
    assert loaded.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[name].dtype == tensor.dtype and torch.equal(loaded[name], tensor)
    assert [path.name for path in tmp_path.iterdir()] == ["all.safetensors"]


def test_nothing_is_left_behind_when_saving_fails(tmp_path):
    path = tmp_path / "a.safetensors"
    with pytest.raises(ValueError, match="has no place in the format"):
        safetensors.save_file(path, {"c": torch.zeros(1, dtype=torch.complex64)})
    assert not list(tmp_path.iterdir())


def test_links_are_followed_and_modes_kept(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"before")
    real.chmod(0o640)
    link.symlink_to("real")
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    safetensors.save_file(link, {"a": torch.ones(2)})
    safetensors.save_file(tmp_path / "dangling", {"a": torch.ones(2)})
    assert link.is_symlink() and torch.equal(safetensors.load_file(real).tensors["a"], torch.ones(2))
    assert real.stat().st_mode & 0o777 == 0o640
    assert safetensors.load_file(tmp_path / "new").tensors.keys() == {"a"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "link", "new", "real"]


def test_pipes_are_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    safetensors.save_file(pipe, {"a": torch.ones(2)})
    reader.join()
    assert pipe.is_fifo() and read[0].endswith(torch.ones(2).numpy().tobytes())


def test_empty_paths_are_refused():
    model = torch.nn.Linear(1, 1)
    for call in (lambda: translution.load_model(""), lambda: translution.load_weights(model, ""),
                 lambda: translution.save_weights(model, ""), lambda: safetensors.load_file(""),
                 lambda: safetensors.save_file("", {})):
        with pytest.raises(ValueError, match="expected the path of a file, got ''"):
            call()


def write(path, header, data=b"", length=None):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text) if length is None else length) + text + data)


def entry(begin=0, end=8, dtype="F32", shape=(2,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


@pytest.mark.parametrize("header, data, expected", [
    ({"a": entry()}, b"1234567", "the tensors end at byte 8, the file has 7"),
    ({"a": entry()}, b"123456789", "the tensors end at byte 8, the file has 9"),
    ({"a": entry(), "b": entry(4, 12)}, bytes(12), "'b' begins at byte 4, the one before it ends"),
    ({"a": entry(), "b": entry(12, 20)}, bytes(20), "'b' begins at byte 12"),
    ({"a": entry(shape=(3,))}, bytes(8), "shape [3] takes 12 bytes, data_offsets give 8"),
    ({"a": entry(shape=(2**62, 2**62))}, bytes(8), "data_offsets give 8"),
    ({"a": entry(shape=(-2,))}, bytes(8), "shape: expected whole numbers from 0"),
    ({"a": entry(shape=(True, 2))}, bytes(8), "shape: expected whole numbers from 0"),
    ({"a": entry(dtype="F128")}, bytes(8), "dtype 'F128' is none that we read"),
    ({"a": {"dtype": "F32", "shape": [2]}}, bytes(8), "expected dtype, shape and data_offsets"),
    ({"a": 3}, b"", "expected dtype, shape and data_offsets"),
    ({"__metadata__": {"n": 1}}, b"", "expected texts"),
    ([], b"", "does not begin with {"),
    (b'{"a":1,"a":2}', b"", "has a name twice"),
    (b"{", b"", "the header is no JSON"),
    (b"\xff{}", b"", "the header is no JSON"),
    ({"a": entry(0, 2, "BOOL")}, b"\x01\x02", "is BOOL and holds other values"),
])
def test_damage_is_refused(tmp_path, header, data, expected):
    path = tmp_path / "bad.safetensors"
    write(path, header, data)
    with pytest.raises(ValueError) as raised:
        safetensors.load_file(path)
    assert expected in str(raised.value) and str(raised.value).startswith(f"{path}: ")


@pytest.mark.parametrize("content", [b"", b"1234567", struct.pack("<Q", 2**63) + b"{}",
                                     struct.pack("<Q", 3) + b"{}"])
def test_short_files_are_refused(tmp_path, content):
    path = tmp_path / "short.safetensors"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="a safetensors file has at least 8|no whole safetensors"):
        safetensors.load_file(path)


def test_files_of_cpp_are_written_to_the_same_bytes(cases, tmp_path):
    for path in sorted(cases.iterdir())[:4]:
        again = tmp_path / path.name
        safetensors.save_file(again, *safetensors.load_file(path))
        assert again.read_bytes() == path.read_bytes()
