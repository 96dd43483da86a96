"""The ops behind PointAttention in plain PyTorch: their definition, what runs without the library, and
the oracle of its tests. They hold a row of channels for every pair."""

from __future__ import annotations

from itertools import product
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import Tensor


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ValueError(f"points: {message}")


def pack_points(x: Tensor, positions: Tensor, mask: Optional[Tensor], batch: Optional[Tensor],
                dim: int, axes: int) -> Tuple[Tensor, Tensor, Tensor]:
    """Rows of all clouds, one after another; their positions; and where each cloud begins."""
    _require(x.dim() in (2, 3), f"x must be [B, N, {dim}] or packed [R, {dim}], got {list(x.shape)}")
    _require(x.shape[-1] == dim, f"x must have {dim} channels, got {x.shape[-1]}")
    _require(positions.shape == (*x.shape[:-1], axes), f"x is {list(x.shape)} and positions are "
             f"{list(positions.shape)}; expected {axes} coordinate{'s' * (axes > 1)} for every token")
    _require(positions.is_floating_point(), "positions must be floating-point numbers, got "
             f"{positions.dtype}; convert them")
    if x.dim() == 3:
        _require(batch is None, "batch belongs to packed x [R, dim]; use mask with [B, N, dim]")
        if mask is None:
            mask = torch.ones(x.shape[:2], dtype=torch.bool, device=x.device)
        _require(mask.dtype == torch.bool, f"the mask must be bool, true for a token, got {mask.dtype}; "
                 "convert it, such as mask != 0")
        _require(mask.shape == x.shape[:2], f"the mask must be {list(x.shape[:2])}, got {list(mask.shape)}")
        x, positions, batch = x[mask], positions[mask], mask.nonzero()[:, 0]
    else:
        _require(mask is None, "mask belongs to padded x [B, N, dim]; use batch with [R, dim]")
        if batch is None:
            batch = torch.zeros(len(x), dtype=torch.long, device=x.device)
        _require(batch.dtype == torch.long and batch.shape == x.shape[:1],
                 f"batch must be int64 [{len(x)}], got {batch.dtype} {list(batch.shape)}")
        _require(len(batch) == 0 or (bool((batch[1:] >= batch[:-1]).all()) and int(batch[0]) >= 0),
                 "batch must ascend from 0 or more: the rows of a cloud stand together; sort by batch")
    return x, positions, F.pad(batch.unique_consecutive(return_counts=True)[1].cumsum(0), (1, 0))


def unpack_points(rows: Tensor, mask: Optional[Tensor], clouds: int, tokens: int) -> Tensor:
    """Rows of padded clouds in their places; zeros at padding."""
    if mask is None:
        return rows.view(clouds, tokens, -1)
    return rows.new_zeros(clouds, tokens, rows.shape[1]).masked_scatter(mask[..., None], rows)


def _given_pairs(query: Tensor, key: Tensor, first: Tensor) -> Tuple[Tensor, Tensor]:
    tokens = int(first[-1])
    for name, index in (("query", query), ("key", key)):
        _require(index.dtype == torch.long and index.dim() == 1,
                 f"{name} of the pairs must be int64 [E], got {index.dtype} {list(index.shape)}")
        wrong = index[(index < 0) | (index >= tokens)]
        _require(len(wrong) == 0, f"{name} of the pairs must be 0 to {tokens - 1}, the tokens, got "
                 f"{int(wrong[0]) if len(wrong) else 0}")
    _require(len(query) == len(key), f"the pairs have {len(query)} queries and {len(key)} keys")
    across = torch.bucketize(query, first, right=True) != torch.bucketize(key, first, right=True)
    for pair in across.nonzero()[:1, 0].tolist():
        _require(False, f"pair {pair} joins the tokens {int(query[pair])} and {int(key[pair])} of different "
                 "clouds")
    order = (query * tokens + key).argsort()
    return query[order], key[order]


def list_points(positions: Tensor, spacing: Tensor, first: Tensor, radius: int, neighbours: int,
                cutoff: float, window: bool, cls: bool, query: Optional[Tensor] = None,
                key: Optional[Tensor] = None, distances: bool = False) -> List[Tensor]:
    """Query, key, slots and phi of the pairs that a layer has, or of those given."""
    special = None
    if cls:
        special = torch.zeros(len(positions), dtype=torch.bool, device=positions.device)
        special[first[:-1][first[1:] > first[:-1]]] = True
        positions = positions.masked_fill(special[:, None], 0)
    if query is not None and key is not None:
        query, key = _given_pairs(query, key, first)
    else:
        query, key = point_pairs(positions.detach(), first, neighbours, cutoff, special)
    if window:
        offset = _offsets(positions.detach(), query, key, distances)
        near = ((offset / spacing.detach().double()).abs() <= radius).all(1)
        near = near if special is None else near | special[query] | special[key]
        query, key = query[near], key[near]
    arguments = (positions, spacing, query, key, radius, special)
    if distances:  # two points on a line for each pair, as far apart as the pair
        apart = _offsets(positions, query, key, distances)
        ends = None if special is None else special[torch.cat([query, key])]
        index = torch.arange(len(query), device=query.device)
        arguments = (torch.cat([apart, torch.zeros_like(apart)]), spacing, index, index + len(index),
                     radius, ends)
    return [query, key, point_slots(*arguments), point_phi(*arguments)]


def _offsets(positions: Tensor, query: Tensor, key: Tensor, distances: bool) -> Tensor:
    """The offset of each pair [E, axes], or its distance [E, 1], in float64."""
    offsets = positions[query].double() - positions[key].double()
    return offsets.norm(dim=1, keepdim=True) if distances else offsets


