"""Replaces the attention of a model, often a pretrained one, without changing what it computes.

    model = timm.create_model("vit_small_patch16_224", pretrained=True)
    translution.swap(model, "alpha_translution")

The new layers take the weights of the old ones, and their relative parts start so that they add
nothing: the output stays the same to rounding, and training moves them from there. Known are timm's
ViT attention, torch.nn.MultiheadAttention, and the ViT and GPT-2 attention of Hugging Face
transformers 5. Each is one `Host` below.
"""

from __future__ import annotations

import functools
import math
import sys
from typing import (Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    Union)

import torch
from torch import Tensor, nn

from ._compat import is_compiling
from ._signatures import Encoding, Precision, Sharing

#: Methods that can start as plain attention.
METHODS = ("translution", "alpha_translution", "relative_bias", "relative_key", "relative_value",
           "self_attention", "self_attention_no_pos")
_ROLES = ("query", "key", "value")
# Parameters that plain attention has as well.
_TAKEN = _ROLES + tuple(role + "_bias" for role in _ROLES) + ("out.weight", "out.bias")
# Zero at the start: of each group the first that a layer has. The others get a gradient from it.
_ZERO = (("query_offsets", "key_offsets"), ("value_offsets",), ("bias",), ("key_vectors",),
         ("value_vectors",))

#: Which layers to swap: positions among those found, names of modules, or a function of the name.
Layers = Union[None, int, str, Sequence[Union[int, str]], Callable[[str], bool]]


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
    turn_off: Optional[Callable[[nn.Module], None]] = None  # what in the model bypasses new layers


class SwapReport(NamedTuple):
    """What swap did, or with dry_run would do. Sizes are those of the whole model."""

    method: str
    layers: List[str]
    grid: Tuple[int, ...]
    cls: bool
    parameters: Tuple[int, int]  # before, after
    bytes: Tuple[int, int]

    def __str__(self) -> str:
        grid = "x".join(map(str, self.grid)) + (" with class token" if self.cls else "")
        where = f", grid {grid}" if self.grid else ""
        before, after = map(_count, self.parameters)
        old, new = map(_megabytes, self.bytes)
        number = f"{len(self.layers)} layer{'s' if len(self.layers) > 1 else ''}"
        return f"swap: {number} to {self.method}{where}: {before} -> {after} parameters, {old} -> {new}"


def _count(number: int) -> str:
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if number >= unit:
            return f"{number / unit:.1f}{name}"
    return f"{number:,}"


def _megabytes(number: int) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.1f} MB"


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


def _torch_turn_off(model: nn.Module) -> None:
    """Fast paths read the old weights or pass nested tensors."""
    for m in model.modules():
        if isinstance(m, nn.TransformerEncoder):
            m.enable_nested_tensor = m.use_nested_tensor = False
        if isinstance(m, Swapped) and isinstance(m, nn.MultiheadAttention):
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


def _gpt2_turn_off(model: nn.Module) -> None:
    for m in model.modules():
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


# --- the new module: the old object, of a class that derives from the old one


class Swapped(nn.Module):
    """The base of swapped modules. Such a module is still an instance of its old class, with its
    hooks and attributes; its weights are in `attention`. It loads the old weights as well."""

    _host: Host
    _scale: float
    attention: Any

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        old = {name[len(prefix):]: name for name in list(state_dict) if name.startswith(prefix)
               and name[len(prefix):].split(".")[0] in self._host.parts}
        if old:
            tensors = {name: state_dict.pop(full) for name, full in old.items()}
            try:
                started = _started(self.attention, self._host.weights(tensors), self._scale)
            except (KeyError, RuntimeError):  # a missing name, another shape
                o, started = self.attention.options, self.attention.state_dict()
                shapes = ", ".join(f"{name} {list(value.shape)}" for name, value in tensors.items())
                args[-1].append(f"{prefix[:-1]}: expected all weights of {self._host.name} with dim {o['dim']} "
                                f"and {o['heads']} heads of {o['dim_head']}, got {shapes}")
            if args[0].get("assign_to_params_buffers"):  # keeps the tensors, which are views for all slots
                started = {name: value.clone(memory_format=torch.contiguous_format)
                           for name, value in started.items()}
            state_dict.update({f"{prefix}attention.{name}": value for name, value in started.items()})
        super()._load_from_state_dict(state_dict, prefix, *args)

    def __reduce__(self) -> Any:  # the class is made when it is needed, so pickle cannot name it
        return _blank, (type(self).__mro__[2],), self.__dict__


