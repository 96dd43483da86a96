"""Models of point clouds."""

from __future__ import annotations

from typing import Any, Dict, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._model import Model
from ._signatures import CloudArguments
from .block import Backbone, start_vectors
from .linear import Linear
from .points import PointPairs, lattice_spacing


class Cloud(CloudArguments, Model):
    """Points with features to classes or a number, with blocks of any method that works on points:

        model = translution.Cloud(model="cloud-a", axes=2, spacing=1.0, channels=1, classes=10)
        logits = model(x, positions, mask)       # [B, N, 1], [B, N, 2], [B, N] -> [B, 10]

    With classes=0 it predicts a number, [B]: the result times options["target_scale"] plus
    options["target_mean"]. All blocks share one list of pairs. Parameters have the names that C++
    gives them, so weights of either load in the other.
    """

    family = "cloud"

    def _build(self, options: Dict[str, Any], device: Any, dtype: Optional[torch.dtype]) -> None:
        super()._build(options, device, dtype)
        o, factory = self.options, dict(device=device, dtype=dtype)
        if o["spacing"] is None:
            raise ValueError("Cloud: the spacing is missing; give it in the unit of the positions")
        self.cls_token: Optional[nn.Parameter] = None
        if self.plan["cls"]:
            self.cls_token = start_vectors([o["dim"]], o["init"], device, dtype)
        given = torch.tensor([o["spacing"]], **factory)
        self.register_buffer("given_spacing", given, persistent=False)
        self.log_spacing = nn.Parameter(given.log()) if o["learn_spacing"] else None
        self.point_embed = Linear(o["channels"], o["dim"], precision=o["precision"], **factory)
        self.position_up = self.position_down = None
        if self.plan["embeds_input"]:
            self.position_up = Linear(o["axes"], o["dim"], precision=o["precision"], **factory)
            self.position_down = Linear(o["dim"], o["dim"], precision=o["precision"], **factory)
        self.dropout = nn.Dropout(o["dropout"])
        points = {name: o[name] for name in ("axes", "spacing", "radius", "sharing", "distances")}
        self.backbone = Backbone(self.plan["layers"], o["mlp_dim"], o["dropout"], o["gelu"],
                                 o["norm_eps"], o["precision"], **factory, points=points)
        self.head = Linear(o["dim"], max(1, o["classes"]), precision=o["precision"], **factory)

    @property
    def spacing(self) -> Tensor:
        """The distance of lattice points, [1]."""
        return lattice_spacing(self.given_spacing, self.log_spacing)  # type: ignore[arg-type]

    def _pairs(self, positions: Tensor, first: Tensor) -> PointPairs:
        o = self.options
        window = o["sharing"] == "window" or o["method"] == "convolution"
        query, key, slots, phi, *rows = torch.ops.translution.list_points(
            positions, self.spacing, first, o["radius"], o["neighbours"], o["cutoff"], window,
            self.plan["cls"], None, None, o["distances"])
        return PointPairs(query, key, slots, phi, rows)

    def _embed_positions(self, positions: Tensor, mask: Optional[Tensor], rows: Tensor,
                         sizes: Tensor) -> Tensor:
        """Coordinates in widths of the lattice, through an MLP."""
        o, at = self.options, rows.double()
        if o["coordinates"] == "centred":
            at = at - _means(positions.double(), mask, sizes).repeat_interleave(sizes, 0)
        at = (at / (o["spacing"] * o["radius"])).to(self.head.bias.dtype)
        assert self.position_up is not None and self.position_down is not None
        hidden = torch.ops.translution.gelu(self.position_up(at), o["gelu"] == "tanh")
        return self.position_down(hidden)

    def forward(self, x: Tensor, positions: Tensor, mask: Optional[Tensor] = None) -> Tensor:
        """Features x [B, N, channels], positions [B, N, axes], mask bool [B, N], True for a point."""
        o, ops = self.options, torch.ops.translution
        if x.dim() != 3 or x.shape[2] != o["channels"]:
            raise ValueError(f"Cloud: expected features [B, N, {o['channels']}], got {list(x.shape)}")
        like = self.head.bias
        if (x.dtype, x.device) != (like.dtype, like.device):
            raise ValueError(f"Cloud: the features are {x.dtype} on {x.device}, the model is "
                             f"{like.dtype} on {like.device}; convert or move one of them")
        rows, at, first = ops.pack_points(x, positions, mask, None, o["channels"], o["axes"])
        _require_points(x, mask, first)
        tokens = self.point_embed(rows)  # [R, dim]
        if self.position_up is not None:
            tokens = tokens + self._embed_positions(positions, mask, at, first.diff())
        B = len(x)
        if self.cls_token is not None:
            cls = ops.add_shared(tokens.new_zeros(B, 1, o["dim"]), self.cls_token.unsqueeze(0))
            tokens = _put_before(cls[:, 0], tokens, first)
            at = _put_before(at.new_zeros(B, o["axes"]), at, first)
            first = first + torch.arange(B + 1, device=first.device)
        tokens = self.backbone.forward_points(self.dropout(tokens), self._pairs(at, first))
        if self.cls_token is not None:
            pooled = tokens.index_select(0, first[:-1])
        else:
            pooled = _means(ops.unpack_points(tokens, mask, *x.shape[:2]), None, first.diff())
        out = self.head(pooled)
        return out if o["classes"] > 0 else out[:, 0]

    def attention_maps(self, input: Tensor) -> List[Tensor]:
        raise NotImplementedError("Cloud: attention maps are drawn by `translution report`")


def _require_points(x: Tensor, mask: Optional[Tensor], first: Tensor) -> None:
    """pack_points leaves clouds without points out."""
    if len(first) == len(x) + 1 and x.shape[1] > 0 or len(x) == 0:
        return
    empty = (~mask.any(1)).tolist() if mask is not None else [True]
    raise ValueError(f"Cloud: cloud {empty.index(True)} has no points; leave it out")


def _means(x: Tensor, mask: Optional[Tensor], sizes: Tensor) -> Tensor:
    """The mean [B, C] of the points of each cloud, x [B, N, C]; without a mask padding is zero."""
    x = x if mask is None else x.masked_fill(~mask[..., None], 0)
    return torch.ops.translution.sum_first(x.transpose(0, 1)) / sizes[:, None].to(x.dtype)


def _put_before(leading: Tensor, rows: Tensor, first: Tensor) -> Tensor:
    """Rows of points [R, …], with a row of `leading` [B, …] before those of each cloud."""
    row, clouds = torch.arange(len(rows), device=rows.device), len(leading)
    cloud = torch.bucketize(row, first, right=True)
    out = F.pad(torch.zeros_like(rows), (0, 0, 0, clouds))
    out = out.index_copy(0, row + cloud, rows)
    return out.index_copy(0, first[:-1] + torch.arange(clouds, device=rows.device), leading)
