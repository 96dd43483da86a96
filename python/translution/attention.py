"""The attention layer, by any method of the family."""

from __future__ import annotations

import json
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor, nn

from . import _library  # noqa: F401  (the ops below come from it)
from ._explain import Explained, check_layer
from ._options import options_text
from .linear import Linear


#: Query rows: token indices, as a tensor of int64 or as plain numbers; plain ones are traced.
Rows = Union[Tensor, Sequence[int]]


def row_list(rows: Optional[Rows]) -> List[int]:
    """Query rows as plain numbers; none for all."""
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


class Relation(NamedTuple):
    """A relation between tokens instead of the offsets of a grid, such as the bonds of a molecule.

    slots:     int64 [N, N]; the weight row of the pair "i gathers from j", or -1 for no pair
    num_slots: how many rows there are
    mirror:    the key row of each row; empty: that of the reverse pair
    """

    slots: Tensor
    num_slots: int
    mirror: Sequence[int] = ()


class Attention(Explained, nn.Module):
    """Multi-head attention with output projection: x [B, N, dim] -> [B, N, dim].

    dim, heads, dim_head  channels of input and output; heads, and the channels of each
    grid                  sides of the token grid: (160,), (7, 7), (4, 7, 7); a single number is
                          one side. A layer with one side takes shorter input as well
    cls                   a class token in front
    causal                a token gathers only from itself and those before it
    method                where position enters: self_attention_no_pos, self_attention,
                          relative_key, relative_value, relative_bias, gated_position, rotary,
                          alpha_translution, translution, convolution
    roles                 which of q, k, v have a matrix per offset: "qkv", "v", …, "none"
    encoding              "relative": a row per offset; "absolute": per token pair
    sharing, radius       how offsets beyond the radius are joined: none, direction, logarithmic
    relative_dim          alpha_translution: relative channels per head
    shared_qkv            alpha_translution: matrices for all offsets beside the small ones
    mixing                alpha_translution: "sum", or "mean" as in the authors' code
    rotary                rotate queries and keys that are not relative
    angles                in which type rotary angles are taken: "double", or "float" as in the
                          authors' code
    kernel_size           convolution: odd side of the window
    qkv_bias              a bias on queries, keys and values, where all offsets share them
    dropout               on the attention, while training
    init                  how weights start: scaled, authors, none
    workspace             bytes of encoded queries and keys that may be kept for backward
    precision             of matrix products: "float32", or "bf16": operands are rounded to
                          bfloat16, everything else stays float32
    relation              a Relation instead of the grid

    Parameters are those of the C++ layer under the same names: `query` [slots, dim, heads*dim_head]
    and so on, and `out`.
    """

    def __init__(
        self,
        dim: int,
        heads: int = 1,
        dim_head: int = 64,
        grid: Union[int, Sequence[int]] = (),
        *,
        cls: bool = False,
        causal: bool = False,
        method: str = "translution",
        roles: str = "qkv",
        encoding: str = "relative",
        sharing: str = "none",
        radius: int = 0,
        relative_dim: int = 8,
        shared_qkv: bool = True,
        mixing: str = "sum",
        rotary: bool = False,
        angles: str = "double",
        kernel_size: int = 3,
        qkv_bias: bool = False,
        dropout: float = 0.0,
        init: str = "scaled",
        workspace: Optional[int] = None,
        precision: str = "float32",
        relation: Optional[Relation] = None,
        device: Optional[Union[str, torch.device]] = None,
        dtype: Optional[torch.dtype] = None,
    ) -> None:
        super().__init__()
        given: Dict[str, Any] = dict(
            dim=dim, heads=heads, dim_head=dim_head, grid=grid, cls=cls, causal=causal,
            method=method, roles=roles, encoding=encoding, sharing=sharing, radius=radius,
            relative_dim=relative_dim, shared_qkv=shared_qkv, mixing=mixing, rotary=rotary,
            angles=angles, kernel_size=kernel_size, qkv_bias=qkv_bias, dropout=dropout, init=init,
            precision=precision)
        if workspace is not None:
            given["workspace"] = workspace
        self.relation = relation
        text, pairs, tokens, shorter, tables = torch.ops.translution.attention_layout(
            options_text("attention", given), *self._relation_arguments())
        #: All options, with their defaults.
        self.options: Dict[str, Any] = json.loads(text)
        #: How many tokens the layer takes; 0: any number, where no grid was given.
        self.tokens: int = tokens
        self._pairs: str = pairs  # how tokens relate: "7x7 cls", "160 causal"
        self._shorter: bool = shorter
        self._tables: Dict[str, Tensor] = tables  # angles and offsets of the grid; stay on the CPU
        started = self._start(device, dtype)
        self._names: List[str] = list(started)
        for name, value in started.items():
            self.register_parameter(name, nn.Parameter(value))
        self.out = Linear(heads * dim_head, dim, precision=precision, device=device, dtype=dtype)

    def _relation_arguments(self) -> Tuple[Any, ...]:
        if self.relation is None:
            return ()
        return self.relation.slots, self.relation.num_slots, list(self.relation.mirror)

    def _start(self, device: Any, dtype: Optional[torch.dtype]) -> Dict[str, Tensor]:
        return torch.ops.translution.attention_start(
            json.dumps(self.options), *self._relation_arguments(),
            device=torch.device(device or "cpu"), dtype=dtype or torch.get_default_dtype())

    def reset_parameters(self) -> None:
        """Starts all weights anew."""
        with torch.no_grad():
            for name, value in self._start(self.out.weight.device, self.out.weight.dtype).items():
                getattr(self, name).copy_(value)
        self.out.reset_parameters()

    def _attend(self, x: Tensor, rows: Optional[Rows], map: bool) -> Tuple[Tensor, Tensor]:
        o, tables = self.options, self._tables
        return torch.ops.translution.attention_layer(
            x, ",".join(self._names), [getattr(self, name) for name in self._names], o["method"],
            o["heads"], self._pairs, self.tokens, self._shorter, tables.get("angles"),
            tables.get("position_features"), row_list(rows),
            o["dropout"] if self.training else 0.0, o["mixing"], map, o["workspace"],
            o.get("precision", "float32"))  # layers of older files have none

    def forward(self, x: Tensor, rows: Optional[Rows] = None) -> Tensor:
        """[B, N, dim] -> [B, N, dim], or [B, len(rows), dim] for the query rows asked for."""
        return self.out(self._attend(x, rows, False)[0])

    def forward_with_map(self, x: Tensor, rows: Optional[Rows] = None) -> Tuple[Tensor, Tensor]:
        """The output and the attention map [B, heads, N or len(rows), N], before dropout."""
        attended, map = self._attend(x, rows, True)
        return self.out(attended), map

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


class Translution(Attention):
    """Attention with a full matrix per offset for queries, keys and values."""

    def __init__(self, dim: int, heads: int = 1, dim_head: int = 64,
                 grid: Union[int, Sequence[int]] = (), **options: Any) -> None:
        super().__init__(dim, heads, dim_head, grid, **{**options, "method": "translution"})


class AlphaTranslution(Attention):
    """Attention with a small matrix per offset for queries, keys and values, beside shared ones."""

    def __init__(self, dim: int, heads: int = 1, dim_head: int = 64,
                 grid: Union[int, Sequence[int]] = (), **options: Any) -> None:
        super().__init__(dim, heads, dim_head, grid, **{**options, "method": "alpha_translution"})


#: The name under which the authors' code has it now.
LoRTranslution = AlphaTranslution
