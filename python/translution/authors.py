"""Loads weights of the authors' released code, of GPT-2 and of timm's ViT into our modules."""

from __future__ import annotations

import json
from collections import OrderedDict
from typing import Any, Callable, Dict, Mapping, Optional, Sequence, Type, TypeVar, Union

import torch
from torch import Tensor, nn

from ._model import Model, build_empty
from .attention import Attention
from .gpt import GPT
from .norm import LayerNorm
from .vit import ViT

_MODELS: Dict[str, Type[Model]] = {"vit": ViT, "gpt": GPT}
_Result = TypeVar("_Result")


def _call_op(op: Callable[..., _Result], *arguments: Any) -> _Result:
    """Calls an op; turns its RuntimeError into a ValueError of one line."""
    try:
        return op(*arguments)
    except RuntimeError as error:
        raise ValueError(str(error).split("\n", 1)[0]) from None


def _tensors(state: Mapping[str, Any], source: str) -> Dict[str, Tensor]:
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"{source}: '{name}' is {type(value).__name__}, expected a tensor; pass "
                             "the state_dict of the model")
    return {name: value.detach() for name, value in state.items()}


def _fill(module: nn.Module, weights: Mapping[str, Tensor]) -> nn.Module:
    first = next(iter(weights.values()))
    module.to(first.dtype).load_state_dict(weights)
    return module


class NormedAttention(nn.Sequential):
    """A layer as in the authors' code: a norm, then attention."""

    def __init__(self, attention: Attention) -> None:
        super().__init__(OrderedDict(norm=LayerNorm(attention.options["dim"]),
                                     attention=attention))


def from_authors(
    family: str,
    state_dict: Mapping[str, Any],
    kind: str = "layer",
    *,
    source: str = "state_dict",
    dim: Optional[int] = None,
    heads: Optional[int] = None,
    dim_head: Optional[int] = None,
    relative_dim: Optional[int] = None,
    grid: Optional[Union[int, Sequence[int]]] = None,
    cls: Optional[bool] = None,
    causal: Optional[int] = None,
    depth: Optional[int] = None,
    mlp_dim: Optional[int] = None,
    hybrid_layers: Optional[int] = None,
    pos_embedding: Optional[bool] = None,
    image_size: Optional[Union[int, Sequence[int]]] = None,
    patch_size: Optional[int] = None,
    num_classes: Optional[int] = None,
    channels: Optional[int] = None,
    seq_len: Optional[int] = None,
    vocab_size: Optional[int] = None,
    dim_relenc: Optional[int] = None,
    tln_num: Optional[int] = None,
) -> nn.Module:
    """Our module that computes the same as the authors', with its weights and dtype.

    family      former, rope_former, rope, lor_rope, or some of q, k, v: "qkv", "lor_kv"; for a
                model also a name with its size: "lor_qkv_tiny"
    state_dict  of their module
    kind        "layer": a norm and attention, as `norm` and `attention` in one module; "vit"; "gpt"
    source      what messages call the weights

    The others are those of their constructor: dim, heads, dim_head, relative_dim (or dim_relenc); for
    a layer grid, cls, or causal=length; for a model depth, mlp_dim, hybrid_layers (or tln_num),
    pos_embedding; for a vit image_size, patch_size, num_classes, channels; for a gpt seq_len,
    vocab_size.

    A state_dict of another module is refused: ValueError with the name that does not fit.
    """
    given = dict(
        dim=dim, heads=heads, dim_head=dim_head, relative_dim=relative_dim, grid=grid, cls=cls,
        causal=causal, depth=depth, mlp_dim=mlp_dim, hybrid_layers=hybrid_layers,
        pos_embedding=pos_embedding, image_size=image_size, patch_size=patch_size,
        num_classes=num_classes, channels=channels, seq_len=seq_len, vocab_size=vocab_size,
        dim_relenc=dim_relenc, tln_num=tln_num)
    texts = {name: str(value) for name, value in given.items() if value is not None}
    described = json.loads(_call_op(torch.ops.translution.authors_options, family, kind, texts))
    own = described if kind == "layer" else described["options"]
    weights = _call_op(torch.ops.translution.from_authors, family, kind, json.dumps(own),
                   _tensors(state_dict, source), source)
    make: Type[nn.Module] = Attention if kind == "layer" else _MODELS[kind]
    module: Any = build_empty(make, own)
    return _fill(NormedAttention(module) if kind == "layer" else module, weights)


def to_authors(module: nn.Module, family: str = "") -> Dict[str, Tensor]:
    """The state_dict of the authors' module that computes the same as ours: a ViT, a GPT, or a layer
    by from_authors. Masks and rotary tables, which their code saves, are in it; those of their
    "rope", which computes what "v" does and never uses its tables, if that is the family."""
    kind = module.family if isinstance(module, Model) else "layer"
    if kind == "layer" and not isinstance(module, NormedAttention):
        raise ValueError(f"to_authors: expected a ViT, a GPT or a NormedAttention, got "
                         f"{type(module).__name__}")
    described: Any = module if kind != "layer" else module.attention
    weights = {name: value.detach() for name, value in module.named_parameters()}
    return dict(_call_op(torch.ops.translution.to_authors, family, kind, json.dumps(described.options),
                         weights, "module"))


def _convert(format: str, state_dict: Mapping[str, Any], source: str) -> Any:
    settings, weights = _call_op(torch.ops.translution.convert_weights, format, {},
                             _tensors(state_dict, source), source)
    family, plan = torch.ops.translution.model_of_settings(settings)
    return _fill(build_empty(_MODELS[family], json.loads(plan)["options"]), weights)


def from_gpt2(state_dict: Mapping[str, Any], *, source: str = "state_dict") -> GPT:
    """GPT-2 under the names of Hugging Face; sizes are read off the tensors."""
    return _convert("gpt2", state_dict, source)


def from_timm(state_dict: Mapping[str, Any], *, source: str = "state_dict") -> ViT:
    """timm's vit_* with a class token; sizes are read off the tensors."""
    return _convert("timm", state_dict, source)
