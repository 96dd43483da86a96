"""Vision Transformer."""

from __future__ import annotations

from typing import Any, Dict, Optional

import torch
from torch import Tensor, nn

from ._model import Model
from ._signatures import ViTArguments
from .block import Backbone, start_vectors
from .linear import Linear
from .norm import LayerNorm


class ViT(ViTArguments, Model):
    """Patches, blocks of any method, classes: [B, channels, H, W] -> [B, classes].

    Parameters have the names that C++ gives them, so weights of either load in the other.
    """

    family = "vit"

    def _build(self, options: Dict[str, Any], device: Any, dtype: Optional[torch.dtype]) -> None:
        super()._build(options, device, dtype)
        o, factory = self.options, dict(device=device, dtype=dtype)
        patch_dim = o["channels"] * o["patch_size"] ** 2
        self.patch_norm = self.embed_norm = None
        if o["extra_norms"]:
            self.patch_norm = LayerNorm(patch_dim, o["norm_eps"], **factory)
        self.patch_embed = Linear(patch_dim, o["dim"], precision=o["precision"], **factory)
        if o["extra_norms"]:
            self.embed_norm = LayerNorm(o["dim"], o["norm_eps"], **factory)
        self.cls_token: Optional[nn.Parameter] = None
        if self.plan["cls"]:
            self.cls_token = start_vectors([o["dim"]], o["init"], device, dtype)
        self.position_embedding: Optional[nn.Parameter] = None
        if self.plan["embeds_input"]:
            shape = [self.plan["tokens"], o["dim"]]
            self.position_embedding = start_vectors(shape, o["init"], device, dtype)
        self.dropout = nn.Dropout(o["dropout"])
        self.backbone = Backbone(self.plan["layers"], o["mlp_dim"], o["dropout"], o["gelu"],
                                 o["norm_eps"], o["precision"], **factory)
        self.head = Linear(o["dim"], o["classes"], precision=o["precision"], **factory)

    def embed(self, input: Tensor) -> Tensor:
        """Patch features with class token and position embedding: what the first block sees."""
        o, (rows, cols) = self.options, self.plan["grid"]
        expected = [o["channels"], *o["image_size"]]
        if input.dim() != 4 or list(input.shape[1:]) != expected:
            raise ValueError(f"ViT: expected images [B, {', '.join(map(str, expected))}], got "
                             f"{list(input.shape)}")
        like = self.patch_embed.bias  # the weight may be bfloat16 beside float32
        if (input.dtype, input.device) != (like.dtype, like.device):
            raise ValueError(f"ViT: the images are {input.dtype} on {input.device}, the model is "
                             f"{like.dtype} on {like.device}; convert or move one of them")
        ops, B, P = torch.ops.translution, input.shape[0], o["patch_size"]
        patches = input.reshape(B, o["channels"], rows, P, cols, P)
        patches = patches.permute(0, 2, 4, 3, 5, 1)  # [B, rows, cols, P, P, channels]
        tokens = patches.reshape(B, rows * cols, -1)
        if self.patch_norm is not None:
            tokens = self.patch_norm(tokens)
        tokens = self.patch_embed(tokens)  # [B, rows * cols, dim]
        if self.embed_norm is not None:
            tokens = self.embed_norm(tokens)
        if self.cls_token is not None:
            cls = ops.add_shared(tokens.new_zeros(B, 1, o["dim"]), self.cls_token.unsqueeze(0))
            tokens = torch.cat([cls, tokens], 1)  # [B, N, dim]
        if self.position_embedding is not None:
            tokens = ops.add_shared(tokens, self.position_embedding)
        return self.dropout(tokens)

    def forward(self, image: Tensor) -> Tensor:
        tokens = self.embed(image)
        if self.cls_token is None:
            sums = torch.ops.translution.sum_first(self.backbone(tokens).transpose(0, 1))
            return self.head(sums / tokens.shape[1])
        return self.head(self.backbone(tokens, rows=[0])[:, 0])
