"""What a layer of reference.py derives from its options: slots and index tensors, tables of the grid,
parameters."""

from __future__ import annotations

import math
from typing import (TYPE_CHECKING, Any, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    get_args)

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from . import _signatures
from ._tokens import Grid, Relation, grid_list

_ROTARY_BASE = 10000.0


def grid_slots(grid: Sequence[int], cls: bool = False, causal: bool = False,
               encoding: str = "relative", sharing: str = "none", radius: int = 0,
               ) -> Tuple[Tensor, Tensor, Tensor]:
    """The slot of every pair [N, N], -1 for no pair; the key slot of every slot [M]; the offset of
    every slot [M, axes], zeros for those of a class token."""
    sides = [torch.arange(side, device="cpu") for side in grid]
    position = torch.stack(torch.meshgrid(*sides, indexing="ij"), -1).reshape(-1, len(sides))
    N = len(position) + (cls if encoding == "absolute" else 0)
    open = torch.ones(N, N, dtype=torch.bool, device="cpu")
    open = open.tril() if causal else open
    if encoding == "absolute":
        slots = (open.flatten().cumsum(0) - 1).view(N, N).masked_fill(~open, -1)
        return slots, (slots if causal else slots.t())[open], position[:0]
    delta = position[:, None] - position  # [N, N, axes]
    far, bucket = delta.abs() > radius, delta
    if sharing == "window":
        open = open & ~far.any(-1)
    elif sharing == "direction":
        shared = torch.where(far, delta.sign() * (radius + 1), torch.zeros_like(delta))
        bucket = torch.where(far.any(-1, keepdim=True), shared, delta)
    elif sharing == "logarithmic":
        ratio = torch.div(delta.abs().clamp(min=radius + 1), radius + 1, rounding_mode="floor")
        distance = radius + 1 + ratio.double().log2().floor().long()
        bucket = torch.where(far, delta.sign() * distance, delta)
    code, reach = torch.zeros(N, N, dtype=torch.long, device="cpu"), max(grid) + radius + 1
    for axis in range(len(sides)):  # a number per bucket, in lexicographic order
        code = code * (2 * reach + 1) + bucket[..., axis] + reach
    codes, slot_of_pair = torch.unique(code[open], return_inverse=True)
    M = len(codes)
    slots = torch.full((N, N), -1, device="cpu").masked_scatter(open, slot_of_pair)
    mirror = torch.arange(M + 3 * cls, device="cpu")
    if not causal:
        mirror[slots[open]] = slots.t()[open]
    offsets = torch.zeros(M + 3 * cls, len(sides), dtype=torch.long, device="cpu")
    offsets[slots[open]] = bucket[open]
    if cls:
        slots = F.pad(slots, (1, 0, 1, 0))
        slots[0, 0], slots[0, 1:], slots[1:, 0] = M, -1 if causal else M + 1, M + 2
    return slots, mirror, offsets


def relation_slots(relation: Relation, causal: bool) -> Tuple[Tensor, Tensor]:
    """The slots of a relation, and the key slot of every slot."""
    slots = relation.slots.cpu()
    if slots.dim() != 2 or slots.shape[0] != slots.shape[1] or slots.dtype != torch.long:
        raise RuntimeError("relation: expected slots as an int64 tensor [N, N], got "
                           f"{slots.dtype} {list(slots.shape)}")
    if slots.min() < -1 or slots.max() >= relation.num_slots:
        raise ValueError(f"relation: expected -1 for no pair or 0 to {relation.num_slots - 1}, got "
                         f"{int(slots.min())} to {int(slots.max())}")
    if len(relation.mirror):
        mirror = torch.tensor(list(relation.mirror), device="cpu")
    else:
        own, reverse = slots[slots >= 0], torch.where(slots.t() < 0, slots, slots.t())[slots >= 0]
        mirror = torch.arange(relation.num_slots, device="cpu")
        mirror[own] = reverse
        if not torch.equal(mirror[own], reverse):
            raise ValueError("relation: pairs of one slot have different key slots; pass the key "
                             "slot of each slot as `mirror`")
    if len(mirror) != relation.num_slots or mirror.min() < 0 or mirror.max() >= len(mirror):
        raise ValueError(f"relation: expected a mirror of {relation.num_slots} slots from 0 to "
                         f"{relation.num_slots - 1}, got {mirror.tolist()}")
    return slots.masked_fill(torch.ones_like(slots).triu(1) > 0, -1) if causal else slots, mirror