@functools.lru_cache(maxsize=None)
def _swapped_class(base: type) -> type:
    host = _host_of(base)
    return type("Swapped" + base.__name__, (Swapped, base),
                {"forward": host.forward, "_host": host, "__module__": __name__})


def _blank(base: type) -> nn.Module:
    made = _swapped_class(base)
    return made.__new__(made)


def _host_of(kind: type) -> Any:
    name = f"{kind.__module__}.{kind.__qualname__}"
    return next((host for host in HOSTS if name in host.classes), None)


def _started(layer: Any, weights: Weights, scale: float) -> Dict[str, Tensor]:
    """The state of a layer that computes what `weights` do; other parameters as they are. Tables are
    views of one matrix."""
    state = dict(layer.state_dict())
    # Our scores are divided by sqrt(dim_head); another scale becomes part of the queries.
    factor = scale * math.sqrt(layer.options["dim_head"])
    for n, role in enumerate(_ROLES):
        matrix, bias = weights.roles[n], weights.biases and weights.biases[n]
        if role == "query" and not math.isclose(factor, 1):
            matrix, bias = matrix * factor, None if bias is None else bias * factor
        if bias is not None and state[role].dim() == 3:
            matrix = torch.cat([matrix, bias[None]])
        elif bias is not None:
            state[f"{role}_bias"] = bias
        state[role] = matrix.expand_as(state[role])
    zero = weights.out.new_zeros(())
    state["out.weight"] = weights.out
    state["out.bias"] = zero.expand_as(state["out.bias"]) if weights.out_bias is None else weights.out_bias
    for names in _ZERO:
        for name in [name for name in names if name in state][:1]:
            state[name] = zero.expand_as(state[name])
    return state


def _replace(module: Any, layer: nn.Module) -> None:
    """Makes `module` a swapped one around `layer`, which takes its weights."""
    host, size = _host_of(type(module)), _host_of(type(module)).size(module)
    state, frozen = module.state_dict(), not next(module.parameters()).requires_grad
    for name, value in _started(layer, host.weights(state), size.scale).items():
        target = layer.get_parameter(name)
        target.data.copy_(value)
        if frozen and target.dim() < 3 and name in _TAKEN:
            target.requires_grad_(False)
    for name in host.parts:
        if hasattr(module, name):
            delattr(module, name)
    module.__class__ = _swapped_class(type(module))
    module._scale = size.scale
    module.attention = layer.train(module.training)


# --- finding layers and sizes


class _Found(NamedTuple):
    name: str
    module: Any
    host: Host
    around: Sequence[Any]  # modules that contain it, nearest first


def _find(model: nn.Module) -> List[_Found]:
    modules = dict(model.named_modules())
    found = []
    for name, module in modules.items():
        host, parts = _host_of(type(module)), name.split(".") if name else []
        around = [modules[".".join(parts[:n])] for n in reversed(range(len(parts)))]
        if host is not None and not _is_cross_attention(module, parts, around):
            found.append(_Found(name, module, host, around))
    return found


def _is_cross_attention(module: Any, parts: Sequence[str], around: Sequence[Any]) -> bool:
    in_decoder = bool(around) and isinstance(around[0], nn.TransformerDecoderLayer)
    return getattr(module, "is_cross_attention", False) or in_decoder and parts[-1] == "multihead_attn"


