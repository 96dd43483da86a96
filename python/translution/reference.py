"""The whole family of attention layers in plain PyTorch, without libtranslution.so.

    layer = translution.ReferenceAttention(192, heads=3, grid=(7, 7), cls=True)
    y = layer(torch.randn(2, 50, 192))

ReferenceAttention takes the arguments of Attention and has its parameters, so state_dicts load both
ways. `attend` is the layer as a function, which Attention itself calls where the library has no
kernels. Both run on any device and in any floating type, compile as a whole (torch.compile with
fullgraph=True, PyTorch 2) and have derivatives of any order. They have not been run on a GPU.
docs/op.md has the formulas.

Products: all slots with equally many pairs are one `bmm`, such as the offsets +-dy, +-dx of a grid.
A grid of rows x cols with a class token takes at most rows * cols + 3 products per relative role;
7x7 takes 25.

Memory: with P pairs (N * N without causal order or window), C input channels and E output channels
of a table, a relative role gathers the tokens of all pairs, P * B * C numbers, and encodes them into
P * B * E. Autograd saves both until backward. The tables are copied once. Key and value vectors take
N * N * E numbers. There is never a matrix per pair.

The sum over keys is an `index_add`; on a GPU its order varies from call to call unless
torch.use_deterministic_algorithms(True) is set.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, Mapping, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import _layout
from ._layout import Structure
from ._signatures import AlphaTranslutionArguments, TranslutionArguments
from ._tokens import Grid, Relation, Rows
from .attention import Attention

_NOT_MULTIPLIED = ("key_vectors", "value_vectors", "bias", "position_weight")


def _heads(x: Tensor, H: int) -> Tensor:
    return x.reshape(*x.shape[:-1], H, x.shape[-1] // H)


def _rotate(x: Tensor, cosine: Tensor, sine: Tensor, H: int) -> Tensor:
    """Rotates channel d of each head against channel d + D/2: x [B, N, H*D], cosine [N, D/2]."""
    a, b = _heads(x, H).chunk(2, -1)
    cosine, sine = cosine.unsqueeze(1), sine.unsqueeze(1)
    return torch.cat([a * cosine - b * sine, b * cosine + a * sine], -1).flatten(2)


def _encode(x: Tensor, table: Optional[Tensor], tokens: Tensor, slots: Tensor,
            s: Structure) -> Tensor:
    """x[token] W[slot] of all pairs, [P, B, E]; without a table x[token]."""
    rows = x.transpose(0, 1).index_select(0, tokens)  # [P, B, C]
    if table is None:
        return rows
    P, B, C = rows.shape
    matrices = table.index_select(0, slots).split([number for number, _ in s.groups])
    parts = rows.split([number * pairs for number, pairs in s.groups])
    products = [torch.bmm(part.reshape(number, pairs * B, C), W).flatten(0, 1)
                for (number, pairs), part, W in zip(s.groups, parts, matrices)]
    return torch.cat(products or [rows.new_zeros(0, table.shape[2])]).view(P, B, table.shape[2])


def _scores(q: Tensor, table_q: Optional[Tensor], k: Tensor, table_k: Optional[Tensor],
            s: Structure, H: int, dtype: torch.dtype) -> Tensor:
    """q_ij . k_ji of all pairs, [B, H, Nq, N]."""
    if table_q is None and table_k is None:
        return (_heads(q, H).transpose(1, 2) @ _heads(k, H).permute(0, 2, 3, 1)).to(dtype)
    Q, K = _encode(q, table_q, s.query, s.slot, s), _encode(k, table_k, s.key, s.key_slot, s)
    dots = F.pad(_heads(Q * K, H).sum(-1, dtype=dtype), (0, 0, 0, 0, 0, 1))  # [P + 1, B, H]
    dots = dots.index_select(0, s.place).view(q.shape[1], k.shape[1], len(q), H)
    return dots.permute(2, 3, 0, 1)


def _weighted_sum(weights: Optional[Tensor], v: Tensor, table: Optional[Tensor], s: Structure,
                  Nq: int, H: int, dtype: torch.dtype) -> Tensor:
    """sum_j weights_ij v_ij, [B, Nq, E]; without weights all are 1."""
    if table is None:
        assert weights is not None
        return (weights.to(v.dtype) @ _heads(v, H).transpose(1, 2)).transpose(1, 2).flatten(2)
    V = _encode(v, table, s.key, s.slot, s)  # [P, B, E]
    if weights is not None:
        at_pairs = weights.permute(2, 3, 0, 1).flatten(0, 1).index_select(0, s.pair)  # [P, B, H]
        V = (at_pairs.unsqueeze(-1) * _heads(V, H)).flatten(2)
    out = V.new_zeros(Nq, len(v), table.shape[2], dtype=dtype).index_add(0, s.query, V.to(dtype))
    return out.transpose(0, 1).to(v.dtype)


def _softmax(scores: Tensor, closed: Optional[Tensor]) -> Tensor:
    """Softmax over the keys that are not closed; a row without such keys gives zeros."""
    if closed is None:
        return scores.softmax(-1)
    lowest = torch.finfo(scores.dtype).min  # -inf gives NaN in a row that is closed altogether
    return scores.masked_fill(closed, lowest).softmax(-1).masked_fill(closed, 0)


def _rounded(x: Tensor) -> Tensor:
    return x.to(torch.bfloat16).to(x.dtype)


def attend(x: Tensor, weights: Mapping[str, Tensor], structure: Structure,
           options: Mapping[str, Any], key_padding_mask: Optional[Tensor] = None,
           dropout: float = 0.0) -> Tuple[Tensor, Tensor]:
    """A layer without its output projection, and its attention map before dropout.

    x                 [B, N, dim]
    weights           the layer's parameters by name
    structure         of the tokens: ReferenceAttention.structure
    options           ReferenceAttention.options
    key_padding_mask  bool [B, N], True for a token; others are no keys and no values
    returns           [B, Nq, heads * dim_head] and [B, heads, Nq, N]; a row without keys is zero
    """
    s, H, (B, N, _) = structure, options["heads"], x.shape
    dtype = torch.promote_types(x.dtype, torch.float32)  # of scores and sums
    fix: Callable[[Tensor], Tensor] = _rounded if options.get("precision") == "bf16" else lambda x: x
    w = {name: value if name in _NOT_MULTIPLIED or value.dim() < 2 else fix(value)
         for name, value in weights.items()}
    given, x = x.dtype, fix(x)
    queries = x if s.rows is None else x.index_select(1, s.rows)  # [B, Nq, dim]
    Nq, closed = queries.shape[1], getattr(s, "closed", None)
    if not s.groups and options["causal"] and closed is None:
        tokens = torch.arange(N, device=x.device)
        closed = tokens > (tokens if s.rows is None else s.rows)[:, None]  # [Nq, N]
    if key_padding_mask is not None:
        # Zeros keep contents such as NaN out of products with weights that are zero.
        x = x.masked_fill(~key_padding_mask[..., None], 0)
        masked = ~key_padding_mask[:, None, None]
        closed = masked if closed is None else masked | closed

    if "kernel" in w:
        map = torch.ones(B, H, Nq, N, dtype=given, device=x.device)
        sums = _weighted_sum(None, x, w["kernel"], s, Nq, H, dtype)
        return sums.to(given), map if closed is None else map.masked_fill(closed, 0)

    def side(features: Tensor, name: str) -> Tuple[Tensor, Optional[Tensor]]:
        """Features and table of a role, or its projection by a shared matrix."""
        if w[name].dim() == 3:
            if w[name].shape[1] > features.shape[2]:  # the last row of each matrix is a bias
                features = F.pad(features, (0, 1), value=1.0)
            return features, w[name]
        out = features @ w[name]
        return fix(out + w[name + "_bias"] if name + "_bias" in w else out), None

    def at_slots(name: str) -> Tensor:
        return w[name].index_select(0, s.row).view(Nq, N, -1)

    score: Any = 0
    if "query" in w:
        (q, table_q), (k, table_k) = side(queries, "query"), side(x, "key")
        if "key_vectors" in w:
            vectors = _heads(at_slots("key_vectors"), H)
            score = torch.einsum("bihd,ijhd->bhij", _heads(q, H), vectors).to(dtype)
        if hasattr(s, "cosine"):
            k = _rotate(k, s.cosine, s.sine, H)
            cosine, sine = (t if s.rows is None else t.index_select(0, s.rows)
                            for t in (s.cosine, s.sine))
            q = _rotate(q, cosine, sine, H)
        score = score + _scores(q, table_q, k, table_k, s, H, dtype)
    if "query_down" in w:
        small_q, small_k = fix(queries @ w["query_down"]), fix(x @ w["key_down"])
        score = score + _scores(small_q, w.get("query_offsets"), small_k, w.get("key_offsets"), s,
                                H, dtype)
    mean = options["mixing"] == "mean"
    both = mean and "query" in w and "query_down" in w
    score = score * ((0.5 if both else 1.0) / math.sqrt(options["dim_head"]))
    if "bias" in w:
        score = score + at_slots("bias").permute(2, 0, 1)
    map = _softmax(score, closed)
    if "gate" in w:
        position = (s.features @ w["position_weight"]).index_select(0, s.row).view(Nq, N, H)
        gate = w["gate"].to(dtype).sigmoid().view(-1, 1, 1)
        map = (1 - gate) * map + gate * _softmax(position.permute(2, 0, 1).to(dtype), closed)

    applied = F.dropout(map, dropout) if dropout > 0 else map
    out: Any = 0
    if "value" in w:
        out = _weighted_sum(applied, *side(x, "value"), s, Nq, H, dtype)
    if "value_vectors" in w:
        vectors = _heads(at_slots("value_vectors"), H)
        out = out + torch.einsum("bhij,ijhd->bihd", applied.to(vectors.dtype), vectors).flatten(2)
    if "value_down" in w:
        small_v = fix(x @ w["value_down"])
        small = _weighted_sum(applied, small_v, w.get("value_offsets"), s, Nq, H, dtype)
        out = out + fix(small) @ w["value_up"]
        out = out / 2 if mean and "value" in w else out
    return out.to(given), map.to(given).detach()


class ReferenceAttention(Attention):
    """Attention in plain PyTorch, with its arguments and parameters. `workspace` has no effect."""

    def _build(self, options: Dict[str, Any], relation: Optional[Relation], device: Any,
               dtype: Optional[torch.dtype]) -> None:
        self._begin(options, relation)
        self.options = o = _layout.complete_options(options, relation)
        self.tokens = math.prod(o["grid"]) + o["cls"] if o["grid"] else 0
        self._slots = _layout.find_slots(o, relation)
        if relation is not None:
            self.tokens = len(relation.slots)
        self._pairs = "" if self._slots.of_pairs is None else "offsets"
        self._register_parameters(device, dtype)
        self.out = nn.Linear(o["heads"] * o["dim_head"], o["dim"], device=device, dtype=dtype)
        self._make_structures()

    def _initial_parameters(self, device: Any, dtype: Optional[torch.dtype]) -> Dict[str, Tensor]:
        M = 0 if self._slots.mirror is None else len(self._slots.mirror)
        return _layout.initial_parameters(self.options, M, device, dtype)

    def _make_structures(self) -> None:
        self._modules.pop("structures", None)
        self.structure()

    def _attend(self, x: Tensor, rows: Optional[Rows], mask: Optional[Tensor],
                grid: Optional[Grid], map: bool) -> Tuple[Tensor, Tensor]:
        return self._attend_plain(x, rows, mask, grid)

    def _project(self, attended: Tensor) -> Tensor:
        if self.options["precision"] == "bf16":
            return F.linear(_rounded(attended), _rounded(self.out.weight), self.out.bias)
        return self.out(attended)


class ReferenceTranslution(TranslutionArguments, ReferenceAttention):
    """ReferenceAttention with a full matrix per offset for queries, keys and values."""

    _method = "translution"


class ReferenceAlphaTranslution(AlphaTranslutionArguments, ReferenceAttention):
    """ReferenceAttention with a small matrix per offset, beside shared ones."""

    _method = "alpha_translution"
