"""Common base of ViT and GPT: options that the library checks and completes."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Optional

import torch
from torch import Tensor, nn

from ._explain import Explained
from ._options import options_text


class Model(Explained, nn.Module):
    """A network of one family. `options` has all options, `plan` the values derived from them."""

    family = ""

    def _build(self, options: Dict[str, Any], device: Any, dtype: Optional[torch.dtype]) -> None:
        nn.Module.__init__(self)
        #: grid, tokens, cls, causal, embeds_input, and the options of each layer's attention.
        self.plan: Dict[str, Any] = json.loads(
            torch.ops.translution.model_options(self.family, options_text("model", options)))
        #: All options, defaults included; the class called with them builds the same model.
        self.options: Dict[str, Any] = self.plan.pop("options")
        self._require_memory(torch.empty(0, device=device, dtype=dtype))

    def _require_memory(self, example: Tensor) -> None:
        """Raises MemoryError for a model that is larger than the memory, before it is allocated."""
        if example.device.type != "cpu":
            return
        count = torch.ops.translution.count_parameters(self.family, json.dumps(self.options))
        asked, there = count * example.element_size(), torch.ops.translution.usable_bytes()
        if asked > there:
            raise MemoryError(f"{self.family}: {count:,} parameters take {asked / 2**30:.1f} GiB of "
                              f"memory, and there are {there / 2**30:.1f} GiB; choose a smaller model")

    def embed(self, input: Tensor) -> Tensor:
        raise NotImplementedError

    def attention_maps(self, input: Tensor) -> List[Tensor]:
        """One map per block, [B, heads, N, N]; a class token is token 0."""
        return self.backbone.attention_maps(self.embed(input))
