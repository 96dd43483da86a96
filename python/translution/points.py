"""Attention between points, whose positions are numbers: point clouds, molecules, anything without a
grid.

    layer = translution.PointAttention(dim=96, heads=3, axes=3, spacing=0.1, radius=2, neighbours=16)
    y = layer(x, positions)                      # [B, N, 96], [B, N, 3]

A grid has a matrix for each offset between two tokens. Here these matrices stand at the points of a
lattice, `spacing` apart, and the matrix of an offset between them is read multilinearly: on a grid the
layer computes what `Attention` does, with the same parameters. It is equivariant to translation; not to
rotation or scaling. The formulas are in docs/points.md.
"""

from __future__ import annotations

import math
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import _point_ops
from ._library import BUILT
from ._signatures import Init, Method, Mixing, Precision
from .attention import Attention
from .reference import _NOT_MULTIPLIED, ReferenceAttention, _rounded

METHODS = ("self_attention_no_pos", "self_attention", "relative_key", "relative_value", "relative_bias",
           "alpha_translution", "translution", "convolution")


class PointPairs(NamedTuple):
    """The pairs of a packed batch, and where they lie on the lattice: PointAttention.pairs."""

    query: Tensor  #: int64 [E], ascending
    key: Tensor    #: int64 [E], ascending for each query
    slots: Tensor  #: int64 [E, T], of the taps
    phi: Tensor    #: [E, T], how much of each tap
    rows: Sequence[Tensor] = ()  #: which rows the encodings have, for the kernels


# The spacing that is learned stays within this factor of the one that is given.
_MOST_CHANGE = 4.0
# How much the matrices of a table differ at the start, as a fraction of their size.
_START_NOISE = 0.1


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"points: {message}")


def lattice_spacing(given: Tensor, log_spacing: Optional[Tensor]) -> Tensor:
    """The distance of lattice points: that given, or the learned one beside it."""
    if log_spacing is None:
        return given
    most, start = math.log(_MOST_CHANGE), given.log()
    return (start + ((log_spacing - start) / most).tanh() * most).exp()


class _Points:
    """What PointAttention and ReferencePointAttention have in common."""

    options: Dict[str, Any]
    _names: List[str]
    _ops: Any

    def _set_geometry(self, axes: int, spacing: Union[float, Sequence[float]], radius: int,
                      neighbours: Optional[int], cutoff: Optional[float], sharing: str,
                      learn_spacing: bool, distances: bool) -> None:
        self.axes, self.radius, self.sharing, self.distances = axes, radius, sharing, distances
        self.neighbours, self.cutoff = neighbours or 0, cutoff or 0.0
        like = self.out.weight  # type: ignore[attr-defined]
        numbers = [spacing] if isinstance(spacing, (int, float)) else list(spacing)
        _require(not distances or len(numbers) == 1, f"distances have one spacing, got {len(numbers)}")
        _require(len(numbers) in (1, axes), f"spacing must have 1 number or one for each of {axes} axes, "
                 f"got {len(numbers)}")
        for number in numbers:
            _require(0 < number < math.inf, f"spacing must be positive, got {number}; give it in the unit of "
                     "the positions")
        given = torch.tensor(numbers, dtype=like.dtype, device=like.device)
        self.register_buffer("given_spacing", given, persistent=False)  # type: ignore[attr-defined]
        if learn_spacing:
            self.log_spacing = nn.Parameter(given.log())

    def _make_structures(self) -> None:
        """None: those of Attention are of grids."""

    @property
    def spacing(self) -> Tensor:
        """The distance of lattice points, [1] or [axes]."""
        return lattice_spacing(self.given_spacing,  # type: ignore[attr-defined]
                               getattr(self, "log_spacing", None))

    def _initial_parameters(self, device: Any, dtype: Optional[torch.dtype]) -> Dict[str, Tensor]:
        """Matrices of a table start close to the first one: independent ones would average out between
        the points of the lattice."""
        found: Dict[str, Tensor] = super()._initial_parameters(device, dtype)  # type: ignore[misc]
        for name, value in found.items():
            if value.dim() == 3 and name != "kernel" and self.options["init"] == "scaled":
                first = value[:1] * math.sqrt(1 - _START_NOISE ** 2)
                found[name] = first + _START_NOISE * value
        return found

    def reset_parameters(self) -> None:
        """Initialises all weights again."""
        super().reset_parameters()  # type: ignore[misc]
        if hasattr(self, "log_spacing"):
            with torch.no_grad():
                self.log_spacing.copy_(self.given_spacing.log())  # type: ignore[attr-defined]

    def pairs(self, positions: Tensor, first: Tensor,
              given: Optional[Tuple[Tensor, Tensor]] = None) -> PointPairs:
        """The pairs of packed points [R, axes], of which cloud c has rows first[c] … first[c + 1] - 1;
        `given` are query and key of pairs that are known already."""
        query, key, slots, phi, *rows = self._ops.list_points(
            positions, self.spacing, first, self.radius, self.neighbours, self.cutoff,
            self.sharing == "window", self.options["cls"], *(given or (None, None)), self.distances)
        return PointPairs(query, key, slots, phi, rows)

    def forward(self, x: Tensor, positions: Tensor, mask: Optional[Tensor] = None,
                batch: Optional[Tensor] = None,
                pairs: Optional[Tuple[Tensor, Tensor]] = None) -> Tensor:
        """Padded clouds x [B, N, dim], positions [B, N, axes], mask bool [B, N], True for a token; or
        packed ones x [R, dim], positions [R, axes], batch int64 [R], the cloud of each row, ascending.

        pairs  (query, key), int64 [E] each, row numbers of the packed batch: who attends to whom,
               instead of `neighbours` and `cutoff`. The edge_index of PyTorch Geometric is (key, query)

        With cls, the first token of each cloud has no position; what `positions` has there is not
        read. Positions may be float64 beside a float32 layer: offsets are computed in float64. Padding
        gives zeros. A point without keys gives `out.bias`.
        """
        rows, at, first = self._ops.pack_points(x, positions, mask, batch, self.options["dim"], self.axes)
        out = self._project(self.attend(rows, self.pairs(at, first, pairs)))  # type: ignore[attr-defined]
        return out if x.dim() == 2 else self._ops.unpack_points(out, mask, *x.shape[:2])


