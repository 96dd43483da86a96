"""The library is found, and one line says what to do where it is not or does not fit."""

import shutil
from pathlib import Path

import pytest
import torch

import translution
from translution import _library

IMPORT = "import translution"


def message(result):
    """What stands behind the exception's name in the last line of the traceback."""
    assert result.returncode == 1
    line = result.stderr.strip().splitlines()[-1]
    assert line.startswith("translution._library.LibraryError: "), result.stderr
    return line


def test_build_info_is_what_the_file_says():
    info = torch.ops.translution.build_info()
    assert info == f"translution {_library.BUILT.version} for LibTorch {_library.BUILT.torch}"
    assert _library.read_mark(_library.PATH) == _library.BUILT
    assert translution.library_torch == _library.BUILT.torch
    assert translution.__version__ == _library.BUILT.version


def test_variable_names_a_file_or_a_folder(run_python):
    show = "import translution; print(translution.library_path)"
    for named in (_library.PATH, _library.PATH.parent):
        result = run_python(show, TRANSLUTION_LIBRARY=str(named))
        assert Path(result.stdout.strip()).resolve() == _library.PATH.resolve()


def test_missing_file(run_python, tmp_path):
    text = message(run_python(IMPORT, check=False, TRANSLUTION_LIBRARY=str(tmp_path / "no.so")))
    assert "no.so, which does not exist; set it to the path of libtranslution.so" in text


def test_library_is_nowhere(run_python, tmp_path, source):
    """A copy of the package away from any build tree."""
    shutil.copytree(source / "python" / "translution", tmp_path / "a" / "b" / "translution")
    path = str(tmp_path / "a" / "b")
    result = run_python("import sys; sys.prefix = '/nowhere'\n" + IMPORT, check=False,
                        TRANSLUTION_LIBRARY=None, PYTHONPATH=path, LD_LIBRARY_PATH=None)
    if result.returncode == 0:
        pytest.skip("a library is installed on this machine")
    text = message(result)
    assert "was not found in" in text and path in text
    assert "build it with `make build`" in text and "TRANSLUTION_LIBRARY" in text


def test_other_places(run_python, tmp_path, source):
    """Beside the package, and on the system's library path."""
    package = tmp_path / "a" / "b" / "translution"
    shutil.copytree(source / "python" / "translution", package)
    show = "import translution; print(translution.library_path)"
    folder = tmp_path / "lib"
    folder.mkdir()
    (folder / "libtranslution.so.0").symlink_to(_library.PATH)
    away = dict(TRANSLUTION_LIBRARY=None, PYTHONPATH=str(package.parent),
                LD_LIBRARY_PATH=str(folder))
    assert run_python(show, **away).stdout.strip() == str(folder / "libtranslution.so.0")
    (package / "libtranslution.so").symlink_to(_library.PATH)
    assert run_python(show, **away).stdout.strip() == str(package / "libtranslution.so")


def altered(path, old, new, to):
    assert len(old) == len(new)
    data = path.read_bytes()
    assert data.count(old) == 1
    to.write_bytes(data.replace(old, new))
    return str(to)


def test_built_for_another_torch(run_python, tmp_path):
    version = _library.BUILT.torch
    other = version[:-1].replace("1.", "9.", 1) + version[-1]
    path = altered(_library.PATH, f"for LibTorch {version}".encode(),
                   f"for LibTorch {other}".encode(), tmp_path / "other.so")
    text = message(run_python(IMPORT, check=False, TRANSLUTION_LIBRARY=path))
    series = ".".join(other.split(".")[:2])
    assert f"was built for PyTorch {series}, this is PyTorch {torch.__version__}" in text
    assert f"use PyTorch {series}, or build the library against this one" in text


def test_undefined_symbols_are_explained(run_python, tmp_path):
    data = _library.PATH.read_bytes()
    name = b"_ZN2at15get_num_threadsEv"
    assert name in data
    path = tmp_path / "other.so"
    path.write_bytes(data.replace(name, name.replace(b"threads", b"THREADS")))
    text = message(run_python(IMPORT, check=False, TRANSLUTION_LIBRARY=str(path), LD_BIND_NOW="1"))
    assert "could not be loaded" in text and "THREADS" in text
    assert f"it was built for PyTorch {_library.BUILT.torch}, this is {torch.__version__}" in text


def test_some_other_file(run_python, tmp_path):
    path = tmp_path / "other.so"
    path.write_bytes(b"\x7fELF and nothing of ours")
    text = message(run_python(IMPORT, check=False, TRANSLUTION_LIBRARY=str(path)))
    assert "is not the library that this package needs" in text
    path.write_bytes(b"")
    text = message(run_python(IMPORT, check=False, TRANSLUTION_LIBRARY=str(path)))
    assert "is empty" in text