class Slots(NamedTuple):
    """The slots of a layer, on the CPU; None where the method has none."""

    of_pairs: Optional[Tensor]  #: [N, N]
    mirror: Optional[Tensor]    #: key slot of each slot, [M]
    offsets: Optional[Tensor]   #: of each slot, [M, axes]; None for a relation


def find_slots(o: Mapping[str, Any], relation: Optional[Relation]) -> Slots:
    if not uses_offsets(o):
        return Slots(None, None, None)
    if relation is not None:
        return Slots(*relation_slots(relation, o["causal"]), None)
    sharing, radius = o["sharing"], o["radius"]
    if o["method"] == "convolution":
        sharing, radius = "window", o["kernel_size"] // 2
    return Slots(*grid_slots(o["grid"], o["cls"], o["causal"], o["encoding"], sharing, radius))


class Structure(nn.Module):
    """The index tensors of a call, as buffers.

    slots   [Nq, N] slot of each pair, -1 for none; None for a method without offsets
    mirror  [M] key slot of each slot
    rows    [Nq] query tokens; None for all
    tables  further buffers: cosine and sine [N, D / 2], features [M, F]
    """

    if TYPE_CHECKING:
        query: Tensor
        key: Tensor
        slot: Tensor
        key_slot: Tensor
        place: Tensor
        pair: Tensor
        row: Tensor
        rows: Optional[Tensor]
        cosine: Tensor
        sine: Tensor
        features: Tensor

    def __init__(self, slots: Optional[Tensor] = None, mirror: Optional[Tensor] = None,
                 rows: Optional[Tensor] = None, **tables: Optional[Tensor]) -> None:
        super().__init__()
        self.of: Any = None  # the grid and rows of a layer that it is for
        self.groups: List[Tuple[int, int]] = []  # slots of a product, pairs of each slot
        if slots is not None and mirror is not None:
            Nq, N = slots.shape
            query, key = (slots >= 0).nonzero(as_tuple=True)
            used, slot, count = torch.unique(slots[query, key], return_inverse=True,
                                             return_counts=True)
            by_count = count.sort(stable=True)[1]
            rank = torch.empty_like(by_count)
            rank[by_count] = torch.arange(len(used), device="cpu")
            order = rank[slot].sort(stable=True)[1]
            query, key, used = query[order], key[order], used[by_count]
            pairs, numbers = torch.unique_consecutive(count[by_count], return_counts=True)
            self.groups = list(zip(numbers.tolist(), pairs.tolist()))
            place = torch.full((Nq * N,), len(query), device="cpu")  # of a pair; last: no pair
            place[query * N + key] = torch.arange(len(query), device="cpu")
            closed = None if (slots >= 0).all() else slots < 0
            tables.update(query=query, key=key, slot=used, key_slot=mirror[used], place=place,
                          pair=query * N + key, row=slots.clamp(min=0).flatten(), closed=closed)
        for name, value in dict(tables, rows=rows).items():
            self.register_buffer(name, value, persistent=False)


def grid_tables(o: Mapping[str, Any], offsets: Optional[Tensor]) -> Dict[str, Tensor]:
    """Cosine and sine of the rotary angles [N, D / 2], and features of the offsets [M, F]."""
    tables: Dict[str, Tensor] = {}
    if rotates(o):
        dtype = torch.float64 if o["angles"] == "double" else torch.float32
        n = o["dim_head"] // (2 * len(o["grid"]))
        exponent = torch.arange(n, dtype=dtype, device="cpu") / n
        frequency = torch.pow(_ROTARY_BASE, exponent).reciprocal()
        sides = [torch.arange(side, dtype=dtype, device="cpu") for side in o["grid"]]
        angles = torch.cat([axis.reshape(-1, 1) * frequency
                            for axis in torch.meshgrid(*sides, indexing="ij")], 1)
        angles = F.pad(angles, (0, 0, 1, 0)) if o["cls"] else angles
        tables.update(cosine=angles.cos(), sine=angles.sin())
    if o["method"] == "gated_position" and offsets is not None:
        parts = [offsets.square().sum(1, keepdim=True), offsets]
        if o["cls"]:
            parts.append(F.pad(torch.eye(3, device="cpu"), (0, 0, len(offsets) - 3, 0)))
        tables["features"] = torch.cat([part.double() for part in parts], 1)
    return tables


