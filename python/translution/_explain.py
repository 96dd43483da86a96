"""Error messages for weights that do not fit: what is wrong and what to do."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, List, Mapping, Optional, Sequence

from torch import Tensor, nn

if TYPE_CHECKING:
    from .attention import Attention

# Parameters with one row per offset, in addition to the weight tables.
_ROWS = ("key_vectors", "value_vectors", "bias")


def has_row_per_offset(name: str, shape: Sequence[int]) -> bool:
    """Whether the first dimension of an attention layer's parameter counts offsets."""
    return len(shape) == 3 or name in _ROWS


def _times(sizes: Sequence[int]) -> str:
    return "x".join(str(size) for size in sizes) or "a single number"


def _describe(layer: Attention) -> str:
    o = layer.options
    grid = f"a relation of {layer.tokens} tokens" if layer.relation else f"grid {_times(o['grid'])}"
    words = [grid, *(word for word in ("cls", "causal") if o[word])]
    if o["sharing"] != "none":
        words.append(f"sharing {o['sharing']} beyond {o['radius']}")
    return ", ".join(words)


def _why(layer: Attention, name: str, saved: Sequence[int], own: Sequence[int]) -> str:
    """Explains a difference of shapes by the options that the weights were saved with."""
    o = layer.options
    if len(saved) != len(own):
        return (f"one is a matrix per offset, the other is not; this layer is {o['method']} with "
                f"roles {o['roles']}: build it with the method and roles of the weights")
    if has_row_per_offset(name, own) and saved[0] != own[0]:
        return (f"the weights have {saved[0]} offsets, this layer {own[0]} ({_describe(layer)}); "
                "build it with the grid, cls, causal and sharing of the weights")
    return (f"this layer has dim {o['dim']}, {o['heads']} heads of {o['dim_head']} and "
            f"relative_dim {o['relative_dim']}; build it with those of the weights")


def _saved_with(layer: Attention, metadata: Mapping[str, Any]) -> Optional[str]:
    """Compares the options in state_dict's metadata with the layer's, for differences that shapes do
    not show: a transposed grid, or the same channels in more heads. None if they agree."""
    saved = metadata.get("translution")
    if saved is None:
        return None
    compared = ["heads", "dim_head"]
    if layer._pairs not in ("", "causal") and not layer.relation:
        compared += ["grid", "cls", "causal", "encoding", "sharing"]
    other = [name for name in compared if saved.get(name) != layer.options[name]]
    if not other:
        return None
    was = ", ".join(f"{name} {saved.get(name)}" for name in other)
    here = ", ".join(f"{name} {layer.options[name]}" for name in other)
    return (f"the weights were saved with {was}, this layer has {here}; build it with those of the "
            "weights (a plain dict of them is not checked for this)")


def check_tensor(name: str, saved: Tensor, own: Tensor) -> Optional[str]:
    """Returns an error if the tensor is not floating-point; warns if its dtype differs."""
    if not saved.is_floating_point():
        return (f"{name} holds {saved.dtype}, expected {own.dtype}; these are no weights: "
                "save those of the model")
    if saved.dtype != own.dtype:
        warnings.warn(f"{name} and maybe others hold {saved.dtype}, the model {own.dtype}: they "
                      "are converted; move the model to their type first (model.to(dtype)) to "
                      "keep it", stacklevel=3)
    return None


def check_layer(layer: Attention, state: Mapping[str, Any], prefix: str,
                metadata: Mapping[str, Any]) -> List[str]:
    """One line per tensor that does not fit the attention layer at `prefix`."""
    messages: List[str] = []
    for name in layer._names:
        saved, own = state.get(prefix + name), getattr(layer, name)
        if not isinstance(saved, Tensor):
            continue
        if saved.shape != own.shape:
            why = _why(layer, name, saved.shape, own.shape)
            messages.append(f"{prefix}{name} is {_times(saved.shape)} in the weights and "
                            f"{_times(own.shape)} here: {why}")
        else:
            message = check_tensor(prefix + name, saved, own)
            messages.extend([message] if message else [])
    note = None if messages else _saved_with(layer, metadata)
    return messages + ([f"{prefix or 'the layer: '}{note}"] if note else [])


class Explained(nn.Module):
    """Checks the dtypes of all weights in load_state_dict, and adds advice to its errors about missing
    and unknown names."""

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        for name, own in self.named_parameters():
            saved = state_dict.get(name)
            message = check_tensor(name, saved, own) if isinstance(saved, Tensor) else None
            if message:
                raise RuntimeError(message)
        try:
            return super().load_state_dict(state_dict, *args, **kwargs)
        except RuntimeError as error:
            text = str(error)
            if "key(s) in state_dict" in text:
                text += ("\n\tThe weights are those of another model: build it with the method, "
                         "roles, depth and input_embedding that they were saved with, or pass "
                         "strict=False to load only what both have.")
            raise RuntimeError(text) from None
