"""The kinds of attention that `swap` replaces: how each is recognised, what its weights are, and how it
is called. Each is one `Host`."""

from __future__ import annotations

from typing import Any, Callable, Mapping, NamedTuple, Optional, Sequence, Tuple

import torch
from torch import Tensor, nn

from ._compat import is_compiling


class Weights(NamedTuple):
    """The weights of plain attention, in our layout."""

    roles: Sequence[Tensor]             # q, k, v: [dim, heads * dim_head] each
    biases: Optional[Sequence[Tensor]]  # q, k, v: [heads * dim_head] each
    out: Tensor                         # [dim, heads * dim_head]
    out_bias: Optional[Tensor]          # [dim]


class Size(NamedTuple):
    """The sizes of an attention module."""

    dim: int
    heads: int
    dim_head: int
    dropout: float  # of the attention map
    scale: float    # of the scores


class Place(NamedTuple):
    """Where the tokens of a model are."""

    grid: Optional[Tuple[int, ...]] = None  # None: the caller has to say it
    cls: bool = False


class Host(NamedTuple):
    """What swap knows of one kind of attention."""

    name: str
    classes: Tuple[str, ...]                          # full names
    parts: Tuple[str, ...]                            # parameters and submodules that are replaced
    refusal: Callable[[Any], str]                     # why a module cannot be swapped, or ""
    size: Callable[[Any], Size]
    weights: Callable[[Mapping[str, Tensor]], Weights]  # from the module's state_dict
    place: Callable[[Sequence[Any]], Place]           # from the modules around it, nearest first
    forward: Callable[..., Any]                       # of the new module
    embedding: str = ""                               # position embedding in a module around it
    causal: bool = False
    # What in the model bypasses its new layers.
    turn_off: Optional[Callable[[nn.Module, Sequence[nn.Module]], None]] = None


# --- masks


def _open(mask: Tensor, host: str) -> Tensor:
    """An additive mask (0 and -inf, or the lowest number) or a boolean one as bool, True: open."""
    if mask.dtype == torch.bool:
        return mask
    if not mask.is_floating_point():
        return mask != 0
    opened = mask == 0
    if not is_compiling() and not (opened | (mask <= torch.finfo(mask.dtype).min)).all():
        raise ValueError(f"swap: {host}: expected a mask that opens or closes pairs, got one that adds "
                         "other numbers to the scores; swapped layers take no such bias")
    return opened


def _token_mask(mask: Any, N: int, causal: bool, host: str) -> Optional[Tensor]:
    """The tokens [B, N] of a mask [B, N] or [B, 1, N, N] that is causal order and padding."""
    if mask is None:
        return None
    if not isinstance(mask, Tensor) or mask.shape[-1] != N or mask.dim() not in (2, 4):
        shown = list(mask.shape) if isinstance(mask, Tensor) else type(mask).__name__
        raise ValueError(f"swap: {host}: expected an attention mask [B, {N}] or [B, 1, {N}, {N}], got "
                         f"{shown}")
    if mask.dim() == 2:
        return mask != 0
    pairs = _open(mask, host)
    tokens = pairs[:, 0, -1]  # the last token sees all others
    if is_compiling():
        return tokens
    expected = tokens[:, None, None].expand_as(pairs)
    if causal:
        expected = expected & torch.ones(N, N, dtype=torch.bool, device=pairs.device).tril()
    # Rows of padding are not looked at: hosts open them at will.
    if not ((pairs == expected) | ~tokens[:, None, :, None]).all():
        raise ValueError(f"swap: {host}: expected a mask of {'causal order and ' if causal else ''}"
                         "padding; swapped layers take no other")
    return None if tokens.all() else tokens


def _with_map(module: Any, x: Tensor, tokens: Optional[Tensor]) -> Tuple[Tensor, Optional[Tensor]]:
    """Output and attention map, as a host with eager attention gives them; else the output."""
    mask = {} if tokens is None else dict(key_padding_mask=tokens.expand(len(x), -1))
    if module.config._attn_implementation == "eager":
        return module.attention.forward_with_map(x, **mask)
    return module.attention(x, **mask), None


# --- timm: Attention of vision_transformer.py, also in deit


def _timm_refusal(m: Any) -> str:
    norms = [getattr(m, name, None) for name in ("q_norm", "k_norm", "norm")]
    if not all(norm is None or isinstance(norm, nn.Identity) for norm in norms):
        return "it normalises queries and keys or its output (qk_norm, scale_norm)"
    if getattr(m, "gate", None) is not None:
        return "its output is gated"
    if m.proj.out_features != m.qkv.in_features:
        return f"it has {m.qkv.in_features} input and {m.proj.out_features} output channels"
    return ""


def _timm_size(m: Any) -> Size:
    D = m.qkv.out_features // (3 * m.num_heads)
    return Size(m.qkv.in_features, m.num_heads, D, m.attn_drop.p, float(m.scale))


