"""`pip install ./python` works without a network, against an installed library."""

import os
import shutil
import subprocess
import sys

from translution import _library


def test_pip_install(source, tmp_path):
    copy = tmp_path / "source"  # building leaves files beside the sources
    shutil.copytree(source / "python", copy, ignore=shutil.ignore_patterns("__pycache__", "tests"))
    target = tmp_path / "site"
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation",
                    "--no-deps", "--no-index", "--disable-pip-version-check",
                    "--root-user-action=ignore", "--target", target, copy], check=True)
    libraries = tmp_path / "lib"
    libraries.mkdir()
    (libraries / "libtranslution.so").symlink_to(_library.PATH)
    environment = {**os.environ, "PYTHONPATH": str(target), "LD_LIBRARY_PATH": str(libraries)}
    environment.pop("TRANSLUTION_LIBRARY", None)
    code = ("import torch, translution; layer = translution.Translution(8, 2, 4, (2, 2)); "
            "print(translution.__file__, translution.library_path); "
            "print(*layer(torch.ones(1, 4, 8)).shape)")
    result = subprocess.run([sys.executable, "-c", code], env=environment, check=True, cwd=tmp_path,
                            capture_output=True, text=True)
    package, library, *shape = result.stdout.split()
    assert package.startswith(str(target)) and library.startswith(str(libraries))
    assert shape == ["1", "4", "8"]
    assert (target / "translution" / "py.typed").exists()