def rotates(o: Mapping[str, Any]) -> bool:
    return o["rotary"] or o["method"] == "rotary"


def uses_offsets(o: Mapping[str, Any]) -> bool:
    if o["method"] in ("translution", "alpha_translution"):
        return o["roles"] != "none" and (o["method"] == "translution" or o["relative_dim"] > 0)
    return o["method"] not in ("self_attention_no_pos", "self_attention", "rotary")


def complete_options(options: Mapping[str, Any], relation: Optional[Relation]) -> Dict[str, Any]:
    """The options with a grid as a list and roles in order; ValueError for a contradiction."""
    def require(condition: Any, message: str) -> None:
        if not condition:
            raise ValueError(message)

    o, grid, roles = dict(options), options["grid"], options["roles"]
    o["grid"] = [grid] if isinstance(grid, int) else list(grid)
    require(roles == "none" or roles and set(roles) <= set("qkv"),
            f"roles: expected some of q, k, v, or none, got '{roles}'")
    if o["dim_head"] is None:
        require(o["heads"] > 0 and o["dim"] % o["heads"] == 0, f"attention: dim {o['dim']} does not "
                f"divide into {o['heads']} heads; set dim_head, the channels per head")
        o["dim_head"] = o["dim"] // o["heads"]
    o["roles"] = roles if roles == "none" else "".join(r for r in "qkv" if r in roles)
    for name in ("method", "encoding", "sharing", "angles", "mixing", "init", "precision"):
        names = get_args(getattr(_signatures, name.capitalize()))
        require(o[name] in names, f"unknown {name} '{o[name]}'; expected {', '.join(names)}")
    for name, least in dict(dim=1, heads=1, dim_head=1, relative_dim=0, relative_dim_out=0, radius=0,
                            kernel_size=1).items():
        require(o[name] >= least, f"attention: expected {name} of {least} or more, got {o[name]}")
    method, full = o["method"], o["method"] == "translution"
    alpha, window = method == "alpha_translution", method == "convolution"
    require(0 <= o["dropout"] < 1, "attention: expected a dropout probability in [0, 1), got "
            f"{o['dropout']}")
    require(o["kernel_size"] % 2 == 1, "convolution: expected an odd kernel_size of 1 or more, got "
            f"{o['kernel_size']}")
    require(all(side > 0 for side in o["grid"]), f"grid: expected sides above 0, got {o['grid']}")
    require(o["grid"] or relation is not None or not (uses_offsets(o) or rotates(o)),
            f"grid: expected one or more sides for {method}, got none")
    require(o["encoding"] == "relative" or o["sharing"] == "none" and not window,
            "attention: encoding absolute takes neither sharing nor method convolution")
    require(not alpha or o["relative_dim"] > 0 or o["shared_qkv"] and o["relative_dim_out"] == 0,
            "alpha_translution: relative_dim 0 needs shared_qkv and relative_dim_out 0")
    without = alpha and not o["shared_qkv"]
    require(not o["qkv_bias"] or not (window or without), "attention: qkv_bias needs W^q, W^k, "
            f"W^v, got {method}{' without shared_qkv' if without else ''}")
    if rotates(o):
        require(not (full and set(o["roles"]) & set("qk") or window or alpha and not o["shared_qkv"]),
                f"rotary: {method} with roles {roles} has no shared queries and keys to rotate")
        require(relation is None, "rotary: expected the coordinates of a grid, not a relation")
        require(o["dim_head"] % (2 * len(o["grid"])) == 0, f"rotary: a head of {o['dim_head']} "
                f"channels does not split into pairs for {len(o['grid'])} axes")
    require(method != "gated_position" or relation is None and o["encoding"] == "relative"
            and o["sharing"] == "none", "gated_position: expected the offsets of a grid, encoding "
            "relative and sharing none")
    return o


def require_grid(grid: Sequence[int], o: Mapping[str, Any], relation: Optional[Relation]) -> None:
    """RuntimeError for the grid of a call that does not fit into that of the layer."""
    shown, largest, least = "x".join(map(str, grid)), o["grid"], 0 if o["cls"] else 1
    if relation is not None or not largest:
        built = "without a grid" if relation is None else "for a relation"
        raise RuntimeError(f"attention: got the grid {shown}, but this layer was built {built}; leave "
                           "out the grid")
    if len(grid) != len(largest) or any(not least <= a <= b for a, b in zip(grid, largest)):
        raise RuntimeError(f"attention: expected a grid of at most {'x'.join(map(str, largest))}, got "
                           f"{shown}; build the layer for the largest grid")