def point_pairs(positions: Tensor, first: Tensor, neighbours: int = 0, cutoff: float = 0.0,
                special: Optional[Tensor] = None) -> Tuple[Tensor, Tensor]:
    """Query and key of all pairs: the nearest points of each, by distance and then by index."""
    if special is None:
        finite = positions.isfinite().all(1)
    else:
        finite = positions.isfinite().all(1) | special
    for token in (~finite).nonzero()[:1, 0].tolist():
        raise ValueError(f"point_pairs: the position of token {token} is not finite")
    found: List[Tensor] = []
    for begin, end in zip(first[:-1].tolist(), first[1:].tolist()):
        points = positions[begin:end].double()
        free = torch.zeros(end - begin, dtype=torch.bool) if special is None else special[begin:end]
        squared = (points[:, None] - points).square().sum(-1)
        squared = squared.masked_fill(free[None], float("inf"))  # class tokens are added below
        open = squared < float("inf")
        if cutoff > 0:
            open &= squared <= cutoff ** 2
        if neighbours > 0:
            rank = squared.sort(dim=1, stable=True)[1].argsort(1)
            open &= rank < neighbours
        open = open | free[None] | free[:, None]
        found.append(open.nonzero() + begin)
    pairs = torch.cat(found) if found else torch.zeros(0, 2, dtype=torch.long)
    return pairs[:, 0].contiguous(), pairs[:, 1].contiguous()


def _corners(positions: Tensor, spacing: Tensor, query: Tensor, key: Tensor,
             radius: int) -> Tuple[Tensor, Tensor]:
    """The lowest corner of the lattice cell that an offset lies in, and where in the cell it lies."""
    offset = positions[query].double() - positions[key].double()
    u = (offset / spacing.double()).clamp(-radius, radius)
    low = u.detach().floor().clamp(max=radius - 1)
    return low.long() + radius, u - low


def point_slots(positions: Tensor, spacing: Tensor, query: Tensor, key: Tensor, radius: int,
                special: Optional[Tensor] = None) -> Tensor:
    """[E, 2 ** axes]: the slots of the corners of each pair's cell."""
    low, _ = _corners(positions, spacing, query, key, radius)
    axes, side = positions.shape[1], 2 * radius + 1
    slots = []
    for corner in product((0, 1), repeat=axes):
        slot = torch.zeros_like(query)
        for axis, upper in enumerate(corner):
            slot = slot * side + low[:, axis] + upper
        slots.append(slot)
    all_slots = torch.stack(slots, 1)
    if special is None:
        return all_slots
    a, b = special[query], special[key]
    code = torch.where(a & b, 0, torch.where(a, 1, 2)) + side ** axes
    return torch.where((a | b)[:, None], code[:, None], all_slots)


def point_phi(positions: Tensor, spacing: Tensor, query: Tensor, key: Tensor, radius: int,
              special: Optional[Tensor] = None) -> Tensor:
    """[E, 2 ** axes]: the multilinear weight of each corner."""
    _, part = _corners(positions, spacing, query, key, radius)
    phi = []
    for corner in product((0, 1), repeat=positions.shape[1]):
        weight = torch.ones_like(part[:, 0])
        for axis, upper in enumerate(corner):
            weight = weight * (part[:, axis] if upper else 1 - part[:, axis])
        phi.append(weight)
    all_phi = torch.stack(phi, 1).to(spacing.dtype)
    if special is None:
        return all_phi
    one = torch.zeros_like(all_phi)
    one[:, 0] = 1
    return torch.where((special[query] | special[key])[:, None], one, all_phi)


def point_encode(x: Tensor, table: Tensor) -> Tensor:
    """[M, R, W]: every token times the matrix of every slot."""
    return x @ table


def _rows(rows: Tensor, token: Tensor, slots: Tensor, phi: Tensor) -> Tensor:
    """The row of each pair: of its token, or the sum of its taps."""
    if rows.dim() == 2:
        return rows.index_select(0, token)
    R, flat = rows.shape[1], rows.flatten(0, 1)
    at = slots * R + token[:, None] if R > 1 else slots
    return sum(phi[:, t, None] * flat.index_select(0, at[:, t]) for t in range(at.shape[1]))  # type: ignore


def pair_scores(q: Tensor, k: Tensor, query: Tensor, key: Tensor, slots: Tensor, phi: Tensor,
                mirror: List[int], heads: int) -> Tensor:
    """[E, heads]: q_ij . k_ji of each pair and head."""
    at = torch.tensor(mirror, device=slots.device)[slots] if mirror else slots
    dots = _rows(q, query, slots, phi) * _rows(k, key, at, phi)
    return dots.unflatten(1, (heads, -1)).sum(-1)


def pair_softmax(scores: Tensor, query: Tensor, tokens: int, scale: float) -> Tensor:
    """Softmax over the pairs of each query."""
    scores = scores * scale
    index = query[:, None].expand_as(scores)
    start = torch.full((tokens, scores.shape[1]), -float("inf"), dtype=scores.dtype,
                       device=scores.device)
    highest = start.scatter_reduce(0, index, scores.detach(), "amax")
    exponents = (scores - highest[query]).exp()
    return exponents / exponents.new_zeros(tokens, scores.shape[1]).index_add(0, query, exponents)[query]


def pair_mix(weights: Tensor, v: Tensor, query: Tensor, key: Tensor, slots: Tensor, phi: Tensor,
             tokens: int) -> Tensor:
    """[tokens, W]: the sum of weight times row over the pairs of each query."""
    rows = _rows(v, key, slots, phi).unflatten(1, (weights.shape[1], -1))
    rows = (weights[..., None] * rows).flatten(1)
    return rows.new_zeros(tokens, rows.shape[1]).index_add(0, query, rows)
