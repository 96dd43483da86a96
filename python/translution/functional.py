"""Attention as functions of the input and the weights, without modules and without the projection
behind the heads. The formulas are in docs/op.md.

    from translution.functional import translution
    y = translution(x, q, k, v, heads=3, grid=(7, 7), cls=True)     # [B, 50, 192]

Arguments that all functions have:

    x                 [B, N, C]
    heads             number of heads; weights have heads * D output channels
    grid              sides of the token grid, such as (7, 7), or 160 for a sequence
    cls               a class token before the other tokens
    causal            tokens attend to themselves and earlier tokens only
    encoding          "relative": a row of a table per offset; "absolute": one per pair of tokens
    sharing           "none"; "direction" or "logarithmic": offsets beyond `radius` share rows
    rows              query tokens, [B, len(rows), heads * D] is returned; None: all
    key_padding_mask  bool [B, N], True for a token; others are no keys and no values, and a row
                      without keys gives zeros
    dropout           probability of dropping a weight of the attention map
    precision         "float32", or "bf16": operands of products are rounded to bfloat16

A table has M rows, one per offset: `count_rows(grid, cls, causal)`.
"""

from __future__ import annotations

from typing import Optional, Sequence

import torch
from torch import Tensor

from . import _library  # noqa: F401  (the ops below come from it)
from ._tokens import Grid, Rows, row_list

#: One tensor for queries, keys and values each; None where a role has none.
Roles = Sequence[Optional[Tensor]]


def pairs_text(grid: Grid, cls: bool = False, causal: bool = False, encoding: str = "relative",
               sharing: str = "none", radius: int = 0) -> str:
    """The relation of the tokens as ops take it, such as "7x7 cls"; docs/schema.md."""
    sides = (grid,) if isinstance(grid, int) else grid
    words = ["x".join(str(side) for side in sides)] if sides else []
    if cls and not sides:
        raise ValueError("functional: expected a grid with cls, got none")
    words += ["cls"] if cls else []
    words += ["causal"] if causal else []
    words += [] if encoding == "relative" else [encoding]
    words += [] if sharing == "none" else [f"{sharing}={radius}"]
    return " ".join(words)


def count_rows(grid: Grid, cls: bool = False, causal: bool = False, encoding: str = "relative",
               sharing: str = "none", radius: int = 0) -> int:
    """M, the number of rows of a table."""
    return torch.ops.translution.count_slots(
        pairs_text(grid, cls, causal, encoding, sharing, radius))


def translution(x: Tensor, q: Tensor, k: Tensor, v: Tensor, *, heads: int, grid: Grid,
                cls: bool = False, causal: bool = False, encoding: str = "relative",
                sharing: str = "none", radius: int = 0, rows: Optional[Rows] = None,
                key_padding_mask: Optional[Tensor] = None, dropout: float = 0.0,
                angles: Optional[Tensor] = None, biases: Roles = (None, None, None),
                precision: str = "float32") -> Tensor:
    """Translution: [B, N, C] -> [B, N, heads * D].

    q, k, v  [M, C, heads * D], a matrix per offset, or [C, heads * D], one for all. With C + 1 rows
             the last row of each matrix per offset is a bias
    angles   [N, D / 2] of rotary position, for q and k that are not relative
    biases   [heads * D], of each q, k, v that is one for all
    """
    pairs = pairs_text(grid, cls, causal, encoding, sharing, radius)
    return torch.ops.translution.translution(x, q, k, v, pairs, heads, [], row_list(rows), dropout,
                                             angles, *biases, precision, key_padding_mask)


def alpha_translution(x: Tensor, shared: Optional[Roles], down: Roles, table: Roles,
                      up: Optional[Tensor], *, heads: int, grid: Grid, cls: bool = False,
                      causal: bool = False, encoding: str = "relative", sharing: str = "none",
                      radius: int = 0, mixing: str = "sum", rows: Optional[Rows] = None,
                      key_padding_mask: Optional[Tensor] = None, dropout: float = 0.0,
                      angles: Optional[Tensor] = None, biases: Roles = (None, None, None),
                      precision: str = "float32") -> Tensor:
    """alpha-Translution: [B, N, C] -> [B, N, heads * D]. Three weights each, for q, k and v:

    shared  [C, heads * D], of plain attention; None: without it
    down    [C, r], into the small space
    table   [M, r, r'], a matrix per offset; None for a role that does not depend on it
    up      [r', heads * D], from the small space; None if v has no table
    mixing  "sum" or "mean" of the shared and the relative part
    biases  [heads * D], of the shared q, k and v; all or none
    """
    pairs = pairs_text(grid, cls, causal, encoding, sharing, radius)
    return torch.ops.translution.alpha_translution(
        x, [None] * 3 if shared is None else list(shared), list(down), list(table), up, pairs,
        heads, mixing, [], row_list(rows), dropout, angles, *biases, precision, key_padding_mask)


def self_attention(x: Tensor, q: Tensor, k: Tensor, v: Tensor, *, heads: int, grid: Grid = (),
                   cls: bool = False, causal: bool = False, sharing: str = "none", radius: int = 0,
                   biases: Roles = (None, None, None),
                   key_vectors: Optional[Tensor] = None, value_vectors: Optional[Tensor] = None,
                   bias: Optional[Tensor] = None, position: Optional[Tensor] = None,
                   gate: Optional[Tensor] = None, rows: Optional[Rows] = None,
                   key_padding_mask: Optional[Tensor] = None, dropout: float = 0.0,
                   angles: Optional[Tensor] = None, precision: str = "float32") -> Tensor:
    """Self-attention with any of the position terms: [B, N, C] -> [B, N, heads * D].

    q, k, v         [C, heads * D]
    grid            for terms with a row per offset; without them none is needed
    biases          [heads * D], of q, k and v; all or none
    key_vectors     [M, heads * D], added to the keys
    value_vectors   [M, heads * D], added to the values
    bias            [M, heads], added to the scores
    position, gate  [M, heads] and [heads] of gated positional attention
    angles          [N, D / 2] of rotary position
    """
    return torch.ops.translution.self_attention(
        x, q, k, v, heads, pairs_text(grid, cls, causal, "relative", sharing, radius), key_vectors,
        value_vectors, bias, position, gate, [], row_list(rows), dropout, angles, *biases,
        precision, key_padding_mask)


def convolution(x: Tensor, kernel: Tensor, *, grid: Grid, kernel_size: int = 3, cls: bool = False,
                causal: bool = False, rows: Optional[Rows] = None,
                key_padding_mask: Optional[Tensor] = None, precision: str = "float32") -> Tensor:
    """Convolution with zero padding, [B, N, C] -> [B, N, E]; a class token sums over all tokens.

    kernel       [M, C, E], with M = count_rows(grid, cls, causal, sharing="window",
                 radius=kernel_size // 2)
    kernel_size  side of the window, odd
    """
    if kernel_size < 1 or kernel_size % 2 == 0:
        raise ValueError(f"convolution: expected an odd kernel_size of 1 or more, got {kernel_size}")
    pairs = pairs_text(grid, cls, causal, "relative", "window", kernel_size // 2)
    return torch.ops.translution.convolution(x, kernel, pairs, [], row_list(rows), precision,
                                             key_padding_mask)