def _timm_weights(t: Mapping[str, Tensor]) -> Weights:
    biases = t["qkv.bias"].chunk(3) if "qkv.bias" in t else None
    return Weights([w.t() for w in t["qkv.weight"].chunk(3)], biases, t["proj.weight"],
                   t.get("proj.bias"))


def _timm_place(around: Sequence[Any]) -> Place:
    for m in around:
        if hasattr(m, "patch_embed") and hasattr(m, "num_prefix_tokens"):
            if m.num_prefix_tokens > 1:
                raise ValueError(f"swap: {type(m).__name__} has {m.num_prefix_tokens} tokens before "
                                 "those of the grid; one class token or none can be swapped")
            return Place(tuple(m.patch_embed.grid_size), m.num_prefix_tokens == 1)
    return Place()


def _timm_forward(self: Any, x: Tensor, attn_mask: Optional[Tensor] = None,
                  is_causal: bool = False) -> Tensor:
    if attn_mask is not None or is_causal:
        raise ValueError("swap: timm's attention was called with a mask; swapped layers of a ViT take "
                         "none")
    return self.proj_drop(self.attention(x))


# --- torch.nn.MultiheadAttention


def _torch_refusal(m: Any) -> str:
    if not m._qkv_same_embed_dim:
        return "its keys or values have other channels than its queries (kdim, vdim)"
    if m.bias_k is not None or m.add_zero_attn:
        return "it adds keys and values of its own (add_bias_kv, add_zero_attn)"
    return ""


def _torch_size(m: Any) -> Size:
    return Size(m.embed_dim, m.num_heads, m.head_dim, m.dropout, m.head_dim ** -0.5)


def _torch_weights(t: Mapping[str, Tensor]) -> Weights:
    biases = t["in_proj_bias"].chunk(3) if "in_proj_bias" in t else None
    return Weights([w.t() for w in t["in_proj_weight"].chunk(3)], biases, t["out_proj.weight"],
                   t.get("out_proj.bias"))


def _torch_forward(self: Any, query: Tensor, key: Tensor, value: Tensor,
                   key_padding_mask: Optional[Tensor] = None, need_weights: bool = True,
                   attn_mask: Optional[Tensor] = None, average_attn_weights: bool = True,
                   is_causal: bool = False) -> Tuple[Tensor, Optional[Tensor]]:
    host = "MultiheadAttention"
    if query is not key or key is not value:
        raise ValueError("swap: a swapped MultiheadAttention is self-attention: expected the same tensor "
                         "as query, key and value; leave other layers out with layers=")
    x = query[None] if query.dim() == 2 else query if self.batch_first else query.transpose(0, 1)
    N, causal = x.shape[1], self.attention.options["causal"]
    if (attn_mask is not None or is_causal) != causal:
        raise ValueError(f"swap: {host} was swapped with causal={causal} and is called "
                         f"{'without a causal mask' if causal else 'with a mask'}; pass causal= to swap")
    if causal and attn_mask is not None and not is_compiling():
        # PyTorch's boolean masks are True where a pair is closed.
        opened = ~attn_mask if attn_mask.dtype == torch.bool else _open(attn_mask, host)
        if opened.shape != (N, N) or not torch.equal(opened, torch.ones_like(opened).tril()):
            raise ValueError(f"swap: {host}: expected a causal attn_mask [{N}, {N}], got another one")
    tokens = key_padding_mask
    if tokens is not None:
        tokens = ~tokens if tokens.dtype == torch.bool else _open(tokens, host)
        tokens = tokens[None] if tokens.dim() == 1 else tokens
    mask = {} if tokens is None else dict(key_padding_mask=tokens)
    if need_weights:
        out, map = self.attention.forward_with_map(x, **mask)
        map = map.mean(1) if average_attn_weights else map
    else:
        out, map = self.attention(x, **mask), None
    if query.dim() == 2:
        return out[0], None if map is None else map[0]
    return out if self.batch_first else out.transpose(0, 1), map


def _torch_turn_off(model: nn.Module, swapped: Sequence[nn.Module]) -> None:
    """Fast paths read the old weights or pass nested tensors."""
    for m in model.modules():
        if isinstance(m, nn.TransformerEncoder):
            m.enable_nested_tensor = m.use_nested_tensor = False
    for m in swapped:
        m.__dict__.update(in_proj_bias=None, _qkv_same_embed_dim=False)


# --- Hugging Face transformers 5: ViTAttention


def _vit_refusal(m: Any) -> str:
    return "" if hasattr(m, "q_proj") else "it is not that of transformers 5"


def _vit_size(m: Any) -> Size:
    return Size(m.q_proj.in_features, m.num_attention_heads, m.head_dim, m.attention_dropout, m.scaling)