def _choose(found: List[_Found], layers: Layers) -> List[_Found]:
    """Those that `layers` means, in the order of the model."""
    if layers is None:
        return found
    if callable(layers):
        return [f for f in found if layers(f.name)]
    names, chosen = [f.name for f in found], set()
    for layer in [layers] if isinstance(layers, (int, str)) else layers:
        known = layer in names if isinstance(layer, str) else -len(names) <= layer < len(names)
        if not known:
            raise ValueError(f"swap: layers: expected a number from 0 to {len(names) - 1} or a name, got "
                             f"{layer!r}; the names are {', '.join(names)}")
        chosen.add(names.index(layer) if isinstance(layer, str) else layer % len(names))
    return [found[n] for n in sorted(chosen)]


def _refuse_nothing(model: nn.Module, found: List[_Found]) -> None:
    kinds = sorted({type(m).__name__ for m in model.modules() if "ttention" in type(m).__name__})
    if found:
        raise ValueError(f"swap: `layers` chooses none of {', '.join(f.name for f in found)}")
    if any(isinstance(m, Swapped) for m in model.modules()):
        raise ValueError("swap: all attention of this model is swapped already")
    raise ValueError(f"swap: found no attention that it knows in {type(model).__name__}; known are timm's "
                     "Attention, torch.nn.MultiheadAttention, and ViTAttention and GPT2Attention of "
                     f"transformers 5; here are {', '.join(kinds) or 'no modules named attention'}")


def _layer_options(f: _Found, method: str, options: Mapping[str, Any], grid: Any, cls: Optional[bool],
                   causal: Optional[bool]) -> Dict[str, Any]:
    """The options of the layer that replaces `f`."""
    name = f"{f.name or 'the model'} ({f.host.name})"
    reason = f.host.refusal(f.module)
    if reason:
        raise ValueError(f"swap: {name} cannot be swapped: {reason}")
    size, weight = f.host.size(f.module), next(f.module.parameters())
    try:
        biased = f.host.weights(f.module.state_dict()).biases is not None
    except KeyError as missing:
        raise ValueError(f"swap: {name} cannot be swapped: it has no weights {missing}") from None
    # Of alpha_translution some weights stay as they start; all other layers are overwritten.
    init = "scaled" if method == "alpha_translution" else "none"
    o = dict(dim=size.dim, heads=size.heads, dim_head=size.dim_head, dropout=size.dropout, method=method,
             causal=f.host.causal if causal is None else causal, qkv_bias=biased, dtype=weight.dtype,
             cls=False, grid=(), init=init, **options)
    if method.startswith("self_attention"):
        return o  # takes any number of tokens
    place = f.host.place(f.around)
    grid = place.grid if grid is None else (grid,) if isinstance(grid, int) else tuple(grid)
    if grid is None:
        raise ValueError(f"swap: {name} does not say how its tokens lie; pass grid=, such as grid=(14, 14) or "
                         "grid=128, with cls=True for a class token and causal=True for causal order")
    return {**o, "grid": grid, "cls": place.cls if cls is None else cls}


def _usable_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    from ._library import BUILT
    if BUILT:
        return torch.ops.translution.usable_bytes()
    try:
        with open("/proc/meminfo") as file:
            return 1024 * next(int(line.split()[1]) for line in file if line.startswith("MemAvailable"))
    except OSError:
        return 1 << 62  # unknown


def _numbers(module: nn.Module) -> Tuple[int, int]:
    """Parameters and their bytes."""
    sizes = [(p.numel(), p.numel() * p.element_size()) for p in module.parameters()]
    return sum(n for n, _ in sizes), sum(b for _, b in sizes)


# --- around the layers


def _zero_embedding(state_dict: Any, prefix: str, *args: Any, name: str) -> None:
    if prefix + name in state_dict:
        state_dict[prefix + name] = torch.zeros_like(state_dict[prefix + name])


def _find_embedding(f: _Found) -> Tuple[Any, str]:
    """The module that has the position embedding, and the name of the parameter there."""
    *folders, name = f.host.embedding.split(".")
    for module in f.around:
        for folder in folders:
            module = getattr(module, folder, None)
        if isinstance(getattr(module, name, None), nn.Parameter):
            return module, name
    raise ValueError(f"swap: drop_embedding: found no position embedding around {f.name} ({f.host.name}); "
                     "remove it in your model and pass drop_embedding=False")


