"""The blocks of a model."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple

import torch
from torch import Tensor, nn

from ._tokens import Grid, Rows, row_list
from .attention import Attention
from .linear import Linear
from .norm import LayerNorm
from .points import PointAttention, PointPairs

# Options of an Attention that a PointAttention has as well; radius and sharing are those of its lattice.
_OF_POINTS = ("dim", "heads", "dim_head", "method", "cls", "roles", "relative_dim", "relative_dim_out",
              "shared_qkv", "mixing", "qkv_bias", "dropout", "init", "precision")


class FeedForward(nn.Module):
    """dim -> hidden -> dim with GELU between: "exact", or "tanh" as in GPT-2."""

    def __init__(self, dim: int, hidden: int, dropout: float = 0.0, gelu: str = "exact",
                 precision: str = "float32", device: Any = None,
                 dtype: Optional[torch.dtype] = None) -> None:
        super().__init__()
        factory = dict(device=device, dtype=dtype)
        self._tanh = gelu == "tanh"
        self.up = Linear(dim, hidden, precision=precision, **factory)
        self.down = Linear(hidden, dim, precision=precision, **factory)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.ops.translution.gelu(self.up(x), self._tanh)
        return self.dropout(self.down(self.dropout(hidden)))


class Block(nn.Module):
    """x += attention(norm1(x)); x += mlp(norm2(x)). `attention` holds the options of Attention.
    `precision` is that of all products, unless `attention` has another for its own. With `points`,
    which holds the other options of PointAttention, a block between points."""

    attention: Any

    def __init__(self, attention: Dict[str, Any], mlp_dim: int, dropout: float = 0.0,
                 gelu: str = "exact", norm_eps: float = 1e-5, precision: str = "float32",
                 device: Any = None, dtype: Optional[torch.dtype] = None,
                 points: Optional[Dict[str, Any]] = None) -> None:
        super().__init__()
        dim, factory = attention["dim"], dict(device=device, dtype=dtype)
        self.norm1 = LayerNorm(dim, norm_eps, **factory)
        self.norm2 = LayerNorm(dim, norm_eps, **factory)
        options = {"precision": precision, **attention}
        if points is None:
            self.attention = Attention(**options, **factory)
        else:
            own = {name: value for name, value in options.items() if name in _OF_POINTS}
            self.attention = PointAttention(**own, **points, **factory)
        self.mlp = FeedForward(dim, mlp_dim, dropout, gelu, precision, **factory)
        self.dropout = nn.Dropout(dropout)

    def _finish(self, x: Tensor, rows: Optional[Rows], attended: Tensor) -> Tensor:
        kept = x if rows is None else x[:, row_list(rows)]
        y = kept + self.dropout(attended)
        return y + self.mlp(self.norm2(y))

    def forward(self, x: Tensor, rows: Optional[Rows] = None,
                key_padding_mask: Optional[Tensor] = None,
                grid: Optional[Grid] = None) -> Tensor:
        """Arguments of Attention. Only the query rows asked for are computed and returned."""
        return self._finish(x, rows, self.attention(self.norm1(x), rows, key_padding_mask, grid))

    def forward_points(self, x: Tensor, pairs: PointPairs) -> Tensor:
        """Packed rows [R, dim] of points, with the pairs that all blocks share."""
        attended = self.attention._project(self.attention.attend(self.norm1(x), pairs))
        return self._finish(x, None, attended)

    def forward_with_map(self, x: Tensor, rows: Optional[Rows] = None,
                         key_padding_mask: Optional[Tensor] = None,
                         grid: Optional[Grid] = None) -> Tuple[Tensor, Tensor]:
        attended, map = self.attention.forward_with_map(self.norm1(x), rows, key_padding_mask, grid)
        return self._finish(x, rows, attended), map


class Backbone(nn.Module):
    """The blocks of a model and the norm behind them."""

    def __init__(self, layers: List[Dict[str, Any]], mlp_dim: int, dropout: float = 0.0,
                 gelu: str = "exact", norm_eps: float = 1e-5, precision: str = "float32",
                 device: Any = None, dtype: Optional[torch.dtype] = None,
                 points: Optional[Dict[str, Any]] = None) -> None:
        super().__init__()
        factory = dict(device=device, dtype=dtype)
        self.blocks = nn.ModuleList(
            Block(attention, mlp_dim, dropout, gelu, norm_eps, precision, **factory, points=points)
            for attention in layers)
        self.norm = LayerNorm(layers[0]["dim"], norm_eps, **factory)

    def forward(self, x: Tensor, rows: Optional[Rows] = None,
                key_padding_mask: Optional[Tensor] = None,
                grid: Optional[Grid] = None) -> Tensor:
        """`rows`: the tokens that the caller reads; the last block computes only those.
        Mask and grid are those of Attention, for all blocks."""
        for block in self.blocks[:-1]:
            x = block(x, None, key_padding_mask, grid)
        return self.norm(self.blocks[-1](x, rows, key_padding_mask, grid))

    def forward_points(self, x: Tensor, pairs: PointPairs) -> Tensor:
        """Packed rows [R, dim] of points, with the pairs that all blocks share."""
        block: Any
        for block in self.blocks:
            x = block.forward_points(x, pairs)
        return self.norm(x)

    def attention_maps(self, x: Tensor) -> List[Tensor]:
        """The attention maps of all blocks, [B, heads, N, N] each."""
        maps: List[Tensor] = []
        block: Any
        for block in self.blocks:
            x, map = block.forward_with_map(x)
            maps.append(map)
        return maps


def start_vectors(shape: List[int], init: str, device: Any, dtype: Any) -> nn.Parameter:
    """Vectors that are learned as they are, such as a class token."""
    return nn.Parameter(torch.ops.translution.start_vectors(
        shape, init, device=torch.device(device or "cpu"),
        dtype=dtype or torch.get_default_dtype()))