def _check_options(axes: int, radius: int, method: str, neighbours: Optional[int],
                   cutoff: Optional[float], sharing: str) -> None:
    _require(axes in (1, 2, 3), f"axes must be 1, 2 or 3, got {axes}")
    _require(radius >= 1, f"radius must be 1 or more lattice points to each side, got {radius}")
    _require(method in METHODS, f"method '{method}' does not work on points; expected one of "
             f"{', '.join(METHODS)}")
    _require(sharing in ("direction", "window"), f"sharing must be 'direction', which moves an offset "
             f"beyond the lattice to its border, or 'window', which drops it; got '{sharing}'")
    _require(neighbours is None or neighbours >= 1, f"neighbours must be 1 or more, or None for all; "
             f"got {neighbours}")
    _require(cutoff is None or cutoff > 0, f"cutoff must be positive, or None; got {cutoff}")


class PointAttention(_Points, Attention):  # type: ignore[misc]  # forward takes positions
    """Multi-head attention between points, with output projection.

    dim, heads, dim_head  as of Attention
    axes                  numbers of a position: 1, 2 or 3
    spacing               between the points of the lattice, in the unit of the positions; one number,
                          or one for each axis
    radius                lattice points to each side: (2 radius + 1) ** axes matrices per table
    method                see METHODS; with "convolution" offsets beyond the lattice are dropped
    neighbours            number of nearest points that a point attends to, itself included (all)
    cutoff                farthest point that a point attends to (any)
    sharing               offsets beyond the lattice: "direction" moves them to its border, "window"
                          drops their pairs
    distances             the offset of a pair is its distance, on a lattice with one axis: no rotation
                          or reflection changes the result
    learn_spacing         the spacing is a parameter, `log_spacing`; it stays within a quarter and four
                          times of `spacing`
    cls                   the first token of each cloud has no position and is paired with all
    others                as of Attention

    Parameters have the names and shapes of an Attention with the grid (radius + 1, …), with one side
    for distances, so its weights load here. With init "scaled" the matrices of a table start close to each other. As points move,
    those beyond `neighbours` or `cutoff` are exchanged and the output jumps.
    """

    _ops: Any = torch.ops.translution

    def __init__(self, dim: int, heads: int = 1, dim_head: Optional[int] = None, *, axes: int,
                 spacing: Union[float, Sequence[float]], radius: int = 1,
                 method: Method = "translution", neighbours: Optional[int] = None,
                 cutoff: Optional[float] = None, sharing: str = "direction",
                 learn_spacing: bool = False, distances: bool = False, cls: bool = False, roles: str = "qkv",
                 relative_dim: int = 8, relative_dim_out: int = 0, shared_qkv: bool = True,
                 mixing: Mixing = "sum", qkv_bias: bool = False, dropout: float = 0.0,
                 init: Init = "scaled", precision: Precision = "float32",
                 device: Optional[Union[str, torch.device]] = None,
                 dtype: Optional[torch.dtype] = None) -> None:
        _check_options(axes, radius, method, neighbours, cutoff, sharing)
        super().__init__(dim, heads, dim_head, grid=(radius + 1,) * (1 if distances else axes), cls=cls, method=method,
                         roles=roles, kernel_size=2 * radius + 1, relative_dim=relative_dim,
                         relative_dim_out=relative_dim_out, shared_qkv=shared_qkv, mixing=mixing,
                         qkv_bias=qkv_bias, dropout=dropout, init=init, precision=precision,
                         device=device, dtype=dtype)
        self._set_geometry(axes, spacing, radius, neighbours, cutoff,
                           "window" if method == "convolution" else sharing, learn_spacing, distances)

    def attend(self, x: Tensor, pairs: PointPairs) -> Tensor:
        """The layer before `out`: packed rows [R, dim] -> [R, heads * dim_head]."""
        o = self.options
        return torch.ops.translution.point_attention(
            x, ",".join(self._names), [getattr(self, name) for name in self._names],
            [*pairs[:4], *pairs.rows], o["heads"], o["dim_head"], o["mixing"],
            o["dropout"] if self.training else 0.0, o["precision"])

    def extra_repr(self) -> str:
        o = self.options
        spacing = [round(h, 6) for h in self.spacing.tolist()]
        near = "".join(f", {name}={value}" for name, value in (("neighbours", self.neighbours),
                                                                ("cutoff", self.cutoff)) if value)
        return (f"{o['dim']}, heads={o['heads']}, dim_head={o['dim_head']}, axes={self.axes}, "
                f"spacing={spacing}, radius={self.radius}, method={o['method']}{near}")


