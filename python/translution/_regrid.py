"""Layers and models on another grid."""

from __future__ import annotations

from typing import (Any, Dict, Iterator, List, Literal, NamedTuple, Optional, Sequence, Tuple, TypeVar,
                    Union)

import torch
from torch import Tensor, nn

from ._explain import has_row_per_offset
from ._model import Model, build_empty
from .attention import Attention
from .functional import pairs_text

Fill = Literal["nearest", "bicubic"]
_Module = TypeVar("_Module", bound=Union[Attention, Model])


class RegridNote(NamedTuple):
    """What happened to a tensor with a row per offset or position."""

    name: str
    old_rows: int
    new_rows: int
    kept: int
    filled: int
    fill: str

    def __str__(self) -> str:
        how = "from the nearest" if self.fill == "nearest" else "bicubically"
        return (f"{self.name}: {self.old_rows} -> {self.new_rows} rows, {self.kept} kept, "
                f"{self.filled} filled {how}")


def _layers(module: nn.Module) -> Dict[str, Attention]:
    return {name: part for name, part in module.named_modules() if isinstance(part, Attention)}


def _pairs(layer: Attention) -> str:
    o = layer.options
    sharing, radius = o["sharing"], o["radius"]
    if o["method"] == "convolution":
        sharing, radius = "window", o["kernel_size"] // 2
    return pairs_text(o["grid"], o["cls"], o["causal"], o["encoding"], sharing, radius)


def _changes(module: nn.Module, **given: Any) -> Dict[str, Any]:
    """The one option that is given, which must be that of the module's grid."""
    wanted = ("grid" if isinstance(module, Attention)
              else {"vit": "image_size", "gpt": "length"}.get(getattr(module, "family", "")))
    if wanted is None:
        raise ValueError(f"regrid: expected an attention layer, a ViT or a GPT, got "
                         f"{type(module).__name__}; in a model of your own replace its layers")
    names = [name for name, value in given.items() if value is not None]
    if names != [wanted]:
        raise ValueError(f"regrid: expected {wanted} for {type(module).__name__}, got "
                         f"{' and '.join(names) or 'nothing'}")
    if getattr(module, "relation", None) is not None:
        raise ValueError("regrid: expected a layer on a grid, got one with a relation")
    return {wanted: given[wanted]}


def _moved(old: nn.Module, new: Any, fill: str) -> Iterator[Tuple[str, Tensor, int]]:
    """The tensors that have other rows in the new module, and how many of these were copied."""
    ops, old_layers, new_layers = torch.ops.translution, _layers(old), _layers(new)
    for name, tensor in old.state_dict().items():
        prefix, _, leaf = name.rpartition(".")
        layer = old_layers.get(prefix)
        if layer is not None and has_row_per_offset(leaf, tensor.shape):
            pairs = _pairs(layer), _pairs(new_layers[prefix])
            yield (name, *ops.regrid_offsets(tensor, *pairs, fill))
        elif isinstance(old, Model) and name == "position_embedding":
            grids = old.plan["grid"], new.plan["grid"]
            yield (name, *ops.regrid_places(tensor, *grids, old.plan["cls"], fill))


@torch.no_grad()
def regrid(module: _Module, *, grid: Optional[Union[int, Sequence[int]]] = None,
           image_size: Optional[Union[int, Sequence[int]]] = None, length: Optional[int] = None,
           fill: Fill = "nearest") -> Tuple[_Module, List[RegridNote]]:
    """The module on another grid, as a new module with the same weights, and a note for each tensor
    that has a row per offset or position.

    module  an attention layer with `grid`, a ViT with `image_size`, or a GPT with `length`
    fill    how rows of offsets that the old grid lacks are filled: from the nearest old offset, or
            by bicubic interpolation (one or two axes)

    Rows of offsets that both grids have are copied, as are those of the class token; rows that the
    new grid lacks are dropped.
    """
    changed = _changes(module, grid=grid, image_size=image_size, length=length)
    first = next(module.parameters())
    new: Any = build_empty(type(module), {**module.options, **changed}, first.device, first.dtype)
    if isinstance(module, Attention) and len(new.options["grid"]) != len(module.options["grid"]):
        raise ValueError(f"regrid: expected a grid of {len(module.options['grid'])} sides, got {grid}")
    notes: List[RegridNote] = []
    weights = dict(module.state_dict())
    for name, rows, kept in _moved(module, new, fill):
        notes.append(RegridNote(name, len(weights[name]), len(rows), kept, len(rows) - kept, fill))
        weights[name] = rows
    new.load_state_dict(weights)
    for old, own in zip(module.parameters(), new.parameters()):
        own.requires_grad_(old.requires_grad)
    return new.train(module.training), notes