def _drop_embedding(module: Any, name: str) -> None:
    parameter = getattr(module, name)
    parameter.data.zero_()
    parameter.requires_grad_(False)
    module._register_load_state_dict_pre_hook(functools.partial(_zero_embedding, name=name))


def swap(model: nn.Module, method: str = "alpha_translution", layers: Layers = None, *,
         grid: Union[None, int, Sequence[int]] = None, cls: Optional[bool] = None,
         causal: Optional[bool] = None, drop_embedding: bool = False, dry_run: bool = False,
         quiet: bool = False, roles: str = "qkv", relative_dim: int = 8, relative_dim_out: int = 0,
         encoding: Encoding = "relative", sharing: Sharing = "none", radius: int = 0,
         workspace: Optional[int] = None, precision: Precision = "float32") -> SwapReport:
    """Replaces attention layers of `model` in place by ones that compute the same.

    method          translution, alpha_translution, relative_bias, relative_key, relative_value or
                    self_attention (our kernels alone)
    layers          all (None); positions 0, 1, … or -1 among the attention layers of the model; names
                    such as "blocks.0.attn"; a sequence of both; or a function of the name
    grid            sides of the token grid; from the model unless it is torch.nn.MultiheadAttention
    cls, causal     a class token before the grid's tokens; causal order; from the model likewise
    drop_embedding  sets the position embedding to zero and freezes it: the output changes
    dry_run         changes nothing: only the report
    quiet           without the line on stderr that says how large the model becomes
    roles … precision  of the new layers, as in Attention

    Make the optimizer after swapping. Raises MemoryError, before it changes anything, if the new layers
    do not fit into memory.
    """
    from . import Attention

    if method not in METHODS:
        raise ValueError(f"swap: expected a method that can start as plain attention ({', '.join(METHODS)}), "
                         f"got '{method}'")
    options = dict(roles=roles, relative_dim=relative_dim, relative_dim_out=relative_dim_out,
                   encoding=encoding, sharing=sharing, radius=radius, workspace=workspace,
                   precision=precision)
    found = _find(model)
    chosen = _choose(found, layers)
    if not chosen:
        _refuse_nothing(model, found)
    plans = [_layer_options(f, method, options, grid, cls, causal) for f in chosen]
    embeddings = [_find_embedding(f) for f in chosen] if drop_embedding else []
    report, extra = _measure(model, chosen, plans, method, Attention)
    if not quiet:
        print(report, file=sys.stderr)
    if dry_run:
        return report
    device = next(chosen[0].module.parameters()).device
    if device.type != "meta" and extra > _usable_bytes(device):
        raise MemoryError(f"{report}; the new layers need {_megabytes(extra)}, and "
                          f"{_megabytes(_usable_bytes(device))} of memory are free; swap fewer layers= or "
                          "roles=, or choose alpha_translution")
    for f, plan in zip(chosen, plans):
        _replace(f.module, Attention(**plan, device=next(f.module.parameters()).device))
    for module, name in {(id(m), n): (m, n) for m, n in embeddings}.values():
        _drop_embedding(module, name)
    for host in {f.host.name: f.host for f in chosen}.values():
        if host.turn_off is not None:
            host.turn_off(model)
    return report


def _measure(model: nn.Module, chosen: Sequence[_Found], plans: Sequence[Dict[str, Any]], method: str,
             attention: Any) -> Tuple[SwapReport, int]:
    """The report, and the bytes of the new layers. Allocates nothing: the layers are on meta."""
    parameters, size = _numbers(model)
    new_parameters, new_size, extra = parameters, size, 0
    known: Dict[str, Tuple[int, int]] = {}
    for f, plan in zip(chosen, plans):
        key = repr(sorted(plan.items(), key=lambda item: item[0]))
        if key not in known:
            known[key] = _numbers(attention(**plan, device="meta"))
        old = _numbers(f.module)
        new_parameters += known[key][0] - old[0]
        new_size += known[key][1] - old[1]
        extra += known[key][1]
    plan = plans[0]
    return SwapReport(method, [f.name for f in chosen], plan["grid"], plan["cls"],
                      (parameters, new_parameters), (size, new_size)), extra