class ReferencePointAttention(PointAttention, ReferenceAttention):  # type: ignore[misc]
    """PointAttention in plain PyTorch, with its arguments and parameters."""

    _ops = _point_ops

    def attend(self, x: Tensor, pairs: PointPairs) -> Tensor:
        """The layer before `out`: packed rows [R, dim] -> [R, heads * dim_head]."""
        o, ops, R, H = self.options, _point_ops, len(x), self.options["heads"]
        query, key, slots, phi = pairs[:4]
        mirror = list(range((2 * self.radius + 1) ** (1 if self.distances else self.axes)))[::-1]
        mirror += [len(mirror) + i for i in range(3 * o["cls"])]
        fix: Callable[[Tensor], Tensor] = _rounded if o["precision"] == "bf16" else lambda x: x
        w = {name: getattr(self, name) for name in self._names}
        w = {name: value if name in _NOT_MULTIPLIED or value.dim() < 2 else fix(value)
             for name, value in w.items()}
        x = fix(x)

        def encoded(rows: Tensor, table: Tensor) -> Tensor:
            if table.shape[1] > rows.shape[1]:  # the last row of each matrix is a bias
                rows = F.pad(rows, (0, 1), value=1.0)
            return ops.point_encode(rows, table)

        def side(name: str) -> Tensor:
            if w[name].dim() == 3:
                return encoded(x, w[name])
            out = x @ w[name]
            return out + w[name + "_bias"] if name + "_bias" in w else out

        def scores(q: Tensor, k: Tensor, mirrored: bool = True) -> Tensor:
            opposite = mirror if mirrored and k.dim() == 3 else []
            return ops.pair_scores(q, k, query, key, slots, phi, opposite, H)

        def mix(weights: Tensor, v: Tensor) -> Tensor:
            return ops.pair_mix(weights, v, query, key, slots, phi, R)

        def small(name: str) -> Tensor:
            rows, table = x @ w[name + "_down"], w.get(name + "_offsets")
            return rows if table is None else encoded(fix(rows), table)

        if "kernel" in w:
            return mix(x.new_ones(len(query), 1), encoded(x, w["kernel"]))
        score: Any = 0
        if "query" in w:
            q = side("query")
            if "key_vectors" in w:
                score = scores(q, w["key_vectors"][:, None], mirrored=False)
            score = score + scores(q, side("key"))
        if "query_down" in w:
            score = score + scores(small("query"), small("key"))
        mean = o["mixing"] == "mean"
        both = mean and "query" in w and "query_down" in w
        score = score * ((0.5 if both else 1.0) / math.sqrt(o["dim_head"]))
        if "bias" in w:
            score = score + scores(x.new_ones(R, H), w["bias"][:, None], mirrored=False)
        weights = ops.pair_softmax(score, query, R, 1.0)
        if self.training and o["dropout"] > 0:
            weights = F.dropout(weights, o["dropout"])
        out: Any = 0
        if "value" in w:
            out = mix(weights, side("value"))
        if "value_vectors" in w:
            out = out + mix(weights, w["value_vectors"][:, None])
        if "value_down" in w:
            out = out + fix(mix(weights, small("value"))) @ w["value_up"]
            out = out / 2 if mean and "value" in w else out
        return out


if not BUILT:
    PointAttention = ReferencePointAttention  # type: ignore[misc]
