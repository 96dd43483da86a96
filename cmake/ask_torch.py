"""Prints for CMake: the version of the torch package, its folder, and whether it has the new ABI of
libstdc++. Does without torch.utils.cpp_extension, which needs setuptools."""
import re

import torch

print(re.match(r"[0-9.]+", torch.__version__)[0].rstrip("."), torch.__path__[0],
      int(torch.compiled_with_cxx11_abi()), sep=";")