def _vit_weights(t: Mapping[str, Tensor]) -> Weights:
    names = ("q_proj", "k_proj", "v_proj")
    biases = [t[f"{n}.bias"] for n in names] if "q_proj.bias" in t else None
    return Weights([t[f"{n}.weight"].t() for n in names], biases, t["o_proj.weight"],
                   t.get("o_proj.bias"))


def _vit_place(around: Sequence[Any]) -> Place:
    for m in around:
        patches = getattr(getattr(m, "embeddings", None), "patch_embeddings", None)
        if patches is not None:
            sides = (patches.image_size, patches.patch_size)
            (h, w), (p, q) = [(s, s) if isinstance(s, int) else tuple(s) for s in sides]
            return Place((h // p, w // q), cls=True)
    return Place()


def _vit_forward(self: Any, hidden_states: Tensor, attention_mask: Optional[Tensor] = None,
                 **kwargs: Any) -> Tuple[Tensor, Optional[Tensor]]:
    tokens = _token_mask(attention_mask, hidden_states.shape[1], False, "ViTAttention")
    return _with_map(self, hidden_states, tokens)


# --- Hugging Face transformers 5: GPT2Attention


def _gpt2_refusal(m: Any) -> str:
    return "" if hasattr(m, "scaling") else "it is not that of transformers 5"


def _gpt2_size(m: Any) -> Size:
    # `scaling` has the options scale_attn_weights and scale_attn_by_inverse_layer_idx.
    return Size(m.embed_dim, m.num_heads, m.head_dim, m.attn_dropout.p, m.scaling)


def _gpt2_weights(t: Mapping[str, Tensor]) -> Weights:  # Conv1D weights are [in, out]
    return Weights(t["c_attn.weight"].chunk(3, 1), t["c_attn.bias"].chunk(3), t["c_proj.weight"].t(),
                   t["c_proj.bias"])


def _gpt2_place(around: Sequence[Any]) -> Place:
    for m in around:
        if hasattr(m, "wpe"):
            return Place((m.wpe.num_embeddings,))
    return Place()


def _gpt2_forward(self: Any, hidden_states: Tensor, past_key_values: Any = None,
                  attention_mask: Optional[Tensor] = None,
                  encoder_hidden_states: Optional[Tensor] = None,
                  encoder_attention_mask: Optional[Tensor] = None, output_attentions: bool = False,
                  **kwargs: Any) -> Tuple[Tensor, Optional[Tensor]]:
    if past_key_values is not None:
        raise ValueError("swap: a swapped GPT-2 cannot use a cache, since its keys and values depend on "
                         "the distance to the query; call it with use_cache=False, as swap set it in "
                         "model.config and model.generation_config")
    if encoder_hidden_states is not None:
        raise ValueError("swap: swapped attention is self-attention and takes no encoder_hidden_states")
    tokens = _token_mask(attention_mask, hidden_states.shape[1], True, "GPT2Attention")
    out, map = _with_map(self, hidden_states, tokens)
    return self.resid_dropout(out), map


def _gpt2_turn_off(model: nn.Module, swapped: Sequence[nn.Module]) -> None:
    for m in model.modules():
        config: Any
        for config in (getattr(m, "config", None), getattr(m, "generation_config", None)):
            if hasattr(config, "use_cache"):
                config.use_cache = False


HOSTS = (
    Host("timm", ("timm.layers.attention.Attention", "timm.models.vision_transformer.Attention"),
         ("qkv", "q_norm", "k_norm", "attn_drop", "norm", "proj"), _timm_refusal, _timm_size, _timm_weights,
         _timm_place, _timm_forward, "pos_embed"),
    Host("torch.nn", ("torch.nn.modules.activation.MultiheadAttention",),
         ("in_proj_weight", "in_proj_bias", "out_proj"), _torch_refusal, _torch_size, _torch_weights,
         lambda around: Place(), _torch_forward, turn_off=_torch_turn_off),
    Host("transformers ViT", ("transformers.models.vit.modeling_vit.ViTAttention",),
         ("q_proj", "k_proj", "v_proj", "o_proj"), _vit_refusal, _vit_size, _vit_weights, _vit_place,
         _vit_forward, "embeddings.position_embeddings"),
    Host("transformers GPT-2", ("transformers.models.gpt2.modeling_gpt2.GPT2Attention",),
         ("c_attn", "c_proj", "attn_dropout"), _gpt2_refusal, _gpt2_size, _gpt2_weights, _gpt2_place,
         _gpt2_forward, "wpe.weight", causal=True, turn_off=_gpt2_turn_off),
)


def host_of(kind: type) -> Any:
    """The host of a class of modules, or None."""
    name = f"{kind.__module__}.{kind.__qualname__}"
    return next((host for host in HOSTS if name in host.classes), None)
