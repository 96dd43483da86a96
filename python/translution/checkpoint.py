"""Weights in files: those of the program's checkpoints, and of models here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Optional, Tuple, Type, Union

import torch
from torch import Tensor, nn

from . import safetensors
from ._files import path_text
from ._model import Model, build_empty
from .authors import _call_op
from .cloud import Cloud
from .gpt import GPT
from .vit import ViT

_FAMILIES: Dict[str, Type[Model]] = {"vit": ViT, "gpt": GPT, "cloud": Cloud}


def _checkpoint_folder(path: Path) -> Path:
    """The checkpoint that a run, or a folder of checkpoints, names as its last."""
    for folder in (path, path / "last", path / "checkpoints" / "last"):
        if (folder / "manifest.json").is_file():
            return folder
    raise ValueError(f"{path}: expected a .safetensors file, a checkpoint, or a run of `translution "
                     "train` with one; found no manifest.json")


def _read_manifest(folder: Path) -> Tuple[Dict[str, Any], str]:
    """Settings of the model and its data, and the precision that it was trained in."""
    path = folder / "manifest.json"
    try:
        manifest = json.loads(path.read_text("utf-8"))
        settings = manifest["state"]["config"]
        precision = manifest["state"].get("training", {}).get("precision", "float32")
        size = manifest["files"]["model.safetensors"]["bytes"]
    except (AttributeError, ValueError, KeyError, TypeError):
        raise ValueError(f"{path}: was not written by `translution train`, or is damaged") from None
    found = (folder / "model.safetensors").stat().st_size
    if found != size:
        raise ValueError(f"{folder / 'model.safetensors'}: has {found} bytes, the manifest says "
                         f"{size}; the checkpoint is damaged")
    return settings, precision


def load_model(path: Union[str, Path], precision: Optional[str] = None, *, device: Any = None,
               dtype: Optional[torch.dtype] = None) -> Model:
    """The ViT, GPT or Cloud of a run that `translution train` has made, of one of its checkpoints, or of a
    file by save_weights or `translution convert`, ready for evaluation. `precision`: that of the run
    unless given, and float32 for a file."""
    path = Path(path_text(path))
    settings: Dict[str, Any] = {}
    trained_in = "float32"
    if path.is_dir():
        folder = _checkpoint_folder(path)
        (settings, trained_in), path = _read_manifest(folder), folder / "model.safetensors"
    tensors, metadata = safetensors.load_file(path)
    settings = settings or metadata
    if "model" not in settings:
        raise ValueError(f"{path}: does not say what model it is of; build the model yourself "
                         "and use load_weights")
    family, plan = torch.ops.translution.model_of_settings(settings)
    options = json.loads(plan)["options"]
    _call_op(torch.ops.translution.require_shapes, family, json.dumps(options), tensors, str(path))
    options["precision"] = precision or trained_in
    model = build_empty(_FAMILIES[family], options, device, dtype)
    _load(model, tensors, path)
    return model.eval()


def load_weights(module: nn.Module, path: Union[str, Path]) -> None:
    """Loads a .safetensors file, of C++ or of save_weights, into a module with the same
    parameters; says what differs and what to do where they are not the same. Weights that are not
    finite are refused."""
    _load(module, safetensors.load_file(path).tensors, path)


def _load(module: nn.Module, tensors: Dict[str, Tensor], path: Union[str, Path]) -> None:
    _call_op(torch.ops.translution.require_finite, tensors, str(path))
    try:
        module.load_state_dict(tensors)
    except RuntimeError as error:
        raise RuntimeError(f"{path}: {error}") from None


def save_weights(module: nn.Module, path: Union[str, Path]) -> None:
    """The parameters of the module as a .safetensors file, which C++ and load_weights read. For a
    ViT, GPT or Cloud also its options, for load_model and the program; the number of classes is that of
    the head. Other weights than those of the options are refused: ValueError."""
    path_text(path)
    weights: Dict[str, Tensor] = dict(module.named_parameters())
    metadata = _settings_of(module, weights) if isinstance(module, Model) else {}
    safetensors.save_file(path, weights, metadata)


def _settings_of(model: Model, weights: Dict[str, Tensor]) -> Dict[str, str]:
    """The settings that a file stores with these weights."""
    options = dict(model.options)
    if model.family != "gpt" and options["classes"] > 0 and "head.weight" in weights:
        options["classes"] = len(weights["head.weight"])
    text = json.dumps(options)
    try:
        _call_op(torch.ops.translution.require_shapes, model.family, text, weights, "save_weights")
    except ValueError as error:
        raise ValueError(f"{error}; a changed model needs a file without options: "
                         "translution.safetensors.save_file(path, model.state_dict())") from None
    return torch.ops.translution.model_settings(model.family, text)
