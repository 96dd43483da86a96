"""python -m translution.convert IN OUT: weights of other code, from .pt or safetensors.

    python -m translution.convert model.pt ours.safetensors --model lor_qkv_tiny/56 --relative-dim 8
    python -m translution.convert gpt2.bin ours.safetensors --from gpt2

Reads the authors' checkpoints unless --from says otherwise. A .pt is unpickled with tensors and plain
containers allowed and nothing else; `translution convert` never unpickles, and takes safetensors.
"""

from __future__ import annotations

import argparse
import pickle
import sys
from typing import Any, Dict, List, Mapping, Optional

import torch
from torch import Tensor

from . import safetensors
from .authors import _call_op, _tensors

_WRAPPERS = ("state_dict", "model", "model_state_dict")  # under which training scripts keep it


def _read_pickle(path: str) -> Mapping[str, Any]:
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError) as error:
        reason = str(error).rsplit("WeightsUnpickler error: ", 1)[-1].split("\n", 1)[0]
        raise ValueError(f"{path}: does not hold tensors alone ({reason}); expected a file of "
                         "torch.save(model.state_dict(), path)") from None
    for name in _WRAPPERS:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
    if not isinstance(content, Mapping) or not content:
        raise ValueError(f"{path}: expected a state_dict, got {type(content).__name__}")
    return content


def read_state(path: str) -> Dict[str, Tensor]:
    """The tensors of a .pt file, or of a safetensors file, by name. Nothing in it is executed."""
    if path.endswith(".safetensors"):
        return safetensors.load_file(path).tensors
    return _tensors(_read_pickle(path), path)


def _read_settings(names: List[str], arguments: List[str]) -> Dict[str, str]:
    """--name value or --name=value, for the names that settings of a model have."""
    settings: Dict[str, str] = {}
    words = iter(arguments)
    for word in words:
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--") or name not in names:
            raise ValueError(f"unknown argument '{word}'; the settings of a model are "
                             f"--{', --'.join(names)}")
        settings[name] = value if equals else next(words, "")
        if not settings[name]:
            raise ValueError(f"--{name}: expected a value")
    return settings


def main(arguments: Optional[List[str]] = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m translution.convert", description=__doc__.split("\n\n", 1)[0],
        epilog="Settings of a model, as for `translution convert`: --model lor_qkv_tiny/56, --classes, "
               "--relative-dim, --hybrid-layers and all others of `translution info --help`.")
    parser.add_argument("IN", help="a .pt, .pth or .bin of torch.save, or a .safetensors file")
    parser.add_argument("OUT", help="the .safetensors file to write")
    parser.add_argument("--from", dest="source", default="authors",
                        choices=["authors", "gpt2", "timm"], help="what IN holds (authors)")
    known, rest = parser.parse_known_args(arguments)
    for name in ("IN", "OUT"):
        if not getattr(known, name):
            parser.error(f"{name}: expected a path, got ''")
    try:
        settings = _read_settings(torch.ops.translution.setting_names(), rest)
        metadata, weights = _call_op(torch.ops.translution.convert_weights, known.source, settings,
                                 read_state(known.IN), known.IN)
        safetensors.save_file(known.OUT, dict(weights), dict(metadata))
    except (OSError, ValueError) as error:
        print(f"translution.convert: {error}", file=sys.stderr)
        return 1
    print(f"{known.OUT}: {metadata['model']} with {metadata['method']}, {len(weights)} tensors")
    return 0


if __name__ == "__main__":
    sys.exit(main())
