"""Common base of ViT, GPT and Cloud: options that the library checks and completes."""

from __future__ import annotations

import json
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Type, TypeVar

import torch
from torch import Tensor, nn

from ._explain import Explained
from ._options import options_text
from .block import Backbone

_Module = TypeVar("_Module", bound=nn.Module)


def build_empty(make: Type[_Module], options: Mapping[str, Any], device: Any = None,
                dtype: Optional[torch.dtype] = None) -> _Module:
    """A layer or model whose weights are loaded next: its attention is not initialised, although its
    options say how that would be done."""
    module = make(**{**options, "init": "none"}, device=device, dtype=dtype)
    told = [part.options for part in module.modules() if hasattr(part, "options")]
    for each in told + getattr(module, "plan", {}).get("layers", []):
        each["init"] = options["init"]
    return module


class ModelCost(NamedTuple):
    """The cost of a model, as `translution info` counts it (translution/models/cost.h)."""

    parameters: int
    #: Per sample: matrix products, attention and convolution; 2 per multiply-add.
    forward_flops: int
    #: Per sample: backward takes twice the forward.
    training_flops: int
    #: float32
    weight_bytes: int
    #: With bf16, packed copies of matrices for products in training.
    packed_bytes: int
    #: Weights and the activations of the widest layer.
    evaluation_bytes: int
    #: Weights, gradients, AdamW's two moments, activations, and all others of this list.
    training_bytes: int
    #: Encoded queries and keys that layers save for backward.
    kept_bytes: int
    #: Temporaries of the widest layer in backward.
    work_bytes: int
    #: Accumulators of products with a matrix per offset.
    accumulator_bytes: int


class Model(Explained, nn.Module):
    """A network of one family. `options` has all options, `plan` the values derived from them."""

    family = ""
    backbone: Backbone

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
        count = self.cost().parameters
        asked, there = count * example.element_size(), torch.ops.translution.usable_bytes()
        if asked > there:
            raise MemoryError(f"{self.family}: {count:,} parameters take {asked / 2**30:.1f} GiB of "
                              f"memory, and there are {there / 2**30:.1f} GiB; choose a smaller model")

    def cost(self, batch: int = 1) -> ModelCost:
        """Parameters, FLOPs per sample, and bytes of a step with `batch` samples, from the options
        alone: a model on the device "meta" tells what the same one in memory would cost."""
        text = torch.ops.translution.model_cost(self.family, json.dumps(self.options), batch)
        return ModelCost(**{name: int(count) for name, count in json.loads(text).items()})

    def embed(self, input: Tensor) -> Tensor:
        raise NotImplementedError

    def attention_maps(self, input: Tensor) -> List[Tensor]:
        """One map per block, [B, heads, N, N]; a class token is token 0."""
        return self.backbone.attention_maps(self.embed(input))
