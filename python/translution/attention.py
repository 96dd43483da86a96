"""The attention layer for every method."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import _compat, _layout
from ._explain import Explained, check_layer
from ._layout import Structure
from ._library import has_kernels
from ._options import options_text
from ._signatures import AlphaTranslutionArguments, AttentionArguments, TranslutionArguments
from ._tokens import Grid, Relation, Rows, grid_list, row_list
from .linear import Linear

_CACHED = 16  # structures of other grids and query rows that a layer holds


class Attention(AttentionArguments, Explained, nn.Module):
    """Multi-head attention with output projection: x [B, N, dim] -> [B, N, dim].

    A layer with a one-dimensional grid also takes shorter input; with `grid`, any layer takes a
    smaller grid. With precision "bf16" the operands of products are rounded to bfloat16; everything
    else stays float32. Parameters have the names of the C++ layer: `query`
    [slots, dim, heads*dim_head] and so on, and `out`.

    On devices and in types that the library has no kernels for, such as GPUs and float16, the layer
    computes in plain PyTorch (translution.reference).
    """

    if TYPE_CHECKING:  # a layer has those of its method
        query: nn.Parameter
        key: nn.Parameter
        value: nn.Parameter
        query_down: nn.Parameter
        key_down: nn.Parameter
        value_down: nn.Parameter
        query_offsets: nn.Parameter
        key_offsets: nn.Parameter
        value_offsets: nn.Parameter
        value_up: nn.Parameter
        key_vectors: nn.Parameter
        value_vectors: nn.Parameter
        bias: nn.Parameter
        position_weight: nn.Parameter
        gate: nn.Parameter
        kernel: nn.Parameter
        out: nn.Linear

    _method: Optional[str] = None  # the only method of this class; None: any

    def _build(self, options: Dict[str, Any], relation: Optional[Relation], device: Any,
               dtype: Optional[torch.dtype]) -> None:
        self._begin(options, relation)
        text, pairs, tokens, shorter, tables = torch.ops.translution.attention_layout(
            options_text("attention", options), *self._relation_arguments())
        #: All options, defaults included.
        self.options: Dict[str, Any] = json.loads(text)
        #: Number of input tokens; 0 without a grid: any number.
        self.tokens: int = tokens
        self._pairs: str = pairs  # how tokens relate: "7x7 cls", "160 causal"
        self._shorter: bool = shorter
        self._tables: Dict[str, Tensor] = tables  # angles and offsets of the grid; stay on the CPU
        self._register_parameters(device, dtype)
        o = self.options
        self.out = Linear(o["heads"] * o["dim_head"], o["dim"], precision=o["precision"],
                          device=device, dtype=dtype)
        self._make_structures()

    def _begin(self, options: Dict[str, Any], relation: Optional[Relation]) -> None:
        nn.Module.__init__(self)
        if self._method not in (None, options["method"]):
            raise ValueError(f"{type(self).__name__}: expected method '{self._method}', got "
                             f"'{options['method']}'; Attention takes all")
        self.relation = relation

    def _register_parameters(self, device: Any, dtype: Optional[torch.dtype]) -> None:
        parameters = self._initial_parameters(device, dtype)
        self._names: List[str] = list(parameters)
        for name, value in parameters.items():
            self.register_parameter(name, nn.Parameter(value))

    def _relation_arguments(self) -> Tuple[Any, ...]:
        if self.relation is None:
            return ()
        return self.relation.slots, self.relation.num_slots, list(self.relation.mirror)

    def _initial_parameters(self, device: Any, dtype: Optional[torch.dtype]) -> Dict[str, Tensor]:
        return torch.ops.translution.attention_start(
            json.dumps(self.options), *self._relation_arguments(),
            device=torch.device(device or "cpu"), dtype=dtype or torch.get_default_dtype())

    def reset_parameters(self) -> None:
        """Initialises all weights again."""
        with torch.no_grad():
            for name, value in self._initial_parameters(self.out.weight.device, self.out.weight.dtype).items():
                getattr(self, name).copy_(value)
        self.out.reset_parameters()

    def _attend(self, x: Tensor, rows: Optional[Rows], mask: Optional[Tensor],
                grid: Optional[Grid], map: bool) -> Tuple[Tensor, Tensor]:
        """The layer before `out`, and its map if asked for."""
        if not (has_kernels(x) or has_kernels(self.out.weight)):
            return self._attend_plain(x, rows, mask, grid)
        o, tables = self.options, self._tables
        return torch.ops.translution.attention_layer(
            x, ",".join(self._names), [getattr(self, name) for name in self._names], o["method"],
            o["heads"], self._pairs, self.tokens, self._shorter, tables.get("angles"),
            tables.get("position_features"), row_list(rows),
            o["dropout"] if self.training else 0.0, o["mixing"], map, o["workspace"],
            o.get("precision", "float32"),  # layers of older files have none
            mask, grid_list(grid), [] if self.relation else o["grid"], o["dim"])

    # --- in plain PyTorch

    def structure(self, grid: Optional[Tuple[int, ...]] = None,
                  rows: Optional[Tuple[int, ...]] = None) -> Structure:
        """The index tensors of plain PyTorch for a grid, at most the layer's on every axis, and for
        query rows. They are made once for each; before torch.compile, call this for another grid
        than the layer's."""
        made = self._made(grid, rows)
        if made is not None:
            return made
        if _compat.is_compiling():
            raise RuntimeError(f"attention: call structure({grid}) of this layer before torch.compile")
        if "_slots" not in self.__dict__:
            self._slots = _layout.find_slots(self.options, self.relation)
        largest, (slots, mirror, offsets) = self.options["grid"], self._slots
        tables = _layout.grid_tables(self.options, offsets)
        if grid is not None:
            _layout.require_grid(grid, self.options, self.relation)
            tokens = torch.arange(math.prod(largest), device="cpu").view(*largest)
            tokens = tokens[tuple(slice(side) for side in grid)].flatten()  # a corner of it
            tokens = F.pad(tokens + 1, (1, 0)) if self.options["cls"] else tokens
            slots = None if slots is None else slots[tokens][:, tokens]
            tables.update({name: value[tokens] for name, value in tables.items()
                           if name != "features"})
        at = None if rows is None else torch.tensor(rows, device="cpu")
        slots = slots if at is None or slots is None else slots[at]
        tables = {name: value.to(self.out.weight.dtype) for name, value in tables.items()}
        if len(getattr(self, "structures", ())) in (0, _CACHED):
            self.structures = nn.ModuleList()
        made = Structure(slots, mirror, at, **tables).to(self.out.weight.device)
        made.of = grid, rows
        self.structures.append(made)
        return made

    def _made(self, grid: Any, rows: Any) -> Optional[Structure]:
        for made in getattr(self, "structures", ()):  # torch.compile compares, but has no dicts of these
            if made.of == (grid, rows):
                return made
        return None

    def _make_structures(self) -> None:
        """Makes the index tensors for the layer's grid again, if calls are in plain PyTorch: cosines
        from exact angles, and indices that the meta device does not have."""
        self._modules.pop("structures", None)
        if not has_kernels(self.out.weight):
            self.structure()

    def _apply(self, fn: Any, *args: Any, **kwargs: Any) -> nn.Module:
        self._modules.pop("structures", None)
        super()._apply(fn, *args, **kwargs)
        self._make_structures()
        return self

    def _attend_plain(self, x: Tensor, rows: Optional[Rows], mask: Optional[Tensor],
                      grid: Optional[Grid]) -> Tuple[Tensor, Tensor]:
        """`_attend` in plain PyTorch; the map is always computed."""
        from .reference import attend  # which imports this module

        o = self.options
        if x.dim() != 3 or x.shape[2] != o["dim"]:
            raise RuntimeError(f"attention: x must be [B, N, {o['dim']}], got {list(x.shape)}")
        B, N, _ = x.shape
        at = tuple(row_list(rows)) or None
        if at and not 0 <= min(at) <= max(at) < N:
            raise RuntimeError(f"attention: expected query rows from 0 to {N - 1}, got {list(at)}")
        if mask is not None and mask.dtype != torch.bool:
            raise RuntimeError("attention: the key padding mask must be bool, true for a token, got "
                               f"{mask.dtype}; convert it, such as mask != 0")
        if mask is not None and mask.shape != (B, N):
            raise RuntimeError(f"attention: the key padding mask must be [{B}, {N}], the batch and "
                               f"the tokens, got {list(mask.shape)}")
        weights = {name: getattr(self, name) for name in self._names}
        grid = _layout.grid_of_tokens(N, grid, o, self.relation, self.tokens)
        dropout = o["dropout"] if self.training else 0.0
        if at and _compat.is_compiling() and self._made(grid, at) is None:
            # A graph cannot make index tensors: all rows, of which these are taken.
            out, map = attend(x, weights, self.structure(grid), o, mask, dropout)
            return out[:, list(at)], map[:, :, list(at)]
        return attend(x, weights, self.structure(grid, at), o, mask, dropout)

    def _project(self, attended: Tensor) -> Tensor:
        return self.out(attended)

    def forward(self, x: Tensor, rows: Optional[Rows] = None,
                key_padding_mask: Optional[Tensor] = None,
                grid: Optional[Grid] = None) -> Tensor:
        """[B, N, dim] -> [B, N, dim], or [B, len(rows), dim] for these query rows.

        key_padding_mask  bool [B, N], True for a token, False for padding that no token attends to
        grid              of x, if it is smaller than the layer's; an offset has the same weights

        A query whose keys are all padding attends to nothing: its output is `out.bias`.
        """
        return self._project(self._attend(x, rows, key_padding_mask, grid, False)[0])

    def forward_with_map(self, x: Tensor, rows: Optional[Rows] = None,
                         key_padding_mask: Optional[Tensor] = None,
                         grid: Optional[Grid] = None) -> Tuple[Tensor, Tensor]:
        """The output and the attention map [B, heads, N or len(rows), N], before dropout."""
        attended, map = self._attend(x, rows, key_padding_mask, grid, True)
        return self._project(attended), map

    def extra_repr(self) -> str:
        o = self.options
        place = f"relation of {self.tokens} tokens" if self.relation else f"grid={tuple(o['grid'])}"
        flags = "".join(f", {name}=True" for name in ("cls", "causal") if o[name])
        precision = o.get("precision", "float32")
        shown = "" if precision == "float32" else f", precision={precision}"
        return (f"{o['dim']}, heads={o['heads']}, dim_head={o['dim_head']}, {place}{flags}, "
                f"method={o['method']}{shown}")

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]]["translution"] = dict(self.options)

    def _load_from_state_dict(self, state_dict: Any, prefix: str, local_metadata: Any,
                              strict: bool, missing_keys: List[str], unexpected_keys: List[str],
                              error_msgs: List[str]) -> None:
        error_msgs.extend(check_layer(self, state_dict, prefix, local_metadata))
        super()._load_from_state_dict(state_dict, prefix, local_metadata, strict, missing_keys,
                                      unexpected_keys, error_msgs)


class Translution(TranslutionArguments, Attention):
    """Attention with a full matrix per offset for queries, keys and values."""

    _method = "translution"


class AlphaTranslution(AlphaTranslutionArguments, Attention):
    """Attention with a small matrix per offset for queries, keys and values, beside shared ones."""

    _method = "alpha_translution"


#: The name in the authors' current code.
LoRTranslution = AlphaTranslution
