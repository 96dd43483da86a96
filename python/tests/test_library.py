"""The library is found; if not, or if it does not fit, the import warns in one line what to do."""

import shutil
from pathlib import Path

import pytest
import torch

import translution
from translution import _library

IMPORT = "import translution"


def message(result):
    """The text of the only warning of an import that succeeds."""
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stderr.splitlines() if "Warning: " in line]
    assert len(lines) == 1 and "RuntimeWarning: translution: " in lines[0], result.stderr
    return lines[0]


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
    if not result.stderr:
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
    other = "9" + version[1:]
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


# ONEDNN_MAX_CPU_ISA, as C sees it and oneDNN reads it.
SHOW_LIMIT = """
import ctypes
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
print((getenv(b"ONEDNN_MAX_CPU_ISA") or b"").decode())
"""
AFTER = "import translution\nfrom translution._library import limit_onednn\n"


def limited(run_python, call, **variables):
    unset = dict(ONEDNN_MAX_CPU_ISA=None, DNNL_MAX_CPU_ISA=None)
    result = run_python(AFTER + call + SHOW_LIMIT, **{**unset, **variables})
    return result.stdout.strip(), result.stderr


def test_onednn_inside_torch_is_limited(run_python):
    """Where the machine hides the tiles of AMX; the first argument is what the library found."""
    value, warning = limited(run_python, "limit_onednn('ours_only', False)")
    assert (value, warning) == ("AVX512_CORE_BF16", "")
    value, warning = limited(run_python, "limit_onednn('ours_only', True)")
    assert value == "AVX512_CORE_BF16"
    assert "RuntimeWarning: translution: CPUID shows AMX but hides leaf 0x1D" in warning
    value, warning = limited(run_python, "limit_onednn('too_late', False)")
    assert value == "" and "set ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16" in warning


def test_onednn_is_left_alone_otherwise(run_python):
    for limit in ("not_needed", "users_choice", "set"):
        assert limited(run_python, f"limit_onednn('{limit}', True)") == ("", "")
    own = dict(ONEDNN_MAX_CPU_ISA="AVX2")
    assert limited(run_python, "", **own) == ("AVX2", "")


def test_the_library_knows_the_limit_of_onednn():
    known = ("not_needed", "users_choice", "set", "ours_only", "too_late")
    assert torch.ops.translution.onednn_limit() in known


def test_bfloat16_products_after_the_import(run_python):
    """On machines that hide the tiles this ended in an illegal instruction."""
    code = "import translution, torch\nx = torch.ones(64, 64).bfloat16()\nprint((x @ x).sum().item())"
    assert run_python(code).stdout.strip() == "262144.0"


COMPILE = """
import torch, translution
from torch._dynamo.utils import counters
layer = translution.Attention(8, heads=2, method="self_attention_no_pos")
with torch.no_grad():
    torch.compile(layer)(torch.ones(2, 3, 8))
print(counters["inductor"]["fxgraph_cache_hit"])
"""


@pytest.mark.skipif(not hasattr(getattr(torch, "compiler", None), "config"),
                    reason="this PyTorch has no key of compile caches")
def test_graphs_of_another_build_are_compiled_again(run_python, tmp_path):
    other = tmp_path / _library.NAME
    shutil.copy(_library.PATH, other)
    hits = [int(run_python(COMPILE, TORCHINDUCTOR_CACHE_DIR=str(tmp_path / "cache"),
                           TRANSLUTION_LIBRARY=str(path)).stdout)
            for path in (_library.PATH, _library.PATH, other)]
    assert hits[0] == hits[2] == 0 < hits[1]
