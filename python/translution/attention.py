"""The attention layer for every method."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

from . import _library  # noqa: F401  (the ops below come from it)
from ._explain import Explained, check_layer
from ._options import options_text
from ._signatures import AlphaTranslutionArguments, AttentionArguments, TranslutionArguments
from .linear import Linear


#: Query rows: token indices, as an int64 tensor or as plain ints; tracing records plain ints.
Rows = Union[Tensor, Sequence[int]]
#: The sides of a grid; a single int is a sequence of that length.
Grid = Union[int, Sequence[int]]


def row_list(rows: Optional[Rows]) -> List[int]:
    """Query rows as plain ints; an empty list means all."""
    if rows is None:
        return []
    if isinstance(rows, Tensor):
        if rows.dim() != 1 or rows.dtype != torch.long:
            raise ValueError("attention: rows must be a vector of int64 token indices, got "
                             f"{rows.dtype} {list(rows.shape)}")
        rows = rows.tolist()
    if len(rows) == 0:
        raise ValueError("attention: rows is empty; name one or more query rows")
    return [int(row) for row in rows]


def grid_list(grid: Optional[Grid]) -> List[int]:
    """The grid of a call as plain ints; an empty list means the layer's."""
    if grid is None:
        return []
    grid = [grid] if isinstance(grid, int) else grid
    if len(grid) == 0:
        raise ValueError("attention: grid is empty; name a side for each axis")
    return [int(side) for side in grid]


class Relation(NamedTuple):
    """A relation between tokens instead of the offsets of a grid, such as the bonds of a molecule.

    slots:     int64 [N, N]; the weight row of the pair "i gathers from j", or -1 for no pair
    num_slots: how many rows there are
    mirror:    the key row of each row; empty: the row of the reverse pair
    """

    slots: Tensor
    num_slots: int
    mirror: Sequence[int] = ()


class Attention(AttentionArguments, Explained, nn.Module):
    """Multi-head attention with output projection: x [B, N, dim] -> [B, N, dim].

    A layer with a one-dimensional grid also takes shorter input; with `grid`, any layer takes a
    smaller grid. With precision "bf16" the operands of products are rounded to bfloat16; everything
    else stays float32. Parameters have the names of the C++ layer: `query`
    [slots, dim, heads*dim_head] and so on, and `out`.
    """

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
        o, tables = self.options, self._tables
        return torch.ops.translution.attention_layer(
            x, ",".join(self._names), [getattr(self, name) for name in self._names], o["method"],
            o["heads"], self._pairs, self.tokens, self._shorter, tables.get("angles"),
            tables.get("position_features"), row_list(rows),
            o["dropout"] if self.training else 0.0, o["mixing"], map, o["workspace"],
            o.get("precision", "float32"),  # layers of older files have none
            mask, grid_list(grid), [] if self.relation else o["grid"])

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