def grid_of_tokens(N: int, named: Optional[Grid], o: Mapping[str, Any],
                   relation: Optional[Relation], most: int) -> Optional[Tuple[int, ...]]:
    """The grid of N tokens: the one that the call names, a shorter one, or None: the layer's, which
    has `most` tokens."""
    cls, grid = int(o["cls"]), tuple(grid_list(named))
    if grid:
        require_grid(grid, o, relation)
        if N != math.prod(grid) + cls:
            raise RuntimeError(f"attention: x has {N} tokens, the grid {'x'.join(map(str, grid))}"
                               f"{' with class token' if cls else ''} has {math.prod(grid) + cls}")
        return grid
    shorter = relation is None and len(o["grid"]) == 1
    if shorter and max(cls, 1) <= N < most:
        return (N - cls,)
    if most > 0 and N != most:
        raise RuntimeError(f"attention: x has {N} tokens, this layer was built for "
                           f"{'1 to ' if shorter else ''}{most}")
    return None


def parameter_shapes(o: Mapping[str, Any], M: int) -> Dict[str, Tuple[Tuple[int, ...], int]]:
    """Shape and input channels of every parameter; 0 channels for one that is no matrix."""
    C, H, E, method = o["dim"], o["heads"], o["heads"] * o["dim_head"], o["method"]
    shapes: Dict[str, Tuple[Tuple[int, ...], int]] = {}
    if method == "convolution":
        return {"kernel": ((M, C, E), C)}
    alpha, roles = method == "alpha_translution", "" if o["roles"] == "none" else o["roles"]
    names, full = dict(query="q", key="k", value="v"), roles if method == "translution" else ""
    if not alpha or o["shared_qkv"]:
        for name, role in names.items():
            rows = C + o["qkv_bias"]  # the last row of each slot's matrix is its bias
            shapes[name] = ((M, rows, E) if role in full else (C, E), C)
    if o["qkv_bias"]:
        shapes.update({name + "_bias": ((E,), 0) for name, role in names.items() if role not in full})
    r, r_out = o["relative_dim"] * H, (o["relative_dim_out"] or o["relative_dim"]) * H
    for name, role in names.items() if alpha and r else ():
        if not o["shared_qkv"] or set("v" if role == "v" else "qk") & set(roles):
            shapes[name + "_down"] = ((C, r if role in roles else r_out), C)
            if role in roles:
                shapes[name + "_offsets"] = ((M, r, r_out), r)
            if role == "v":
                shapes["value_up"] = ((r_out, E), r_out)
    of_position: Dict[str, Dict[str, Tuple[int, ...]]] = {
        "relative_key": dict(key_vectors=(M, E)), "relative_value": dict(value_vectors=(M, E)),
        "relative_bias": dict(bias=(M, H)), "gated_position": dict(
            position_weight=(len(o["grid"]) + 1 + 3 * o["cls"], H), gate=(H,))}
    shapes.update({name: (shape, 0) for name, shape in of_position.get(method, {}).items()})
    return shapes


def initial_parameters(o: Mapping[str, Any], M: int, device: Any,
                       dtype: Optional[torch.dtype]) -> Dict[str, Tensor]:
    """Initialised parameters; the same numbers as the library draws."""
    parameters: Dict[str, Tensor] = {}
    for name, (shape, fan_in) in parameter_shapes(o, M).items():
        value = parameters[name] = torch.empty(shape, device=device, dtype=dtype)
        if o["init"] == "none":
            continue
        if fan_in > 0:
            fan = fan_in * (shape[2] if o["init"] == "authors" and len(shape) == 3 else 1)
            value.uniform_(-1 / math.sqrt(fan), 1 / math.sqrt(fan))
            if len(shape) == 3:
                value[:, fan_in:] = 0  # bias rows
        elif name.endswith("_bias") or name == "gate":
            value.fill_(1.0 if name == "gate" else 0.0)
        else:
            value.normal_(0, 0.02)
            if name == "position_weight":
                value[0] = -1  # nearer is stronger
    return parameters
