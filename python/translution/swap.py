"""Replaces the attention of a model, often a pretrained one, without changing what it computes.

    model = timm.create_model("vit_small_patch16_224", pretrained=True)
    translution.swap(model, "alpha_translution")

The new layers take the weights of the old ones, and their relative parts start so that they add
nothing: the output stays the same to rounding, and training moves them from there. Known are timm's
ViT attention, torch.nn.MultiheadAttention, and the ViT and GPT-2 attention of Hugging Face
transformers 5: `_hosts.py` has what is known of each.
"""

from __future__ import annotations

import functools
import sys
from typing import (Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple,
                    Union)

import torch
from torch import Tensor, nn

from ._hosts import Host, host_of
from ._signatures import Encoding, Precision, Sharing
from ._swapped import Swapped, replace

#: Methods that can start as plain attention.
METHODS = ("translution", "alpha_translution", "relative_bias", "relative_key", "relative_value",
           "self_attention", "self_attention_no_pos")

#: Which layers to swap: positions among those found, names of modules, or a function of the name.
Layers = Union[None, int, str, Sequence[Union[int, str]], Callable[[str], bool]]


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
        host, parts = host_of(type(module)), name.split(".") if name else []
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


def _refuse_shared(model: nn.Module, chosen: List[_Found]) -> None:
    """The new layers have weights of their own: those that other modules have, too, would come apart."""
    for f in chosen:
        own, inside = {id(p) for p in f.module.parameters()}, set(f.module.modules())
        for name, other in model.named_modules():
            if other not in inside and own & {id(p) for p in other.parameters(recurse=False)}:
                raise ValueError(f"swap: {f.name or 'the model'} shares weights with {name}; give each its own "
                                 "(copy.deepcopy), share the whole module instead, or leave it out with layers=")


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
    _refuse_shared(model, chosen)
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
        replace(f.module, Attention(**plan, device=next(f.module.parameters()).device))
    for module, name in {(id(m), n): (m, n) for m, n in embeddings}.values():
        _drop_embedding(module, name)
    for host in {f.host.name: f.host for f in chosen}.values():
        if host.turn_off is not None:
            host.turn_off(model, [f.module for f in chosen if f.host is host])
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
