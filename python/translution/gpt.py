"""Generative language model."""

from __future__ import annotations

import json
from typing import Any, Dict, Optional, Sequence, Union

import torch
from torch import Tensor, nn

from ._model import Model
from ._signatures import GPTArguments
from ._tokens import Rows
from .block import Backbone, start_vectors
from .linear import Linear
from .norm import LayerNorm


class GPT(GPTArguments, Model):
    """Causal blocks of any method, next-token logits: int64 [B, n] -> [B, n, vocabulary].

    Parameters have the names that C++ gives them, so weights of either load in the other.
    """

    family = "gpt"

    def _build(self, options: Dict[str, Any], device: Any, dtype: Optional[torch.dtype]) -> None:
        super()._build(options, device, dtype)
        o, factory = self.options, dict(device=device, dtype=dtype)
        self.token_embedding = nn.Embedding(o["vocabulary"], o["dim"], **factory)
        self.position_embedding: Optional[nn.Parameter] = None
        if self.plan["embeds_input"]:
            shape = [o["length"], o["dim"]]
            self.position_embedding = start_vectors(shape, o["init"], device, dtype)
        self.dropout = nn.Dropout(o["dropout"])
        self.backbone = Backbone(self.plan["layers"], o["mlp_dim"], o["dropout"], o["gelu"],
                                 o["norm_eps"], o["precision"], **factory)
        self.head_norm = LayerNorm(o["dim"], o["norm_eps"], **factory) if o["extra_norms"] else None
        self.head = Linear(o["dim"], o["vocabulary"], bias=False, precision=o["precision"], **factory)

    def embed(self, input: Tensor) -> Tensor:
        """What the first block sees, [B, n, dim]."""
        most = self.options["length"]
        if input.dim() != 2 or input.dtype != torch.long or not 0 < input.shape[1] <= most:
            raise ValueError(f"GPT: expected int64 tokens [B, 1 to {most}], got {input.dtype} "
                             f"{list(input.shape)}")
        x = self.token_embedding(input)  # [B, n, dim]
        if self.position_embedding is not None:
            positions = self.position_embedding[:input.shape[1]]
            x = torch.ops.translution.add_shared(x, positions)
        return self.dropout(x)

    def forward(self, tokens: Tensor, rows: Optional[Rows] = None,
                key_padding_mask: Optional[Tensor] = None) -> Tensor:
        """With `rows` only the logits at those places. The mask is bool [B, n], True for a token,
        False for padding that no token attends to."""
        features = self.backbone(self.embed(tokens), rows, key_padding_mask)
        return self.head(features if self.head_norm is None else self.head_norm(features))

    def generate(self, tokens: Union[Tensor, Sequence[int]], count: int, *,
                 temperature: float = 1.0, top_k: int = 0, top_p: float = 1.0,
                 seed: int = 0) -> Tensor:
        """The tokens and `count` new ones, drawn one by one as `translution generate` does: int64
        [n] -> [n + count], or [B, n] -> [B, n + count].

        temperature  divides the logits; 0: always the most likely token
        top_k        draw from the k most likely tokens; 0: all
        top_p        draw from the fewest most likely tokens with this total probability
        seed         of the random numbers; row b draws with seed + b

        A text longer than the model's length drops the older half of its context when that is full.
        Dropout is off, in training mode too.
        """
        given = torch.as_tensor(tokens)
        texts = torch.ops.translution.generate(
            json.dumps(self.options), dict(self.state_dict()), given if given.dim() == 2 else
            given.unsqueeze(0), count, temperature, top_k, top_p, seed)
        return texts if given.dim() == 2 else texts[0]
